"""DPM111: parts of the model that not every step uses."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpmigrate.engine import apply
from dpmigrate.plans import Writing
from dpmigrate.settings import Settings
from tests.rules.program import STEP, after, found, program, refused, whole

_NET = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)
        {part}
        self.out = nn.Linear(8, 2)

    def forward(self, x{more}):
        {body}
        return self.out(x)
"""
_EXTRA = "self.extra = nn.Linear(8, 8)"


def _net(body: str = "x = self.fc(x)", part: str = _EXTRA, more: str = "") -> str:
    return _NET.format(body=body.replace("\n", "\n        "), part=part.replace("\n", "\n        "), more=more)


_LIST = "self.extra = nn.ModuleList([nn.Linear(8, 8) for _ in range(2)])"
_USES = "x = self.extra(self.fc(x))"
_IF = "x = self.fc(x)\nif {}:\n    x = self.extra(x)"


@pytest.mark.parametrize(
    "net",
    [
        pytest.param(_net(_USES), id="used"),
        pytest.param(_net(part="self.extra = nn.ReLU()"), id="a part without parameters"),
        pytest.param(_net(part="self.extra = nn.GroupNorm(2, 8, affine=False)"), id="a layer without its parameters"),
        pytest.param(_net(part="self.extra = make(8)"), id="a part of which nothing is known"),
        pytest.param(_net(part="self.extra = 8"), id="a number"),
        pytest.param(_net(part=f"{_EXTRA}\nself.extra = None"), id="taken away again"),
        pytest.param(_net(part=f"{_EXTRA}\nself.extra.requires_grad_(False)"), id="frozen"),
        pytest.param(_net(part=f"{_EXTRA}\nself.body = nn.Sequential(self.extra)", body="x = self.body(self.fc(x))"), id="used by another name"),
        pytest.param(_net(body="for part in self.children():\n    x = part(x)"), id="all parts are gone through"),
        pytest.param(_net(body="x = getattr(self, 'ext' + 'ra')(self.fc(x))"), id="found by its name"),
        pytest.param(_net(_IF.format("self.training")), id="by the mode"),
        pytest.param(_net(_IF.format("self.extra")), id="by whether it is there"),
        pytest.param(_net(_IF.format("self.use_extra") + "\nelse:\n    x = -self.extra(x)"), id="by a setting, on both sides"),
        pytest.param(_net(_IF.format("x is not None")), id="by whether something is given"),
        pytest.param(_net(_IF.format("x.dim() > 2")), id="by a shape"),
        pytest.param(_net(_IF.format("len(x) > 2")), id="by a length"),
        pytest.param(_net(_IF.format("torch.rand(1) < 0.5") + "\nelse:\n    x = -self.extra(x)"), id="on both sides"),
        pytest.param(_net("for part in [self.fc, self.extra]:\n    x = part(x)"), id="in a loop"),
        pytest.param(_net("x = self.fc(x)\nfor i in range(2):\n    x = self.extra[i](x)", part="self.extra = nn.ModuleList([nn.Linear(8, 8), nn.Linear(8, 8)])"), id="all one by one"),
        pytest.param("from nets import Base\nclass Net(Base):\n    def __init__(self):\n        self.extra = nn.Linear(8, 8)\n    def forward(self, x):\n        return x", id="a base that is not seen"),
        pytest.param("class Net(nn.Sequential):\n    def __init__(self):\n        super().__init__(nn.Linear(8, 2))\n        self.extra = nn.Linear(8, 2)", id="a container"),
        pytest.param("Net = lambda: nn.Linear(8, 2)", id="no class"),
    ],
)  # fmt: skip
def test_nothing_to_say(net: str) -> None:
    assert found("DPM111", net=net) == []


def test_what_another_file_trains_with_is_not_judged() -> None:
    parts = {"imports": "from losses import robust", "step": STEP.replace("F.cross_entropy(model(x), y)", "robust(model, x, y)")}
    assert found("DPM111", net=_net(), **parts) == []


