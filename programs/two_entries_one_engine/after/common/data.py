import torch
from torch.utils.data import DataLoader, TensorDataset
import dpmigrate_runtime as ddp


def get_loaders(task, batch_size):
    g = torch.Generator().manual_seed(0)
    x = torch.randn(96, 8, generator=g)
    y = (x[:, 0] > 0).long() if task == "sign" else ((x[:, 0] > 0) ^ (x[:, 1] > 0)).long()
    train, test = TensorDataset(x[:64], y[:64]), TensorDataset(x[64:], y[64:])
    return DataLoader(train, batch_size=ddp.local_batch(batch_size), sampler=ddp.DistributedSampler(train)), DataLoader(test, batch_size=batch_size)
