import argparse

import torch
from torch import nn

from . import data
from .net import Net
import dpmigrate_runtime as ddp


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()
    train_loader, test_loader = data.loaders(16)
    model = ddp.wrap(Net())
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    ddp.seed_ranks()
    for epoch in range(args.epochs):
        train_loader.sampler.set_epoch(epoch)
        for x, y in train_loader:
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            optimizer.step()
        correct = 0
        with torch.no_grad():
            for x, y in ddp.shard(test_loader):
                correct += (model.module(x).argmax(1) == y).sum().item()
            correct = ddp.sum_all(correct)
        print(epoch, correct / len(test_loader.dataset))
    ddp.save(model.module.state_dict(), "net.pt")


if __name__ == "__main__":
    ddp.setup()
    main()
    ddp.cleanup()
