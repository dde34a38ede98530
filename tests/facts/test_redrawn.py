"""What makes the samples of an epoch anew, and draws for it."""

from __future__ import annotations

import ast

import pytest

from dpmigrate.facts.redrawn import between, data_redrawn, redrawn, repeated
from tests.facts.probe import all_probed
from tests.pipeline import script
from tests.rules.program import program

_IMPORTS = "import random"
_DATA = "class Data(torch.utils.data.Dataset):\n    def resample(self):\n        random.shuffle(self.rows)\n    def count(self):\n        return 3\n"


def test_between_the_epochs() -> None:
    found, nodes = all_probed(
        program(before="probe(0)", epoch_start="probe(1)", step="probe(2)\nloss = F.cross_entropy(model(x), y)\nloss.backward()\noptimizer.step()")
    )
    assert [(repeated(found, n), between(found, n)) for n in nodes] == [(False, False), (True, True), (True, False)]


@pytest.mark.parametrize("line", ["", "train_set.count()", "print(random.random())", "val_set.resample()"])
def test_the_data_stay(line: str) -> None:
    found = script(program(imports=_IMPORTS, defs=_DATA, data="train_set, val_set = Data(), Data()", epoch_start=line))
    assert list(data_redrawn(found)) == [] and list(redrawn(found)) == []


@pytest.mark.parametrize(
    ("line", "method"),
    [("train_set.resample()", "train_set.resample"), ("loader.dataset.resample()", "loader.dataset.resample"), ("train_set.rows = random.sample(rows, 9)", "")],
)
def test_the_data_are_drawn_anew(line: str, method: str) -> None:
    found = script(program(imports=_IMPORTS, defs=_DATA, data="rows = [1, 2]\ntrain_set, val_set = Data(), Data()", epoch_start=line))
    assert [(ast.unparse(stmt), name) for stmt, name in data_redrawn(found)] == [(line, method)]


def test_a_loader_that_is_built_anew() -> None:
    start = "rows = random.sample(range(64), 32)\nloader = DataLoader(torch.utils.data.Subset(train_set, rows), batch_size=16)"
    found = script(program(imports=_IMPORTS, loader="", epoch_start=start))
    assert [(ast.unparse(r.node), r.why) for r in redrawn(found)] == [("rows = random.sample(range(64), 32)", "")]
