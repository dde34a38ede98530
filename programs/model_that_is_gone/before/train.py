"""The sum of a few numbers, learned by a network that the command line names."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from define import define_network


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--network", default="narrow")
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()
    torch.manual_seed(14)
    x = torch.rand(64, 4)
    loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=16, shuffle=True)
    net = define_network(args.network, 4)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    for epoch in range(args.epochs):
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(net(x), y)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} done")
    torch.save(net.state_dict(), "sum.pt")


if __name__ == "__main__":
    main()
