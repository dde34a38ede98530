"""DPM203: shapes that are made from the global batch size."""

from __future__ import annotations

import pytest

from dpmigrate.model import Severity
from dpmigrate.settings import Settings
from tests.rules.program import STEP, after, found, hits, refused, whole

_LOADER = "loader = DataLoader(train_set, batch_size=bs, shuffle=True)"
_ARGS = "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--bs', type=int, default=16)"

_CUT = "x = x + ones[:x.size(0)]\n"
_CUT_TO_EVALUATE = "with torch.no_grad():\n    for x, y in DataLoader(val_set, batch_size=bs):\n        print(model(x + ones[:len(x)]).sum())"


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({"step": "x = x.view(16, -1)\n" + STEP}, id="a literal is not the setting"),
        pytest.param({"step": "bs = x.size(0)\nx = x.view(bs, -1)\n" + STEP}, id="rebound to the batch at hand"),
        pytest.param({"step": "x = x.view(x.size(0), -1)\n" + STEP}, id="the batch at hand"),
        pytest.param({"step": "print(bs)\n" + STEP}, id="not a shape"),
        pytest.param({"step": "f(x)\n" + STEP, "defs": "def f(x):\n    bs = x.size(0)\n    return x.view(bs, -1)"}, id="a local of the same name"),
        pytest.param({"step": "f(x)\n" + STEP, "defs": "def f(x, bs=4):\n    return x.view(bs, -1)"}, id="a parameter of the same name"),
        pytest.param({"end": "print(torch.zeros(bs))"}, id="outside training"),
        pytest.param({"end": "val_loader = DataLoader(val_set, batch_size=bs)"}, id="another loader"),
        pytest.param({"end": "bs += 1"}, id="written, not read"),
        pytest.param({"setup": "bs = 16\nones = torch.ones(bs, 1)", "step": _CUT + STEP, "end": _CUT_TO_EVALUATE}, id="cut to the batch"),
    ],
)
def test_nothing_to_say(parts: dict[str, str]) -> None:
    assert found("DPM203", **{"setup": "bs = 16", "loader": _LOADER, **parts}) == []


@pytest.mark.parametrize(
    ("line", "new"),
    [
        pytest.param("x = x.view(bs, -1)", "x = x.view(ddp.local_batch(bs), -1)", id="view"),
        pytest.param("x = torch.reshape(x, shape=(bs, -1))", "x = torch.reshape(x, shape=(ddp.local_batch(bs), -1))", id="keyword"),
        pytest.param("h = torch.zeros(bs * 2, 3)", "h = torch.zeros(ddp.local_batch(bs) * 2, 3)", id="part of an expression"),
        pytest.param("h = x.new_zeros(bs)", "h = x.new_zeros(ddp.local_batch(bs))", id="new_zeros"),
    ],
)
def test_shapes_in_training(line: str, new: str) -> None:
    parts = {"setup": "bs = 16", "loader": _LOADER, "step": f"{line}\n{STEP}"}
    assert found("DPM203", **parts) == ["bs"]
    assert after(**parts) == [
        "loader = DataLoader(train_set, batch_size=ddp.local_batch(bs), sampler=ddp.DistributedSampler(train_set))",
        new,
    ]


