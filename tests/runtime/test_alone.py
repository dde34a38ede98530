"""What needs no second process: keys, wrappers, checkpoints on odd paths, the null object, waiting for rank 0."""

from __future__ import annotations

import atexit
import copy
import io
import os
import stat
import sys
from collections import Counter, OrderedDict
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dpmigrate_runtime as ddp
import numpy as np
import pytest
import torch
from dpmigrate_runtime import _checkpoint, _quiet, _rank0, _seeds, _state
from dpmigrate_runtime._rank0 import Nothing
from torch import nn
from torch._C._distributed_c10d import HashStore

from tests.runtime.launching import RUNTIME

pytestmark = pytest.mark.usefixtures("plain")


@pytest.mark.parametrize(
    ("keys", "clean"),
    [
        (["module.a", "module.b"], ["a", "b"]),
        (["module._orig_mod.module.a"], ["a"]),
        (["_orig_mod.a", "module.b"], ["a", "b"]),
        (["encoder.module.a"], ["encoder.module.a"]),
        (["module.module.a", "module.b"], ["module.a", "b"]),
        (["module.a", "_orig_mod.a"], ["module.a", "_orig_mod.a"]),
        (["module.a", "head.b"], ["module.a", "head.b"]),
        ([1, "module.a"], [1, "module.a"]),
        ([], []),
    ],
)
def test_clean_keys(keys: list[Any], clean: list[Any]) -> None:
    cleaned = ddp.clean_keys(OrderedDict((key, key) for key in keys))
    assert type(cleaned) is OrderedDict
    assert list(cleaned) == clean
    assert list(cleaned.values()) == keys


def test_local_rows_of_one_process_are_the_batch() -> None:
    batch = (torch.zeros(7, 2), [1, 2])
    assert ddp.local_rows(batch) is batch


def test_clean_keys_keeps_metadata() -> None:
    model = nn.Sequential(nn.BatchNorm1d(2))
    cleaned = ddp.clean_keys(ddp.wrap(model).state_dict())
    assert vars(cleaned)["_metadata"] == vars(model.state_dict())["_metadata"]
    model.load_state_dict(cleaned)
    assert ddp.clean_keys(7) == 7
    assert ddp.clean_keys({"module.a": 1}) == {"a": 1}


def test_unwrap_every_wrapper() -> None:
    bare = nn.Linear(1, 1)
    compiled: nn.Module = torch.compile(ddp.wrap(torch.compile(bare, backend="eager")), backend="eager")  # type: ignore[arg-type, assignment]
    assert ddp.unwrap(compiled) is bare
    assert ddp.wrap(compiled) is compiled
    assert ddp.unwrap("text") == "text"


def test_stand_in_behaves_like_the_wrapper() -> None:
    model = ddp.wrap(nn.Linear(2, 1).eval())
    assert not model.training
    assert [name for name, _ in model.named_parameters()] == ["module.weight", "module.bias"]
    assert not hasattr(model, "in_features")
    copy.deepcopy(model).load_state_dict(model.state_dict())


def test_save_replaces_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target, seen = tmp_path / "state.pt", []
    plain_save = torch.save

    def watch(obj: Any, f: Any, *args: Any) -> None:
        seen.append(f)
        plain_save(obj, f, *args)

    monkeypatch.setattr(torch, "save", watch)
    ddp.save(1, target)
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(target.stat().st_mode) == 0o666 & ~umask
    target.chmod(0o640)
    (tmp_path / "link.pt").symlink_to(target)
    ddp.save(2, str(tmp_path / "link.pt"))
    assert (tmp_path / "link.pt").is_symlink()
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert torch.load(target) == 2
    assert all(isinstance(path, str) and not path.endswith(".pt") and Path(path).parent == tmp_path for path in seen)
    stream = io.BytesIO()
    ddp.save(3, stream)
    assert torch.load(io.BytesIO(stream.getvalue())) == 3
    ddp.save(4, os.devnull)
    assert not Path(os.devnull).is_file()


def test_save_failures_leave_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "state.pt"
    ddp.save(1, target)
    with pytest.raises((AttributeError, TypeError)):
        ddp.save(lambda: None, target)
    with pytest.raises(RuntimeError, match="does not exist"):
        ddp.save(1, tmp_path / "missing" / "state.pt")
    monkeypatch.setattr(_checkpoint, "is_main", lambda: False)
    ddp.save(2, target)
    assert os.listdir(tmp_path) == ["state.pt"]
    assert torch.load(target) == 1


def test_null_object_takes_everything() -> None:
    nothing = Nothing()
    with nothing.open("x") as inner:
        inner.field = 1
        inner["key"] = 2
        assert inner.add_scalar("loss", 1.0).step(2) is nothing
    assert (bool(nothing), len(nothing), list(nothing), str(nothing), f"{nothing:.3f}", repr(nothing)) == (False, 0, [], "", "", "")
    assert isinstance(nothing["train/loss"].log(0.5), Nothing)
    assert isinstance(nothing["train"]["loss"].series.append(0.5), Nothing)
    assert copy.copy(nothing) is not None
    with pytest.raises(AttributeError):
        _ = nothing.__array__


