"""What a program holds that never ends, and calls that share a context."""

from __future__ import annotations

from dpmigrate.execution.values import const
from tests.execution.paper import executed, held


def test_what_a_loop_without_an_end_leaves_is_kept() -> None:
    text = "class C:\n    x = 1\ndef main():\n    c.x = 2\n    while True:\n        c.y = 3\nc = C()\nif __name__ == '__main__':\n    main()\n"
    found = executed(text)
    (made,) = found.objects(held(found, "c"))
    assert [found.heap.read((made.number, n)) for n in ("x", "y")] == [const(2), const(3)]


def test_a_context_that_calls_share_has_all_of_them() -> None:
    found = executed("def f():\n    print(1)\ndef g():\n    f()\ndef h():\n    f()\ng()\nh()\n")
    (event,) = found.trace.of("print")
    lines = {c.node.lineno for c in found.trace.leading(event.context) if c.node is not None and hasattr(c.node, "lineno")}
    first = event.node.lineno - 2  # type: ignore[attr-defined]
    assert {n - first for n in lines} == {4, 6, 7, 8}
