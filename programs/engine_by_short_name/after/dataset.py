import torch
from torch.utils.data import DataLoader, TensorDataset
import dpmigrate_runtime as ddp


def _blobs(n, seed):
    g = torch.Generator().manual_seed(seed)
    target = torch.randint(0, 3, (n,), generator=g)
    images = torch.randn(n, 1, 8, 8, generator=g) * 0.5
    images[torch.arange(n), 0, target * 2] += 1.0
    return TensorDataset(images, target)


def build_loaders(batch_size):
    train_set = _blobs(80, 0)
    return {
        "train": DataLoader(train_set, batch_size=ddp.local_batch(batch_size), num_workers=0, pin_memory=False, sampler=ddp.DistributedSampler(train_set)),
        "test": DataLoader(_blobs(40, 1), batch_size=batch_size, shuffle=False, num_workers=0),
    }
