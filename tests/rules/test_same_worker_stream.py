"""DPM211: the workers of each rank draw their own random numbers."""

from __future__ import annotations

import pytest

from dpmigrate.model import Severity
from tests.rules.program import after, found, hits, whole

_IMPORTS = "import os, random, time\nimport numpy as np\nfrom functools import partial"
_LOADER = "loader = DataLoader(train_set, batch_size=16, shuffle=True, num_workers=2, worker_init_fn=init)"


def _init(*lines: str, head: str = "def init(worker_id):") -> dict[str, str | bool]:
    return {"imports": _IMPORTS, "defs": "\n    ".join([head, *lines]), "loader": _LOADER}


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(["print(worker_id)"], id="no seed"),
        pytest.param(["np.random.seed()"], id="seeded by the system"),
        pytest.param(["np.random.seed(torch.initial_seed() % 2**32)"], id="torch's seed"),
        pytest.param(["s = torch.initial_seed() % 2**32", "np.random.seed(s)", "random.seed(s)"], id="torch's seed by a name"),
        pytest.param(["np.random.seed(np.random.get_state()[1][0] + worker_id)"], id="numpy's seed"),
        pytest.param(["info = torch.utils.data.get_worker_info()", "random.seed(info.seed)"], id="the worker's seed"),
        pytest.param(["np.random.seed(os.getpid())"], id="the process"),
        pytest.param(["np.random.seed(worker_id + 2 * rank)"], id="the author counts ranks"),
        pytest.param(["print('np.random.seed(worker_id)')  # np.random.seed(worker_id)"], id="in a string and a comment"),
    ],
)
def test_nothing_to_say(lines: list[str]) -> None:
    assert found("DPM211", **_init(*lines)) == []


def test_a_function_that_no_training_loader_has() -> None:
    parts = {**_init("np.random.seed(worker_id)"), "loader": "loader = DataLoader(train_set, batch_size=16)\nv = DataLoader(val_set, worker_init_fn=init)"}
    assert found("DPM211", **parts) == []


@pytest.mark.parametrize(
    ("lines", "new"),
    [
        pytest.param(["np.random.seed(worker_id)"], ["np.random.seed(ddp.worker_number(worker_id))"], id="the number alone"),
        pytest.param(["random.seed(a=3 + worker_id)"], ["random.seed(a=3 + ddp.worker_number(worker_id))"], id="and a constant, by keyword"),
        pytest.param(["torch.manual_seed(7 * worker_id)"], ["torch.manual_seed(7 * ddp.worker_number(worker_id))"], id="a multiple"),
        pytest.param(["np.random.seed(int(time.time()) + worker_id)"], ["np.random.seed(int(time.time()) + ddp.worker_number(worker_id))"], id="the time"),
        pytest.param(["s = 3 + worker_id", "random.seed(s)", "np.random.seed(s)"], ["s = 3 + ddp.worker_number(worker_id)"], id="through a name"),
        pytest.param(["info = torch.utils.data.get_worker_info()", "random.seed(info.id)"], ["random.seed(ddp.worker_number(info.id))"], id="the worker's description"),
        pytest.param(["np.random.seed(3)"], ["np.random.seed(3 + ddp.rank())"], id="a constant"),
        pytest.param(["s = 3 if os.environ else 4", "np.random.seed(s % 9)"], ["s = (3 if os.environ else 4) + ddp.rank()"], id="a constant through a name"),
        pytest.param(["for s in (np.random.seed, random.seed):", "    s(worker_id)", "np.random.default_rng(worker_id)"],
                     ["np.random.default_rng(ddp.worker_number(worker_id))"], id="a stream of its own"),
        pytest.param(["x = np.random.RandomState(worker_id)", "y.files = y.files[worker_id]"], ["x = np.random.RandomState(ddp.worker_number(worker_id))"], id="other uses stay"),
    ],
)  # fmt: skip
def test_found_and_fixed(lines: list[str], new: list[str]) -> None:
    plain = {"imports": _IMPORTS, "loader": _LOADER.replace(", worker_init_fn=init", "")}
    known = after(**plain)
    changed = [line for line in after(**_init(*lines)) if line not in known and "worker_init_fn=init" not in line]
    assert changed == new


