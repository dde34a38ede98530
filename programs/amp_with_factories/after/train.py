import argparse

import torch

from checkpoint import restore, store
from data import loaders
from model import build
from optim import build_optimizer
from step import train_epoch, validate
import dpmigrate_runtime as ddp


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--accumulate", type=int, default=2)
    parser.add_argument("--resume", default=None)
    args = parser.parse_args()

    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    train_loader, val_loader = loaders(8)
    model = build().to(device)
    optimizer = build_optimizer(model, lr=0.02)
    start = restore(args.resume, model, optimizer) if args.resume else 0
    model = ddp.wrap(model)

    ddp.seed_ranks()
    for epoch in range(start, args.epochs):
        train_loader.sampler.set_epoch(epoch)
        train_epoch(model, train_loader, optimizer, device, args.accumulate)
        loss, hits = validate(model, val_loader, device)
        print("epoch", epoch, "loss %.2f" % loss, "hits", hits)
        store("last.pt", epoch + 1, model, optimizer)


if __name__ == "__main__":
    ddp.setup()
    main()
    ddp.cleanup()
