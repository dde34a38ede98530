"""What is checked on the new text before it may be written. Each check says in sentences what is wrong; silence is consent."""

from __future__ import annotations

import ast
import warnings
from collections import Counter

from dpmigrate.rewrite.apply import Refused, apply
from dpmigrate.rewrite.compose import Plan
from dpmigrate.rewrite.confined import strayed
from dpmigrate.rewrite.guards import guarded_collectives


def verify(before: str, after: str, plan: Plan) -> tuple[str, ...]:
    """Everything that is wrong with ``after`` as the result of ``plan`` on ``before``."""
    broken = _does_not_compile(after)
    if broken:
        return broken
    return (
        *_warns(before, after),
        *_does_not_reproduce(after),
        *strayed(before, after, plan),
        *guarded_collectives(ast.parse(after)),
    )


def _does_not_compile(after: str) -> tuple[str, ...]:
    try:
        _warnings(after)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return (f"the result does not compile: {error}",)
    return ()


def _warns(before: str, after: str) -> tuple[str, ...]:
    new = _warnings(after)
    raised = new - _warnings(before) if new else new
    return tuple(f"the result brings in a warning: {message}" for message in raised)


def _warnings(text: str) -> Counter[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        compile(text, "<result>", "exec", dont_inherit=True)
    return Counter(str(one.message) for one in caught)


def _does_not_reproduce(after: str) -> tuple[str, ...]:
    try:
        apply(after, Plan(()))
    except Refused as error:
        return (f"the result could not be rewritten again: {error}",)
    return ()
