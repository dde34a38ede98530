import torch

from data.base import Base


class RampData(Base):
    def __getitem__(self, index):
        x = torch.linspace(0, 1 + index / len(self), 6)
        return {"A": x, "B": x * x}

    def __len__(self):
        return 24
