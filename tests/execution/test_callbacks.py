"""What Python and libraries call by themselves is executed, once, after the program."""

from __future__ import annotations

import pytest

from tests.execution.paper import constant, executed, held, lines


@pytest.mark.parametrize(
    ("text", "at"),
    [
        # nothing comes into other hands
        ("def f():\n    print()", []),
        ("class A:\n    def f(self):\n        print()\nA()", []),
        ("class A:\n    def __str__(self):\n        print()", []),
        ("f = lambda: print()\ng = [f]", []),
        # Python is asked what a function is
        ("def f():\n    print()\nname = callable(f)", []),
        ("def f():\n    print()\nprint if isinstance(f, type(f)) and hasattr(f, 'a') else id(f)", []),
        ("class A:\n    def f(self):\n        print()\ncallable(A().f)", []),
        # a library is given a function
        ("import atexit\nf = lambda: print()\natexit.register(f)", [2]),
        ("import atexit\n@atexit.register\ndef f():\n    print()", [4]),
        ("import signal\nsignal.signal(2, lambda *a: print())", [2]),
        ("import unknown\ndef f(x):\n    print(x)\nunknown.f(f)", [3]),
        ("xs = [2, 1]\nxs.sort(key=lambda x: print())", [2]),
        ("def f():\n    yield 1\n    print()\nimport atexit\natexit.register(f)", [3]),
        ("import atexit\natexit.register(lambda: atexit.register(lambda: print()))", [2]),
        # Python calls a method of an object
        ("class A:\n    def __str__(self):\n        print()\nA()", [3]),
        ("class A:\n    def __bool__(self):\n        print()\n        return True\nif A():\n    pass", [3]),
        ("class A:\n    def __del__(self):\n        print()\nA()", [3]),
    ],
)
def test_what_no_line_calls(text: str, at: list[int]) -> None:
    assert lines(executed(text), "print") == at


def test_what_a_line_calls_is_not_called_again_with_what_nobody_knows() -> None:
    text = "import atexit\ndef f(x=1):\n    global y\n    y = x\nf()\natexit.register(f)"
    assert constant(executed(text), "y") == 1


def test_what_is_called_after_the_program_may_have_been_called_or_not() -> None:
    text = "import atexit\ny = 1\ndef f():\n    global y\n    y = 2\natexit.register(f)"
    assert {a.value for a in held(executed(text), "y")} == {1, 2}  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("word", "expression"),
    [
        ("__neg__", "-A()"),
        ("__pos__", "+A()"),
        ("__invert__", "~A()"),
        ("__lt__", "A() < 1"),
        ("__ge__", "A() >= 1"),
        ("__eq__", "A() == 1"),
        ("__contains__", "1 in A()"),
    ],
)
def test_operators_call_the_methods_of_the_program(word: str, expression: str) -> None:
    text = f"class A:\n    def {word}(self, other=0):\n        return True\nresult = {expression}"
    assert constant(executed(text), "result") is True
    with pytest.raises(LookupError):
        constant(executed(text.replace(word, "method")), "result")


def test_what_turns_the_answer_round_is_not_the_answer() -> None:
    for word, expression in (("__eq__", "A() != 1"), ("__contains__", "1 not in A()")):
        text = f"class A:\n    def {word}(self, x):\n        print()\n        return True\ny = {expression}"
        ex = executed(text)
        assert lines(ex, "print") == [3]
        with pytest.raises(LookupError):
            constant(ex, "y")
    text = "class A:\n    def __ne__(self, x):\n        return True\ny = A() != 1"
    assert constant(executed(text), "y") is True


def test_an_operator_in_place() -> None:
    text = "class A:\n    def __iadd__(self, x):\n        return x\na = A()\na += 3"
    assert constant(executed(text), "a") == 3
    other = "class A:\n    def __add__(self, x):\n        return x\na = A()\na += 3"
    assert constant(executed(other), "a") == 3
