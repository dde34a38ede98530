import torch
import torch.nn as nn
from losses import Overlap, focused, over_seen, relative
from torch.utils.data import DataLoader, TensorDataset
import dpmigrate_runtime as ddp

ddp.setup()
torch.manual_seed(0)
x = torch.randn(92, 5)
y = (x[:, :3] + 0.5 * torch.randn(92, 3) > 0.4).float()
seen = (torch.rand(92, 3) > 0.4).float()


def train():
    train_set = TensorDataset(x, y, seen)
    loader = DataLoader(train_set, batch_size=ddp.local_batch(8), sampler=ddp.DistributedSampler(train_set, seed=0))
    val_loader = DataLoader(TensorDataset(x[:20], y[:20], seen[:20]), batch_size=8)
    model = ddp.wrap(nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 3), nn.Sigmoid()))
    overlap = Overlap()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    ddp.seed_ranks()
    for epoch in range(3):
        loader.sampler.set_epoch(epoch)
        for a, b, m in loader:
            optimizer.zero_grad()
            p = model(a)
            bce = nn.functional.binary_cross_entropy(p, b)
            loss = bce + overlap(p, b) + focused(p, b) + over_seen((p - b).abs(), m)
            loss = loss + ddp.batch_mean(0.1 * bce) * ddp.batch_mean((p - 0.5).pow(2).mean())
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            ddp.sum_loss(relative(model(a), b, m)).backward()
            optimizer.step()
        model.eval()
        held = 0.0
        with torch.no_grad():
            for a, b, m in ddp.shard(val_loader):
                held += overlap(model.module(a), b).item() * len(a)
            held = ddp.sum_all(held)
        model.train()
        print(epoch, held / len(val_loader.dataset))
    ddp.save(model.module.state_dict(), "overlap.pt")


if __name__ == "__main__":
    train()
    ddp.cleanup()
