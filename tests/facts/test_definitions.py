"""What functions and classes say about themselves."""

from __future__ import annotations

import ast

import pytest

from dpmigrate.facts.definitions import Definitions, arguments, default, is_static, parameters
from tests.facts.probe import probed
from tests.pipeline import script


def _functions(text: str) -> dict[str, ast.FunctionDef]:
    return {n.name: n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef)}


def test_bases_and_family() -> None:
    names = script("class A: pass\nclass B(A): pass\nclass C(B, A, Elsewhere, x.y): pass\nclass D: pass\n").names
    defs = Definitions(names)
    a, b, c, d = (n for n in names.tree.body if isinstance(n, ast.ClassDef))
    assert defs.bases(c) == [c, b, a]
    assert defs.family(a) == [a, b, c] and defs.family(d) == [d]


def test_methods() -> None:
    names = script("class A:\n    def f(self): pass\nclass B(A):\n    x = 3\n    def g(self): pass\ndef h(): pass\n").names
    defs = Definitions(names)
    a, b, h = names.tree.body
    assert isinstance(a, ast.ClassDef) and isinstance(b, ast.ClassDef)
    found = defs.method(b, "f")
    assert found is a.body[0] and defs.method_class(found) is a
    assert defs.method(b, "h") is None and defs.method_class(h) is None


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        pytest.param("class A: pass", False, id="a plain class"),
        pytest.param("import torch.nn as nn\nclass A(nn.Module): pass", True, id="a module"),
        pytest.param("from torch import nn\nclass A(nn.Sequential): pass", True, id="a container"),
        pytest.param("from torch import nn\nclass B(nn.Module): pass\nclass A(B): pass", True, id="by its base"),
        pytest.param("from models import BaseNet\nclass A(BaseNet): pass", True, id="by the name of a base of another file"),
        pytest.param("class A(Dataset): pass", False, id="a data set"),
    ],
)
def test_module_classes(text: str, answer: bool) -> None:
    names = script(text).names
    cls = next(n for n in names.tree.body if isinstance(n, ast.ClassDef) and n.name == "A")
    assert Definitions(names).is_module_class(cls) is answer


@pytest.mark.parametrize(
    ("body", "value", "answer"),
    [
        pytest.param("pass", "m", "m", id="as it came"),
        pytest.param("pass", "m.cuda().eval()", "m", id="moved"),
        pytest.param("m = m.to(d)", "m", "m", id="moved before"),
        pytest.param("pass", "m.cuda() if k else m", "m", id="moved under a test"),
        pytest.param("m = m.to(d) if k else m", "m", "m", id="moved before, under a test"),
        pytest.param("pass", "m if k else k", None, id="one of two"),
        pytest.param("pass", "m if k else 3", None, id="or something else"),
        pytest.param("m = m.to(d) if k else 3", "m", None, id="or something else before"),
        pytest.param("pass", "k", "k", id="a keyword-only one"),
        pytest.param("pass", "rest", None, id="star arguments"),
        pytest.param("m = other(m)", "m", None, id="replaced"),
        pytest.param("m, k = k, m", "m", None, id="swapped"),
        pytest.param("m += 1", "m", None, id="added to"),
        pytest.param("x = m", "x", None, id="by another name"),
        pytest.param("pass", "m.a", None, id="a part"),
        pytest.param("pass", "m.fit()", None, id="what a method gives"),
        pytest.param("pass", "[m]", None, id="in a list"),
    ],
)
def test_what_is_handed_back(body: str, value: str, answer: str | None) -> None:
    names = script(f"def f(m, *rest, k=1):\n    {body}\n    return {value}\n").names
    function = names.tree.body[0]
    assert isinstance(function, ast.FunctionDef) and isinstance(function.body[-1], ast.Return) and function.body[-1].value is not None
    assert Definitions(names).handed_back(function, function.body[-1].value) == answer


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        pytest.param("probe(None)", (), id="nothing to iterate"),
        pytest.param("probe(x)", (), id="from nowhere"),
        pytest.param("probe(['a', 'b'])", ("a", "b"), id="a list"),
        pytest.param("probe(('a', b))", (), id="not all literal"),
        pytest.param("probe({'a': 1, 2: 3})", ("a", 2), id="a dict"),
        pytest.param("probe({'a': 1, **b})", (), id="a dict with another in it"),
        pytest.param("d = {'a': 1}\nprobe(d.items())", ("a",), id="items"),
        pytest.param("d = {'a': 1}\nprobe(d.values())", (), id="values"),
        pytest.param("d = ['a']\nprobe(d)", ("a",), id="by a name"),
        pytest.param("d = ['a']\nd = ['b']\nprobe(d)", (), id="by a name with two values"),
        pytest.param("d, e = ['a'], 1\nprobe(d)", (), id="by a name in a tuple"),
        pytest.param("for d in ['a']: probe(d)", (), id="by a name that is an element"),
        pytest.param("probe({k: 1 for k in ['a']})", ("a",), id="a comprehension"),
        pytest.param("d = {'a': 1}\nprobe({k: v for k, v in d.items()})", ("a",), id="a comprehension over items"),
        pytest.param("probe({k: 1 for k in ['a'] if k})", (), id="with a test"),
        pytest.param("probe({k: 1 for k in ['a'] for j in k})", (), id="of two loops"),
        pytest.param("probe({k + 'x': 1 for k in ['a']})", (), id="of other keys"),
        pytest.param("probe({k: 1 for x.y in ['a']})", (), id="over an attribute"),
        pytest.param("a = b\nb = a\nprobe(a)", (), id="names that mean each other"),
    ],
)
def test_literal_keys(text: str, keys: tuple[object, ...]) -> None:
    found, node = probed(text)
    assert Definitions(found.names).keys(node) == keys


