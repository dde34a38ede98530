"""DPM101: nn.DataParallel becomes the wrap of the runtime."""

from __future__ import annotations

import pytest

from dpmigrate.settings import Settings
from tests.pipeline import findings
from tests.rules.program import after, found, program, refused, whole


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({}, id="no DataParallel"),
        pytest.param({"end": "print('nn.DataParallel(model)')  # nn.DataParallel(model)"}, id="in a string and a comment"),
        pytest.param({"imports": "import lib", "before": "model = lib.DataParallel(model)\nmodel = Net()"}, id="another library's"),
        pytest.param({"end": "isinstance(model, Net)"}, id="a test for another class"),
        pytest.param({"end": "isinstance(*os.environ)"}, id="a test that cannot be read"),
    ],
)
def test_nothing_to_say(parts: dict[str, str]) -> None:
    assert found("DPM101", **parts) == []


@pytest.mark.parametrize(
    ("imports", "model", "line"),
    [
        pytest.param("", "model = nn.DataParallel(Net())", "model = ddp.wrap(Net())", id="on the value"),
        pytest.param("", "model = Net()\nmodel = torch.nn.DataParallel(model)", "model = ddp.wrap(model)", id="full name, rebound"),
        pytest.param("from torch.nn import DataParallel as DP", "model = DP(Net())", "model = ddp.wrap(Net())", id="from-import with alias"),
        pytest.param("from torch.nn.parallel import DataParallel", "model = DataParallel(Net())", "model = ddp.wrap(Net())", id="torch.nn.parallel"),
        pytest.param("from torch.nn import *", "model = DataParallel(Net())", "model = ddp.wrap(Net())", id="star import"),
        pytest.param("import torch.nn as layers", "model = layers.DataParallel(Net())", "model = ddp.wrap(Net())", id="alias of the module"),
        pytest.param("", "wrapper = nn.DataParallel\nmodel = wrapper(Net())", "model = ddp.wrap(Net())", id="bound to a name"),
        pytest.param("", "model = nn.DataParallel(Net(), device_ids=[0, 1], output_device=0, dim=0)", "model = ddp.wrap(Net())", id="keywords"),
        pytest.param("", "model = nn.DataParallel(Net(), [0, 1], 0, 0)", "model = ddp.wrap(Net())", id="positional"),
        pytest.param("", "net = Net()\nmodel = nn.DataParallel(module=net)", "model = ddp.wrap(model=net)", id="module by keyword"),
        pytest.param("", "model = nn.DataParallel(Net()).cuda()", "model = ddp.wrap(Net().cuda())", id="moved afterwards"),
        pytest.param("", "model = nn.DataParallel(Net()).to('cpu').cuda()", "model = ddp.wrap(Net().to('cpu').cuda())", id="moved twice"),
        pytest.param("", "model = nn.DataParallel(Net().cuda()).cuda()", "model = ddp.wrap(Net().cuda()).cuda()", id="moved before and after"),
        pytest.param("", "print(nn.DataParallel)\nmodel = nn.DataParallel(Net()).train()", "model = ddp.wrap(Net()).train()", id="another method after"),
    ],
)
@pytest.mark.parametrize("module_level", [False, True], ids=["function", "module"])
def test_in_place(imports: str, model: str, line: str, module_level: bool) -> None:
    parts: dict[str, str | bool] = {"imports": imports, "model": model, "module_level": module_level}
    assert len(found("DPM101", **parts)) == 1
    assert line in [one.strip() for one in whole(**parts).splitlines()]


@pytest.mark.parametrize(
    ("branch", "lines"),
    [
        pytest.param("if torch.cuda.device_count() > 1:\n    model = nn.DataParallel(model)", ["model = ddp.wrap(model)"], id="rebound"),
        pytest.param(
            "if torch.cuda.is_available():\n    model = nn.DataParallel(model.cuda())", ["model = model.cuda()", "model = ddp.wrap(model)"], id="moved in it",
        ),
        pytest.param(
            "if os.environ.get('A'):\n    model = nn.DataParallel(model)\nelse:\n    model = nn.DataParallel(model).cuda()",
            ["model = model.cuda()", "model = ddp.wrap(model)"], id="both branches, wrapped once",
        ),
        pytest.param("model = nn.DataParallel(model) if os.environ else model", ["model = model if os.environ else model", "model = ddp.wrap(model)"], id="expression"),
    ],
)  # fmt: skip
def test_under_a_test_it_becomes_unconditional(branch: str, lines: list[str]) -> None:
    new = [line for line in after(model="model = Net()", before=branch) if "model(" not in line]  # DPM221 moves the batch
    assert new[-len(lines) :] == lines


