"""A cache that rank 0 makes and saves in its turn, and that the others load, is the same on all ranks."""

from __future__ import annotations

from textwrap import indent

import pytest

from dpmigrate.judge import faults
from tests.judge.trained import result

_BEFORE = """\
import json, os, pickle, yaml
from pathlib import Path
path, other = Path('rows.npy'), Path('more.npy')
def make():
    return [1, 2]
with ddp.main_first():
"""
#: what is found of the names and of the questions of these programs besides
_ELSEWHERE = ("rows may not be bound here", "before another rank may have asked: from_main() is missing")
_AFTER = "if not rows:\n    raise ValueError\nddp.barrier()"


def _parts(body: str) -> bool:
    """Whether ranks part by what they have after the branches."""
    return _told(_BEFORE + indent(body, "    ") + "\n" + _AFTER)


def _told(last: str) -> bool:
    told = {f.words for f in faults(result(last=last)) if not f.words.endswith(_ELSEWHERE)}
    assert len(told) <= 1, told
    return any("the ranks part here" in w for w in told)


def _either(load: str, save: str, test: str = "path.exists()") -> str:
    return f"if {test}:\n{indent(load, '    ')}\nelse:\n    rows = make()\n{indent(save, '    ')}"


@pytest.mark.parametrize(
    ("load", "save"),
    [
        pytest.param("rows = torch.load(path)", "ddp.save(rows, path)", id="torch"),
        pytest.param("rows = torch.from_numpy(np.load(path))", "rows = torch.ones(3)\nnp.save(path, rows.numpy())", id="another form"),
        pytest.param("rows = np.load(path)", "rows = np.arange(3)\nnp.save(path, rows)\nprint(len(rows))", id="shown"),
        pytest.param("rows = json.load(open(path))", "json.dump(rows, open(path, 'w'))", id="a list in JSON"),
        pytest.param("with open(path, 'rb') as f:\n    rows = pickle.load(f)", "with open(path, 'wb') as f:\n    pickle.dump(rows, f)", id="open files"),
        pytest.param("rows = pickle.load(open(path, 'rb'))", "pickle.dump(rows, path.open('wb'))", id="files that are opened there"),
        pytest.param("rows = torch.load(path)\nmore = torch.load(other)", "more = make()\nddp.save(rows, path)\nddp.save(more, other)", id="two"),
        pytest.param("rows, more = torch.load(path)", "more = make()\nddp.save((rows, more), path)", id="a tuple"),
        pytest.param("rows, more = torch.load(path)", "more = make()\nddp.save([rows, more], path)", id="a list"),
    ],
)
def test_whoever_made_it(load: str, save: str) -> None:
    assert not _parts(_either(load, save))
    loaded, made = indent(load, "    "), indent(f"rows = make()\n{save}", "    ")
    assert not _parts(f"if not path.exists():\n{made}\nelse:\n{loaded}")


@pytest.mark.parametrize(
    ("load", "save"),
    [
        pytest.param("rows = torch.load(path)", "ddp.save(rows[:1], path)", id="a part is saved"),
        pytest.param("rows = torch.load(path)[:1]", "ddp.save(rows, path)", id="a part is loaded"),
        pytest.param("rows = torch.load(path)", "ddp.save(rows, other)", id="another file"),
        pytest.param("rows = torch.load(path)", "ddp.save(3, path)", id="something else"),
        pytest.param("rows = torch.load(path)", "ddp.save(rows, path)\nrows.append(3)", id="changed after it was saved"),
        pytest.param("rows = torch.load(path)", "ddp.save(rows, path)\nrows = []", id="made anew after it was saved"),
        pytest.param("rows = torch.load(path)\nrows.pop()", "ddp.save(rows, path)", id="changed after it was loaded"),
        pytest.param("rows = torch.load(path)\nrows = []", "ddp.save(rows, path)", id="made anew after it was loaded"),
        pytest.param("rows, more = torch.load(path)\nrows = []", "more = make()\nddp.save((rows, more), path)", id="a part of a tuple"),
        pytest.param("rows = False", "ddp.save(rows, path)", id="a flag"),
        pytest.param("for rows in torch.load(path):\n    break", "ddp.save(rows, path)", id="one of them"),
        pytest.param("rows = os.fspath(path)", "ddp.save(rows, path)", id="nothing is loaded"),
        pytest.param("rows = torch.load(path)", "pass", id="nothing is saved"),
        pytest.param("rows = np.load(path)", "np.save(path, rows)", id="a list comes back as an array"),
        pytest.param("rows = np.load(path).tolist()", "np.save(path, np.asarray(rows, np.float32))", id="rounded"),
        pytest.param("rows = json.load(open(path))", "rows = {1: 2}\njson.dump(rows, open(path, 'w'))", id="keys of JSON are texts"),
        pytest.param("rows = json.load(open(path))", "rows = [(1, 2)]\njson.dump(rows, open(path, 'w'))", id="tuples come back as lists"),
        pytest.param("rows = np.loadtxt(path)", "rows = np.ones(3) / 3\nnp.savetxt(path, rows)", id="numbers of a text are rounded"),
        pytest.param("rows = yaml.safe_load(open(path))", "yaml.safe_dump(rows, open(path, 'w'))", id="no table has the format"),
        pytest.param("rows = json.load(open(path))", "pickle.dump(rows, open(path, 'wb'))", id="two formats"),
    ],
)
def test_who_made_it_matters(load: str, save: str) -> None:
    assert _parts(_either(load, save))