def test_parameters_and_defaults() -> None:
    f = _functions("def f(a, /, b, c=3, *d, e, g=4, **h): pass")["f"]
    assert parameters(f) == ["a", "b", "c", "e", "g"]
    every = {p.arg: p for p in [*f.args.posonlyargs, *f.args.args, *f.args.kwonlyargs]}
    given = {name: default(f.args, p) for name, p in every.items()}
    assert {k: v and ast.unparse(v) for k, v in given.items()} == {"a": None, "b": None, "c": "3", "e": None, "g": "4"}
    assert f.args.vararg is not None and default(f.args, f.args.vararg) is None


def test_static_methods() -> None:
    found = _functions("class C:\n    @staticmethod\n    def f(): pass\n    @other\n    def g(self): pass")
    assert is_static(found["f"]) and not is_static(found["g"])


@pytest.mark.parametrize(
    ("call", "skip", "expected"),
    [
        pytest.param("f()", 0, [], id="none"),
        pytest.param("f(1, 2, 3)", 0, [("a", "1"), ("b", "2")], id="more than there are"),
        pytest.param("f(1)", 1, [("b", "1")], id="the first is bound"),
        pytest.param("f(b=1, k=2, z=3)", 0, [("b", "1"), ("k", "2")], id="by keyword"),
        pytest.param("f(1, *x, k=2)", 0, [("a", "1"), ("k", "2")], id="up to a star"),
        pytest.param("f(**x)", 0, [], id="two stars"),
    ],
)
def test_arguments(call: str, skip: int, expected: list[tuple[str, str]]) -> None:
    f = _functions("def f(a, b, *, k=1): pass")["f"]
    made = ast.parse(call, mode="eval").body
    assert isinstance(made, ast.Call)
    assert [(name, ast.unparse(e)) for name, e in arguments(made, f, skip)] == expected


@pytest.mark.parametrize(
    ("made", "methods", "answer"),
    [
        pytest.param("self.ema = copy.deepcopy(model)", "", True, id="a copy"),
        pytest.param("self.ema = copy.deepcopy(model).eval()", "    def set(self, other):\n        self.update(other)", True, id="a copy that is moved on"),
        pytest.param("self.ema = model", "", False, id="the model itself"),
        pytest.param("self.ema = copy.deepcopy(self.other)", "", False, id="a copy of something else"),
        pytest.param("self.ema = copy.deepcopy(model)", "    def forward(self, x):\n        return self.ema(x)", False, id="a model with a forward"),
        pytest.param("self.ema = copy.deepcopy(model)", "    def loss(self, x):\n        return self.ema(x).mean()", False, id="a model that runs its copy"),
    ],
)
def test_a_module_that_only_holds_a_copy_of_a_model(made: str, methods: str, answer: bool) -> None:
    head = f"import copy\nimport torch.nn as nn\nclass A(nn.Module):\n    def __init__(self, model):\n        super().__init__()\n        {made}\n"
    names = script(f"{head}    def update(self, model):\n        self.ema.load_state_dict(model.state_dict())\n{methods}\n").names
    (cls,) = (n for n in names.tree.body if isinstance(n, ast.ClassDef))
    assert Definitions(names).holds_models(cls) is answer
