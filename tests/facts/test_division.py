"""Where a training loader is divided."""

from __future__ import annotations

import ast

import pytest

from dpmigrate.facts.division import distributed_after, distributed_at, reads_statically
from tests.pipeline import script
from tests.rules.program import program

_EVAL = "with torch.no_grad():\n    for a, b in val_loader:\n        print(model(a))"


@pytest.mark.parametrize("loader", ["DataLoader(train_set, batch_size=16)", "DataLoader(dataset=train_set, batch_size=args.n, shuffle=True, num_workers=2)"])
def test_a_loader_that_can_be_read_is_divided_in_its_call(loader: str) -> None:
    found = script(program(imports="from lib import args", loader=f"loader = {loader}"))
    (call,) = found.train_loader_calls
    assert reads_statically(found, call) and distributed_at(found, call) == [] and distributed_after(found, call) == {}


def test_a_loader_that_cannot_be_read_is_divided_when_it_is_finished() -> None:
    found = script(program(imports="from lib import options", loader="loader = DataLoader(train_set, **options())"))
    (call,) = found.train_loader_calls
    assert not reads_statically(found, call)
    assert [ast.unparse(e) for e in distributed_at(found, call)] == ["DataLoader(train_set, **options())"]


def test_a_factory_of_both_is_divided_where_training_gets_it() -> None:
    defs = "def make(data, **more):\n    return DataLoader(data, batch_size=16, **more)"
    found = script(program(defs=defs, loader="loader = make(train_set, shuffle=True)\nval_loader = make(val_set)", end=_EVAL))
    (call,) = found.train_loader_calls
    assert [ast.unparse(e) for e in distributed_at(found, call)] == ["make(train_set, shuffle=True)"]


def test_one_of_several_loaders_is_divided_after_their_statement() -> None:
    loader = "loaders = {w: DataLoader(d, batch_size=16) for w, d in (('train', train_set), ('val', val_set))}"
    found = script(program(loader=loader, batches="for x, y in loaders['train']:"))
    (call,) = found.train_loader_calls
    assert list(distributed_after(found, call)) == ["loaders['train']"] and distributed_at(found, call) == []
