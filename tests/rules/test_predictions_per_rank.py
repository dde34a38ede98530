"""DPM606: lists of predictions are put together again, in the order of the loader."""

from __future__ import annotations

import pytest

from tests.rules.program import STEP, after, found, hits

_LOADER = "val_loader = DataLoader(val_set, batch_size=16)"
_BATCHES = "for a, b in ddp.shard(val_loader, blocks=True):"


def _loop(body: str, start: str = "kept = []", end: str = "print(kept)") -> str:
    inside = "".join(f"    {line}\n" for line in body.splitlines())
    return f"{_LOADER}\n{start}\nfor a, b in val_loader:\n{inside}{end}"


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(_loop("n += model(a).sum().item()", "n = 0", "print(n)"), id="a counter"),
        pytest.param(_loop("table[b] += model(a).sum()", "table = torch.zeros(2)", "print(table)"), id="a table"),
        pytest.param(_loop("kept.append(model(a))\nprint(a)"), id="the loop runs in full on every rank"),
        pytest.param(_loop("n += 1\nkept.append(model(a))", "n, kept = 0, []", "print(n)"), id="a list that nobody reads"),
    ],
)
def test_nothing_to_gather(end: str) -> None:
    assert found("DPM606", end=end) == []


@pytest.mark.parametrize(
    ("body", "start"),
    [
        pytest.param("kept.append(model(a))", "kept = []", id="append"),
        pytest.param("kept.extend(model(a).tolist())", "kept = list()", id="extend"),
        pytest.param("kept = torch.cat((kept, model(a)))", "kept = torch.tensor([])", id="cat"),
        pytest.param("if kept is None:\n    kept = model(a)\nelse:\n    kept = torch.cat([kept, model(a)], dim=0)", "kept = None", id="cat from None"),
    ],
)
@pytest.mark.parametrize("module_level", [False, True], ids=["function", "module"])
def test_evaluation_in_blocks(body: str, start: str, module_level: bool) -> None:
    got = after(end=_loop(body, start), module_level=module_level)
    assert got[0] == _BATCHES and got[-1] == "kept = ddp.gather_all(kept)"


def test_with_counters_beside_them() -> None:
    body = "n += len(a)\nkept.append(model(a))\nothers += b.tolist()"
    got = after(end=_loop(body, "n, kept, others = 0, [], []", "print(n, kept, others)"))
    assert [got[0], *got[2:]] == [_BATCHES, "n = ddp.sum_all(n)", "kept, others = ddp.gather_all(kept, others)"]


def test_the_messages() -> None:
    (one,) = hits("DPM601", end=_loop("kept.append(model(a))"))
    assert one.message == "the batches are dealt out to the ranks and come together in their order"
    (one,) = hits("DPM606", end=_loop("kept.append(model(a))"))
    assert one.message == "kept would hold one rank's part of the samples"


def _training(line: str, start: str = "kept = []", end: str = "print(kept)") -> dict[str, str]:
    return {"epoch_start": start, "step": f"{STEP}{line}\n", "epoch_end": end}


def test_lists_of_a_training_loop() -> None:
    assert after(**_training("kept.extend(y.tolist())")) == ["kept = ddp.gather_all(kept)"]
    assert after(**_training("kept.append(y)", end="kept = torch.cat(kept)\nprint(kept)")) == ["kept = ddp.gather_all(kept)"]


@pytest.mark.parametrize(
    ("start", "gathered"),
    [
        pytest.param("torch.tensor(())", True, id="an empty tuple"),
        pytest.param("torch.tensor((), device='cpu').float()", True, id="moved and cast"),
        pytest.param("torch.zeros(2).new_empty((0, 2))", True, id="like another tensor"),
        pytest.param("torch.ones(no, 2)", True, id="as many rows as a variable says"),
        pytest.param("nothing()", True, id="by a function"),
        pytest.param("torch.ones(1, 2)", False, id="one row"),
        pytest.param("torch.zeros(1, 0)", False, id="one empty row"),
    ],
)
def test_what_grows_from_nothing(start: str, gathered: bool) -> None:
    """Whether it begins without rows is known from its execution, however it is written."""
    defs = """
        no = 0

        def nothing():
            return torch.zeros(size=(0, 2))
    """
    parts = _training("kept = torch.cat((kept, model(x).detach()), 0)", start=f"kept = {start}")
    assert ("kept = ddp.gather_all(kept)" in after(defs=defs, **parts)) is gathered


