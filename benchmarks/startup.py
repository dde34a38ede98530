"""Where the time goes, as multiples of a bare Python start: run it on a quiet machine and quote ratios, not seconds.

    python benchmarks/startup.py
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RELEVANT = ROOT / "fixtures" / "single_trainer_class" / "before.py"
TREE_FILES = 1000
RELEVANT_EVERY = 20


def median(run: Callable[[], object], rounds: int) -> float:
    """Seconds of the median round, after one that is not counted."""
    run()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def process(*words: str) -> Callable[[], object]:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return lambda: subprocess.run([sys.executable, *words], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def tool(*words: str) -> Callable[[], object]:
    return process("-m", "dpmigrate", *words)


def tree(folder: Path) -> None:
    """A tree of generated files, one in twenty of which trains."""
    text = RELEVANT.read_text()
    for i in range(TREE_FILES):
        package = folder / f"package{i // 50}"
        package.mkdir(exist_ok=True)
        body = text if i % RELEVANT_EVERY == 0 else "import os\n\n\n" + "".join(f"def f{k}(x):\n    return os.path.join(str(x), '{k}')\n\n\n" for k in range(60))
        (package / f"module{i}.py").write_text(body)


def libcst_seconds(text: str) -> float:
    import libcst

    return median(lambda: libcst.parse_module(text).code, 9)


def apply_seconds(text: str) -> float:
    """The rewriting of one file inside a running process: parse, transform, code, without the facts and the self-checks."""
    from dpmigrate import rules
    from dpmigrate.facts.script import Script
    from dpmigrate.rewrite.apply import apply
    from dpmigrate.rewrite.compose import compose
    from dpmigrate.settings import Settings
    from dpmigrate.source import Source, parse

    source = parse(text.encode(), "before.py")
    assert isinstance(source, Source)
    plan = compose(rules.check(Script(source, Settings())))
    return median(lambda: apply(text, plan), 9)


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        other = Path(scratch) / "other.py"
        other.write_text("print('nothing to see')\n")
        folder = Path(scratch) / "tree"
        folder.mkdir()
        tree(folder)
        base = median(process("-c", "pass"), 15)
        rows = [
            ("--version", median(tool("--version"), 11) / base, "aim 4"),
            ("check, one filtered-out file", median(tool("check", str(other)), 11) / base, "aim 4"),
            ("check, one relevant file", median(tool("check", str(RELEVANT)), 11) / base, "aim 6"),
            (f"check, {TREE_FILES} files, 1 in {RELEVANT_EVERY} relevant", median(tool("check", str(folder)), 3) / base, ""),
            ("apply --diff, one file", median(tool("apply", "--diff", str(RELEVANT)), 5) / base, ""),
        ]
        print(f"python -c pass: {base * 1000:.1f} ms\n")
        for name, ratio, aim in rows:
            print(f"{name:45} {ratio:7.1f} x   {aim}")
        text = RELEVANT.read_text()
        ratio = apply_seconds(text) / libcst_seconds(text)
        print(f"\n{'rewriting one file / libcst parse and codegen':45} {ratio:7.1f} x   aim 3")


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    main()
