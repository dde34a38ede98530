import torch

from curves import Curves


class Trainer:
    def __init__(self, model, criterion, optimizer, options):
        self.model = model
        self.criterion = criterion
        self.optimizer = optimizer
        self.options = options
        self.curves = Curves(options.folder, options.values["curves"])

    def fit(self, loader):
        for epoch in range(self.options.values["epochs"]):
            self.model.train()
            total = 0.0
            for x, y in loader:
                self.optimizer.zero_grad()
                loss = self.criterion(self.model(x), y)
                loss.backward()
                self.optimizer.step()
                total += loss.item()
            self.curves.add("loss", total / len(loader), epoch)
            torch.save(self.model.state_dict(), self.options.folder / f"{epoch}.pt")
