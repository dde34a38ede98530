"""DPM110: a model that is changed once it is wrapped."""

from __future__ import annotations

import pytest

from tests.rules.program import STEP, found, of, program, refused, whole

_DP = "model = nn.DataParallel(Net())"
_PAIRED = "zip(model.parameters(), target.parameters())"


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({"before": "for p in model.fc.parameters():\n    p.requires_grad = False"}, id="before the wrap, which comes after it"),
        pytest.param({"before": "model.fc = nn.Linear(8, 2)"}, id="replaced before the wrap"),
        pytest.param({"before": "model.requires_grad_(False)"}, id="frozen as a whole before the wrap"),
        pytest.param({"model": _DP, "end": "t = torch.zeros(1)\nt.requires_grad = True"}, id="a tensor that is no parameter"),
        pytest.param({"model": _DP, "end": "t = torch.zeros(1)\nt.requires_grad_()"}, id="a tensor, by the method"),
        pytest.param({"model": _DP, "end": "model.module.tag = 3"}, id="something else than a layer is set"),
        pytest.param({"model": _DP, "end": "model.module.tag: int = 3"}, id="an annotated attribute"),
        pytest.param({"model": _DP, "end": "setattr(model.module, 'tag', 3)"}, id="something else than a layer is set by name"),
        pytest.param({"model": _DP, "end": "setattr(Net(), 'fc', nn.Linear(8, 2))"}, id="another model's layer is set by name"),
        pytest.param({"before": "setattr(model, 'fc', nn.Linear(8, 2))"}, id="set by name before the wrap"),
        pytest.param({"model": _DP, "end": "other = Net()\nother.fc = nn.Linear(8, 2)\nother.add_module('a', nn.ReLU())"}, id="another model"),
        pytest.param({"model": _DP, "end": "print('p.requires_grad = False')  # p.requires_grad = False"}, id="in a string and a comment"),
        pytest.param({"model": _DP, "end": "for p in [torch.zeros(1)]:\n    p.requires_grad = False"}, id="a loop over something else"),
        pytest.param({"defs": "def freeze(m):\n    m.requires_grad_(False)", "model": _DP, "end": "freeze(Net())"}, id="a function given another model"),
        pytest.param({"defs": "def freeze(m):\n    m.requires_grad_(False)"}, id="a function that nobody calls"),
        pytest.param({"model": _DP, "end": f"target = Net()\nfor q, k in {_PAIRED}:\n    k.requires_grad = False"}, id="of a pair, another model"),
        pytest.param({"model": _DP, "end": f"target = Net()\nfor i, (q, k) in enumerate({_PAIRED}):\n    k.requires_grad_(False)"}, id="of a counted pair"),
        pytest.param(
            {"model": _DP, "end": f"target = Net()\nfor (n, q), (m, k) in {_PAIRED.replace('.p', '.named_p')}:\n    k.requires_grad = False"},
            id="of a pair with names",
        ),
    ],
)
def test_nothing_to_say(parts: dict[str, str]) -> None:
    assert found("DPM110", **parts) == []


_LOOP = "for p in {}.parameters():\n    p.requires_grad = False"


def thawed(**parts: str | bool) -> list[str]:
    """What is pointed at, where the wrap is told of it and nothing is refused."""
    assert refused("DPM110", **parts) == []
    (wrap,) = [line.strip() for line in whole(**parts).splitlines() if "ddp.wrap(" in line]
    assert wrap.endswith(", find_unused=True, thaws=True)")
    return found("DPM110", **parts)


