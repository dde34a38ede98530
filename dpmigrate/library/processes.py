"""Threads and processes that a program starts
(https://docs.python.org/3/library/concurrency.html).
"""

from __future__ import annotations

from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    Ref,
    Value,
    value,
)
from dpmigrate.library.effects import none, uniform
from dpmigrate.library.sites import Row, Site, methods

_DOC = "https://docs.python.org/3/library/concurrency.html"


def process_made(site: Site) -> Value:
    """``Thread(target=f)``, ``Process(target=f)``: runs nothing yet."""
    made = site.made("process")
    _told(site, made.number)
    return value(Ref(made.number))


def timer_made(site: Site) -> Value:
    """``Timer(seconds, f)``: a thread."""
    return site.ref("process", target=site.get(1, "function"), args=site.get(2, "args"))


def process_constructed(site: Site) -> Value:
    """``super().__init__(target=f)`` of a thread of the program."""
    if site.object is not None:
        _told(site, site.object.number)
    return NONE


def _told(site: Site, number: int) -> None:
    for name in ("target", "args"):
        given = site.arguments.keywords.get(name)
        if given:
            site.m.heap.write((number, name), given)


def process_started(site: Site) -> Value:
    """``thread.start()``: another process or thread runs a function, or the method ``run``."""
    made = site.object
    assert made is not None
    run = site.m.method_of(made, "run")
    target = value(run) if run else site.m.heap.read((made.number, "target"))
    site.event("process", target=target or NOTHING)
    if target:
        given = site.m.heap.read((made.number, "args")) if run is None else None
        listed = site.m.known_elements(given) if given else None
        star = given or NOTHING if listed is None else NOTHING
        site.m.call(target, Arguments(listed or [], star=star), site.node, site.frame)
    return NONE


ROWS = (
    Row("threading.Thread multiprocessing.Process torch.multiprocessing.Process", process_made,
        source=_DOC),
    Row("threading.Timer", timer_made, source=_DOC),
    Row("<process>.__init__", process_constructed, source=_DOC),
    Row("<process>.start", process_started, source=_DOC),
    Row(methods("process", "join terminate kill close cancel"), none, source=_DOC),
    Row(methods("process", "is_alive"), uniform, source=_DOC),
)  # fmt: skip
KINDS = {
    name: frozenset({"process"})
    for name in ("threading.Thread", "multiprocessing.Process", "torch.multiprocessing.Process")
}
