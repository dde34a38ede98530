import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
import dpmigrate_runtime as ddp

ddp.setup()
torch.manual_seed(2)
x = torch.randn(96, 5)
kind = (x[:, 0] > 0).long()
rank = x.sum(dim=1)


def hardest(z, kind, margin=0.5):
    apart = torch.cdist(ddp.batch_rows(z), ddp.batch_rows(z))
    same = ddp.batch_rows(kind[:, None]) == ddp.batch_rows(kind[None, :], dim=1)
    farthest = apart.masked_fill(~same, 0.0).max(dim=1).values
    nearest = apart.masked_fill(same, 1e6).min(dim=1).values
    return F.relu(farthest - nearest + margin).mean()


def every(z, kind, margin=0.2):
    apart = torch.cdist(ddp.batch_rows(z), ddp.batch_rows(z))
    same = ddp.batch_rows(kind.unsqueeze(0), dim=1) == ddp.batch_rows(kind.unsqueeze(1))
    alike = same & ~torch.eye(ddp.batch_sum(z.size(0)), dtype=torch.bool)
    counts = (alike.unsqueeze(2) & ~same.unsqueeze(1)).float()
    gaps = F.relu(apart.unsqueeze(2) - apart.unsqueeze(1) + margin) * counts
    return gaps.sum() / ((gaps > 0).float().sum() + 1e-6)


def ordered(score, rank):
    gap = ddp.batch_rows(score.unsqueeze(1)) - ddp.batch_rows(score.unsqueeze(0), dim=1)
    wanted = torch.sign(ddp.batch_rows(rank.unsqueeze(1)) - ddp.batch_rows(rank.unsqueeze(0), dim=1))
    return F.softplus(-gap * wanted).mean()


def main():
    train_set = TensorDataset(x, kind, rank)
    loader = DataLoader(train_set, batch_size=ddp.local_batch(16), sampler=ddp.DistributedSampler(train_set, seed=2))
    net = ddp.wrap(nn.Sequential(nn.Linear(5, 9), nn.Tanh(), nn.Linear(9, 4)))
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    ddp.seed_ranks()
    for epoch in range(3):
        loader.sampler.set_epoch(epoch)
        for a, y, r in loader:
            z = net(a)
            loss = hardest(z, y) + 0.3 * every(z, y) + ordered(z[:, 0], r)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch)
    ddp.save(net.module.state_dict(), "net.pt")


if __name__ == "__main__":
    main()
    ddp.cleanup()
