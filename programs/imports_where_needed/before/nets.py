import torch.nn as nn


def build(name):
    if name == "one":
        return nn.Linear(5, 1)
    return nn.Sequential(nn.Linear(5, 24), nn.ReLU(), nn.Dropout(0.1), nn.Linear(24, 1))
