import torch

from meters import AverageMeter


@torch.no_grad()
def evaluate(model, criterion, loader, device):
    model.eval()
    losses, accs = AverageMeter(), AverageMeter()
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        out = model(x)
        losses.update(criterion(out, y).item(), x.size(0))
        accs.update((out.argmax(1) == y).float().mean().item(), x.size(0))
    return losses.avg, accs.avg
