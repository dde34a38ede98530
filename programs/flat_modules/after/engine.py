import torch
import torch.nn.functional as F

from utils import AverageMeter
import dpmigrate_runtime as ddp


def train_one_epoch(model, loader, optimizer, device):
    model.train()
    losses = AverageMeter()
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.update(loss.item(), x.size(0))
    losses.sum, losses.count = ddp.sum_all(losses.sum, losses.count)
    losses.avg = losses.sum / losses.count
    return losses.avg


@torch.no_grad()
def evaluate(model, loader, device):
    model.eval()
    correct = 0
    total = 0
    for x, y in ddp.shard(loader):
        x, y = x.to(device), y.to(device)
        correct += (model.module(x).argmax(1) == y).sum().item()
        total += y.size(0)
    correct, total = ddp.sum_all(correct, total)
    return correct / total
