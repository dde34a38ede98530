import torch
from torch.utils.data import DataLoader, TensorDataset


class Toy(DataLoader):
    def __init__(self, size, batch_size):
        torch.manual_seed(0)
        x = torch.randn(size, 8)
        super().__init__(TensorDataset(x, (x.sum(1) > 0).long()), batch_size=batch_size, shuffle=True)
