"""``owner[key] = new``, ``del owner[key]``, and what else changes items of lists and dictionaries."""

from __future__ import annotations

import ast

from dpmigrate.execution import counting, divergence, placements, samples
from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.items import ItemParts
from dpmigrate.execution.joins import join
from dpmigrate.execution.machine import Frame
from dpmigrate.execution.names import LISTED
from dpmigrate.execution.objects import ELEMENTS, EXISTS, KEYS, LENGTH, ORDER, Location, Object
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.trace import Parting
from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    OTHERS,
    SETTING,
    SOME,
    UNBOUND,
    Atom,
    Const,
    Data,
    Differs,
    Origin,
    Ref,
    Value,
    atoms,
    value,
)


class ItemStoreParts(ItemParts):
    """Items, written."""

    def set_item(self, owner: Value, key: Value, new: Value, node: ast.AST, frame: Frame) -> None:
        some = self.which(owner, node)
        if self.tries:
            lists = [a for a in owner if (o := self.object(a)) is not None and o.kind == "list"]
            self._may_lack(lists, key, node)

        def stored(atom: Atom) -> Value:
            self._set_in(atom, key, new, node, frame)
            made = self.object(atom)
            if some is not None and made is not None and made.kind == "list":
                self.mixed(made, some, length=any(map(self.is_slice, key)))
            elif some is not None and made is not None:  # some ranks alone have stored it
                fields = (self.constant(key) or ELEMENTS, KEYS)
                self._differ([(made.number, field) for field in fields], some)
            return NONE

        self.each_of(owner, stored, some)

    def _set_in(self, atom: Atom, key: Value, new: Value, node: ast.AST, frame: Frame) -> None:
        made = self.object(atom)
        if made is None:
            operands = [value(atom), key, new]
            self.library.operator(self, "setitem", operands, node, frame)
        elif made.kind == "list":
            if any(self.is_slice(a) for a in key):
                self._set_slice(made, key, new, node, frame)
            else:
                self._set_list(made, key, new, node)
        elif made.kind == "dict":
            self._set_dict(made, key, new, node)
        else:
            method = self.method_of(made, "__setitem__")
            if method is not None:
                self.call(value(method), Arguments([key, new]), node, frame)
                return
            operands = [value(atom), key, new]
            if self.library.operator(self, "setitem", operands, node, frame) is None:
                constant = self.constant(key)
                self.heap.widen((made.number, constant or ELEMENTS), new)
        self.event("item", node, frame, owner=value(atom), key=key, new=new)

    def _set_list(self, made: Object, key: Value, new: Value, node: ast.AST) -> None:
        constant, count = self.constant(key), self.length(made)
        if constant is not None and isinstance(constant.value, int) and count is not None:
            index = constant.value + (count if constant.value < 0 else 0)
            if 0 <= index < count:
                self.heap.put((made.number, index), new)
            return
        self.collapse(made, whose=SOME)
        self.heap.widen((made.number, ELEMENTS), new)
        self.mixed(made, self._by_key(key, node))

    def _by_key(self, key: Value, node: ast.AST) -> Parting | None:
        """Why ranks store under different keys; the place of a sample is that sample's own."""
        parted = self.parting(tuple(atoms(key)), node)
        return None if parted is None or parted.alike else parted

    def more_of(self, made: Object, sources: list[Value], *, some: bool = False) -> None:
        """A list has items of other containers beside its own: as many more as those have; ``some``: of each sample in its turn."""
        count = self.counts(sources)
        if some:
            count = value(Data("number", placements.SUM, origin=Origin(made.node or ast.Pass(), samples.COUNTED)))
        if count:
            self.heap.write((made.number, LENGTH), count)

    def some_of_each(self, made: Object, node: ast.AST, frame: Frame) -> bool:
        """Whether a list that goes on from turn to turn is given some items more of each sample in its turn, by something that reads
        nothing which holds all samples.
        """
        if made.kind != "list" or not self.each_sample or not self._of_all_turns(made):
            return False
        parts = node.args if isinstance(node, ast.Call) else [node.value] if isinstance(node, ast.AugAssign) else []
        read = [self.evaluate(n, frame) for part in parts for n in ast.walk(part) if isinstance(n, ast.Name)]
        lists = [o for v in read for o in self.objects(v) if o.kind in ("list", "iterator")]
        rows = any(a.placement.kind is Kind.ROWS for v in read for a in v if isinstance(a, Data))
        return bool(parts) and not rows and not any(samples.all_of_batch(self, o) for o in lists)

    def order_of(
        self, source: Value, given: Arguments, node: ast.AST, frame: Frame
    ) -> Parting | None:
        """Why the order differs in which ranks sort equal items of a container."""
        key, reverse = given.keywords.get("key"), given.keywords.get("reverse", NOTHING)
        chosen = reverse
        if key and key != NONE:
            chosen = join(chosen, *self.call_each(key, [source], node, frame))
        return self.parting(tuple(atoms(chosen)), node)

    def mixed(self, made: Object, parted: Parting | None, *, length: bool = False) -> None:
        """Which items a list or set has at which place differs between ranks; ``length``: how many
        it has as well.
        """
        if parted is None:
            return
        self.collapse(made)
        if length:
            count = divergence.differing(SETTING, parted)
            self.heap.write((made.number, LENGTH), count)
        held = self.heap.read((made.number, ELEMENTS))
        if held:
            self.heap.write((made.number, ELEMENTS), divergence.differing(held, parted))

    def _set_slice(
        self, made: Object, key: Value, new: Value, node: ast.AST, frame: Frame
    ) -> None:
        """``made[a:b] = new``; ``made[:] = new`` leaves nothing of what was there."""
        known, elements = self.known_elements(new), self.taken(new, node, frame)
        counts = [self.count(o) for o in self.objects(new)]
        whole = self.constant_slice(key, 0) == slice(None, None, None)
        if not whole or (made.many and made.kept):
            self.collapse(made)
            self.heap.widen((made.number, ELEMENTS), elements)
            self.more_of(made, [new])
            self.mixed(made, self._by_slice(key, node), length=True)
            return
        for name in list(self.heap.fields.get(made.number, ())):
            self.heap.write((made.number, name), None)
        self.heap.write((made.number, LENGTH), value(Const("int", 0)))
        for v in known or ():
            self.append(made, v)
        if known is None:
            self.collapse(made)
            self.heap.widen((made.number, ELEMENTS), elements)
            count = [a for c in counts if c for a in c if isinstance(a, Data)]
            if count:
                self.heap.write((made.number, LENGTH), tuple(count))

    def _set_dict(self, made: Object, key: Value, new: Value, node: ast.AST) -> None:
        constant = self.constant(key)
        if constant is None:
            parted = self._by_key(key, node)
            # which of the items it is that has the value differs
            new = divergence.differing(new, parted) if parted is not None else new
            self.heap.widen((made.number, ELEMENTS), new)
            self.heap.widen((made.number, KEYS), key)
        elif made.many and made.kept and self.heap.read((made.number, constant)) is None:
            self.heap.write((made.number, constant), (*new, UNBOUND))
        else:
            held = self.heap.read((made.number, constant))
            if held and UNBOUND in held and not made.many:  # it may be behind keys that are there
                why = divergence.presence(held)
                order = divergence.differing(SETTING, why) if why is not None else SETTING
                self.heap.widen((made.number, ORDER), order)
            self.heap.put((made.number, constant), new)
        self._told_to_owner(made)

    def collapse(self, made: Object, *, changed: bool = True, whose: str = OTHERS) -> None:
        if changed:
            counting.otherwise(self, made)
        elements = self.heap.read((made.number, ELEMENTS))
        if elements and changed:
            self.heap.write((made.number, ELEMENTS), samples.loose(self, elements, whose))
        held = [(k, v) for k, v in self.heap.names(made.number) if isinstance(k, int)]
        for k, v in held:
            self.heap.widen((made.number, ELEMENTS), self.bound(v))
            self.heap.write((made.number, k), None)
        count = self.heap.read((made.number, LENGTH)) or (SETTING if changed else None)
        if count is not None:  # also where it is not known: it is another one now
            differs = tuple(a for a in count if isinstance(a, Data))
            self.heap.write((made.number, LENGTH), differs or SETTING)

    def remove(self, made: Object, key: Value, node: ast.AST) -> None:
        """``del made[key]``."""
        if self.tries:
            self._may_lack([Ref(made.number)], key, node)
        parted = self._by_key(key, node)
        if made.kind != "dict":
            self.collapse(made)
            cut = self._by_slice(key, node)
            self.mixed(made, parted or cut, length=cut is not None)
            return
        self.heap.changed((made.number, KEYS))  # it may be one of those
        constant = self.constant(key)
        if constant is not None and not (made.many and made.kept):
            self.heap.write((made.number, constant), None)
            return
        for k, _ in list(self.heap.names(made.number)):
            if isinstance(k, Const) and constant in (None, k):
                gone = value(UNBOUND, *([divergence.bound_by_some(parted)] if parted else ()))
                self.heap.widen((made.number, k), gone)

    def append(self, made: Object, new: Value) -> None:
        """One more item at the end."""
        counting.otherwise(self, made)
        if self.each_sample and self._of_all_turns(made):
            self._append_sample(made, new)
            return
        count = self.length(made)
        if count is not None and count < LISTED:
            if not (made.many and made.kept):
                self.heap.write((made.number, count), new)
                self.heap.write((made.number, LENGTH), value(Const("int", count + 1)))
                return
        self.collapse(made, whose=SOME)
        self.heap.widen((made.number, ELEMENTS), new)

    def _of_all_turns(self, made: Object) -> bool:
        """Whether a list goes on from one turn of a loop to the next."""
        at = (made.number, EXISTS)
        return made.kind == "list" and not self.heap.written_since(self.turns[-1], at)

    def _times(self, made: Object) -> placements.Placement:
        """How many items a list has that is given one more in a turn for each sample."""
        at = (made.number, LENGTH)
        held = [a for a in self.heap.read(at) or NOTHING if isinstance(a, Data)]
        begun = self.heap.written_since(self.samples_since, at)
        if held and begun and not self.heap.written_since(self.turns[-1], at):
            return held[0].placement  # as many as in the turns before
        return placements.size(0 if held else 1)

    def _append_sample(self, made: Object, new: Value) -> None:
        """One more item for each sample, or for some of them."""
        if any(isinstance(k, int) for k, _ in self.heap.names(made.number)):
            self.collapse(made, whose=SOME)
        node = made.node or ast.Pass()
        self.heap.widen((made.number, ELEMENTS), samples.kept(samples.of_turns(self, new, node), node))
        count = self._times(made) if self.parted is None else placements.SUM
        origin = Origin(node, samples.COUNTED)
        self.heap.write((made.number, LENGTH), value(Data("number", count, origin=origin)))

    def merge(self, made: Object, other: Value, node: ast.AST, frame: Frame) -> None:
        """``made.update(other)``, ``{**other}``."""
        several = len([a for a in other if not isinstance(a, Differs)]) > 1
        some = self.which(other, node)
        for atom in other:
            if isinstance(atom, Differs):
                continue
            source = self.object(atom)
            if source is not None and source.kind == "dict":
                for k, v in self.heap.names(source.number):
                    if several:  # of one of them
                        v = join(v, value(UNBOUND))
                        v = divergence.differing(v, some) if some is not None else v
                    if isinstance(k, Const) and UNBOUND not in v:
                        self.heap.put((made.number, k), v)
                    elif k != LENGTH:
                        self._merge_maybe((made.number, k), v)
            else:
                pairs = self.taken(value(atom), node, frame)
                one = value(Const("int", 1))
                new, keys = self.item(pairs, one, node, frame) or SETTING, SETTING
                apart = self.parting(self.counts([value(atom)]), node)
                if apart is not None:  # some ranks have more of them
                    new, keys = (divergence.differing(v, apart) for v in (new, keys))
                self.heap.widen((made.number, ELEMENTS), new)
                self.heap.widen((made.number, KEYS), keys)
        self._told_to_owner(made)

    def _merge_maybe(self, at: Location, v: Value) -> None:
        """An item that the other dictionary may not have."""
        held, why = self.heap.read(at), divergence.presence(v)
        if held is None or UNBOUND in held:
            self.heap.write(at, join(held or NOTHING, v))
        else:  # either of both
            both = join(held, self.bound(v))
            self.heap.write(at, divergence.differing(both, why) if why is not None else both)

    def _told_to_owner(self, made: Object) -> None:
        """What was stored in ``x.__dict__`` is an attribute of ``x``."""
        if made.name != "__dict__" or not isinstance(made.extra, int):
            return
        for k, v in list(self.heap.names(made.number)):
            if isinstance(k, Const) and isinstance(k.value, str):
                self.heap.put((made.extra, k.value), v)
            elif k == ELEMENTS:
                self.heap.widen((made.extra, ELEMENTS), v)
