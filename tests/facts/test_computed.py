"""What of a computed name of a module the text says."""

from __future__ import annotations

import ast

import pytest

from dpmigrate.facts.computed import imports_by_name

ANY = r"\w+"


def words(text: str) -> list[tuple[str, ...]]:
    return [w for _, w in imports_by_name(ast.parse(text))]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("import_module()", id="no name"),
        pytest.param("import_module(args.model)", id="nothing is known"),
        pytest.param("import_module(name + '.net')", id="the beginning is not known"),
        pytest.param("import_module(f'{name}')", id="a template of a name alone"),
        pytest.param("import_module('m' + name)", id="one letter says nothing"),
        pytest.param("import_module('.' )", id="a package itself"),
        pytest.param("import_module(','.join(names))", id="a list that is not written out"),
        pytest.param("import_module(names[0].format(x))", id="a template that is not written out"),
        pytest.param("import_module('a'.upper())", id="another method of text"),
        pytest.param("def f(name):\n    import_module(name)", id="a parameter"),
        pytest.param("for name in names:\n    import_module(name)", id="of a loop"),
        pytest.param("name = 'a'\nname = 'b'\nimport_module(name)", id="given two values"),
        pytest.param("load('models.net')", id="another function"),
        pytest.param("T = {'a': 'models.a', **more}\nimport_module(T[name])", id="a table with another one in it"),
        pytest.param("T = {'a': 'models.a', 'b': f()}\nimport_module(T[name])", id="a table with a value that is not known"),
        pytest.param("T = {'a': 'models.a'}\nimport_module(T.get(name, other))", id="a table, or another name"),
        pytest.param("import_module('models.a' if x else name)", id="one of two that is not known"),
    ],
)
def test_nothing_is_known(text: str) -> None:
    assert words(text) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param("importlib.import_module('models.net')", ("models", "net"), id="a literal"),
        pytest.param("import_module('net')", ("net",), id="one word"),
        pytest.param("__import__('models.' + name, fromlist=['x'])", ("models", ANY), id="added"),
        pytest.param("import_module(f'models.{name}')", ("models", ANY), id="a template"),
        pytest.param("import_module(f'models.{name}_net')", ("models", rf"{ANY}_net"), id="something after it"),
        pytest.param("import_module('models.%s' % name)", ("models", ANY), id="percent"),
        pytest.param("import_module('models.{}'.format(name))", ("models", ANY), id="format"),
        pytest.param("import_module('models.{kind}.net'.format(kind=k))", ("models", ANY, "net"), id="in the middle"),
        pytest.param("import_module('.'.join(['models', name]))", ("models", ANY), id="join"),
        pytest.param("path = 'models.' + name\nimport_module(path)", ("models", ANY), id="through a variable"),
        pytest.param("import_module('.' + name, package='models')", ("models", ANY), id="a package by keyword"),
        pytest.param("import_module('.' + name, 'models')", ("models", ANY), id="a package by position"),
        pytest.param("import_module('.' + name, __package__)", ("", ANY), id="of its own package"),
        pytest.param("import_module('model_' + name)", (rf"model_{ANY}",), id="a beginning of a word"),
    ],
)
def test_what_is_known(text: str, found: tuple[str, ...]) -> None:
    assert words(text) == [found]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("T = {'x': 'models.a', 'y': 'nets.b'}\nimport_module(T[name])", id="a table"),
        pytest.param("T = {'x': 'models.a', 'y': 'nets.b'}\npath = T.get(name)\nimport_module(path)", id="asked, through a variable"),
        pytest.param("import_module({'x': 'models.a', 'y': 'nets.b'}[name])", id="at once"),
        pytest.param("import_module('models.a' if name else 'nets.b')", id="one of two"),
    ],
)
def test_one_of_several(text: str) -> None:
    assert words(text) == [("models", "a"), ("nets", "b")]
