import os

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import engine


def main():
    torch.manual_seed(0)
    inputs = torch.randn(64, 10)
    loader = DataLoader(TensorDataset(inputs, (inputs.sum(1) > 0).long()), batch_size=8, shuffle=True)
    model = nn.Linear(10, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    if os.path.exists("last.pt"):
        state = torch.load("last.pt", map_location="cpu")
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
    for epoch in range(2):
        engine.train_epoch(model, loader, optimizer)
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, "last.pt")


if __name__ == "__main__":
    main()
