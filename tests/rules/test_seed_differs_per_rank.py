"""DPM209: one seed for all ranks."""

from __future__ import annotations

import pytest

from tests.rules.program import STEP, after, found, hits, refused, whole

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
        pytest.param({"setup": "g = torch.Generator()\ng.manual_seed(3)\nbits = np.random.Generator(np.random.PCG64(3))"}, id="streams of its own with a seed"),
        pytest.param({"setup": "rng = np.random.RandomState(3)\nrng.seed(4)\nr = random.Random(3)\nr.seed(a=4)"}, id="a stream seeded anew by a number"),
        pytest.param({"setup": "run = secrets.token_hex(4)\nprint(run, os.urandom(3))"}, id="a name that the system draws"),
        pytest.param({"setup": "rng = random.SystemRandom()\nrun = ''.join(rng.choices('abc', k=4))\nprint(run)"}, id="a name from a stream of the system"),
        pytest.param({"step": f"if secrets.randbelow(4) > 9:\n    x = x + 1\n{STEP}"}, id="augmentation that the system draws"),
        pytest.param(
            {
                "defs": "class Data(TensorDataset):\n    def __init__(self, *t):\n        super().__init__(*t)\n        self.rng = random.SystemRandom()\n"
                "        self.g = torch.Generator()\n        self.g.seed()\n    def __getitem__(self, i):\n        g = np.random.default_rng()\n        return i",
                "setup": "Data()",
            },
            id="a data set's own streams",
        ),
        pytest.param({"setup": "import lib\ng = lib.Generator()\ng.seed()"}, id="seeds itself, and is no stream"),
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
        pytest.param("", "def seed(s, t=0):\n    torch.manual_seed(s)\nseed(t=1, s=int(time.time()))", "int(time.time())", id="through a parameter"),
        pytest.param("", "def seed(s):\n    s = s + 1\n    s = s\n    torch.manual_seed(s)\nseed(3 if training else int(time.time()))", "3 if training else int(time.time())", id="one of two"),
        pytest.param("", "class S:\n    pass\ns = S()\ns.seed = int(time.time())\ntorch.manual_seed(s.seed)", "int(time.time())", id="through an attribute"),
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


_SPLIT = "order = list(range(64))\n{}\ntrain_set = torch.utils.data.Subset(train_set, order[:48])"


