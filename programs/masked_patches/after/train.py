import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

from hiding import hide
import dpmigrate_runtime as ddp

ddp.setup()
torch.manual_seed(0)
SERIES = torch.cumsum(torch.randn(40, 12, 3), dim=1)


class Encoder(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.inner = nn.Linear(3, size)
        self.mix = nn.Conv1d(size, size, 3, padding=1)

    def forward(self, x):
        h = torch.relu(self.inner(x))
        return h + self.mix(h.transpose(1, 2)).transpose(1, 2)


def main():
    train_set = TensorDataset(SERIES)
    loader = DataLoader(train_set, batch_size=ddp.local_batch(8), sampler=ddp.DistributedSampler(train_set, seed=0))
    encoder, head = Encoder(16), nn.Linear(16, 3)
    encoder = ddp.wrap(encoder)
    head = ddp.wrap(head)
    optimizer = torch.optim.Adam([*encoder.parameters(), *head.parameters()], lr=0.01)
    ddp.seed_ranks()
    for epoch in range(3):
        loader.sampler.set_epoch(epoch)
        total, steps = 0.0, 0
        for (x,) in loader:
            seen, hidden = hide(x, 0.4)
            filled = head(encoder(seen))
            chosen = hidden.unsqueeze(-1).expand_as(filled)
            loss = ddp.weighted_mean(F.mse_loss(filled[chosen], x[chosen]), x[chosen].numel())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
            steps += 1
        total = ddp.mean_all(total)
        print(f"epoch {epoch}: {total / steps:.5f}")
    ddp.save(encoder.module.state_dict(), "encoder.pt")


if __name__ == "__main__":
    main()
    ddp.cleanup()
