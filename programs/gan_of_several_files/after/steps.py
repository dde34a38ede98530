import torch
import torch.nn.functional as F
from torch import optim
import dpmigrate_runtime as ddp


class Steps:
    def __init__(self, G, D):
        self.G, self.D = G, D
        self.D = ddp.wrap(self.D)
        self.G = ddp.wrap(self.G)
        self.opt_g = optim.Adam(G.parameters(), 1e-3)
        self.opt_d = optim.Adam(D.parameters(), 1e-3)

    def discriminator(self, real):
        self.opt_d.zero_grad()
        z = torch.randn(real.size(0), self.G.module.nz)
        fake = self.G(z).detach()
        loss = F.binary_cross_entropy_with_logits(self.D(real), torch.ones(real.size(0)))
        loss = loss + F.binary_cross_entropy_with_logits(self.D(fake), torch.zeros(real.size(0)))
        loss.backward()
        self.opt_d.step()
        return loss.item()

    def generator(self, n):
        self.opt_g.zero_grad()
        out = self.D(self.G(torch.randn(n, self.G.module.nz)))
        loss = F.binary_cross_entropy_with_logits(out, torch.ones(n))
        loss.backward()
        self.opt_g.step()
        return loss.item()