@pytest.mark.parametrize(
    ("line", "new"),
    [
        pytest.param("print(x.abs().sum().item() / bs)", "print(x.abs().sum().item() / ddp.local_batch(bs))", id="a number of the batch"),
        pytest.param("print(loss.item() / bs)", "loader = DataLoader(train_set, batch_size=ddp.local_batch(bs), sampler=ddp.DistributedSampler(train_set))", id="a mean"),
        pytest.param("right = (y == 1).sum().item()\nprint(100 * right / float(bs))", "print(100 * right / float(ddp.local_batch(bs)))", id="through a name"),
        pytest.param("print((y == 1).sum().item() / (bs * 8))", "print((y == 1).sum().item() / (ddp.local_batch(bs) * 8))", id="with what a sample has"),
        pytest.param("print((y == 1).sum().item() / float(8 * bs))", "print((y == 1).sum().item() / float(8 * ddp.local_batch(bs)))", id="behind it"),
        pytest.param("right = torch.sum(y == 1)\nprint(right / bs)", "print(right / ddp.local_batch(bs))", id="hits, as a tensor"),
        pytest.param("right = y.eq(1).sum().float()\nprint(right / bs)", "print(right / ddp.local_batch(bs))", id="hits by eq"),
    ],
)
def test_counts_of_a_batch_of_training(line: str, new: str) -> None:
    lines = after(setup="bs = 16", loader=_LOADER, step=STEP + line)
    assert new in lines and sum("local_batch(bs)" in e for e in lines) == 1 + ("DataLoader" not in new)


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({"step": STEP + "print(bs / loss.item())"}, id="divided by it"),
        pytest.param({"step": STEP + "print(len(train_set) / bs)"}, id="no number of the batch"),
        pytest.param({"step": STEP + "total += loss.item()\nprint(total / bs)", "epoch_start": "total = 0"}, id="a counter"),
        pytest.param({"step": STEP + "print((y == 1).float().mean() / bs)"}, id="a share of hits"),
        pytest.param({"step": STEP + "model.eval()\nprint(loss.item() / bs)"}, id="of a batch of evaluation"),
        pytest.param({"end": "print(loss.item() / bs)"}, id="outside training"),
        pytest.param({"step": STEP.replace("y)", "y, reduction='sum') / bs")}, id="the loss itself"),
    ],
)
def test_other_divisions(parts: dict[str, str]) -> None:
    assert found("DPM203", setup="bs = 16", loader=_LOADER, **parts) == []


def test_module_level_and_from_import() -> None:
    parts = {"imports": "from torch import zeros", "setup": "bs = 16", "loader": _LOADER, "step": "h = zeros(bs)\n" + STEP}
    assert "h = zeros(ddp.local_batch(bs))" in after(module_level=True, **parts)


def test_setting_of_the_command_line_in_another_function() -> None:
    parts = {
        "imports": _ARGS, "setup": "args = parser.parse_args()", "loader": "loader = DataLoader(train_set, args.bs, True)",
        "defs": "def flat(args, x):\n    return x.view(args.bs, -1)", "step": "x = flat(args, x)\n" + STEP,
    }  # fmt: skip
    assert "return x.view(ddp.local_batch(args.bs), -1)" in after(**parts)


def test_parameter_that_is_given_the_setting() -> None:
    parts = {"setup": "bs = 16", "loader": _LOADER, "defs": "def flat(x, n):\n    return x.view(n, -1)", "step": "x = flat(x, bs)\n" + STEP}
    assert "return x.view(ddp.local_batch(n), -1)" in after(**parts)


_KEEPS = "class Net(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n        self.n = n\n        self.fc = nn.Linear(8, 2)\n\n"


@pytest.mark.parametrize("read", ["ones[:x.size(0) - 1]", "ones[1:x.size(0)]", "ones[:bs]", "ones"])
def test_rows_that_are_not_cut_to_the_batch_count(read: str) -> None:
    step = f"{_CUT}x = x + {read}.sum()\n{STEP}"
    assert found("DPM203", setup="bs = 16\nones = torch.ones(bs, 1)", loader=_LOADER, step=step, end=_CUT_TO_EVALUATE)


def test_a_model_that_is_made_for_the_batch_is_refused() -> None:
    net = _KEEPS + "    def forward(self, x):\n        return self.fc(x.view(self.n, -1))"
    assert refused("DPM203", net=net, setup="bs = 16", loader=_LOADER, model="model = Net(bs)") == ["bs"]
    net = _KEEPS.replace("self.n = n", "self.h = torch.zeros(n, 8)") + "    def forward(self, x):\n        return self.fc(x + self.h)"
    assert refused("DPM203", net=net, setup="bs = 16", loader=_LOADER, model="model = Net(n=bs)") == ["bs"]


def test_a_model_that_forgets_the_batch_size() -> None:
    net = _KEEPS + "    def forward(self, x):\n        return self.fc(x)"
    assert found("DPM203", net=net, setup="bs = 16", loader=_LOADER, model="model = Net(bs)") == []
    assert found("DPM203", net=net.replace("self.n = n", "pass"), setup="bs = 16", loader=_LOADER, model="model = Net(bs)") == []


def test_a_model_of_another_file_may_keep_it() -> None:
    parts = {"imports": "from models import Net", "net": "", "setup": "bs = 16", "loader": _LOADER}
    assert refused("DPM203", model="model = Net(bs)", **parts) == ["bs"]


