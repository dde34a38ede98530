"""DPM331: means over padding."""

from __future__ import annotations

import pytest

from dpmigrate.model import Severity
from tests.rules.program import found, hits

_IMPORTS = "from torch.nn.utils.rnn import pad_sequence\nimport torch.nn.utils.rnn as rnn\nfrom functools import partial"
_PAD = """
def pad(samples):
    xs, ys = zip(*samples)
    return pad_sequence(xs, batch_first=True), pad_sequence(ys, batch_first=True), torch.tensor([len(x) for x in xs])
"""
_STEP = "optimizer.zero_grad()\n{}\nloss.backward()\noptimizer.step()"
_LOSS = "loss = F.l1_loss(model(x), y)"


def _parts(
    line: str = _LOSS, defs: str = _PAD, collate: str = "collate_fn=pad", batches: str = "for x, y, n in loader:", loader: str = "", **more: str
) -> dict[str, str]:
    loader = loader or f"loader = DataLoader(train_set, batch_size=16, {collate})"
    return {"imports": _IMPORTS, "defs": defs, "loader": loader, "batches": batches, "step": _STEP.format(line), **more}


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param(_parts(loader="loader = DataLoader(train_set, batch_size=16)"), id="no collate function"),
        pytest.param(_parts(imports="from data import pad", defs=""), id="a collate function of another file"),
        pytest.param(_parts("loss = F.l1_loss(model(x), n)"), id="an element that is not padded"),
        pytest.param(_parts("loss = F.cross_entropy(model(x), y, ignore_index=0)"), id="without the padding"),
        pytest.param(_parts("mask = y > 0\nloss = (F.l1_loss(model(x), y, reduction='none') * mask).sum() / mask.sum()"), id="with a mask"),
        pytest.param(_parts("loss = (model(x) - y).abs().sum() / y.size(0)"), id="a sum"),
        pytest.param(_parts("loss = model(x).mean() * y.size(1)"), id="only its size"),
        pytest.param(_parts(defs="def pad(samples):\n    out = torch.zeros(len(samples), 40)\n    return out, out, out"), id="a fixed length"),
        pytest.param(_parts(defs="def pad(samples):\n    return make(samples)"), id="of which nothing is known"),
        pytest.param(_parts(defs="def pad(samples):\n    out = make(samples)\n    return out"), id="of which nothing is known, by a name"),
        pytest.param(_parts(defs="def pad(samples):\n    return {'x': pad_sequence(samples)}", batches="for b in loader:", line="loss = F.l1_loss(model(b['x']), b['y'])"), id="another item"),
        pytest.param(_parts(defs="def pad(samples):\n    return (pad_sequence(samples),)"), id="fewer elements"),
        pytest.param(_parts("y = make()\nloss = F.l1_loss(model(0), y)", batches="for b in loader:"), id="not of the batch"),
    ],
)  # fmt: skip
def test_nothing_to_say(parts: dict[str, str]) -> None:
    assert found("DPM331", **parts) == []


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param(_parts(), id="function"),
        pytest.param(_parts("loss = nn.L1Loss()(input=model(x), target=y)"), id="module, by keyword"),
        pytest.param(_parts("loss = (model(x) - y).abs().mean()"), id="by hand"),
        pytest.param(_parts("loss = torch.mean(torch.abs(model(x) - y))"), id="by hand, by function"),
        pytest.param(_parts("loss = F.cross_entropy(model(x).view(-1, 9), y.view(-1))"), id="tokens"),
        pytest.param(_parts("t = y[:, 1:] if os.environ else y[1:]\nloss = F.l1_loss(model(x), t)"), id="one side or the other"),
        pytest.param(_parts("a, b = x.cuda(), y.cuda()\nloss = F.l1_loss(model(a), b)"), id="moved"),
        pytest.param(_parts("a, b, c = (t.cuda() for t in batch)\nloss = F.l1_loss(model(a), b)", batches="for batch in loader:"), id="moved together"),
        pytest.param(_parts("a, b, c = tuple(t.cuda() for t in batch)\nloss = F.l1_loss(model(a), b)", batches="for batch in loader:"), id="moved as a tuple"),
        pytest.param(_parts("loss = F.l1_loss(model(batch[0]), batch[1][:, 1:])", batches="for i, batch in enumerate(loader):"), id="an item"),
        pytest.param(_parts(batches="for i, (x, y, n) in enumerate(loader):"), id="enumerated"),
        pytest.param(_parts("x, y, n = next(it)\nloss = F.l1_loss(model(x), y)", batches="it = iter(loader)\nfor i in range(9):"), id="drawn"),
        pytest.param(_parts(loader="loader = DataLoader(train_set, 16, False, None, None, 0, pad)"), id="positional"),
        pytest.param(_parts(collate="collate_fn=lambda s: (rnn.pad_sequence(s), rnn.pad_sequence(s), 1)"), id="lambda, qualified"),
        pytest.param(
            _parts(defs="class Pad:\n    def __call__(self, s):\n        return pad_sequence(s), pad_sequence(s), 1", collate="collate_fn=Pad()"), id="an object"
        ),
        pytest.param(
            _parts(defs="def pad(s):\n    batch = pad_sequence(s), pad_sequence(s), 1\n    return batch"), id="returned by a name"
        ),
        pytest.param(
            _parts(defs="def pad(s):\n    batch = pad_sequence(s)\n    return batch"), id="the whole batch"
        ),
        pytest.param(
            _parts(defs="def pad(s):\n    n = max(len(a) for a in s)\n    out = torch.zeros(len(s), n)\n    for i, a in enumerate(s):\n        out[i, :len(a)] = a\n    return 1, out, 2"), id="into zeros"
        ),
        pytest.param(
            _parts(defs="def longer(a, n):\n    return F.pad(a, (0, n - len(a)))\ndef pad(s):\n    n = torch.tensor([len(a) for a in s]).max()\n    return 1, torch.stack([longer(a, n) for a in s]), 2"), id="by a function"
        ),
        pytest.param(
            _parts(defs="def pad(s):\n    return {'x': 1, 'y': pad_sequence(s)}", batches="for b in loader:", line="loss = F.l1_loss(model(b['x']), b['y'])"), id="an item of a dict"
        ),
    ],
)  # fmt: skip
def test_found(parts: dict[str, str]) -> None:
    (told,) = hits("DPM331", **parts)
    assert told.severity is Severity.WARNING
    assert not told.edits


def test_in_a_function_that_gets_the_target() -> None:
    defs = _PAD + "def compare(out, target):\n    return F.l1_loss(out, target)"
    assert found("DPM331", **_parts("loss = compare(model(x), y)", defs=defs)) == ["F.l1_loss(out, target)"]


def test_told_once() -> None:
    assert len(found("DPM331", **_parts(_LOSS + "\nloss.backward(retain_graph=True)"))) == 1
