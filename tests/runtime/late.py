"""Rank 0 works on its own for longer than the timeout before it ends; or waits for the other in a collective, or never says a word again."""

from __future__ import annotations

import os
import sys
import time

import dpmigrate_runtime as ddp

ddp.setup(timeout=4)
if ddp.is_main():
    if sys.argv[1] == "works":
        time.sleep(9)
    elif sys.argv[1] == "waits":
        time.sleep(1)
        ddp.sum_all(1)
    else:
        os._exit(3)
ddp.cleanup()
print("ended")
