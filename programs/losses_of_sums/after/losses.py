import torch.nn as nn
import dpmigrate_runtime as ddp


class Overlap(nn.Module):
    def __init__(self, smooth=1.0):
        super().__init__()
        self.smooth = smooth

    def forward(self, p, t):
        both = (p * t).sum(dim=0)
        either = p.sum(dim=0) + t.sum(dim=0)
        score = (ddp.batch_sum(2 * both) + self.smooth) / (ddp.batch_sum(either) + self.smooth)
        return 1 - score.mean()


def focused(p, t, alpha=0.3, gamma=0.75):
    hit = (p * t).sum()
    wrong, missed = (p * (1 - t)).sum(), ((1 - p) * t).sum()
    return (1 - (ddp.batch_sum(hit) + 1) / (ddp.batch_sum(hit + alpha * wrong + (1 - alpha) * missed) + 1)) ** gamma


def over_seen(error, mask, least=1e-6):
    return ddp.batch_sum((error * mask).sum()) / ddp.batch_sum(mask.sum()).clamp_min(least)


def relative(p, t, mask):
    loss = ((p - t) ** 2 * mask).sum()
    loss /= ddp.batch_sum((t * mask).sum()) + 1
    return loss
