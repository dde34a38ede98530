import torch
from torch.utils import data
import dpmigrate_runtime as ddp


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
    train_set = Numbers(64)
    return data.DataLoader(dataset=train_set, batch_size=ddp.local_batch(batch_size), num_workers=num_workers, drop_last=True, sampler=ddp.DistributedSampler(train_set, drop_last=True))
