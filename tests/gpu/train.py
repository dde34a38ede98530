"""The program that is migrated with and without --amp: it prints the loss of every step."""

import argparse

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def rings(n):
    """In which of four rings round the origin does a point lie? Inputs within [-1, 1], so that no first step overflows in float16."""
    g = torch.Generator().manual_seed(3)
    x = 2 * torch.rand(n, 2, generator=g) - 1
    return TensorDataset(x, (x.norm(dim=1) * 4).long().clamp(max=3))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=5)
    args = parser.parse_args()
    torch.manual_seed(5)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    layers = nn.Sequential(nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 4)).to(device)
    model = nn.DataParallel(layers)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    criterion = nn.CrossEntropyLoss()
    loader = DataLoader(rings(960), batch_size=96, shuffle=True)
    for epoch in range(args.epochs):
        for x, ring in loader:
            x, ring = x.to(device), ring.to(device)
            optimizer.zero_grad()
            loss = criterion(model(x), ring)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            print("loss", loss.item())
        print("epoch", epoch)
    torch.save(model.state_dict(), "rings.pt")


if __name__ == "__main__":
    main()
