"""Containers of modules: Sequential, ModuleList, ModuleDict
(https://docs.pytorch.org/docs/stable/nn.html).
"""

from __future__ import annotations

from collections.abc import Iterator

from dpmigrate.execution import counting, going
from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.joins import join
from dpmigrate.execution.machine import Machine
from dpmigrate.execution.objects import ELEMENTS, KEYS, Object
from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    SETTING,
    UNBOUND,
    Atom,
    Const,
    Ref,
    Unknown,
    Value,
    const,
    items,
    known,
    value,
)
from dpmigrate.library.effects import uniform
from dpmigrate.library.forward_pass import forward, own_method
from dpmigrate.library.module_tree import is_module
from dpmigrate.library.modules import MODEL, children_by_name
from dpmigrate.library.sites import Row, Site, methods, prefixed

_DOC = "https://docs.pytorch.org/docs/stable/nn.html#containers"
_BY_NAME = ("ModuleDict", "ParameterDict")
CONTAINERS = "Sequential ModuleList ModuleDict ParameterList ParameterDict"


def container(site: Site) -> Value:
    """``nn.Sequential(a, b)``, ``nn.ModuleList([…])``, ``nn.ModuleDict({…})``."""
    made = site.made("container")
    fill(site, made)
    return value(Ref(made.number))


def constructed(site: Site) -> Value:
    """``super().__init__(…)`` of a class of the program that derives from a container."""
    if site.object is not None:
        fill(site, site.object)
    return NONE


def fill(site: Site, made: Object) -> None:
    """The layers that a container is made with."""
    given = site.arguments.positional
    listed: list[Value] | None = list(given)
    if site.arguments.star:
        listed = None
    if len(given) == 1:
        inner = site.m.known_elements(given[0])
        owner = next(iter(site.m.objects(given[0])), None)
        if owner is not None and owner.number in site.m.counted:
            counting.told(site.m, made, site.m.counted[owner.number])
        if owner is not None and owner.kind == "dict":
            for k, v in site.m.heap.names(owner.number):
                if isinstance(k, Const) or k == ELEMENTS:  # others are notes of its keys and its length
                    site.m.heap.write((made.number, k.value if isinstance(k, Const) else "*"), v)
            return
        if owner is not None and owner.kind == "list":
            listed = inner
            if inner is None:
                site.m.heap.write((made.number, "*"), site.m.contents(owner))
                return
        elif owner is None and inner is not None:
            listed = inner
    if listed is None:
        site.m.heap.write((made.number, "*"), site.arguments.star)
    for i, v in enumerate(listed or []):
        site.m.heap.write((made.number, str(i)), v)


def each(m: Machine, made: Object) -> list[Value] | None:
    """What a loop over a container takes, turn by turn: layers, of a ModuleDict their names; None
    where it is not known how many there are.
    """
    found = _in_it(m, made)
    if any(k == "*" or UNBOUND in v for k, v in found):
        return None
    if made.name in _BY_NAME:
        return [const(k) for k, _ in found]
    numbered = all(k.isdigit() for k, _ in found)
    if not numbered and made.name != "Sequential":
        return None
    return [v for _, v in (sorted(found, key=lambda x: int(x[0])) if numbered else found)]


def children(site: Site, made: Object) -> list[Value]:
    """The layers of a container, in order."""
    return [site.m.bound(v) for _, v in _named(site, made)]


def _named(site: Site, made: Object) -> list[tuple[str, Value]]:
    """The layers of a container with their names."""
    return _in_it(site.m, made)


def _in_it(m: Machine, made: Object) -> list[tuple[str, Value]]:
    """The layers of a container with their names; other fields are no layers."""
    found = [
        (k, v)
        for k, v in m.heap.names(made.number)
        if isinstance(k, str) and not k.startswith(("=", "mode ", "grad", "training"))
    ]
    return [(k, v) for k, v in found if k == "*" or k.isdigit() or any(_layer(m, a) for a in v)]


def _layer(m: Machine, atom: Atom) -> bool:
    """Whether an atom may be a layer."""
    made = m.object(atom)
    if made is None:
        return isinstance(atom, Unknown)
    return made.kind not in ("list", "dict", "set", "function", "class", "partial", "pymodule")


