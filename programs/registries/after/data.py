import torch
from torch.utils.data import DataLoader, TensorDataset
import dpmigrate_runtime as ddp


def loaders(batch_size):
    torch.manual_seed(0)
    x = torch.randn(96, 8)
    y = (x.sum(1) > 0).long()
    train_set = TensorDataset(x[:64], y[:64])
    train = DataLoader(train_set, batch_size=ddp.local_batch(batch_size), sampler=ddp.DistributedSampler(train_set, seed=0))
    return train, DataLoader(TensorDataset(x[64:], y[64:]), batch_size=batch_size)