def test_a_method_of_the_model_that_makes_its_state() -> None:
    net = "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.fc = nn.Linear(8, 2)\n\n"
    net += "    def start(self, n):\n        return torch.zeros(n, 8)\n\n    def forward(self, x, h):\n        return self.fc(x + h)"
    step = STEP.replace("model(x)", "model(x, h)")
    parts = {"net": net, "setup": "bs = 16", "loader": _LOADER}
    assert "h = model.module.start(ddp.local_batch(bs))" in after(step="h = model.start(bs)\n" + step, **parts)
    assert "h = model.start(n=ddp.local_batch(bs))" in after(before="h = model.start(n=bs)", step=step, **parts)


def test_each_call_of_a_function_is_judged_by_itself() -> None:
    defs = "def flat(x, n):\n    return x.view(n, -1)"
    end = "val_loader = DataLoader(val_set, batch_size=bs)\nfor x, y in val_loader:\n    print(model(flat(x, bs)))"
    parts = {"defs": defs, "setup": "bs = 16", "loader": _LOADER}
    new = after(step="x = flat(x, bs)\n" + STEP, end=end, **parts)
    assert "x = flat(x, ddp.local_batch(bs))" in new
    assert "return x.view(ddp.local_batch(n), -1)" not in new
    assert "print(model.module(flat(x, bs)))" in whole(step="x = flat(x, bs)\n" + STEP, end=end, **parts)


def test_a_function_that_gets_the_size_of_the_batch_elsewhere() -> None:
    parts = {"defs": "def draw(n):\n    return torch.randn(n, 8)", "setup": "bs = 16", "loader": _LOADER}
    assert found("DPM203", step="x = x + draw(x.size(0))\n" + STEP, end="print(draw(bs))", **parts) == []
    assert "x = x + draw(ddp.local_batch(bs))" in after(step="x = x + draw(bs)\n" + STEP, end="print(draw(4))", **parts)
    assert "x = x + draw(n=ddp.local_batch(bs))" in after(
        step="x = x + draw(n=bs)\n" + STEP, end="print(draw())", **{**parts, "defs": parts["defs"].replace("(n)", "(n=3)", 1)}
    )


def test_a_function_that_trains_loaders_of_several_sizes_is_refused() -> None:
    defs = "def run(loader, model, optimizer, n):\n    for x, y in loader:\n        x = x.view(n, -1)\n" + "".join(
        f"        {line}\n" for line in STEP.splitlines()
    )
    end = "run(loader, model, optimizer, bs)\nrun(DataLoader(val_set, batch_size=4), model, optimizer, 4)"
    assert refused("DPM203", defs=defs, setup="bs = 16", loader=_LOADER, epochs="", batches="", step="", end=end) == ["n"]


def test_a_size_of_the_whole_program_in_training_and_evaluation_is_refused() -> None:
    defs = "def flat(x):\n    return x.view(args.bs, -1)"
    end = "val_loader = DataLoader(val_set, batch_size=args.bs)\nfor x, y in val_loader:\n    print(model(flat(x)))"
    parts = {"imports": _ARGS + "\nargs = parser.parse_args()", "loader": "loader = DataLoader(train_set, args.bs, True)", "defs": defs}
    assert refused("DPM203", step="x = flat(x)\n" + STEP, end=end, **parts) == ["args.bs"]


def test_inside_the_model() -> None:
    net = "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.fc = nn.Linear(8, 2)\n\n"
    net += "    def forward(self, x):\n        return self.fc(x.view(bs, -1))"
    assert "return self.fc(x.view(ddp.local_batch(bs), -1))" in after(net=net, defs="bs = 16", loader=_LOADER)
    end = "for x, y in DataLoader(val_set, batch_size=bs):\n    print(model(x))"
    assert refused("DPM203", net=net, defs="bs = 16", loader=_LOADER, end=end) == ["bs"]


@pytest.mark.parametrize(
    ("forward", "refusal"),
    [
        pytest.param("return self.fc(x)", [], id="kept for nobody"),
        pytest.param("return self.fc(x.view(self.bs, -1))", ["args.bs"], id="read"),
        pytest.param("return self.fc(x + 0 * other(self).bs)", ["args.bs"], id="perhaps read"),
    ],
)
def test_a_size_that_the_model_keeps(forward: str, refusal: list[str]) -> None:
    """A setting of that name is read elsewhere, of the options."""
    net = "class Net(nn.Module):\n    def __init__(self, bs):\n        super().__init__()\n        self.bs = bs\n        self.fc = nn.Linear(8, 2)\n\n"
    net += f"    def forward(self, x):\n        {forward}"
    parts = {"imports": _ARGS + "\nargs = parser.parse_args()", "loader": "loader = DataLoader(train_set, args.bs, True)", "model": "model = Net(args.bs)"}
    assert refused("DPM203", net=net, end="print(args.bs)", **parts) == refusal


