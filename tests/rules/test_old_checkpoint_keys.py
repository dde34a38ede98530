"""DPM404: checkpoints from before the migration can still be loaded."""

from __future__ import annotations

import pytest

from tests.rules.program import after, found

_DP = "model = nn.DataParallel(Net())"


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({"before": "model.load_state_dict({})"}, id="a program without DataParallel"),
        pytest.param({"model": _DP, "before": "optimizer.load_state_dict({})"}, id="an optimizer"),
        pytest.param({"model": _DP, "before": "s = torch.amp.GradScaler()\ns.load_state_dict({})"}, id="a scaler"),
        pytest.param({"model": _DP, "before": "s = torch.optim.lr_scheduler.StepLR(optimizer, 1)\ns.load_state_dict({})"}, id="a scheduler"),
        pytest.param({"model": _DP, "before": "model.module.load_state_dict()"}, id="no state"),
        pytest.param({"model": _DP, "before": "print('model.load_state_dict(x)')  # model.load_state_dict(x)"}, id="in a string and a comment"),
        pytest.param({"model": _DP, "imports": "import lib", "before": "my_optim = lib.make(model)\nmy_optim.load_state_dict({})"}, id="named an optimizer"),
        pytest.param({"model": _DP, "imports": "import lib", "before": "lib.load_state_dict({})"}, id="a function of another library"),
    ],
)
def test_nothing_to_say(parts: dict[str, str]) -> None:
    assert found("DPM404", **parts) == []


@pytest.mark.parametrize(
    ("line", "new"),
    [
        pytest.param("model.load_state_dict(ck['m'])", "model.module.load_state_dict(ddp.clean_keys(ck['m']))", id="wrapper"),
        pytest.param("model.module.load_state_dict(ck, strict=False)", "model.module.load_state_dict(ddp.clean_keys(ck), strict=False)", id="module"),
        pytest.param("model.load_state_dict(state_dict=ck)", "model.module.load_state_dict(state_dict=ddp.clean_keys(ck))", id="keyword"),
        pytest.param(
            "r = model.load_state_dict(torch.load('a', 'cpu'))", "r = model.module.load_state_dict(ddp.clean_keys(torch.load('a', 'cpu')))", id="inline"
        ),
    ],
)
@pytest.mark.parametrize("module_level", [False, True], ids=["function", "module"])
def test_found_and_fixed(line: str, new: str, module_level: bool) -> None:
    assert new in after(setup="ck = {}", model=_DP, before=line, module_level=module_level)


def test_before_the_wrap_and_in_a_method() -> None:
    assert "model.load_state_dict(ddp.clean_keys({}))" in after(model="model = Net()\nmodel.load_state_dict({})\nmodel = nn.DataParallel(model)")
    defs = "class T:\n    def read(self, net, ck):\n        net.load_state_dict(ck)"
    assert found("DPM404", model=_DP, defs=defs) == ["ck"]


@pytest.mark.parametrize(
    ("model", "line", "new"),
    [
        pytest.param("model = nn.DataParallel(torch.compile(Net()))", "model.load_state_dict(ck)", "ddp.unwrap(model).load_state_dict(ddp.clean_keys(ck))", id="inside"),
        pytest.param("model = torch.compile(model=nn.DataParallel(Net()))", "model.load_state_dict(ck)", "ddp.unwrap(model).load_state_dict(ddp.clean_keys(ck))", id="outside"),
        pytest.param(
            "model = nn.DataParallel(torch.compile(Net()))", "model.module.load_state_dict(ck)", "ddp.unwrap(model.module).load_state_dict(ddp.clean_keys(ck))", id="by the module"
        ),
        pytest.param("model = nn.DataParallel(torch.compile(Net()))", "ck = model.state_dict()", "ck = ddp.unwrap(model).state_dict()", id="the keys that are written"),
    ],
)  # fmt: skip
def test_a_compiled_model_has_prefixes_of_its_own(model: str, line: str, new: str) -> None:
    """What is loaded has no prefix at all, so it goes into the model itself."""
    assert new in after(setup="ck = {}", model=model, before=line)


def test_a_module_or_an_optimizer() -> None:
    """States of optimizers pass through ``clean_keys`` as they are."""
    new = "ddp.unwrap(p).load_state_dict(ddp.clean_keys(ck[n]))"
    assert new in after(setup="ck = {}", model=_DP, end="for n, p in {'m': model, 'o': optimizer}.items():\n    p.load_state_dict(ck[n])")


_CUT = "new = {{{cut}: v for k, v in torch.load('a', 'cpu').items()}}\nmodel.module.load_state_dict(new)"


@pytest.mark.parametrize("cut", ["k[7:]", "k[len('module.'):]"])
def test_keys_are_cut_by_the_prefix_that_they_have(cut: str) -> None:
    assert any("k.removeprefix(\"module.\"): v for k, v" in line for line in after(model=_DP, before=_CUT.format(cut=cut)))
    loop = f"new = {{}}\nfor k in ck.keys():\n    new[{cut}] = ck[k]"
    assert 'new[k.removeprefix("module.")] = ck[k]' in after(model=_DP, setup="ck = {}", before=loop)


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(_CUT.format(cut="k[6:]"), id="something else is cut"),
        pytest.param(_CUT.format(cut="k[7:9]"), id="a part"),
        pytest.param(_CUT.format(cut="k[7::2]"), id="every second letter"),
        pytest.param("new = {v[7:]: 1 for k, v in {'a': 'abc'}.items()}", id="a value"),
        pytest.param("new = [line[7:] for line in open('a').readlines()]", id="lines"),
        pytest.param("k = 'name of a file'\nnew = k[7:]", id="a text"),
        pytest.param("for k in {}.keys():\n    k = str(k)\n    print(k[7:])", id="stored again"),
    ],
)
def test_other_cuts_stay(lines: str) -> None:
    assert not any("[7:]" in text or "[6:]" in text for text in found("DPM404", model=_DP, before=lines))


def test_without_dataparallel_the_files_are_those_of_others() -> None:
    assert found("DPM404", before="new = {k[7:]: v for k, v in torch.load('a').items()}") == []
