import argparse
import os

import torch

from feed import Feed
from methods import method_named
import dpmigrate_runtime as ddp


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--method', default='direct')
    parser.add_argument('--batch', type=int, default=8)
    parser.add_argument('--at-most', type=int, default=64)
    parser.add_argument('--width', type=int, default=6)
    parser.add_argument('--epochs', type=int, default=2)
    parser.add_argument('--out', default='out')
    settings = parser.parse_args()
    torch.manual_seed(2)
    os.makedirs(settings.out, exist_ok=True)
    feed = Feed(settings).ready()
    method = method_named(settings.method)(settings)
    ddp.seed_ranks()
    for epoch in range(settings.epochs):
        for batch in feed:
            method.take(batch)
            method.step()
        print('epoch', epoch, 'is over')
        method.store()


if __name__ == '__main__':
    ddp.setup()
    main()
    ddp.cleanup()