@pytest.mark.parametrize(
    ("line", "pointed"),
    [
        pytest.param(_LOOP.format("model"), "p.requires_grad", id="frozen"),
        pytest.param(_LOOP.format("model.module"), "p.requires_grad", id="frozen behind .module"),
        pytest.param(_LOOP.format("model.module.fc"), "p.requires_grad", id="a part is frozen"),
        pytest.param("for n, p in model.named_parameters():\n    p.requires_grad = True", "p.requires_grad", id="named_parameters"),
        pytest.param(f"target = Net()\nfor q, k in {_PAIRED}:\n    q.requires_grad = False", "q.requires_grad", id="of a pair"),
        pytest.param(f"target = Net()\nfor i, (q, k) in enumerate({_PAIRED}):\n    q.requires_grad = False", "q.requires_grad", id="of a counted pair"),
        pytest.param(
            "target = Net()\npair = [model.parameters()]\nfor q, k in zip(*pair, model.parameters()):\n    q.requires_grad = False",
            "q.requires_grad",
            id="star",
        ),
        pytest.param("for i, p in enumerate(model.parameters()):\n    p.requires_grad = False", "p.requires_grad", id="counted"),
        pytest.param("for i, p in enumerate(iterable=model.parameters()):\n    p.requires_grad = False", "p.requires_grad", id="counted, keyword"),
        pytest.param("model.module.fc.weight.requires_grad = True", "model.module.fc.weight.requires_grad", id="one parameter by name"),
        pytest.param("model.requires_grad_(requires_grad=False)", "model.requires_grad_(requires_grad=False)", id="method, keyword"),
        pytest.param("model.module.fc.requires_grad_(False)", "model.module.fc.requires_grad_(False)", id="method of a part"),
        pytest.param("for p in model.module.fc.parameters():\n    p.requires_grad_(True)", "p.requires_grad_(True)", id="thawed by the method"),
        pytest.param("for n, p in model.named_parameters():\n    p.requires_grad_(n == 'a')", "p.requires_grad_(n == 'a')", id="by the method and by name"),
    ],
)
def test_the_wrap_is_told_of_what_is_frozen_later(line: str, pointed: str) -> None:
    assert thawed(model=_DP, before=line) == [pointed]
    assert thawed(model=_DP, before=line, module_level=True) == [pointed]


@pytest.mark.parametrize(
    ("line", "pointed"),
    [
        pytest.param("model.module.fc = nn.Linear(8, 2)", "model.module.fc", id="layer replaced"),
        pytest.param("model.module.layers[6] = nn.Linear(8, 2)", "model.module.layers[6]", id="item replaced"),
        pytest.param("model.module.fc = Net()", "model.module.fc", id="a module of the program"),
        pytest.param("setattr(model, 'fc', nn.Linear(8, 2))", "setattr(model, 'fc', nn.Linear(8, 2))", id="set by name"),
        pytest.param("setattr(model.module, 'fc', Net().to('cpu'))", "setattr(model.module, 'fc', Net().to('cpu'))", id="a moved module set by name"),
        pytest.param("model.module.add_module('b', nn.Linear(8, 2))", "model.module.add_module('b', nn.Linear(8, 2))", id="layer added"),
        pytest.param("inner = model.module\ninner.fc = nn.Linear(8, 2)", "inner.fc", id="through another name"),
    ],
)
def test_refused_after_data_parallel(line: str, pointed: str) -> None:
    assert refused("DPM110", model=_DP, before=line) == [pointed]
    assert refused("DPM110", model=_DP, before=line, module_level=True) == [pointed]


def test_where_there_is_no_place_for_a_wrap() -> None:
    """DPM904 says why; what stands after a wrap that there is not is no finding."""
    parts = {"before": "model.fc = nn.Linear(8, 2)", "epoch_end": "model = torch.load('model.pt')['model']"}
    assert refused("DPM904", **parts) and found("DPM110", **parts) == []


def test_in_the_epoch_loop() -> None:
    start = "if epoch == 1:\n    for p in model.fc.parameters():\n        p.requires_grad = True"
    assert thawed(epoch_start=start) == ["p.requires_grad"]
    assert refused("DPM110", epoch_start=start + "\nmodel.fc = nn.Linear(8, 2)") == ["model.fc"]


def test_a_rank_does_not_freeze_alone() -> None:
    """What decides it in a step is decided for the whole batch."""
    new = whole(model=_DP, step=STEP + "if loss.item() < 0.1:\n    model.module.fc.requires_grad_(False)")
    assert "if ddp.mean_all(loss.item()) < 0.1:" in new and "thaws=True" in new
    end = "if y.max() > 1:\n    model.module.fc.requires_grad_(False)"
    assert refused("DPM511", model=_DP, step=STEP + end) == ["y.max() > 1"]


def test_of_two_models_the_one_that_is_frozen() -> None:
    second = "other = Net()\nopt = torch.optim.SGD(other.parameters(), lr=0.1)"
    step = STEP + "opt.zero_grad()\nF.cross_entropy(other(x), y).backward()\nopt.step()"
    lines = [line.strip() for line in whole(before=second, step=step, epoch_end="model.fc.requires_grad_(epoch > 1)").splitlines() if "ddp.wrap(" in line]
    assert lines == ["model = ddp.wrap(Net(), find_unused=True, thaws=True)", "other = ddp.wrap(Net())"]


