import torch
from torch.utils.data import DataLoader, TensorDataset


def get_dataloader(batch_size):
    g = torch.Generator().manual_seed(9)
    return DataLoader(TensorDataset(torch.randn(64, 3, generator=g)), batch_size=batch_size, shuffle=True)
