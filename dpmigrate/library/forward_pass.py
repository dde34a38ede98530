"""The forward pass of a module or a wrapper: what runs, and to what its gradients come."""

from __future__ import annotations

from collections.abc import Callable

from dpmigrate.execution import placements
from dpmigrate.execution.joins import join
from dpmigrate.execution.machine import Machine
from dpmigrate.execution.objects import Object
from dpmigrate.execution.values import (
    NOTHING,
    UNBOUND,
    Atom,
    Bound,
    Data,
    Items,
    Ref,
    Value,
    const,
    value,
)
from dpmigrate.library.module_tree import is_module
from dpmigrate.library.sites import GRAD, Site

#: kinds of objects that hold data and are no part of a model
_HOLDING = ("list", "dict", "set", "instance", "opaque", "output")


def forward(site: Site, made: Object) -> None:
    """A module is called."""
    mode = site.m.heap.read((made.number, "mode training")) or const(True)
    grad = site.m.heap.read(GRAD) or const(True)
    more = {"given": site.flat(site.arguments.joined())} if made.kind == "wrapper" else {}
    site.event("forward", module=value(Ref(made.number)), training=mode, grad=grad, **more)


def own_method(site: Site, made: Object) -> Bound | None:
    """What the program's class of a module runs when it is called; None where the library's own
    is meant.
    """
    if made.kind != "instance" or site.base:
        return None
    return site.m.method_of(made, "forward") or site.m.method_of(made, "__call__")


def methods_run(site: Site, made: Object) -> Value:
    """What runs when a module of the program is called: a method that the object itself was given
    (``self.forward = self.forward_of_pairs``), or its class's; nothing where the library's own is
    meant.
    """
    method = own_method(site, made)
    of_class = value(method) if method is not None else NOTHING
    given = site.m.heap.read((made.number, "forward")) if not site.base else None
    if not given:
        return of_class
    own = Ref(made.number)
    if not all(isinstance(a, Bound) and a.receiver == own for a in given if a != UNBOUND):
        return site.unknown("what the object was given as its forward")
    return join(site.m.bound(given), of_class) if UNBOUND in given else given


def through(v: Value, made: Object, site: Site) -> Value:
    """Data that has passed through a wrapper; the trace says which parameters are in it."""
    inside: set[int] = set()

    def passed(d: Data) -> Data:
        if d.gradient == "none":
            return d
        inside.update(d.reached)
        return reaching(d, made.number)

    result = each_data(site.m, v, passed)
    given = value(Data("tensor", placements.UNIFORM, "whole", reached=frozenset(inside)))
    site.event("through", module=value(Ref(made.number)), given=given)
    return result


def reaching(d: Data, number: int) -> Data:
    """Data whose gradient comes to one more object."""
    return d._replace(reached=d.reached | {number})


def each_data(
    m: Machine, v: Value, change: Callable[[Data], Data], seen: set[int] | None = None
) -> Value:
    """A value with all its data changed, in place where lists, dictionaries and plain objects hold
    them: each of these once, however many hold it. ``seen`` are those that were changed already.
    """
    seen = set() if seen is None else seen
    found: list[Atom] = []
    m.heap.work += len(v)
    for a in v:
        made = m.object(a)
        if isinstance(a, Data):
            a = change(a)
        elif isinstance(a, Items):
            a = a._replace(items=tuple(each_data(m, i, change, seen) for i in a.items))
        elif made is not None and made.number not in seen and _plain(m, made):
            seen.add(made.number)
            for name, held in list(m.heap.peek(made.number)):
                if not (isinstance(name, str) and name.startswith("#")):
                    m.heap.write((made.number, name), each_data(m, held, change, seen))
        found.append(a)
    return tuple(found)


def _plain(m: Machine, made: Object) -> bool:
    """Whether an object is a container of the program's, and no part of a model."""
    return made.kind in _HOLDING and not is_module(m, made)
