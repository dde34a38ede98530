import torch

from curves import Curves
import dpmigrate_runtime as ddp


class Trainer:
    def __init__(self, model, criterion, optimizer, options):
        self.model = ddp.wrap(model)
        self.criterion = criterion
        self.optimizer = optimizer
        self.options = options
        self.curves = Curves(options.folder, options.values["curves"])

    def fit(self, loader):
        ddp.seed_ranks()
        for epoch in range(self.options.values["epochs"]):
            loader.sampler.set_epoch(epoch)
            self.model.train()
            total = 0.0
            for x, y in loader:
                self.optimizer.zero_grad()
                loss = self.criterion(self.model(x), y)
                loss.backward()
                self.optimizer.step()
                total += loss.item()
            total = ddp.mean_all(total)
            self.curves.add("loss", total / len(loader), epoch)
            ddp.save(self.model.module.state_dict(), self.options.folder / f"{epoch}.pt")
