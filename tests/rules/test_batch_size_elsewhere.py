"""DPM203: shapes that are made from the global batch size."""

from __future__ import annotations

import pytest

from dpmigrate.settings import Settings
from tests.rules.program import STEP, after, found, refused, whole

_LOADER = "loader = DataLoader(train_set, batch_size=bs, shuffle=True)"
_ARGS = "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--bs', type=int, default=16)"


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
    ],
)
def test_nothing_to_say(parts: dict[str, str]) -> None:
    assert found("DPM203", setup="bs = 16", loader=_LOADER, **parts) == []


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
        "loader = DataLoader(train_set, batch_size=ddp.local_batch(bs), sampler=DistributedSampler(train_set, seed=ddp.common_seed()))",
        new,
    ]


@pytest.mark.parametrize(
    ("line", "new"),
    [
        pytest.param("print(loss.item() / bs)", "print(loss.item() / ddp.local_batch(bs))", id="a number of the batch"),
        pytest.param("right = (y == 1).sum().item()\nprint(100 * right / float(bs))", "print(100 * right / float(ddp.local_batch(bs)))", id="through a name"),
    ],
)
def test_counts_of_a_batch_of_training(line: str, new: str) -> None:
    assert new in after(setup="bs = 16", loader=_LOADER, step=STEP + line)


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({"step": STEP + "print(bs / loss.item())"}, id="divided by it"),
        pytest.param({"step": STEP + "print(len(train_set) / bs)"}, id="no number of the batch"),
        pytest.param({"step": STEP + "total += loss.item()\nprint(total / bs)", "epoch_start": "total = 0"}, id="a counter"),
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


def test_a_model_that_is_made_for_the_batch_is_refused() -> None:
    net = "class Net(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n        self.n = n\n        self.fc = nn.Linear(8, 2)\n\n"
    net += "    def forward(self, x):\n        return self.fc(x)"
    assert refused("DPM203", net=net, setup="bs = 16", loader=_LOADER, model="model = Net(bs)") == ["bs"]


def test_a_shape_of_training_and_evaluation_is_refused() -> None:
    defs = "def flat(x, bs):\n    return x.view(bs, -1)"
    end = "val_loader = DataLoader(val_set, batch_size=bs)\nfor x, y in val_loader:\n    print(model(flat(x, bs)))"
    assert refused("DPM203", defs=defs, setup="bs = 16", loader=_LOADER, step="x = flat(x, bs)\n" + STEP, end=end) == ["bs"]


def test_inside_the_model() -> None:
    net = "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.fc = nn.Linear(8, 2)\n\n"
    net += "    def forward(self, x):\n        return self.fc(x.view(bs, -1))"
    assert found("DPM203", net=net, defs="bs = 16", loader=_LOADER) == []


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
