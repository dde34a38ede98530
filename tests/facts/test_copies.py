"""What counts the copies that DataParallel makes of a model, and what is done with the number."""

from __future__ import annotations

import pytest

from dpmigrate.facts.copies import averages, counts, uses
from tests.facts.probe import probed
from tests.pipeline import script
from tests.rules.program import program

_PROGRAM = """
import os
import torch
from torch import nn
from torch.cuda import device_count as number
n = number()
copies = max(1, torch.cuda.device_count())
one, n_gpu = 1, torch.accelerator.device_count()
ngpu = int(os.environ["NGPU"])
num_gpus = 4
n_gpus = 2 * width
half = torch.cuda.device_count() // 2
found, rest = make()
either = torch.cuda.device_count()
either = 3.5 * width
loop = loop_again
loop_again = loop
num_devices = torch.cuda.device_count()
for gpu_count in range(3):
    pass
args.num_gpu = len(args.gpus)
args.devices = width * 2
def given(count, gpu_num=0):
    probe({expression})
given(torch.cuda.device_count())
model = nn.DataParallel(Net())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""


def counted(expression: str) -> bool:
    found, node = probed(_PROGRAM.replace("{expression}", expression))
    return counts(found.roles, node)


@pytest.mark.parametrize(
    "expression",
    ["len(args.sizes)", "len([1, 2])", "len(a, b)", "max(a, b)", "int()", "sum(n)", "3", "n + 1", "width", "one", "n_gpus", "half", "either", "loop", "found", "args.devices", "n_devices", "len(devices)", "given"],
)  # fmt: skip
def test_something_else(expression: str) -> None:
    assert not counted(expression)


@pytest.mark.parametrize(
    "expression",
    ["number()", "torch.cuda.device_count()", "n", "copies", "n_gpu", "ngpu", "num_gpus", "num_devices", "gpu_count", "args.num_gpu", "args.n_gpu", "self.ngpus", "len(gpu_ids)", "len(args.gpus)", "len(device_ids)", "count", "gpu_num", "int(n)", "float(max(1, n_gpu))"],
)  # fmt: skip
def test_the_number_of_gpus(expression: str) -> None:
    assert counted(expression)


_STEP = "optimizer.zero_grad()\n{}\nloss.backward()\noptimizer.step()"


def averaged(lines: str, model: str = "model = nn.DataParallel(Net())") -> list[int]:
    found = script(program(setup="n_gpu = torch.cuda.device_count()", model=model, step=_STEP.format(lines)))
    return [a.node.lineno - b.lineno for a in averages(found.roles) for b in found.roles.backwards]


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param("loss = model(x).sum() / 3", id="another number"),
        pytest.param("loss = model(x).sum(1) / n_gpu", id="along an axis"),
        pytest.param("loss = torch.sum(model(x), 1) / n_gpu", id="along an axis, by function"),
        pytest.param("loss = model(x).sum() * n_gpu", id="a factor"),
        pytest.param("loss = F.cross_entropy(model(x), y).sum() / n_gpu", id="not of the copies"),
        pytest.param("loss = model(x).mean() / n_gpu", id="no sum"),
        pytest.param("loss = y.sum() / n_gpu", id="of the data"),
        pytest.param("a, b = model(x).sum(), 1\nloss = b / n_gpu", id="an element of another"),
    ],
)
def test_no_average_over_the_copies(lines: str) -> None:
    assert averaged(lines) == []


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param("loss = model(x).sum() / n_gpu", id="at once"),
        pytest.param("loss = model(x)\nloss = torch.sum(loss) / n_gpu", id="by a variable"),
        pytest.param("loss, out = model(x)\nloss = loss.sum().cuda() / n_gpu", id="an element"),
        pytest.param("out = model(x)\nloss = out['loss'].sum()\nloss /= n_gpu", id="in place"),
        pytest.param("out = model(x)\nloss = out.loss.sum() / n_gpu", id="a field"),
    ],
)
def test_an_average_over_the_copies(lines: str) -> None:
    assert averaged(lines) == [-1]


def test_without_dataparallel_there_are_no_copies() -> None:
    assert averaged("loss = model(x).sum() / n_gpu", model="model = Net()") == []


def used(lines: str, before: str = "") -> list[str]:
    found = script(program(setup="n_gpu = torch.cuda.device_count()", model="model = nn.DataParallel(Net())", before=before, step=_STEP.format(lines)))
    return [u.kind for u in uses(found.roles)]


@pytest.mark.parametrize(
    ("lines", "kinds"),
    [
        pytest.param("loss = model(x, x.repeat(n_gpu, 1)).sum()", ["input"], id="repeated"),
        pytest.param("t = x.repeat(n_gpu, 1)\nu = t.float()\nloss = model(u).sum()", ["input"], id="through two variables"),
        pytest.param("t: object = x.repeat(n_gpu, 1)\nloss = model(t).sum()", ["input"], id="annotated"),
        pytest.param("t = x.new_zeros(n_gpu)\nloss = model(x).sum()", ["shape"], id="not for the model"),
        pytest.param("print(torch.zeros(n_gpu))\nloss = model(x).sum()", ["shape"], id="in a statement of its own"),
        pytest.param("t = torch.zeros((n_gpu, 2))\nloss = model(t).sum()", ["input"], id="a shape in a tuple"),
        pytest.param("t = torch.zeros(size=[n_gpu, 2])\nloss = model(t).sum()", ["input"], id="a shape by keyword"),
        pytest.param("t = x.repeat(1, n_gpu)\nloss = model(t).sum()", [], id="along another axis"),
        pytest.param("t = torch.zeros((2, n_gpu))\nloss = model(t).sum()", [], id="along another axis, in a tuple"),
        pytest.param("t = [1] * n_gpu\nloss = model(x).sum()", [], id="a list"),
        pytest.param("t = torch.tensor(n_gpu * [1])\nloss = model(t).sum()", ["input"], id="a list, the other way round"),
        pytest.param("t = torch.cat([x for i in range(n_gpu)])\nloss = model(t).sum()", ["input"], id="joined"),
        pytest.param("t = torch.cat([x[i] for i in range(n_gpu)])\nloss = model(t).sum()", [], id="the parts of the GPUs"),
        pytest.param("t = [x for i in range(0, n_gpu)]\nloss = model(x).sum()", [], id="a range from a number"),
        pytest.param("for i in range(n_gpu):\n    print(i)\nloss = model(x).sum()", [], id="a loop"),
        pytest.param("t = (n_gpu * 2)\nloss = model(x).sum()", [], id="a product"),
        pytest.param("t = x.size(0) / n_gpu\nloss = model(x).sum()", ["share"], id="a part of the batch"),
        pytest.param("t = x.size(1) / n_gpu\nloss = model(x).sum()", [], id="a part of something else"),
        pytest.param("t = make[0](n_gpu)\nloss = model(x).sum()", [], id="nothing that has a name"),
    ],
)
def test_uses(lines: str, kinds: list[str]) -> None:
    assert used(lines) == kinds


def test_a_batch_outside_of_training_has_no_parts() -> None:
    assert used("loss = model(x).sum()", before="part = train_set.size(0) // n_gpu") == []
