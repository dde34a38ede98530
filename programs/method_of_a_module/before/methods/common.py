import os
from abc import ABC, abstractmethod

import torch


class Method(ABC):
    parts = ()

    def __init__(self, settings):
        self.settings = settings
        self.device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')

    @abstractmethod
    def take(self, batch):
        ...

    @abstractmethod
    def step(self):
        ...

    def store(self):
        for part in self.parts:
            net = getattr(self, 'net_' + part)
            torch.save(net.cpu().state_dict(), os.path.join(self.settings.out, part + '.pt'))
            net.to(self.device)
