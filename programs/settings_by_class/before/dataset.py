import torch
from torch.utils.data import DataLoader, Dataset


class Reversal(Dataset):
    def __init__(self, n, seed):
        self.x = torch.randn(n, 12, generator=torch.Generator().manual_seed(seed))

    def __len__(self):
        return self.x.shape[0]

    def __getitem__(self, index):
        return self.x[index], self.x[index].flip(0)


def reversal_loader(n, batch_size, train):
    return DataLoader(Reversal(n, seed=0 if train else 1), batch_size=batch_size, shuffle=train, drop_last=train)
