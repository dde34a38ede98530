"""A program that ends right after its last collectives: prints, per rank, the names of the threads that ``cleanup`` left.

Without the care that ``setup`` and ``cleanup`` take, one process of such a job now and then aborts at interpreter exit.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import dpmigrate_runtime as ddp
import torch


def main() -> None:
    torch.set_num_threads(1)
    ddp.setup(timeout=300)
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1)).double()
    model = ddp.wrap(net)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    x = torch.randn(32, 8).double()
    for _ in range(4):
        for _ in range(3):
            optimizer.zero_grad()
            loss = model(x).pow(2).mean()
            ddp.any_rank(torch.isnan(loss))
            loss.backward()
            optimizer.step()
        ddp.sum_all(loss.item(), 1)
    ddp.cleanup()
    threads = [(task / "comm").read_text().strip() for task in Path("/proc/self/task").iterdir()]
    # the other ranks' stdout is silent by design
    print(json.dumps(threads), file=sys.stderr)


if __name__ == "__main__":
    main()