@pytest.mark.parametrize("given", ["model", "module=model"])
def test_under_a_test_that_holds_the_training_too_it_stays_there(given: str) -> None:
    """Below the branch another one may have left no model; a move to a GPU by its number goes to the wrap."""
    defs = """
    def train(model, loader, optimizer):
        for x, y in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x.cuda(0)), y.cuda(0))
            loss.backward()
            optimizer.step()
        return model
    """
    training = f"""
    if not only_test:
        model = Net()
        model = nn.DataParallel({given}, device_ids=[0])
        model = model.cuda(0)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            model = train(model, loader, optimizer)
    """
    parts = {"defs": defs, "before": training, "model": "", "optimizer": "only_test = bool(os.environ.get('TEST'))"}
    lines = [one.strip() for one in after(**parts, epochs="if True:", batches="pass", step="")]
    assert [one for one in lines if "wrap" in one] == [f"model = ddp.wrap({given}.cuda())".replace("module=", "model=")]


def test_on_an_attribute() -> None:
    defs = """
    class Trainer:
        def __init__(self):
            self.net = Net()
            if torch.cuda.device_count() > 1:
                self.net = nn.DataParallel(self.net, device_ids=[0])
            self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)

        def run(self, loader):
            for epoch in range(2):
                for x, y in loader:
                    self.opt.zero_grad()
                    loss = F.cross_entropy(self.net(x), y)
                    loss.backward()
                    self.opt.step()
    """
    parts = {"defs": defs, "model": "", "optimizer": "", "epochs": "if True:", "batches": "if True:", "step": "Trainer().run(loader)"}
    assert "self.net = ddp.wrap(self.net)" in after(**parts)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        pytest.param("self.net = net.to('cpu')", False, id="given before"),
        pytest.param("self.net = net\n        self.other = 3", False, id="and another attribute"),
        pytest.param("self.net = net\n        net = tidy(net)", True, id="the variable is given something else"),
        pytest.param("self.net = Net()", True, id="another model"),
        pytest.param("self.size = 3", True, id="not given"),
    ],
)
def test_an_attribute_that_holds_the_model_already(given: str, kept: bool) -> None:
    defs = f"""
    class Trainer:
        def __init__(self, net):
            {given.replace(chr(10), chr(10) + "    ")}
            if torch.cuda.device_count() > 1:
                self.net = nn.DataParallel(net, device_ids=[0])
            self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)

        def run(self, loader):
            for epoch in range(2):
                for x, y in loader:
                    self.opt.zero_grad()
                    loss = F.cross_entropy(self.net(x), y)
                    loss.backward()
                    self.opt.step()
    """
    parts = {"defs": defs, "model": "", "optimizer": "", "epochs": "if True:", "batches": "if True:", "step": "Trainer(Net()).run(loader)"}
    lines = after(**parts)
    assert "self.net = ddp.wrap(self.net)" in lines
    assert ("self.net = net" in lines) is kept


@pytest.mark.parametrize(
    ("test", "line"),
    [
        pytest.param("isinstance(model, nn.DataParallel)", 'print(hasattr(model, "module"))', id="attribute"),
        pytest.param("isinstance(model, torch.nn.parallel.DataParallel)", 'print(hasattr(model, "module"))', id="full name"),
        pytest.param("isinstance(model, (nn.DataParallel, nn.parallel.DistributedDataParallel))", 'print(hasattr(model, "module"))', id="several classes"),
        pytest.param("type(model) in (nn.DataParallel, nn.parallel.DistributedDataParallel)", 'print(hasattr(model, "module"))', id="type in"),
        pytest.param("type(model) is nn.parallel.DistributedDataParallel", 'print(hasattr(model, "module"))', id="type is"),
        pytest.param("type(model) != nn.DataParallel", 'print(not hasattr(model, "module"))', id="another type"),
        pytest.param("isinstance(model, (nn.DataParallel, Net))", "print(isinstance(model, (nn.DataParallel, Net)))", id="another class among them"),
    ],
)
def test_questions_for_the_class(test: str, line: str) -> None:
    assert line in whole(model="model = nn.DataParallel(Net())", end=f"print({test})")


