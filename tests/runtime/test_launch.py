"""The environment: what launchers set, what is refused, and what a CUDA machine would be told."""

from __future__ import annotations

import multiprocessing
import sys
import warnings
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import dpmigrate_runtime as ddp
import pytest
import torch
import torch.distributed as dist
from dpmigrate_runtime import _model, _nets, _process_group, _quiet, _seeds, _state
from torch._C._distributed_c10d import HashStore

GOOD = {"RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"RANK": "abc"}, "RANK must be a whole number, but it is 'abc'"),
        ({"RANK": "-1"}, "RANK must be at least 0"),
        ({"RANK": "2"}, "RANK is 2, but it must be below WORLD_SIZE, which is 2"),
        ({"LOCAL_RANK": "2"}, "LOCAL_RANK is 2, but"),
        ({"WORLD_SIZE": "0"}, "WORLD_SIZE must be at least 1"),
        ({"WORLD_SIZE": None}, "RANK is set but WORLD_SIZE is not"),
        ({"LOCAL_RANK": None}, "RANK is set but LOCAL_RANK is not"),
        ({"RANK": None}, "LOCAL_RANK is set but RANK is not"),
        ({"MASTER_ADDR": None}, "MASTER_ADDR is not set"),
        ({"MASTER_PORT": ""}, "MASTER_PORT is not set"),
        ({"MASTER_PORT": "http"}, "MASTER_PORT must be a whole number"),
        ({"DPMIGRATE_BACKEND": "mpi"}, "DPMIGRATE_BACKEND must be gloo or nccl"),
    ],
)
def test_bad_environment(plain: pytest.MonkeyPatch, change: dict[str, str | None], text: str) -> None:
    for name, value in {**GOOD, **change}.items():
        if value is not None:
            plain.setenv(name, value)
    with pytest.raises(RuntimeError, match=text):
        ddp.setup()
    assert not dist.is_initialized()


def test_before_setup(plain: pytest.MonkeyPatch) -> None:
    assert (ddp.rank(), ddp.local_rank(), ddp.world_size(), ddp.is_main()) == (0, 0, 1, True)
    for name, value in GOOD.items():
        plain.setenv(name, value)
    assert (ddp.rank(), ddp.local_rank(), ddp.world_size(), ddp.is_main()) == (1, 1, 2, False)


@pytest.mark.parametrize("timeout", [0, -1.0, float("nan")])
def test_bad_timeout(timeout: float) -> None:
    with pytest.raises(ValueError, match="positive"):
        ddp.setup(timeout=timeout)


def test_one_process_touches_nothing(plain: pytest.MonkeyPatch) -> None:
    before = (sys.stdout, torch.get_rng_state().sum().item(), list(warnings.filters))
    ddp.setup()
    ddp.setup()
    assert dist.get_world_size() == 1
    assert (sys.stdout, torch.get_rng_state().sum().item(), list(warnings.filters)) == before
    model = ddp.wrap(torch.nn.Linear(1, 1))
    ddp.cleanup()
    ddp.cleanup()
    assert not dist.is_initialized()
    assert model(torch.ones(1, 1)).shape == (1, 1)


def test_group_of_one_from_torchrun(plain: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "LOCAL_RANK"):
        plain.setenv(name, "0")
    plain.setenv("WORLD_SIZE", "1")
    ddp.setup()
    assert (ddp.world_size(), ddp.local_rank()) == (1, 0)
    ddp.cleanup()


@pytest.mark.usefixtures("plain")
def test_foreign_group_is_used_and_left() -> None:
    dist.init_process_group("gloo", store=HashStore(), rank=0, world_size=1)
    ddp.setup()
    ddp.cleanup()
    assert dist.is_initialized()
    dist.destroy_process_group()


@pytest.mark.parametrize("spawned", [False, True])
def test_nothing_happens_in_a_child(plain: pytest.MonkeyPatch, spawned: bool) -> None:
    """One that is spawned does not know its parent while it imports the main module."""
    if spawned:
        plain.setattr(multiprocessing.current_process(), "_inheriting", True, raising=False)
    else:
        plain.setattr(multiprocessing, "parent_process", lambda: object())
    ddp.setup()
    assert not dist.is_initialized()
    plain.setattr(_state.STATE, "active", True)
    ddp.cleanup()
    assert _state.STATE.active