def container_called(site: Site) -> Value:
    """``Sequential`` calls one layer after the other."""
    made = site.object
    assert made is not None
    method = own_method(site, made)
    if not site.base:
        forward(site, made)
    if method is not None:
        return site.m.call(value(method), site.arguments, site.node, site.frame)
    going.takes(site.m, made.number, going.ALL)
    out = site.get(1, "input") or NOTHING
    for name, each in _named(site, made):
        if name == "*":
            for _ in range(2):
                result = site.m.call(each, Arguments([out]), site.node, site.frame)
                out = join(out, result) if out != result else out
                out = result or out
            continue
        out = site.m.call(each, Arguments([out]), site.node, site.frame)
        if not out:
            return NOTHING
    return out


def container_item(site: Site) -> Value:
    """``layers[i]``, ``layers["a"]``."""
    made = site.object
    assert made is not None
    asked = site.get(1) or NOTHING
    if len(asked) > 1 and all(isinstance(a, Const) for a in asked):
        going.picked(site.m, made, site.node, site.frame)
        return join(*(_item(site, made, (a,)) for a in asked))
    return _item(site, made, asked)


def _item(site: Site, made: Object, asked: Value) -> Value:
    """The layer of an index or a name."""
    key = site.m.constant(asked)
    part = next((o for o in site.m.objects(asked) if o.kind == "slice"), None)
    if part is not None:
        return _sliced(site, made, part)
    if key is not None:
        word = str(key.value)
        held = site.m.bound(site.m.heap.read((made.number, word)) or NOTHING)
        every = children(site, made)
        if type(key.value) is int:
            if each(site.m, made) is None:  # in a loop whose turns are executed one by one, its turn
                going.by_turn(site.m, made, key.value, site.node, site.frame)
            else:
                going.by_place(site.m, made, key.value)
            if not held and -len(every) <= key.value < 0:
                held = every[key.value]
        if held:  # a container that one branch makes has its layers wherever it is there
            return held
        if type(key.value) is int:
            return join(*every) or SETTING
    going.picked(site.m, made, site.node, site.frame)
    return join(*children(site, made)) or SETTING


def _sliced(site: Site, made: Object, part: Object) -> Value:
    """``layers[1:]``: a container of some of the layers."""
    every, bounds = children(site, made), []
    for name in ("lower", "upper", "step"):
        held = site.m.heap.read((part.number, name)) or NONE
        bound = site.m.constant(held)
        if bound is None or not isinstance(bound.value, int | None):
            return _some(site, made)
        bounds.append(bound.value)
    first, last, step = bounds
    new = site.m.heap.new(
        "container", made.name, site.node, site.frame.context, key=(made.number, *bounds)
    )
    if step in (None, 1):
        site.m.slices[new.number] = (made.number, going.Part(first or 0, last))
    if each(site.m, made) is not None:
        for i, held in enumerate(every[slice(*bounds)]):
            site.m.heap.write((new.number, str(i)), held)
        return value(Ref(new.number))
    count = counting.as_many(site.m, value(Ref(made.number)))
    if count is not None and not count.base and last is not None and last > 0:
        last = last - count.more if last < count.more else None
        site.m.slices[new.number] = (made.number, going.Part(first or 0, last))
    if step not in (None, 1) or (first or 0) < 0 or (last or 0) > 0 or count is None:
        return _some(site, made)
    site.m.heap.write((new.number, "*"), join(*every))
    counting.told(site.m, new, count.plus((last or 0) - (first or 0)))
    return value(Ref(new.number))


def _some(site: Site, made: Object) -> Value:
    """A container of layers of another one, where it is not known which: any of them may be left out."""
    going.picked(site.m, made, site.node, site.frame)
    new = site.m.heap.new("container", made.name, site.node, site.frame.context, key=(made.number, "some"))
    site.m.heap.write((new.number, "*"), join(*children(site, made)) or SETTING)
    return value(Ref(new.number))


def container_elements(site: Site) -> Value:
    """A loop over a ModuleList."""
    made = site.object
    assert made is not None
    listed = each(site.m, made)
    if listed is not None:
        return join(*listed)
    if made.name in _BY_NAME:
        return SETTING
    return join(*children(site, made)) or NOTHING