@pytest.mark.parametrize(
    ("part", "refusal"),
    [
        pytest.param("self.fc = nn.Linear(size, 2)", [], id="used by nobody"),
        pytest.param("self.rows = rows\n        self.fc = nn.Linear(size, 2)", [], id="kept for nobody"),
        pytest.param("self.state = torch.zeros(rows, 2)\n        self.fc = nn.Linear(size, 2)", ["bs"], id="used"),
        pytest.param("self.fc = nn.Linear(size, 2)\n        print(rows)", ["bs"], id="perhaps used"),
        pytest.param("self.fc = nn.Linear(size, 2) if rows else Part(8, rows)", ["bs"], id="handed on to itself"),
    ],
)
def test_a_size_that_the_model_hands_on(part: str, refusal: list[str]) -> None:
    head = f"class Part(nn.Module):\n    def __init__(self, size, rows=4):\n        super().__init__()\n        {part}\n\n"
    head += "    def forward(self, x):\n        return self.fc(x)\n\n\n"
    net = "class Net(nn.Module):\n    def __init__(self, bs):\n        super().__init__()\n        self.head = Part(8, bs)\n\n"
    net += "    def forward(self, x):\n        return self.head(x)"
    assert refused("DPM203", net=head + net, setup="bs = 16", loader=_LOADER, model="model = Net(bs)") == refusal


# ------------------------------------------------------------------ other places that count samples
@pytest.mark.parametrize(
    ("line", "new"),
    [
        pytest.param("a, b = out[:bs], out[bs:]", "a, b = out[:ddp.local_batch(bs)], out[ddp.local_batch(bs):]", id="halves"),
        pytest.param("a, b = torch.split(out, bs)", "a, b = torch.split(out, ddp.local_batch(bs))", id="split"),
        pytest.param("a, b = out.split(bs)", "a, b = out.split(ddp.local_batch(bs))", id="split, a method"),
        pytest.param("a = out.narrow(0, 0, bs)", "a = out.narrow(0, 0, ddp.local_batch(bs))", id="narrow"),
        pytest.param("a = torch.tensor([1.0] * bs)", "a = torch.tensor([1.0] * ddp.local_batch(bs))", id="a list"),
        pytest.param("a = torch.randint(0, 9, size=(bs,))", "a = torch.randint(0, 9, size=(ddp.local_batch(bs),))", id="whole numbers"),
        pytest.param("a = torch.FloatTensor(bs, 1).fill_(1.0)", "a = torch.FloatTensor(ddp.local_batch(bs), 1).fill_(1.0)", id="a constructor"),
        pytest.param("a = [out[i] for i in range(bs)]", "a = [out[i] for i in range(ddp.local_batch(bs))]", id="each sample"),
        pytest.param("a = torch.zeros(bs - x.size(0), 8)", "a = torch.zeros(ddp.local_batch(bs) - x.size(0), 8)", id="what is missing in the last batch"),
        pytest.param("a = noise.sample((bs, 8))", "a = noise.sample((ddp.local_batch(bs), 8))", id="a distribution"),
        pytest.param("a = normal.sample(torch.Size([bs]))", "a = normal.sample(torch.Size([ddp.local_batch(bs)]))", id="a distribution of torch's"),
        pytest.param("a = normal.rsample([bs])", "a = normal.rsample([ddp.local_batch(bs)])", id="a differentiable draw"),
    ],
)
def test_counts_of_samples(line: str, new: str) -> None:
    step = f"out = model(torch.cat([x, x]))\n{line}\nloss = out.sum()\nloss.backward()\noptimizer.step()"
    assert new in after(imports="from torch.distributions import Normal", setup="bs = 16\nnormal = Normal(0.0, 1.0)", loader=_LOADER, step=step)


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("a = memory.sample(bs)", id="a memory"),
        pytest.param("a = torch.FloatTensor([bs])", id="data"),
        pytest.param("a = range(0, 64, bs)", id="steps"),
        pytest.param("a = i > bs", id="another comparison"),
        pytest.param("a = i - bs", id="another difference"),
        pytest.param("a = (lambda: bs)()", id="a lambda"),
    ],
)
def test_no_counts_of_samples(line: str) -> None:
    assert found("DPM203", setup="bs = 16", loader=_LOADER, batches="for i, (x, y) in enumerate(loader):", step=f"{line}\n{STEP}") == []


