"""Curves told from points of them: each block reads a list of sources, one layer for each."""

import argparse
import copy

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def copies(module, count):
    return nn.ModuleList([copy.deepcopy(module) for _ in range(count)])


class Reader(nn.Module):
    """Room for two sources; the others' layers rest."""

    def __init__(self, width):
        super().__init__()
        self.mix = nn.Linear(width, width)
        self.reads = nn.ModuleList([copy.deepcopy(nn.Linear(width, width)) for _ in range(2)])
        self.norms = nn.ModuleList([copy.deepcopy(nn.LayerNorm(width)) for _ in range(2)])

    def forward(self, x, sources):
        x = self.mix(x)
        for source, read, norm in zip(sources, self.reads, self.norms):
            x = norm(x + torch.tanh(read(source)))
        return x


class Curve(nn.Module):
    def __init__(self, width=8, depth=2):
        super().__init__()
        self.blocks = copies(Reader(width), depth)
        self.out = nn.Linear(width, 1)

    def forward(self, points):
        x = points
        for block in self.blocks:
            x = block(x, [points])
        return self.out(x)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=4)
    args = parser.parse_args()
    torch.manual_seed(2)
    points = torch.randn(96, 8)
    loader = DataLoader(TensorDataset(points, points.sum(1, keepdim=True)), batch_size=16, shuffle=True)
    model = Curve()
    criterion = nn.MSELoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(args.epochs):
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}")
    torch.save(model.state_dict(), "curve.pt")


if __name__ == "__main__":
    main()
