"""Every program comes to an end on paper, without an exception, and always with the same trace."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dpmigrate import linking
from dpmigrate.execution import budget
from dpmigrate.execution.engine import execute
from dpmigrate.execution.values import Setting
from dpmigrate.library.tables import Tables
from dpmigrate.program import Program
from dpmigrate.source import Source, parse
from tests import grammar
from tests.execution import programs
from tests.execution.paper import executed, held, placed, run, uncovered

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = sorted(
    [*(ROOT / "fixtures").glob("*/before.py"), *(ROOT / "fixtures").glob("*/train.py"), *(ROOT / "programs").glob("*/*/train.py")]
)


@pytest.mark.parametrize("seed", range(50))
def test_random_programs_hold_what_they_do_on_paper(seed: int) -> None:
    text = programs.program(seed)
    ex = executed(text)
    assert ex.trace.ended is None
    for turn in range(4):
        try:
            scope = run(text, programs.settings(100 * seed + turn))
        except Exception:  # the program itself fails with these settings
            continue
        del scope["os"]
        assert not uncovered(ex, scope)


@pytest.mark.parametrize("seed", range(50))
def test_random_training_programs(seed: int, tmp_path: Path) -> None:
    files = grammar.program(seed)
    for name, data in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(data)
    for name in files:
        source = parse(files[name], name)
        if isinstance(source, Source) and name.endswith("train.py"):
            assert execute(linking.link(tmp_path / name, source), Tables()).trace.ended is None


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda p: f"{p.parent.parent.name}-{p.parent.name}")
def test_scripts_of_this_repository(path: Path) -> None:
    source = parse(path.read_bytes(), path.name)
    if isinstance(source, Source):
        assert execute(linking.link(path, source), Tables()).trace.ended is None


#: shapes that must end quickly, or by the budget
HOSTILE = {
    "nested loops": "".join(f"{'    ' * n}for i{n} in range(9):\n" for n in range(8)) + "        " * 4 + "x = [i0]\n",
    "many returns": "import os\ndef f(a):\n" + "".join(f"    if os.environ.get('{n}'):\n        return {n}\n" for n in range(400)) + "x = f(1)\n",
    "many calls on one object": "class C:\n    def __init__(self):\n        self.l = []\n    def f(self, v):\n        self.l.append(v)\n        return self\nc = C()\n" + "".join(f"c.f({n})\n" for n in range(400)),
    "calls that double": "n = 0\ndef f0():\n    global n\n    n += 1\n" + "".join(f"def f{k}():\n    f{k - 1}()\n    f{k - 1}()\n" for k in range(1, 17)) + "f16()\n",
    "recursion": "def f(n, acc):\n    if n == 0:\n        return acc\n    return f(n - 1, (n, acc)) or f(n - 2, [acc])\nx = f(40, None)\n",
    "a long literal": f"x = {list(range(5000))}\ny = {{{', '.join(f'{n}: {n}' for n in range(5000))}}}\n",
    "nested tuples": "x = ()\nfor i in range(99):\n    x = (x, x)\n",
    "tuples that double": "x = 1\n" + "x = (x, x)\n" * 60,
    "tuples that may double": "import os\nx = 1\n" + "if os.environ.get('N'):\n    x = (x, x)\n" * 60,
    "nested expressions": "x = " + "(" * 80 + "1" + ")" * 80 + " + 1" * 300 + "\n",
    "a deep chain of calls": "def f0():\n    return 1\n" + "".join(f"def f{k}():\n    return f{k - 1}()\n" for k in range(1, 90)) + "x = f89()\n",
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_shapes_end_within_a_bound_of_steps(name: str) -> None:
    ex = executed(HOSTILE[name])
    assert ex.steps < 60_000


def test_calls_that_are_nested_too_deeply_are_told() -> None:
    ex = executed(HOSTILE["a deep chain of calls"])
    assert any("nested too deeply" in word for word, _ in ex.trace.missed)


def test_a_program_beyond_the_budget_ends_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "STEPS", 50)
    assert "budget" in (executed("for i in range(9):\n    x = i + 1\n" * 20).trace.ended or "")


@pytest.mark.parametrize("steps", range(5, 120, 9))
def test_the_budget_may_end_anywhere(steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "STEPS", steps)
    text = "from contextlib import contextmanager\n@contextmanager\ndef man():\n    yield 1\ndef gen():\n    for i in range(9):\n        yield i\nclass C:\n    def f(self):\n        with man():\n            for v in gen():\n                try:\n                    l = [w for w in range(v) if w and v]\n                finally:\n                    pass\nC().f()\nC().f()\n"
    ended = executed(text).trace.ended
    assert ended is None or ended.startswith("the program takes more steps than the budget has")


_TRACE = """
import sys
from pathlib import Path
from dpmigrate.execution.engine import execute
from dpmigrate.execution.values import Setting
from dpmigrate.library.tables import Tables
from dpmigrate.program import Program
from dpmigrate.source import parse
for path in sys.argv[1:]:
    ex = execute(Program.of(parse(Path(path).read_bytes(), "train.py")), Tables())
    def word(a):
        return f"{type(a).__name__} {getattr(a, 'placement', '')} {getattr(a, 'object', '')} {getattr(a, 'value', '')}"
    for e in ex.trace.events.values():
        print(e.kind, getattr(e.node, "lineno", 0), e.context, e.parted is None, [(k, [word(a) for a in v]) for k, v in e.values.items()])
    for (w, n) in ex.trace.missed:
        print(w, getattr(n, "lineno", 0))
