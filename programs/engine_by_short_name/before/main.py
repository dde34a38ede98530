import argparse
import os
import random

import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim

import dataset as D
import engine as E
from network import ConvNet
from utils import save_checkpoint, load_checkpoint

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", default=3, type=int)
parser.add_argument("-b", "--batch-size", default=16, type=int)
parser.add_argument("--lr", default=0.1, type=float)
parser.add_argument("--seed", default=1, type=int)
parser.add_argument("--resume", default="", type=str)
parser.add_argument("--save-dir", default="save", type=str)
args = parser.parse_args()


def main():
    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)
    if not os.path.exists(args.save_dir):
        os.makedirs(args.save_dir)

    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = ConvNet(num_classes=3)
    model = nn.DataParallel(model).to(device)
    criterion = nn.CrossEntropyLoss().to(device)
    optimizer = optim.SGD(model.parameters(), args.lr, momentum=0.9, weight_decay=1e-4)
    scheduler = optim.lr_scheduler.MultiStepLR(optimizer, milestones=[2], gamma=0.1)

    best_prec = 0.0
    start_epoch = 0
    if args.resume:
        start_epoch, best_prec = load_checkpoint(args.resume, model, optimizer)

    loaders = D.build_loaders(args.batch_size)
    for epoch in range(start_epoch, args.epochs):
        loss, prec = E.train_one_epoch(loaders["train"], model, criterion, optimizer, epoch, device)
        val_loss, val_prec = E.evaluate(loaders["test"], model, criterion, device)
        scheduler.step()
        print("* epoch %d train loss %.4f prec %.2f" % (epoch, loss, prec))
        print("* epoch %d test loss %.4f prec %.2f" % (epoch, val_loss, val_prec))

        is_best = val_prec > best_prec
        best_prec = max(val_prec, best_prec)
        save_checkpoint(
            {
                "epoch": epoch + 1,
                "state_dict": model.state_dict(),
                "best_prec": best_prec,
                "optimizer": optimizer.state_dict(),
            },
            is_best,
            args.save_dir,
        )
    print("best precision: %.2f" % best_prec)


if __name__ == "__main__":
    main()
