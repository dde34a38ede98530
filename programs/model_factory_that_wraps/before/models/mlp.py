import torch.nn as nn

__all__ = ["MLP"]


class MLP(nn.Sequential):
    def __init__(self, inp, num_classes, hidden=32):
        super().__init__(nn.Flatten(), nn.Linear(inp, hidden), nn.ReLU(), nn.Linear(hidden, num_classes))
