"""Public names of what a program imports from a module of implementation."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator

import pytest
import torch
from torch import nn

from dpmigrate.library.layer_table import BARE, BASES, LAYERS
from dpmigrate.library.public_names import aliased
from dpmigrate.library.registry import FUNCTIONS, canonical
from dpmigrate.library.tables import Tables
from tests.execution.paper import executed, held, lines, placed

for _name in ("optim.swa_utils", "utils.checkpoint", "profiler", "distributed", "func", "utils.data", "nn.utils.parametrizations", "nn.utils.prune", "ao.quantization.fx.prepare"):
    importlib.import_module(f"torch.{_name}")


@pytest.mark.parametrize(
    ("name", "public"),
    [
        ("torch.amp.grad_scaler.GradScaler", "torch.amp.GradScaler"),
        ("torch.cuda.amp.grad_scaler.GradScaler", "torch.amp.GradScaler"),
        ("torch.nn.modules.distance.PairwiseDistance", "torch.nn.PairwiseDistance"),
        ("torch.nn.modules.loss._Loss", "torch.nn._Loss"),
        ("torch.nn.modules.batchnorm._BatchNorm", "torch.nn._BatchNorm"),
        ("torch.utils.data.dataloader.DataLoader", "torch.utils.data.DataLoader"),
        ("torch.nn.utils.clip_grad.clip_grad_norm_", "torch.nn.utils.clip_grad_norm_"),
        ("torch.functional.norm", "torch.norm"),
        ("torch_geometric.loader.dataloader.DataLoader", "torch_geometric.loader.DataLoader"),
        ("torch.sparse.softmax", "torch.sparse.softmax"),
        ("torch.cuda.comm.gather", "torch.cuda.comm.gather"),
        ("torch.distributed.gather", "torch.distributed.gather"),
        ("torch.nn.quantized.Linear", "torch.nn.quantized.Linear"),
        ("numpy.linalg.det", "numpy.linalg.det"),
        ("nobody.optim.adam.Adam", "nobody.optim.adam.Adam"),
    ],
)
def test_public_names(name: str, public: str) -> None:
    assert canonical(name) == public


def _imported() -> Iterator[tuple[str, object]]:
    """What the public modules of torch define, by its dotted names."""
    for module, loaded in sorted(sys.modules.items()):
        if module.startswith("torch.") and not any(w.startswith("_") for w in module.split(".")):
            for name, found in list(vars(loaded).items()):
                if callable(found) and getattr(found, "__module__", "") == module:
                    yield f"{module}.{name}", found


def _called(name: str) -> object:
    found: object = torch
    for word in name.split(".")[1:]:
        found = getattr(found, word)
    return found


#: classes of an old spelling that only fix an argument of the other
_OLD = ("torch.cuda.amp.", "torch.cpu.amp.")


def test_a_public_name_is_the_same_object() -> None:
    others, same = [], 0
    for name, found in _imported():
        public = canonical(name)
        if public in (name, aliased(name)) or name.startswith(_OLD):
            continue
        if public.rpartition(".")[2].startswith("_"):
            continue  # a base class that the package does not show
        if _called(public) is found:
            same += 1
        else:
            others.append((name, public))
    assert not others
    assert same > 100


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("torch.nn.modules.loss._Loss", "criterion"),
        ("torch.nn.modules.conv.Conv2d", "module"),
        ("torch.optim.optimizer.Optimizer", "optimizer"),
        ("torch.optim.lr_scheduler._LRScheduler", "scheduler"),
        ("torch.utils.data.dataset.Dataset", "dataset"),
        ("torch.nn.parallel.data_parallel.DataParallel", "wrapper"),
        ("torch.nn.modules.container.Sequential", "container"),
    ],
)
def test_kinds_of_base_classes(name: str, kind: str) -> None:
    assert Tables().kinds(name) == {kind}


def test_every_layer_of_torch_has_a_row() -> None:
    layers = {n for n in dir(nn) if isinstance(c := getattr(nn, n), type) and issubclass(c, nn.Module)}
    assert {n for n in layers - BASES if f"torch.nn.{n}" not in FUNCTIONS} - set(LAYERS) <= {"Module", "LinearCrossEntropyLoss"}
    assert set(LAYERS) <= set(dir(nn))


@pytest.mark.parametrize("name", sorted(set(BARE) & set(dir(nn))))
def test_bare_layers_have_no_parameters(name: str) -> None:
    module = getattr(nn, name)
    for given in ((), (2,), (2, 2), (1, (1, 1)), ((1, 1), 1)):
        more = {"output_size": 1} if name.startswith("Fractional") else {}
        try:
            made = module(*given, **more)
        except TypeError:
            continue
        assert not list(made.parameters())
        return
    pytest.fail("it was not made")


_TRAIN = """
from torch import nn
from torch.nn.modules.loss import _Loss
from torch.optim.adam import Adam
from torch.nn.modules.linear import Linear
from torch.utils.data.dataloader import DataLoader
from torch.amp.grad_scaler import GradScaler

class Squared(_Loss):
    def forward(self, x, y):
        return (x - y).pow(2).mean()

model = Linear(2, 2)
optimizer = Adam(model.parameters())
scaler = GradScaler()
for x, y in DataLoader(list(zip(torch.ones(8, 2), torch.ones(8, 2))), batch_size=4):
    loss = Squared()(model(x), y)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
"""


def test_a_program_that_imports_from_modules_of_implementation() -> None:
    ex = executed(_TRAIN)
    assert placed(ex, "loss") == "partial(mean)"
    assert len(lines(ex, "backward")) == len(lines(ex, "scaler step")) == 1
    assert held(ex, "scaler")