def test_positions_in_the_order_of_the_data_are_refused() -> None:
    parts = {"setup": "bs = 16\nscores = torch.zeros(64, 2)", "loader": _LOADER, "batches": "for i, (x, y) in enumerate(loader):"}
    assert refused("DPM203", step=STEP + "scores[i * bs:(i + 1) * bs] = model(x).detach()", **parts) == ["bs", "bs"]


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("loss += (out[i] - 1).pow(2).mean()", id="added"),
        pytest.param("loss = loss + (out[i] - 1).pow(2).mean()", id="added to itself"),
        pytest.param("losses.append((out[i] - 1).pow(2).mean())", id="collected"),
    ],
)
def test_a_loss_that_goes_over_the_samples_is_refused(line: str) -> None:
    step = f"out, loss, losses = model(x), 0, []\nfor i in range(bs):\n    {line}\nloss = (loss + sum(losses)) / bs\nloss.backward()\noptimizer.step()"
    assert refused("DPM203", setup="bs = 16", loader=_LOADER, step=step) == ["bs"]


def test_a_loop_over_the_samples_that_adds_nothing() -> None:
    step = "for i in range(bs):\n    x[i] = x[i].flip(0)\n" + STEP
    assert "for i in range(ddp.local_batch(bs)):" in after(setup="bs = 16", loader=_LOADER, step=step)


# ------------------------------------------------------------------ made above the loops
@pytest.mark.parametrize(
    ("before", "step"),
    [
        pytest.param("buffer = torch.ones({}, 8)", "x = buffer.copy_(x)\n" + STEP, id="a buffer"),
        pytest.param("buffer = torch.ones({}, 8)", "buffer.data.copy_(x)\nprint(buffer)\n" + STEP, id="a buffer that is only filled"),
        pytest.param("target = torch.ones({}, 2)", STEP.replace("F.cross_entropy(model(x), y)", "F.mse_loss(model(x), target)"), id="a target"),
        pytest.param("target = torch.ones({}, 2)", STEP.replace("F.cross_entropy(model(x), y)", "F.mse_loss(model(x), target=target)"), id="by keyword"),
        pytest.param("target = torch.rand(2).expand({}, 2)", STEP.replace("y)", "y) * target.mean()"), id="expanded"),
        pytest.param("one = {{'real': torch.ones({}, 2)}}", STEP.replace("y)", "y) + (model(x) * one['real']).mean()"), id="in a dict"),
        pytest.param("held = []\nheld.append(torch.ones({}, 8))", "x = x + held[0]\n" + STEP, id="in a list"),
        pytest.param("held = [0]\nheld[0] = torch.ones({}, 8)", "x = x + held[0]\n" + STEP, id="put into a list"),
        pytest.param("a, b = torch.ones({}, 8), 1", "x = x + a\n" + STEP, id="one of several"),
        pytest.param("draw = lambda: torch.ones({}, 8)", "x = x + draw()\n" + STEP, id="a lambda"),
        pytest.param("draw = lambda n: torch.ones(n, 8) + torch.zeros({}, 8)", "x = x + draw(x.size(0))\n" + STEP, id="in a lambda"),
        pytest.param("ones = torch.ones({}, 8)\nfor part in [ones]:\n    both = part", "x = x + both\n" + STEP, id="through a loop"),
        pytest.param("ones: torch.Tensor = torch.ones({}, 2)\nones += 1", "right = (model(x) == ones).sum()\n" + STEP, id="compared with the batch"),
        pytest.param("z = torch.empty({}, 8)", "with torch.no_grad():\n    z.normal_()\nx = z.sign() * x\n" + STEP, id="noise"),
    ],
)
def test_made_above_the_loops(before: str, step: str) -> None:
    parts = {"setup": "bs = 16", "loader": _LOADER, "step": step}
    assert before.format("ddp.local_batch(bs)").splitlines()[-1 if "held" in before or "ones" not in before else 0] in after(
        before=before.format("bs"), **parts
    )


