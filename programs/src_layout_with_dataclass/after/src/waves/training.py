import torch
from torch import nn

from .data import get_loaders
from .model import WaveNet
import dpmigrate_runtime as ddp


def train_epoch(model, loader, criterion, optimizer, device):
    model.train()
    running = 0.0
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.item() * x.size(0)
    running = ddp.sum_all(running)
    return running / len(loader.dataset)


@torch.no_grad()
def validate(model, loader, criterion, device):
    model.eval()
    running = 0.0
    for x, y in ddp.shard(loader):
        x, y = x.to(device), y.to(device)
        running += criterion(model.module(x), y).item() * x.size(0)
    running = ddp.sum_all(running)
    return running / len(loader.dataset)


def fit(config):
    torch.manual_seed(config.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    config.checkpoint.parent.mkdir(parents=True, exist_ok=True)

    train_loader, val_loader = get_loaders(config)
    model = WaveNet().to(device)
    criterion = nn.MSELoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=config.lr, momentum=0.9)

    start, best = 0, float("inf")
    if config.resume and config.checkpoint.exists():
        state = torch.load(config.checkpoint, map_location=ddp.device())
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        start, best = state["epoch"], state["best"]
    model = ddp.wrap(model)

    ddp.seed_ranks()
    for epoch in range(start, config.epochs):
        train_loader.sampler.set_epoch(epoch)
        train_loss = train_epoch(model, train_loader, criterion, optimizer, device)
        val_loss = validate(model, val_loader, criterion, device)
        print("epoch {}: train {:.5f} val {:.5f}".format(epoch, train_loss, val_loss))
        best = min(best, val_loss)
        ddp.save({"model": model.module.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch + 1, "best": best}, config.checkpoint)
    return best
