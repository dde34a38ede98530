import torch
from torch import nn, optim

from .common import Method


class Rivals(Method):
    parts = ('map', 'critic')

    def __init__(self, settings):
        super().__init__(settings)
        self.net_map = nn.Linear(3, 2).to(self.device)
        self.net_critic = nn.Sequential(nn.Linear(2, settings.width), nn.Tanh(), nn.Linear(settings.width, 1)).to(self.device)
        self.for_map = optim.SGD(self.net_map.parameters(), lr=0.05)
        self.for_critic = optim.SGD(self.net_critic.parameters(), lr=0.05)

    def take(self, batch):
        self.x, self.y = (t.to(self.device) for t in batch)

    def judged(self, pairs, wanted):
        score = self.net_critic(pairs)
        return nn.functional.binary_cross_entropy_with_logits(score, torch.full_like(score, wanted))

    def step(self):
        made = self.net_map(self.x)
        self.for_critic.zero_grad()
        (self.judged(made.detach(), 0.0) + self.judged(self.y, 1.0)).backward()
        self.for_critic.step()
        self.for_map.zero_grad()
        loss = self.judged(made, 1.0) + (made - self.y).abs().mean()
        loss.backward()
        self.for_map.step()
