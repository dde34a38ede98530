import torch

from .evaluate import accuracy
import dpmigrate_runtime as ddp


def train(loader, model, criterion, optimizer, epoch):
    model.train()
    for i, (x, y) in enumerate(loader):
        loss = criterion(model(x.to(ddp.device())), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if i % 2 == 0:
            print(f"epoch {epoch} batch {i}")


def validate(loader, model):
    model.eval()
    hits, n = 0, 0
    with torch.no_grad():
        for x, y in ddp.shard(loader):
            h, k = accuracy(model.module(x.to(ddp.device())), y)
            hits += h
            n += k
        hits, n = ddp.sum_all(hits, n)
    return hits / n
