from dataclasses import dataclass
from pathlib import Path


@dataclass
class Config:
    epochs: int = 3
    batch_size: int = 16
    lr: float = 0.05
    seed: int = 7
    out: str = "runs"
    resume: bool = False

    @property
    def checkpoint(self) -> Path:
        return Path(self.out) / "last.pt"
