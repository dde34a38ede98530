import torch
import torch.nn as nn
import torch.nn.functional as F
import torchvision
from torch.utils.data import DataLoader, TensorDataset
import dpmigrate_runtime as ddp


class Outline(nn.Module):
    """The steps of a classifier one by one, and a mask of its size from the last of them."""

    def __init__(self):
        super().__init__()
        self.encoder = torchvision.models.resnet18(weights=None)
        self.begin = nn.Sequential(self.encoder.conv1, self.encoder.bn1, nn.ReLU())
        self.first = self.encoder.layer1
        self.mask = nn.Conv2d(128, 1, 1)

    def forward(self, x):
        h = self.encoder.layer2(self.first(self.begin(x)))
        return F.interpolate(self.mask(h), x.shape[-2:])


def squares(n, seed):
    g = torch.Generator().manual_seed(seed)
    wanted = (torch.randn(n, 1, 4, 4, generator=g) > 0.5).float()
    wanted = wanted.repeat_interleave(4, 2).repeat_interleave(4, 3)
    return TensorDataset(wanted + 0.2 * torch.randn(n, 3, 16, 16, generator=g), wanted)


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = ddp.wrap(Outline().to(device), find_unused=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    train_set = squares(32, 1)
    loader = DataLoader(train_set, batch_size=ddp.local_batch(8), sampler=ddp.DistributedSampler(train_set, shuffle=False))
    model.train()
    ddp.seed_ranks()
    for epoch in range(2):
        loader.sampler.set_epoch(epoch)
        for x, wanted in loader:
            optimizer.zero_grad()
            loss = F.binary_cross_entropy_with_logits(model(x.to(device)), wanted.to(device))
            loss.backward()
            optimizer.step()
    ddp.save(model.module.state_dict(), "outline.pt")


if __name__ == "__main__":
    ddp.setup()
    main()
    ddp.cleanup()
