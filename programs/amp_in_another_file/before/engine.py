from torch import nn

criterion = nn.CrossEntropyLoss()


def train_epoch(model, loader, optimizer):
    model.train()
    for x, y in loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
