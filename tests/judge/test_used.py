"""What functions of the runtime give is used as what it is; weights are counted as the loss does."""

from __future__ import annotations

import pytest

from dpmigrate.judge import backwards, bound, devices, faults, given, used, weighted
from tests.judge.trained import result


def _names(**parts: str) -> set[str]:
    return {f.invariant for f in faults(result(**parts))}


@pytest.mark.parametrize(
    ("turn", "wrong"),
    [
        pytest.param("n = len(x) * ddp.world_size()", False, id="a number"),
        pytest.param("len(x) * ddp.world_size()", True, id="a number that nobody gets"),
        pytest.param("ddp.clean_keys(net.load_state_dict(torch.load('a.pt', map_location='cpu')))", True, id="keys that nobody gets"),
        pytest.param("net.load_state_dict(ddp.clean_keys(torch.load('a.pt', map_location='cpu'))['net'])", True, id="keys of the whole file"),
        pytest.param("net.load_state_dict(ddp.clean_keys(torch.load('a.pt', map_location='cpu')['net']))", False, id="keys of the state"),
        pytest.param("f = open(ddp.main_path('log.txt'), 'w')", False, id="a path"),
        pytest.param("f = open(ddp.main_path('%d.txt') % i, 'w')", True, id="a path that is filled in later"),
        pytest.param("import os\nf = open(os.path.join(ddp.main_path('out'), 'a'), 'w')", True, id="the path of a folder"),
    ],
)
def test_what_is_given_is_used(turn: str, wrong: bool) -> None:
    assert (used.NAME in _names(turn=turn)) is wrong


@pytest.mark.parametrize(
    ("turn", "wrong"),
    [
        ("n = i * ddp.world_size() * len(x)", False),
        ("n = len(x * ddp.world_size())", True),
        ("n = x.size(0 * ddp.world_size())", True),
        ("print('{}'.format(loss.item()) * ddp.world_size())", True),
        ("n = ddp.local_batch(x.size(0) != 16)", True),
        ("n = ddp.local_batch(loader)", True),
        ("for x, y in ddp.unwrap(val_loader): pass", True),
        ("m = ddp.unwrap(model)", False),
        ("bad = ddp.any_rank(torch.isnan(loss))", False),
        ("bad = torch.isnan(ddp.any_rank(loss))", True),
    ],
)
def test_what_is_taken_and_multiplied(turn: str, wrong: bool) -> None:
    assert (given.NAME in _names(turn=turn)) is wrong


_LOSS = "criterion = nn.CrossEntropyLoss({})\nloss = ddp.weighted_mean(criterion(model(x), y), ddp.weight_of(y{}))\nloss.backward()"


@pytest.mark.parametrize(
    ("of_loss", "counted", "wrong"),
    [
        ("weight=torch.ones(2)", ", weight=criterion.weight", False),
        ("weight=torch.ones(2)", ", criterion.weight", False),
        ("weight=torch.ones(2)", "", True),
        ("ignore_index=0", ", ignore_index=0", False),
        ("ignore_index=0", "", True),
        ("ignore_index=-100", "", False),
        ("", "", False),
    ],
)
def test_weights_are_those_of_the_loss(of_loss: str, counted: str, wrong: bool) -> None:
    assert (weighted.NAME in _names(step=_LOSS.format(of_loss, counted))) is wrong


@pytest.mark.parametrize(("last", "wrong"), [("model.module.state_dict()", False), ("net.module.state_dict()", True)])
def test_a_layer_has_no_module(last: str, wrong: bool) -> None:
    assert any("no attribute module" in f.words for f in faults(result(last=last))) is wrong
    assert bound.NAME  # the invariant of names that are not there


@pytest.mark.parametrize(
    ("epoch", "wrong"),
    [
        ("os.environ['MASTER_PORT'] = '12355'", True),
        ("os.environ['CUDA_VISIBLE_DEVICES'] = '0,1'", True),
        ("os.environ['CUDA_VISIBLE_DEVICES'] = sys.argv[1]", False),
        ("os.environ['OMP_NUM_THREADS'] = '1'", False),
    ],
)
def test_what_the_launcher_says(epoch: str, wrong: bool) -> None:
    assert (devices.NAME in _names(epoch=f"import os, sys\n{epoch}")) is wrong


_WRAPPED = "part = nn.Sequential(nn.Linear(2, 4){}, nn.Linear(4, 2)){}\npart = ddp.wrap(part)"


@pytest.mark.parametrize(
    ("inner", "outer", "wrong"),
    [(".to('cuda')", "", True), ("", ".to('cuda')", False), ("", "", False), (", nn.Linear(4, 4, device='cuda')", "", False)],
)
def test_a_model_is_moved_as_a_whole(inner: str, outer: str, wrong: bool) -> None:
    assert any("some layers" in f.words for f in faults(result(epoch=_WRAPPED.format(inner, outer)))) is wrong


@pytest.mark.parametrize(
    ("end", "wrong"),
    [
        ("for x, y in val_loader:\n    total += nn.functional.cross_entropy(net(x), y, reduction='sum').item()", True),
        ("for x, y in ddp.shard(val_loader):\n    total += nn.functional.cross_entropy(net(x), y, reduction='sum').item()", False),
    ],
)
def test_what_is_in_full_is_not_added_up_again(end: str, wrong: bool) -> None:
    program = result(end=f"total = 0.0\nwith torch.no_grad():\n    {end.replace(chr(10), chr(10) + '    ')}\ntotal = ddp.sum_all(total)\nprint(total)")
    assert any("over all of the data is added up" in f.words for f in faults(program)) is wrong


@pytest.mark.parametrize(("option", "wrong"), [("", True), (", use_reentrant=True", True), (", use_reentrant=False", False)])
def test_checkpoints_do_not_go_round_the_wrapper(option: str, wrong: bool) -> None:
    step = f"import torch.utils.checkpoint\nh = torch.utils.checkpoint.checkpoint(net, x{option})"
    assert (backwards.NAME in _names(step=step)) is wrong


def test_names_that_several_turns_ask_for() -> None:
    # Callbacks that hand on what they have not themselves: one line asks for names of which some are known
    last = """
class Hook:
    def __init__(self, owner):
        self.owner = owner
    def __getattr__(self, name):
        return getattr(self.owner, name)
    def __call__(self, name):
        f = getattr(self, name, None)
        return f and f()
class Owner:
    def fire(self, name):
        return [hook(name) for hook in self.hooks]
owner = Owner()
owner.hooks = [Hook(owner)]
names = ["fit", "epoch", "batch", "loss", "step"]
for part in ("before", "after", "within"):
    for name in names:
        owner.fire(f"{part}_{name}")
for name in names:
    owner.fire(name)
owner.fire("end")
"""
    assert "there is no attribute end here" in {f.words for f in faults(result(last=last))}
