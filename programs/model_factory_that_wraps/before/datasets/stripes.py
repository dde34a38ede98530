import torch
from torch.utils.data import Dataset


class Stripes(Dataset):
    """Noisy images with a horizontal or a vertical stripe."""

    num_classes = 2

    def __init__(self, n, seed=0):
        g = torch.Generator()
        g.manual_seed(seed)
        self.images = torch.rand(n, 1, 8, 8, generator=g)
        self.labels = torch.randint(2, (n,), generator=g)
        where = torch.randint(8, (n,), generator=g)
        for i in range(n):
            if self.labels[i]:
                self.images[i, 0, where[i]] += 1
            else:
                self.images[i, 0, :, where[i]] += 1

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.images[index], self.labels[index]
