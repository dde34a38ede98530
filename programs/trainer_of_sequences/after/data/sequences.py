import torch
from torch.utils.data import DataLoader, Dataset
import dpmigrate_runtime as ddp


class Walk(Dataset):
    """Walks on a ring: each token is the last one plus one or two."""

    def __init__(self, n, length, vocabulary, seed):
        g = torch.Generator().manual_seed(seed)
        steps = torch.randint(1, 3, (n, length + 1), generator=g)
        self.tokens = steps.cumsum(1) % vocabulary

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, i):
        return self.tokens[i, :-1], self.tokens[i, 1:]


class SequenceLoaders:
    vocabulary = 10

    def __init__(self, batch_size, length):
        train_set = Walk(48, length, self.vocabulary, 0)
        self.train = DataLoader(train_set, ddp.local_batch(batch_size), sampler=ddp.DistributedSampler(train_set))
        self.valid = DataLoader(Walk(24, length, self.vocabulary, 1), batch_size, shuffle=False)
