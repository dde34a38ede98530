import torch
from torch import nn

from nets.base import BaseNet
import dpmigrate_runtime as ddp


class MapNet(BaseNet):
    def __init__(self, opt):
        BaseNet.__init__(self, opt)
        self.net = ddp.wrap(nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 6)).to(self.device))
        self.criterion = nn.L1Loss()
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=opt.lr, eps=1e-4)

    def forward(self):
        self.fake = self.net(self.a)

    def optimize(self):
        self.forward()
        self.optimizer.zero_grad()
        self.loss = self.criterion(self.fake, self.b)
        self.loss.backward()
        self.optimizer.step()

    def error(self):
        self.net.eval()
        with torch.no_grad():
            self.forward()
            total = (self.fake - self.b).abs().sum().item()
        self.net.train()
        return total
