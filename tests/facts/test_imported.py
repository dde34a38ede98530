"""What import statements bring from the program's own modules."""

from __future__ import annotations

import ast

import pytest

from dpmigrate.facts.names import Names

_UTILS = "def save():\n    pass\nvalue = 3\n_hidden = 4\n"


def _names(text: str) -> Names:
    return Names(ast.parse(text), [ast.parse(_UTILS)], {(1, "utils"): 0})


@pytest.mark.parametrize("text", ["import os\nos.save", "from other import save\nsave", "import utils\nutils.nothing", "from utils import *\n_hidden"])
def test_nothing_of_the_program(text: str) -> None:
    names = _names(text)
    last = names.tree.body[-1]
    assert isinstance(last, ast.Expr)
    found = names.meant(last.value)
    assert found is None or found[0].node is names.tree


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("import utils\nutils.save", "save"),
        ("import utils as u\nu.value", "value"),
        ("from utils import save\nsave", "save"),
        ("from utils import save as store\nstore", "save"),
        ("from utils import *\nvalue", "value"),
        ("import utils\nutils", ""),
    ],
)
def test_a_variable_of_another_file(text: str, name: str) -> None:
    names = _names(text)
    last = names.tree.body[-1]
    assert isinstance(last, ast.Expr)
    found = names.meant(last.value)
    assert found is not None and (found[0].node, found[1]) == (names.trees[0], name)


def test_by_what_words_a_variable_is_known_and_what_an_import_runs() -> None:
    names = _names("from utils import save as store\nfrom utils import save\n")
    (utils,) = (s for s in names.opened.values() if s.node is names.trees[0])
    assert names.imported.words(utils, "save") == ["save", "store"]
    statement = names.tree.body[0]
    assert isinstance(statement, ast.ImportFrom) and names.run_by(statement) == [names.trees[0]]
    assert [s.node for s in names.imported.named(names.module, ("utils?",))] == [names.trees[0]]


def test_two_modules_that_import_all_of_each_other() -> None:
    one, other = "from other import missing\nheld = 1\n", "from one import *\nown = 2\n"
    names = Names(ast.parse("from one import *\nmissing, held, own\n"), [ast.parse(one), ast.parse(other)], {(2, "one"): 0, (0, "other"): 1, (1, "one"): 0})
    last = names.tree.body[-1]
    assert isinstance(last, ast.Expr) and isinstance(last.value, ast.Tuple)
    missing, held, own = map(names.meant, last.value.elts)
    assert held is not None and held[0].node is names.trees[0]
    assert own is None and (missing is None or missing[0].node is names.trees[0])
