"""DPM601: evaluation is divided only where its numbers stay the same."""

from __future__ import annotations

import pytest

from tests.rules.program import COUNTING, after, found, hits, whole

_LOADER = "val_loader = DataLoader(val_set, batch_size=16)"
_BN = "model = nn.Sequential(nn.Linear(8, 2), nn.BatchNorm1d(2))"


def _loop(body: str, start: str = "correct = 0", source: str = "val_loader", target: str = "a, b") -> str:
    inside = "".join(f"    {line}\n" for line in body.splitlines())
    return f"{_LOADER}\n{start}\nfor {target} in {source}:\n{inside}print(correct)"


_ADD = "correct += (model(a).argmax(1) == b).sum().item()"


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(f"{_LOADER}\nn = 0\nfor a, b in val_loader:\n    n += 1", id="a loop without the model"),
        pytest.param("n = 0\nfor x in range(3):\n    n += model(torch.ones(1, 8)).sum().item()", id="not over a loader"),
        pytest.param("print('for x in val_loader: n += 1')  # for x in val_loader", id="in a string and a comment"),
    ],
)
def test_nothing_to_say(end: str) -> None:
    assert found("DPM601", end=end) == []


def test_split_and_summed() -> None:
    assert after(end=COUNTING) == [
        "for a, b in ddp.shard(val_loader):",
        "correct += (model.module(a).argmax(1) == b).sum().item()",
        "correct = ddp.sum_all(correct)",
    ]


