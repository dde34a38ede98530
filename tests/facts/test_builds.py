"""What the program makes where it is missing."""

from __future__ import annotations

import ast

import pytest

from tests.pipeline import script
from tests.rules.program import program

_IMPORTS = "import json\nimport numpy as np"


@pytest.mark.parametrize(
    "setup",
    [
        pytest.param("np.save('a.npy', train_set)", id="made always"),
        pytest.param("if not os.path.exists('a.npy'):\n    print('none')", id="nothing is made"),
        pytest.param("if quick:\n    np.save('a.npy', train_set)", id="nobody asks whether it is there"),
        pytest.param("if os.path.exists('a.npy'):\n    x = np.load('a.npy')", id="read where it is there"),
    ],
)
def test_nothing_is_built(setup: str) -> None:
    assert script(program(imports=_IMPORTS + "\nquick = 3", setup=setup)).builds == ()


def test_not_between_the_epochs() -> None:
    step = "if not os.path.exists('a.npy'):\n    np.save('a.npy', model)"
    assert script(program(imports=_IMPORTS, epoch_end=step)).builds == ()


@pytest.mark.parametrize(
    ("setup", "branch", "wishes", "once", "kept"),
    [
        ("if not os.path.exists('a.npy'):\n    np.save('a.npy', train_set)", "np.save('a.npy', train_set)", [], True, ()),
        ("if os.path.exists('a.npy'):\n    pass\nelse:\n    np.save('a.npy', train_set)", "np.save('a.npy', train_set)", [], True, ()),
        ("if quick or not os.path.exists('a.npy'):\n    np.save('a.npy', train_set)", "np.save('a.npy', train_set)", ["quick"], True, ()),
        ("if not os.path.exists('a.npy'):\n    rows = 3\n    np.save('a.npy', rows)\nprint(rows)", "rows = 3", [], True, ("rows",)),
    ],
)
def test_built_where_it_is_missing(setup: str, branch: str, wishes: list[str], once: bool, kept: tuple[str, ...]) -> None:
    found = script(program(imports=_IMPORTS + "\nquick = 3", setup=setup))
    (build,) = found.builds
    assert (ast.unparse(build.branch[0]), [ast.unparse(w) for w in build.wishes], build.once, build.kept) == (branch, wishes, once, kept)
    made = next(n for n in found.names.nodes if isinstance(n, ast.Call) and ast.unparse(n.func) == "np.save")
    assert found.made_once(made) is build.by_main
