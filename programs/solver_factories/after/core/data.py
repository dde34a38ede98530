import torch
from torch.utils.data import DataLoader, Dataset
import dpmigrate_runtime as ddp


class Rings(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.label = torch.randint(0, 3, (n,), generator=g)
        angle = torch.rand(n, generator=g) * 6.283
        radius = 1 + self.label + 0.1 * torch.randn(n, generator=g)
        self.point = torch.stack([radius * angle.cos(), radius * angle.sin()], 1)

    def __len__(self):
        return len(self.label)

    def __getitem__(self, i):
        return {"point": self.point[i], "label": self.label[i]}


def collate(batch):
    return torch.stack([b["point"] for b in batch]), torch.stack([b["label"] for b in batch])


def build_dataloader(cfg):
    train_set = Rings(72, 0)
    train = DataLoader(train_set, batch_size=ddp.local_batch(cfg["BATCH_SIZE"]), num_workers=0, collate_fn=collate, drop_last=True, sampler=ddp.DistributedSampler(train_set, drop_last=True))
    val = DataLoader(Rings(36, 1), batch_size=cfg["BATCH_SIZE"], shuffle=False, num_workers=0, collate_fn=collate)
    return train, val
