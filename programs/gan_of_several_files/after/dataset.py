import torch
from torch.utils.data import DataLoader, TensorDataset
import dpmigrate_runtime as ddp


def get_dataloader(batch_size):
    g = torch.Generator().manual_seed(9)
    train_set = TensorDataset(torch.randn(64, 3, generator=g))
    return DataLoader(train_set, batch_size=ddp.local_batch(batch_size), sampler=ddp.DistributedSampler(train_set))
