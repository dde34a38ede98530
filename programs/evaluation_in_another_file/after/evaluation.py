import torch

from meters import AverageMeter
import dpmigrate_runtime as ddp


@torch.no_grad()
def evaluate(model, criterion, loader, device):
    model.eval()
    losses, accs = AverageMeter(), AverageMeter()
    for x, y in ddp.shard(loader):
        x, y = x.to(device), y.to(device)
        out = model.module(x)
        losses.update(criterion(out, y).item(), x.size(0))
        accs.update((out.argmax(1) == y).float().mean().item(), x.size(0))
    losses.sum, losses.count, accs.sum, accs.count = ddp.sum_all(losses.sum, losses.count, accs.sum, accs.count)
    losses.avg = losses.sum / losses.count
    accs.avg = accs.sum / accs.count
    return losses.avg, accs.avg