@pytest.mark.parametrize(
    ("end", "first", "last"),
    [
        pytest.param(_loop(_ADD, source="enumerate(val_loader)", target="i, (a, b)"), "for i, (a, b) in enumerate(ddp.shard(val_loader)):", "correct = ddp.sum_all(correct)", id="enumerate"),
        pytest.param(_loop(_ADD, start="bar = list(val_loader)\ncorrect = 0", source="bar"), "bar = list(ddp.shard(val_loader))", "correct = ddp.sum_all(correct)", id="through a name"),
        pytest.param(_loop(f"{_ADD}\nn = n + 1", start="correct, n = 0.0, 0"), "for a, b in ddp.shard(val_loader):", "correct, n = ddp.sum_all(correct, n)", id="two counters"),
        pytest.param(_loop("correct += (model(a).argmax(1) == b).sum()", start="correct = torch.zeros(1)"), "for a, b in ddp.shard(val_loader):", "correct = ddp.sum_all(correct)", id="tensor of zeros"),
        pytest.param(_loop("correct += (model(a).argmax(1) == b).sum()", start="correct = torch.tensor([0, 0.0])"), "for a, b in ddp.shard(val_loader):", "correct = ddp.sum_all(correct)", id="tensor(0)"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("module_level", [False, True], ids=["function", "module"])
def test_other_spellings(end: str, first: str, last: str, module_level: bool) -> None:
    got = after(end=end, module_level=module_level)
    assert got[0] == first and got[-1] == last


def test_in_a_function_with_parameters_and_in_a_method() -> None:
    method = "class E:\n    def run(self, net, batches):\n        correct = 0\n        for a, b in batches:\n            correct += net(a).sum().item()\n        return correct"
    got = after(defs=method, end=f"{_LOADER}\nprint(E().run(model, val_loader))")
    assert got == ["for a, b in ddp.shard(batches):", "correct += net.module(a).sum().item()", "correct = ddp.sum_all(correct)"]


def test_buffers_are_made_equal_first() -> None:
    assert "ddp.sync_buffers(model)" in after(model=_BN, end=COUNTING)


_PRINTED = "val_loader = DataLoader(val_set, batch_size=16)\nwith torch.no_grad():\n    for a, b in val_loader:\n        print(model(a))"


def test_buffers_are_made_equal_before_a_full_evaluation_too() -> None:
    got = after(model=_BN, end=_PRINTED)
    assert got[got.index("ddp.sync_buffers(model)") + 1 :] == ["print(model.module(a))"]
    assert "ddp.sync_buffers(model)" not in after(end=_PRINTED)


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param(
            {"defs": f"def test(model):\n    {_PRINTED}".replace("\n", "\n    ").replace("    val", "val", 1), "end": "if torch.rand(1) > 2:\n    test(model)"},
            id="under a test",
        ),
        pytest.param(
            {
                "end": "try:\n    train_set[0]\nexcept IndexError:\n    with torch.no_grad():\n        for a, b in DataLoader(val_set):\n            print(model(a))"
            },
            id="in a handler",
        ),
        pytest.param({"end": "if torch.rand(1) > 2:\n    return\n" + _PRINTED}, id="below a return"),
        pytest.param(
            {"end": "try:\n    train_set[0]\nfinally:\n    with torch.no_grad():\n        for a, b in DataLoader(val_set):\n            print(model(a))"},
            id="in a finally",
        ),
        pytest.param(
            {
                "imports": "import numpy as np",
                "defs": "def worst(model, loader):\n    with torch.no_grad():\n        for a, b in loader:\n            out = model(a)\n            print(out)\n    return out",
                "end": "np.savetxt('a', worst(model, DataLoader(val_set)))",
            },
            id="for something that rank 0 writes",
        ),
    ],
)
def test_not_where_a_rank_may_come_alone(parts: dict[str, str]) -> None:
    assert "ddp.sync_buffers(model)" not in after(model=_BN, **parts)


def test_buffers_of_a_model_that_is_called_elsewhere() -> None:
    defs = "def score(net, a, b):\n    return (net(a).argmax(1) == y).sum().item()"
    (one,) = hits("DPM601", model=_BN, defs=defs, end=_loop("correct += score(model, a, b)"))
    assert not one.edits and "not called in the loop itself" in one.message


@pytest.mark.parametrize(
    ("end", "why"),
    [
        pytest.param(_loop(f"{_ADD}\nprint(correct)"), "correct is read while the loop runs", id="printed"),
        pytest.param(_loop(f"{_ADD}\nbreak"), "the loop has a break", id="left"),
        pytest.param("import numpy as np\n" + _loop(f"{_ADD}\nnp.savez_compressed('p', a)"), "np.savez_compressed", id="a file of each batch"),
        pytest.param(_loop("correct += model(a).sum().item() * i", source="enumerate(val_loader)", target="i, (a, b)"), "the number of the batch (i) is used", id="number of the batch"),
        pytest.param(_loop(_ADD, start="correct = 1"), "correct is not 0 when the loop begins", id="starts at one"),
        pytest.param(_loop(_ADD, start="correct = 0\ncorrect += 5"), "correct is not 0 when the loop begins", id="something is added before"),
        pytest.param(_loop("correct += model(a).sum()", start="correct = torch.tensor(3.0)"), "correct is not 0 when the loop begins", id="tensor(3)"),
        pytest.param(_loop("correct += model(a).sum()", start="correct = torch.tensor(zero)"), "correct is not 0 when the loop begins", id="tensor that cannot be read"),
    ],
)  # fmt: skip
def test_whole_on_every_rank(end: str, why: str) -> None:
    (one,) = hits("DPM601", end=end)
    assert not one.edits and why in one.message


def test_a_counter_that_runs_through_several_loops() -> None:
    """Summed after the first loop, it would bring the sum of all ranks into the second."""
    end = f"{_LOADER}\ncorrect = 0\nfor k in range(3):\n    for a, b in val_loader:\n        {_ADD}\nprint(correct)"
    (one,) = hits("DPM601", end=end)
    assert not one.edits
    end = f"{_LOADER}\nfor k in range(3):\n    correct = 0\n    for a, b in val_loader:\n        {_ADD}\n    print(correct)"
    assert "correct = ddp.sum_all(correct)" in after(end=end)


def test_a_second_loop_goes_on_with_the_counter() -> None:
    end = f"{_LOADER}\ncorrect = 0\nfor a, b in val_loader:\n    {_ADD}\nfor a, b in val_loader:\n    {_ADD}\nprint(correct)"
    assert [bool(f.edits) for f in hits("DPM601", end=end)] == [True, False]


def test_batches_that_are_kept_for_another_loop() -> None:
    end = f"{_LOADER}\nkept = list(val_loader)\ncorrect = 0\nfor a, b in kept:\n    {_ADD}\nfor a, b in kept:\n    print(model(a))"
    first, second = hits("DPM601", end=end)
    assert not first.edits and "the batches in kept are used by another loop" in first.message
    assert not second.edits


def test_a_counter_of_another_function() -> None:
    defs = "total = 0\ndef run(net, batches):\n    global total\n    for a, b in batches:\n        total += net(a).sum().item()"
    (one,) = hits("DPM601", defs=defs, end=f"{_LOADER}\nrun(model, val_loader)\nprint(total)")
    assert not one.edits


def test_the_training_set_is_evaluated_in_full() -> None:
    assert "for a, b in ddp.shard(loader):" in after(end="correct = 0\nfor a, b in loader:\n    " + _ADD)


def test_the_training_set_in_full_begins_with_equal_buffers() -> None:
    got = after(model=_BN, end="for a, b in loader:\n    print(model(a))")
    assert got[got.index("ddp.sync_buffers(model)") + 1] == "for a, b in ddp.whole(loader):"


@pytest.mark.parametrize(
    ("source", "target", "defs"),
    [
        pytest.param("zip(val_loader, range(3))", "(a, b), c", "", id="beside numbers"),
        pytest.param("sorted(val_loader)", "a, b", "", id="in another order"),
        pytest.param("first(val_loader)", "a, b", "def first(pairs):\n    for k, pair in enumerate(pairs):\n        if k < 3:\n            yield pair", id="the first of a generator"),
    ],
)  # fmt: skip
def test_batches_that_would_be_others_on_every_rank(source: str, target: str, defs: str) -> None:
    (one,) = hits("DPM601", defs=defs, end=_loop(_ADD, source=source, target=target))
    assert not one.edits and "gives other batches than the loader" in one.message


def test_another_function_s_variable_of_the_same_name() -> None:
    defs = "def other(a):\n    return a\ndef count(net, batches):\n    correct = 0\n    for a, b in batches:\n        correct += net(a).sum().item()\n    return correct"
    assert "correct = ddp.sum_all(correct)" in after(defs=defs, end=f"{_LOADER}\nprint(count(model, val_loader))", module_level=True)
    assert "for a, b in ddp.shard(val_loader):" in after(defs="def other(a):\n    return a", end=_loop(_ADD), module_level=True)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("print(model(a))", id="evaluates"),
        pytest.param("print(a)", id="does not even evaluate"),
    ],
)
def test_a_divided_loader_that_cannot_be_split_is_gone_through_by_every_rank(body: str) -> None:
    assert "for a, b in ddp.whole(loader):" in after(end=f"for a, b in loader:\n    {body}")


