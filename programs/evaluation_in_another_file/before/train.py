import torch
from torch import nn, optim
from torch.optim.lr_scheduler import ReduceLROnPlateau

import data
from evaluation import evaluate
from meters import AverageMeter
from net import Net
from saving import save

torch.manual_seed(11)
device = "cuda" if torch.cuda.is_available() else "cpu"
model = Net().to(device)
criterion = nn.CrossEntropyLoss()
optimizer = optim.SGD(model.parameters(), lr=0.5)
scheduler = ReduceLROnPlateau(optimizer, patience=0)
best = float("inf")
waited = 0
for epoch in range(6):
    model.train()
    meter = AverageMeter()
    for x, y in data.train_loader:
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        meter.update(loss.item(), len(x))
    value, acc = evaluate(model, criterion, data.test_loader, device)
    scheduler.step(value)
    print(f"{epoch}: train {meter.avg:.4f} val {value:.4f} acc {acc:.3f}")
    if value < best:
        best, waited = value, 0
        save(model, optimizer, epoch)
    else:
        waited += 1
        if waited > 2:
            break
