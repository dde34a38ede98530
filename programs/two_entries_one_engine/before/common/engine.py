import torch
import torch.nn.functional as F


def run_epoch(net, loader, optimizer, device):
    net.train()
    total = 0.0
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        loss = F.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(loader)


@torch.no_grad()
def accuracy(net, loader, device):
    net.eval()
    hits = 0
    for x, y in loader:
        hits += (net(x.to(device)).argmax(1).cpu() == y).sum().item()
    return hits / len(loader.dataset)
