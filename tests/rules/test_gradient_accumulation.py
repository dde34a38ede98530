"""DPM308: gradients are exchanged once in a window."""

from __future__ import annotations

import pytest

from tests.rules.program import after, found, hits

_BATCHES = "for i, (x, y) in enumerate(loader):"
_STEP = "loss = F.cross_entropy(model(x), y) / 4\nloss.backward()\n"
_WINDOW = _STEP + "if (i + 1) % 4 == 0:\n    optimizer.step()\n    optimizer.zero_grad()"
_FLUSH = "if len(loader) % 4:\n    optimizer.step()\n    optimizer.zero_grad()"
_DEFS = """\
STEPS = 0
def forward(net, x): return net(x)
def total(x): return x
"""
_UPDATE = """\
def update(optimizer):
    global STEPS
    STEPS += 1
    optimizer.step()
    optimizer.zero_grad()
"""


@pytest.mark.parametrize(
    ("batches", "step"),
    [
        pytest.param(_BATCHES, _STEP + "optimizer.step()", id="a step for each backward"),
        pytest.param(_BATCHES, _STEP + "if y.sum() > 3:\n    optimizer.step()", id="a test that counts nothing"),
        pytest.param(_BATCHES, _STEP + "if (i + 1) % 4 == 0:\n    print(i)\noptimizer.step()", id="a test of something else"),
        pytest.param(_BATCHES, _STEP + "optimizer.step()\nfor k in [1, 2]:\n    print(k)", id="a loop without backward"),
        pytest.param(
            _BATCHES, "for k in range(2):\n    optimizer.zero_grad()\n    F.mse_loss(model(x), y).backward()\n    optimizer.step()", id="a step in each turn"
        ),
        pytest.param(
            _BATCHES, _STEP + "torch.nn.utils.clip_grad_norm_(model.parameters(), 1)\nif i % 4 == 3:\n    optimizer.step()", id="every batch is clipped"
        ),
        pytest.param(_BATCHES, "print('if i % 4: loss.backward()')  # if i % 4:\n" + _STEP + "optimizer.step()", id="in a string and a comment"),
    ],
)
def test_nothing_to_say(batches: str, step: str) -> None:
    assert found("DPM308", defs=_DEFS, batches=batches, step=step) == []


@pytest.mark.parametrize(
    ("step", "sync"),
    [
        pytest.param(_WINDOW, "(i + 1) % 4 == 0", id="enumerate"),
        pytest.param(_WINDOW.replace("(i + 1) % 4 == 0", "not (i + 1) % 4"), "not (i + 1) % 4", id="not"),
        pytest.param(_WINDOW.replace("== 0", "== 0 and epoch < 2"), "(i + 1) % 4 == 0", id="one of two tests"),
        pytest.param(_WINDOW.replace("== 0", "== 0 or i + 1 == len(loader)"), "(i + 1) % 4 == 0 or i + 1 == len(loader)", id="the last batch is in the test"),
        pytest.param(_STEP + "if (i + 1) % 4 == 0:\n    update(optimizer)", "(i + 1) % 4 == 0", id="a function steps"),
        pytest.param(
            _STEP + "if (i + 1) % 4 == 0:\n    nn.utils.clip_grad_norm_(model.parameters(), 1.0)\nif (i + 1) % 4 == 0:\n    optimizer.step()",
            "(i + 1) % 4 == 0",
            id="two tests alike",
        ),
        pytest.param("last = i % 4 == 3\n" + _STEP + "if last:\n    optimizer.step()", "last", id="a flag that is set before"),
        pytest.param(_STEP + "last = i % 4 == 3\nif last:\n    optimizer.step()", "i % 4 == 3", id="a flag that is set after"),
        pytest.param(_STEP + "n += 1\nif n % 4 == 0:\n    optimizer.step()", "(n + 1) % 4 == 0", id="a counter that goes on after forward"),
        pytest.param(_STEP + "n += 1\nif n == 4:\n    optimizer.step()\n    n = 0", "n + 1 == 4", id="a counter that begins again"),
        pytest.param(
            _STEP + "n += 1\nlast = n % 4 == 0 and True\nif not last:\n    pass\nelif True:\n    pass\nif n % 4 == 0 or -n == 3:\n    optimizer.step()",
            "(n + 1) % 4 == 0 or -(n + 1) == 3",
            id="in parts of an or",
        ),
        pytest.param("n += 1\n" + _STEP + "if n % 4 == 0:\n    optimizer.step()", "n % 4 == 0", id="a counter that goes on before forward"),
        pytest.param(
            "if epoch:\n    pass\nwith torch.enable_grad():\n    loss = F.cross_entropy(forward(model, x), y)\n"
            "if epoch:\n    (loss / 2).backward()\nelse:\n    loss.backward()\nif i % 2 == 1:\n    optimizer.step()",
            "i % 2 == 1",
            id="backward in both branches",
        ),
        pytest.param("try:\n    " + _WINDOW.replace("\n", "\n    ") + "\nexcept KeyboardInterrupt:\n    raise", "(i + 1) % 4 == 0", id="inside a try"),
    ],
)
def test_window(step: str, sync: str) -> None:
    parts = {"defs": _DEFS + _UPDATE * ("update" in step), "before": "n = 0", "batches": _BATCHES, "step": step.replace("\nelif True:\n    pass", "")}
    lines = after(**parts)
    assert f"with ddp.accumulate(model, sync={sync}):" in lines
    assert len(found("DPM308", **parts)) == 1


