import torch
from torch.utils.data import DataLoader, TensorDataset


def loaders(batch_size):
    torch.manual_seed(0)
    x = torch.randn(96, 8)
    y = (x.sum(1) > 0).long()
    train = DataLoader(TensorDataset(x[:64], y[:64]), batch_size=batch_size, shuffle=True)
    return train, DataLoader(TensorDataset(x[64:], y[64:]), batch_size=batch_size)
