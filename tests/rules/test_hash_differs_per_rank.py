"""DPM223: hashes of text are the same on every rank."""

from __future__ import annotations

import pytest

from tests.rules.program import after, found, whole

_NAMES = "names = ['b', 'a', 'b']\nseen = {}\nkept = set()"


@pytest.mark.parametrize(
    "setup",
    [
        pytest.param("print('hash(names)')  # hash(names)", id="in a string and a comment"),
        pytest.param("import lib\nk = lib.hash(names[0]) % 3", id="another library's hash"),
        pytest.param("k = names.hash('a')", id="a method"),
        pytest.param("def hash(x):\n    return 3\nk = hash('a')", id="a function of the program"),
        pytest.param("hash = len\nk = hash('a')", id="a variable"),
        pytest.param("k = hash(3) + hash(2.5)", id="numbers"),
        pytest.param("k = hash(len(names)) + hash(int('3'))", id="what gives numbers"),
        pytest.param("seen[hash(names[0])] = 1", id="a key"),
        pytest.param("k = hash(names[0]) in seen", id="asked for in a dict"),
        pytest.param("k = hash(names[0]) == hash(names[1])", id="compared"),
        pytest.param("kept.add(hash(names[0]))\nk = seen.get(hash(names[0]), 3)", id="keys by methods"),
        pytest.param("print(hash(names[0]), f'{hash(names[1])}')", id="printed"),
        pytest.param("class D:\n    def __hash__(self):\n        return hash('a')\n    def __eq__(self, o):\n        return hash(o) > 0\nD()", id="a hash of its own"),
        pytest.param("try:\n    hash()\nexcept TypeError:\n    pass", id="of nothing"),
    ],
)  # fmt: skip
def test_nothing_to_say(setup: str) -> None:
    assert found("DPM223", setup=f"{_NAMES}\n{setup}") == []


@pytest.mark.parametrize(
    ("line", "new"),
    [
        pytest.param("ids = [k for k in names if hash(k) % 10 < 8]", "ids = [k for k in names if ddp.same_hash(k) % 10 < 8]", id="a split"),
        pytest.param("k = abs(hash(names[0])) % 3", "k = abs(ddp.same_hash(names[0])) % 3", id="inside another call"),
        pytest.param("k = hash(tuple(names)) > 0", "k = ddp.same_hash(tuple(names)) > 0", id="a comparison by size"),
        pytest.param("k = hash('a')", "k = ddp.same_hash('a')", id="a text that is written there"),
        pytest.param("n = list(map(hash, names))", "n = list(map(ddp.same_hash, names))", id="handed on"),
        pytest.param("n = sorted(names, key=hash)", "n = sorted(names, key=ddp.same_hash)", id="as a key"),
        pytest.param("import builtins\nk = builtins.hash('a')", "k = ddp.same_hash('a')", id="by its module"),
        pytest.param("h = hash\nk = h('a')", "h = ddp.same_hash", id="another name"),
        pytest.param("path = f'cache_{hash(names[0])}.pt'", "path = f'cache_{ddp.same_hash(names[0])}.pt'", id="a path"),
        pytest.param("x = torch.zeros(8)\nx[hash('a') % 8] += 1", "x[ddp.same_hash('a') % 8] += 1", id="a feature"),
        pytest.param("names.insert(hash('a') % 2, hash('b'))", "names.insert(ddp.same_hash('a') % 2, ddp.same_hash('b'))", id="given to a method"),
        pytest.param("torch.manual_seed(hash('a'))", "torch.manual_seed(ddp.same_hash('a'))", id="a seed"),
    ],
)
@pytest.mark.parametrize("module_level", [False, True], ids=["function", "module"])
def test_found_and_fixed(line: str, new: str, module_level: bool) -> None:
    assert new in after(setup=f"{_NAMES}\n{line}", module_level=module_level)


def test_in_a_data_set() -> None:
    defs = "class D(torch.utils.data.Dataset):\n    def __len__(self):\n        return 9\n    def __getitem__(self, i):\n        return torch.ones(8) * (hash(str(i)) % 8), i % 2"
    assert "return torch.ones(8) * (ddp.same_hash(str(i)) % 8), i % 2" in whole(defs=defs, loader="loader = DataLoader(D(), batch_size=16, shuffle=True)")
