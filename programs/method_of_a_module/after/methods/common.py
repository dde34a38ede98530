import os
from abc import ABC, abstractmethod

import torch
import dpmigrate_runtime as ddp


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
            ddp.save({k: v.cpu() for k, v in ddp.unwrap(net).state_dict().items()}, os.path.join(self.settings.out, part + '.pt'))
            net.to(self.device)
