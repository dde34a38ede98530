import torch


def hide(x, ratio):
    samples, steps, _ = x.shape
    order = torch.argsort(x.sum(-1), dim=1)
    mask = torch.zeros(samples, steps, device=x.device)
    mask.scatter_(1, order[:, : int(steps * ratio)], 1.0)
    hidden = mask.bool() | (x[..., 0] > 3.0)
    return x.masked_fill(hidden.unsqueeze(-1), 0.0), hidden
