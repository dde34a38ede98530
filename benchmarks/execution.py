"""What the execution on paper costs: seconds and steps for a long function, many files, and hostile shapes.

    python benchmarks/execution.py [SCRIPT ...]

With scripts, what each of them costs. Seconds are processor time of one run; compare them on one machine.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from dpmigrate import linking  # noqa: E402
from dpmigrate.execution.engine import execute  # noqa: E402
from dpmigrate.library.tables import Tables  # noqa: E402
from dpmigrate.program import Program  # noqa: E402
from dpmigrate.source import Source, parse  # noqa: E402
from tests.execution.test_robust import HOSTILE  # noqa: E402

_TURN = """\
    if flag({n}):
        a{n} = [total, {n}]
        total = total + len(a{n})
    for i in range(9):
        state['k{n}'] = (i, total)
"""


def long_function(lines: int) -> str:
    """A training function of about so many lines."""
    body = "".join(_TURN.format(n=n) for n in range(lines // 5))
    head = "import os\nimport torch\ndef flag(n):\n    return os.environ.get(str(n))\nstate = {}\n"
    return f"{head}def train():\n    total = 0\n{body}    return total\nprint(train())\n"


def measured(name: str, program: Program) -> None:
    """Print what one program costs."""
    start = time.process_time()
    done = execute(program, Tables())
    spent = time.process_time() - start
    print(f"{name:34} {spent:8.2f} s {done.steps:9} steps {len(done.trace.events):7} events {done.trace.ended or ''}")


def of(text: str) -> Program:
    """A script by itself."""
    source = parse(text.encode(), "train.py")
    assert isinstance(source, Source)
    return Program.of(source)


def files(count: int, folder: Path) -> Program:
    """A program of many files, each of which imports the one before."""
    for n in range(count):
        before = f"from m{n - 1} import f{n - 1}\n" if n else ""
        call = f"f{n - 1}(x)" if n else "x"
        text = f"{before}class C{n}:\n    def run(self, x):\n        return x\ndef f{n}(x):\n    return C{n}().run({call})\n"
        (folder / f"m{n}.py").write_text(text)
    script = folder / "train.py"
    script.write_text(f"import torch\nfrom m{count - 1} import f{count - 1}\nprint(f{count - 1}(1))\n")
    source = parse(script.read_bytes(), "train.py")
    assert isinstance(source, Source)
    return linking.link(script, source)


def main() -> None:
    """Measure, and print a line for each program."""
    for name in sys.argv[1:]:
        path = Path(name)
        source = parse(path.read_bytes(), path.name)
        if isinstance(source, Source):
            measured(str(path)[-34:], linking.link(path, source))
    if sys.argv[1:]:
        return
    for lines in (500, 1000, 2000, 4000):
        measured(f"a function of {lines} lines", of(long_function(lines)))
    with tempfile.TemporaryDirectory() as folder:
        measured("60 files", files(60, Path(folder)))
    for name, text in HOSTILE.items():
        measured(name, of(f"import torch\n{text}"))


if __name__ == "__main__":
    main()
