import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
import dpmigrate_runtime as ddp

ddp.setup()
torch.manual_seed(1)
clean = torch.randn(100, 6)


class OtherView(nn.Module):
    """The score of the other view of a sample among those of all other rows."""

    def __init__(self, width):
        super().__init__()
        self.head = nn.Linear(width, 5)
        self.heat = nn.Parameter(torch.zeros(()))

    def forward(self, rows, samples):
        rows = F.normalize(self.head(rows), dim=-1)
        number = torch.arange(ddp.batch_sum(samples)).repeat(2)
        related = number[None, :] == number[:, None]
        itself = torch.eye(ddp.batch_sum(2 * samples), dtype=torch.bool)
        scores = (ddp.batch_rows(rows, segments=2) @ ddp.batch_rows(rows.T, dim=1, segments=2)) * torch.exp(self.heat)
        others = scores[~itself].view(len(scores), -1)
        wanted = related[~itself].view(len(scores), -1)
        hit = others[wanted].view(len(scores), 1)
        missed = others[~wanted].view(len(scores), -1)
        target = torch.zeros(len(scores), dtype=torch.long)
        return F.cross_entropy(torch.cat([hit, missed], dim=1), target)


def main():
    views = TensorDataset(clean + 0.1 * torch.randn(100, 6), clean + 0.1 * torch.randn(100, 6))
    loader = DataLoader(views, batch_size=ddp.local_batch(16), sampler=ddp.DistributedSampler(views, seed=1))
    encoder = ddp.wrap(nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 8)))
    criterion = ddp.wrap(OtherView(8))
    optimizer = torch.optim.SGD([*encoder.parameters(), *criterion.parameters()], lr=0.05, momentum=0.9)
    ddp.seed_ranks()
    for epoch in range(3):
        loader.sampler.set_epoch(epoch)
        for one, two in loader:
            optimizer.zero_grad()
            loss = criterion(encoder(torch.cat([one, two])), one.size(0))
            loss.backward()
            optimizer.step()
        print("epoch", epoch)
    ddp.save({"encoder": encoder.module.state_dict(), "head": criterion.module.state_dict()}, "views.pt")


if __name__ == "__main__":
    main()
    ddp.cleanup()
