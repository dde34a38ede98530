"""What one addition over a batch is: a sum, a mean, a constant."""

from __future__ import annotations

import pytest

from dpmigrate.facts.additions import Holds, holds
from tests.pipeline import script
from tests.rules.program import program


def _holds(addition: str, losses: dict[str, bool] | None = None, lines: str = "") -> Holds:
    end = f"val_loader = DataLoader(val_set, batch_size=16)\ntotal = 0\nwith torch.no_grad():\n    for a, b in val_loader:\n        z = model(a)\n        {lines}\n"
    found = script(program(defs="def right(z, b):\n    return (z == b).sum().item()", end=f"{end}        total += {addition}\nprint(total)"))
    (loop,) = found.roles.eval_loops
    (counter,) = found.counting(loop).counters
    return holds(found.roles, loop, counter, losses or {})


@pytest.mark.parametrize("addition", ["z.max()", "foreign(z)", "z[0]", "z", "1 / len(a)", "z.mean() / len(a)", "len(a) + 1", "torch.numel(model.weight)", "z[:, 0].numel()"])
def test_not_known(addition: str) -> None:
    assert _holds(addition) is Holds.UNKNOWN


@pytest.mark.parametrize("addition", ["1", "2.5", "time.time()"][:2])
def test_the_same_in_every_batch(addition: str) -> None:
    assert _holds(addition) is Holds.STEP


@pytest.mark.parametrize(
    "addition", ["z.mean()", "torch.mean(z).item()", "z.mean() * 2", "float(z.mean())", "loss", "z.sum() / a.shape[0]", "100 * (z == b).sum().item() / a.size(0)", "z.mean().tolist()"]
)
def test_means(addition: str) -> None:
    assert _holds(addition, {"loss": False}) is Holds.MEAN


@pytest.mark.parametrize(
    "addition", ["len(a)", "a.size(0)", "(z == b).sum().item()", "z.mean() * len(a)", "right(z, b)", "z.sum() / 3", "z.sum() + len(a)", "n", "loss", "torch.numel(a)", "torch.numel(z[b != 1])", "z[b > 0].numel()"]
)
def test_sums(addition: str) -> None:
    assert _holds(addition, {"loss": True}, "n = a.shape[0]") is Holds.SUM


@pytest.mark.parametrize(
    ("above", "kind"),
    [
        ("for i in range(3):", Holds.STEP),
        ("for i in range(a.size(0)):", Holds.SUM),
        ("for p, q in zip(z.argmax(1), b):", Holds.SUM),
        ("while len(a) > total:", Holds.SUM),
        ("if flag:", Holds.STEP),
        ("if z.mean() > 0:", Holds.UNKNOWN),
        ("if z.mean() > 0 and flag:", Holds.UNKNOWN),
    ],
)
@pytest.mark.parametrize("within", ["", "if flag: ", "if b[0] == 1: "])
def test_constants_under_loops_and_tests(above: str, within: str, kind: Holds) -> None:
    if "b[0]" in within and kind is Holds.STEP:
        kind = Holds.UNKNOWN
    end = f"val_loader = DataLoader(val_set, batch_size=16)\nflag, total = 1, 0\nfor a, b in val_loader:\n    z = model(a)\n    {above}\n        {within}{{}}\nprint(total)"
    if within:
        end = end.replace(f"        {within}{{}}", f"        {within.strip()}\n            {{}}")
    found = script(program(end=end.format("total += 1")))
    (loop,) = found.roles.eval_loops
    (counter,) = found.counting(loop).counters
    assert holds(found.roles, loop, counter, {}) is kind


@pytest.mark.parametrize(
    ("over", "name", "kind"),
    [
        ("enumerate(val_loader)", "i, (a, b)", Holds.STEP),
        ("enumerate(val_loader)", "k, (i, b)", Holds.UNKNOWN),
        ("zip(numbers, val_loader)", "i, (a, b)", Holds.UNKNOWN),
    ],
)
def test_the_number_of_a_turn(over: str, name: str, kind: Holds) -> None:
    end = f"val_loader = DataLoader(val_set, batch_size=16)\ntotal, numbers = 0, [1]\nwith torch.no_grad():\n    for {name} in {over}:\n        model(b)\n        total += i\nprint(total)"
    found = script(program(end=end))
    (loop,) = found.roles.eval_loops
    (counter,) = found.counting(loop).counters
    assert holds(found.roles, loop, counter, {}) is kind


def test_an_inner_loop_over_samples_numbers_them() -> None:
    for inner, kind in (("range(3)", Holds.STEP), ("range(a.size(0))", Holds.UNKNOWN)):
        end = f"val_loader = DataLoader(val_set, batch_size=16)\ntotal = 0\nfor a, b in val_loader:\n    model(a)\n    for i in {inner}:\n        total += i\nprint(total)"
        found = script(program(end=end))
        (loop,) = found.roles.eval_loops
        (counter,) = found.counting(loop).counters
        assert holds(found.roles, loop, counter, {}) is kind
