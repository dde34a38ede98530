from torch import nn
import dpmigrate_runtime as ddp
import torch

criterion = nn.CrossEntropyLoss()


scaler = torch.amp.GradScaler(ddp.device().type)


def train_epoch(model, loader, optimizer):
    model.train()
    for x, y in loader:
        with torch.autocast(ddp.device().type, dtype=torch.float16):
            loss = criterion(model(x), y)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
