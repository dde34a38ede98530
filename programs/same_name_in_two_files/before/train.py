import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import pairs
from data import inputs, targets
from engine import train_epoch, train_pairs


def main():
    model = nn.Linear(10, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(inputs, targets), batch_size=16, shuffle=True)
    for epoch in range(2):
        train_epoch(model, optimizer)
    for epoch in range(2):
        train_pairs(model, optimizer)
    for epoch in range(2):
        for x, y in loader:
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print(len(pairs.pair_loader.dataset))
    torch.save(model.state_dict(), "model.pt")


if __name__ == "__main__":
    main()
