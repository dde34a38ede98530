import torch
from torch.utils.data import DataLoader, Dataset, random_split
import dpmigrate_runtime as ddp


class Waves(Dataset):
    def __init__(self, n, generator):
        self.x = torch.rand(n, 4, generator=generator) * 2 - 1
        self.y = torch.sin(self.x.sum(dim=1, keepdim=True) * 3) + 0.05 * torch.randn(n, 1, generator=generator)

    def __getitem__(self, i):
        return self.x[i], self.y[i]

    def __len__(self):
        return len(self.x)


def get_loaders(config):
    generator = torch.Generator().manual_seed(config.seed)
    train_set, val_set = random_split(Waves(96, generator), [64, 32], generator=generator)
    train_loader = DataLoader(train_set, batch_size=ddp.local_batch(config.batch_size), num_workers=0, sampler=ddp.DistributedSampler(train_set))
    val_loader = DataLoader(val_set, batch_size=config.batch_size)
    return train_loader, val_loader
