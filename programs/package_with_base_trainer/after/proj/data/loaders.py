import torch
from torch.utils import data as tud

from .. import config
import dpmigrate_runtime as ddp


class Toy(tud.Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.x = torch.randn(n, 8, generator=g)
        self.y = (self.x.sum(1) > 0).long()

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


def make_loaders():
    train_set = Toy(64, 0)
    return {
        "train": tud.DataLoader(train_set, ddp.local_batch(config.BATCH), drop_last=True, sampler=ddp.DistributedSampler(train_set, drop_last=True)),
        "val": tud.DataLoader(Toy(24, 1), config.BATCH),
    }