@pytest.mark.parametrize(
    ("batches", "sync"),
    [
        pytest.param("for i, (x, y) in enumerate(loader):", "(i + 1) % 4 == 0 or i + 1 == len(loader)", id="from 0"),
        pytest.param("for i, (x, y) in enumerate(loader, 1):", "(i + 1) % 4 == 0 or i == len(loader)", id="from 1"),
        pytest.param("for i, (x, y) in enumerate(loader, start=1):", "(i + 1) % 4 == 0 or i == len(loader)", id="from 1 by keyword"),
        pytest.param("for i, (x, y) in enumerate(tqdm(loader)):", "(i + 1) % 4 == 0 or i + 1 == len(loader)", id="a progress bar"),
    ],
)
def test_flush_after_the_loop(batches: str, sync: str) -> None:
    lines = after(imports="from tqdm import tqdm", batches=batches, step=_WINDOW, epoch_end=_FLUSH)
    assert f"with ddp.accumulate(model, sync={sync}):" in lines


def test_flush_that_the_test_knows() -> None:
    step = _WINDOW.replace("== 0:", "== 0 or i == len(loader) - 1:")
    assert "with ddp.accumulate(model, sync=(i + 1) % 4 == 0 or i == len(loader) - 1):" in after(batches=_BATCHES, step=step, epoch_end=_FLUSH)


def test_flush_of_two_tests() -> None:
    step = _STEP + "if (i + 1) % 4 == 0 and i % 3 == 0:\n    optimizer.step()"
    lines = after(batches=_BATCHES, step=step, epoch_end=_FLUSH)
    assert "with ddp.accumulate(model, sync=(i + 1) % 4 == 0 and i % 3 == 0 or i + 1 == len(loader)):" in lines


def test_inner_loop() -> None:
    inner = "for k in range({n}):\n    loss = F.cross_entropy(model(x + k), y)\n    (loss / 4).backward()\noptimizer.step()\noptimizer.zero_grad()"
    assert "with ddp.accumulate(model, sync=k + 1 == 4):" in after(step=inner.format(n=4))
    assert "with ddp.accumulate(model, sync=k + 1 == (STEPS + 4)):" in after(defs=_DEFS, step=inner.format(n="STEPS + 4"))


def test_two_models_and_a_method() -> None:
    defs = """\
    class Task:
        def __init__(self):
            self.model = Net()
            self.head = nn.Linear(2, 2)
            self.optimizer = torch.optim.SGD(list(self.model.parameters()) + list(self.head.parameters()), lr=0.1)

        def loss(self, x, y):
            return F.cross_entropy(self.head(self.model(x)), y)

        def run(self, loader):
            for epoch in range(3):
                for i, (x, y) in enumerate(loader):
                    self.loss(x, y).backward()
                    if i % 2 == 1:
                        self.optimizer.step()
                        self.optimizer.zero_grad()
    """
    lines = after(defs=defs, model="task = Task()", optimizer="task.run(loader)", epochs="if True:", batches="if True:", step="pass")
    assert "with ddp.accumulate(self.head, self.model, sync=i % 2 == 1):" in lines


_REASONS = {
    "beside": "the forward pass does not stand beside backward()",
    "test": "backward() stands under a test",
    "next": "gradients are used before backward() in the next turn",
    "name": "the model of the forward pass has no name there",
    "inner": "the last turn of the inner loop is not known beforehand",
    "ranks": "the number of turns may differ between ranks",
    "before": "it is not known before the forward pass whether the gradients of the turn will be used",
    "flush": "gradients are used after the loop, whose last batch is not known beforehand",
    "count": "gradients are used after the loop, whose batches are not counted by enumerate()",
    "length": "gradients are used after the loop, whose length is not known beforehand",
}


