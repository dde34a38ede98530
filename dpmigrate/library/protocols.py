"""What statements ask of code outside of the program: loops, ``with``, unpacking."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, cast

from dpmigrate.execution import placements
from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.machine import Frame, Machine
from dpmigrate.execution.objects import Object
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.values import (
    RESULTS,
    SETTING,
    Atom,
    Const,
    Data,
    Foreign,
    Method,
    Ref,
    Value,
    atom_placement,
    value,
)
from dpmigrate.library import (
    iterators,
    module_lists,
)
from dpmigrate.library.pure import ANY
from dpmigrate.library.registry import (
    OF_KIND,
)
from dpmigrate.library.sites import Site
from dpmigrate.library.unpacking import lengthened, opening, unpacked

if TYPE_CHECKING:
    from dpmigrate.execution.engine import Execution


def site_of(
    m: Machine, name: str, arguments: Arguments, node: ast.AST, frame: Frame,
    receiver: Atom | None = None,
) -> Site:  # fmt: skip
    """The site of a call, for the rows of the tables."""
    return Site(cast("Execution", m), name, arguments, node, frame, receiver)


class Protocols:
    """Python's protocols, as the tables have them: iterators and context managers."""

    def _kinds(self, m: Machine, receiver: Atom) -> list[str]:
        """What a receiver is, the most special first."""
        match receiver:
            case Ref():
                made = m.heap.objects[receiver.object]
                return [*sorted(m.kinds(made) - {made.kind}), made.kind]
            case Data():
                return [receiver.kind]
            case Const():
                return [receiver.type]
            case Method():
                inner = self._kinds(m, receiver.receiver)
                return [k for k in inner if k == ANY] or ["setting"]
        return ["setting"]

    def begun(self, m: Machine, iterable: Value, node: ast.AST, frame: Frame) -> None:
        for atom in self._sources(m, iterable):
            self._about(m, atom, "begun", node, frame)

    def unpacked(
        self, m: Machine, new: Value, count: int, star: int | None, node: ast.AST, frame: Frame
    ) -> list[Value] | None:
        return unpacked(site_of(m, ".shape", Arguments(), node, frame), new, count, star)

    def opening(self, m: Machine, v: Value, node: ast.AST, frame: Frame) -> list[Value]:
        return opening(site_of(m, ".shape", Arguments(), node, frame), v)

    def lengthened(self, m: Machine, first: list[Value], rest: Value, node: ast.AST, frame: Frame) -> Value:
        return lengthened(site_of(m, ".shape", Arguments(), node, frame), first, rest)

    def _sources(self, m: Machine, iterable: Value) -> list[Atom]:
        """What a loop goes over, behind progress bars, ``enumerate`` and ``zip``, each once: a bar
        that is given to its own variable (``loader = tqdm(loader)``) may be a source of itself.
        """
        found: dict[Atom, None] = {}
        ahead = list(reversed(iterable))
        while ahead:
            atom = ahead.pop()
            made = m.object(atom)
            if made is None or (made.kind == "iterator" and made.name not in iterators.LATER):
                continue  # it has begun its sources when it was made
            if atom in found:
                continue
            found[atom] = None
            if made.kind in ("iterator", "bar") and isinstance(made.extra, int):
                held = (m.heap.read((made.number, f"source {i}")) or () for i in range(made.extra))
                ahead += reversed([a for v in held for a in v])
        return list(found)

    def draws(self, m: Machine, v: Value) -> bool:
        execution = cast("Execution", m)
        found = m.objects(v)
        found += [
            o
            for made in found
            if made.kind in ("iterator", "bar", "list", "dict")
            for o in m.objects(execution.contents(made))
        ]
        return any("loader" in execution.kinds(o) for o in found)

    def elements(self, m: Machine, atom: Atom, node: ast.AST, frame: Frame) -> Value | None:
        plain = isinstance(atom, Data) and atom.kind in ("number", "text")
        if plain and atom_placement(atom).kind in (Kind.PER_RANK, Kind.UNKNOWN):
            return value(atom)  # whatever it is, its parts differ, or are not known for the same reason
        if plain and atom_placement(atom).padded:
            return value(atom)  # sizes, of which one is that of a rank's longest sample
        if isinstance(atom, Data) and atom.kind == RESULTS:
            if atom.placement.kind in placements.EQUAL:
                return value(atom)
            site = site_of(m, ".__iter__", Arguments(), node, frame, atom)
            return site.unknown("whether samples are gone through, or results of a network")
        return self._about(m, atom, "__iter__", node, frame)

    def each(self, m: Machine, made: Object) -> list[Value] | None:
        if "container" in self._kinds(m, Ref(made.number)):
            return module_lists.each(m, made)
        return None

    def entered(self, m: Machine, atom: Atom, node: ast.AST, frame: Frame) -> Value | None:
        return self._about(m, atom, "__enter__", node, frame)

    def left(self, m: Machine, atom: Atom, node: ast.AST, frame: Frame) -> None:
        self._about(m, atom, "__exit__", node, frame)

    def _about(
        self, m: Machine, atom: Atom, name: str, node: ast.AST, frame: Frame
    ) -> Value | None:
        site = site_of(m, f".{name}", Arguments(), node, frame, atom)
        for kind in self._kinds(m, atom):
            row = OF_KIND.get((kind, name))
            if row is not None:
                return row.effect(site)
        if isinstance(atom, Foreign) and name == "__iter__":
            return SETTING
        return None
