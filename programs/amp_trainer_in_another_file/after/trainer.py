from torch import nn, optim
import dpmigrate_runtime as ddp
import torch


class Trainer:
    def __init__(self, model, loader):
        self.model = ddp.wrap(model)
        self.loader = loader
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = optim.SGD(self.model.parameters(), lr=0.1)
        self.scaler = torch.amp.GradScaler(ddp.device().type)

    def fit(self, epochs):
        ddp.seed_ranks()
        for epoch in range(epochs):
            self.loader.sampler.set_epoch(epoch)
            for x, y in self.loader:
                self.optimizer.zero_grad()
                with torch.autocast(ddp.device().type, dtype=torch.float16):
                    loss = self.criterion(self.model(x), y)
                self.scaler.scale(loss).backward()
                self.scaler.step(self.optimizer)
                self.scaler.update()
