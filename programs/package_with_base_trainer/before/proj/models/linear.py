from torch import nn
from .base import Base


class Linear(Base):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, self.num_classes)

    def forward(self, x):
        return self.fc(x)
