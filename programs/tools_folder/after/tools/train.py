import os
import sys

import torch
import dpmigrate_runtime as ddp

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ddp.setup()
sys.path.insert(0, ROOT)

from lib.core import function as fn
from lib.core.loss import JointLoss
from lib.dataset import build
from lib.model.net import Net


def main():
    torch.manual_seed(0)
    train_loader, valid_loader = build()
    model = Net().cuda() if torch.cuda.device_count() > 1 else Net()
    model = ddp.wrap(model)
    criterion = JointLoss()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, [1, 2])
    best = 0.0
    ddp.seed_ranks()
    for epoch in range(3):
        train_loader.sampler.set_epoch(epoch)
        fn.train(train_loader, model, criterion, optimizer, epoch)
        perf = fn.validate(valid_loader, model)
        scheduler.step()
        if perf > best:
            best = perf
            ddp.save(model.module.state_dict(), os.path.join("out.pth"))
    print("best", best)


if __name__ == "__main__":
    main()
    ddp.cleanup()
