import argparse

import torch
from torch.utils.data import DataLoader

import models
from callbacks import EarlyStopping, History, ModelCheckpoint
from datasets import Sines
from learner import Learner
from registry import MODELS
import dpmigrate_runtime as ddp


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="mlp", choices=sorted(MODELS))
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--bs", type=int, default=16)
    parser.add_argument("--lr", type=float, default=1e-2)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    train_set = Sines(80, 0)
    train_dl = DataLoader(train_set, ddp.local_batch(args.bs), sampler=ddp.DistributedSampler(train_set, seed=args.seed))
    valid_dl = DataLoader(Sines(40, 1), args.bs * 2)
    model = MODELS[args.model](hidden=24)
    callbacks = [History("history.json"), ModelCheckpoint("best.pt"), EarlyStopping(patience=2)]
    learner = Learner(model, torch.nn.MSELoss(), torch.optim.RMSprop(model.parameters(), lr=args.lr), callbacks)
    learner.fit(args.epochs, train_dl, valid_dl)
    print("best", min(callbacks[0].losses["valid"]))


if __name__ == "__main__":
    ddp.setup()
    main()
    ddp.cleanup()
