import torch.nn as nn


class Overlap(nn.Module):
    def __init__(self, smooth=1.0):
        super().__init__()
        self.smooth = smooth

    def forward(self, p, t):
        both = (p * t).sum(dim=0)
        either = p.sum(dim=0) + t.sum(dim=0)
        score = (2 * both + self.smooth) / (either + self.smooth)
        return 1 - score.mean()


def focused(p, t, alpha=0.3, gamma=0.75):
    hit = (p * t).sum()
    wrong, missed = (p * (1 - t)).sum(), ((1 - p) * t).sum()
    return (1 - (hit + 1) / (hit + alpha * wrong + (1 - alpha) * missed + 1)) ** gamma


def over_seen(error, mask, least=1e-6):
    return (error * mask).sum() / mask.sum().clamp_min(least)


def relative(p, t, mask):
    loss = ((p - t) ** 2 * mask).sum()
    loss /= (t * mask).sum() + 1
    return loss
