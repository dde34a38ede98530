import torch
from torch import nn

from registry import register


@register("mlp")
class MLP(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, hidden), nn.ReLU(), nn.Linear(hidden, 1))

    def forward(self, x):
        return self.net(x)


@register("fourier")
class Fourier(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.freq = nn.Linear(3, hidden)
        self.out = nn.Linear(hidden, 1)

    def forward(self, x):
        return self.out(torch.sin(self.freq(x)))
