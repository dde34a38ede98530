import torch
import torch.nn as nn
import torch.nn.functional as F


class TwoViews(nn.Module):
    def __init__(self, temperature=0.5):
        super().__init__()
        self.temperature = temperature

    def forward(self, a, b):
        n = a.size(0)
        z = F.normalize(torch.cat([a, b]), dim=1)
        sim = torch.mm(z, z.t()) / self.temperature
        sim = sim.masked_fill(torch.eye(2 * n, dtype=torch.bool), -1e9)
        pairs = torch.cat([torch.arange(n, 2 * n), torch.arange(n)])
        return F.cross_entropy(sim, pairs)


def by_label(z, label, temperature=0.5):
    z = F.normalize(z, dim=1)
    sim = z @ z.T / temperature
    same = (label.unsqueeze(1) == label.unsqueeze(0)).float()
    log_p = sim - torch.logsumexp(sim, dim=1, keepdim=True)
    return -((same * log_p).sum(1) / same.sum(1)).mean()


def spread(z):
    centred = z - z.mean(dim=0)
    cov = centred.T @ centred / (z.shape[0] - 1)
    off = cov - torch.diag(torch.diag(cov))
    return torch.relu(1 - torch.sqrt(z.var(dim=0) + 1e-4)).mean() + off.pow(2).sum() / z.shape[1]


def agreement(p, t):
    mp, mt = p.mean(), t.mean()
    both = ((p - mp) * (t - mt)).mean()
    return 1 - 2 * both / (p.var(unbiased=False) + t.var(unbiased=False) + (mp - mt) ** 2)