def test_a_spawned_child_meets_nobody(plain: pytest.MonkeyPatch) -> None:
    """It imports the main module again, where a model may be wrapped and numbers be put together beside the guard."""
    plain.setattr(multiprocessing.current_process(), "_inheriting", True, raising=False)
    for name, value in GOOD.items():
        plain.setenv(name, value)
    ddp.setup()
    assert ddp.world_size() > 1 and not dist.is_initialized()
    model = ddp.wrap(torch.nn.Linear(1, 1))
    with ddp.main_first(), ddp.own_streams(), ddp.same_stream():
        ddp.seed_ranks()
        ddp.barrier()
        ddp.sync_buffers(torch.nn.BatchNorm1d(1))
    assert model(torch.ones(1, 1)).shape == (1, 1)
    assert (ddp.sum_all(2), ddp.mean_all(2.0), ddp.gather_all([1]), ddp.from_main("a"), ddp.any_rank(True)) == (2, 2.0, [1], "a", True)
    assert ddp.main_settings({"a": 1}) == {"a": 1}


@pytest.fixture
def gpus(plain: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A machine with two GPUs, as far as one can tell without using them."""
    plain.setattr(torch.cuda, "is_available", lambda: True)
    plain.setattr(torch.cuda, "device_count", lambda: 2)
    plain.setattr(dist, "is_nccl_available", lambda: True)
    return plain


def launch(patch: pytest.MonkeyPatch, local: int, **more: str) -> dict[str, Any]:
    """The arguments that ``setup`` would give to init_process_group on rank ``local`` of four."""
    seen: dict[str, Any] = {}

    def init(backend: str, **options: Any) -> None:
        seen.update(options, backend=backend)

    for name, value in {**GOOD, "RANK": str(local), "LOCAL_RANK": str(local), "WORLD_SIZE": "4", **more}.items():
        patch.setenv(name, value)
    patch.setattr(dist, "init_process_group", init)
    patch.setattr(torch.cuda, "set_device", lambda device: seen.update(gpu=device))
    patch.setattr(_process_group, "rendezvous", lambda *_, **__: iter([(HashStore(), 0, 4)]))
    for done in ("share_streams", "_settle", "_watch_ranks"):
        patch.setattr(_process_group, done, lambda: None)
    ddp.setup()
    # there is no group that cleanup() could leave, but the hooks are torch's own and would stay for other tests
    _nets.take_in_nets()
    _state.STATE.active = _state.STATE.owns_group = False
    return seen


def test_cuda_means_nccl_with_a_device(gpus: pytest.MonkeyPatch) -> None:
    seen = launch(gpus, 1)
    assert seen["backend"] == "nccl"
    assert seen["device_id"] == seen["gpu"] == torch.device("cuda", 1) == ddp.device()


def test_more_ranks_than_gpus(gpus: pytest.MonkeyPatch) -> None:
    with pytest.raises(RuntimeError, match=r"LOCAL_RANK is 3, but only 2 GPU\(s\)"):
        launch(gpus, 3)
    seen = launch(gpus, 3, DPMIGRATE_BACKEND="gloo")
    assert seen["backend"] == "gloo"
    assert seen["device_id"] is None
    assert seen["gpu"] == torch.device("cuda", 1) == ddp.device()


@pytest.fixture
def made(gpus: pytest.MonkeyPatch) -> Iterator[list[tuple[Any, ...]]]:
    """What DistributedDataParallel is given, in a job of two ranks with GPUs."""
    seen: list[tuple[Any, ...]] = []

    class Fake(torch.nn.parallel.DistributedDataParallel):
        def __init__(self, module: torch.nn.Module, **where: Any) -> None:
            torch.nn.Module.__init__(self)
            seen.append((module, where))

    gpus.setattr(_model, "DistributedDataParallel", Fake)
    gpus.setattr(_model, "alone", lambda: False)
    gpus.setattr(_model, "agree_on_seeds", lambda: None)
    gpus.setattr(_model, "complete_backwards", lambda *_: None)
    yield seen
    _nets.take_in_nets()
    _state.STATE.wrapped.clear()
    _state.STATE.cpu_group = None


def _normalising() -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))


def test_a_model_on_the_gpu(gpus: pytest.MonkeyPatch, made: list[tuple[Any, ...]]) -> None:
    def on(*numbers: int) -> Any:
        return SimpleNamespace(parameters=lambda: [SimpleNamespace(is_cuda=True, device=torch.device("cuda", n)) for n in numbers])

    assert _model._place(on(0)) == torch.device("cuda", 0)
    for numbers, names in (((1,), "cuda:1"), ((1, 0), "cuda:0, cuda:1")):
        with pytest.raises(RuntimeError, match=f"the model is on {names}, but the GPU of this rank is cuda:0: name the device without a number"):
            _model._place(on(*numbers))
    gpus.setattr(_model, "_place", lambda model: torch.device("cuda", 1))
    ddp.wrap(_normalising(), sync_bn=True)
    assert isinstance(made[0][0][1], torch.nn.SyncBatchNorm)
    assert made[0][1] == {}  # inputs stay where they are
    ddp.wrap(_normalising(), move_inputs=True)
    assert made[1][1] == {"device_ids": [1]}


def test_a_model_that_stays_on_the_cpu(gpus: pytest.MonkeyPatch, made: list[tuple[Any, ...]]) -> None:
    groups: list[dict[str, Any]] = []

    def new_group(**given: Any) -> str:
        groups.append(given)
        return f"group {len(groups)}"

    gpus.setattr(dist, "new_group", new_group)
    gpus.setattr(dist, "get_backend", lambda: "nccl")
    model = _normalising()
    with pytest.warns(UserWarning, match="SyncBatchNorm needs CUDA"):
        ddp.wrap(model, sync_bn=True)
    ddp.wrap(_normalising())
    assert made[0] == (model, {"process_group": "group 1"})
    assert made[1][1] == {"process_group": "group 1"}
    assert [g["backend"] for g in groups] == ["gloo"]
    gpus.setattr(dist, "get_backend", lambda: "gloo")
    ddp.wrap(_normalising())
    assert made[2][1] == {"process_group": None}


def test_its_group_goes_with_the_program(gpus: pytest.MonkeyPatch) -> None:
    gone: list[Any] = []
    gpus.setattr(dist, "destroy_process_group", lambda *group: gone.append(group))
    for owned in (True, False):
        _state.STATE.active, _state.STATE.owns_group, _state.STATE.cpu_group = True, owned, "group"  # type: ignore[assignment]
        ddp.cleanup()
        assert _state.STATE.cpu_group is None
    assert gone == [(), ("group",)]


def test_gpu_streams_are_shared(gpus: pytest.MonkeyPatch) -> None:
    given: list[Any] = []
    gpus.setattr(torch.cuda, "get_rng_state", lambda: torch.zeros(3))
    gpus.setattr(torch.cuda, "set_rng_state", given.append)
    _seeds._restore(_seeds._streams())
    assert given[0].tolist() == [0, 0, 0]
    gpus.delitem(sys.modules, "numpy")
    _seeds._restore(_seeds._streams())
    with _seeds.OwnStreams(1, []).inside():
        pass


@pytest.mark.usefixtures("group")
def test_nccl_sends_from_the_gpu(gpus: pytest.MonkeyPatch) -> None:
    from dpmigrate_runtime import _exchange

    gpus.setattr(dist, "get_backend", lambda: "nccl")
    assert _state.wire() == torch.device("cuda", 0)
    storage = SimpleNamespace(cuda=lambda index: f"on {index}")
    assert _exchange._place(storage, "cuda:1") == "on 0"
    assert _exchange._place(storage, "cpu") is storage


def test_errors_reach_torchrun(monkeypatch: pytest.MonkeyPatch, tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    told: list[Any] = []
    monkeypatch.setattr(sys, "excepthook", lambda *about: told.append(about))
    monkeypatch.delenv("TORCHELASTIC_ERROR_FILE", raising=False)
    _quiet.report_failures()
    sys.excepthook(KeyError, KeyError("before"), None)
    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(tmp_path / "error.json"))
    _quiet.report_failures()
    sys.excepthook(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert not (tmp_path / "error.json").exists()
    sys.excepthook(ValueError, ValueError("the cause"), None)
    assert "the cause" in (tmp_path / "error.json").read_text()
    assert len(told) == 3 and not capsys.readouterr().err
    sys.excepthook(RuntimeError, RuntimeError("Expected to have finished reduction in the prior iteration before starting a new one."), None)
    assert "before the next forward" in capsys.readouterr().err
