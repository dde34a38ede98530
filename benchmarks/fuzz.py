"""Programs made at random, each checked and migrated: nothing may raise, call itself an error of the tool, or leave a file half changed.

    python benchmarks/fuzz.py --count 20000 -j 16 [--seed 0] [--shard 0/1] [--out failures.jsonl] [--programs FOLDER] [--limit SECONDS]

A failure is a line of JSON with its seed, what does not hold, and the program cut down to what is needed. The exit code is 1 if there is one.
The same seeds make the same programs everywhere; ``--shard i/n`` takes every n-th of them. A program that takes longer than the limit is a failure.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from types import FrameType
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.grammar import program
from tests.properties import broken, smaller

LIMIT = 120


class _TooLong(BaseException):
    """Past everything that catches an Exception."""


def _stop(number: int, frame: FrameType | None) -> None:
    raise _TooLong


def one(seed: int, limit: int, cut: bool) -> dict[str, Any]:
    """What is found in the program of a seed, with its seconds."""
    files = program(seed)
    if hasattr(signal, "SIGALRM"):
        signal.signal(signal.SIGALRM, _stop)
    began = time.perf_counter()
    try:
        _alarm(limit)
        told = broken(files, seed)
    except _TooLong:
        told, cut = f"takes longer than {limit} s", False
    finally:
        _alarm(0)
    seconds = time.perf_counter() - began
    if told and cut:
        try:
            _alarm(10 * limit)
            files = smaller(files, seed, told)
        except _TooLong:
            told += " (not cut down: that took too long)"
        finally:
            _alarm(0)
    return {"seed": seed, "told": told, "seconds": round(seconds, 3), "files": {name: data.decode("latin-1") for name, data in files.items()} if told else {}}


def _alarm(seconds: int) -> None:
    if hasattr(signal, "SIGALRM"):
        signal.alarm(seconds)


def _results(seeds: list[int], jobs: int, limit: int, cut: bool) -> Iterator[dict[str, Any]]:
    if jobs == 1:
        yield from (one(seed, limit, cut) for seed in seeds)
        return
    with ProcessPoolExecutor(jobs) as pool:
        for done in as_completed([pool.submit(one, seed, limit, cut) for seed in seeds]):
            yield done.result()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="the first one")
    parser.add_argument("--shard", default="0/1", metavar="I/N")
    parser.add_argument("-j", "--jobs", type=int, default=1)
    parser.add_argument("--limit", type=int, default=LIMIT, help="seconds for one program")
    parser.add_argument("--out", type=Path, help="failures, a line of JSON each")
    parser.add_argument("--programs", type=Path, help="write the programs here instead of trying them")
    parser.add_argument("--whole", action="store_true", help="do not cut failing programs down")
    options = parser.parse_args()
    part, parts = map(int, options.shard.split("/"))
    seeds = list(range(options.seed + part, options.seed + options.count, parts))
    if options.programs is not None:
        for seed in seeds:
            for name, data in program(seed).items():
                path = options.programs / str(seed) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
        return 0
    began, failures, slowest = time.perf_counter(), 0, (0.0, -1)
    out = options.out.open("w", encoding="ascii") if options.out else None
    for i, found in enumerate(_results(seeds, options.jobs, options.limit, not options.whole), 1):
        slowest = max(slowest, (found["seconds"], found["seed"]))
        if found["told"]:
            failures += 1
            print(f"seed {found['seed']}: {found['told']}", flush=True)
            if out is not None:
                print(json.dumps(found), file=out, flush=True)
        if i % 1000 == 0:
            print(f"{i} of {len(seeds)}, {failures} failures, {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
    print(f"{len(seeds)} programs, {failures} failures, {time.perf_counter() - began:.0f} s; the slowest: {slowest[0]:.1f} s (seed {slowest[1]})")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
