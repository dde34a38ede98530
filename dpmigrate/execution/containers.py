"""Lists, dictionaries, sets and tuples: what they hold, and iteration."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from dpmigrate.execution import divergence, identity, placements
from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.attribute_assignment import AttributeStoreParts
from dpmigrate.execution.derivation import of_others
from dpmigrate.execution.joins import join
from dpmigrate.execution.machine import Frame
from dpmigrate.execution.objects import ELEMENTS, KEYS, LENGTH, ORDER, Object, not_known
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.trace import Parting
from dpmigrate.execution.values import (
    NOTHING,
    OTHERS,
    SETTING,
    UNBOUND,
    Atom,
    Const,
    Differs,
    Items,
    Method,
    Origin,
    Ref,
    Setting,
    Unknown,
    Value,
    atom_placement,
    atoms,
    only,
    placement_of,
    unknown,
    value,
)

#: the field that holds what a defaultdict makes
FACTORY = "#factory"
#: the field of an iterator from which elements were taken one by one
TAKEN = "#taken"
#: items up to this number are given to a function one by one
CALLED = 12
_SEQUENCES = ("list", "set", "iterator")
#: objects that are code and hold no data of the program
_CODE = ("function", "class", "pymodule", "generator")


class ContainerParts(AttributeStoreParts):
    """What containers hold, and loops over them."""

    def known_elements(self, iterable: Value, limit: int = 64) -> list[Value] | None:
        if len(iterable) != 1:
            return None
        (atom,) = iterable
        if isinstance(atom, Items):
            return list(atom.items) if len(atom.items) <= limit else None
        if isinstance(atom, Const) and isinstance(atom.value, str) and len(atom.value) <= 8:
            return [value(Const("str", c)) for c in atom.value]
        made = self.object(atom)
        if made is None:
            return None
        if made.kind == "set" and self.length(made) not in (0, 1):
            return None  # their order is not known
        if made.kind in _SEQUENCES:
            count = self.length(made)
            if count is None or count > limit:
                return None
            held = [self.heap.read((made.number, i)) for i in range(count)]
            return [h for h in held if h is not None] if None not in held else None
        if (named := self.named_items(made)) is not None:
            return list(named.items)
        if made.kind == "dict":
            if any(self.heap.read((made.number, f)) for f in (ELEMENTS, KEYS, ORDER)):
                return None
            pairs = [(k, v) for k, v in self.heap.names(made.number) if isinstance(k, Const)]
            if len(pairs) > limit or any(UNBOUND in v for _, v in pairs):
                return None
            return [value(k) for k, _ in pairs]
        if self.method_of(made, "__iter__") is not None:
            return None
        parts = self.library.each(self, made)
        return parts if parts is not None and len(parts) <= limit else None

    def members(self, v: Value) -> list[Value] | None:
        """What a container holds, one by one, in an order that may not be its own."""
        made = self.object(v[0]) if len(v) == 1 else None
        if made is None or made.kind != "set":
            return self.known_elements(v)
        count = self.length(made)
        held = [self.heap.read((made.number, i)) for i in range(count or 0)]
        found = [h for h in held if h is not None]
        return found if count is not None and len(found) == count else None

    def length(self, made: Object) -> int | None:
        """How many items a list has, where they are kept one by one."""
        found = self.heap.read((made.number, LENGTH))
        try:
            count = only(found) if found else None
        except LookupError:
            return None
        return count if isinstance(count, int) else None

    def count(self, made: Object) -> Value:
        """How many items an object has, where that is kept, or where it differs between ranks."""
        if made.kind in ("iterator", "generator"):
            return self._left_in(made, set())
        if made.kind != "dict":
            return self.heap.read((made.number, LENGTH)) or NOTHING
        why = self.keys_apart(made)
        return divergence.differing(SETTING, why) if why is not None else NOTHING

    def _left_in(self, made: Object, seen: set[int]) -> Value:
        """How many items an iterator has still, where ranks have come to different ones, or what it
        goes over says so.
        """
        seen.add(made.number)
        held = self.heap.read((made.number, LENGTH)) or NOTHING
        further = self.parting(self.heap.read((made.number, TAKEN)) or NOTHING, made.node or ast.Pass())
        if further is not None:
            return divergence.differing(SETTING, further)
        sources = range(made.extra) if made.kind == "iterator" and isinstance(made.extra, int) else ()
        for i in () if held else sources:
            for other in self.objects(self.heap.read((made.number, f"source {i}")) or NOTHING):
                if other.kind in ("iterator", "generator"):
                    found = self._left_in(other, seen) if other.number not in seen else NOTHING
                else:
                    found = self.count(other)
                if placement_of(found).kind in (Kind.PER_RANK, Kind.UNKNOWN):
                    return found
        return held

    def keys_apart(self, made: Object) -> Parting | None:
        """Why ranks may have different keys in a dictionary."""
        for k, v in self.heap.names(made.number):
            found = divergence.presence(v) if isinstance(k, Const) or k == KEYS else None
            if found is None and k == KEYS:
                found = self.parting(self.bound(v), made.node or ast.Pass())
            if found is not None:
                return found
        return None

    def apart_in(self, v: Value) -> Value:
        """How many items a set has of values that differ between ranks: some may be equal."""
        if self.depends(v).kind in placements.EQUAL:
            return NOTHING
        node = ast.Pass()
        why = self.parting(tuple(atoms(v)), node) or Parting(Origin(node, "items of a set"), True)
        return divergence.differing(SETTING, why)

    def counts(self, sources: Iterable[Value]) -> Value:
        """How many items there are of what is made of some sources, where that differs between
        ranks.
        """
        for v in sources:
            for atom in v:
                if isinstance(atom, Differs):
                    why = self.parting((atom,), ast.Pass())
                    return divergence.differing(SETTING, why) if why is not None else NOTHING
                made = self.object(atom)
                found = self.count(made) if made is not None else NOTHING
                if placement_of(found).kind not in (*placements.EQUAL, Kind.SIZE):
                    return tuple(a for a in found if atom_placement(a).kind not in placements.EQUAL)
        return NOTHING

    def contents(self, made: Object) -> Value:
        """Anything that a container holds; of a dictionary its values."""
        return join(*self.fields(made))

    def fields(self, made: Object) -> list[Value]:
        """What a container holds, each item or entry that is known by itself."""
        held = [
            self.bound(v)
            for k, v in self.heap.names(made.number)
            if k not in (LENGTH, KEYS, FACTORY, ORDER)
        ]
        self.heap.work += 2 * len(held)
        return held

    def taken(self, iterable: Value, node: ast.AST, frame: Frame) -> Value:
        """All that is taken from something that is gone through here, from its beginning."""
        self.library.begun(self, iterable, node, frame)
        return self.elements(iterable, node, frame)

    def elements(self, iterable: Value, node: ast.AST, frame: Frame) -> Value:
        found = [self._elements(a, node, frame) for a in iterable if not isinstance(a, Differs)]
        return divergence.whichever(join(*found), iterable)

    def _elements(self, atom: Atom, node: ast.AST, frame: Frame) -> Value:
        match atom:
            case Items():
                return join(*atom.items)
            case Const() | Setting():
                return SETTING
            case Unknown():
                return value(atom)
            case Ref():
                return self._elements_of(self.heap.objects[atom.object], node, frame)
        given = self.library.elements(self, atom, node, frame)
        if given is not None:
            return identity.the_same(given, identity.places_of((atom,)))
        return self.opaque_result([value(atom)], "elements", node, frame)

    def _elements_of(self, made: Object, node: ast.AST, frame: Frame) -> Value:
        match made.kind:
            case "list":
                return self.contents(made)
            case "set":
                return divergence.in_some_order(self.contents(made), node)
            case "dict":
                keys = [value(k) for k, _ in self.heap.names(made.number) if isinstance(k, Const)]
                found = join(*keys, self.heap.read((made.number, KEYS)) or NOTHING) or NOTHING
                order = self.parting(self.heap.read((made.number, ORDER)) or NOTHING, node)
                return divergence.apart(found, order.origin) if order is not None else found
            case "class":
                if made.extra.members:
                    return tuple(Ref(n) for n in made.extra.members)
            case "generator":
                return self.yielded(made, node, frame)
        asking, self.asking, later = self.asking, "", self.later
        for name in ("__iter__", "__getitem__"):
            method = self.method_of(made, name)
            if method is None:
                continue
            arguments = Arguments([] if name == "__iter__" else [SETTING])
            if name == "__getitem__":
                asked = partial(self.call, value(method), arguments, node, frame)
                return self.until_it_ends(asked, "IndexError", asking, node, frame)
            self.heap.mark()
            result = self.call(value(method), arguments, node, frame)
            begun, self.later = self.heap.rollback(), later
            again = [a for a in result if isinstance(a, Ref) and a.object != made.number]
            step = self.method_of(made, "__next__")
            same = step is not None and len(again) < len(result)
            if not (same and asking == "loop"):  # it has been begun in the first turn
                self.heap.apply([begun, {}] if same and asking != "begins" else [begun])
            if step is not None and len(again) < len(result):
                asked = partial(self.call, value(step), Arguments(), node, frame)
                return self.until_it_ends(asked, "StopIteration", asking, node, frame)
            return self.elements(tuple(again) or result, node, frame)
        given = self.library.elements(self, Ref(made.number), node, frame)
        if given is not None:
            return given
        return self.opaque_result([value(Ref(made.number))], "elements", node, frame)

    def laid_out(self, source: Value, node: ast.AST, frame: Frame) -> Value:
        """What a generator gives, as a list: it is gone through once."""
        if not any(o.kind == "generator" for o in self.objects(source)):
            return source
        each = [self.taken(source, node, frame)]
        return self.listed(each, node, frame, exact=False, by=[source])

    def call_each(
        self, function: Value, sources: list[Value], node: ast.AST, frame: Frame
    ) -> list[Value]:
        """Call a function with the items of some containers, one after the other: the results, one
        for each where all items are known.
        """
        listed = [self.known_elements(s, CALLED) for s in sources]
        known = [x for x in listed if x is not None]
        if known and len(known) == len(listed):
            rows = zip(*known, strict=False)
            return [self.call(function, Arguments(list(r)), node, frame) for r in rows]
        given = Arguments([self.taken(s, node, frame) for s in sources])
        parted = next((p for s in sources if (p := self.trips(s, node)) is not None), None)
        found: list[Value] = []

        def turn() -> bool:
            found.append(self.call(function, given, node, frame))
            return bool(found[-1])

        self.repeat(turn, node, parted)
        return [join(*found)]

    @abstractmethod
    def until_it_ends(
        self, ask: Callable[[], Value], ends: str, asking: str, node: ast.AST, frame: Frame
    ) -> Value:
        """What an iterator of the program gives; the parts that know exceptions define it."""

    @abstractmethod
    def yielded(self, made: Object, node: ast.AST, frame: Frame) -> Value:
        """What a generator gives; the parts that call functions define it."""

    def opaque_result(
        self, operands: list[Value], word: str, node: ast.AST, frame: Frame, why: str = ""
    ) -> Value:
        """What an operation gives that no table knows: plain data if all operands are uniform."""
        if any(self.depends(v).kind not in placements.EQUAL for v in operands):
            why = why or not_known(word)
            self.trace.miss(why, node, frame.context)
            return unknown(why, node, self.whose(operands))
        return SETTING

    def whose(self, operands: list[Value]) -> str:
        """Whether anything in operands is made of samples that are not the turn's own."""
        return OTHERS if any(of_others(a) for v in operands for held in self.held_in(v) for a in held) else ""

    def only_sets(self, v: Value) -> bool:
        """Whether a value is a set for certain."""
        made = self.objects(v)
        return bool(made) and len(made) == len(v) and all(o.kind == "set" for o in made)

    def depends(self, v: Value) -> placements.Placement:
        """How a value lies, with all that its containers hold."""
        out = placements.ZERO
        for held in self.held_in(v):
            out = placements.join(out, placement_of(held))
            if out.kind is Kind.UNKNOWN:
                break
        return out

    def held_in(self, v: Value) -> Iterator[Value]:
        """A value, and all that its containers hold."""
        seen, waiting = set[int](), [v]
        while waiting:
            held = waiting.pop()
            yield held
            for atom in held:
                made = self.object(atom)
                if made is not None and made.number not in seen and made.kind not in _CODE:
                    seen.add(made.number)
                    waiting.append(self.contents(made))
                    count = self.count(made)
                    if placement_of(count).kind in (Kind.PER_RANK, Kind.UNKNOWN):
                        waiting.append(count)
                elif isinstance(atom, Items):
                    waiting.extend(atom.items)
                elif isinstance(atom, Method) and atom.receiver != atom:
                    waiting.append(value(atom.receiver))
