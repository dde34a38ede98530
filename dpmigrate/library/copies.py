"""Copies of objects (https://docs.python.org/3/library/copy.html)."""

from __future__ import annotations

from dpmigrate.execution import counting
from dpmigrate.execution.identity import NOWHERE
from dpmigrate.execution.joins import join
from dpmigrate.execution.objects import Object
from dpmigrate.execution.values import NOTHING, Atom, Data, Items, Ref, Value, atoms, value
from dpmigrate.library.module_tree import is_module, owned
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
        if isinstance(atom, Data | Items):
            found.append(_with_copies((atom,), {}))
            continue
        if made is None or made.kind in ("function", "class", "pymodule"):
            found.append((atom,))
            continue
        parts = _parts(site, made) if deep else [made.number]
        held = {n: list(site.m.heap.names(n)) for n in parts}  # a copy may stand in their place
        new = {n: _like(site, n) for n in parts}
        for number, fields in held.items():
            for name, v in fields:
                site.m.heap.put((new[number], name), _with_copies(v, new) if deep else v)
        site.event("made", object=value(Ref(new[made.number])))
        found.append(value(Ref(new[made.number])))
    return join(*found)


#: objects of which a deep copy has copies
_COPIED = ("list", "dict", "set", "namespace")


def _parts(site: Site, made: Object) -> list[int]:
    """What a deep copy copies: modules with all that they own, containers, objects of the program."""
    found: dict[int, None] = {}
    waiting = [made.number]
    while waiting:
        number = waiting.pop(0)
        one = site.m.heap.objects[number]
        if number in found:
            continue
        found[number] = None
        if is_module(site.m, one):
            waiting += sorted(owned(site.m, number) - found.keys())
        inside = [v for _, v in site.m.heap.names(number)]
        waiting += [o.number for v in inside for a in atoms(v) if (o := site.m.object(a)) and _follows(site, o)]
    return list(found)


def _follows(site: Site, made: Object) -> bool:
    plain = made.kind == "instance" and not site.m.kinds(made) - {"instance"}
    return plain or made.kind in _COPIED or is_module(site.m, made)


def _like(site: Site, number: int) -> int:
    """A new object of the same kind: where a turn of a loop copies what an earlier one has made here,
    the same one is made once more, else there were ever more.
    """
    old = site.m.heap.objects[number]
    root = old.root if old.root and old.node is site.node else number
    new = site.m.heap.new(
        old.kind, old.name, site.node, site.frame.context, key=("copy", root), extra=old.extra
    )
    new.root = root
    new.marks |= old.marks
    for _, name in [at for at in site.m.heap.noted if at[0] == number]:
        site.m.heap.noted.setdefault((new.number, name), {})
    if number in site.m.counted:
        counting.told(site.m, new, site.m.counted[number])
    return new.number


def _with_copies(held: Value, new: dict[int, int]) -> Value:
    """A value in which copies stand for what is copied."""
    found: list[Atom] = []
    for atom in held:
        if isinstance(atom, Ref) and atom.object in new:
            found.append(Ref(new[atom.object]))
        elif isinstance(atom, Items):
            found.append(Items(tuple(_with_copies(v, new) for v in atom.items)))
        elif isinstance(atom, Data):
            reached = frozenset(new.get(n, n) for n in atom.reached)
            found.append(atom._replace(reached=reached, held=NOWHERE))
        else:
            found.append(atom)
    return tuple(found)