def test_a_function_that_makes_them() -> None:
    defs = "def buffers(n, width):\n    return torch.ones(n, width), 1\n\ndef add(x, one):\n    return x + one"
    new = after(defs=defs, setup="bs = 16", loader=_LOADER, before="one, two = buffers(bs, 8)", step="x = add(x, one=one)\n" + STEP)
    assert "one, two = buffers(ddp.local_batch(bs), 8)" in new


def test_a_lambda_that_is_given_the_size() -> None:
    parts = {"setup": "bs = 16\ndraw = lambda n: torch.ones(n, 8)", "loader": _LOADER}
    assert "draw = lambda n: torch.ones(ddp.local_batch(n), 8)" in after(step="x = x + draw(bs)\n" + STEP, **parts)
    assert "x = x + draw(n=ddp.local_batch(bs)) + draw(x.size(0))" in after(step="x = x + draw(n=bs) + draw(x.size(0))\n" + STEP, **parts)


def test_a_function_that_builds_the_loader_in_the_size_that_it_is_given() -> None:
    defs = "def run(bs):\n    train_set = TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,)))\n    first = train_set[:bs]\n    model = Net()\n"
    defs += "    loader = DataLoader(train_set, batch_size=bs)\n    ones = torch.ones(bs, 8)\n    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
    defs += "    for x, y in loader:\n        x = x + ones\n" + "".join(f"        {line}\n" for line in STEP.splitlines())
    empty = dict.fromkeys(("data", "loader", "model", "optimizer", "epochs", "batches", "step"), "")
    assert "ones = torch.ones(ddp.local_batch(bs), 8)" in whole(defs=defs, end="run(16)\nrun(32)", **empty)


def test_a_loader_of_single_samples_has_no_setting() -> None:
    assert found("DPM203", setup="bs = 16", loader="loader = DataLoader(train_set)", step="x = x.view(bs, -1)\n" + STEP) == []


def test_drawn_without_gradient_in_the_step() -> None:
    step = "with torch.no_grad():\n    z = torch.randn(bs, 8)\nx = x + z\n" + STEP
    assert "z = torch.randn(ddp.local_batch(bs), 8)" in after(setup="bs = 16", loader=_LOADER, step=step)


@pytest.mark.parametrize(
    ("step", "end"),
    [
        pytest.param(STEP + "with torch.no_grad():\n    print(model(fixed))", "", id="shown without gradient"),
        pytest.param(STEP + "out = model(fixed)\nprint(out.detach())", "", id="shown"),
        pytest.param(
            "out = model(x)\nloss = F.cross_entropy(out, y)\nloss.backward()\noptimizer.step()\nout = model(fixed)\ntorch.save(out, 'p')",
            "",
            id="shown under the name of the step",
        ),
        pytest.param(STEP + "print(len(fixed), fixed.shape, torch.zeros(len(fixed)))", "", id="its size"),
        pytest.param(STEP, "for x, y in DataLoader(val_set, batch_size=bs):\n    print(model(x + fixed))", id="for evaluation"),
        pytest.param(STEP, "for x, y in DataLoader(val_set, batch_size=bs):\n    print(F.mse_loss(model(x), fixed))", id="for a loss of evaluation"),
        pytest.param(STEP, "print((fixed * 2).mean())", id="not for a batch"),
        pytest.param(STEP + "show(fixed, x)", "", id="shown beside the batch"),
    ],
)
def test_what_meets_no_batch_of_training_stays_whole(step: str, end: str) -> None:
    imports = "from plots import show"
    assert found("DPM203", imports=imports, setup="bs = 16", loader=_LOADER, before="fixed = torch.randn(bs, 8)", step=step, end=end) == []


def test_for_training_and_evaluation_is_refused() -> None:
    end = "for x, y in DataLoader(val_set, batch_size=bs):\n    print(model(x + ones))"
    assert refused("DPM203", setup="bs = 16", loader=_LOADER, before="ones = torch.ones(bs, 8)", step="x = x + ones\n" + STEP, end=end) == ["bs"]


def test_per_rank_batches_need_nothing() -> None:
    assert found("DPM203", Settings(batch="per-rank"), setup="bs = 16", loader=_LOADER, step="x = x.view(bs, -1)\n" + STEP) == []


