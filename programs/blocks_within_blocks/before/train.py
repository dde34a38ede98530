import argparse
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Block(nn.Module):
    def __init__(self, outer, inner, sub=None, outermost=False, innermost=False):
        super().__init__()
        self.outermost = outermost
        down = [nn.LeakyReLU(0.2), nn.Conv2d(outer, inner, 4, 2, 1)]
        if innermost:
            model = down + [nn.ReLU(), nn.ConvTranspose2d(inner, outer, 4, 2, 1)]
        else:
            model = down + [sub] + [nn.ReLU(), nn.ConvTranspose2d(inner * 2, outer, 4, 2, 1)]
        self.block = nn.Sequential(*model)

    def forward(self, x):
        if self.outermost:
            return self.block(x)
        return torch.cat([x, self.block(x)], 1)


class Generator(nn.Module):
    def __init__(self, depth):
        super().__init__()
        block = Block(8, 8, innermost=True)
        for i in range(depth - 5):
            block = Block(8, 8, sub=block)
        block = Block(4, 8, sub=block)
        self.model = Block(3, 4, sub=block, outermost=True)

    def forward(self, x):
        return self.model(x)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--depth", type=int, default=6)
    args = p.parse_args()
    torch.manual_seed(0)
    data = TensorDataset(torch.rand(24, 3, 32, 32), torch.rand(24, 3, 32, 32))
    loader = DataLoader(data, batch_size=8, shuffle=True)
    net = Generator(args.depth)
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    for epoch in range(2):
        for x, y in loader:
            loss = (net(x) - y).abs().mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
    torch.save(net.state_dict(), "net.pt")


if __name__ == "__main__":
    main()
