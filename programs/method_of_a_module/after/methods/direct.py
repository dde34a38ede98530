from torch import nn, optim

from .common import Method
import dpmigrate_runtime as ddp


class Direct(Method):
    parts = ('map',)

    def __init__(self, settings):
        super().__init__(settings)
        self.net_map = ddp.wrap(nn.Sequential(nn.Linear(3, settings.width), nn.Tanh(), nn.Linear(settings.width, 2)).to(self.device))
        self.measure = nn.SmoothL1Loss()
        self.optimizer = optim.Adam(self.net_map.parameters(), lr=0.01)

    def take(self, batch):
        self.x, self.y = (t.to(self.device) for t in batch)

    def step(self):
        self.optimizer.zero_grad()
        loss = self.measure(self.net_map(self.x), self.y)
        loss.backward()
        self.optimizer.step()
