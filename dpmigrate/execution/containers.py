"""Lists, dictionaries, sets and tuples: items, iteration and methods."""

from __future__ import annotations

import ast
from collections.abc import Callable

from dpmigrate.execution import placements
from dpmigrate.execution.attributes import AttributeParts
from dpmigrate.execution.foreign import Arguments
from dpmigrate.execution.heap import ELEMENTS, Object
from dpmigrate.execution.machine import Frame
from dpmigrate.execution.names import LENGTH, LISTED
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    SETTING,
    UNBOUND,
    Atom,
    Const,
    Data,
    Foreign,
    Items,
    Method,
    Ref,
    Setting,
    Unknown,
    Value,
    items,
    join,
    only,
    placement_of,
    unknown,
    value,
)

#: the field that holds keys of a dictionary that are not known one by one
KEYS = "#keys"
#: the field that holds what a defaultdict makes
FACTORY = "#factory"
_SEQUENCES = ("list", "set", "iterator")


class ContainerParts(AttributeParts):
    """``owner[key]``, loops over containers, and their methods."""

    # ------------------------------------------------------------ what they hold

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
        if made.kind in _SEQUENCES:
            count = self.length(made)
            if count is None or count > limit:
                return None
            held = [self.heap.read((made.number, i)) for i in range(count)]
            return [h for h in held if h is not None] if None not in held else None
        if made.kind == "dict":
            if self.heap.read((made.number, ELEMENTS)) or self.heap.read((made.number, KEYS)):
                return None
            pairs = [(k, v) for k, v in self.heap.names(made.number) if isinstance(k, Const)]
            if len(pairs) > limit or any(UNBOUND in v for _, v in pairs):
                return None
            return [value(k) for k, _ in pairs]
        return None

    def length(self, made: Object) -> int | None:
        """How many items a list has, where they are kept one by one."""
        found = self.heap.read((made.number, LENGTH))
        try:
            count = only(found) if found else None
        except LookupError:
            return None
        return count if isinstance(count, int) else None

    def contents(self, made: Object) -> Value:
        """Anything that a container holds; of a dictionary its values."""
        held = [
            self.bound(v)
            for k, v in self.heap.names(made.number)
            if k not in (LENGTH, KEYS, FACTORY)
        ]
        return join(*held)

    def elements(self, iterable: Value, node: ast.AST, frame: Frame) -> Value:
        return join(*[self._elements(a, node, frame) for a in iterable])

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
            return given
        return self.opaque_result([value(atom)], "elements", node, frame)

    def _elements_of(self, made: Object, node: ast.AST, frame: Frame) -> Value:
        match made.kind:
            case "list" | "set":
                return self.contents(made)
            case "dict":
                keys = [value(k) for k, _ in self.heap.names(made.number) if isinstance(k, Const)]
                return join(*keys, self.heap.read((made.number, KEYS)) or NOTHING) or NOTHING
            case "generator":
                return self.yielded(made, node, frame)
        for name in ("__iter__", "__getitem__"):
            method = self.method_of(made, name)
            if method is None:
                continue
            arguments = Arguments([] if name == "__iter__" else [SETTING])
            result = self.call(value(method), arguments, node, frame)
            if name == "__getitem__":
                return result
            again = [a for a in result if isinstance(a, Ref) and a.object != made.number]
            step = self.method_of(made, "__next__")
            if step is not None and len(again) < len(result):
                return self.call(value(step), Arguments(), node, frame)
            return self.elements(tuple(again) or result, node, frame)
        given = self.library.elements(self, Ref(made.number), node, frame)
        if given is not None:
            return given
        return self.opaque_result([value(Ref(made.number))], "elements", node, frame)

    def yielded(self, made: Object, node: ast.AST, frame: Frame) -> Value:
        """What a generator gives; the parts that call functions define it."""
        raise NotImplementedError

    def opaque_result(self, operands: list[Value], word: str, node: ast.AST, frame: Frame) -> Value:
        """What an operation gives that no table knows: plain data if all it is made of is uniform."""
        if any(self.depends(v).kind not in placements.EQUAL for v in operands):
            self.trace.miss(f"no table has {word}", node, frame.context)
            return unknown(f"no table has {word}", node)
        return SETTING

    def depends(self, v: Value, seen: frozenset[int] = frozenset()) -> placements.Placement:
        """How a value lies, with what its containers hold."""
        out = placement_of(v)
        for atom in v:
            made = self.object(atom)
            if made is not None and made.number not in seen and made.kind not in _CODE:
                inner = self.contents(made)
                if inner:
                    deep = self.depends(inner, seen | {made.number})
                    out = placements.join(out, deep)
            elif isinstance(atom, Method) and atom.receiver != atom:
                out = placements.join(out, self.depends(value(atom.receiver), seen))
            if out.kind is Kind.UNKNOWN:
                return out
        return out

    # ------------------------------------------------------------ items

    def item(self, owner: Value, key: Value, node: ast.AST, frame: Frame) -> Value:
        found = [self._item(a, key, node, frame) for a in owner if a != UNBOUND]
        return join(*found) if found else NOTHING

    def _item(self, atom: Atom, key: Value, node: ast.AST, frame: Frame) -> Value:
        match atom:
            case Items():
                return self._tuple_item(atom, key, node, frame)
            case Const() | Setting():
                return SETTING
            case Unknown():
                return value(atom)
            case Ref():
                made = self.heap.objects[atom.object]
                if made.kind == "list":
                    return self._list_item(made, key, node, frame)
                if made.kind == "dict":
                    return self._dict_item(made, key, node, frame)
                method = self.method_of(made, "__getitem__")
                if method is not None:
                    return self.call(value(method), Arguments([key]), node, frame)
                held = self._held_item(made, key)
                if held is not None:
                    return held
            case Foreign():
                return value(atom)  # list[int], nn.Module generics
        given = self.library.operator(self, "getitem", [value(atom), key], node, frame)
        if given is not None:
            return given
        return self.opaque_result([value(atom), key], "an index", node, frame)

    def _held_item(self, made: Object, key: Value) -> Value | None:
        """What was stored in a library's object by index."""
        constant = self.constant(key)
        if constant is not None:
            return self.heap.read((made.number, constant))
        return None

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
        cut = self._slice(key, len(atom.items))
        if cut is not None:
            return items(atom.items[cut])
        return self._chosen(join(*atom.items), key, node)

    def _list_item(self, made: Object, key: Value, node: ast.AST, frame: Frame) -> Value:
        constant, count = self.constant(key), self.length(made)
        if constant is not None and isinstance(constant.value, int) and count is not None:
            index = constant.value + (count if constant.value < 0 else 0)
            return self.heap.read((made.number, index)) or NOTHING
        if any(self.is_slice(a) for a in key):
            cut = self._slice(key, count) if count is not None else None
            if cut is not None and count is not None:
                part = [self.heap.read((made.number, i)) or NOTHING for i in range(count)[cut]]
                return self.listed(part, node, frame)
            return self.listed([self.contents(made)], node, frame, exact=False)
        return self._chosen(self.contents(made), key, node)

    def is_slice(self, atom: Atom) -> bool:
        """Whether an atom is a slice."""
        made = self.object(atom)
        return made is not None and made.kind == "slice"

    def _slice(self, key: Value, count: int | None) -> slice | None:
        """A slice with constant bounds."""
        made = next((o for o in self.objects(key) if o.kind == "slice"), None)
        if made is None or count is None:
            return None
        bounds: list[int | None] = []
        for name in ("lower", "upper", "step"):
            held = self.heap.read((made.number, name))
            try:
                bounds.append(only(held) if held else None)
            except LookupError:
                return None
        return slice(*bounds) if all(b is None or isinstance(b, int) for b in bounds) else None

    def _dict_item(self, made: Object, key: Value, node: ast.AST, frame: Frame) -> Value:
        rest = self.heap.read((made.number, ELEMENTS)) or NOTHING
        constant = self.constant(key)
        if constant is None:
            found = self._chosen(self.contents(made), key, node)
        else:
            held = self.heap.read((made.number, constant)) or NOTHING
            found = join(self.bound(held), rest)
        factory = self.heap.read((made.number, FACTORY))
        if factory and (not found or constant is None or UNBOUND in found):
            fresh = self.call(factory, Arguments(), node, frame)
            if constant is not None:
                self.heap.widen((made.number, constant), fresh)
            else:
                self.heap.widen((made.number, ELEMENTS), fresh)
            found = join(found, fresh)
        return found or self.miss("the dictionary has no such key here", node, frame)

    def _chosen(self, found: Value, key: Value, node: ast.AST) -> Value:
        """One of several, by a key: where the key differs between ranks, so does the choice."""
        parted = self.parting(key, node)
        if parted is None or not found:
            return found
        from dpmigrate.execution.arithmetic import differing

        return differing(found, parted.origin)

    def set_item(self, owner: Value, key: Value, new: Value, node: ast.AST, frame: Frame) -> None:
        targets = [a for a in owner if a != UNBOUND]
        for atom in targets:
            made = self.object(atom)
            if made is None:
                operands = [value(atom), key, new]
                self.library.operator(self, "setitem", operands, node, frame)
            elif made.kind == "list":
                self._set_list(made, key, new, len(targets) > 1)
            elif made.kind == "dict":
                self._set_dict(made, key, new, len(targets) > 1)
            else:
                method = self.method_of(made, "__setitem__")
                if method is not None:
                    self.call(value(method), Arguments([key, new]), node, frame)
                    continue
                operands = [value(atom), key, new]
                if self.library.operator(self, "setitem", operands, node, frame) is None:
                    constant = self.constant(key)
                    self.heap.widen((made.number, constant or ELEMENTS), new)
            self.event("item", node, frame, owner=value(atom), key=key, new=new)

    def _set_list(self, made: Object, key: Value, new: Value, weak: bool) -> None:
        constant, count = self.constant(key), self.length(made)
        if constant is not None and isinstance(constant.value, int) and count is not None:
            index = constant.value + (count if constant.value < 0 else 0)
            if 0 <= index < count:
                (self.heap.widen if weak else self.heap.write)((made.number, index), new)
            return
        self.collapse(made)
        self.heap.widen((made.number, ELEMENTS), new)

    def _set_dict(self, made: Object, key: Value, new: Value, weak: bool) -> None:
        constant = self.constant(key)
        if constant is None:
            self.heap.widen((made.number, ELEMENTS), new)
            self.heap.widen((made.number, KEYS), key)
        elif weak:
            held = self.heap.read((made.number, constant))
            self.heap.write((made.number, constant), join(held or value(UNBOUND), new))
        else:
            self.heap.write((made.number, constant), new)

    def collapse(self, made: Object) -> None:
        """From now on the items of a list are not kept one by one."""
        held = [(k, v) for k, v in self.heap.names(made.number) if isinstance(k, int)]
        for k, v in held:
            self.heap.widen((made.number, ELEMENTS), self.bound(v))
            self.heap.write((made.number, k), None)
        count = self.heap.read((made.number, LENGTH))
        if count is not None:
            differs = tuple(a for a in count if isinstance(a, Data))
            self.heap.write((made.number, LENGTH), differs or SETTING)

    def append(self, made: Object, new: Value) -> None:
        """One more item at the end."""
        count = self.length(made)
        if count is not None and count < LISTED:
            self.heap.write((made.number, count), new)
            self.heap.write((made.number, LENGTH), value(Const("int", count + 1)))
            return
        self.collapse(made)
        self.heap.widen((made.number, ELEMENTS), new)

    def merge(self, made: Object, other: Value, node: ast.AST, frame: Frame) -> None:
        """``made.update(other)``, ``{**other}``."""
        for atom in other:
            source = self.object(atom)
            if source is not None and source.kind == "dict":
                for k, v in self.heap.names(source.number):
                    if isinstance(k, Const) and UNBOUND not in v:
                        self.heap.write((made.number, k), v)
                    elif k != LENGTH:
                        self.heap.widen((made.number, k), self.bound(v))
            else:
                pairs = self.elements(value(atom), node, frame)
                one = value(Const("int", 1))
                self.heap.widen(
                    (made.number, ELEMENTS), self.item(pairs, one, node, frame) or SETTING
                )
                self.heap.widen((made.number, KEYS), SETTING)

    # ------------------------------------------------------------ methods

    def container_method(
        self, made: Object, name: str, arguments: Arguments, node: ast.AST, frame: Frame
    ) -> Value | None:
        """A method of a list, a dictionary or a set; None where it is none."""
        own: dict[str, Callable[..., Value | None]] = _METHODS.get(made.kind, {})
        method = own.get(name)
        return method(self, made, arguments, node, frame) if method is not None else None


