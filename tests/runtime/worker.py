"""One rank of a job that runs all checks and writes ``<folder>/<rank>.json``: the error of each check, or ''.

A second argument chooses the checks whose names begin with it.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from pathlib import Path

if "COVERAGE_PROCESS_START" in os.environ:
    import coverage

    coverage.process_startup()

import dpmigrate_runtime as ddp
import torch

# imported before setup, as scripts do it
import tqdm.auto  # noqa: F401

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.runtime import checks_batches, checks_completed, checks_data, checks_drift, checks_orders, checks_outside, checks_shares, checks_sums  # noqa: F401
from tests.runtime.checks import CHECKS


def run_all(begin: str) -> dict[str, str]:
    report = {}
    for name in sorted(name for name in CHECKS if name.startswith(begin)):
        try:
            CHECKS[name]()
        except Exception:
            report[name] = traceback.format_exc()
            # the other ranks may be a collective ahead: what comes after would fail for no reason of its own
            break
        report[name] = ""
    return report


def main(folder: Path, begin: str) -> None:
    torch.set_num_threads(1)
    ddp.setup(timeout=300)
    (folder / f"{ddp.rank()}.json").write_text(json.dumps(run_all(begin)))
    ddp.cleanup()
    # a second group in the same job, as scripts make one per fold
    ddp.setup(timeout=300)
    total = ddp.sum_all(1)
    ddp.cleanup()
    (folder / f"{ddp.rank()}.again").write_text(str(total))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:] or [""])
