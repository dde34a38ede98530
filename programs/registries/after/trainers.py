import torch

from registry import TRAINERS
import dpmigrate_runtime as ddp


@TRAINERS.register("plain")
class Trainer:
    def __init__(self, model, criterion, optimizer):
        self.model = ddp.wrap(model, find_unused=True)
        self.criterion = criterion
        self.optimizer = optimizer

    def train(self, loader, epochs):
        ddp.seed_ranks()
        for epoch in range(epochs):
            loader.sampler.set_epoch(epoch)
            for x, y in loader:
                self.optimizer.zero_grad()
                loss = self.criterion(self.model(x), y)
                ddp.sum_loss(loss).backward()
                self.optimizer.step()

    def test(self, loader):
        correct = 0
        with torch.no_grad():
            for x, y in ddp.shard(loader):
                correct += (self.model.module(x).argmax(1) == y).sum().item()
            correct = ddp.sum_all(correct)
        return correct / len(loader.dataset)
