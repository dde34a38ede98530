#!/usr/bin/env python
import argparse
import os
import sys
import dpmigrate_runtime as ddp

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "src"))

from waves.config import Config
from waves.training import fit


def parse():
    parser = argparse.ArgumentParser(description="Fit a network to noisy waves")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--out", default="runs")
    parser.add_argument("--resume", action="store_true")
    return parser.parse_args()


def main():
    args = parse()
    config = Config(epochs=args.epochs, batch_size=args.batch_size, lr=args.lr, out=args.out, resume=args.resume)
    best = fit(config)
    print("best validation error: {:.5f}".format(best))


if __name__ == "__main__":
    ddp.setup()
    main()
    ddp.cleanup()
