import torch
from torch.utils.data import DataLoader, TensorDataset
import dpmigrate_runtime as ddp


def get_loaders(batch_size):
    g = torch.Generator().manual_seed(0)
    x = torch.randn(64, 8, generator=g)
    y = (x.sum(1) > 0).long()
    train = TensorDataset(x[:48], y[:48])
    test = TensorDataset(x[48:], y[48:])
    train_loader = DataLoader(train, batch_size=ddp.local_batch(batch_size), sampler=ddp.DistributedSampler(train))
    test_loader = DataLoader(test, batch_size=batch_size)
    return train_loader, test_loader
