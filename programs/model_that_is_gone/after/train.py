"""The sum of a few numbers, learned by a network that the command line names."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from define import define_network
import dpmigrate_runtime as ddp


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--network", default="narrow")
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()
    torch.manual_seed(14)
    x = torch.rand(64, 4)
    train_set = TensorDataset(x, x.sum(1, keepdim=True))
    loader = DataLoader(train_set, batch_size=ddp.local_batch(16), sampler=ddp.DistributedSampler(train_set, seed=14))
    net = ddp.wrap(define_network(args.network, 4))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    ddp.seed_ranks()
    for epoch in range(args.epochs):
        loader.sampler.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(net(x), y)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} done")
    ddp.save(net.module.state_dict(), "sum.pt")


if __name__ == "__main__":
    ddp.setup()
    main()
    ddp.cleanup()
