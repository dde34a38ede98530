import logging

import torch.nn as nn


class BaseModel(nn.Module):
    def __init__(self):
        super(BaseModel, self).__init__()
        self.logger = logging.getLogger(self.__class__.__name__)

    def forward(self, *inputs):
        raise NotImplementedError

    def summary(self):
        params = sum(p.numel() for p in self.parameters() if p.requires_grad)
        print("Trainable parameters: {}".format(params))