def test_a_function_that_adds_to_what_it_is_given() -> None:
    """The caller's table is changed in place: it would hold this rank's share."""
    defs = "def count(table, pred, label):\n    table += torch.bincount(label * 2 + pred, minlength=4)"
    (one,) = hits("DPM601", defs=defs, end=_loop(f"{_ADD}\ncount(table, model(a).argmax(1), b)", start="correct, table = 0, torch.zeros(4)"))
    assert not one.edits and "count() may have an effect" in one.message


def test_a_step_that_training_shares_is_evaluated_in_full() -> None:
    """Its forward goes through the wrapper, which ranks with shares of unequal length would call unequally often."""
    defs = "def step(model, x, y):\n    return F.cross_entropy(model(x), y)"
    loop = "val_loader = DataLoader(val_set, batch_size=16)\ntotal = 0\nwith torch.no_grad():\n    for x, y in val_loader:\n        total += {}.item()\nprint(total)"
    shared = whole(defs=defs, step="optimizer.zero_grad()\nloss = step(model, x, y)\nloss.backward()\noptimizer.step()", end=loop.format("step(model, x, y)"))
    assert "ddp.shard" not in shared and "model(x), y)" in shared
    assert "ddp.shard(val_loader)" in whole(defs=defs, end=loop.format("step(model, x, y)"))


def test_the_buffers_of_a_model_whose_forward_is_called() -> None:
    """It is the model that has them, and not the method."""
    body = "out = model.forward(a)\nprint(out)"
    assert "ddp.sync_buffers(model)" in after(net="", model=_BN, end=_loop(body))


_ANEW = "def refresh(loader, net, part=None):\n    count = len(loader)\n    net.train()\n    with torch.no_grad():\n{}        for a, b in loader:\n            net(a)\n{}"
_PART = "        if part is not None:\n            count = int(count * part)\n            loader = itertools.islice(loader, count)\n"
_BAR = "        loader = tqdm(loader, total=count)\n"


@pytest.mark.parametrize(
    ("made", "end", "before"),
    [
        pytest.param(_PART, "", "        if part is not None:", id="a part"),
        pytest.param(_PART + _BAR, "    print(len(loader.dataset))\n", "        if part is not None:", id="both, and the number of samples"),
    ],
)
def test_the_training_loader_is_whole_before_something_is_made_of_it(made: str, end: str, before: str) -> None:
    got = whole(
        imports="import itertools\nfrom tqdm import tqdm", model=_BN, defs=_ANEW.format(made, end), end="average = nn.Linear(8, 2)\nrefresh(loader, average, 0.5)"
    )
    assert f"        loader = ddp.whole(loader)\n{before}" in got and "in loader:" in got


def test_the_training_loader_is_whole_where_its_bar_is_made() -> None:
    got = whole(imports="from tqdm import tqdm", model=_BN, defs=_ANEW.format(_BAR, ""), end="average = nn.Linear(8, 2)\nrefresh(loader, average)")
    assert "loader = tqdm(ddp.whole(loader), total=count)" in got


@pytest.mark.parametrize(
    ("made", "end"),
    [
        pytest.param(_PART, "    for a, b in loader:\n        print(a)\n", id="another loop"),
        pytest.param(_PART, "    show(loader)\n", id="handed on"),
        pytest.param("        if part:\n            loader = val_loader\n", "", id="another loader"),
    ],
)
def test_a_variable_that_anything_else_reads_is_left_as_it_is(made: str, end: str) -> None:
    defs = "def show(loader):\n    print(next(iter(loader)))\nval_loader = None\n" + _ANEW.format(made, end)
    got = whole(imports="import itertools", model=_BN, defs=defs, end="average = nn.Linear(8, 2)\nrefresh(loader, average, 0.5)")
    assert "loader = ddp.whole(loader)" not in got