@pytest.mark.parametrize(
    "net",
    [
        pytest.param(_net(), id="never"),
        pytest.param(_net("x = self.fc(x)\nwith torch.no_grad():\n    x = self.extra(x)"), id="without gradients only"),
        pytest.param(_net(_IF.format("self.use_extra")), id="by a setting"),
        pytest.param(_net(_IF.format("args.extra"), more=", args=None"), id="by an option of its name"),
        pytest.param(_net("x = self.fc(x)\nx = self.extra(x) if self.mode == 'b' else x"), id="by a setting, in an expression"),
        pytest.param(_net(part="self.extra = nn.Parameter(torch.zeros(8))"), id="a parameter"),
        pytest.param(_net(part="self.extra = nn.Sequential(nn.ReLU(), nn.Conv2d(3, 8, 3))"), id="a sequence"),
        pytest.param(_net(part="self.extra = nn.ModuleDict({'a': nn.Linear(8, 8)})"), id="a dict of layers"),
        pytest.param(_net(part="self.extra = nn.ModuleList(nn.Linear(8, 8) for _ in range(2))"), id="a list of layers"),
        pytest.param(_net(part=f"{_EXTRA}\nnn.init.zeros_(self.extra.weight)\nself.extra.bias.data = torch.zeros(8)"), id="only initialised"),
        pytest.param(_net(part=f"{_EXTRA}\nfor m in self.modules():\n    m.x = 1"), id="initialised with all others"),
        pytest.param(_net(_IF.format("torch.rand(1).item() < 0.5")), id="by chance"),
        pytest.param(_net("p = torch.rand(1)\n" + _IF.format("p < 0.5")), id="by chance, through a name"),
        pytest.param(_net("if torch.rand(1) > 0.5:\n    return self.out(x)\nx = self.extra(self.fc(x))"), id="left before"),
        pytest.param(_net("x = self.extra(x) if torch.rand(1) < 0.5 else x"), id="in an expression"),
        pytest.param(_net("for part in self.extra:\n    if torch.rand(1) < 0.5:\n        continue\n    x = part(x)", part=_LIST), id="layers are dropped"),
        pytest.param(
            _net("for i, part in enumerate(self.extra):\n    if torch.rand(1) < 0.5:\n        x = part(x)", part=_LIST), id="layers are dropped, by an if"
        ),
    ],
)
def test_looked_for(net: str) -> None:
    assert "model = ddp.wrap(Net(), find_unused=True)" in after(net=net)
    assert "model = ddp.wrap(Net(), find_unused=True)" in after(net=net, model="model = nn.DataParallel(Net())")
    assert "model = ddp.wrap(model, find_unused=True)" in after(
        net=net, model="model = Net()\nif torch.cuda.is_available():\n    model = nn.DataParallel(model)"
    )


def test_looked_for_where_the_wrap_goes_round_the_move() -> None:
    """``DataParallel(net).to(device)``: the option stands in the wrap that the wrap's own rule writes."""
    assert "model = ddp.wrap(Net().to(device), find_unused=True)" in after(net=_net(), model="model = nn.DataParallel(Net()).to(device)")
    assert "model = ddp.wrap(Net().to(ddp.device()), find_unused=True)" in after(net=_net(), model="model = nn.DataParallel(Net()).to(0)")


@pytest.mark.parametrize(
    ("choice", "given"),
    [
        pytest.param("self.extra[task](x)", "step % 2", id="by the step"),
        pytest.param("self.extra[int(task)](x)", "epoch", id="by the epoch"),
        pytest.param("self.extra[f'{task}'](x)", "task=y", id="by the batch, keyword"),
        pytest.param("self.extra[0](x) if task == 0 else x", "step", id="in a test"),
    ],
)
def test_a_choice_that_the_loop_varies(choice: str, given: str) -> None:
    net = _net(f"x = self.fc(x)\nx = {choice}", part=_LIST, more=", task=0")
    parts = {"net": net, "before": "step = 0", "step": STEP.replace("model(x)", f"model(x, {given})") + "step += 1"}
    assert found("DPM111", **parts) == [_LIST]
    assert found("DPM111", **parts | {"step": STEP.replace("model(x)", "model(x, 0)")}) == []


def test_a_choice_in_another_method() -> None:
    net = _net("x = self.chosen(self.fc(x), torch.rand(1))", part=_LIST) + "\n    def chosen(self, x, p):\n        return self.extra[0](x) if p > 0.5 else x"
    assert found("DPM111", net=net) == [_LIST]


def test_a_part_of_a_part() -> None:
    inner, made = _net().replace("Net", "Inner") + "\n", "self.inner = Inner()"
    assert found("DPM111", net=inner + _net("x = self.inner(self.fc(x))", part=made)) == [_EXTRA]
    assert found("DPM111", net=inner + _net(part=made)) == [_EXTRA, made]


def test_a_wrap_that_cannot_be_placed() -> None:
    assert found("DPM111", net=_net(), model="model = Net()\nif torch.cuda.is_available():\n    print(nn.DataParallel(model))") == []


def test_beside_other_options() -> None:
    assert "ddp.wrap(Net(), sync_bn=True, find_unused=True)" in whole(Settings(sync_bn=True), net=_net())


