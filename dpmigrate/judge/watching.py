"""The tables of the libraries, with what only the judge wants to know of a pass over a loader."""

from __future__ import annotations

import ast

from dpmigrate.execution.foreign import Arguments
from dpmigrate.execution.heap import Location, Object
from dpmigrate.execution.machine import Frame, Machine
from dpmigrate.execution.values import NOTHING, Atom, Ref, Value, const, join, value
from dpmigrate.library.tables import Tables

#: a field of a sampler: whether it was told which epoch comes, since its last pass began
TOLD = "judge told"
FRESH, SET, USED = const("fresh"), const("told"), const("used")


class Watching(Tables):
    """Notes before each pass whether the sampler was told the epoch."""

    def call(
        self, m: Machine, name: str, arguments: Arguments, node: ast.AST, frame: Frame
    ) -> Value | None:
        if name == "dpmigrate_runtime.next_epoch":
            for atom in arguments.get(0, "loader") or NOTHING:
                for at in samplers(m, atom):
                    m.heap.write(at, SET)
        return super().call(m, name, arguments, node, frame)

    def method(
        self,
        m: Machine,
        receiver: Atom,
        name: str,
        arguments: Arguments,
        node: ast.AST,
        frame: Frame,
    ) -> Value | None:
        made = m.object(receiver)
        if name == "set_epoch" and made is not None:
            m.heap.write((made.number, TOLD), SET)
        return super().method(m, receiver, name, arguments, node, frame)

    def _about(
        self, m: Machine, atom: Atom, name: str, node: ast.AST, frame: Frame
    ) -> Value | None:
        made = m.object(atom)
        if name == "begun" and made is not None and is_loader(m, made):
            told = join(*[m.heap.read(at) or FRESH for at in samplers(m, atom)])
            m.event("judge pass", node, frame, loader=value(Ref(made.number)), told=told)
            for at in samplers(m, atom):
                m.heap.write(at, USED)
        return super()._about(m, atom, name, node, frame)


def is_loader(m: Machine, made: Object) -> bool:
    """Whether an object is a DataLoader, or of a class of the program that derives from it."""
    return made.kind == "loader" or "loader" in m.kinds(made)  # type: ignore[attr-defined]


def samplers(m: Machine, atom: Atom) -> list[Location]:
    """Where it is noted of the samplers of a loader whether they were told the epoch."""
    made = m.object(atom)
    if made is None:
        return []
    held = m.heap.read((made.number, "sampler")) or NOTHING
    found = [o.number for o in m.objects(held)]
    return [(n, TOLD) for n in found or [made.number]]
