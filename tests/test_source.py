"""From the bytes of a file to its tree: what is read as something plainer."""

from __future__ import annotations

import ast

import pytest

from dpmigrate.source import Source, parse


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("from typing import cast\ny = cast(Tensor, net(x))", "y = net(x)"),
        ("from typing_extensions import cast as to\ny = to('Tensor', net(x)).mean()", "y = net(x).mean()"),
        ("import typing\ny = typing.cast(int, typing.cast(float, x))", "y = x"),
        ("import typing as t\ny = [t.cast(int, v) for v in x]", "y = [v for v in x]"),
        ("from typing import cast, Any\ndef cast(a, b):\n    return a\ny = cast(1, 2)", "y = cast(1, 2)"),
        ("from typing import cast\ncast = print\ny = cast(1, 2)", "y = cast(1, 2)"),
        ("import typing\nfrom tables import cast\ny = cast(1, 2)", "y = cast(1, 2)"),
        ("from typing import cast\ny = cast(typ=int, val=x)", "y = cast(typ=int, val=x)"),
        ("import typing\ny = frame.cast(int, x)", "y = frame.cast(int, x)"),
        ("import typing\ny = f(cast)(int, x)", "y = f(cast)(int, x)"),
    ],
)
def test_casts_of_typing_are_what_they_are_given(text: str, read: str) -> None:
    source = parse(text.encode(), "train.py")
    assert isinstance(source, Source)
    assert ast.unparse(source.tree.body[-1]) == read and source.text == text
