"""The closed set of edits. An edit is frozen data on a node of the *original* source; ``rewrite`` knows how to carry it out.

Every ``Span`` names the exact span that ``ast`` gives for the node (``lineno, col_offset, end_lineno, end_col_offset``). Code
strings are Python source without indentation; ``{}`` in a template stands for the (already edited) node.
"""

from __future__ import annotations

from dataclasses import dataclass

from dpmigrate.model import Span


@dataclass(frozen=True, slots=True)
class SetArg:
    """Give the call at ``call`` the keyword argument ``name=value``.

    An argument already there (keyword, or the positional at ``index``) is replaced.
    """

    call: Span
    name: str
    value: str
    index: int | None = None


@dataclass(frozen=True, slots=True)
class DropArg:
    """Remove the keyword argument ``name`` of the call, or the positional one at ``index``.

    Positionals after it become keywords by ``following`` (their names in order). Refused where the argument is absent.
    """

    call: Span
    name: str
    index: int | None = None
    following: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SetItem:
    """Give the dict display at ``dict`` the item ``key: value`` (``key`` is the string's value); replaced where the key is there."""

    dict: Span
    key: str
    value: str


@dataclass(frozen=True, slots=True)
class DropItem:
    """Remove the item with the string key ``key`` of the dict display at ``dict``."""

    dict: Span
    key: str


@dataclass(frozen=True, slots=True)
class Replace:
    """Put the expression ``code`` in the place of the expression at ``node``."""

    node: Span
    code: str


@dataclass(frozen=True, slots=True)
class Wrap:
    """Put the expression at ``node`` into ``template`` (``ddp.local_batch({})``, ``{}.module``)."""

    node: Span
    template: str


@dataclass(frozen=True, slots=True)
class MainOnly:
    """Turn the call ``f(args)`` at ``call`` into ``prefix(f, args)``."""

    call: Span
    prefix: str


@dataclass(frozen=True, slots=True)
class Hoist:
    """Move the expression at ``node`` into ``name = expression`` before the simple statement (or the head of a ``for``) that holds it, leaving ``name``.

    ``then`` are statements that follow the assignment; under a ``header`` (``with …:``) stand both, and a ``Wrap`` of the same node goes round the name that
    is left. Refused outside a simple statement and through a lambda or comprehension.
    """

    node: Span
    name: str
    then: str = ""
    header: str = ""


@dataclass(frozen=True, slots=True)
class Before:
    """Insert the statements ``code`` before the statement at ``stmt``, at its indentation."""

    stmt: Span
    code: str


@dataclass(frozen=True, slots=True)
class After:
    """Insert the statements ``code`` after the statement at ``stmt``, at its indentation."""

    stmt: Span
    code: str


@dataclass(frozen=True, slots=True)
class Comment:
    """Put the comment ``lines`` (each ``# …``) directly above the statement at ``stmt``, below what else is inserted there."""

    stmt: Span
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class First:
    """Insert ``code`` as first statement of the body of the ``def``, ``for``, ``while``, ``with`` or ``if`` at ``stmt`` (after a docstring)."""

    stmt: Span
    code: str


@dataclass(frozen=True, slots=True)
class Enclose:
    """Put the sibling statements from ``first`` to ``last`` under ``header`` (``if ddp.is_main():``). Neighbours with one header merge.

    ``Before`` on ``first`` and ``After`` on ``last`` stand outside the header; hoisted statements stand inside.
    """

    first: Span
    last: Span
    header: str


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove the statement at ``stmt``. A block left empty takes its ``if`` (without ``else``) with it, otherwise it gets ``pass``."""

    stmt: Span


@dataclass(frozen=True, slots=True)
class AddImport:
    """Add the import statement ``code`` to the end of the module's import block, unless it is there."""

    code: str


Edit = SetArg | DropArg | SetItem | DropItem | Replace | Wrap | MainOnly | Hoist | Before | After | Comment | First | Enclose | Delete | AddImport
