"""What a proof costs, as a multiple of the two plain runs that it is made of.

    python benchmarks/verify.py [ROUNDS]

The demo's script is run as it is, migrated under torchrun at two ranks, and by ``verify`` to its end; short, where starting processes is all the
time, and long, where the steps are.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from timing import ROOT, medians, process

SCRIPT = ROOT / "dpmigrate" / "data" / "demo_train.txt"
EPOCHS = (4, 200)
ROUNDS = 3
TORCHRUN = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    paths = (ROOT, ROOT / "runtime")
    with tempfile.TemporaryDirectory() as scratch:
        folder, cache = Path(scratch, "work"), Path(scratch, "cache")
        folder.mkdir()
        (folder / "train.py").write_bytes(SCRIPT.read_bytes())
        tool = [sys.executable, "-m", "dpmigrate"]
        process([*tool, "apply", "train.py", "-o", "ddp_train.py"], cache, folder=folder)()
        print(f"{'epochs':>8} {'original':>10} {'two ranks':>10} {'verify':>10} {'ratio':>8}   aim 1.5")
        for epochs in EPOCHS:
            words = ["--epochs", str(epochs)]
            took = medians(
                {
                    "original": process([sys.executable, "train.py", *words], cache, folder=folder),
                    "ranks": process([sys.executable, *TORCHRUN, "ddp_train.py", *words], cache, folder=folder, paths=paths),
                    "verify": process([*tool, "verify", "train.py", "--steps", "0", "--", *words], cache, folder=folder),
                },
                rounds,
            )
            ratio = took["verify"] / (took["original"] + took["ranks"])
            print(f"{epochs:>8} {took['original']:>9.1f}s {took['ranks']:>9.1f}s {took['verify']:>9.1f}s {ratio:>8.2f}")


if __name__ == "__main__":
    main()
