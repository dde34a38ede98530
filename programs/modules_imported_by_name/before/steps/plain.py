import torch.nn.functional as F


def train_epoch(model, loader, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y, reduction="sum") * 0.1
        loss.backward()
        optimizer.step()
