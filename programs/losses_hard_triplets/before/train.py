import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(2)
x = torch.randn(96, 5)
kind = (x[:, 0] > 0).long()
rank = x.sum(dim=1)


def hardest(z, kind, margin=0.5):
    apart = torch.cdist(z, z)
    same = kind[:, None] == kind[None, :]
    farthest = apart.masked_fill(~same, 0.0).max(dim=1).values
    nearest = apart.masked_fill(same, 1e6).min(dim=1).values
    return F.relu(farthest - nearest + margin).mean()


def every(z, kind, margin=0.2):
    apart = torch.cdist(z, z)
    same = kind.unsqueeze(0) == kind.unsqueeze(1)
    alike = same & ~torch.eye(z.size(0), dtype=torch.bool)
    counts = (alike.unsqueeze(2) & ~same.unsqueeze(1)).float()
    gaps = F.relu(apart.unsqueeze(2) - apart.unsqueeze(1) + margin) * counts
    return gaps.sum() / ((gaps > 0).float().sum() + 1e-6)


def ordered(score, rank):
    gap = score.unsqueeze(1) - score.unsqueeze(0)
    wanted = torch.sign(rank.unsqueeze(1) - rank.unsqueeze(0))
    return F.softplus(-gap * wanted).mean()


def main():
    loader = DataLoader(TensorDataset(x, kind, rank), batch_size=16, shuffle=True)
    net = nn.Sequential(nn.Linear(5, 9), nn.Tanh(), nn.Linear(9, 4))
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for epoch in range(3):
        for a, y, r in loader:
            z = net(a)
            loss = hardest(z, y) + 0.3 * every(z, y) + ordered(z[:, 0], r)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch)
    torch.save(net.state_dict(), "net.pt")


if __name__ == "__main__":
    main()
