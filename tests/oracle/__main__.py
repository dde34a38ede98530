"""``python -m tests.oracle [NAME...]``: run goldens (all that can run) and print what differs, and
the figures.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import traceback
from pathlib import Path

from tests import forkserver
from tests.oracle.compare import Figures
from tests.oracle.observed import CASES, observed


def main() -> int:
    """Exit code 1 where something that is called uniform differs, or a program fails."""
    parser = argparse.ArgumentParser(prog="python -m tests.oracle", description=__doc__)
    parser.add_argument("--shard", default="1/1", metavar="I/N", help="the I-th of N parts")
    parser.add_argument("--all", action="store_true", help="every site with what was seen of it")
    parser.add_argument(
        "--unreached",
        action="store_true",
        help="the sites that ran and that the engine has not come to",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="of fixtures and programs")
    given = parser.parse_args()
    first, of = map(int, given.shard.split("/"))
    chosen = [
        c
        for i, c in enumerate(CASES)
        if i % of == first - 1 and (not given.names or c[0].name in given.names)
    ]
    figures, failed = Figures(), 0
    with (
        tempfile.TemporaryDirectory(prefix="dpm-") as place,
        forkserver.running(Path(place)) as python,
    ):
        sys.executable = str(python)
        for case, script in chosen:
            began = time.monotonic()
            with tempfile.TemporaryDirectory(prefix="oracle-") as folder:
                try:
                    sites = observed(case, script, Path(folder))
                except Exception:
                    failed += 1
                    print(f"{case.name}: failed\n{traceback.format_exc()}", flush=True)
                    continue
            figures.add(sites)
            for seen in sites:
                if seen.wrong or given.all or (given.unreached and seen.claim is None):
                    print(f"{case.name}: {seen}")
            print(f"{case.name}: {len(sites)} sites, {time.monotonic() - began:.1f} s", flush=True)
    print(f"{figures}\n{failed} failed")
    return int(failed or figures.wrong)


if __name__ == "__main__":
    sys.exit(main())
