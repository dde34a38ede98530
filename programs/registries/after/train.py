import argparse

import torch
import dpmigrate_runtime as ddp

ddp.setup()
import losses
import models
import trainers
from data import loaders
from registry import LOSSES, MODELS, TRAINERS

parser = argparse.ArgumentParser()
parser.add_argument("--model", default="two_heads")
parser.add_argument("--loss", default="summed")
parser.add_argument("--trainer", default="plain")


def main():
    args = parser.parse_args()
    train_loader, test_loader = loaders(16)
    model = MODELS.build(args.model, classes=2)
    criterion = LOSSES.get(args.loss)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    trainer = TRAINERS.get(args.trainer)(model, criterion, optimizer)
    trainer.train(train_loader, 3)
    print(trainer.test(test_loader))
    ddp.save(model.state_dict(), "net.pt")


if __name__ == "__main__":
    main()
    ddp.cleanup()