def test_in_a_function_that_is_given_what_is_inside() -> None:
    defs = "def freeze(m):\n    for p in m.parameters():\n        p.requires_grad = False"
    assert thawed(defs=defs, model=_DP, before="freeze(m=model.module)") == ["p.requires_grad"]


def test_the_model_may_change_itself() -> None:
    net = "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.fc = nn.Linear(8, 2)\n\n"
    net += "    def forward(self, x):\n        return self.fc(x)\n\n    def freeze(self):\n        self.fc = nn.Linear(8, 2)"
    assert found("DPM110", net=net, model=_DP) == []


_TOGGLE = "for p in model.parameters():\n    p.requires_grad = {}"


@pytest.mark.parametrize(
    "step",
    [
        pytest.param(f"{_TOGGLE.format(False)}\n{_TOGGLE.format(True)}", id="frozen and thawed"),
        pytest.param("model.requires_grad_(False)\nmodel.requires_grad_()", id="by the method"),
        pytest.param(
            "for p in model.parameters():\n    p.requires_grad_(False)\nfor p in model.parameters():\n    p.requires_grad_(True)", id="each by the method"
        ),
        pytest.param("switch(model, False)\nswitch(model, True)", id="in a function"),
        pytest.param(_TOGGLE.format(True), id="thawed, which it is"),
    ],
)
def test_a_whole_model_may_be_switched(step: str) -> None:
    defs = "def switch(net, on):\n    for p in net.parameters():\n        p.requires_grad = on"
    assert found("DPM110", defs=defs, model=_DP, epoch_start=step) == []


@pytest.mark.parametrize(
    "frozen",
    [
        pytest.param("for n, p in model.named_parameters():\n    p.requires_grad = n.startswith('b')", id="by name"),
        pytest.param("for n, p in model.named_parameters():\n    if 'b' not in n:\n        p.requires_grad = False", id="by name, under a test"),
        pytest.param("for layer in list(model.children())[:-1]:\n    layer.requires_grad_(False)", id="child by child"),
        pytest.param("for c in model.children():\n    for p in c.parameters():\n        p.requires_grad = False", id="each child's"),
        pytest.param("model.body.requires_grad_(False)", id="a part"),
    ],
)
def test_what_is_frozen_in_part_at_the_wrap_and_thawed_as_a_whole(frozen: str) -> None:
    assert thawed(before=frozen, epoch_end=_TOGGLE.format(True)) == ["p.requires_grad"]


def test_what_is_frozen_at_the_wrap_and_thawed() -> None:
    parts = {"model": "model = Net()\n" + _TOGGLE.format(False) + "\nmodel = nn.DataParallel(model)", "epoch_start": _TOGGLE.format(True)}
    assert thawed(**parts) == ["p.requires_grad"]


_METHODS = "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.fc = nn.Linear(8, 2)\n\n"
_METHODS += "    def forward(self, x):\n        return self.fc(x)\n\n    def freeze(self, on):\n        self.switch(on)\n        self.freeze_again\n\n"
_METHODS += "    def switch(self, on):\n        for p in self.fc.parameters():\n            p.requires_grad = not on\n\n    def size(self):\n        return 3"


@pytest.mark.parametrize("call", ["model.freeze(epoch > 1)", "model.switch(on=True)"])
def test_in_a_method_of_the_model(call: str) -> None:
    assert thawed(net=_METHODS, epoch_start=call) == [call]
    behind = call.replace("model.", "model.module.")
    assert thawed(net=_METHODS, model=_DP, epoch_start=behind) == [behind]


def test_other_methods_of_the_model() -> None:
    assert found("DPM110", net=_METHODS, before="model.freeze(True)", epoch_start="model.size()") == []


def test_in_a_train_of_its_own() -> None:
    net = _METHODS.replace("def switch(self, on)", "def train(self, mode=True)").replace("not on", "False").replace("self.switch(on)", "pass")
    assert thawed(net=net, epoch_start="model.train()") == ["model.train()"]


@pytest.mark.parametrize(
    "line",
    [
        "nn.utils.weight_norm(model.module.fc)",
        "nn.utils.parametrizations.weight_norm(module=model.module.fc)",
        "nn.utils.parametrizations.orthogonal(model.module)",
    ],
)
def test_refused_where_a_layer_is_normalised(line: str) -> None:
    assert refused("DPM110", model=_DP, before=line) == [line]
    assert found("DPM110", model=_DP, before="nn.utils.weight_norm()\nother = nn.utils.weight_norm(nn.Linear(2, 2))") == []


