"""Where the program starts and ends."""

from __future__ import annotations

import ast

import pytest

from dpmigrate.facts.entry import find_entry
from tests.pipeline import script


def _entry(text: str) -> tuple[str, bool, str] | None:
    found = find_entry(script(text).names)
    return None if found is None else (ast.unparse(found.start).splitlines()[0], found.inside, ast.unparse(found.end).splitlines()[0])


_GUARD = "if __name__ == '__main__':"


@pytest.mark.parametrize(
    ("text", "entry"),
    [
        pytest.param("import a\ndef f(): pass\n", None, id="nothing runs"),
        pytest.param("def f(): train()\nclass A:\n    x = train()", None, id="definitions that would do something"),
        pytest.param("import logging\nx = 3\nlogger = logging.getLogger('a')", None, id="only settings"),
        pytest.param(f"def main(): pass\n{_GUARD}\n    main()", (_GUARD, True, "main()"), id="a guard"),
        pytest.param(f"def main(): pass\n{_GUARD}\n    main()\nprint(3)", (_GUARD, True, "main()"), id="work below the guard"),
        pytest.param(f"{_GUARD}\n    x = 3\ntrain()\ntest()", (_GUARD, False, "test()"), id="settings above the work"),
        pytest.param(f"import a\ntrain()\n{_GUARD}\n    main()", ("train()", False, "main()"), id="work above the guard"),
        pytest.param(f"import logging\nlogging.basicConfig(level=3)\n{_GUARD}\n    main()", (_GUARD, True, "main()"), id="logging to the terminal"),
        pytest.param(
            f"import logging\nlogging.basicConfig(filename='a')\n{_GUARD}\n    main()",
            ("logging.basicConfig(filename='a')", False, "main()"),
            id="logging to a file",
        ),
        pytest.param(f"import argparse\np = argparse.ArgumentParser()\np.add_argument('a')\n{_GUARD}\n    main()", (_GUARD, True, "main()"), id="options"),
        pytest.param(f"try:\n    import a\nexcept ImportError:\n    a = f()\n{_GUARD}\n    main()", (_GUARD, True, "main()"), id="an import that may fail"),
        pytest.param(f"import torch\nif torch.cuda.is_available():\n    x = 3\n{_GUARD}\n    main()", (_GUARD, True, "main()"), id="a question to the machine"),
        pytest.param(
            f"from pathlib import Path\nTOP = Path(__file__).resolve().parents[1]\n{_GUARD}\n    main()", (_GUARD, True, "main()"), id="a folder above"
        ),
        pytest.param(
            f"{_GUARD[:-1]} and not __package__:\n    import sys\n    sys.path.insert(0, 'a')\nimport b\n{_GUARD}\n    main()",
            (_GUARD, True, "main()"),
            id="a guard among the imports",
        ),
        pytest.param(f"{_GUARD}\n    print(3)\n{_GUARD}\n    main()", (_GUARD, True, "main()"), id="two guards"),
        pytest.param(f"{_GUARD}\n    print(3)\ntrain()\n{_GUARD}\n    main()", (_GUARD, True, "main()"), id="work between two guards"),
        pytest.param(f"import a\n{_GUARD}\n    x = 3\n{_GUARD}\n    y = 4", (_GUARD, True, "x = 3"), id="two guards of settings"),
        pytest.param('"""doc"""\ntrain()', ("train()", False, "train()"), id="a docstring"),
        pytest.param("try:\n    train()\nexcept OSError:\n    pass\ntest()", ("try:", False, "test()"), id="work in a try"),
        pytest.param("if a:\n    train()\nimport b\ntest()", ("if a:", False, "test()"), id="a compound statement among the imports"),
        pytest.param("from a import ex\n@ex.automain\ndef main(): pass", ("@ex.automain", False, "@ex.automain"), id="a function that its decorator runs"),
        pytest.param("from a import ex\nex.add(3)\n@ex.automain\ndef main(): pass", ("ex.add(3)", False, "@ex.automain"), id="work before that"),
        pytest.param("import a\ntrain()\ntest()\ndef f(): pass", ("train()", False, "test()"), id="no guard"),
        pytest.param(
            "'''doc'''\nimport a\ntry:\n    import b\nexcept ImportError:\n    pass\ntrain()", ("train()", False, "train()"), id="below imports that may fail"
        ),
        pytest.param("import a\na.use('Agg')\nimport b\ntrain()", ("train()", False, "train()"), id="a statement among the imports"),
        pytest.param("import a\nx = 3\nimport b\ntrain()", ("train()", False, "train()"), id="a number among the imports"),
        pytest.param("import a\nx = a.load()\nimport b\ntrain()", ("x = a.load()", False, "train()"), id="something built among the imports"),
        pytest.param("import a\na.load(x)\nimport b\ntrain()", ("a.load(x)", False, "train()"), id="something done among the imports"),
        pytest.param("a.use('Agg')\nimport b\nif c:\n    train()", ("if c:", False, "if c:"), id="a compound statement"),
        pytest.param("a.use('Agg')\nimport b", ("import b", False, "import b"), id="nothing but imports after the work"),
    ],
)
def test_entry(text: str, entry: tuple[str, bool, str] | None) -> None:
    assert _entry(text) == entry
