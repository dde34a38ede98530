import argparse

import torch

import data
import losses
import nets
from options import Options
from trainer import Trainer


def main(options):
    loader = options.make("data", data)
    model = options.make("model", nets)
    criterion = getattr(losses, options.values["loss"])
    optimizer = options.make("optimizer", torch.optim, model.parameters())
    Trainer(model, criterion, optimizer, options).fit(loader)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--options", default="options.json")
    main(Options.read(parser.parse_args().options))
