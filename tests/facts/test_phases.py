"""Which loaders a loop trains on where it serves both sides."""

from __future__ import annotations

import ast
from textwrap import dedent, indent

import pytest

from tests.pipeline import script

_TOP = """
import torch
import torch.nn as nn
from torch.utils.data import DataLoader
model = nn.Linear(3, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
criterion = nn.MSELoss()
train = DataLoader(train_set, shuffle=True)
val = DataLoader(val_set)
loaders = {"train": train, "val": val}
split = {p: DataLoader(sets[p]) for p in ("train", "val")}
"""
_STEP = """
loss = criterion(model(x), y)
if {test}:
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def _answer(text: str) -> list[str] | None:
    """Where the training side's loaders are made, as written; None if unknown."""
    found = script(_TOP + dedent(text))
    (loop,) = found.roles.train_loops
    side = found.phases(loop)
    if side is None:
        return None
    calls = sorted({(v.node.lineno, v.part) for v in side.loaders if isinstance(v.node, ast.Call)}, key=str)
    names = {8: "train", 9: "val", 11: "split"}
    return [names[line] + (f"[{part}]" if part else "") for line, part in calls]


def _phase_loop(test: str, source: str, before: str = "", phases: str = "['train', 'val']", variable: str = "phase") -> str:
    body = indent(f"for x, y in {source}:\n" + indent(_STEP.format(test=test), "    "), "        ")
    return f"for epoch in range(3):\n    for {variable} in {phases}:\n" + indent(before, "        ") + "\n" + body


