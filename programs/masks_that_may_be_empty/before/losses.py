import torch
import torch.nn as nn
import torch.nn.functional as F


class MaskedL1(nn.Module):
    def __init__(self, eps=1e-6):
        super().__init__()
        self.eps = eps

    def forward(self, out, target, mask):
        count = mask.sum() * 2.0
        if count.item() == 0:
            return out.sum() * 0.0, {"l1": 0.0, "count": 0.0}
        loss = ((out - target).abs() * mask).sum() / (count + self.eps)
        return loss, {"l1": loss.item(), "count": count.item()}


def chosen_mse(out, target, mask):
    chosen = mask > 0
    n = chosen.sum()
    total = F.mse_loss(out[chosen], target[chosen], reduction="sum")
    return total / n if n > 0 else total * 0


def smooth(out, target, mask):
    loss = F.smooth_l1_loss(out * mask, target * mask, reduction="sum")
    if mask.sum() > 0:
        loss = loss / mask.sum()
    return loss
