import torch

from .evaluate import accuracy


def train(loader, model, criterion, optimizer, epoch):
    model.train()
    for i, (x, y) in enumerate(loader):
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if i % 2 == 0:
            print(f"epoch {epoch} batch {i}")


def validate(loader, model):
    model.eval()
    hits, n = 0, 0
    with torch.no_grad():
        for x, y in loader:
            h, k = accuracy(model(x), y)
            hits += h
            n += k
    return hits / n
