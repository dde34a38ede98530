import torch
import torch.nn as nn
from losses import Overlap, focused, over_seen, relative
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(92, 5)
y = (x[:, :3] + 0.5 * torch.randn(92, 3) > 0.4).float()
seen = (torch.rand(92, 3) > 0.4).float()


def train():
    loader = DataLoader(TensorDataset(x, y, seen), batch_size=8, shuffle=True)
    val_loader = DataLoader(TensorDataset(x[:20], y[:20], seen[:20]), batch_size=8)
    model = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 3), nn.Sigmoid())
    overlap = Overlap()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for a, b, m in loader:
            optimizer.zero_grad()
            p = model(a)
            bce = nn.functional.binary_cross_entropy(p, b)
            loss = bce + overlap(p, b) + focused(p, b) + over_seen((p - b).abs(), m)
            loss = loss + 0.1 * bce * (p - 0.5).pow(2).mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            relative(model(a), b, m).backward()
            optimizer.step()
        model.eval()
        held = 0.0
        with torch.no_grad():
            for a, b, m in val_loader:
                held += overlap(model(a), b).item() * len(a)
        model.train()
        print(epoch, held / len(val_loader.dataset))
    torch.save(model.state_dict(), "overlap.pt")


if __name__ == "__main__":
    train()
