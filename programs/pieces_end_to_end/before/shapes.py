import torch
from torch.utils.data import Dataset


class Shapes(Dataset):
    """Clouds of points, each of another size, with a kind for each point."""

    def __init__(self, count):
        draw = torch.Generator().manual_seed(5)
        self.points = [torch.randn(3 + 7 * (i % 3), 6, generator=draw) for i in range(count)]

    def __len__(self):
        return len(self.points)

    def __getitem__(self, i):
        points = self.points[i]
        return points, (points[:, 0] > points[:, 1]).long()


def put_together(samples):
    points = torch.cat([s[0] for s in samples])
    kinds = torch.cat([s[1] for s in samples], dim=0)
    return {"points": points, "kinds": kinds}
