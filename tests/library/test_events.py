"""Events lie at the line at which a run has them; tests/trace holds the same against real runs."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from dpmigrate.execution.values import Const, const
from tests.execution.paper import constant, executed, executed_files, held, lines

LOADER = """\
import itertools, threading, sys, os
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset
loader = DataLoader(TensorDataset(torch.ones(8, 3)), 2)
model = nn.Linear(3, 1)
"""
#: lines before what a test writes
BEFORE = LOADER.count("\n")


def found(text: str, kind: str) -> list[int]:
    """The lines of a piece of a program that have an event of a kind."""
    return [n - BEFORE for n in lines(executed(LOADER + dedent(text)), kind)]


@pytest.mark.parametrize(
    ("text", "begins", "takes"),
    [
        ("for x in loader:\n    pass", [1], [1]),
        ("pairs = enumerate(loader)\nfor i, x in pairs:\n    pass", [1], [2]),
        ("both = zip(loader, range(9))\nfor x, i in both:\n    pass", [1], [2]),
        ("it = iter(loader)\nx = next(it)\ny = next(it)", [1], [2, 3]),
        ("it = loader.__iter__()\nx = it.__next__()", [1], [2]),
        ("both = itertools.chain([1], loader)\nfor x in both:\n    pass", [2], [2]),
        ("moved = map(len, loader)\nfor x in moved:\n    pass", [1], [2]),
        ("some = filter(None, loader)\nfor x in some:\n    pass", [1], [2]),
        ("first, *rest = loader", [1], [1]),
        ("print(*loader)", [1], [1]),
        ("def f():\n    yield from loader\nfor x in f():\n    pass", [2], [2]),
        ("n = max(loader, key=len)", [1], [1]),
        ("n = len(loader)\nwith open('a') as f:\n    pass", [], []),
        ("again = itertools.repeat(loader, 2)", [], []),
        ("for one in itertools.repeat(loader):\n    for x in one:\n        pass", [2], [2]),
        ("for x in itertools.chain.from_iterable(itertools.repeat(loader)):\n    pass", [1], [1]),
        ("for x in map(len, [[1], [2]]):\n    pass", [], []),
    ],
)
def test_a_pass_begins_where_python_asks_for_an_iterator(
    text: str, begins: list[int], takes: list[int]
) -> None:
    assert found(text, "pass") == begins
    assert found(text, "batch") == takes


@pytest.mark.parametrize(
    ("text", "kind", "at"),
    [
        ("t = threading.Thread(target=print)\nt.start()", "process", [2]),
        ("t = threading.Thread(target=print)", "process", []),
        ("t = threading.Thread(target=print)\nt.start()", "print", [2]),
        ("t = threading.Thread(target=print)", "print", []),
        ("class T(threading.Thread):\n    def run(self):\n        print()\nT().start()", "print", [3]),
        ("import logging\nlogging.basicConfig(level=1)", "open", []),
        ("import logging\nlogging.basicConfig(filename='a')", "open", [2]),
        ("import pathlib\n(pathlib.Path('a') / 'b').open('w')", "open", [2]),
        ("nn.init.zeros_(model.weight)", "draw", []),
        ("nn.init.normal_(model.weight)", "draw", [1]),
        ("torch.zeros(3).fill_(1)", "draw", []),
        ("torch.zeros(3).normal_()", "draw", [1]),
        ("sys.stdout.flush()", "print", []),
        ("out = sys.stdout\nout.write('x')", "print", [2]),
    ],
)
def test_what_the_standard_library_does(text: str, kind: str, at: list[int]) -> None:
    assert found(text, kind) == at


def test_print_writes_to_what_the_program_has_put_in_the_place_of_stdout() -> None:
    own = dedent("""\
    class Both:
        def write(self, text):
            open('log', 'a')
    print('to the screen')
    """)
    assert found(own, "open") == []
    assert found(own + "sys.stdout = Both()\nprint('x')", "open") == [3]
    assert found(own + "print('x', file=Both())", "open") == [3]


def test_an_optimizer_of_the_program_steps_where_its_method_is_called() -> None:
    own = dedent("""\
    class Mine(torch.optim.Optimizer):
        def __init__(self, parameters):
            super().__init__(parameters, {})
        def step(self):
            for p in self.param_groups[0]['params']:
                print(p)
    mine = Mine(model.parameters())
    """)
    assert found(own, "step") == []
    assert found(own + "mine.step()", "step") == [8]
    assert found(own + "mine.step()", "print") == [6]
    assert found(own + "torch.amp.GradScaler('cpu').step(mine)", "step") == [8]


@pytest.mark.parametrize(
    "text",
    [
        "o = getattr(torch.optim, name)(model.parameters())",
        "from torch import optim\no = getattr(optim, name)(model.parameters(), lr=0.1)",
    ],
)
def test_any_class_of_torch_optim_is_an_optimizer(text: str) -> None:
    assert found(f"import json\nname = json.loads(input())\n{text}\no.step()", "step") != []


def test_a_module_by_its_name_in_sys_modules_and_by_globals() -> None:
    known = "VALUE = 3\nhere = {}\n"
    for way in ("sys.modules[__name__].VALUE", "globals()['VALUE']"):
        text = f"import sys\nVALUE = 3\nheld = {way}"
        assert constant(executed(text), "held") == 3
    with pytest.raises(LookupError):
        constant(executed(f"import sys\n{known}held = sys.modules['other'].VALUE"), "held")


@pytest.mark.parametrize("word", ['"models." + name', 'f"models.{name}"', '"models.%s" % name'])
def test_a_computed_import_brings_each_module_that_it_may_mean(word: str, tmp_path: Path) -> None:
    script = f"import importlib, json\nname = json.loads(input())\nimportlib.import_module({word}).build()"
    made = {"models/__init__.py": "", "models/a.py": "def build():\n    print('a')"}
    other = {"models/b.py": "def build():\n    print('b')", "train.py": f"import torch\n{script}"}
    ex = executed_files({**made, **other}, tmp_path)
    assert len(lines(ex, "print")) == 2


def test_a_flag_of_one_rank_may_be_either_for_all_of_them() -> None:
    body = """\
    import dpmigrate_runtime as ddp
    stop, kept = False, False
    for x in loader:
        if float(x[0].mean()) > 0.5:
            stop = True
    if ddp.any_rank(stop):
        print('stopped')
    if ddp.any_rank(kept):
        print('never')
    """
    assert found(body, "print") == [7]


def test_the_average_of_a_model_is_called_and_so_is_the_model_in_it() -> None:
    text = dedent("""\
    from torch.optim.swa_utils import AveragedModel, update_bn
    average = AveragedModel(model)
    average.update_parameters(model)
    """)
    assert found(text, "forward") == []
    assert set(found(text + "average(torch.ones(1, 3))", "forward")) == {4}
    for kind in ("pass", "batch", "forward"):
        assert set(found(text + "update_bn(loader, average)", kind)) == {4}
    assert found(text + "update_bn(loader, average)", "backward") == []


def test_streams_made_alike_are_a_meeting() -> None:
    for word in ("same_stream", "own_streams", "main_first"):
        text = f"import dpmigrate_runtime as ddp\nwith ddp.{word}():\n    pass"
        assert found(text, "collective") == [2]
    text = "import dpmigrate_runtime as ddp\nwith ddp.accumulate(model, sync=True):\n    pass"
    assert found(text, "collective") == []



@pytest.mark.parametrize(
    "text",
    [
        "np.save('a.npy', x)",
        "np.savez('a.npy', first=x)",
        "x.numpy().tofile('a.npy')",
        "torch.save(x, 'a.npy')",
    ],
)
def test_a_file_is_told_from_what_is_written_into_it(text: str) -> None:
    ex = executed(f"import numpy as np\nx = torch.ones(3)\n{text}\n")
    (event,) = ex.trace.of("save")
    assert event.values["path"] == const("a.npy")
    assert not any(isinstance(a, Const) for a in event.values["what"])


def test_a_shuffled_list_has_its_items_in_no_known_place() -> None:
    ex = executed("import random\nxs = [1, 2]\nrandom.shuffle(xs)\nfirst = xs[0]\n")
    assert {a.value for a in held(ex, "first") if isinstance(a, Const)} == {1, 2}
