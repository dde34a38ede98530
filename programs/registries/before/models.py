import torch
from torch import nn

from registry import MODELS


@MODELS.register("linear")
class Linear(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.fc = nn.Linear(8, classes)

    def forward(self, x):
        return self.fc(x)


@MODELS.register("two_heads")
class TwoHeads(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.body = nn.Linear(8, 16)
        self.head = nn.Linear(16, classes)
        self.other_head = nn.Linear(16, classes)

    def forward(self, x):
        return self.head(torch.relu(self.body(x)))
