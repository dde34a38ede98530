import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from model import Net
from probe import report


def main():
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(64, 10), torch.randint(0, 2, (64,)))
    loader = DataLoader(data, batch_size=8, shuffle=True)
    model = Net()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(5):
        for x, y in loader:
            out, aux = model(x)
            loss = criterion(out, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        report(model, criterion, x, y)
    torch.save(model.state_dict(), "model.pt")


if __name__ == "__main__":
    main()
