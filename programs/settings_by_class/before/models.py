from torch import nn

from config import cfg


def make_encoder():
    return nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, cfg.LATENT))


def make_decoder():
    return nn.Sequential(nn.Linear(cfg.LATENT, 16), nn.ReLU(), nn.Linear(16, 12))
