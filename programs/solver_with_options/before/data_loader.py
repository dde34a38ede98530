import torch
from torch.utils import data


class Numbers(data.Dataset):
    def __init__(self, n):
        g = torch.Generator().manual_seed(0)
        self.x = torch.randn(n, 6, generator=g)
        self.y = (self.x[:, 1] > 0).long()

    def __getitem__(self, index):
        return self.x[index], self.y[index]

    def __len__(self):
        return len(self.x)


def get_loader(batch_size, num_workers):
    return data.DataLoader(dataset=Numbers(64), batch_size=batch_size, shuffle=True, num_workers=num_workers, drop_last=True)
