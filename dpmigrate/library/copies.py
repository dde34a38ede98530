"""Copies of objects (https://docs.python.org/3/library/copy.html)."""

from __future__ import annotations

from dpmigrate.execution.values import NOTHING, Atom, Data, Items, Ref, Value, join, value
from dpmigrate.library.modules import is_module, owned
from dpmigrate.library.sites import Site


def copied(site: Site) -> Value:
    """``copy.deepcopy(x)``, ``copy.copy(x)``: another object of the same kind with the same fields; the
    deep copy of a module has layers and parameters of its own.
    """
    return copy_of(site, site.get(0) or NOTHING, deep=site.word != "copy")


def copy_of(site: Site, given: Value, *, deep: bool = True) -> Value:
    """Copies of what a value may be."""
    found: list[Value] = []
    for atom in given:
        made = site.m.object(atom)
        if made is None or made.kind in ("function", "class", "pymodule"):
            found.append((atom,))
            continue
        whole = deep and is_module(site.m, made)
        parts = owned(site.m, made.number) if whole else {made.number}
        new = {n: _like(site, n) for n in sorted(parts)}
        for number, other in new.items():
            for name, held in list(site.m.heap.names(number)):
                site.m.heap.put((other, name), _with_copies(site, held, new, 3))
        site.event("made", object=value(Ref(new[made.number])))
        found.append(value(Ref(new[made.number])))
    return join(*found)


def _like(site: Site, number: int) -> int:
    """A new object of the same kind."""
    old = site.m.heap.objects[number]
    new = site.m.heap.new(
        old.kind, old.name, site.node, site.frame.context, key=number, extra=old.extra
    )
    new.marks |= old.marks
    return new.number


def _with_copies(site: Site, held: Value, new: dict[int, int], depth: int) -> Value:
    """A value in which copies stand for what is copied, also in lists and dictionaries."""
    found: list[Atom] = []
    for atom in held:
        made = site.m.object(atom)
        if made is not None and made.number in new:
            found.append(Ref(new[made.number]))
        elif isinstance(atom, Items):
            found.append(Items(tuple(_with_copies(site, v, new, depth - 1) for v in atom.items)))
        elif isinstance(atom, Data) and not atom.reached.isdisjoint(new):
            found.append(atom._replace(reached=frozenset(new.get(n, n) for n in atom.reached)))
        elif made is not None and made.kind in ("list", "dict") and depth and len(new) > 1:
            other = _like(site, made.number)
            for name, inner in list(site.m.heap.names(made.number)):
                site.m.heap.write((other, name), _with_copies(site, inner, new, depth - 1))
            found.append(Ref(other))
        else:
            found.append(atom)
    return tuple(found)
