"""Where the time goes, as multiples of a bare Python start: run it on a quiet machine and quote ratios, not seconds.

    python benchmarks/startup.py [ROUNDS]

Each number is a median. Bytecode is cached in a scratch folder, as it is in an installation, whatever the environment says.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from timing import ROOT, medians, process

RELEVANT = ROOT / "dpmigrate" / "data" / "demo_train.txt"
TREE_FILES = 1000
RELEVANT_EVERY = 20
ROUNDS = 15
FUNCTION = "def f{}(x):\n    return os.path.join(str(x), '{}')\n\n\n"
LOADED = "import libcst, dpmigrate.cli, dpmigrate.engine, dpmigrate.rules, dpmigrate.report.text, dpmigrate.rewrite.apply, dpmigrate.rewrite.verify"


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
        python = [sys.executable]
        tool = [*python, "-m", "dpmigrate"]
        took = medians(
            {
                "bare": process([*python, "-c", "pass"], cache),
                "version": process([*tool, "--version"], cache),
                "other": process([*tool, "check", str(other)], cache),
                "relevant": process([*tool, "check", str(relevant)], cache, code=1),
                "loaded": process([*python, "-c", LOADED], cache),
                "apply": process([*tool, "apply", "--diff", str(relevant)], cache),
            },
            rounds,
        )
        took |= medians({"tree": process([*tool, "check", str(folder)], cache, code=1)}, max(1, rounds // 5))
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