"""


def test_the_trace_hangs_on_no_hash_seed() -> None:
    paths = [str(p) for p in SCRIPTS[::12]]
    outs = []
    for seed in ("1", "2", "3"):
        done = subprocess.run([sys.executable, "-c", _TRACE, *paths], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True)
        outs.append(done.stdout)
    assert outs[0] and outs[0] == outs[1] == outs[2]


def test_all_kinds_of_expressions_and_statements_are_executed() -> None:
    """What Python can write has a method, or is what a method of another kind takes apart."""
    from dpmigrate.execution.expressions import _EVALUATE
    from dpmigrate.execution.statements import _EXECUTE

    inner = {ast.FormattedValue}
    assert set(ast.expr.__subclasses__()) - set(_EVALUATE) - inner == set()
    plain = {ast.Global, ast.Nonlocal, ast.Pass}
    assert set(ast.stmt.__subclasses__()) - set(_EXECUTE) - plain == set()


def test_an_empty_program() -> None:
    source = parse(b"import torch\n", "train.py")
    assert isinstance(source, Source)
    assert not execute(Program.of(source), Tables()).trace.events


def test_nan_that_a_loop_gives_anew() -> None:
    text = """
    import sys
    n, total = len(sys.argv), 0.0
    for i in range(n):
        share = 1 / (i - 3) if i > 3 else float("nan")
        worst = max(share, float("nan"))
        total += share
    """
    ex = executed(text)
    assert ex.trace.ended is None
    assert placed(ex, "total") == placed(ex, "worst") == "uniform"


@pytest.mark.parametrize("function", ["mean_all", "sum_all", "gather_all", "from_main"])
def test_a_list_that_each_turn_makes_of_the_one_before(function: str) -> None:
    text = f"""
    import sys
    import dpmigrate_runtime as ddp
    from torch.utils.data import DataLoader, TensorDataset
    ddp.setup()
    data = TensorDataset(torch.randn(8, 2))
    loader = DataLoader(data, batch_size=ddp.local_batch(4), sampler=ddp.DistributedSampler(data))
    losses = []
    for epoch in range(len(sys.argv)):
        for (x,) in loader:
            losses.append(x.mean().item())
        losses = ddp.{function}(losses)
        out = losses[0]
    """
    ex = executed(text)
    assert ex.trace.ended is None
    assert placed(ex, "out") == ("uniform" if function != "sum_all" else "unknown")


@pytest.mark.parametrize(
    ("function", "kept", "first", "expected"),
    [
        ("mean_all", "[1]", "kept[0]", "unknown"),
        ("mean_all", "[[1]]", "kept[0][0]", "unknown"),
        ("mean_all", "{'a': 1}", "kept['a']", "unknown"),
        ("from_main", "[1]", "kept[0]", "uniform"),
        ("from_main", "{'a': 1}", "kept['a']", "uniform"),
    ],
)
@pytest.mark.parametrize("test", ["True", "len(sys.argv) > 3"])
def test_what_a_turn_may_have_made_of_a_container_keeps_what_is_written_into_it(
    function: str, kept: str, first: str, expected: str, test: str
) -> None:
    text = f"""
    import sys
    import torch.distributed as dist
    import dpmigrate_runtime as ddp
    ddp.setup()
    kept, found = {kept}, None
    for epoch in range(len(sys.argv)):
        if {test}:
            kept = ddp.{function}(kept)
            found, count = {first}, len(kept)
            {first} = dist.get_rank()
    """
    ex = executed(text)
    assert ex.trace.ended is None
    assert placed(ex, "found") == expected
    assert placed(ex, "count") == "uniform"


def test_of_containers_that_are_made_of_each_other_none_is_always_longer() -> None:
    text = """
    import sys
    import dpmigrate_runtime as ddp
    ddp.setup()
    kept = {'a': 1}
    for epoch in range(len(sys.argv)):
        if len(sys.argv) > 3:
            kept = ddp.from_main(kept)
            found = 'b' in kept
            kept['b'] = 1
    """
    assert any(isinstance(a, Setting) for a in held(executed(text), "found"))


def test_what_a_turn_leaves_as_it_was_stays_what_it_is() -> None:
    text = """
    import sys
    import torch.distributed as dist
    mode, rank, best, grown = sys.argv[1], dist.get_rank(), None, ()
    for step in range(len(sys.argv)):
        score = torch.tensor(rank).item() if mode == "a" else float("inf") if mode == "b" else 0.0
        if best is None:
            best = score
        elif torch.tensor([rank] * 3).max() < best:
            best = torch.tensor([rank] * 3).max() if mode == "c" else score
        grown = (grown, rank)
    """
    ex = executed(text)
    assert placed(ex, "best") == "per rank"
    assert placed(ex, "score") == "per rank"
    assert placed(ex, "grown") != "uniform"
