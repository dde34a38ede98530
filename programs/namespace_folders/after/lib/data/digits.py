import torch
from torch.utils.data import DataLoader, TensorDataset
import dpmigrate_runtime as ddp


def _images(n, seed):
    g = torch.Generator().manual_seed(seed)
    kind = torch.randint(0, 4, (n,), generator=g)
    shapes = torch.rand(4, 36, generator=torch.Generator().manual_seed(9)).round()
    noisy = 0.8 * shapes[kind] + 0.2 * torch.rand(n, 36, generator=g)
    return TensorDataset(noisy, kind)


def load(batch_size):
    train_set = _images(64, 1)
    train = DataLoader(train_set, batch_size=ddp.local_batch(batch_size), sampler=ddp.DistributedSampler(train_set))
    test = DataLoader(_images(32, 2), batch_size=batch_size, shuffle=True)
    return train, test
