"""DPM208: the order of a set is that of rank 0."""

from __future__ import annotations

import pytest

from tests.rules.program import after, found

_LABELS = "labels = ['b', 'a', 'b']"


@pytest.mark.parametrize(
    "setup",
    [
        pytest.param("c = sorted(set(labels))", id="sorted"),
        pytest.param("c = sorted(list(set(labels)))", id="a list that is sorted"),
        pytest.param("n = len(list(set(labels)))", id="counted"),
        pytest.param("c = list(labels)", id="a list"),
        pytest.param("c = list()", id="empty"),
        pytest.param("c = set(labels)\nprint('a' in c)", id="asked only"),
        pytest.param("c = set(labels)\nc |= {'z'}\nc = labels\nd = list(c)", id="a name that is also something else"),
        pytest.param("print('list(set(labels))')  # list(set(labels))", id="in a string and a comment"),
        pytest.param("import lib\nc = lib.list(set(labels))", id="another library's list"),
        pytest.param("import numpy as np\nnp.save('a', list(set(labels)))", id="only rank 0 runs it"),
        pytest.param("for i in range(3):\n    pass\nc = [x for x in labels]", id="other loops"),
    ],
)
def test_nothing_to_say(setup: str) -> None:
    assert found("DPM208", setup=f"{_LABELS}\n{setup}") == []


@pytest.mark.parametrize(
    "defs",
    [
        pytest.param("class D:\n    def names(self, y):\n        return list(set(y))", id="a method"),
        pytest.param("def collate(batch):\n    return list(set(batch))", id="a function that only a loader calls"),
    ],
)
def test_where_ranks_do_not_go_together(defs: str) -> None:
    assert found("DPM208", defs=defs) == []


def test_inside_training() -> None:
    assert found("DPM208", step="k = list(set(y))\noptimizer.zero_grad()\nloss = F.cross_entropy(model(x), y)\nloss.backward()\noptimizer.step()") == []


@pytest.mark.parametrize(
    ("line", "pointed", "new"),
    [
        pytest.param("c = list(set(labels))", "list(set(labels))", "c = ddp.from_main(list(set(labels)))", id="list"),
        pytest.param("c = tuple({'a', 'b'})", "tuple({'a', 'b'})", "c = ddp.from_main(tuple({'a', 'b'}))", id="display"),
        pytest.param("c = list({x for x in labels})", "list({x for x in labels})", "c = ddp.from_main(list({x for x in labels}))", id="comprehension"),
        pytest.param("c = list(frozenset(labels))", "list(frozenset(labels))", "c = ddp.from_main(list(frozenset(labels)))", id="frozenset"),
        pytest.param("v = set(labels)\nc = list(v)", "list(v)", "c = ddp.from_main(list(v))", id="through a name"),
        pytest.param(
            "v = set(labels)\nc = {w: i for i, w in enumerate(v)}", "enumerate(v)", "c = {w: i for i, w in enumerate(ddp.from_main(list(v)))}", id="a vocabulary",
        ),
        pytest.param("c = {}\nfor w in set(labels):\n    c[w] = len(c)", "set(labels)", "for w in ddp.from_main(list(set(labels))):", id="loop"),
        pytest.param("c = [w for w in set(labels)]", "[w for w in set(labels)]", "c = [w for w in ddp.from_main(list(set(labels)))]", id="list comprehension"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("module_level", [False, True], ids=["function", "module"])
def test_found_and_fixed(line: str, pointed: str, new: str, module_level: bool) -> None:
    parts: dict[str, str | bool] = {"setup": f"{_LABELS}\n{line}", "module_level": module_level}
    assert found("DPM208", **parts) == [pointed]
    assert after(**parts) == [new]


def test_in_a_function_that_the_program_calls() -> None:
    assert after(defs="def names(y):\n    return list(set(y))", setup="c = names(['a'])") == ["return ddp.from_main(list(set(y)))"]
