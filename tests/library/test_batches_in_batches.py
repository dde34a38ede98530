"""Dictionaries, lists and tuples in a batch, each of which has what the samples have there."""

from __future__ import annotations

import pytest

from tests.execution.paper import executed, placed

_PROGRAM = """
import torch
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    def __len__(self):
        return 32

    def __getitem__(self, i):
        inner = {{}}
        inner["a"] = torch.ones(3) * i
        return {sample}


for batch in DataLoader(Rows(), 4):
    out = {out}
"""


@pytest.mark.parametrize(
    ("sample", "out", "lies"),
    [
        ("{'p': inner, 'y': 1}", "batch['p']['a']", "rows(axis 0)"),
        ("{'p': inner, 'y': 1}", "sorted(batch['p'])[-1]", "uniform"),
        ("{'p': {'a': i}, 'q': {'a': 'text'}}", "batch['p']['a']", "rows(axis 0)"),
        ("{'p': {'a': i}, 'q': {'b': torch.ones(2)}}", "[k for k in batch['q']][0]", "uniform"),
        ("({'a': i}, {'b': torch.ones(2)})", "{k: v for k, v in batch[1].items()}['b']", "rows(axis 0)"),
        ("{'p': {'q': {'r': inner}}}", "batch['p']['q']['r']['a']", "rows(axis 0)"),
        ("[{'a': i}, inner]", "batch[1]['a']", "rows(axis 0)"),
    ],
)
def test_what_lies_in_which(sample: str, out: str, lies: str) -> None:
    assert placed(executed(_PROGRAM.format(sample=sample, out=out)), "out") == lies


@pytest.mark.parametrize("sample", ["{'p': {'a': 1}, 'y': 2}", "({'a': 1}, {'y': 2})", "{'p': inner, 'y': 1}"])
def test_keys_of_one_are_no_keys_of_another(sample: str) -> None:
    ex = executed(_PROGRAM.format(sample=sample, out="0"))
    dicts = [o for o in ex.heap.objects.values() if o.kind == "dict"]
    keys = [{getattr(name, "value", "") for name, _ in ex.heap.names(o.number)} for o in dicts]
    assert any("a" in k for k in keys) and not any({"a", "y"} <= k for k in keys)