def _append(m: ContainerParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    new = a.get(1 if len(a.positional) > 1 else 0) or SETTING
    m.event("append", node, f, owner=value(Ref(made.number)), new=new)
    m.append(made, new)
    return NONE


def _extend(m: ContainerParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    given = a.get(0) or NOTHING
    m.event("append", node, f, owner=value(Ref(made.number)), new=m.elements(given, node, f))
    known = m.known_elements(given)
    if known is not None:
        for v in known:
            m.append(made, v)
    else:
        m.collapse(made)
        m.heap.widen((made.number, ELEMENTS), m.elements(given, node, f) or NOTHING)
    return NONE


def _list_pop(m: ContainerParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    found = m.contents(made)
    count = m.length(made)
    if count and not a.positional:
        last = m.heap.read((made.number, count - 1)) or NOTHING
        m.heap.write((made.number, count - 1), None)
        m.heap.write((made.number, LENGTH), value(Const("int", count - 1)))
        return last
    m.collapse(made)
    return found


def _clear(m: ContainerParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    for k in list(m.heap.fields.get(made.number, ())):
        if k != FACTORY:
            m.heap.write((made.number, k), None)
    if made.kind != "dict":
        m.heap.write((made.number, LENGTH), value(Const("int", 0)))
    return NONE


def _nothing(m: ContainerParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    return NONE


def _reorder(m: ContainerParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    m.collapse(made)
    return NONE


def _copy(m: ContainerParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    new = m.heap.new(made.kind, made.name, node, f.context)
    for k, v in m.heap.names(made.number):
        m.heap.write((new.number, k), v)
    return value(Ref(new.number))


def _count(m: ContainerParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    return m.opaque_result([m.contents(made)], "count", node, f)


def _get(m: ContainerParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    key = a.get(0) or SETTING
    constant = m.constant(key)
    default = a.get(1) or NONE
    if constant is None:
        return join(m.contents(made), default)
    held = m.heap.read((made.number, constant))
    rest = m.heap.read((made.number, ELEMENTS)) or NOTHING
    if held is None:
        return join(rest, default)
    return join(m.bound(held), rest, default) if UNBOUND in held or rest else held


def _setdefault(m: ContainerParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    found = _get(m, made, a, node, f)
    m._set_dict(made, a.get(0) or SETTING, found, False)
    return found


def _dict_pop(m: ContainerParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    found = _get(m, made, Arguments([a.get(0) or SETTING, a.get(1) or NOTHING]), node, f)
    constant = m.constant(a.get(0) or SETTING)
    if constant is not None:
        m.heap.write((made.number, constant), None)
    return found or SETTING


def _keys(m: ContainerParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    known = m.known_elements(value(Ref(made.number)))
    if known is not None:
        return m.listed(known, node, f)
    return m.listed([m.elements(value(Ref(made.number)), node, f)], node, f, exact=False)


def _values(m: ContainerParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    known = m.known_elements(value(Ref(made.number)))
    if known is not None:
        found = [m.heap.read((made.number, k)) or NOTHING for v in known for k in v]
        return m.listed(found, node, f)
    return m.listed([m.contents(made)], node, f, exact=False)


def _items(m: ContainerParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    known = m.known_elements(value(Ref(made.number)))
    if known is not None:
        found = [m.heap.read((made.number, k)) or NOTHING for v in known for k in v]
        return m.listed([items(pair) for pair in zip(known, found, strict=True)], node, f)
    keys = m.elements(value(Ref(made.number)), node, f) or SETTING
    return m.listed([items([keys, m.contents(made)])], node, f, exact=False)


def _update(m: ContainerParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    if made.kind != "dict":
        return _extend(m, made, a, node, f)
    for v in (*a.positional, a.star):
        m.merge(made, v, node, f)
    for k, v in a.keywords.items():
        m.heap.write((made.number, Const("str", k)), v)
    if a.stars:
        m.heap.widen((made.number, ELEMENTS), a.stars)
    return NONE


_METHODS: dict[str, dict[str, Callable[..., Value | None]]] = {
    "list": {
        "append": _append, "appendleft": _append, "insert": _append, "extend": _extend,
        "pop": _list_pop, "popleft": _list_pop, "clear": _clear, "sort": _reorder,
        "reverse": _reorder, "remove": _reorder, "copy": _copy, "index": _count,
        "count": _count, "rotate": _reorder,
    },
    "set": {
        "add": _append, "update": _update, "discard": _reorder, "remove": _reorder,
        "clear": _clear, "copy": _copy, "pop": _list_pop, "union": _copy,
        "intersection": _copy, "difference": _copy,
    },
    "dict": {
        "get": _get, "setdefault": _setdefault, "pop": _dict_pop, "keys": _keys,
        "values": _values, "items": _items, "update": _update, "clear": _clear,
        "copy": _copy, "popitem": _values, "move_to_end": _nothing,
    },
}  # fmt: skip

#: objects that are code and hold no data of the program
_CODE = ("function", "class", "pymodule", "generator")
