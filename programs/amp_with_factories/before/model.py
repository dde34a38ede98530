from torch import nn


def build(hidden=16):
    layers = [nn.Linear(6, hidden), nn.GELU(), nn.LayerNorm(hidden), nn.Linear(hidden, 2)]
    return nn.Sequential(*layers)