def container_append(site: Site) -> Value:
    """``layers.append(x)``, ``add_module(name, x)``."""
    made = site.object
    assert made is not None
    if site.word in ("add_module", "register_module", "update", "__setitem__"):
        name = known(site.get(1) or NOTHING)
        held = site.get(2) or NOTHING
        if isinstance(name, str | int):
            site.m.heap.write((made.number, str(name)), held)
        else:
            site.m.heap.widen((made.number, "*"), held)
        return NONE
    new = site.get(2 if site.word == "insert" else 1) or NOTHING
    before = each(site.m, made)
    if site.word == "append":
        counting.appended(site.m, made, len(before) if before is not None else None, site.node)
    else:
        counting.otherwise(site.m, made)
    listed: list[Value] | None = [new]
    if site.word == "extend":
        listed = site.m.known_elements(new)
        new = site.m.taken(new, site.node, site.frame) if listed is None else join(*listed)
    present = None if site.word == "insert" or made.many else each(site.m, made)
    if present is None or listed is None or made.name in _BY_NAME:
        site.m.heap.widen((made.number, "*"), new)
    else:
        for i, v in enumerate(listed):
            site.m.heap.write((made.number, str(len(present) + i)), v)
    return value(Ref(made.number))


def container_pairs(site: Site) -> Value:
    """``items()`` and ``values()`` of a ModuleDict."""
    made = site.object
    assert made is not None
    found, pairs = _named(site, made), site.word == "items"
    going.takes(site.m, made.number, going.ALL)
    if each(site.m, made) is not None:
        rows = [items([const(k), v]) if pairs else v for k, v in found]
        return site.m.listed(rows, site.node, site.frame)
    every = join(*children(site, made)) or NOTHING
    some = items([SETTING, every]) if pairs else every
    return site.m.listed([some], site.node, site.frame, exact=False)


def container_keys(site: Site) -> Value:
    """``keys()`` of a ModuleDict."""
    made = site.object
    assert made is not None
    listed = each(site.m, made)
    return uniform(site) if listed is None else site.m.listed(listed, site.node, site.frame)


def by_name(site: Site) -> Value:
    """``module._modules``: its layers by their names. What is stored there becomes a part of it."""
    made = site.object
    assert made is not None
    if made.extra == MODEL:
        return children_by_name(site)
    # of what is stored in it the dictionary tells its owner, as that of an object's attributes does
    new = site.m.heap.new("dict", "__dict__", site.node, site.frame.context, extra=made.number, key=(made.number, "_modules"))
    for name, held in _in_it(site.m, made) if "container" in site.m.kinds(made) else _parts(site.m, made):
        if name != "*" and UNBOUND not in held:
            site.m.heap.write((new.number, Const("str", name)), held)
            continue
        going.picked(site.m, made, site.node, site.frame)
        site.m.heap.widen((new.number, ELEMENTS), site.m.bound(held))
        site.m.heap.widen((new.number, KEYS), SETTING)
    return value(Ref(new.number))


def _parts(m: Machine, made: Object) -> Iterator[tuple[str, Value]]:
    """The attributes of a module that are layers, with their names; of what may be something else as well it is not known whether it is there."""
    for name, held in m.heap.names(made.number):
        layers = tuple(a for a in held if isinstance(a, Unknown) or ((o := m.object(a)) is not None and is_module(m, o)))
        if layers and isinstance(name, str):
            yield name, layers if layers == held else join(layers, (UNBOUND,))


def container_length(site: Site) -> Value:
    """``len(layers)``."""
    made = site.object
    return counting.length_of(site.m, made) if made is not None else SETTING


ROWS = (
    Row(prefixed("torch.nn.", CONTAINERS), container, source=_DOC),
    Row(methods("container", "__init__"), constructed, source=_DOC),
    Row(methods("container", "__call__ forward"), container_called, source=_DOC),
    Row(methods("container", "__getitem__"), container_item, source=_DOC),
    Row(methods("container", "__iter__"), container_elements, source=_DOC),
    Row(
        methods("container", "append insert extend add_module __setitem__"),
        container_append,
        source=_DOC,
    ),
    Row(methods("container", "items values"), container_pairs, source=_DOC),
    Row(methods("container", "keys"), container_keys, source=_DOC),
    Row(methods("container", "__len__"), container_length, source=_DOC),
)  # fmt: skip
ATTRIBUTES = (Row(methods("module|container", "_modules"), by_name, source="https://docs.pytorch.org/docs/stable/_modules/torch/nn/modules/module.html"),)


def classes(name: str) -> str | None:
    """What the instances of a class are."""
    head, _, word = name.rpartition(".")
    return "container" if head == "torch.nn" and word in CONTAINERS.split() else None
