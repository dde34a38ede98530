import torch
import torch.nn.functional as F
from torch.nn.utils import clip_grad_norm_


def train_epoch(model, loader, optimizer, device, accumulate):
    model.train()
    optimizer.zero_grad()
    for i, (x, y) in enumerate(loader):
        x, y = x.to(device), y.to(device)
        loss = F.cross_entropy(model(x), y) / accumulate
        loss.backward()
        if (i + 1) % accumulate == 0:
            clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()


@torch.no_grad()
def validate(model, loader, device):
    model.eval()
    loss, hits = 0.0, 0
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        out = model(x)
        loss += F.cross_entropy(out, y, reduction="sum").item()
        hits += (out.argmax(1) == y).sum().item()
    return loss / len(loader.dataset), hits
