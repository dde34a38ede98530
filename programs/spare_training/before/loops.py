"""Loops for several programs: this one trains without a teacher."""

import torch
import torch.nn.functional as F


def train_vanilla(loader, model, optimizer):
    model.train()
    total = 0.0
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(y)
    return total / len(loader.dataset)


def train_distill(loader, modules, optimizer):
    student, teacher = modules[0], modules[-1]
    for x, y in loader:
        logits = student(x)
        loss = F.cross_entropy(logits, y) + F.mse_loss(logits, teacher(x).detach())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def validate(loader, model):
    model.eval()
    correct = 0
    with torch.no_grad():
        for x, y in loader:
            correct += (model(x).argmax(1) == y).sum().item()
    return correct / len(loader.dataset)
