"""However an example is spelled, by places or by names, the engine says the same of it."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator

import pytest

from dpmigrate.execution.placements import Kind
from dpmigrate.library import registry
from dpmigrate.library.signatures import FILE, _signatures
from tests.library import signatures
from tests.library.sharded import claimed, given, pairs, placed, run
from tests.library.test_rows import EXAMPLES

_SHORT = {"F": "torch.nn.functional", "nn": "torch.nn", "np": "numpy"}


def test_the_file_says_what_the_libraries_say() -> None:
    """numpy is not pinned: other versions may have more functions, and parameters behind these."""
    now = {line.split()[0]: line for line in signatures.lines()}
    held = {line.split()[0]: line for line in FILE.read_text(encoding="utf-8").splitlines()}
    of_torch = {n: line for n, line in now.items() if n.startswith("torch.")}
    assert {n: line for n, line in held.items() if n.startswith("torch.")} == of_torch
    of_numpy = [n for n in held.keys() & now.keys() if n.startswith("numpy.")]
    assert of_numpy and all(now[n].startswith(held[n]) or held[n].startswith(now[n]) for n in of_numpy)


def _spellings(expression: str) -> Iterator[str]:
    """The expression with all arguments of one call by their names, with all but the first, and with those by place that can be."""
    tree = ast.parse(expression, mode="eval")
    for i, call in enumerate(n for n in ast.walk(tree) if isinstance(n, ast.Call)):
        names = _names(call)
        if names is None:
            continue
        for first in (0, 1) if _takes_names(call) else ():
            if len(call.args) > first:
                other, mine = _copied(tree, i)
                mine.keywords = [ast.keyword(n, a) for n, a in zip(names[first:], mine.args[first:], strict=False)] + mine.keywords
                mine.args = mine.args[:first]
                yield ast.unparse(ast.fix_missing_locations(other))
        by_name = {k.arg for k in call.keywords}
        given = names[len(call.args) : len(call.args) + len(by_name)]
        if by_name and by_name == set(given):
            other, mine = _copied(tree, i)
            mine.args += [k.value for n in given for k in mine.keywords if k.arg == n]
            mine.keywords = []
            yield ast.unparse(other)


def _copied(tree: ast.Expression, number: int) -> tuple[ast.Expression, ast.Call]:
    other = copy.deepcopy(tree)
    return other, [n for n in ast.walk(other) if isinstance(n, ast.Call)][number]


def _names(call: ast.Call) -> tuple[str, ...] | None:
    """The parameters of the function that is called, where there is one signature of it."""
    if any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords):
        return None
    head, _, rest = ast.unparse(call.func).partition(".")
    found = _signatures().get(f"{_SHORT.get(head, head)}.{rest}", ())
    if len(found) != 1 or len(call.args) > len(found[0]):
        return None
    return found[0]


def _takes_names(call: ast.Call) -> bool:
    """Not what takes any number of tensors or sizes, which have no name each."""
    return ast.unparse(call.func).rpartition(".")[2] not in _MANY


_MANY = ("broadcast_tensors", "block_diag", "einsum", "meshgrid", "cartesian_prod", "atleast_1d", "atleast_2d")
CASES = [
    pytest.param(str(e.values[0]), s, id=f"{e.id}: {s}")
    for e in EXAMPLES
    for s in dict.fromkeys(_spellings(str(e.values[0])))
]


def test_there_are_spellings() -> None:
    assert len(CASES) > 500


@pytest.mark.parametrize(("expression", "spelled"), CASES)
def test_a_spelling_changes_nothing(expression: str, spelled: str) -> None:
    one, other = claimed(expression, axes=True), claimed(spelled, axes=True)
    (p, atom), (q, mine) = placed(one.value), placed(other.value)
    assert str(p) == str(q)
    assert (atom and (atom.axes, atom.gradient)) == (mine and (mine.axes, mine.gradient))


def test_a_name_without_a_row_is_not_held() -> None:
    assert all(registry.has_row(registry.canonical(n)) or ".Tensor." in n or ".ndarray." in n for n in _signatures())


@pytest.mark.parametrize(
    "expression",
    [
        "F.one_hot(t, int(t.max()) + 1)",
        "F.pad(x, (1, 1), value=x.mean().item())",
        "x.topk(int((x > 0).sum()) % 3 + 1, 1)[0]",
        "x.roll(int((x > 0).sum()), 1)",
        "F.normalize(x, p=x.abs().mean().item())",
        "x.norm(p=x.abs().mean().item(), dim=1)",
        "torch.full((4,), x.mean().item())",
    ],
)
def test_a_number_of_the_rank_makes_no_rows_of_all(expression: str) -> None:
    kinds = {placed(v)[0].kind for v, _ in pairs(claimed(expression, axes=True), [run(expression, given())])}
    assert kinds <= {Kind.PER_RANK, Kind.UNKNOWN}
