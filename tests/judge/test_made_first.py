"""What rank 0 has made and the others load from a file that need not give the same is given to them by rank 0."""

from __future__ import annotations

from pathlib import Path
from textwrap import indent

import pytest

from dpmigrate import proving
from dpmigrate.model import Status
from dpmigrate.settings import Settings

_PROGRAM = """\
import csv
import json
import os
import pickle
from pathlib import Path

import numpy as np
import torch
import yaml
from torch import nn
from torch.utils.data import DataLoader, Dataset


def make():
    return {{label: n for n, label in enumerate(range(7))}}


{defs}
class Data(Dataset):
    def __init__(self):
        self.x = torch.randn(60, 5)
{init}

    def _load(self):
        with open("vocab.json") as f:
            self.vocab = json.load(f)

    def _build(self):
        self.vocab = make()
        with open("vocab.json", "w") as f:
            json.dump(self.vocab, f)

    def __len__(self):
        return 60

    def __getitem__(self, i):
        return self.x[i], self.vocab.get(i % 7, 0)


loader = DataLoader(Data(), batch_size=12, shuffle=True)
model = nn.Linear(5, 7)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
"""
_GIVEN = "        self.vocab = ddp.from_main(self.vocab)"


def _new(folder: Path, init: str, defs: str = "") -> list[str]:
    script = folder / "train.py"
    script.write_text(_PROGRAM.format(init=indent(init, " " * 8), defs=defs))
    outcome, files = proving.migration(script, Settings())
    assert outcome.status is Status.CHANGED, outcome
    assert files is not None
    return files[script].decode().splitlines()


def _either(load: str, save: str, made: str = "make()") -> str:
    return f"if os.path.exists('p'):\n    self.vocab = {load}\nelse:\n    self.vocab = {made}\n    {save}"


@pytest.mark.parametrize(
    ("load", "save"),
    [
        pytest.param("json.load(open('p'))", "json.dump(self.vocab, open('p', 'w'))", id="JSON"),
        pytest.param("json.loads(Path('p').read_text())", "Path('p').write_text(json.dumps(self.vocab))", id="JSON as a text"),
        pytest.param("{int(k): v for k, v in json.load(open('p')).items()}", "json.dump(self.vocab, open('p', 'w'))", id="numbers again"),
        pytest.param("yaml.safe_load(open('p'))", "yaml.safe_dump(self.vocab, open('p', 'w'))", id="YAML"),
        pytest.param("eval(open('p').read())", "open('p', 'w').write(str(self.vocab))", id="a text"),
        pytest.param("dict(csv.reader(open('p')))", "csv.writer(open('p', 'w')).writerows(self.vocab.items())", id="CSV"),
    ],
)
def test_rank_0_gives_it(tmp_path: Path, load: str, save: str) -> None:
    lines = _new(tmp_path, _either(load, save))
    assert lines[lines.index(_GIVEN) - 1].startswith(" " * 16)  # behind the block
    assert lines[lines.index(_GIVEN) + 1] == ""


@pytest.mark.parametrize(
    ("load", "save", "made"),
    [
        pytest.param("pickle.load(open('p', 'rb'))", "pickle.dump(self.vocab, open('p', 'wb'))", "make()", id="pickle"),
        pytest.param("torch.load('p')", "torch.save(self.vocab, 'p')", "make()", id="torch"),
        pytest.param("json.load(open('p'))", "json.dump(self.vocab, open('p', 'w'))", "{'a': 1, 'b': [2, 3.5, None]}", id="texts"),
        pytest.param("np.load('p', allow_pickle=True).item()", "np.save('p', self.vocab)", "make()", id="an object in an array"),
    ],
)
def test_what_comes_back_as_it_was_is_loaded_alone(tmp_path: Path, load: str, save: str, made: str) -> None:
    lines = _new(tmp_path, _either(load, save, made))
    assert "        with ddp.main_first():" in lines and not any("from_main" in line for line in lines)


def test_methods_that_load_and_build(tmp_path: Path) -> None:
    lines = _new(tmp_path, "if os.path.exists('vocab.json'):\n    self._load()\nelse:\n    self._build()")
    assert lines[lines.index(_GIVEN) - 1] == "                self._build()"


def test_two_variables_of_one_file(tmp_path: Path) -> None:
    load = "if os.path.exists('p'):\n    self.vocab, self.back = json.load(open('p'))\nelse:\n    self.vocab = make()\n"
    save = "    self.back = {n: k for k, n in self.vocab.items()}\n    json.dump([self.vocab, self.back], open('p', 'w'))"
    assert "        self.vocab, self.back = ddp.from_main((self.vocab, self.back))" in _new(tmp_path, load + save)


def test_what_is_taken_from_a_file_part_by_part(tmp_path: Path) -> None:
    load = "if os.path.exists('p'):\n    saved = json.load(open('p'))\n    self.vocab, n = saved['v'], saved['n']\nelse:\n    self.vocab, n = make(), 7\n"
    assert "        self.vocab, n = ddp.from_main((self.vocab, n))" in _new(tmp_path, load + "    json.dump({'v': self.vocab, 'n': n}, open('p', 'w'))")


def test_a_flag_stays_each_rank_s_own(tmp_path: Path) -> None:
    """It says which of them have made the file: those that found it make no more."""
    init = "self.vocab = {}\nif os.path.exists('p'):\n    new = False\nelse:\n    torch.save([1], 'p')\n    new = True\nprint(new)"
    assert not any("from_main" in line for line in _new(tmp_path, init))


@pytest.mark.parametrize("loaded", ["np.load(path)", "dict(np.load(path))"])
def test_a_function_that_gives_either(tmp_path: Path, loaded: str) -> None:
    body = f"    if os.path.exists(path):\n        return {loaded}\n    vocab = make()\n    np.save(path, vocab)\n    return vocab\n"
    assert "        self.vocab = ddp.from_main(get('p.npy'))" in _new(tmp_path, "self.vocab = get('p.npy')", f"def get(path):\n{body}\n\n")
