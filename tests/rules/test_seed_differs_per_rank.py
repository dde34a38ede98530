"""DPM209: one seed for all ranks."""

from __future__ import annotations

import pytest

from tests.rules.program import STEP, after, found, hits, whole

_IMPORTS = "import os, random, secrets, time\nimport numpy as np"


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({"setup": "torch.manual_seed(3)"}, id="a number"),
        pytest.param({"setup": "s = random.randint(1, 9)\ntorch.manual_seed(s)"}, id="drawn from rank 0's stream"),
        pytest.param({"setup": "print('torch.manual_seed(time.time())')  # torch.manual_seed(time.time())"}, id="in a string and a comment"),
        pytest.param({"imports": "import lib", "setup": "lib.manual_seed(3)"}, id="another library's"),
        pytest.param({"setup": "s = s2 = 3\ns = s + 1\ntorch.manual_seed(s)"}, id="counted up"),
        pytest.param({"setup": "rng = np.random.RandomState(3)"}, id="a stream of its own with a seed"),
        pytest.param({"step": f"noise = np.random.default_rng()\n{STEP}"}, id="a stream for one step"),
        pytest.param(
            {"defs": "class Data(TensorDataset):\n    def __init__(self):\n        self.rng = np.random.default_rng()", "setup": "Data()"},
            id="a data set's own",
        ),
        pytest.param({"defs": "def worker(i):\n    np.random.seed(torch.initial_seed() % 2**32)\n    random.seed()"}, id="worker processes"),
        pytest.param(
            {"loader": "loader = DataLoader(train_set, batch_size=4, num_workers=2, worker_init_fn=lambda i: np.random.seed(i + int(time.time())))"},
            id="worker processes, in place",
        ),
        pytest.param({"defs": "class D:\n    def __getitem__(self, i):\n        random.seed(time.time())"}, id="a data set"),
        pytest.param({"setup": "a, s = 1, 2\ntorch.manual_seed(s)\nfor s in [1]:\n    pass"}, id="names that are no plain assignment"),
    ],
)
def test_nothing_to_say(parts: dict[str, str]) -> None:
    parts = {**parts, "imports": f"{_IMPORTS}\n{parts.get('imports', '')}"}
    assert found("DPM209", **parts) == []


@pytest.mark.parametrize(
    ("imports", "line", "pointed"),
    [
        pytest.param("", "torch.manual_seed(int(time.time()))", "int(time.time())", id="time"),
        pytest.param("", "torch.manual_seed(seed=int(time.time()))", "int(time.time())", id="keyword"),
        pytest.param("", "random.seed(a=os.urandom(8))", "os.urandom(8)", id="random, keyword"),
        pytest.param("", "np.random.seed(os.getpid())", "os.getpid()", id="numpy"),
        pytest.param("from torch import manual_seed as fix", "fix(secrets.randbits(8))", "secrets.randbits(8)", id="from-import with alias"),
        pytest.param("", "s = int(time.time())\ntorch.manual_seed(s)", "int(time.time())", id="through a name"),
        pytest.param("", "s = int(time.time())\nt = s\ntorch.manual_seed(t)\nrandom.seed(t)", "int(time.time())", id="once for two seeds"),
        pytest.param("", "torch.manual_seed(torch.seed())", "torch.seed()", id="torch.seed"),
        pytest.param("", "torch.manual_seed(random.SystemRandom().randint(1, 9))", "random.SystemRandom().randint(1, 9)", id="the system's numbers"),
    ],
)
@pytest.mark.parametrize("module_level", [False, True], ids=["function", "module"])
def test_found_and_fixed(imports: str, line: str, pointed: str, module_level: bool) -> None:
    parts: dict[str, str | bool] = {"imports": f"{_IMPORTS}\n{imports}", "setup": line, "module_level": module_level}
    assert found("DPM209", **parts) == [pointed]
    assert f"ddp.from_main({pointed})" in " ".join(after(**parts))


@pytest.mark.parametrize("line", ["random.seed()", "np.random.seed()", "torch.seed()"])
def test_a_seed_from_nowhere_goes(line: str) -> None:
    """setup() has given all ranks the streams of rank 0; this would take them apart."""
    assert found("DPM209", imports=_IMPORTS, setup=line) == [line]
    assert after(imports=_IMPORTS, setup=line) == []


@pytest.mark.parametrize(
    ("line", "new"),
    [
        pytest.param("rng = np.random.default_rng()", "rng = np.random.default_rng(ddp.common_seed())", id="default_rng"),
        pytest.param("rng = np.random.RandomState()", "rng = np.random.RandomState(ddp.common_seed() % 2**32)", id="RandomState"),
        pytest.param("rng = random.Random()", "rng = random.Random(ddp.common_seed())", id="Random"),
    ],
)
def test_a_stream_of_the_program_itself(line: str, new: str) -> None:
    assert new in after(imports=_IMPORTS, setup=line)


def test_a_stream_of_a_sampler() -> None:
    defs = "class Own(torch.utils.data.Sampler):\n    def __init__(self):\n        self.rng = np.random.default_rng()"
    assert "self.rng = np.random.default_rng(ddp.common_seed())" in after(imports=_IMPORTS, defs=defs, setup="Own()")


def test_in_a_function_that_is_called_and_under_app_run() -> None:
    defs = "def fix():\n    torch.manual_seed(int(time.time()))"
    assert found("DPM209", imports=_IMPORTS, defs=defs, setup="fix()") == ["int(time.time())"]
    text = "class T:\n    def fix(self):\n        torch.manual_seed(int(time.time()))"
    assert found("DPM209", imports=_IMPORTS, defs=text, setup="T().fix()") == ["int(time.time())"]


def test_told_where_perhaps_not_all_ranks_come() -> None:
    (hit,) = hits("DPM209", imports=_IMPORTS, setup="try:\n    open('f')\nexcept OSError:\n    torch.manual_seed(int(time.time()))")
    assert not hit.edits and "where every rank comes by" in hit.advice


_ENDLESS = "def draws(n):\n    while True:\n        np.random.seed()\n        yield from np.random.permutation(n)\n"
_ENDLESS += "class Endless(torch.utils.data.Sampler):\n    def __init__(self, data):\n        self.n = len(data)\n    def __iter__(self):\n        return iter(draws(self.n))"


def test_a_sampler_that_seeds_itself_anew() -> None:
    loader = "loader = DataLoader(train_set, batch_size=4, sampler=Endless(train_set))"
    assert found("DPM209", imports=_IMPORTS, defs=_ENDLESS, loader=loader) == ["np.random.seed()"]
    assert "np.random.seed()" not in whole(imports=_IMPORTS, defs=_ENDLESS, loader=loader)
    rng = _ENDLESS.replace("np.random.seed()\n", "rng = np.random.default_rng()\n").replace("np.random.permutation", "rng.permutation")
    assert "rng = np.random.default_rng(ddp.common_seed())" in after(imports=_IMPORTS, defs=rng, loader=loader)