def test_ways_to_write_it() -> None:
    lamb = {"imports": _IMPORTS, "loader": _LOADER.replace("=init", "=lambda i: np.random.seed(i)")}
    assert "worker_init_fn=lambda i: np.random.seed(ddp.worker_number(i))" in whole(**lamb)
    part = {**_init("np.random.seed(seed + worker_id)", head="def init(seed, worker_id):"), "loader": _LOADER.replace("=init", "=partial(init, 3)")}
    assert "np.random.seed(seed + ddp.worker_number(worker_id))" in whole(**part)
    kept = {**_init("np.random.seed(seed)", head="def init(worker_id, seed):"), "loader": _LOADER.replace("=init", "=partial(init, seed=3)")}
    assert "np.random.seed(seed + ddp.rank())" in whole(**kept)


def test_through_a_function_of_the_file_and_of_another() -> None:
    helper = "def fix(s):\n    random.seed(s)\n    fix(s)\n"
    parts = _init("fix(s=3 + worker_id)")
    assert "fix(s=3 + ddp.worker_number(worker_id))" in whole(**{**parts, "defs": helper + str(parts["defs"])})
    parts = _init("lib.seed_everything(worker_id, workers=True)")
    assert "lib.seed_everything(ddp.worker_number(worker_id), workers=True)" in whole(**{**parts, "imports": f"{_IMPORTS}\nimport lib"})


def test_a_function_of_another_file_is_told() -> None:
    parts: dict[str, str | bool] = {"imports": "from lib import init", "loader": _LOADER}
    assert [(f.severity, f.edits) for f in hits("DPM211", **parts)] == [(Severity.WARNING, ())]


@pytest.mark.parametrize(
    ("loader", "new"),
    [
        pytest.param("DataLoader(train_set, batch_size=16)", "", id="none"),
        pytest.param("DataLoader(train_set, batch_size=16, generator=None)", "", id="None"),
        pytest.param("DataLoader(train_set, batch_size=16, generator=g)", "generator=ddp.rank_generator(g)", id="a name"),
        pytest.param("DataLoader(train_set, batch_sampler=s, generator=g)", "", id="divided when it is finished: there"),
    ],
)
def test_generators(loader: str, new: str) -> None:
    setup = "g = torch.Generator()\ns = torch.utils.data.BatchSampler(torch.utils.data.RandomSampler(train_set), 4, False)"
    parts: dict[str, str | bool] = {"setup": setup, "loader": f"loader = {loader}"}
    assert found("DPM211", **parts) == (["g"] if new else [])
    assert new in whole(**parts)


_KEEPS = """
class Noisy(Dataset):
    def __init__(self, rng):
        self.rng = rng
    def __len__(self):
        return 64
    def __getitem__(self, i):
        {own}
        return torch.ones(8) * {drawn}, 0
    def also(self):
        return self.rng.random()
"""


@pytest.mark.parametrize(
    ("rng", "own", "drawn", "pointed"),
    [
        pytest.param("random.Random(0)", "", "self.rng.random()", ["self.rng.random()"], id="random"),
        pytest.param("R(seed=3)", "", "self.rng.rand()", ["self.rng.rand()"], id="numpy, from-import with alias, keyword"),
        pytest.param("torch.Generator()", "", "torch.rand(8, generator=self.rng)", ["torch.rand(8, generator=self.rng)"], id="given to torch"),
        pytest.param("random.Random(0)", "", "self.also()", ["self.rng.random()"], id="in another method"),
        pytest.param("random.Random(0)", "r = random.Random(i)", "r.random()", [], id="seeded by the sample"),
        pytest.param("random", "", "self.rng.random()", [], id="the stream of the process"),
        pytest.param("random.Random()", "", "self.rng.random()", [], id="seeded by the system"),
        pytest.param("R()", "", "self.rng.rand()", [], id="seeded by the system, numpy"),
        pytest.param("random.Random(0)", "", "1", [], id="nothing is drawn for a sample"),
    ],
)
def test_a_generator_that_the_data_keep(rng: str, own: str, drawn: str, pointed: list[str]) -> None:
    parts = {
        "imports": "import random\nfrom numpy.random import RandomState as R\nfrom torch.utils.data import Dataset",
        "defs": _KEEPS.format(own=own or "pass", drawn=drawn),
        "data": f"train_set = Noisy({rng})",
    }
    assert found("DPM211", **parts) == pointed
    assert not any(f.edits for f in hits("DPM211", **parts))
