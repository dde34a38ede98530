import torch
import torch.nn as nn
from losses import TwoViews, agreement, by_label, spread
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(92, 5)
moved = x + 0.1 * torch.randn(92, 5)
label = (x.sum(1) * 2).long() % 3
score = x[:, 0] + 0.3 * torch.randn(92)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(5, 8), nn.Tanh())
        self.head = nn.Linear(8, 4)

    def forward(self, x):
        return self.head(self.body(x))


def train():
    loader = DataLoader(TensorDataset(x, moved, label, score), batch_size=8, shuffle=True)
    model = Net()
    views = TwoViews()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for a, b, y, s in loader:
            optimizer.zero_grad()
            z = model(torch.cat([a, b]))
            first, second = z.chunk(2)
            loss = views(first, second) + by_label(first, y) + 0.1 * spread(first) + agreement(second[:, 0], s)
            loss.backward()
            optimizer.step()
        print(epoch)
    torch.save(model.state_dict(), "pairs.pt")


if __name__ == "__main__":
    train()
