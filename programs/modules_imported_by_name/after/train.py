import argparse
import importlib

import torch

from data import loaders
import dpmigrate_runtime as ddp

parser = argparse.ArgumentParser()
parser.add_argument("--model", default="large")
parser.add_argument("--step", default="plain")


def main():
    args = parser.parse_args()
    train_loader, test_loader = loaders(16)
    module = importlib.import_module(f"models.{args.model}")
    model = ddp.wrap(getattr(module, "Model")(classes=2))
    train_epoch = importlib.import_module("steps." + args.step).train_epoch
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    ddp.seed_ranks()
    for epoch in range(3):
        train_loader.sampler.set_epoch(epoch)
        train_epoch(model, train_loader, optimizer)
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
