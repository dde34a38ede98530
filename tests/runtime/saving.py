"""Writes checkpoint after checkpoint until it is killed."""

from __future__ import annotations

import itertools
import sys

import dpmigrate_runtime as ddp
import torch

for number in itertools.count():
    ddp.save({"number": number, "weights": torch.full((2_000_000,), float(number))}, sys.argv[1])
    print(number, flush=True)
