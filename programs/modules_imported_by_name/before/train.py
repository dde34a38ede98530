import argparse
import importlib

import torch

from data import loaders

parser = argparse.ArgumentParser()
parser.add_argument("--model", default="large")
parser.add_argument("--step", default="plain")


def main():
    args = parser.parse_args()
    train_loader, test_loader = loaders(16)
    module = importlib.import_module(f"models.{args.model}")
    model = getattr(module, "Model")(classes=2)
    train_epoch = importlib.import_module("steps." + args.step).train_epoch
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        train_epoch(model, train_loader, optimizer)
        correct = 0
        with torch.no_grad():
            for x, y in test_loader:
                correct += (model(x).argmax(1) == y).sum().item()
        print(epoch, correct / len(test_loader.dataset))
    torch.save(model.state_dict(), "net.pt")


if __name__ == "__main__":
    main()
