"""DPM609: expressions that are made of all batches of the training loader."""

from __future__ import annotations

import pytest

from tests.rules.program import STEP, after, found

_IMPORTS = "import functools"


@pytest.mark.parametrize(
    "setup",
    [
        pytest.param("n = len(loader)", id="a number of batches"),
        pytest.param("x, y = next(iter(loader))", id="one batch"),
        pytest.param("n = sum(len(y) for _, y in DataLoader(val_set, batch_size=16))", id="another loader"),
        pytest.param("n = sum(len(y) for _, y in train_set)", id="the data set"),
        pytest.param("for _, y in loader:\n    print(len(y))", id="a loop"),
        pytest.param("n = other(loader)", id="a function that is not seen"),
    ],
)
def test_nothing_to_say(setup: str) -> None:
    assert found("DPM609", before=setup) == []


@pytest.mark.parametrize(
    ("setup", "line"),
    [
        ("n = sum(len(y) for _, y in loader)", "n = sum(len(y) for _, y in ddp.whole(loader))"),
        ("ys = torch.cat([y for x, y in loader])", "ys = torch.cat([y for x, y in ddp.whole(loader)])"),
        ("ys = {y.item() for x, ys in loader for y in ys}", "ys = {y.item() for x, ys in ddp.whole(loader) for y in ys}"),
        ("n = {i: len(y) for i, (x, y) in enumerate(loader)}", "n = {i: len(y) for i, (x, y) in enumerate(ddp.whole(loader))}"),
        ("batches = list(loader)", "batches = list(ddp.whole(loader))"),
        ("n = sum(map(len, loader))", "n = sum(map(len, ddp.whole(loader)))"),
        ("last = functools.reduce(torch.max, (x for x, y in loader))", "last = functools.reduce(torch.max, (x for x, y in ddp.whole(loader)))"),
        ("n = functools.reduce(lambda n, b: n + len(b[0]), loader, 0)", "n = functools.reduce(lambda n, b: n + len(b[0]), ddp.whole(loader), 0)"),
    ],
)
def test_every_rank_reads_all_batches(setup: str, line: str) -> None:
    assert found("DPM609", imports=_IMPORTS, before=setup) == ["loader"]
    assert line in after(imports=_IMPORTS, before=setup)


def test_a_function_that_is_given_the_loader() -> None:
    parts = {"defs": "def count(batches):\n    return sum(len(y) for _, y in batches)", "before": "n = count(loader)"}
    assert found("DPM609", **parts) == ["batches"]
    assert "return sum(len(y) for _, y in ddp.whole(batches))" in after(**parts)


@pytest.mark.parametrize("batches", ["list(loader)", "[b for b in loader]"])
def test_what_training_goes_through_is_its_part(batches: str) -> None:
    assert found("DPM609", epoch_start=f"kept = {batches}", batches="for x, y in kept:") == []


def test_an_evaluation_of_the_training_set_in_an_expression() -> None:
    line = "right = sum((model(x).argmax(1) == y).sum().item() for x, y in loader)"
    assert "right = sum((model.module(x).argmax(1) == y).sum().item() for x, y in ddp.whole(loader))" in after(epoch_end=line, step=STEP)
