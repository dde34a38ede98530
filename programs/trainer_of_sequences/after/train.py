import argparse
import json

import torch

from data.sequences import SequenceLoaders
from model.recurrent import Recurrent
from trainer.sequence_trainer import SequenceTrainer
import dpmigrate_runtime as ddp


def main(config):
    torch.manual_seed(config["seed"])
    loaders = SequenceLoaders(config["batch_size"], config["length"])
    model = Recurrent(loaders.vocabulary, config["hidden"])
    optimizer = torch.optim.Adam(model.parameters(), lr=config["lr"])
    trainer = SequenceTrainer(model, optimizer, config, loaders.train, loaders.valid)
    trainer.train()


if __name__ == "__main__":
    ddp.setup()
    parser = argparse.ArgumentParser(description="PyTorch Template")
    parser.add_argument("-c", "--config", default="config.json")
    args = parser.parse_args()
    with open(args.config) as handle:
        main(json.load(handle))
    ddp.cleanup()
