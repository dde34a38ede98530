"""What autograd functions of the program write into what they are given."""

from __future__ import annotations

import ast

import pytest

from dpmigrate.facts.operations import written_by_operations
from tests.pipeline import script

_PROGRAM = """
import torch
class Lookup(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, table):
        ctx.save_for_backward(x, table)
        {forward}
        return x @ table.t()
    @staticmethod
    def backward(ctx, grad):
        x, table = ctx.saved_tensors
        {backward}
        return grad, None
table = torch.zeros(10, 2)
z = Lookup.apply(x, table)
"""


def _written(forward: str = "pass", backward: str = "pass") -> list[tuple[str, str]]:
    found = written_by_operations(script(_PROGRAM.format(forward=forward, backward=backward)).roles)
    return [(ast.unparse(stmt), ast.unparse(given)) for stmt, given in found]


@pytest.mark.parametrize("line", ["pass", "y = x * 2", "x = x * 2", "own = torch.zeros(3)\n        own[0] = 1"])
def test_nothing_that_it_was_given(line: str) -> None:
    assert _written(forward=line) == []


@pytest.mark.parametrize("line", ["table[0] = x[0]", "table += 1", "table.copy_(x)"])
def test_written_in_the_forward(line: str) -> None:
    assert _written(forward=line) == [(line, "table")]


def test_written_in_the_backward() -> None:
    assert _written(backward="table[0] = x[0]") == [("table[0] = x[0]", "table")]
