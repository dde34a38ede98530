import torch
import torch.nn as nn
import torch.nn.functional as F
import dpmigrate_runtime as ddp


class TwoViews(nn.Module):
    def __init__(self, temperature=0.5):
        super().__init__()
        self.temperature = temperature

    def forward(self, a, b):
        n = a.size(0)
        z = F.normalize(torch.cat([a, b]), dim=1)
        sim = torch.mm(ddp.batch_rows(z, segments=2), ddp.batch_rows(z.t(), dim=1, segments=2)) / self.temperature
        sim = sim.masked_fill(torch.eye(ddp.batch_sum(2 * n), dtype=torch.bool), -1e9)
        pairs = torch.cat([torch.arange(ddp.batch_sum(n), ddp.batch_sum(2 * n)), torch.arange(ddp.batch_sum(n))])
        return F.cross_entropy(sim, pairs)


def by_label(z, label, temperature=0.5):
    z = F.normalize(z, dim=1)
    sim = ddp.batch_rows(z) @ ddp.batch_rows(z.T, dim=1) / temperature
    same = (ddp.batch_rows(label.unsqueeze(1)) == ddp.batch_rows(label.unsqueeze(0), dim=1)).float()
    log_p = sim - torch.logsumexp(sim, dim=1, keepdim=True)
    return -((same * log_p).sum(1) / same.sum(1)).mean()


def spread(z):
    centred = ddp.batch_rows(z) - ddp.batch_mean(z.mean(dim=0))
    cov = centred.T @ centred / (ddp.batch_sum(z.shape[0]) - 1)
    off = cov - torch.diag(torch.diag(cov))
    return torch.relu(1 - torch.sqrt(ddp.batch_rows(z).var(dim=0) + 1e-4)).mean() + off.pow(2).sum() / z.shape[1]


def agreement(p, t):
    mp, mt = p.mean(), t.mean()
    both = ((ddp.batch_rows(p) - ddp.batch_mean(mp)) * ddp.batch_rows(t - ddp.batch_mean(mt))).mean()
    return 1 - 2 * both / (ddp.batch_rows(p).var(unbiased=False) + ddp.batch_rows(t).var(unbiased=False) + ddp.batch_mean(mp - mt) ** 2)
