"""DPM513: questions, debuggers and windows on rank 0 only."""

from __future__ import annotations

import pytest

from tests.rules.program import after, found, refused, whole


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({}, id="nothing shown"),
        pytest.param({"imports": "from mylib import pdb, plt", "end": "pdb.set_trace()\nplt.show()"}, id="another library's"),
        pytest.param({"end": "print('breakpoint()')  # breakpoint()"}, id="in a string and a comment"),
        pytest.param({"imports": "import matplotlib.pyplot as plt", "end": "plt.plot([1])"}, id="a plot that is not shown"),
        pytest.param({"defs": "def input():\n    return 3", "end": "input()"}, id="a function of the program's own"),
        pytest.param({"defs": "class D:\n    def ask(self):\n        return input()"}, id="a method that nobody calls"),
    ],
)
def test_nothing_to_say(parts: dict[str, str]) -> None:
    assert found("DPM513", **parts) == []


@pytest.mark.parametrize(
    ("imports", "call"),
    [
        pytest.param("", "breakpoint()", id="breakpoint"),
        pytest.param("import pdb", "pdb.set_trace()", id="pdb"),
        pytest.param("from ipdb import set_trace as stop", "stop()", id="from-import with alias"),
        pytest.param("import code", "code.interact(local={})", id="console"),
        pytest.param("from IPython import embed", "embed()", id="IPython"),
        pytest.param("import matplotlib.pyplot as plt", "plt.show(block=True)", id="pyplot"),
        pytest.param("import cv2", "cv2.imshow('a', 3)", id="a window"),
        pytest.param("", "input('press enter')", id="a question without an answer"),
    ],
)
@pytest.mark.parametrize("module_level", [False, True], ids=["function", "module"])
def test_guarded(imports: str, call: str, module_level: bool) -> None:
    parts: dict[str, str | bool] = {"imports": imports, "end": call, "module_level": module_level}
    assert found("DPM513", **parts) == [call]
    lines = [one.strip() for one in whole(**parts).splitlines()]
    assert lines[lines.index(call) - 1] == "if ddp.is_main():"


def test_a_debugger_under_a_test_and_in_a_method() -> None:
    step = "loss = F.cross_entropy(model(x), y)\nif loss.item() > 99:\n    import pdb; pdb.set_trace()\nloss.backward()\noptimizer.step()"
    assert after(step=step)[-3:] == ["import pdb", "if ddp.is_main():", "pdb.set_trace()"]
    assert found("DPM513", defs="class T:\n    def look(self, p):\n        breakpoint()") == ["breakpoint()"]


@pytest.mark.parametrize(
    ("imports", "line", "expected"),
    [
        pytest.param("", "name = input('name: ')", "name = ddp.from_main(ddp.main_only(input, 'name: '))", id="input"),
        pytest.param("", "n = int(input(prompt))", "n = int(ddp.from_main(ddp.main_only(input, prompt)))", id="inside a call"),
        pytest.param("from getpass import getpass as ask", "key = ask()", "key = ddp.from_main(ddp.main_only(ask))", id="from-import with alias"),
    ],
)
def test_an_answer_is_told_to_all(imports: str, line: str, expected: str) -> None:
    assert after(imports=imports, top="prompt = 'a'", setup=line) == [expected]


@pytest.mark.parametrize(
    ("setup", "expected"),
    [
        pytest.param(
            "if os.path.exists('a'):\n    if input('again? ') != 'y':\n        return",
            ["if ddp.from_main(os.path.exists('a')):", "if ddp.from_main(ddp.main_only(input, 'again? ')) != 'y':"],
            id="behind a look at the disk",
        ),
        pytest.param(
            "if lock and os.path.exists('a') and input('again? ') != 'y':\n    return",
            ["if lock and ddp.from_main(os.path.exists('a')) and ddp.from_main(ddp.main_only(input, 'again? ')) != 'y':"],
            id="in one test with it",
        ),
        pytest.param(
            "if lock and not os.path.exists(input('where? ')):\n    return",
            ["if lock and not os.path.exists(ddp.from_main(ddp.main_only(input, 'where? '))):"],
            id="what is looked for is asked",
        ),
        pytest.param("if lock:\n    print(input('why? '))", ["print(ddp.from_main(ddp.main_only(input, 'why? ')))"], id="behind a setting"),
    ],
)
def test_all_ranks_come_to_the_question(setup: str, expected: list[str]) -> None:
    assert after(top="lock = True", setup=setup) == expected


def test_behind_a_value_of_the_training() -> None:
    ask = "if loss.item() > 9 and input('stop? ') == 'y':\n    print(3)"
    assert refused("DPM511", epoch_end=ask) == ["input('stop? ')"]
    assert after(epoch_end="if loss.item() > 9:\n    print(input('stop? '))") == [
        "if ddp.from_main(loss.item() > 9):",
        "print(ddp.from_main(ddp.main_only(input, 'stop? ')))",
    ]
