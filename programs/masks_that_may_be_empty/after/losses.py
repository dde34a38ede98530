import torch
import torch.nn as nn
import torch.nn.functional as F
import dpmigrate_runtime as ddp


class MaskedL1(nn.Module):
    def __init__(self, eps=1e-6):
        super().__init__()
        self.eps = eps

    def forward(self, out, target, mask):
        count = ddp.batch_sum(mask.sum() * 2.0)
        if count.item() == 0:
            return out.sum() * 0.0, {"l1": 0.0, "count": 0.0}
        loss = ddp.batch_sum(((out - target).abs() * mask).sum()) / (count + self.eps)
        return loss, {"l1": loss.item(), "count": count.item()}


def chosen_mse(out, target, mask):
    chosen = mask > 0
    n = ddp.batch_sum(chosen.sum())
    total = ddp.batch_sum(F.mse_loss(out[chosen], target[chosen], reduction="sum"))
    return total / n if n > 0 else total * 0


def smooth(out, target, mask):
    loss = ddp.batch_sum(F.smooth_l1_loss(out * mask, target * mask, reduction="sum"))
    if ddp.batch_sum(mask.sum()) > 0:
        loss = loss / ddp.batch_sum(mask.sum())
    return loss
