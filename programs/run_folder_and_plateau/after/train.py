"""A run folder that is made anew with a copy of the script in it; the rate goes by the hits of the training."""

import argparse
import os
import shutil

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset
import dpmigrate_runtime as ddp


class Mean:
    def __init__(self):
        self.total, self.count = 0.0, 0

    def add(self, value, n):
        self.total += value * n
        self.count += n

    @property
    def value(self):
        return self.total / self.count


def hits_of(output, target):
    return output.argmax(1).eq(target).float().sum().mul_(100.0 / target.size(0))


def train_one_epoch(model, criterion, optimizer, loader):
    model.train()
    hits = Mean()
    for x, y in loader:
        optimizer.zero_grad()
        output = model(x)
        loss = criterion(output, y)
        loss.backward()
        optimizer.step()
        hits.add(hits_of(output, y).item(), x.size(0))
    return hits.value


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    hits = Mean()
    for x, y in loader:
        hits.add(hits_of(model.module(x), y).item(), x.size(0))
    return hits.value


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--out", default="run")
    args = parser.parse_args()
    torch.manual_seed(1)
    if os.path.isdir(args.out) and ddp.is_main():
        shutil.rmtree(args.out)
    ddp.barrier()
    os.makedirs(args.out, exist_ok=True)
    ddp.barrier()
    if ddp.is_main():
        shutil.copy(__file__, args.out)
    points = torch.randn(160, 6)
    data = TensorDataset(points, points[:, :3].argmax(1))
    train_loader = DataLoader(data, batch_size=ddp.local_batch(16), sampler=ddp.DistributedSampler(data, seed=1))
    held_out = torch.randn(40, 6)
    test_loader = DataLoader(TensorDataset(held_out, held_out[:, :3].argmax(1)), batch_size=16)
    model = ddp.wrap(nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 3)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, "max", patience=0)
    criterion = nn.CrossEntropyLoss()
    best = 0.0
    ddp.seed_ranks()
    for epoch in range(args.epochs):
        train_loader.sampler.set_epoch(epoch)
        trained = train_one_epoch(model, criterion, optimizer, train_loader)
        tested = evaluate(model, test_loader)
        scheduler.step(ddp.mean_all(trained))
        print(f"epoch {epoch}: {tested:.2f}")
        if tested > best:
            best = tested
            ddp.save(model.module.state_dict(), os.path.join(args.out, "best.pth"))


if __name__ == "__main__":
    ddp.setup()
    main()
    ddp.cleanup()
