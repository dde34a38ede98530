import torch
from torch.utils.data import DataLoader, TensorDataset


def loaders(batch_size):
    g = torch.Generator().manual_seed(8)
    x = torch.randn(96, 6, generator=g)
    y = (x.sum(1) > 0).long()
    train = DataLoader(TensorDataset(x[:64], y[:64]), batch_size, shuffle=True)
    val = DataLoader(TensorDataset(x[64:], y[64:]), batch_size)
    return train, val
