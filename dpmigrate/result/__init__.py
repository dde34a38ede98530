"""Checks of the migrated program, before it is written: what the result must not do, whatever rules
made it.

Each check is a function over ``Migrated`` that yields a ``Fault`` for each thing that is wrong.
They read the new program anew and know no rule and no edit, so that a fault of the analysis that
made the edits does not hide itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpmigrate.result.bound import unbound
from dpmigrate.result.collectives import torn_apart
from dpmigrate.result.epochs import same_order
from dpmigrate.result.loaders import no_loaders
from dpmigrate.result.migrated import Fault, Migrated
from dpmigrate.result.moved import moves
from dpmigrate.result.started import not_set_up, set_up_at_import, trained_apart, unguarded_saves

__all__ = ["CHECKS", "Fault", "Migrated", "faults"]

#: every check, the cheapest first
CHECKS = (
    unbound,
    no_loaders,
    moves,
    trained_apart,
    set_up_at_import,
    not_set_up,
    unguarded_saves,
    same_order,
    torn_apart,
)


def faults(m: Migrated) -> Iterator[Fault]:
    """What is wrong with the result, check by check."""
    for check in CHECKS:
        yield from check(m)
