"""Loops over a rank's share of the batches: each turn is one that the program has on one process."""

from __future__ import annotations

from textwrap import dedent, indent
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from dpmigrate.execution.placements import Kind
from dpmigrate.execution.values import Unbound, placement_of
from tests.execution.paper import executed, held, module_of

_DATA = """
from torch.utils.data import DataLoader, TensorDataset
import dpmigrate_runtime as ddp
loader = DataLoader(TensorDataset(torch.arange(44.).reshape(22, 2)), batch_size=4)
"""
_LOOP = """
for i, (x,) in enumerate(ddp.shard(loader)):
"""


def placed(before: str, body: str) -> str:
    """How ``found`` lies after a loop over a share of the batches."""
    text = _DATA + dedent(before) + _LOOP + indent(dedent(body), "    ")
    ex = executed(text)
    held = ex.heap.read((module_of(ex).number, "found"))
    assert held
    return str(placement_of(ex.bound(held)))


def run(before: str, body: str, share: slice) -> Any:
    """``found`` where a rank has a share of the batches."""
    ddp = SimpleNamespace(shard=lambda loader: list(loader)[share])
    text = _DATA.replace("import dpmigrate_runtime as ddp", "") + dedent(before)
    scope: dict[str, Any] = {"torch": torch, "ddp": ddp}
    exec(text + _LOOP + indent(dedent(body), "    "), scope)
    return scope["found"]


ADDED = {
    "a mean of each batch": ("found = 0", "found += x.mean().item()"),
    "a sum of each batch": ("found = 0.", "found = found + x.sum()"),
    "a mean times its samples": ("found = 0", "found += x.mean().item() * x.size(0)"),
    "a sum divided by its samples": ("found = 0", "found += x.sum().item() / len(x)"),
    "what is coupled in the batch": ("found = 0", "found += (x.exp().sum().log() - x.std()).item()"),
    "rows by the batch's own mean": ("found = 0", "found += ((x - x.mean(0)) / x.std()).abs().sum()"),
    "the greatest of each batch": ("found = 0", "found += float(x.max())"),
    "batches": ("found = 0", "found += 1"),
    "batches of a kind": ("found = 0", "if x.mean() > 11:\n    found += 1"),
    "one of two numbers": ("found = 0", "found += 3 if x.sum() > 20 else 2"),
    "samples": ("found = 0", "found += len(x)"),
    "in a function": (
        """
        found = 0
        def more(t):
            global found
            found += t.mean().item()
            found -= 2
        """,
        "more(x)",
    ),
    "in an object": (
        """
        class Meter:
            def __init__(self):
                self.total = 0
            def update(self, v, n=1):
                self.total += v * n
        meter = Meter()
        """,
        "meter.update(x.mean().item(), x.size(0))\nfound = meter.total",
    ),
    "means of the rows of a batch": (
        "found = 0",
        """
        inner = 0
        for k in range(len(x)):
            inner += x[k].exp().sum().log().item()
        found += inner / len(x)
        """,
    ),
    "a loss of several terms": (
        "found = 0",
        "loss = 0\nfor p in (1, 2):\n    loss = loss + x.norm(p)\nfound += loss.item() / 2 * x.size(0)",
    ),
    "a loss that may have no terms": (
        "found = 0\nnorms = [p for p in (1, 2) if torch.cuda.device_count() < 9]",
        "loss = 0.0\nfor p in norms:\n    loss += x.norm(p)\nfound += loss.item()",
    ),
    "shapes of one batch are compared": (
        "found = 0\npad = torch.nn.functional.pad",
        "h = x + 1\nif h.shape != x.shape or len(h) != x.size(0):\n    h = pad(h, (0, 1))\nfound += h.mean().item()",
    ),
    "every second value of one batch": ("found = 0", "for k in range(0, len(x), 2):\n    found += 1"),
}


@pytest.mark.parametrize("name", ADDED)
def test_what_is_added_up_over_turns_is_the_rank_s_part(name: str) -> None:
    before, body = ADDED[name]
    assert placed(before, body) == "partial(sum)"
    for world in (2, 3):
        parts = [run(before, body, slice(r, None, world)) for r in range(world)]
        assert sum(parts) == pytest.approx(run(before, body, slice(None)))