@pytest.mark.parametrize(
    ("loader", "shape", "line"),
    [
        pytest.param("loader = get_loader(args)", "args.batch_size", "z = torch.randn(ddp.local_batch(args.batch_size), 8)", id="a setting"),
        pytest.param("bs = 16\nloader = get_loader(3, n=bs)", "bs", "z = torch.randn(ddp.local_batch(bs), 8)", id="a variable that it is given"),
        pytest.param("bs = 16\nsize = 4\nloader = get_loader(bs)", "size", "z = torch.randn(size, 8)", id="another variable"),
    ],
)
def test_a_loader_of_another_file(loader: str, shape: str, line: str) -> None:
    """What is called a batch size is taken for that of the loader."""
    parts = {"imports": "from data import get_loader\nfrom options import args", "loader": loader, "step": f"z = torch.randn({shape}, 8)\n" + STEP}
    assert line in whole(**parts)


def test_a_part_of_each_gpu() -> None:
    """What DataParallel gave a copy of the model is what a rank has."""
    parts = {"setup": "bs = 16", "loader": _LOADER, "step": "z = torch.zeros(bs // torch.cuda.device_count(), 8)\n" + STEP}
    assert "z = torch.zeros(ddp.local_batch(bs), 8)" in whole(model="model = nn.DataParallel(Net())", **parts)
    assert "z = torch.zeros(ddp.local_batch(bs) // torch.cuda.device_count(), 8)" in whole(**parts)


def test_a_permutation_of_the_batch() -> None:
    parts = {"setup": "bs = 16", "loader": _LOADER}
    assert "mixed = x[torch.randperm(ddp.local_batch(bs))]" in whole(step="mixed = x[torch.randperm(bs)]\n" + STEP, **parts)
    assert found("DPM203", step="mixed = x[torch.randperm(x.size(0))]\n" + STEP, **parts) == []


@pytest.mark.parametrize(
    ("test", "dropped"),
    [
        ("x.size(0) != bs", True),
        ("len(x) < bs", True),
        ("bs > len(x)", True),
        ("bs != x.shape[0]", True),
        ("len(x) > bs", False),
        ("x.size(0) == bs", False),
    ],
)
@pytest.mark.parametrize("way", ["continue", "break"])
def test_a_smaller_batch_that_is_left_out_is_not_filled_up(test: str, dropped: bool, way: str) -> None:
    for given, there in (("", "drop_last=True"), (", drop_last=False", "drop_last=True"), (", drop_last=True", "drop_last=True")):
        text = whole(setup="bs = 16", loader=_LOADER.replace(")", f"{given})"), step=f"if {test}:\n    {way}\n{STEP}")
        assert (f"ddp.DistributedSampler(train_set, {there}" in text) is (dropped or "True" in given)


def test_a_smaller_batch_that_is_not_left_out_counts() -> None:
    text = whole(setup="bs = 16", loader=_LOADER, step=f"if x.size(0) != bs:\n    print('small')\n{STEP}")
    assert "drop_last" not in text


def test_a_smaller_batch_of_a_loader_that_cannot_be_read() -> None:
    parts = {"setup": "bs = 16\ngiven = dict(batch_size=bs, shuffle=True)", "loader": "loader = DataLoader(train_set, **given)"}
    (hit,) = [h for h in hits("DPM203", **parts, step=f"if x.size(0) != bs:\n    continue\n{STEP}") if h.severity is Severity.BLOCKER]
    assert "drop_last=True" in hit.advice


_GRID = """\
class Grid(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.size = size
        self.rows = nn.Parameter(torch.ones(SIZE, 3), requires_grad=False)

    def forward(self, x):
        return x.view(self.size, -1) + self.rows
"""


@pytest.mark.parametrize(
    ("size", "new"),
    [
        pytest.param("size", ["grid = Grid(ddp.local_batch(bs))"], id="a parameter, and the attribute that is given it"),
        pytest.param(
            "self.size",
            [
                "self.rows = nn.Parameter(torch.ones(ddp.local_batch(self.size), 3), requires_grad=False)",
                "return x.view(ddp.local_batch(self.size), -1) + self.rows",
            ],
            id="the attribute alone",
        ),
    ],
)
def test_a_size_is_divided_once(size: str, new: list[str]) -> None:
    parts = {"defs": _GRID.replace("SIZE", size), "setup": "bs = 16\ngrid = Grid(bs)", "loader": _LOADER, "step": f"x = grid(x)\n{STEP}"}
    made = after(**parts)
    assert [line for line in made if "local_batch" in line and "DataLoader" not in line] == new
