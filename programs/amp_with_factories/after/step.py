import torch
import torch.nn.functional as F
from torch.nn.utils import clip_grad_norm_
import dpmigrate_runtime as ddp


scaler = torch.amp.GradScaler(ddp.device().type)


def train_epoch(model, loader, optimizer, device, accumulate):
    model.train()
    optimizer.zero_grad()
    for i, (x, y) in enumerate(loader):
        x, y = x.to(device), y.to(device)
        with ddp.accumulate(model, sync=(i + 1) % accumulate == 0):
            with torch.autocast(ddp.device().type, dtype=torch.float16):
                loss = F.cross_entropy(model(x), y) / accumulate
            scaler.scale(loss).backward()
        if (i + 1) % accumulate == 0:
            scaler.unscale_(optimizer)
            clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()


@torch.no_grad()
def validate(model, loader, device):
    model.eval()
    loss, hits = 0.0, 0
    for x, y in ddp.shard(loader):
        x, y = x.to(device), y.to(device)
        out = model.module(x)
        loss += F.cross_entropy(out, y, reduction="sum").item()
        hits += (out.argmax(1) == y).sum().item()
    loss, hits = ddp.sum_all(loss, hits)
    return loss / len(loader.dataset), hits