def test_refused_where_the_samples_of_one_device_decide() -> None:
    net = _net(_IF.format("x.mean() > 0"))
    assert refused("DPM111", net=net) == [_EXTRA]
    assert "model = ddp.wrap(Net(), find_unused=True)" in after(net=net, model="model = nn.DataParallel(Net())")


_GROWS = "self.extra = nn.ModuleList([nn.Linear(8, 8), nn.Linear(8, 8)])"


@pytest.mark.parametrize(
    ("body", "more"),
    [
        pytest.param("for i, part in enumerate(self.extra):\n    x = part(x)\n    if i == depth:\n        break", ", depth=1", id="left early"),
        pytest.param(
            "for i, part in enumerate(self.extra):\n    x = part(x)\n    if i == self.depth:\n        return self.out(x)", "", id="a return, by a setting"
        ),
        pytest.param("for i in range(depth, -1, -1):\n    x = self.extra[i](x)", ", depth=1", id="by numbers down from an argument"),
    ],
)
def test_layers_behind_an_early_end(body: str, more: str) -> None:
    step = STEP.replace("model(x)", "model(x, depth=epoch)" if more else "model(x)")
    assert "model = ddp.wrap(Net(), find_unused=True)" in after(net=_net(body, part=_GROWS, more=more), model="model = nn.DataParallel(Net())", step=step)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("for i, part in enumerate(self.extra):\n    x = part(x)\n    if i == len(self.extra) - 1:\n        return self.out(x)", id="the last"),
        pytest.param("for i, part in enumerate(self.extra):\n    x = part(x)\n    if i < 1:\n        x = x.relu()", id="no end"),
        pytest.param("for i in range(2):\n    x = self.extra[i](x)", id="all numbers"),
    ],
)
def test_loops_that_come_to_all_layers(body: str) -> None:
    assert found("DPM111", net=_net(f"x = self.fc(x)\n{body}", part=_GROWS)) == []


# ---------------------------------------------------------------------- what the execution on paper shows
def _applied(tmp_path: Path, net: str, model: str = "model = Net()") -> tuple[str, str]:
    """What apply says of the file, and its text after it."""
    script = tmp_path / "train.py"
    script.write_text(program(net=net, model=model))
    (outcome,) = apply([script], Settings(), Writing())
    assert not outcome.problem
    return outcome.status.name, script.read_text()


@pytest.mark.parametrize(
    "net",
    [
        pytest.param(_net(_USES), id="used"),
        pytest.param(_net("x = self.fc(x)\nfor part in self.extra:\n    x = part(x)", part=_LIST), id="all of a list"),
        pytest.param(_net(part="self.extra = nn.InstanceNorm1d(8)"), id="no parameters unless it is told"),
        pytest.param(_net(part="self.extra = nn.GroupNorm(2, 8, affine=False)"), id="no parameters"),
    ],
)
def test_nothing_left_out(net: str, tmp_path: Path) -> None:
    status, text = _applied(tmp_path, net=net)
    assert (status, "find_unused" in text) == ("CHANGED", False)


@pytest.mark.parametrize(
    "net",
    [
        pytest.param(_net("x = self.fc(x)\nx = self.extra[0](x)", part=_LIST), id="one of a list"),
        pytest.param(_net(part="if os.name == 'nt':\n    self.extra = nn.Linear(8, 8)"), id="made under a condition"),
        pytest.param(_net(part="self.extra = nn.InstanceNorm1d(8, affine=True)"), id="told to have parameters"),
    ],
)
@pytest.mark.parametrize("model", ["model = Net()", "model = nn.DataParallel(Net())"])
def test_left_out(net: str, model: str, tmp_path: Path) -> None:
    status, text = _applied(tmp_path, net=net, model=model)
    assert status == "CHANGED"
    assert "model = ddp.wrap(Net(), find_unused=True)" in text


_FREEZE = """\
def want(module, flag):
    for p in module.parameters():
        p.requires_grad = flag

def freeze(model):
    net = model.module if isinstance(model, nn.DataParallel) else model
    want(net.extra, False)
"""


@pytest.mark.parametrize(("before", "written"), [("", False), ("if os.environ.get('STAGE'):\n    freeze(model)", True)])
def test_frozen_after_the_wrap(before: str, written: bool, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(program(net=_net(_USES), defs=_FREEZE, model="model = nn.DataParallel(Net())", before=before))
    (outcome,) = apply([script], Settings(), Writing())
    assert (outcome.status.name, "find_unused=True" in script.read_text()) == ("CHANGED", written)
