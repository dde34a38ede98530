import random

import torch
from torch.utils.data import DataLoader, TensorDataset
import dpmigrate_runtime as ddp


class Visits:
    """Which guest was seen at which place; each epoch sees a part of it, with places beside it that were not visited."""

    def __init__(self, guests, places, seed):
        chance = random.Random(seed)
        self.places = places
        self.seen = {g: chance.sample(range(places), 4) for g in range(guests)}
        self.unseen = {g: sorted(set(range(places)) - set(p)) for g, p in self.seen.items()}

    def epoch(self, beside, batch_size):
        kept = [(g, p) for g, places in self.seen.items() for p in places if random.random() < 0.7]
        others = map(lambda pair: random.sample(self.unseen[pair[0]], beside), kept)
        rows, labels = [], []
        for (guest, place), away in zip(kept, others):
            rows += [(guest, place)] + [(guest, other) for other in away]
            labels += [1.0] + [0.0] * beside
        train_set = TensorDataset(torch.tensor(rows), torch.tensor(labels))
        return DataLoader(train_set, batch_size=ddp.local_batch(batch_size), sampler=ddp.DistributedSampler(train_set))

    def check(self):
        rows = torch.tensor([(g, p) for g, places in self.seen.items() for p in places])
        return DataLoader(TensorDataset(rows), batch_size=16)