def _chosen(conditions: int) -> str:
    """The training loader after so many conditions that hold in another phase."""
    return "(" + "".join(f"val if phase == '{i}' else " for i in range(conditions)) + "train)"


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        pytest.param(_phase_loop("phase == 'train'", "loaders[phase]"), ["train"], id="a dict of loaders"),
        pytest.param(_phase_loop("phase == 'train'", "split[phase]"), ["split[train]"], id="a dict comprehension"),
        pytest.param(_phase_loop("phase != 'val'", "loaders[phase]"), ["train"], id="not the other"),
        pytest.param(_phase_loop("not phase == 'val'", "loaders[phase]"), ["train"], id="not"),
        pytest.param(_phase_loop("phase == 'train' and True", "loaders[phase]"), ["train"], id="and"),
        pytest.param(_phase_loop("phase == 'train' or False", "loaders[phase]"), ["train"], id="or"),
        pytest.param(_phase_loop("phase", "train if phase else val", phases="(True, False)"), ["train"], id="the phase is the test"),
        pytest.param(_phase_loop("training", "loaders[phase]", before="training = phase == 'train'"), ["train"], id="through a name"),
        pytest.param(_phase_loop("phase == 'train'", "loader", before="loader = loaders[phase]"), ["train"], id="a loader through a name"),
        pytest.param(_phase_loop("phase == 'train'", "loader", before="loader = train if phase == 'train' else val"), ["train"], id="chosen by a conditional"),
        pytest.param(_phase_loop("phase == 'train'", "(train if phase == 'train' else val)"), ["train"], id="chosen in the loop's head"),
        pytest.param(
            _phase_loop("phase == 'train'", "loader", before="if phase == 'train': loader = train\nelse: loader = val"), ["train"], id="chosen by an if"
        ),
        pytest.param(
            _phase_loop("phase == 'train'", "loader", before="if what(): loader = train\nelse: loader = val"), None, id="chosen by an if on something"
        ),
        pytest.param(_phase_loop("phase is 'train'", "loaders[phase]"), ["train"], id="is"),
        pytest.param(_phase_loop("phase == 'train'", "loaders['train']"), ["train"], id="one loader whatever the phase"),
        pytest.param(_phase_loop("phase < 'u'", "loaders[phase]"), ["train"], id="an order"),
        pytest.param(_phase_loop("phase == 'train' != epoch", "loaders[phase]"), None, id="compared twice"),
        pytest.param(_phase_loop("phase == other", "loaders[phase]"), None, id="compared with a variable"),
        pytest.param(_phase_loop("what(phase)", "loaders[phase]"), None, id="a function decides"),
        pytest.param(_phase_loop("not what(phase)", "loaders[phase]"), None, id="not of a function"),
        pytest.param(_phase_loop("phase == 'train' and what()", "loaders[phase]"), ["train"], id="and a function"),
        pytest.param(_phase_loop("what() or phase == 'train'", "loaders[phase]"), None, id="or a function"),
        pytest.param(_phase_loop("training", "loaders[phase]", before="training = what(phase)"), None, id="a function through a name"),
        pytest.param(_phase_loop("training", "loaders[phase]"), None, id="a name from nowhere"),
        pytest.param(_phase_loop("a", "loaders[phase]", before="a = b\nb = c\nc = d\nd = phase\ne = a"), None, id="a flag that goes through too many names"),
        pytest.param(_phase_loop("phase == 'train'", "loaders[key]", before="key = phase"), ["train"], id="the key is another name"),
        pytest.param(_phase_loop("phase == 'train'", "loaders[phase + '']"), ["train"], id="the key is computed"),
        pytest.param(_phase_loop("phase == 'train'", "(train if what() else val)"), None, id="the loader is chosen by a function"),
        pytest.param(_phase_loop("phase == 'train'", "loaders[phase]", phases="[TRAIN, 'val']"), None, id="a phase that is no literal"),
        pytest.param(_phase_loop("phase == 'test'", "loaders[phase]"), None, id="no phase trains"),
        pytest.param(_phase_loop("phase == 'train'", "loaders[phase]", variable="phase, n", phases="[('train', 1), ('val', 2)]"), ["train"], id="two variables"),
        pytest.param(_phase_loop("phase == 'train'", "loaders[phase]", phases="phases"), None, id="phases from elsewhere"),
        pytest.param(_phase_loop("phase == 'train'", _chosen(3)), ["train"], id="chosen among four"),
        pytest.param(_phase_loop("phase == 'train'", _chosen(4)), None, id="chosen among too many"),
        pytest.param("what().backward()\n" + _phase_loop("phase == 'train'", "loaders[phase]"), ["train"], id="another backward before the loop"),
        pytest.param(
            "if mode == 'old':\n    what().backward()\n" + _phase_loop("phase == 'train'", "loaders[phase]"),
            ["train"],
            id="another backward under a test of its own",
        ),
    ],
)
def test_a_loop_over_phases(text: str, answer: list[str] | None) -> None:
    assert _answer(text) == answer


