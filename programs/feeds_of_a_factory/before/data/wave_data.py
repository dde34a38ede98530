import torch

from data.base import Base


class WaveData(Base):
    def __init__(self, opt):
        Base.__init__(self, opt)
        generator = torch.Generator().manual_seed(1 if opt.part == "train" else 2)
        self.x = torch.rand(40 if opt.part == "train" else 13, 6, generator=generator)

    def __getitem__(self, index):
        x = self.x[index]
        return {"A": x, "B": torch.sin(3 * x)}

    def __len__(self):
        return len(self.x)
