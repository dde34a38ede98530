import os

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
import dpmigrate_runtime as ddp

ddp.setup()
import engine


def main():
    torch.manual_seed(0)
    inputs = torch.randn(64, 10)
    train_set = TensorDataset(inputs, (inputs.sum(1) > 0).long())
    loader = DataLoader(train_set, batch_size=ddp.local_batch(8), sampler=ddp.DistributedSampler(train_set, seed=0))
    model = nn.Linear(10, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    if os.path.exists("last.pt"):
        state = torch.load("last.pt", map_location="cpu")
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        if "scaler" in state:
            engine.scaler.load_state_dict(state["scaler"])
    model = ddp.wrap(model)
    ddp.seed_ranks()
    for epoch in range(2):
        loader.sampler.set_epoch(epoch)
        engine.train_epoch(model, loader, optimizer)
    ddp.save({"model": model.module.state_dict(), "optimizer": optimizer.state_dict(), "scaler": engine.scaler.state_dict()}, "last.pt")


if __name__ == "__main__":
    main()
    ddp.cleanup()