_EMA = """
class Averaged:
    def __init__(self, model):
        self.module = model


class Double(nn.Module):
    def __init__(self):
        super().__init__()
        self.module = nn.Linear(8, 2)

    def forward(self, x):
        return 2 * self.module(x)


def bare(model):
    return model.module if isinstance(model, nn.DataParallel) else model
"""


def test_a_model_with_an_attribute_module_is_not_taken_for_a_wrapper() -> None:
    """What is asked may be an object of such a class, or is seen to be none."""
    parts = {"defs": _EMA, "model": "model = nn.DataParallel(Net())", "before": "other = Double()\nema = Averaged(model)"}
    assert "isinstance(model, nn.DataParallel)" in refused("DPM101", **parts, end="print(bare(other))\nprint(bare(model))")
    assert refused("DPM101", **parts, end="print(bare(model))") == []


def test_sync_bn() -> None:
    settings = Settings(sync_bn=True)
    assert "    model = ddp.wrap(Net(), sync_bn=True)\n" in whole(settings, model="model = nn.DataParallel(Net())")
    line = "model = ddp.wrap(model, sync_bn=True)"
    assert line in after(settings, before="if torch.cuda.device_count() > 1:\n    model = nn.DataParallel(model)")
    assert "model = ddp.wrap(Net().cuda(), sync_bn=True)" in after(settings, model="model = nn.DataParallel(Net()).cuda()")


@pytest.mark.parametrize(
    "call",
    ["nn.DataParallel(Net(), *[[0]])", "nn.DataParallel(Net(), **{})", "nn.DataParallel(module=Net())"],
)
def test_arguments_that_cannot_be_read_are_refused(call: str) -> None:
    assert refused("DPM101", model=f"model = {call}") == [call]


def test_a_wrap_under_a_condition_without_a_name_is_left_to_its_own_rule() -> None:
    parts = {"before": "if os.environ:\n    print(nn.DataParallel(model))"}
    assert found("DPM101", **parts) == []
    assert refused("DPM904", **parts) == ["nn.DataParallel(model)"]


@pytest.mark.parametrize(
    ("step", "moves"),
    [
        pytest.param("out = model(x.cuda())", False, id="moved"),
        pytest.param("x = x.to('cuda', non_blocking=True)\nout = model(x)", False, id="moved before"),
        pytest.param("out = model(*[x.cuda()])", True, id="unpacked"),
        pytest.param("out = model({'x': x}['x'])", True, id="nothing moves it"),
    ],
)
def test_inputs_that_data_parallel_moved(step: str, moves: bool) -> None:
    """DDP moves what it is given where ``device_ids`` are given; a model of one GPU keeps lengths on the CPU."""
    step = f"{step}\noptimizer.zero_grad()\nF.cross_entropy(out, y.cuda()).backward()\noptimizer.step()"
    assert ("move_inputs=True" in whole(model="model = nn.DataParallel(Net().cuda())", step=step)) is moves
    assert "move_inputs" not in whole(model="model = Net().cuda()", step=step)


_FACTORY = """
def build(args):
    model = Net()
    if not args.bare:
        model = nn.DataParallel(model)
        if args.tuned:
            model.module.fc = nn.Linear(8, 2)
            return {given}
    elif args.tuned:
        return {given}
    return {given}
"""
_OPTIONS = "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--bare', action='store_true')\nparser.add_argument('--tuned', action='store_true')"
_FACTORY += _OPTIONS


@pytest.mark.parametrize(("given", "model"), [("model", "model"), ("model, list(model.parameters())", "model, given")])
def test_a_function_that_gives_the_model_back_in_a_branch(given: str, model: str) -> None:
    """Its caller wraps it once, whatever branch it comes from, and what was asked of the wrapper before is asked of the model."""
    text = whole(defs=_FACTORY.format(given=given), model=f"args = parser.parse_args()\n{model} = build(args)")
    assert "DataParallel(" not in text and "            model.fc = nn.Linear(8, 2)\n" in text
    assert text.count("ddp.wrap(") == 1 and f"    {model} = " in text.partition("ddp.wrap(")[0]


def test_names_that_begin_with_that_of_the_wrapper() -> None:
    """Which parameters a branch picks by ``module.fc`` goes by the wrapper: the model is not taken out of it there."""
    picked = "[p for n, p in model.named_parameters() if n.startswith('module.fc')]"
    assert "DPM904" in set(codes(_FACTORY.format(given=f"model, {picked}"), "args = parser.parse_args()\nmodel, given = build(args)"))


def codes(defs: str, model: str) -> list[str]:
    return [f.code for f in findings(program(defs=defs, model=model))]
