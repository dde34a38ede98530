"""Jobs of two ranks that do not do the same: ``apart.py FOLDER CASE...``.

All jobs are forks of one process that has imported torch: that is most of what a job costs. Writes
``<folder>/<case>/<rank>`` (what it printed to stderr) and ``<rank>.code``.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import dpmigrate_runtime as ddp
import torch
import torch._dynamo  # DDP imports it, which would take a rank seconds
import torch.distributed as dist

#: jobs that run at a time
TOGETHER = 4


def until(name: str) -> None:
    """Wait for a file, which the other rank writes."""
    while not (FOLDER / name).exists():
        time.sleep(0.05)


def step() -> None:
    optimizer.zero_grad()
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()


def other_loss() -> None:
    ddp.mean_count(1)


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
    elif CASE == "losses":
        if RANK == 0:
            ddp.mean_count(1)  # place A
        else:
            other_loss()
    elif CASE == "right losses":
        if RANK == 0:
            assert ddp.mean_count(1) == 1.5
        else:
            assert ddp.mean_count(2) == 1.5
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
    elif CASE == "main_first, long":
        with ddp.main_first():
            if RANK == 0:
                time.sleep(13)  # longer than the timeout
        assert ddp.sum_all(1) == 2
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


def start(folder: Path, cases: list[str]) -> tuple[str, Path, int]:
    """Run the jobs (``case:port``), a few at a time. Comes back in the ranks alone, each of which goes on to its end."""
    for at in range(0, len(cases), TOGETHER):
        jobs = []
        for case, port in (each.split(":") for each in cases[at : at + TOGETHER]):
            (folder / case).mkdir()
            for rank in range(2):
                if not (process := os.fork()):
                    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2"}
                    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
                    with (folder / case / str(rank)).open("w") as err:
                        os.dup2(err.fileno(), 2)
                    return case, folder / case, rank
                jobs.append((process, folder / case / f"{rank}.code"))
        for process, code in jobs:
            code.write_text(str(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])))
    sys.exit()


if __name__ == "__main__":
    torch.set_num_threads(1)
    CASE, FOLDER, RANK = start(Path(sys.argv[1]), sys.argv[2:])
    ddp.setup(timeout=10, unwatched="places" if CASE == "unwatched" else ())
    model = ddp.wrap(torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    try:
        run()
    except RuntimeError:
        (FOLDER / "over").touch()
        raise
    ddp.cleanup()
