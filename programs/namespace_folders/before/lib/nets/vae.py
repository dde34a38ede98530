import torch
from torch import nn


class VAE(nn.Module):
    def __init__(self, size, latent):
        super().__init__()
        self.latent = latent
        self.encoder = nn.Sequential(nn.Linear(size, 20), nn.ReLU())
        self.mu = nn.Linear(20, latent)
        self.logvar = nn.Linear(20, latent)
        self.decoder = nn.Sequential(nn.Linear(latent, 20), nn.ReLU(), nn.Linear(20, size), nn.Sigmoid())

    def encode(self, x):
        h = self.encoder(x)
        return self.mu(h), self.logvar(h)

    def reparameterize(self, mu, logvar):
        if not self.training:
            return mu
        std = torch.exp(0.5 * logvar)
        return mu + torch.randn_like(std) * std

    def decode(self, z):
        return self.decoder(z)

    def forward(self, x):
        mu, logvar = self.encode(x)
        return self.decode(self.reparameterize(mu, logvar)), mu, logvar
