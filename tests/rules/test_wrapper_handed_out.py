"""DPM127: foreign code is given the module."""

from __future__ import annotations

import pytest

from tests.rules.program import STEP, after, found

_IMPORTS = "import copy\nfrom lib import EMA, fit, show"
_DP = "model = nn.DataParallel(Net())"


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({"before": "e = EMA(model)"}, id="before the wrap, which comes after it"),
        pytest.param({"end": "copy.deepcopy(optimizer)"}, id="something else is given"),
        pytest.param({"end": "print(model)"}, id="a builtin"),
        pytest.param({"end": "mine(model)", "defs": "def mine(m):\n    pass"}, id="a function of this file"),
        pytest.param({"model": _DP, "end": "copy.deepcopy(model.module)"}, id="the module already"),
        pytest.param({"end": "fit(model, optimizer)"}, id="a function that may train"),
        pytest.param({"end": "fit(opt=optimizer, net=model)"}, id="the same by keyword"),
        pytest.param({"step": STEP.replace("model(x), y)", "model(x), y) + show(model)")}, id="in the loss"),
        pytest.param({"step": "a = show(model)\nb = a * 2\n" + STEP.replace("model(x), y)", "model(x), y) + b")}, id="in the loss through names"),
        pytest.param({"step": STEP.replace("loss.backward()", "(loss + 0 * show(model)).backward()")}, id="in the backward itself"),
        pytest.param({"end": "[show][0](model)"}, id="an element of a list"),
        pytest.param({"end": "print('EMA(model)')  # EMA(model)"}, id="in a string and a comment"),
        pytest.param({"model": _DP, "end": "isinstance(model, Net)"}, id="a question that DataParallel answered so too"),
        pytest.param({"end": "isinstance(optimizer, Net)"}, id="a question about something else"),
        pytest.param({"end": "lib = __import__('lib')\nlib.add_graph(model)"}, id="a function that is called so"),
    ],
)
def test_nothing_to_say(parts: dict[str, str]) -> None:
    if "lib.add_graph" in parts.get("end", ""):
        parts = {"end": "lib.add_graph(3)", "imports": "import lib"}
    assert found("DPM127", **{"imports": _IMPORTS, **parts}) == []


@pytest.mark.parametrize(
    ("line", "new"),
    [
        pytest.param("e = copy.deepcopy(model)", "e = copy.deepcopy(model.module)", id="positional"),
        pytest.param("e = EMA(net=model)", "e = EMA(net=model.module)", id="keyword"),
        pytest.param("show(model, model)", "show(model.module, model.module)", id="twice"),
        pytest.param("n = isinstance(model, Net)", "n = isinstance(model.module, Net)", id="isinstance"),
        pytest.param("n = type(model).__name__", "n = type(model.module).__name__", id="type"),
        pytest.param("w.add_graph(model, torch.ones(1, 8))", "w.add_graph(model.module, torch.ones(1, 8))", id="a forward on rank 0"),
    ],
)
@pytest.mark.parametrize("module_level", [False, True], ids=["function", "module"])
def test_found_and_fixed(line: str, new: str, module_level: bool) -> None:
    parts: dict[str, str | bool] = {"imports": _IMPORTS, "setup": "w = show()", "end": line, "module_level": module_level}
    assert set(found("DPM127", **parts)) == {"model"}
    assert after(**parts) == [new]


@pytest.mark.parametrize(
    ("step", "line"),
    [
        pytest.param("show(model)", "show(model.module)", id="nothing is kept"),
        pytest.param("score = show(model)", "score = show(model.module)", id="a value that is no loss"),
        pytest.param("best += show(model)", "best += show(model.module)", id="added up"),
        pytest.param("if show(model) > 1:\n    print(3)", "if show(model.module) > 1:", id="in a test"),
        pytest.param("ema.update(model)", "ema.update(model.module)", id="an object of another file"),
    ],
)
def test_inside_training(step: str, line: str) -> None:
    assert line in after(imports=_IMPORTS, before="best, ema = 0, EMA(3)", step=STEP + step)


@pytest.mark.parametrize(
    ("line", "new"),
    [
        pytest.param("n = type(model).__name__", "n = type(model.module).__name__", id="its name"),
        pytest.param("n = type(model)", "", id="the class itself"),
        pytest.param("n = type(model).__name__ == 'DataParallel'", "", id="compared with the wrapper's"),
        pytest.param("n = type(model).__mro__", "", id="something else of it"),
    ],
)
def test_the_name_of_the_class_where_some_runs_had_a_wrapper(line: str, new: str) -> None:
    parts = {"before": "if torch.cuda.device_count() > 1:\n    model = nn.DataParallel(model)", "end": line}
    assert found("DPM127", **parts) == (["model"] if new else [])
    assert not new or new in after(**parts)


def test_a_question_that_another_rule_answers() -> None:
    for asked in ("type(model) in (nn.DataParallel, nn.parallel.DistributedDataParallel)", "isinstance(model, nn.DataParallel)"):
        parts = {"imports": _IMPORTS, "end": f"n = {asked}"}
        assert found("DPM127", **parts) == []
        assert after(**parts) == ['n = hasattr(model, "module")']


