"""DPM405: checkpoints come to the rank that loads them."""

from __future__ import annotations

import pytest

from tests.rules.program import after, found

#: what was saved on a GPU comes to the rank's
PLACED = '{"cuda:0": str(ddp.device())}'


@pytest.mark.parametrize(
    "end",
    [
        pytest.param("x = torch.load('a', map_location='cpu')", id="keyword"),
        pytest.param("x = torch.load('a', 'cpu')", id="positional"),
        pytest.param("x = torch.load('a', map_location=lambda s, _: s)", id="a function"),
        pytest.param("x = torch.load('a', **os.environ)", id="hidden arguments"),
        pytest.param("x = lib.load('a')", id="another library's"),
        pytest.param("print(\"torch.load('a')\")  # torch.load('a')", id="in a string and a comment"),
    ],
)
def test_nothing_to_say(end: str) -> None:
    assert found("DPM405", imports="import lib", end=end) == []


@pytest.mark.parametrize(
    ("imports", "line", "new"),
    [
        pytest.param("", "x = torch.load('a')", "x = torch.load('a', map_location=ddp.device())", id="plain"),
        pytest.param("", "x = torch.load(f='a', weights_only=True)", "x = torch.load(f='a', weights_only=True, map_location=ddp.device())", id="keywords"),
        pytest.param("", "x = torch.load('a', None)", "x = torch.load('a', ddp.device())", id="None"),
        pytest.param("", "x = torch.load('a', map_location=None)", "x = torch.load('a', map_location=ddp.device())", id="None by keyword"),
        pytest.param("", "x = torch.load('a', map_location={'cuda:0': 'cuda:1'})", "x = torch.load('a', map_location=ddp.device())", id="a dict of GPUs"),
        pytest.param("from torch import load as read", "x = read('a')", "x = read('a', map_location=ddp.device())", id="from-import with alias"),
        pytest.param("import torch as th", "x = th.load('a')", "x = th.load('a', map_location=ddp.device())", id="alias"),
    ],
)
@pytest.mark.parametrize("module_level", [False, True], ids=["function", "module"])
def test_found_and_fixed(imports: str, line: str, new: str, module_level: bool) -> None:
    parts: dict[str, str | bool] = {"imports": imports, "before": f"{line}\nmodel.load_state_dict(x['model'])", "module_level": module_level}
    assert found("DPM405", **parts) == [line.removeprefix("x = ")]
    assert new in after(**parts)
    parts["before"] = line  # it may be data
    assert found("DPM405", **parts) == [line.removeprefix("x = ")]
    assert after(**parts) == [new.replace("ddp.device()", PLACED)]


def test_in_a_method() -> None:
    defs = "class T:\n    def read(self, p):\n        return torch.load(p)"
    assert after(defs=defs) == [f"return torch.load(p, map_location={PLACED})"]
    assert "return torch.load(p, map_location=ddp.device())" in after(defs=defs, before="model.load_state_dict(T().read('a'))")


def test_data_stay_where_they_were_saved() -> None:
    line = "x, y = torch.load('a')\ntrain_set = TensorDataset(x, y)\nmodel.load_state_dict(torch.load('b'))"
    new = after(before=line)
    assert f"x, y = torch.load('a', map_location={PLACED})" in new
    assert any("torch.load('b', map_location=ddp.device())" in n for n in new)


@pytest.mark.parametrize(
    "item",
    [
        pytest.param("torch.load(self.files[i])", id="in the data set"),
        pytest.param("read(self.files[i])", id="in a function that it calls"),
    ],
)
def test_what_a_data_set_loads_stays_with_its_workers(item: str) -> None:
    defs = "def read(f):\n    return torch.load(f)\n" if "read" in item else ""
    defs += f"class Files(torch.utils.data.Dataset):\n    def __getitem__(self, i):\n        return {item}\n"
    assert found("DPM405", defs=defs, before="files = Files()\nprint(files[0])") == []


@pytest.mark.parametrize("restored", ["torch.set_rng_state(x['rng'])", "torch.cuda.set_rng_state_all(x['rng'])", "torch.Generator().set_state(x['rng'])"])
def test_states_of_random_numbers_stay_on_the_cpu(restored: str) -> None:
    before = f"x = torch.load('a')\nmodel.load_state_dict(x['model'])\n{restored}"
    assert f"x = torch.load('a', map_location={PLACED})" in after(before=before)
