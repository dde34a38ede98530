"""DPM401: checkpoints are written once, and hold the module."""

from __future__ import annotations

import pytest

from tests.rules.program import STEP, after, found, whole


@pytest.mark.parametrize(
    "end",
    [
        pytest.param("lib.save(1, 'a')", id="another library's"),
        pytest.param("print(\"torch.save(1, 'a')\")  # torch.save(1, 'a')", id="in a string and a comment"),
    ],
)
def test_nothing_to_say(end: str) -> None:
    assert found("DPM401", imports="import lib", end=end) == []


@pytest.mark.parametrize(
    ("imports", "line", "new"),
    [
        pytest.param("", "torch.save(1, 'a')", "ddp.save(1, 'a')", id="plain"),
        pytest.param("", "torch.save(obj=1, f='a')", "ddp.save(obj=1, f='a')", id="keywords"),
        pytest.param("from torch import save as keep", "keep(1, 'a')", "ddp.save(1, 'a')", id="from-import with alias"),
        pytest.param("import torch as th", "th.save(1, 'a')", "ddp.save(1, 'a')", id="alias"),
        pytest.param("", "torch.save(*[1, 'a'])", "ddp.save(*[1, 'a'])", id="hidden arguments"),
    ],
)
@pytest.mark.parametrize("module_level", [False, True], ids=["function", "module"])
def test_found_and_fixed(imports: str, line: str, new: str, module_level: bool) -> None:
    parts: dict[str, str | bool] = {"imports": imports, "end": line, "module_level": module_level}
    assert found("DPM401", **parts) == [line]
    assert after(**parts) == [new]


def test_in_a_method_and_a_function() -> None:
    defs = "class T:\n    def keep(self, x):\n        torch.save(x, 'a')\ndef keep(x, p):\n    torch.save(x, p)"
    assert after(defs=defs) == ["ddp.save(x, 'a')", "ddp.save(x, p)"]


@pytest.mark.parametrize(
    ("end", "lines"),
    [
        pytest.param("torch.save(model, 'a')", ["ddp.save(model.module, 'a')"], id="whole model"),
        pytest.param("torch.save({'m': model, 'e': 1}, 'a')", ["ddp.save({'m': model.module, 'e': 1}, 'a')"], id="in a dict"),
        pytest.param("torch.save((model, 1), 'a')", ["ddp.save((model.module, 1), 'a')"], id="in a tuple"),
        pytest.param(
            "s = {'m': model}\ntorch.save(s, 'a')\ntorch.save(s, 'b')", ["s = {'m': model.module}", "ddp.save(s, 'a')", "ddp.save(s, 'b')"], id="through a name"
        ),
        pytest.param("torch.save({'m': model.state_dict()}, 'a')", ["ddp.save({'m': model.module.state_dict()}, 'a')"], id="its state"),
    ],
)
def test_the_module_is_saved(end: str, lines: list[str]) -> None:
    assert after(end=end) == lines


@pytest.mark.parametrize(
    ("read", "new"),
    [
        pytest.param("s['m'].module.state_dict()", "ddp.save(ddp.unwrap(s['m']).state_dict(), 'b')", id="the wrapper is taken off"),
        pytest.param("s['e'].module", "ddp.save(s['e'].module, 'b')", id="another entry"),
        pytest.param("t['m'].module", "ddp.save(t['m'].module, 'b')", id="another dictionary"),
    ],
)
def test_what_a_saved_dictionary_holds_is_no_wrapper_any_more(read: str, new: str) -> None:
    defs = "t = {'m': lib.Thing()}\ndef keep(s):\n    torch.save(s, 'a')\n    torch.save(READ, 'b')\n"
    lines = after(imports="import lib", defs=defs.replace("READ", read), end="keep({'m': model, 'e': lib.Thing()})")
    assert lines == ["ddp.save(s, 'a')", new, "keep({'m': model.module, 'e': lib.Thing()})"]


def test_of_a_model_that_a_function_wraps_and_gives_back() -> None:
    body = "".join(f"    {line}\n" for line in ("optimizer = torch.optim.SGD(model.parameters(), lr=0.1)", "for epoch in range(3):"))
    inner = "".join(f"            {line}\n" for line in STEP.splitlines())
    defs = f"def fit(model, loader):\n{body}        for x, y in loader:\n{inner}    return model"
    parts = {"model": "model = fit(Net(), loader)", "optimizer": "", "epochs": "if True:", "batches": "if True:", "step": "pass"}
    assert "    ddp.save(model.module.state_dict(), 'a')" in whole(defs=defs, end="torch.save(model.state_dict(), 'a')", **parts).splitlines()


def test_of_a_model_that_a_method_named_as_one_of_a_module_gives_back() -> None:
    """``train()`` of a trainer is not that of its model."""
    inner = "".join(f"                {line}\n" for line in STEP.splitlines())
    defs = (
        "class Fit:\n    def __init__(self, loader):\n        self.loader, self.net = loader, Net()\n"
        "    def train(self):\n        model = self.net\n        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        f"        for epoch in range(3):\n            for x, y in self.loader:\n{inner}        return model\n"
    )
    parts = {"model": "model = Fit(loader).train()", "optimizer": "", "epochs": "if True:", "batches": "if True:", "step": "pass"}
    assert "    ddp.save(model.module.state_dict(), 'a')" in whole(defs=defs, end="torch.save(model.state_dict(), 'a')", **parts).splitlines()


def test_where_it_may_be_either() -> None:
    parts = {"defs": "def keep(m):\n    torch.save(m, 'a')", "model": "model = nn.DataParallel(Net())", "end": "keep(model)\nkeep(model.module)"}
    assert "ddp.save(ddp.unwrap(m), 'a')" in after(**parts)


@pytest.mark.parametrize(
    ("imports", "lines", "new"),
    [
        pytest.param("import threading", "threading.Thread(target=torch.save, args=(1, 'a')).start()", "threading.Thread(target=ddp.save, args=(1, 'a')).start()", id="thread"),
        pytest.param("from functools import partial", "keep = partial(torch.save, f='a')\nkeep(1)", "keep = partial(ddp.save, f='a')", id="partial"),
        pytest.param(
            "from concurrent.futures import ThreadPoolExecutor",
            "pool = ThreadPoolExecutor(1)\npool.submit(torch.save, model.state_dict(), 'a')",
            "pool.submit(ddp.save, model.module.state_dict(), 'a')",
            id="executor",
        ),
    ],
)
def test_handed_on(imports: str, lines: str, new: str) -> None:
    assert new in after(imports=imports, end=lines)


def test_one_writer_of_several() -> None:
    # the others of the table are called by the same line, and are not torch.save
    defs = "def text(x, p):\n    print(x)\nWRITERS = {'.txt': text, '.pt': torch.save}\ndef keep(x, p):\n    WRITERS[p[-3:]](x, p)"
    assert after(defs=defs, end="keep(1, 'a.pt')") == ["WRITERS = {'.txt': text, '.pt': ddp.save}"]
