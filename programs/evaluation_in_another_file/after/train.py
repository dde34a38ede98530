import torch
from torch import nn, optim
from torch.optim.lr_scheduler import ReduceLROnPlateau
import dpmigrate_runtime as ddp

ddp.setup()
import data
from evaluation import evaluate
from meters import AverageMeter
from net import Net
from saving import save

torch.manual_seed(11)
device = "cuda" if torch.cuda.is_available() else "cpu"
model = ddp.wrap(Net().to(device))
criterion = nn.CrossEntropyLoss()
optimizer = optim.SGD(model.parameters(), lr=0.5)
scheduler = ReduceLROnPlateau(optimizer, patience=0)
best = float("inf")
waited = 0
ddp.seed_ranks()
for epoch in range(6):
    data.train_loader.sampler.set_epoch(epoch)
    model.train()
    meter = AverageMeter()
    for x, y in data.train_loader:
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        meter.update(loss.item(), len(x))
    meter.sum, meter.count = ddp.sum_all(meter.sum, meter.count)
    meter.avg = meter.sum / meter.count
    value, acc = evaluate(model, criterion, data.test_loader, device)
    scheduler.step(ddp.mean_all(value))
    print(f"{epoch}: train {meter.avg:.4f} val {value:.4f} acc {acc:.3f}")
    if ddp.from_main(value < best):
        best, waited = value, 0
        save(model, optimizer, epoch)
    else:
        waited += 1
        if ddp.from_main(waited > 2):
            break
ddp.cleanup()