def test_refused_where_a_weight_is_shared() -> None:
    assert refused("DPM110", model=_DP, before="model.module.fc.weight = model.module.out.weight") == ["model.module.fc.weight"]


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({"before": "model.half()"}, id="before the wrap, which comes after it"),
        pytest.param({"model": _DP, "before": "model.half()"}, id="after a wrap that moves"),
        pytest.param({"model": _DP, "before": "model.float()"}, id="the type that it has"),
        pytest.param({"model": _DP, "end": "model.half()"}, id="after training"),
        pytest.param({"model": _DP, "end": "other = Net()\nother.half()"}, id="of another model"),
    ],
)
def test_a_type_is_no_doubt(parts: dict[str, str]) -> None:
    assert found("DPM110", **parts) == []


@pytest.mark.parametrize(
    ("parts", "pointed"),
    [
        pytest.param({"model": _DP, "before": "model.module.half()"}, "model.module.half()", id="behind .module"),
        pytest.param({"model": _DP, "epoch_end": "model.half()\nmodel.float()"}, "model.half()", id="between the epochs"),
        pytest.param({"model": _DP, "before": "cast(model)", "defs": "def cast(net):\n    net.to(torch.float16)"}, "net.to(torch.float16)", id="in a function"),
        pytest.param({"model": "net = Net()\nmodel = nn.DataParallel(net)\nprint(model.module)", "before": "net.double()"}, "net.double()", id="by another name"),
        pytest.param({"model": _DP, "step": "model.half()\n" + STEP}, "model.half()", id="at every step"),
    ],
)  # fmt: skip
def test_another_type_after_the_wrap(parts: dict[str, str], pointed: str) -> None:
    assert refused("DPM110", **parts)[0] == pointed


_KEEP = """
def keep(net, path):
    torch.save({taken}, path)
    {then}
"""


@pytest.mark.parametrize("taken", ["net.cpu().state_dict()", "net.to('cpu').state_dict()", "{'a': net.to(device='cpu').state_dict()}"])
@pytest.mark.parametrize("then", ["net.cuda()", "print(path)\n    if len(path) > 1:\n        net.cuda()", "net = net.to(device)"])
@pytest.mark.parametrize("model", ["model = Net().cuda()", "model = nn.DataParallel(Net().cuda())"])
def test_a_model_that_is_saved_stays_on_its_device(taken: str, then: str, model: str) -> None:
    new = whole(defs=_KEEP.format(taken=taken, then=then), top="device = torch.device('cuda')", model=model, epoch_end="keep(model, 'a.pt')")
    kept = "{k: v.cpu() for k, v in net.module.state_dict().items()}"
    what = "{'a': " + kept + "}" if taken.startswith("{") else kept
    assert f"    ddp.save({what}, path)\n" in new


@pytest.mark.parametrize(
    ("taken", "then", "parts"),
    [
        pytest.param("net.cpu().state_dict()", "net.cuda()", {"end": "keep(model, 'a.pt')"}, id="trained no more"),
        pytest.param("net.cpu().state_dict()", "print(path)", {"epoch_end": "keep(model, 'a.pt')"}, id="left there"),
        pytest.param("net.cpu().state_dict()", "net.cpu()", {"epoch_end": "keep(model, 'a.pt')"}, id="moved there again"),
        pytest.param("net.cpu().state_dict()", "net(torch.ones(1, 8))\n    net.cuda()", {"epoch_end": "keep(model, 'a.pt')"}, id="used there"),
        pytest.param("net.cpu().state_dict()", "net.cuda()(torch.ones(1, 8))\n    net.eval()", {"epoch_end": "keep(3, 'a.pt')"}, id="no model"),
        pytest.param("net.cpu().weight", "net.cuda()", {"epoch_end": "keep(model, 'a.pt')"}, id="something else of it"),
        pytest.param("net.cuda().state_dict()", "net.cuda()", {"epoch_end": "keep(model, 'a.pt')"}, id="on its device"),
        pytest.param("net.to(device).state_dict()", "net.cuda()", {"epoch_end": "keep(model, 'a.pt')"}, id="on some device"),
    ],
)
def test_a_model_that_is_not_there_and_back(taken: str, then: str, parts: dict[str, str]) -> None:
    text = program(defs=_KEEP.format(taken=taken, then=then), top="device = torch.device('cuda')", model="model = Net().cuda()", **parts)  # type: ignore[arg-type]
    assert not [f for f in of("DPM110", text) if "moves the model away" in f.message]
