import torch

from . import config
from .utils import io
import dpmigrate_runtime as ddp


class BaseTrainer:
    def __init__(self, model, loaders):
        self.model = ddp.wrap(model)
        self.loaders = loaders
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.best = 0.0

    def fit(self):
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=config.LR)
        ddp.seed_ranks()
        for epoch in range(config.EPOCHS):
            self.loaders['train'].sampler.set_epoch(epoch)
            loss = self.train_epoch()
            acc = self.evaluate()
            is_best = acc > self.best
            self.best = max(acc, self.best)
            print("epoch", epoch, "loss", loss, "acc", acc)
            io.log("log.txt", f"{epoch} {acc}")
            io.save({"model": self.model.module.state_dict(), "epoch": epoch}, is_best, "ckpt.pt")


class Trainer(BaseTrainer):
    def train_epoch(self):
        self.model.train()
        total = 0.0
        for x, y in self.loaders["train"]:
            x, y = x.to(self.device), y.to(self.device)
            self.optimizer.zero_grad()
            loss = self.model.module.loss(self.model(x), y)
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        total = ddp.mean_all(total)
        return total / len(self.loaders["train"])

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        hits = 0
        for x, y in ddp.shard(self.loaders["val"]):
            x, y = x.to(self.device), y.to(self.device)
            hits += (self.model.module(x).argmax(1) == y).sum().item()
        hits = ddp.sum_all(hits)
        return hits / len(self.loaders["val"].dataset)