def test_an_array_that_grows_from_nothing() -> None:
    parts = _training("kept = np.append(kept, y.numpy())", start="kept = np.ones(shape=0)")
    assert "kept = ddp.gather_all(kept)" in after(defs="import numpy as np", **parts)


def test_rows_one_by_one() -> None:
    parts = _training("for p, t in zip(out.argmax(1).tolist(), y.tolist()):\n    kept.append((p, t))")
    assert "kept = ddp.gather_all(kept)" in after(**{**parts, "step": parts["step"].replace("kept.append((p, t))", "kept.append(p)")})
    listed = _training("for part in [out, out]:\n    kept.append(part.mean().item())")
    assert found("DPM606", **listed) == []


def test_rows_in_an_attribute() -> None:
    parts = _training("h.kept.extend(y.tolist())", start="h.kept = []", end="print(h.kept)")
    assert "h.kept = ddp.gather_all(h.kept)" in after(defs="class H:\n    pass\nh = H()", **parts)


def test_lists_with_one_element_a_batch_are_not_gathered() -> None:
    assert found("DPM606", **_training("kept.append(y)")) == []
    assert found("DPM606", **_training("kept += [y.sum()]")) == []


def test_a_list_that_goes_on_from_epoch_to_epoch() -> None:
    assert found("DPM606", before="kept = []", step=f"{STEP}kept.extend(y.tolist())\n", end="print(kept)") == []


def test_a_loop_that_trains_and_evaluates() -> None:
    """What an undivided loader gave is whole already."""
    defs = """
        def run(model, batches, optimizer=None):
            kept = []
            for x, y in batches:
                loss = F.cross_entropy(model(x), y)
                if optimizer is not None:
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                kept += y.tolist()
            return kept
    """
    parts = {"batches": "run(model, loader, optimizer)", "step": "", "epoch_end": "print(run(model, val_loader))", "before": _LOADER}
    assert "kept = ddp.gather_all(kept, over=batches)" in after(defs=defs, **parts)


_SCORED = "kept.extend(y.tolist())\nother.append(y)"
_SCORES = "import sklearn.metrics as m\nprint(m.accuracy_score(kept, other))"


def test_lists_that_do_not_fit_together_are_left_together() -> None:
    parts = _training(_SCORED, start="kept, other = [], []", end=_SCORES)
    (one,) = hits("DPM606", **parts)
    assert not one.edits
    assert one.message == "kept would hold one rank's part of the samples, and other beside it does"
    assert not any("gather_all" in line for line in after(**parts))
    apart = _training(_SCORED, start="kept, other = [], []", end="print(kept)\nprint(other)")
    assert "kept = ddp.gather_all(kept)" in after(**apart)


_PUTS = """
def put(kept, idx, names):
    kept.extend([names[i] for i in idx.tolist()])


def add(rows, where):
    where += rows.tolist()


def put_one(kept, idx):
    kept.append(idx.float().mean().item())


def put_new(kept, idx):
    if len(kept) < 9:
        kept.extend(idx.tolist())


def put_pair(kept, idx):
    kept.extend([idx.min().item(), idx.max().item()])


def put_later(kept, idx):
    kept.extend(idx.tolist())
    yield


def put_away(kept, idx):
    kept.extend(idx.tolist())
    return kept


class Decoder:
    def __put(self, kept, idx):
        kept.extend(idx.tolist())

    def put(self, kept, idx):
        self.__put(kept, idx)

    def put_self(self, kept, idx):
        kept.extend(idx.tolist())
"""


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("put(kept, y, ['a', 'b', 'c'])", id="a function"),
        pytest.param("add(y, where=kept)", id="by a keyword, +="),
        pytest.param("decoder.put_self(kept, y)", id="a method"),
    ],
)
def test_lists_that_a_function_fills_in_a_training_loop(line: str) -> None:
    assert after(defs=_PUTS, before="decoder = Decoder()", **_training(line)) == ["kept = ddp.gather_all(kept)"]


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("put_one(kept, y)", id="one a batch"),
        pytest.param("put_new(kept, y)", id="a function that asks how many there are"),
        pytest.param("put_pair(kept, y)", id="two a batch"),
        pytest.param("for nothing in put_later(kept, y): pass", id="a generator"),
        pytest.param("put_away(kept, y)", id="a function that gives it away"),
        pytest.param("put(kept, kept, [])", id="twice"),
    ],
)
def test_lists_of_which_a_function_does_more_are_left(line: str) -> None:
    assert after(defs=_PUTS, before="decoder = Decoder()", **_training(line)) == []