@pytest.mark.parametrize(
    ("reason", "parts"),
    [
        pytest.param("test", {"step": _WINDOW.replace("loss.backward()", "if i:\n    loss.backward()")}, id="a test round backward"),
        pytest.param("test", {"step": _WINDOW.replace("loss.backward()", "try:\n    loss.backward()\nexcept ValueError:\n    pass")}, id="a try round backward"),
        pytest.param(
            "test", {"step": _WINDOW.replace("loss.backward()", "with torch.enable_grad():\n    if i:\n        loss.backward()")}, id="a test in a with"
        ),
        pytest.param("next", {"step": "if i % 4 == 0:\n    optimizer.step()\n" + _STEP}, id="a step at the beginning of the next turn"),
        pytest.param("before", {"step": _STEP + "n += 1\nn += 1\nif n % 4 == 0:\n    optimizer.step()"}, id="two steps of a counter"),
        pytest.param("before", {"step": _STEP + "if i:\n    n += 1\nif n % 4 == 0:\n    optimizer.step()"}, id="a counter under a test"),
        pytest.param("before", {"step": _STEP + "n -= 1\nif n % 4 == 0:\n    optimizer.step()", "setup": "n = 8"}, id="a counter that falls"),
        pytest.param("before", {"step": _STEP + "a, n = 1, i\nif n % 4 == 0:\n    optimizer.step()"}, id="a tuple"),
        pytest.param("before", {"step": _STEP + "n = i\nm = n\nif m % 4 == 0:\n    optimizer.step()"}, id="a name of a name"),
        pytest.param("before", {"step": _STEP + "if total(i) % 4 == 0:\n    optimizer.step()"}, id="a call"),
        pytest.param("before", {"step": _STEP + "if (i if i else i) % 4 == 0:\n    optimizer.step()"}, id="another expression"),
        pytest.param("before", {"step": _STEP + "if -total(i) % 4 or not 0 < total(i) % 4:\n    optimizer.step()"}, id="a call inside"),
        pytest.param("before", {"step": _STEP + "if (loss.item() + i) % 4 == 0:\n    optimizer.step()"}, id="the loss"),
        pytest.param("before", {"defs": _DEFS + _UPDATE, "step": _STEP + "if STEPS % 4 == 0:\n    update(optimizer)"}, id="a global that a function counts"),
        pytest.param("before", {"step": _WINDOW + "\ntask.step()"}, id="an unknown step in every turn"),
        pytest.param("before", {"step": _WINDOW + "\nif i % 3 == 0:\n    print(model.fc.weight.grad)"}, id="gradients read in another turn"),
        pytest.param(
            "before", {"step": _WINDOW + "\nif i % 3 == 0:\n    optimizer.step()"}, id="steps under different tests"
        ),
        pytest.param("inner", {"step": "for k in range(1, 4):\n    F.mse_loss(model(x), y).backward()\noptimizer.step()"}, id="an inner loop from 1"),
        pytest.param(
            "inner", {"step": "for k in range(4):\n    F.mse_loss(model(x), y).backward()\n    if k > i:\n        break\noptimizer.step()"}, id="left early"
        ),
        pytest.param("inner", {"step": "for k in range(total(4)):\n    F.mse_loss(model(x), y).backward()\noptimizer.step()"}, id="an unknown end"),
        pytest.param(
            "inner", {"step": "for k in range(4):\n    try:\n        F.mse_loss(model(x), y).backward()\n    except ValueError:\n        pass\noptimizer.step()"},
            id="a backward that may fail",
        ),
        pytest.param(
            "ranks", {"step": "m = y[0].item()\nfor k in range(m):\n    F.mse_loss(model(x), y).backward()\noptimizer.step()"}, id="the data say how often"
        ),
        pytest.param("flush", {"step": "if i > 3:\n    break\n" + _WINDOW, "epoch_end": _FLUSH}, id="left early and flushed"),
        pytest.param("count", {"batches": "for x, y in loader:", "step": _STEP + "n += 1\nif n % 4 == 0:\n    optimizer.step()", "epoch_end": _FLUSH}, id="flushed"),
        pytest.param("length", {"batches": "for i, (x, y) in enumerate(islice(loader, 3)):", "step": _WINDOW, "epoch_end": _FLUSH}, id="a part of the loader"),
        pytest.param("length", {"batches": "for i, (x, y) in enumerate(loader, epoch):", "step": _WINDOW, "epoch_end": _FLUSH}, id="counted from elsewhere"),
        pytest.param("name", {"step": "for net in [model]:\n    loss = F.cross_entropy(net(x), y)\n" + _WINDOW.partition("\n")[2]}, id="a model of an inner loop"),
    ],
)  # fmt: skip
def test_left_with_a_reason(reason: str, parts: dict[str, str]) -> None:
    given = {"imports": "from itertools import islice\nfrom helpers import task", "defs": _DEFS, "before": "n = 0", "batches": _BATCHES} | parts
    (hit,) = hits("DPM308", **given)
    assert not hit.edits
    assert _REASONS[reason] in hit.message


def test_forward_elsewhere() -> None:
    step = "if i:\n    loss.backward()\n    if i % 4 == 0:\n        optimizer.step()"
    (hit,) = hits("DPM308", batches=_BATCHES, step="loss = F.cross_entropy(model(x), y)\n" + step)
    assert _REASONS["beside"] in hit.message
