"""One rank fails in the middle of the work, while the other waits for it in a collective."""

from __future__ import annotations

import sys

import dpmigrate_runtime as ddp
import torch

torch.set_num_threads(1)
ddp.setup(timeout=3600)  # far beyond the limit of the test: nobody may wait for it
try:
    if ddp.rank() == 1:
        raise ValueError("the cause of it all")
    ddp.sum_all(1)
finally:
    # written by hand in some scripts; must not wait for the dead
    if "finally" in sys.argv:
        ddp.cleanup()
ddp.cleanup()