@pytest.mark.parametrize(
    "used",
    [bool, len, list, float, int, str, repr, hash, os.fspath, np.asarray, lambda x: f"{x:.3f}", lambda x: x < 1, lambda x: 1 > x, lambda x: x == "done",
     lambda x: x + 1, lambda x: 2 * x, lambda x: -x, lambda x: 1 in x, lambda x: [0, 1][x]],
)  # fmt: skip
def test_an_item_of_the_null_object_is_no_value(used: Callable[[Any], Any]) -> None:
    with pytest.raises(RuntimeError, match=r"\['best'\] asks for a value that exists on rank 0 only"):
        used(Nothing()["best"])


def test_null_object_is_given_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_rank0, "is_main", lambda: False)
    assert isinstance(ddp.main_only(open, "/nowhere"), Nothing)
    assert ddp.main_path("out.txt") == os.devnull
    assert ddp.main_path(Path("out.txt")) == Path(os.devnull)


def test_a_file_that_must_be_new_is_another_one_elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ends: list[tuple[Any, ...]] = []
    path = tmp_path / "out.txt"
    assert ddp.main_path(path, new=True) == path
    monkeypatch.setattr(_rank0, "is_main", lambda: False)
    monkeypatch.setattr(atexit, "register", lambda *args, **kwargs: ends.append((args, kwargs)))
    _rank0._folder.cache_clear()
    for given in (path, str(path)):
        for _ in range(2):  # the program may do it for each of its runs
            other = ddp.main_path(given, new=True)
            assert type(other) is type(given)
            with open(other, "x") as f:
                f.write("elsewhere")
    assert not path.exists()
    (((remove, folder), options),) = ends
    assert sorted(p.name for p in Path(folder).glob("*/*")) == ["out.txt"] * 4
    remove(folder, **options)
    _rank0._folder.cache_clear()
    assert not Path(folder).exists()


def test_main_first_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_rank0, "alone", lambda: False)
    monkeypatch.setattr(_rank0, "is_main", lambda: False)
    monkeypatch.setattr(_rank0, "_get_default_store", HashStore)
    monkeypatch.setattr(_state.STATE, "timeout", 0.1)
    with pytest.raises(RuntimeError, match=r"rank 0 did not end its main_first\(\) block within 0.1 s"), ddp.main_first():
        raise AssertionError("not reached")


@pytest.fixture
def rank_one(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """As rank 1 of 2 sees it, with the exchanges answered from here."""
    monkeypatch.setattr(_seeds, "rank", lambda: 1)
    monkeypatch.setattr(_seeds, "alone", lambda: False)
    monkeypatch.setattr(_seeds, "from_main", lambda value: 2**64 - 1)
    monkeypatch.setattr(_seeds, "from_all", lambda value: [[(3, 1)], value])
    monkeypatch.setattr(_state.STATE, "seeds_given", Counter({3: 1}))
    monkeypatch.setattr(_state.STATE, "common_seed", None)
    return monkeypatch


def test_seeds_without_numpy(rank_one: pytest.MonkeyPatch) -> None:
    state = torch.get_rng_state()
    rank_one.delitem(sys.modules, "numpy")
    ddp.seed_ranks()
    assert (torch.initial_seed(), _seeds.common_seed()) == (0, 999)  # 2**62 - 1, and a thousand more for the second
    torch.set_rng_state(state)


def test_ranks_whose_samplers_would_not_agree(rank_one: pytest.MonkeyPatch) -> None:
    rank_one.setattr(_state.STATE, "seeds_given", Counter({4: 1}))
    with pytest.raises(RuntimeError, match="the ranks seeded torch differently before their loaders were built"):
        ddp.seed_ranks()


def test_quiet_without_bars(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    monkeypatch.setattr("warnings.simplefilter", lambda action: None)
    monkeypatch.setattr("logging.disable", lambda level: None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    silenced: list[str] = []
    monkeypatch.setitem(sys.modules, "loguru", SimpleNamespace(logger=SimpleNamespace(disable=silenced.append)))
    _quiet.quiet()
    print("nobody hears this")
    sys.stdout.close()
    assert silenced == [""]


def test_nothing_heavy_is_imported_and_names_are_exact() -> None:
    sources = [path.read_text() for path in (RUNTIME / "dpmigrate_runtime").glob("*.py")]
    assert not any(line.startswith(("import numpy", "import tqdm", "from numpy", "from tqdm")) for text in sources for line in text.splitlines())
    contract = pytest.importorskip("dpmigrate.contract")
    assert sorted(ddp.__all__) == ddp.__all__
    assert set(ddp.__all__) == set(contract.NAMES)


def test_objects_without_weak_references_are_counted() -> None:
    """As generators are in the earlier versions of torch that the package supports."""

    class Bare:
        __slots__ = ()

    class Referred:
        pass

    for kind in (Bare, Referred):
        counts = _state.counts_of(kind())
        one, other = kind(), kind()
        counts[one] = 2
        assert (counts.get(one, 0), counts.get(other, 0)) == (2, 0)
