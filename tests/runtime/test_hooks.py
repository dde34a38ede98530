"""How the nets are hooked into torch, turned off, and taken out again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import dpmigrate_runtime as ddp
import pytest
import torch
from dpmigrate_runtime import _batches, _nets, _state
from dpmigrate_runtime._state import STATE
from torch import nn
from torch.optim.optimizer import Optimizer, _global_optimizer_post_hooks
from torch.utils.data import dataloader

pytestmark = pytest.mark.usefixtures("plain")


def methods() -> tuple[Any, ...]:
    """What of torch the nets may replace."""
    registered = nn.modules.module._global_parameter_registration_hooks
    return (
        dataloader._BaseDataLoaderIter.__next__,
        Optimizer.add_param_group,
        len(_global_optimizer_post_hooks),
        len(registered),
    )


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """As one of two ranks sees it."""
    monkeypatch.setattr(_nets, "world_size", lambda: 2)
    yield monkeypatch
    _nets.take_in_nets()


def test_names_of_nets() -> None:
    assert _nets.nets("passes") == {"passes"}
    assert _nets.nets(["passes", "weights"]) == {"passes", "weights"}
    with pytest.raises(
        ValueError, match=r"no net called 'all'; there are batches, parameters, pas"
    ):
        ddp.setup(unwatched="all")
    assert not STATE.active


def test_one_process_hooks_nothing() -> None:
    before = methods()
    ddp.setup(unwatched="weights")
    ddp.wrap(nn.Linear(1, 1))
    assert methods() == before
    assert STATE.unwatched == {"weights"}
    ddp.cleanup()
    assert STATE.unwatched == frozenset()


@pytest.mark.parametrize(
    ("off", "changed"),
    [
        pytest.param((), (True, True, 1, 1), id="all"),
        pytest.param("parameters", (True, False, 1, 0), id="no parameters"),
        pytest.param(("parameters", "batches", "passes"), (False, False, 1, 0), id="weights"),
        pytest.param(("batches", "passes", "weights"), (True, True, 1, 1), id="parameters"),
        pytest.param(tuple(_nets.NETS), (False, False, 0, 0), id="none"),
    ],
)
def test_hooks_come_and_go(two: pytest.MonkeyPatch, off: Any, changed: tuple[Any, ...]) -> None:
    before = methods()
    STATE.unwatched = _nets.nets(off)
    _nets.cast_nets()
    _nets.cast_nets()
    found = methods()
    assert (found[0] is not before[0], found[1] is not before[1]) == changed[:2]
    assert (found[2] - before[2], found[3] - before[3]) == changed[2:]
    _nets.take_in_nets()
    assert methods() == before


def test_what_others_have_put_there_stays(two: pytest.MonkeyPatch) -> None:
    original = Optimizer.add_param_group
    _nets.cast_nets()

    def others(self: Any, group: Any) -> None:
        original(self, group)

    two.setattr(Optimizer, "add_param_group", others)
    _nets.take_in_nets()
    assert Optimizer.add_param_group is others
    two.undo()
    Optimizer.add_param_group = original  # type: ignore[method-assign]


def test_nothing_is_looked_at_in_a_cuda_graph(two: pytest.MonkeyPatch) -> None:
    two.setattr(torch.cuda, "is_available", lambda: True)
    two.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    assert _state.capturing()
    _batches._look(nn.Linear(1, 1), (torch.ones(2, 1),), {})
    assert STATE.inputs == []
    two.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    _batches._look(nn.Linear(1, 1), (torch.ones(2, 1),), {})
    assert len(STATE.inputs) == 1