def _function(parameters: str, test: str, calls: str, before: str = "pass") -> str:
    body = indent(before, "    ") + "\n    for x, y in loader:\n" + indent(_STEP.format(test=test), "        ")
    return f"def run({parameters}):\n{body}\nfor epoch in range(3):\n" + indent(calls, "    ")


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        pytest.param(_function("loader, training", "training", "run(train, True)\nrun(val, False)"), ["train"], id="a flag"),
        pytest.param(_function("loader, *, training=False", "training", "run(train, training=True)\nrun(val)"), ["train"], id="a keyword-only flag"),
        pytest.param(_function("loader, *, training", "training", "run(train, training=True)\nrun(val, training=False)"), ["train"], id="without a default"),
        pytest.param(_function("loader, opt=None", "opt", "run(train, optimizer)\nrun(val)"), ["train"], id="an optimizer is true"),
        pytest.param(_function("loader, opt=None", "opt is not None", "run(train, optimizer)\nrun(val)"), ["train"], id="an optimizer is there"),
        pytest.param(_function("loader, opt=None", "opt != None", "run(train, optimizer)\nrun(val)"), ["train"], id="an optimizer is not None"),
        pytest.param(_function("loader, opt=None", "not opt is None", "run(train, optimizer)\nrun(val)"), ["train"], id="an optimizer is not absent"),
        pytest.param(
            _function("loader, opt=None", "training", "run(train, optimizer)\nrun(val)", "training = opt is not None"), ["train"], id="a flag from it"
        ),
        pytest.param(
            _function("loader, mode", "mode == 'train'", "for m in ('train', 'val'):\n    run(loaders[m], m)"),
            ["train"],
            id="the caller's phases, the loader by them",
        ),
        pytest.param(_function("loader, mode", "mode == 'train'", "for m in ('train',):\n    run(train, m)"), ["train"], id="the caller's phase"),
        pytest.param(_function("loader, training=False, *, k=1", "training", "run(train, **kw)\nrun(val, False)"), ["train"], id="stars may carry the flag"),
        pytest.param(_function("loader, training=False", "training", "run(train, *a)\nrun(val, False)"), ["train"], id="a star may carry the flag"),
        pytest.param(
            _function("loader, training", "training", "run(train, True)\nrun(val, False)", "training = what(training)"), None, id="a flag given another value"
        ),
        pytest.param(_function("loader, training", "training", "run(train, flag)\nrun(val, False)"), ["train"], id="a flag from elsewhere"),
        pytest.param(_function("loader, training", "training", "run(train, 3 > 2)\nrun(val, False)"), ["train"], id="a flag that is computed"),
        pytest.param("def go(flag): run(train, flag)\n" + _function("loader, training", "training", "run(val, False)"), None, id="a flag that nobody gives"),
        pytest.param(_function("loader, opt=None", "opt", "run(train, what())\nrun(val)"), ["train"], id="a thing from elsewhere may be false"),
        pytest.param(_function("loader, opt=None", "opt is not None", "run(train, optimizer)\nrun(val, model.opt)"), None, id="the other side's is unknown"),
        pytest.param(
            _function("loader, opt=None", "opt is not None", "maybe = optimizer if fast else None\nrun(train, maybe)\nrun(val)"),
            ["train"],
            id="an optimizer or None",
        ),
        pytest.param(
            _function("loader, training", "training", "run(load(), True)\nrun(train, True)\nrun(val, False)"), None, id="one training loader is unknown"
        ),
        pytest.param(
            _function("loader, mode", "mode == 'train'", "for m in ('train', 'val'):\n    run(loaders['train'], m)"),
            ["train"],
            id="one loader for the caller's phases",
        ),
        pytest.param(_function("loader, mode", "mode == 'train'", "for m in ('train', 'val'):\n    run(loaders[k], m)"), None, id="a loader by another key"),
        pytest.param(_function("loader, opt=None", "opt is not None", "run(train, what())\nrun(val)"), ["train"], id="a thing from elsewhere"),
        pytest.param(_function("loader, opt=None", "opt is not None", "run(train, model.opt)\nrun(val)"), ["train"], id="an attribute from elsewhere"),
        pytest.param(
            _function("loader, training", "training", "run(load(), True)\nrun(val, False)\nrun(train, False)"), None, id="the training loader is unknown"
        ),
        pytest.param(
            "def other(training, a): pass\n" + _function("loader, training", "training", "turn = other if fast else run\nturn(train, True)\nrun(val, False)"),
            ["train"],
            id="one of two functions is called",
        ),
        pytest.param(_function("loader, training", "loss > 3 or training", "run(train, True)\nrun(val, False)"), None, id="a test on numbers with a phase"),
    ],
)
def test_a_function_for_both_sides(text: str, answer: list[str] | None) -> None:
    assert _answer(text) == answer


def test_a_function_that_nothing_calls() -> None:
    body = indent(_phase_loop("phase == 'train'", "loaders[phase]"), "    ")
    assert _answer(f"def run():\n{body}") == ["train"]
    assert _answer(_function("loader, training", "training", "pass").replace("in loader:", "in train:")) is None


def test_a_flag_of_the_module() -> None:
    assert _answer("training = True\nfor x, y in train:\n" + indent(_STEP.format(test="training"), "    ")) == ["train"]


