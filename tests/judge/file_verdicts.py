"""What becomes of random programs that work with files: refused, migrated and right, or wrong.

``python -m tests.judge.file_verdicts --count 300`` prints what is wrong, and counts.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"  # this process forks, so it must have no threads

from dpmigrate import proving  # noqa: E402
from dpmigrate.model import Severity, Status  # noqa: E402
from dpmigrate.settings import Settings  # noqa: E402
from tests.judge import file_runs, random_files  # noqa: E402
from tests.judge.random_files import Program  # noqa: E402


@dataclass
class Verdict:
    """What became of one program: ``refused``, ``right``, ``wrong``, or ``broken`` where the program
    itself fails; in words why.
    """

    kind: str
    words: str = ""
    after: str = ""


def verdict(program: Program, folder: Path) -> Verdict:
    """What becomes of a program, tried in an empty folder."""
    before = _written(folder / "before", program.files)
    outcome, files = proving.migration(before / "train.py", Settings())
    alone = file_runs.alone(before, "train.py", program.commands)
    if alone.failure:
        return Verdict("broken", alone.failure)
    if files is None:
        said = [f"{f.code} {f.span.line}: {f.message}" for f in outcome.findings if f.severity is Severity.BLOCKER]
        return Verdict("refused", "; ".join(said) or f"{outcome.status.value}: {outcome.reason or outcome.problem}")
    assert outcome.status in (Status.CHANGED,), outcome
    texts = {p.name: d.decode() for p, d in files.items()}
    after = random_files.Program({**program.files, **texts}, program.commands)
    for i, schedule in enumerate(file_runs.SCHEDULES):
        place = _written(folder / f"after{i}", after.files)
        ended = file_runs.at_two(place, "train.py", program.commands, schedule)
        apart = [ended.failure] if ended.failure else file_runs.differences(alone.files, ended.files)
        if apart:
            return Verdict("wrong", f"{schedule}: {'; '.join(apart[:4])}", after.text)
    return Verdict("right", "", after.text)


def _written(folder: Path, files: dict[str, str]) -> Path:
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder


def verdicts(first: int, count: int) -> Iterator[tuple[int, Verdict]]:
    """The verdicts of seeds."""
    for seed in range(first, first + count):
        with tempfile.TemporaryDirectory() as folder:
            yield seed, verdict(random_files.program(seed), Path(os.path.realpath(folder)))


def main() -> int:
    """Try as many programs as are asked for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="a line for each program")
    parser.add_argument("--texts", help="a folder for the programs, migrated where they are")
    options = parser.parse_args()
    counted: Counter[str] = Counter()
    for seed, found in verdicts(options.first, options.count):
        counted[found.kind] += 1
        if options.json:
            print(json.dumps({"seed": seed, **asdict(found)}), flush=True)
        else:
            print(seed, found.kind, found.words[:600], flush=True)
        if options.texts:
            Path(options.texts).mkdir(exist_ok=True)
            text = random_files.program(seed).text
            Path(options.texts, f"{seed}.py").write_text(f"# {found.kind}: {found.words}\n{text}\n# ==== migrated\n{found.after}")
    print(dict(counted))
    return int(counted["wrong"] > 0)


if __name__ == "__main__":
    sys.exit(main())
