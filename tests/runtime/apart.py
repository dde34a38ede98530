"""A job of two ranks that do not do the same: ``apart.py CASE FOLDER``."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import dpmigrate_runtime as ddp
import torch
import torch.distributed as dist

CASE, FOLDER, RANK = sys.argv[1], Path(sys.argv[2]), int(os.environ["RANK"])


def until(name: str) -> None:
    """Wait for a file, which the other rank writes."""
    while not (FOLDER / name).exists():
        time.sleep(0.05)


def step() -> None:
    optimizer.zero_grad()
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()


def run() -> None:
    if CASE == "collectives":
        if RANK == 0:
            ddp.sum_all(1.0)  # place A
        else:
            ddp.any_rank(False)  # place B
    elif CASE == "lines":
        if RANK == 0:
            ddp.sum_all(1.0)  # place A
        else:
            ddp.sum_all(2.0)  # place B
    elif CASE == "right lines":
        if RANK == 0:
            ddp.barrier()
        else:
            ddp.barrier()
    elif CASE == "loop":
        for _ in range(2 + RANK):
            step()
        ddp.sum_all(1)  # place A
    elif CASE == "loop of decisions":
        for _ in range(2 + RANK):
            ddp.any_rank(False)  # place B
        ddp.mean_all(1.0)  # place A
    elif CASE == "rank 0 alone":
        if RANK == 0:
            ddp.sum_all(1)  # place A
        step()
    elif CASE == "raises":
        ddp.any_rank(False)  # place B
        if RANK == 1:
            raise ValueError("the cause of it all")  # place C
        ddp.sum_all(1)  # place A
    elif CASE == "raises, caught by cleanup":
        ddp.any_rank(False)  # place B
        if RANK == 1:
            try:
                raise ValueError("the cause of it all")
            finally:
                ddp.cleanup()
        ddp.sum_all(1)  # place A
    elif CASE == "exits":
        ddp.any_rank(False)  # place B
        if RANK == 1:
            sys.exit()
        ddp.sum_all(1)  # place A
    elif CASE == "exits from a step":
        ddp.any_rank(False)  # place B
        if RANK == 1:
            sys.exit()
        step()
    elif CASE == "killed":
        ddp.any_rank(False)
        if RANK == 1:
            os._exit(1)
        ddp.sum_all(1)  # place A
    elif CASE == "computes":
        ddp.any_rank(False)  # place B
        if RANK == 1:
            until("over")  # place C
            os._exit(1)
        ddp.sum_all(1)  # place A
    elif CASE == "main_first":
        if RANK == 0:
            step()
        with ddp.main_first():  # place A
            pass
    elif CASE == "unwatched":
        assert not [thread for thread in __import__("threading").enumerate() if "watch" in thread.name]
        if RANK == 1:
            sys.exit()
        ddp.sum_all(1)  # place A
    elif CASE == "caught":
        for _ in range(2):
            try:
                ddp.sum_all([1.0] * (1 + RANK))
            except ValueError:
                continue
        ddp.any_rank(False)
        # its own work goes on, and nobody is asked
        assert not dist.distributed_c10d._get_default_store().check(["dpmigrate/places/0/asked"])
    elif CASE == "right":
        for _ in range(3):
            step()
            ddp.any_rank(False)
        ddp.sum_all(1)
        ddp.barrier()


torch.set_num_threads(1)
# imports take one rank seconds longer now and then: the timeout is for what comes after
(FOLDER / f"ready.{RANK}").touch()
until(f"ready.{1 - RANK}")
ddp.setup(timeout=5, watch=CASE != "unwatched")
model = ddp.wrap(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
try:
    run()
except RuntimeError:
    (FOLDER / "over").touch()
    raise
ddp.cleanup()