def test_an_alias_a_parameter_and_self() -> None:
    defs = "def keep(m):\n    return dup(m)\nclass T:\n    def __init__(self, m):\n        self.m = m\n    def keep(self):\n        return dup(self.m)"
    parts = {"imports": "from copy import deepcopy as dup", "defs": defs, "end": "keep(model)\nt = T(model)\nt.keep()"}
    assert after(**parts) == ["return dup(m.module)", "return dup(self.m.module)"]


def test_where_it_may_be_either() -> None:
    parts = {"imports": _IMPORTS, "defs": "def keep(m):\n    return EMA(m)", "model": _DP, "end": "keep(model)\nkeep(model.module)"}
    assert "return EMA(ddp.unwrap(m))" in after(**parts)


@pytest.mark.parametrize(
    ("lines", "new"),
    [
        pytest.param("e = copy.deepcopy(model)\ne.module.fc", "e.fc", id="a copy"),
        pytest.param("e = copy.deepcopy(model).to('cpu')\ne.module(3)", "e(3)", id="a copy that is moved and called"),
        pytest.param("e = copy.deepcopy(model) if c else None\nif e:\n    e.module.eval()", "e.eval()", id="a copy or nothing"),
        pytest.param("e = copy.deepcopy(model) if c else model\ne.module.eval()", "ddp.unwrap(e).eval()", id="a copy or the wrapper"),
        pytest.param("e = copy.deepcopy(model)\nkeep(net=e)", "return net.eval()", id="a copy that is handed on"),
    ],
)
def test_a_copy_has_no_wrapper_any_more(lines: str, new: str) -> None:
    defs = "def keep(net):\n    return net.module.eval()"
    assert new in after(imports=_IMPORTS, defs=defs, setup="c = os.environ.get('C')", model=_DP, end=lines)


@pytest.mark.parametrize(
    ("model", "lines"),
    [
        pytest.param(_DP, "e = copy.deepcopy(model.module)\ne.module.fc", id="a copy of the module, with a part of that name"),
        pytest.param("model = Net()", "e = copy.deepcopy(model)\ne.module.fc", id="a program without DataParallel"),
        pytest.param(_DP, "e = copy.deepcopy(optimizer)\ne.module.fc", id="a copy of something else"),
        pytest.param(_DP, "e = copy.deepcopy()\ne.module.fc", id="a copy of nothing"),
    ],
)
def test_module_of_other_copies_stays(model: str, lines: str) -> None:
    assert "e.module.fc" not in found("DPM127", imports=_IMPORTS, model=model, end=lines)
    assert not any("e.fc" in line for line in after(imports=_IMPORTS, model=model, end=lines))


def test_a_class_of_modules_that_averages_the_weights() -> None:
    """``ModelEma`` of timm: a module only so that its copy moves with it."""
    defs = """
class Ema(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.module = copy.deepcopy(model)

    def _update(self, model, how):
        for e, m in zip(self.module.state_dict().values(), model.state_dict().values()):
            e.copy_(how(e, m))

    def update(self, model):
        self._update(model, lambda e, m: 0.9 * e + 0.1 * m)
"""
    lines = after(imports=_IMPORTS, defs=defs, model=_DP, before="ema = Ema(model)", step=STEP + "\nema.update(model)")
    assert "self.module = copy.deepcopy(model.module)" in lines
    assert "for e, m in zip(self.module.state_dict().values(), model.module.state_dict().values()):" in lines


_BOTH = """
class Both(nn.Module):
    def __init__(self, part, scale=1.0):
        super().__init__()
        self.part, self.scale = part, scale
        self.head = nn.Linear(2, 2)

    def forward(self, x):
        return self.head(torch.tanh(self.part.fc(x))) * self.scale

def fit(net, loader):
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        for x, y in loader:
            opt.zero_grad()
            F.cross_entropy(net(x), y).backward()
            opt.step()
"""


@pytest.mark.parametrize(
    ("end", "line"),
    [
        pytest.param("both = Both(model, scale=2.0)\nfit(both, loader)", "both = ddp.wrap(Both(model.module, scale=2.0))", id="by position"),
        pytest.param("both = Both(scale=2.0, part=model)\nfit(both, loader)", "both = ddp.wrap(Both(scale=2.0, part=model.module))", id="by keyword"),
    ],
)
def test_what_becomes_a_part_of_a_wrapped_model_is_bare(end: str, line: str) -> None:
    assert found("DPM127", defs=_BOTH, end=end) == ["model"]
    assert line in after(defs=_BOTH, end=end)


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({"end": "both = Both(model)\nprint(both(torch.ones(1, 8)))"}, id="what it is made into is not trained"),
        pytest.param({"setup": "both = Both(Net())", "end": "fit(both, loader)"}, id="the part has no wrapper"),
    ],
)
def test_a_part_stays_as_it_is(parts: dict[str, str]) -> None:
    assert found("DPM127", defs=_BOTH, **parts) == []
