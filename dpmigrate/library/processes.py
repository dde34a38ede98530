"""Threads and processes that a program starts
(https://docs.python.org/3/library/concurrency.html).
"""

from __future__ import annotations

from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    Bound,
    Foreign,
    Method,
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


def handed_in(site: Site) -> Value:
    """``pool.submit(f, x)``: a thread or process of the pool calls it; what it gives comes later."""
    return site.ref("future", result=_called(site, 0))


def handed_to_loop(site: Site) -> Value:
    """``await loop.run_in_executor(pool, f, x)``."""
    return _called(site, 1)


def called_by_thread(site: Site) -> Value:
    """``await asyncio.to_thread(f, x)``."""
    return _called(site, 0)


def applied(site: Site) -> Value:
    """``pool.apply_async(f, (x, y))``."""
    given = site.arguments
    listed = site.m.known_elements(given.get(1, "args") or NOTHING)
    function = given.get(0, "func") or NOTHING
    if listed is None or not _is_function(site, function):
        return site.m.unknown_call(site.name, given, site.node, site.frame)
    return site.ref("future", result=site.m.call(function, Arguments(listed), site.node, site.frame))


def _called(site: Site, place: int) -> Value:
    given = site.arguments
    function = given.get(place) or NOTHING
    if not _is_function(site, function):  # a method of that name, of something else
        return site.m.unknown_call(site.name, given, site.node, site.frame)
    rest = Arguments(given.positional[place + 1 :], given.keywords, given.star, given.stars)
    return site.m.call(function, rest, site.node, site.frame)


def _is_function(site: Site, v: Value) -> bool:
    made = [site.m.object(a) for a in v]
    return bool(v) and all(
        isinstance(a, Bound | Foreign | Method) or (o is not None and o.kind in ("function", "partial"))
        for a, o in zip(v, made, strict=True)
    )


def result_of(site: Site) -> Value:
    """``future.result()``."""
    assert site.object is not None
    return site.m.heap.read((site.object.number, "result")) or NONE


ROWS = (
    Row("threading.Thread multiprocessing.Process torch.multiprocessing.Process", process_made,
        source=_DOC),
    Row("threading.Timer", timer_made, source=_DOC),
    Row("<process>.__init__", process_constructed, source=_DOC),
    Row("<process>.start", process_started, source=_DOC),
    Row(methods("process", "join terminate kill close cancel"), none, source=_DOC),
    Row(methods("process", "is_alive"), uniform, source=_DOC),
    Row("<opaque>.submit", handed_in, source=_DOC),
    Row("<opaque>.apply_async", applied, source=_DOC),
    Row("<opaque>.run_in_executor", handed_to_loop, source=_DOC),
    Row("asyncio.to_thread", called_by_thread, source=_DOC),
    Row(methods("future", "result get"), result_of, source=_DOC),
    Row(methods("future", "done ready running cancelled"), uniform, source=_DOC),
    Row(methods("future", "wait cancel add_done_callback"), none, source=_DOC),
)  # fmt: skip
KINDS = {
    name: frozenset({"process"})
    for name in ("threading.Thread", "multiprocessing.Process", "torch.multiprocessing.Process")
}
