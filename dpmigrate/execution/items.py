"""``owner[key]``: items of lists, tuples and dictionaries, and what libraries give."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from dpmigrate.execution import divergence, identity, sample_orders, samples
from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.containers import FACTORY, ContainerParts
from dpmigrate.execution.joins import join
from dpmigrate.execution.machine import Frame
from dpmigrate.execution.objects import ELEMENTS, KEYS, LENGTH, UNSEEN, Delta, Object
from dpmigrate.execution.trace import Parting
from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    SETTING,
    UNBOUND,
    Atom,
    Const,
    Data,
    Differs,
    Foreign,
    Items,
    Ref,
    Setting,
    Unknown,
    Value,
    items,
    only,
    value,
)

#: what tells the object that a place makes of its own ones from those
AGAIN = "of its own"
#: the fields of a slice
_BOUNDS = ("lower", "upper", "step")


class ItemParts(ContainerParts):
    """``owner[key]``."""

    def item(self, owner: Value, key: Value, node: ast.AST, frame: Frame) -> Value:
        owners = [a for a in owner if a != UNBOUND and not isinstance(a, Differs)]
        # a way on which a dictionary lacks the key ends here
        having = [a for a in owners if not self._lacks_key(a, key)]
        if self.tries:
            self._may_lack(owners, key, node)
        found: list[Value] = []
        asked = having or owners
        again = [a for a in asked if len(asked) > 1 and self._made_at(a, node)]
        for i, a in enumerate(a for a in asked if a not in again):
            before, self.heap.variant = self.heap.variant, i or self.heap.variant
            found.append(self._item(a, key, node, frame))
            self.heap.variant = before
        if again:
            found.append(self._of_own(again, key, node, frame))
        return divergence.whichever(join(*found), owner) if found else NOTHING

    def _made_at(self, atom: Atom, node: ast.AST) -> bool:
        made = self.object(atom)
        return made is not None and made.node is node

    def _of_own(self, owners: Sequence[Atom], key: Value, node: ast.AST, frame: Frame) -> Value:
        """Parts of what this place has made in turns before, ``best = best[:k]``: all of them are
        one object, as others would be made of it in each turn without an end.
        """
        found: list[Value] = []
        deltas: list[Delta] = []
        before, self.heap.variant = self.heap.variant, AGAIN
        for a in owners:
            self.heap.mark()
            found.append(self._item(a, key, node, frame))
            deltas.append(self.heap.rollback())
        self.heap.variant = before
        self.heap.apply(deltas)
        return join(*found)

    def _may_lack(self, owners: Sequence[Atom], key: Value, node: ast.AST) -> None:
        """Some ranks raise an exception for a key or an index that others find."""
        if any(self.is_slice(a) for a in key):
            return
        for atom in owners:
            made = self.object(atom)
            if made is not None and made.kind == "dict" and not self.heap.read((made.number, FACTORY)):
                constant = self.constant(key)
                held = self.heap.read((made.number, constant)) if constant is not None else None
                if not held or UNBOUND in held:
                    if constant is not None and not self.heap.read((made.number, ELEMENTS)):
                        self.fails("KeyError")
                    keys = self.heap.read((made.number, KEYS)) or NOTHING
                    why = divergence.presence(held) or divergence.presence(keys)
                    whole = self.keys_apart(made) if constant is None else None
                    why = why or self.parting((*key, *self.bound(keys)), node) or whole
                    self.may_raise(why, "KeyError")
            elif isinstance(atom, Items) or (made is not None and made.kind == "list"):
                why = self.parting(key, node)
                count = self.count(made) if made is not None else NOTHING
                if self._beyond(atom, key):
                    self.fails("IndexError")
                self.may_raise(why or self.parting(count, node), "IndexError")

    def _beyond(self, atom: Atom, key: Value) -> bool:
        """Whether a sequence of known length has no such item."""
        known, at = self.known_elements((atom,)), self.constant(key)
        if known is None or at is None or type(at.value) is not int:
            return False
        return not -len(known) <= at.value < len(known)

    def _lacks_key(self, atom: Atom, key: Value) -> bool:
        """Whether an atom is a dictionary of which all keys are known, and this is none of them."""
        made, constant = self.object(atom), self.constant(key)
        if made is None or made.kind != "dict" or constant is None:
            return False
        fields = (constant, ELEMENTS, FACTORY)
        return not any(self.heap.read((made.number, field)) for field in fields)

    def _item(self, atom: Atom, key: Value, node: ast.AST, frame: Frame) -> Value:
        match atom:
            case Items():
                return self._tuple_item(atom, key, node, frame)
            case Const() | Setting():
                return self._chosen(SETTING, key, node)
            case Unknown():
                return value(atom)
            case Ref():
                made = self.heap.objects[atom.object]
                if made.kind == "list":
                    return self._list_item(made, key, node, frame)
                if made.kind == "dict":
                    return self._dict_item(made, key, node, frame)
                if (named := self.named_items(made)) is not None:
                    return self._tuple_item(named, key, node, frame)
                method = self.method_of(made, "__getitem__")
                if method is not None:
                    return self.call(value(method), Arguments([key]), node, frame)
                held = self._held_item(made, key)
                if held is not None:
                    return held
            case Foreign():
                given = self.library.operator(self, "getitem", [value(atom), key], node, frame)
                if given is not None:
                    return given
                return self._chosen(value(atom), key, node)  # list[int], nn.Module generics
        given = self.library.operator(self, "getitem", [value(atom), key], node, frame)
        if given is not None:
            return identity.another(given) if self._gathers(key) else identity.the_same(given, identity.places_of((atom,)))
        return self.opaque_result([value(atom), key], "an index", node, frame)

    def _gathers(self, key: Value) -> bool:
        """Whether an index of a tensor or an array takes elements by a list, or by a tensor with axes of its own, of places or of
        a mask: what it gives is a copy (https://numpy.org/doc/stable/user/basics.indexing.html). A tensor without axes is a number.
        """
        parts = key[0].items if len(key) == 1 and isinstance(key[0], Items) else (key,)
        return any(bool(part) and all(self._has_axes(a) for a in part) for part in parts)

    def _has_axes(self, atom: Atom) -> bool:
        if isinstance(atom, Data):
            return atom.kind in ("tensor", "array", "mask", "places", "order") and bool(atom.axes)
        made = self.object(atom)
        return made is not None and made.kind == "list"

    def _held_item(self, made: Object, key: Value) -> Value | None:
        """What was stored in a library's object by index."""
        constant = self.constant(key)
        held = self.heap.read((made.number, constant)) if constant is not None else None
        if held and made.kind in UNSEEN:
            return join(held, self.heap.read((made.number, ELEMENTS)) or NOTHING)
        return held

    @staticmethod
    def constant(key: Value) -> Const | None:
        """The key where it is one constant."""
        if len(key) == 1:
            (atom,) = key
            if isinstance(atom, Const):
                return atom
        return None

    def _tuple_item(self, atom: Items, key: Value, node: ast.AST, frame: Frame) -> Value:
        constant = self.constant(key)
        if constant is not None and isinstance(constant.value, int):
            if -len(atom.items) <= constant.value < len(atom.items):
                return atom.items[constant.value]
            return NOTHING
        cut = self.constant_slice(key, len(atom.items))
        if cut is not None:
            return items(atom.items[cut])
        return self._chosen(join(*atom.items), key, node)

    def _list_item(self, made: Object, key: Value, node: ast.AST, frame: Frame) -> Value:
        constant, count = self.constant(key), self.length(made)
        if constant is not None and isinstance(constant.value, int) and count is not None:
            index = constant.value + (count if constant.value < 0 else 0)
            return self.heap.read((made.number, index)) or NOTHING
        if any(self.is_slice(a) for a in key):
            cut = self.constant_slice(key, count) if count is not None else None
            if cut is not None and count is not None:
                part = [self.heap.read((made.number, i)) or NOTHING for i in range(count)[cut]]
                return self.listed(part, node, frame)
            how = self._whole(key) if samples.all_of_batch(self, made, one=True) else 0
            if how:
                return self._all_items(made, node, frame, turned=how < 0)
            part = [samples.loose(self, self._chosen(self.contents(made), key, node))]
            parted = self._by_slice(key, node)
            out = self.listed(part, node, frame, exact=False, by=[value(Ref(made.number))])
            self.objects(out)[0].marks.add(samples.OWN_ORDER)
            if parted is not None:
                length = divergence.differing(SETTING, parted)
                self.heap.write((self.objects(out)[0].number, LENGTH), length)
            return out
        if samples.is_place(key) and samples.all_of_batch(self, made, one=True):
            return sample_orders.at_place(self, self.contents(made), key, node)  # what the turn's own sample has
        return self._chosen(self.contents(made), key, node)

    def _whole(self, key: Value) -> int:
        """1 for a slice of all items, -1 for one of all that are turned round."""
        bounds = [self.heap.read((o.number, n)) or NONE for o in self.objects(key) if o.kind == "slice" for n in _BOUNDS]
        step = self.constant(bounds[2]) if bounds[:2] == [NONE, NONE] and len(bounds) == 3 else None
        return (1 if step.value is None else step.value if step.value in (1, -1) else 0) if step is not None else 0

    def _all_items(self, made: Object, node: ast.AST, frame: Frame, *, turned: bool) -> Value:
        """Another list with the items of one that has one for each sample."""
        held = self.contents(made)
        held = sample_orders.reordered(self, held, node, sample_orders.REVERSED) if turned else held
        out = self.listed([held], node, frame, exact=False)
        self.heap.write((self.objects(out)[0].number, LENGTH), self.heap.read((made.number, LENGTH)) or SETTING)
        return out

    def is_slice(self, atom: Atom) -> bool:
        """Whether an atom is a slice."""
        made = self.object(atom)
        return made is not None and made.kind == "slice"

    def constant_slice(self, key: Value, count: int | None) -> slice | None:
        """A slice with constant bounds."""
        made = next((o for o in self.objects(key) if o.kind == "slice"), None)
        if made is None or count is None:
            return None
        bounds: list[int | None] = []
        for name in _BOUNDS:
            held = self.heap.read((made.number, name))
            try:
                bounds.append(only(held) if held else None)
            except LookupError:
                return None
        return slice(*bounds) if all(b is None or isinstance(b, int) for b in bounds) else None

    def _dict_item(self, made: Object, key: Value, node: ast.AST, frame: Frame) -> Value:
        rest = self.heap.read((made.number, ELEMENTS)) or NOTHING
        constant, held = self.constant(key), NOTHING
        if constant is not None:
            held = self.heap.read((made.number, constant)) or NOTHING
        if constant is None:
            found = self._chosen(self.contents(made), key, node)
        else:
            found = join(self.bound(held), rest)
        factory = self.heap.read((made.number, FACTORY))
        if factory and (constant is None or not held or UNBOUND in held):
            found = self._made_for_key(made, key, found, factory, node, frame)
        return found or self.miss("the dictionary has no such key here", node, frame)

    def _made_for_key(
        self, made: Object, key: Value, found: Value, factory: Value, node: ast.AST, frame: Frame
    ) -> Value:
        """What a ``defaultdict`` gives for a key that it may not have: something new."""
        constant = self.constant(key)
        held = (self.heap.read((made.number, constant)) if constant is not None else None) or NOTHING
        keys = self.heap.read((made.number, KEYS)) or NOTHING
        why = divergence.presence(held) or divergence.presence(keys) or self.parting(self.bound(keys), node)
        why = why or (self.keys_apart(made) if constant is None else None)
        got: list[Value] = []

        def fresh() -> bool:
            got.append(self.call(factory, Arguments(), node, frame))
            self.set_item(value(Ref(made.number)), key, got[-1], node, frame)
            return bool(got[-1])

        self.branch([fresh, lambda: True] if found else [fresh], why)
        out = join(found, *got)
        return divergence.differing(out, why) if why is not None and found else out

    def _chosen(self, found: Value, key: Value, node: ast.AST) -> Value:
        """One of several, by a key: where the key differs between ranks, so does the choice."""
        parted = self.parting(key, node) or self._by_slice(key, node)
        if parted is None or not found:
            return found
        return divergence.differing(found, parted)

    def _by_slice(self, key: Value, node: ast.AST) -> Parting | None:
        """Why ranks cut at different places."""
        bounds = [self.heap.read((o.number, n)) or NOTHING for o in self.objects(key) if o.kind == "slice" for n in _BOUNDS]
        return self.parting(join(*bounds), node)
