import torch

from config import cfg


def train_epoch(encoder, decoder, loader, criterion, optimizer):
    encoder.train()
    decoder.train()
    losses = []
    for x, y in loader:
        x, y = x.to(cfg.DEVICE), y.to(cfg.DEVICE)
        loss = criterion(decoder(encoder(x)), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return sum(losses) / len(losses)


def test(encoder, decoder, loader):
    encoder.eval()
    decoder.eval()
    squares, n = 0.0, 0
    with torch.no_grad():
        for x, y in loader:
            out = decoder(encoder(x.to(cfg.DEVICE))).cpu()
            squares += ((out - y) ** 2).sum().item()
            n += y.numel()
    return (squares / n) ** 0.5