_GET = _BEFORE.replace("with ddp.main_first():\n", "def get(again=False):\n    with ddp.main_first():\n")


@pytest.mark.parametrize(
    ("body", "same"),
    [
        pytest.param("if path.exists():\n    return torch.load(path)\nx = make()\nddp.save(x, path)\nreturn x", True, id="returned early"),
        pytest.param("if path.exists():\n    return torch.load(path)\nelse:\n    x = make()\n    ddp.save(x, path)\n    return x", True, id="else"),
        pytest.param("if not path.exists():\n    x = make()\n    ddp.save(x, path)\n    return x\ny = torch.load(path)\nreturn y", True, id="made first"),
        pytest.param("if path.exists():\n    return torch.load(path)\nx = make()\nddp.save(x, path)\nreturn x[:1]", False, id="a part is returned"),
        pytest.param("if path.exists():\n    return torch.load(path)\nx = make()\nreturn x", False, id="nothing is saved"),
        pytest.param("if path.exists():\n    y = torch.load(path)\n    y.pop()\n    return y\nx = make()\nddp.save(x, path)\nreturn x", False, id="changed"),
        pytest.param("if path.exists():\n    return False\nx = make()\nddp.save(x, path)\nreturn x", False, id="a flag"),
        pytest.param("if path.exists():\n    return torch.load(path)\nx = make()\nif again:\n    return []\nddp.save(x, path)\nreturn x", False, id="three ways"),
        pytest.param("if path.exists():\n    return\nx = make()\nddp.save(x, path)\nreturn x", False, id="nothing is returned"),
    ],
)
def test_a_function_hands_out_what_it_loads_or_has_made(body: str, same: bool) -> None:
    last = f"{_GET}{indent(body, ' ' * 8)}\nrows = get()\n{_AFTER}"
    assert _told(last) is not same


def test_what_a_function_is_given_may_differ_all_the_same() -> None:
    """Nobody goes first there: all ranks find the same, and each makes its own."""
    body = "if path.exists():\n    return torch.load(path)\nx = make() if new else []\nddp.save(x, path)\nreturn x"
    defs = f"def get(new):\n{indent(body, '    ')}\nwith ddp.main_first():\n    mine = other.exists()\nrows = get(mine)\n"
    assert _told(_BEFORE.replace("with ddp.main_first():\n", "") + defs + _AFTER)


@pytest.mark.parametrize(
    ("test", "wrong"),
    [
        pytest.param("if not os.path.exists('rows.pt'):", True, id="before the turns"),
        pytest.param("if ddp.from_main(not os.path.exists('rows.pt')):", False, id="by rank 0"),
        pytest.param("if len('rows.pt') == 7:", False, id="no file"),
    ],
)
def test_turns_are_taken_round_the_question(test: str, wrong: bool) -> None:
    """Rank 0 may have made the file when the others ask: they do not come to their turn then."""
    lines = f"import os\n{test}\n    with ddp.main_first():\n        torch.save([1], 'rows.pt')\n"
    assert any("belongs round the test" in f.words for f in faults(result(last=lines))) is wrong


_NUMBERED = "rows = {}\n    for name in sorted(open('names.txt')):\n        rows[name] = len(rows)\n    rows.update({'other': 1})"
_ASKED = "if rows.get('a', rows.get('other')) is None:\n    raise ValueError\nddp.barrier()"


@pytest.mark.parametrize(("save", "same"), [("pickle.dump(rows, open(path, 'wb'))", True), ("pass", False)])
def test_the_items_of_a_dictionary(save: str, same: bool) -> None:
    """Which it has does not depend on who has made it."""
    body = f"if path.exists():\n    rows = pickle.load(open(path, 'rb'))\nelse:\n    {_NUMBERED}\n    {save}"
    assert _told(_BEFORE + indent(body, "    ") + "\n" + _ASKED) is not same