_IN_ORDER = "loader = DataLoader(train_set, batch_size=16)"
_OUT = STEP.replace("loss = F.cross_entropy(model(x), y)", "out = model(x)\nloss = F.cross_entropy(out, y)")


def _unshuffled(line: str, start: str = "kept = []", end: str = "print(kept)") -> dict[str, str]:
    return {"loader": _IN_ORDER, "epoch_start": start, "step": f"{_OUT}{line}\n", "epoch_end": end}


@pytest.mark.parametrize(
    ("line", "start"),
    [
        pytest.param("kept.extend(out.argmax(1).tolist())", "kept = []", id="extend"),
        pytest.param("kept += [p.item() for p in out.argmax(1)]", "kept = []", id="one by one"),
        pytest.param("kept += list(y)", "kept = []", id="list"),
        pytest.param("kept = torch.cat((kept, out.detach()))", "kept = torch.tensor(())", id="cat"),
        pytest.param("for p, t in zip(out.argmax(1).tolist(), y.tolist()):\n    kept.append((p, t))", "kept = []", id="pairs"),
        pytest.param("if epoch > 1:\n    kept.extend(y.tolist())", "kept = []", id="under a test that all ranks answer alike"),
    ],
)
def test_an_element_a_sample_in_the_order_of_a_loader_that_does_not_shuffle(line: str, start: str) -> None:
    assert after(**_unshuffled(line, start))[1:] == ['kept = ddp.gather_all(kept, order="samples")']
    assert after(**{**_unshuffled(line, start), "loader": f"{_IN_ORDER[:-1]}, shuffle=True)"}) == ["kept = ddp.gather_all(kept)"]


def test_an_attribute_and_a_list_of_batches_in_the_order_of_the_loader() -> None:
    parts = _unshuffled("h.kept.extend(y.tolist())\nrows.append(out.detach())", start="h.kept = []\nrows = []", end="print(h.kept, torch.cat(rows))")
    lines = ['rows = ddp.gather_all(rows, order="batches")', 'h.kept = ddp.gather_all(h.kept, order="samples")']
    assert sorted(after(defs="class H:\n    pass\nh = H()", **parts)[1:]) == sorted(lines)


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("kept.extend(out.view(-1).tolist())", id="several a sample"),
        pytest.param("kept.extend(out[y > 0].tolist())", id="some samples"),
        pytest.param("kept.extend([v.item() for v in y if v > 0])", id="some of a comprehension"),
        pytest.param("for p in out.argmax(1).tolist():\n    if p:\n        kept.append(p)", id="some of a loop"),
        pytest.param("for p in out.argmax(1).tolist():\n    if p:\n        continue\n    kept.append(p)", id="some of a loop that goes on"),
        pytest.param("for p in out.argmax(1).tolist():\n    for _ in range(2):\n        kept.append(p)", id="twice a sample"),
        pytest.param("kept.extend(y.sort().values.tolist())", id="an order of their own"),
        pytest.param("if loss.item() > 0.1:\n    kept.extend(y.tolist())", id="some batches of a rank's own"),
        pytest.param("for p, t in zip(out.argmax(1).tolist(), y.tolist()):\n    kept[t].append(p)", id="a list by the sample"),
        pytest.param("kept.extend(y.tolist())\nothers.extend(out.view(-1).tolist())", id="beside one of an order that is not known"),
    ],
)
def test_an_order_that_is_not_known_is_told(line: str) -> None:
    parts = _unshuffled(line, start="kept = {0: [], 1: []}\nothers = []" if "kept[t]" in line else "kept = []\nothers = []", end="print(kept)\nprint(others)")
    names = "kept, others" if "others" in line else "kept"
    assert f"{names} = ddp.gather_all({names})" in after(**parts)
    told = [f for f in hits("DPM606", **parts) if not f.edits]
    assert [f.message for f in told] == [f"{names} will hold the samples of rank 0 first, then those of rank 1 and so on, not in the order of the loader"]
    assert not [f for f in hits("DPM606", **{**parts, "loader": f"{_IN_ORDER[:-1]}, shuffle=True)"}) if not f.edits]