@pytest.mark.parametrize(
    ("imports", "line", "new"),
    [
        pytest.param("", "random.SystemRandom().shuffle(order)", "random.Random(ddp.common_seed()).shuffle(order)", id="of the system"),
        pytest.param("import random as r", "r.SystemRandom().shuffle(order)", "r.Random(ddp.common_seed()).shuffle(order)", id="by another name"),
        pytest.param("from random import SystemRandom", "SystemRandom().shuffle(order)", "random.Random(ddp.common_seed()).shuffle(order)", id="by its own name"),
        pytest.param("", "rng = random.SystemRandom()\norder = rng.sample(order, 64)", "rng = random.Random(ddp.common_seed())", id="kept in a variable"),
        pytest.param("", "order = lib.mixed(order, random.SystemRandom())", "order = lib.mixed(order, random.Random(ddp.common_seed()))", id="given to a library"),
        pytest.param(
            "", "def mixed(rows):\n    return random.SystemRandom().sample(rows, 64)\norder = mixed(order)",
            "return random.Random(ddp.common_seed()).sample(rows, 64)", id="in a function that returns it",
        ),
        pytest.param(
            "", "order = np.random.Generator(np.random.PCG64()).permutation(64)",
            "order = np.random.Generator(np.random.PCG64(ddp.common_seed())).permutation(64)", id="bits of a generator",
        ),
        pytest.param("", "rng = np.random.default_rng(None)", "rng = np.random.default_rng(ddp.common_seed())", id="None"),
        pytest.param("", "rng = np.random.default_rng(seed=None)", "rng = np.random.default_rng(ddp.common_seed())", id="None by keyword"),
        pytest.param("", "s = np.random.SeedSequence()", "s = np.random.SeedSequence(ddp.common_seed())", id="a sequence of seeds"),
        pytest.param("", "g = torch.Generator()\ng.seed()", "g.manual_seed(ddp.common_seed())", id="torch's generator seeds itself"),
        pytest.param("", "r = np.random.RandomState(3)\nr.seed()", "r.seed(ddp.common_seed() % 2**32)", id="numpy's old stream seeds itself"),
        pytest.param("", "r = random.Random(3)\nr.seed()", "r.seed(ddp.common_seed())", id="random's stream seeds itself"),
        pytest.param(
            "", "g = torch.Generator()\ng.manual_seed(int(time.time()))", "g.manual_seed(ddp.from_main(int(time.time())))", id="by the clock",
        ),
        pytest.param("", "b = np.random.PCG64(seed=os.getpid())", "b = np.random.PCG64(seed=ddp.from_main(os.getpid()))", id="bits by the process"),
        pytest.param(
            "", "g = torch.Generator().manual_seed(secrets.randbits(9))", "g = torch.Generator().manual_seed(ddp.from_main(secrets.randbits(9)))", id="in one",
        ),
        pytest.param("", "order = [secrets.choice(order)]", "order = [ddp.from_main(secrets.choice(order))]", id="a draw"),
        pytest.param(
            "", "order = [secrets.randbelow(64) for _ in range(48)]", "order = ddp.from_main([secrets.randbelow(64) for _ in range(48)])", id="many draws",
        ),
        pytest.param(
            "", "order = sorted(order, key=lambda i: os.urandom(4))", "order = ddp.from_main(sorted(order, key=lambda i: os.urandom(4)))", id="sorted by draws",
        ),
        pytest.param(
            "", "order = list(secrets.randbelow(64) for _ in range(48))", "order = ddp.from_main(list(secrets.randbelow(64) for _ in range(48)))", id="a generator",
        ),
        pytest.param(
            "", "order = list(map(lambda i: secrets.randbelow(i + 1), order))", "order = ddp.from_main(list(map(lambda i: secrets.randbelow(i + 1), order)))",
            id="a map",
        ),
        pytest.param("", "order.append(secrets.randbelow(64))", "order.append(ddp.from_main(secrets.randbelow(64)))", id="put into a list"),
        pytest.param("", "order[0] = secrets.randbelow(64)", "order[0] = ddp.from_main(secrets.randbelow(64))", id="put into its place"),
        pytest.param(
            "", "kept = []\nfor i in order:\n    if secrets.randbelow(9) < 8:\n        kept.append(i)\norder = kept",
            "if ddp.from_main(secrets.randbelow(9)) < 8:", id="a test that chooses",
        ),
        pytest.param(
            "", "def one(n):\n    return secrets.randbelow(n)\norder = [one(64)]", "return ddp.from_main(secrets.randbelow(n))", id="in a function that returns it",
        ),
    ],
)  # fmt: skip
def test_what_the_system_draws_for_the_data(imports: str, line: str, new: str) -> None:
    assert new in after(imports=f"{_IMPORTS}\n{imports}", setup=_SPLIT.format(line))


def test_one_number_for_the_seed_and_the_data() -> None:
    line = "s = random.SystemRandom().randint(1, 9)\ntorch.manual_seed(s)\norder = order[s:]"
    assert found("DPM209", imports=_IMPORTS, setup=_SPLIT.format(line)) == ["random.SystemRandom().randint(1, 9)"]


def test_two_draws_in_one_expression() -> None:
    line = "order = [secrets.choice(order) + secrets.randbelow(1) for _ in order]"
    assert found("DPM209", imports=_IMPORTS, setup=_SPLIT.format(line)) == ["[secrets.choice(order) + secrets.randbelow(1) for _ in order]"]


def test_the_module_that_a_stream_needs() -> None:
    imports = "from random import SystemRandom"
    assert "import random" in after(imports=imports, setup=_SPLIT.format("SystemRandom().shuffle(order)"))
    both = f"{imports}\nfrom numpy import random"
    assert refused("DPM209", imports=both, setup=_SPLIT.format("SystemRandom().shuffle(order)")) == ["SystemRandom()"]


@pytest.mark.parametrize(
    ("line", "pointed"),
    [
        pytest.param("order.sort(key=lambda i: secrets.token_hex())", "secrets.token_hex()", id="in place"),
        pytest.param("order = map(lambda i: secrets.randbelow(i + 1), order)", "secrets.randbelow(i + 1)", id="gone through later"),
        pytest.param("g = torch.Generator()\ns = g.seed()", "g.seed()", id="the seed that it gives"),
    ],
)
def test_what_the_system_draws_in_place(line: str, pointed: str) -> None:
    assert refused("DPM209", imports=_IMPORTS, setup=_SPLIT.format(line)) == [pointed]


def test_an_attribute_that_the_system_draws() -> None:
    defs = "class Rows:\n    def __init__(self):\n        self.first = secrets.randbelow(9)\n    def order(self):\n        return range(self.first, 64)"
    setup = "rows = Rows()\ntrain_set = torch.utils.data.Subset(train_set, list(rows.order()))"
    assert "self.first = ddp.from_main(secrets.randbelow(9))" in after(imports=_IMPORTS, defs=defs, setup=setup)


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