def test_phases_in_a_function_with_a_flag() -> None:
    body = indent(_phase_loop("phase == 'train' and training", "loaders[phase]"), "    ")
    assert _answer(f"def run(training):\n{body}\nrun(True)\nrun(False)") == ["train"]


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        pytest.param(_function("loader", "model.training", "model.train()\nrun(train)\nmodel.eval()\nrun(val)"), ["train"], id="the mode of the model"),
        pytest.param(_function("loader", "torch.is_grad_enabled()", "run(train)\nwith torch.no_grad():\n    run(val)"), ["train"], id="whether gradients are made"),
        pytest.param(_function("loader", "state.on", "state.on = True\nrun(train)\nstate.on = False\nrun(val)").replace("def run", "class State: pass\nstate = State()\ndef run"), ["train"], id="an attribute"),
        pytest.param(_phase_loop("phase == 'train'", "loaders[phase]", phases="list(loaders.keys())"), ["train"], id="the keys of a dict"),
        pytest.param(_phase_loop("phase == 'train'", "loaders[phase]", phases="loaders"), ["train"], id="a dict"),
        pytest.param(_phase_loop("model.training", "loader", variable="phase, loader", phases="loaders.items()", before="model.train(phase == 'train')"), ["train"], id="its items"),
        pytest.param(_phase_loop("phase.startswith('t')", "loaders[phase]"), ["train"], id="a method of a text"),
    ],
)
def test_what_the_execution_knows(text: str, answer: list[str] | None) -> None:
    assert _answer(text) == answer


@pytest.mark.parametrize(
    ("text", "source"),
    [
        pytest.param(_phase_loop("phase == 'train'", "train"), "train", id="a name"),
        pytest.param(_phase_loop("phase == 'train'", "loaders['train']"), "loaders['train']", id="an item"),
        pytest.param(_phase_loop("phase == 'train'", "loaders[phase]"), "loaders['train']", id="by phase"),
        pytest.param(_phase_loop("phase == 'train'", "loader", before="loader = loaders[phase]"), "loaders['train']", id="by phase, through a name"),
        pytest.param(_phase_loop("phase == 'val' or phase == 'train'", "loaders[phase]"), "loaders['train']", id="the first of two phases that train"),
        pytest.param(_function("loader, training", "training", "run(train, True)\nrun(val, False)"), "loader", id="a parameter"),
        pytest.param(_phase_loop("phase == 'train'", "loaders[key]", before="key = phase"), "loaders['train']", id="by the key of the dict"),
        pytest.param(
            _phase_loop("phase == 'train'", "bar", before="if big:\n    bar = tqdm(loaders[phase])\nelse:\n    bar = enumerate(loaders[phase])"), "loaders['train']", id="on two ways"
        ),
    ],
)
def test_the_source_as_it_reads_in_training(text: str, source: str) -> None:
    found = script(_TOP + text)
    (loop,) = found.roles.train_loops
    side = found.phases(loop)
    assert side is not None and ast.unparse(side.source) == source


def test_the_calls_of_the_training_side() -> None:
    found = script(_TOP + _function("loader, training", "training", "run(train, True)\nrun(val, False)"))
    (loop,) = found.roles.train_loops
    side = found.phases(loop)
    assert side is not None and [ast.unparse(c) for c in side.calls] == ["run(train, True)"]


def test_a_loop_of_the_module_has_no_calls() -> None:
    found = script(_TOP + _phase_loop("phase == 'train'", "loaders[phase]"))
    (loop,) = found.roles.train_loops
    side = found.phases(loop)
    assert side is not None and not side.calls


def test_a_loop_that_only_trains() -> None:
    text = "for epoch in range(3):\n    for x, y in train:\n        loss = criterion(model(x), y)\n        loss.backward()\n        optimizer.step()\n"
    assert _answer(text) == ["train"]
    assert _answer("def run():\n" + indent(text, "    ")) == ["train"]
