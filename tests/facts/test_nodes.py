"""The nodes of a tree, as the standard library gives them."""

from __future__ import annotations

import ast

import pytest

from dpmigrate.facts.nodes import children, walk
from tests.pipeline import FIXTURES

_TREES = {p.stem: ast.parse(p.read_text(encoding="utf-8")) for p in sorted((FIXTURES.parent / "dpmigrate" / "facts").glob("*.py"))[:40]}
_TREES |= {"every kind": ast.parse("match a:\n    case {'k': [1, *_], **rest} | P(x, y=None) if x:\n        lambda *a, k=1, **b: {**a, 1: [*b]}\n")}


@pytest.mark.parametrize("tree", _TREES.values(), ids=_TREES)
def test_walk_and_children_are_those_of_ast(tree: ast.Module) -> None:
    nodes = list(walk(tree))
    assert nodes == list(ast.walk(tree))
    assert all(children(n) == list(ast.iter_child_nodes(n)) for n in nodes)


def test_what_is_put_below_a_node_while_it_is_looked_at_is_not_seen() -> None:
    """As with ``ast.walk``: the children of a node are known when it is yielded."""
    for walking in (walk, ast.walk):
        tree = ast.parse("f(1)")
        seen = []
        for node in walking(tree):
            seen.append(type(node).__name__)
            if isinstance(node, ast.Call):
                node.args.append(ast.Constant(2))
        assert seen.count("Constant") == 1


def test_a_node_without_its_fields_has_no_children() -> None:
    bare = ast.Call.__new__(ast.Call)
    assert children(bare) == list(ast.iter_child_nodes(bare)) == []
