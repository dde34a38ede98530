"""einops's patterns against a small rearrange of our own, whole and on the shares of ranks."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import torch

from dpmigrate.execution import placements
from dpmigrate.execution.engine import Execution
from dpmigrate.execution.machine import Frame
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.scopes import Names
from dpmigrate.execution.values import Data, Value, placement_of, value
from dpmigrate.library.rearranging import parsed
from dpmigrate.library.tables import Tables
from dpmigrate.linking import link
from dpmigrate.source import Source, parse
from tests.library.sharded import dealt, hold

DEALINGS = [(2, True), (2, False), (3, True), (3, False)]
_TEXT = b"from einops import rearrange, reduce, repeat, einsum\nfrom einops.layers.torch import Rearrange, Reduce\n"


def real(how: str, x: torch.Tensor, text: str, sizes: dict[str, int], reduction: str = "") -> torch.Tensor:
    """What einops does, by views, permutations and reductions."""
    pattern = parsed(text, x.dim())
    assert pattern is not None
    known = dict(sizes)
    for group, size in zip(pattern.left, x.shape, strict=True):
        free = [n for n in group if n not in known and not n.isdigit()]
        taken = 1
        for n in group:
            taken *= known.get(n, 1)
        for n in free:
            known[n] = size // taken
    names = [n for g in pattern.left for n in g if not n.isdigit()]
    x = x.reshape([known[n] for n in names])
    wanted = [n for g in pattern.right for n in g if not n.isdigit()]
    for n in [n for n in names if n not in wanted]:
        assert how == "reduce"
        at = names.index(n)
        x = getattr(x, {"max": "amax", "min": "amin"}.get(reduction, reduction))(at)
        names.remove(n)
    for n in [n for n in wanted if n not in names]:
        assert how == "repeat"
        x = x.unsqueeze(-1).expand(*x.shape, known[n])
        names.append(n)
    x = x.permute([names.index(n) for n in wanted])
    shape = []
    for g in pattern.right:
        size = 1
        for n in g:
            size *= known.get(n, 1)
        shape.append(size)
    return x.reshape(shape)


def said(expression: str, x: Value, more: dict[str, Value] | None = None) -> Value:
    """What the engine says of an expression over x."""
    source = parse(_TEXT, "program.py")
    assert isinstance(source, Source)
    execution = Execution(link(Path("program.py"), source), Tables()).run()
    module = next(o for o in execution.heap.objects.values() if o.kind == "pymodule")
    for name, held in {"x": x, **(more or {})}.items():
        execution.heap.write((module.number, name), held)
    frame = Frame(module.number, Names(), (), module.number, 0, slot=len(execution.control))
    execution.control.append(None)
    return execution.evaluate(ast.parse(expression, mode="eval").body, frame)


CASES = [
    ("rearrange", (12, 4, 6), "b c d -> b d c", {}, ""),
    ("rearrange", (12, 4, 6), "b c d -> b (c d)", {}, ""),
    ("rearrange", (12, 4, 6), "b c d -> c b d", {}, ""),
    ("rearrange", (12, 4, 6), "b (h c) d -> (b h) c d", {"h": 2}, ""),
    ("rearrange", (12, 4, 6), "b (h c) d -> h b c d", {"h": 2}, ""),
    ("rearrange", (12, 4, 6), "b (h c) d -> (h b) c d", {"h": 2}, ""),
    ("rearrange", (12, 4, 6), "b ... -> b (...)", {}, ""),
    ("rearrange", (12, 4, 6), "b ... d -> ... b d", {}, ""),
    ("rearrange", (12, 4), "b c -> b 1 c 1", {}, ""),
    ("rearrange", (12, 4), "b c -> (b c)", {}, ""),
    ("reduce", (12, 4, 6), "b c d -> b c", {}, "mean"),
    ("reduce", (12, 4, 6), "b c d -> c", {}, "mean"),
    ("reduce", (12, 4, 6), "b c d -> c d", {}, "sum"),
    ("reduce", (12, 4, 6), "b c d -> d", {}, "max"),
    ("reduce", (12, 4, 6), "b (c k) d -> b c d", {"k": 2}, "min"),
    ("repeat", (12, 4), "b c -> b c n", {"n": 3}, ""),
    ("repeat", (12, 4), "b c -> (b n) c", {"n": 3}, ""),
    ("repeat", (12, 4), "b c -> (n b) c", {"n": 2}, ""),
    ("repeat", (12, 4), "b c -> b (c n)", {"n": 2}, ""),
]


BOTH = [(*c, layer) for c in CASES for layer in (False, True) if c[0] != "repeat" or not layer]


@pytest.mark.parametrize(("how", "shape", "text", "sizes", "reduction", "layer"), BOTH)
@pytest.mark.parametrize("counted", [True, False])
def test_a_pattern_says_where_samples_come_to_lie(
    how: str, shape: tuple[int, ...], text: str, sizes: dict[str, int], reduction: str,
    layer: bool, counted: bool,
) -> None:
    """As a function and as a layer, of which there is none that repeats."""
    words = "".join(f", {n}={k}" for n, k in sizes.items())
    second = f", {reduction!r}" if reduction else ""
    call = f"{how}(x, {text!r}{second}{words})"
    if layer:
        call = f"{how.title()}({text!r}{second}{words})(x)"
    claim = said(call, value(Data("tensor", placements.rows(), axes=len(shape) if counted else None)))
    p = placement_of(claim)
    if "..." not in text:
        assert p.kind is not Kind.UNKNOWN, claim
    x = torch.arange(torch.Size(shape).numel(), dtype=torch.float64).reshape(shape)
    total = real(how, x, text, sizes, reduction)
    for world, strided in DEALINGS:
        dealing = dealt(world, strided)
        hold(p, total, [real(how, x[own], text, sizes, reduction) for own in dealing], dealing)
    axes = [a.axes for a in claim if isinstance(a, Data)]
    assert axes in ([total.dim()], [None])


def test_a_token_that_is_repeated_for_each_sample_is_rows() -> None:
    token = value(Data("tensor", placements.UNIFORM, "whole", axes=3))
    size = value(Data("number", placements.size()))
    claim = said("repeat(x, '1 1 d -> b 1 d', b=n)", token, {"n": size})
    assert placement_of(claim) == placements.rows(0)
    assert [a.gradient for a in claim if isinstance(a, Data)] == ["whole"]
    lost = said("repeat(x, '1 1 d -> b n d', b=n, n=n)", token, {"n": size})
    assert placement_of(lost) == placements.UNKNOWN


def test_samples_are_parted_as_they_were_put_together() -> None:
    merged = placements.rows(0, times=3)
    found = said("rearrange(x, '(b n) d -> b n d', n=3)", value(Data("tensor", merged, axes=2)))
    assert placement_of(found) == placements.rows(0)
    two = placements.rows(0, segments=2)
    found = said("rearrange(x, '(v b) d -> b v d', v=2)", value(Data("tensor", two, axes=2)))
    assert placement_of(found) == placements.rows(0)
    one = placements.rows(0)
    found = said("rearrange(x, '(v b) d -> b v d', v=2)", value(Data("tensor", one, axes=2)))
    assert placement_of(found) == placements.UNKNOWN


@pytest.mark.parametrize("text", ["'b c'", "'b (c -> c'", "word", "'b) c -> c'"])
def test_what_is_no_pattern_is_not_known(text: str) -> None:
    rows = value(Data("tensor", placements.rows(), axes=2))
    word = value(Data("text", placements.UNIFORM))
    assert placement_of(said(f"rearrange(x, {text})", rows, {"word": word})) == placements.UNKNOWN


def test_an_einsum_with_names_has_rows_where_their_name_is() -> None:
    rows = value(Data("tensor", placements.rows(), axes=3))
    found = said("einsum(x, x, 'batch i dim, batch j dim -> batch i j')", rows)
    assert placement_of(found) == placements.rows(0)
    assert placement_of(said("einsum(x, x, 'b i d, b j d -> i j')", rows)) == placements.SUM
