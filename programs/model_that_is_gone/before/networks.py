from torch import nn


class Narrow(nn.Module):
    def __init__(self, inputs):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(inputs, 6), nn.ReLU(), nn.Linear(6, 1))

    def forward(self, x):
        return self.body(x)


class Wide(Narrow):
    def __init__(self, inputs):
        super().__init__(inputs)
        self.body = nn.Sequential(nn.Linear(inputs, 24), nn.ReLU(), nn.Linear(24, 1))
