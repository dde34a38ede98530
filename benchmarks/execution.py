"""What the execution on paper costs: seconds and steps for a long function, many files, and hostile shapes.

    python benchmarks/execution.py [SCRIPT ...]

With scripts, what each of them costs as the judge executes it, the median and the slowest. Seconds are processor time
of one run; compare them on one machine. Steps do not depend on the machine: what is executed once more counts again.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from dpmigrate import linking  # noqa: E402
from dpmigrate.judge.trial import executed  # noqa: E402
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


def long_chain(lines: int) -> str:
    """A test of about so many lines: which of many names was given."""
    arms = "".join(f"elif name == 'n{n}':\n    x, y = torch.zeros({n}), {n}\n" for n in range(lines // 2))
    return f"import os\nimport torch\nname = os.environ['NAME']\nif name == 'none':\n    x, y = None, 0\n{arms}print(x, y)\n"


def measured(name: str, program: Program) -> float:
    """Print what one program costs, in seconds; the result is the same."""
    start = time.process_time()
    done = executed(program)
    spent = time.process_time() - start
    print(f"{name:34} {spent:8.2f} s {done.steps:9} steps {len(done.trace.events):7} events {done.trace.ended or ''}")
    return spent


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
    spent = []
    for name in sys.argv[1:]:
        path = Path(name)
        source = parse(path.read_bytes(), path.name)
        if isinstance(source, Source):
            spent.append(measured(str(path)[-34:], linking.link(path, source)))
    if spent:
        print(f"{len(spent)} scripts: median {statistics.median(spent):.2f} s, slowest {max(spent):.2f} s, all {sum(spent):.1f} s")
    if sys.argv[1:]:
        return
    for lines in (500, 1000, 2000, 4000):
        measured(f"a function of {lines} lines", of(long_function(lines)))
    for lines in (500, 1000, 2000, 4000):
        measured(f"a chain of tests of {lines} lines", of(long_chain(lines)))
    with tempfile.TemporaryDirectory() as folder:
        measured("60 files", files(60, Path(folder)))
    for name, text in HOSTILE.items():
        measured(name, of(f"import torch\n{text}"))


if __name__ == "__main__":
    main()
