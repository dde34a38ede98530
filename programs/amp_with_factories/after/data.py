import torch
from torch.utils.data import DataLoader, TensorDataset
import dpmigrate_runtime as ddp


def loaders(batch_size):
    g = torch.Generator().manual_seed(8)
    x = torch.randn(96, 6, generator=g)
    y = (x.sum(1) > 0).long()
    train_set = TensorDataset(x[:64], y[:64])
    train = DataLoader(train_set, ddp.local_batch(batch_size), sampler=ddp.DistributedSampler(train_set))
    val = DataLoader(TensorDataset(x[64:], y[64:]), batch_size)
    return train, val
