"""Trains the network of the settings, for ever or for some epochs."""

import argparse

import torch
import dpmigrate_runtime as ddp
ddp.setup()
from settings import CRITERION, DEVICE, NETWORK
from torch.utils.data import DataLoader, TensorDataset


def one_epoch(model, loader, optimizer):
    model.train()
    total = 0.0
    for x, y in ddp.next_epoch(loader):
        x, y = x.to(DEVICE), y.to(DEVICE)
        optimizer.zero_grad()
        loss = CRITERION(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item()
    total = ddp.mean_all(total)
    return total / len(loader)


def train(args):
    x = torch.linspace(-1, 1, 320).reshape(64, 5)
    train_set = TensorDataset(x, x.sum(1, keepdim=True))
    loader = DataLoader(train_set, batch_size=ddp.local_batch(8), sampler=ddp.DistributedSampler(train_set))
    optimizer = torch.optim.SGD(NETWORK.parameters(), lr=0.05)
    epoch = 0
    ddp.seed_ranks()
    while True:
        epoch += 1
        print(f"{epoch}: {one_epoch(NETWORK, loader, optimizer):.5f}")
        ddp.save(NETWORK.module.state_dict(), args.path)
        if epoch == args.epochs:
            break


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--path", default="last.pt")
    train(parser.parse_args())
    ddp.cleanup()
