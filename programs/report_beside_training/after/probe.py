import torch


def report(model, criterion, x, y):
    with torch.no_grad():
        out, aux = model.module(x)
        loss = criterion(aux, y)
    return loss
