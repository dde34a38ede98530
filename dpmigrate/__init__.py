"""Moves PyTorch training scripts from one GPU or nn.DataParallel to DistributedDataParallel."""

from __future__ import annotations

__version__ = "0.1.0"
