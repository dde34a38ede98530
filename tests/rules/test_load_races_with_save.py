"""DPM402: files that have just been written are read after a barrier."""

from __future__ import annotations

import pytest

from tests.rules.program import after, found, whole

_SAVE = "torch.save(1, 'best.pt')"
_LOAD = "x = torch.load('best.pt', map_location='cpu')"


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({"end": _LOAD}, id="nothing is saved here"),
        pytest.param({"before": _LOAD, "end": _SAVE}, id="before training"),
        pytest.param({"epoch_end": _SAVE, "end": "import lib\nlib.load('best.pt')"}, id="another library's load"),
        pytest.param({"epoch_end": _SAVE, "end": "print('torch.load(p)')  # torch.load(p)"}, id="in a string and a comment"),
        pytest.param({"epoch_end": _SAVE, "defs": "def load(p):\n    return torch.load(p)", "before": "load('a')"}, id="a function called before training"),
        pytest.param({"epoch_end": _SAVE, "defs": "def load(p):\n    return load(torch.load(p))"}, id="a function that only calls itself"),
    ],
)
def test_nothing_to_say(parts: dict[str, str]) -> None:
    assert found("DPM402", **parts) == []


@pytest.mark.parametrize(
    ("imports", "load"),
    [
        pytest.param("", _LOAD, id="full name"),
        pytest.param("from torch import load as read", "x = read(f='best.pt', map_location='cpu')", id="from-import with alias, keyword"),
    ],
)
@pytest.mark.parametrize("module_level", [False, True], ids=["function", "module"])
def test_after_training(imports: str, load: str, module_level: bool) -> None:
    parts: dict[str, str | bool] = {"imports": imports, "epoch_end": _SAVE, "end": load, "module_level": module_level}
    assert len(found("DPM402", **parts)) == 1
    lines = [one.strip() for one in whole(**parts).splitlines()]
    assert lines[lines.index(load) - 1] == "ddp.barrier()"


def test_in_the_epoch_loop_and_once_a_statement() -> None:
    parts = {"epoch_end": f"{_SAVE}\nx = torch.load('a', map_location='cpu'), torch.load('b', map_location='cpu')"}
    assert len(found("DPM402", **parts)) == 1
    assert after(**parts) == ["ddp.save(1, 'best.pt')", "ddp.barrier()"]


def test_above_the_training_in_the_loop() -> None:
    assert found("DPM402", epoch_start=_LOAD, epoch_end=_SAVE) == ["torch.load('best.pt', map_location='cpu')"]


def test_in_a_function_and_a_method() -> None:
    defs = "class T:\n    def best(self, p):\n        return torch.load(p)\ndef best(p):\n    return T().best(p)"
    assert found("DPM402", epoch_end=_SAVE, defs=defs, end="best('a')") == ["torch.load(p)"]


def test_a_function_that_trains_first() -> None:
    defs = "def run(loss):\n    def later():\n        pass\n    loss.backward()\n    return torch.load('a')"
    assert found("DPM402", defs=defs, step="optimizer.zero_grad()\nrun(F.cross_entropy(model(x), y))\noptimizer.step()", end=_SAVE) == ["torch.load('a')"]


def test_training_in_the_other_branch() -> None:
    defs = "def run(loss, a):\n    if a:\n        loss.backward()\n    else:\n        torch.load('a')"
    assert found("DPM402", defs=defs, before="run(torch.ones(1), 0)", end=_SAVE) == []


def test_the_question_whether_the_file_is_there_comes_after_the_barrier() -> None:
    """Otherwise a rank that does not see it yet would not come to the barrier."""
    ask = "if os.path.exists('best.pt'):"
    lines = [one.strip() for one in whole(epoch_end=_SAVE, end=f"{ask}\n    {_LOAD}").splitlines()]
    assert lines[lines.index(ask) - 1] == "ddp.barrier()" and lines.count("ddp.barrier()") == 1
    lines = [one.strip() for one in whole(epoch_end=_SAVE, end=f"if epoch:\n    {_LOAD}").splitlines()]
    assert lines[lines.index(_LOAD) - 1] == "ddp.barrier()"
