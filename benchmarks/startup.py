"""Where the time goes, as multiples of a bare Python start: run it on a quiet machine and quote ratios, not seconds.

    python benchmarks/startup.py [ROUNDS]

The commands take turns, so that a busy moment falls on all of them; each number is a median. Bytecode is cached in a scratch folder, as it is in
an installation, whatever the environment says.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RELEVANT = ROOT / "dpmigrate" / "data" / "demo_train.txt"
TREE_FILES = 1000
RELEVANT_EVERY = 20
ROUNDS = 15
FUNCTION = "def f{}(x):\n    return os.path.join(str(x), '{}')\n\n\n"
LOADED = "import libcst, dpmigrate.cli, dpmigrate.engine, dpmigrate.rules, dpmigrate.report.text, dpmigrate.rewrite.apply, dpmigrate.rewrite.verify"


def medians(runs: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Seconds of each one's median round, after one that is not counted."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for i in range(rounds + 1):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            if i:
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(t) for name, t in times.items()}


def process(cache: Path, *words: str, code: int = 0) -> Callable[[], object]:
    """A Python process; one that fails would look fast, so its exit code is checked."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    environment |= {"PYTHONPATH": str(ROOT), "PYTHONPYCACHEPREFIX": str(cache)}
    command = [sys.executable, *words]

    def run() -> None:
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        if done.returncode != code:
            raise SystemExit(f"{' '.join(words)} ended with {done.returncode}, not {code}:\n{done.stdout}{done.stderr}")

    return run


def tree(folder: Path) -> None:
    """A tree of generated files, one in twenty of which trains."""
    relevant = RELEVANT.read_text()
    other = "import os\n\n\n" + "".join(FUNCTION.format(k, k) for k in range(60))
    for i in range(TREE_FILES):
        package = folder / f"package{i // 50}"
        package.mkdir(parents=True, exist_ok=True)
        (package / f"module{i}.py").write_text(relevant if i % RELEVANT_EVERY == 0 else other)


def libcst_seconds(text: str, rounds: int) -> float:
    """Parsing one file and writing it out again: what no libcst codemod can avoid."""
    import libcst

    return medians({"libcst": lambda: libcst.parse_module(text).code}, rounds)["libcst"]


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    with tempfile.TemporaryDirectory() as scratch:
        cache, other, relevant, folder = (Path(scratch) / name for name in ("cache", "other.py", "train.py", "tree"))
        other.write_text("print('nothing to see')\n")
        relevant.write_text(RELEVANT.read_text())
        tree(folder)
        tool = ("-m", "dpmigrate")
        took = medians(
            {
                "bare": process(cache, "-c", "pass"),
                "version": process(cache, *tool, "--version"),
                "other": process(cache, *tool, "check", str(other)),
                "relevant": process(cache, *tool, "check", str(relevant), code=1),
                "loaded": process(cache, "-c", LOADED),
                "apply": process(cache, *tool, "apply", "--diff", str(relevant)),
            },
            rounds,
        )
        took |= medians({"tree": process(cache, *tool, "check", str(folder), code=1)}, max(1, rounds // 5))
    codegen = libcst_seconds(RELEVANT.read_text(), rounds)
    bare = took["bare"]
    lines = [
        ("python -c pass", 1.0, ""),
        ("--version", took["version"] / bare, "4"),
        ("check, one filtered-out file", took["other"] / bare, "4"),
        ("check, one relevant file", took["relevant"] / bare, "6"),
        (f"check, {TREE_FILES} files, 1 in {RELEVANT_EVERY} relevant", took["tree"] / bare, ""),
        ("libcst and the tool, only imported", took["loaded"] / bare, ""),
        ("apply --diff, one file", took["apply"] / bare, ""),
    ]
    print(f"{'':42} {'ms':>8} {'ratio':>8}   aim")
    for name, ratio, aim in lines:
        print(f"{name:42} {ratio * bare * 1000:8.1f} {ratio:8.1f}   {aim}".rstrip())
    print(f"\n{'libcst parse and codegen of that file':42} {codegen * 1000:8.1f} {1:8.1f}")
    own = took["apply"] - took["loaded"]
    print(f"{'apply --diff without the imports':42} {own * 1000:8.1f} {own / codegen:8.1f}   3")


if __name__ == "__main__":
    main()
