import argparse

import torch
from loops import train_vanilla as train
from loops import validate
from tools import *
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
import dpmigrate_runtime as ddp


def train_by_hand(model, x, y):
    """An experiment that is left in the file."""
    optimizer = create_optimizer(model, argparse.Namespace(lr=0.1))
    for i in range(0, len(x), 8):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x[i : i + 8]), y[i : i + 8]).backward()
        optimizer.step()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=8)
    args = parser.parse_args()
    print(described(args))
    torch.manual_seed(0)
    train_set = TensorDataset(torch.randn(64, 4), torch.randint(0, 2, (64,)))
    test_set = TensorDataset(torch.randn(24, 4), torch.randint(0, 2, (24,)))
    train_loader = DataLoader(train_set, batch_size=ddp.local_batch(args.batch_size), sampler=ddp.DistributedSampler(train_set, seed=0))
    test_loader = DataLoader(test_set, batch_size=args.batch_size)
    model = ddp.wrap(nn.Linear(4, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    ddp.seed_ranks()
    for epoch in range(args.epochs):
        train_loader.sampler.set_epoch(epoch)
        loss = train(train_loader, model, optimizer)
        print(f"epoch {epoch}: loss {loss:.6f}, accuracy {validate(test_loader, model):.4f}")
    ddp.save(model.module.state_dict(), "model.pt")


if __name__ == "__main__":
    ddp.setup()
    main()
    ddp.cleanup()
