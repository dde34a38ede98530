"""Samples that a ``collate_fn`` cuts to the smallest of its batch: each rank cuts its part of the
batch to a size of its own, and the model is given less of a sample than on one process, or more.
"""

from __future__ import annotations

from dpmigrate.execution import placements
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.values import Data, Origin, Value, data, origins
from dpmigrate.library.collating import assembled
from dpmigrate.library.sites import Site

#: the event of a sample that is cut, with the loader of the batch
CUT = "cut to the smallest"
_LEAST = "the least of a batch"


def least(site: Site, made: Value) -> Value:
    """The least of some numbers (``min(len(x) for x in samples)``): noted where a batch is put together."""
    if not assembled(site.m):
        return made
    return tuple(
        a._replace(origin=Origin(site.node, _LEAST, a.origin))
        if isinstance(a, Data) and a.placement.kind in (Kind.PARTIAL, Kind.PER_RANK)
        else a
        for a in made
    )


def note_bounds(site: Site, bounds: Value) -> None:
    """Note a slice of a sample that begins or ends at such a number."""
    loader = assembled(site.m)
    for d in data(bounds) if loader else ():
        if d.placement == placements.MIN or any(o.word == _LEAST for o in origins(d.origin)):
            site.event(CUT, loader=loader)