@pytest.mark.parametrize(
    ("before", "body"),
    [
        ("found = 0", "found = x.mean().item()"),
        ("found = 0", "found = len(x)"),
        ("found = 0", "found = x.sum()"),
        ("found = 0", "found = max(found, x.max().item())"),
        ("found = 1", "found *= x.mean().item()"),
        ("found = 0.", "found = 0.9 * found + x.mean().item()"),
        ("found = 5", "found += 1"),
        ("found = 0", "if x.mean() > 11:\n    found = 1"),
        ("found = 0", "found = 1 if x.mean() > 11 else 2"),
        ("found = None", "found = x"),
        ("found = 0", "found = 0 + x.mean().item()"),
        ("found = 0\nbefore = None", "if before is not None and before.shape == x.shape:\n    found += 1\nbefore = x"),
        ("found = 0\nbefore = 4", "h = x\nif before != len(x):\n    h = x[:1]\nbefore = len(x)\nfound += h.sum().item()"),
        ("found = 0", "if len(x[x[:, 0] > 9]) == len(x):\n    found = 1"),
        ("found = 0", "inner = 0\nfor k in range(2):\n    inner += x.mean()\nfound = inner"),
    ],
)
def test_what_is_left_of_a_turn_is_no_part_of_a_sum(before: str, body: str) -> None:
    assert placed(before, body) in ("per rank", "term", "unknown")


def test_a_name_that_may_have_no_value_is_read_in_turns_of_some_ranks() -> None:
    """That it has one there says nothing of the others: none of them loses it."""
    ex = executed(
        "import torch\nimport dpmigrate_runtime as ddp\nfrom torch.utils.data import DataLoader, TensorDataset\n"
        "try:\n    from flash_attn import flash_attn_func as fast\nexcept ImportError:\n    pass\n"
        "for a, in ddp.shard(DataLoader(TensorDataset(torch.ones(4, 3)), 2)):\n"
        "    try:\n        b = fast(a, a, a)\n    except Exception:\n        b = a\n"
    )
    assert [a.why for a in held(ex, "fast") if isinstance(a, Unbound)] == [None]


def test_what_more_and_more_places_hold_lies_as_before() -> None:
    """A late turn finds another place that may hold the tensor, and nothing else that is new."""
    ex = executed(
        """
        from torch.utils.data import DataLoader, TensorDataset

        x, = next(iter(DataLoader(TensorDataset(torch.ones(8, 3)), batch_size=4)))
        x = x + x
        first = second = third = fourth = fifth = x
        for _ in range(40):
            fifth = fourth
            fourth = third
            third = second
            second = first
            first = x + x
        found = fifth + x
        """
    )
    assert placement_of(held(ex, "found")).kind is Kind.ROWS


_BEST = """
def best_of(epochs, count):
    best = []
    for epoch in range(epochs):
        entry = {{"epoch": epoch}}
        if count > 2:
            best.append(entry)
            {step}
    return best
"""


@pytest.mark.parametrize(
    "step",
    [
        "best = best[:count]",
        "best = best[::-1]",
        "best = best[:count] if epoch else best[1:]",
        "best, old = best[:count], best",
        "best = sorted(best, key=str)[:count]",
        "best = [*best, entry][-count:]",
    ],
)
def test_a_list_that_is_cut_in_each_turn_settles(step: str) -> None:
    """Each part that a place makes of its own parts is not one more object."""
    ex = executed(_BEST.format(step=step) + "found = best_of(int(input()), int(input()))")
    assert ex.trace.ended is None
    held = ex.bound(ex.heap.read((module_of(ex).number, "found")) or ())
    assert {o.kind for o in ex.objects(held)} == {"list"}
    entries = [e for o in ex.objects(held) for e in ex.objects(ex.bound(ex.contents(o)))]
    assert entries and {e.kind for e in entries} == {"dict"}
    scope: dict[str, Any] = {}
    exec(_BEST.format(step=step), scope)
    assert all(set(e) == {"epoch"} for e in scope["best_of"](5, 3))
