"""Containers of modules: Sequential, ModuleList, ModuleDict
(https://docs.pytorch.org/docs/stable/nn.html).
"""

from __future__ import annotations

from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.heap import Object
from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    SETTING,
    Atom,
    Const,
    Ref,
    Unknown,
    Value,
    const,
    items,
    join,
    known,
    value,
)
from dpmigrate.library.effects import uniform
from dpmigrate.library.modules import forward, own_method
from dpmigrate.library.sites import Row, Site, methods, prefixed

_DOC = "https://docs.pytorch.org/docs/stable/nn.html#containers"
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
        if owner is not None and owner.kind == "dict":
            for k, v in site.m.heap.names(owner.number):
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


def children(site: Site, made: Object) -> list[Value]:
    """The layers of a container, in order."""
    return [site.m.bound(v) for _, v in _named(site, made)]


def _named(site: Site, made: Object) -> list[tuple[str, Value]]:
    """The layers of a container with their names; other fields are no layers."""
    found = [
        (k, v)
        for k, v in site.m.heap.names(made.number)
        if isinstance(k, str) and not k.startswith(("=", "mode ", "grad", "training"))
    ]
    return [(k, v) for k, v in found if k == "*" or k.isdigit() or any(_layer(site, a) for a in v)]


def _layer(site: Site, atom: Atom) -> bool:
    """Whether an atom may be a layer."""
    made = site.m.object(atom)
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
    key = site.m.constant(site.get(1) or NOTHING)
    part = next((o for o in site.m.objects(site.get(1) or NOTHING) if o.kind == "slice"), None)
    if part is not None:
        return _sliced(site, made, part)
    if key is not None:
        word = str(key.value)
        held = site.m.bound(site.m.heap.read((made.number, word)) or NOTHING)
        if held:  # a container that one branch makes has its layers wherever it is there
            return held
        if isinstance(key.value, int) and key.value < 0:
            every = children(site, made)
            if -len(every) <= key.value:
                return every[key.value]
    return join(*children(site, made)) or SETTING


def _sliced(site: Site, made: Object, part: Object) -> Value:
    """``layers[1:]``: a container of some of the layers."""
    every, bounds = children(site, made), []
    for name in ("lower", "upper", "step"):
        held = site.m.heap.read((part.number, name)) or NONE
        bound = site.m.constant(held)
        if bound is None or not isinstance(bound.value, int | None):
            return site.unknown("which layers of a container these are")
        bounds.append(bound.value)
    if site.m.heap.read((made.number, "*")):
        return site.unknown("which layers of a container these are")
    new = site.m.heap.new(
        "container", made.name, site.node, site.frame.context, key=(made.number, *bounds)
    )
    for i, held in enumerate(every[slice(*bounds)]):
        site.m.heap.write((new.number, str(i)), held)
    return value(Ref(new.number))


def container_elements(site: Site) -> Value:
    """A loop over a ModuleList."""
    made = site.object
    assert made is not None
    if made.name in ("ModuleDict", "ParameterDict"):
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
    site.m.heap.widen((made.number, "*"), site.get(1) or NOTHING)
    return value(Ref(made.number))


def container_pairs(site: Site) -> Value:
    """``items()`` and ``values()`` of a ModuleDict."""
    made = site.object
    assert made is not None
    every = join(*children(site, made)) or NOTHING
    each = items([SETTING, every]) if site.word in ("items", "named_children") else every
    return site.m.listed([each], site.node, site.frame, exact=False)


def container_length(site: Site) -> Value:
    """``len(layers)``."""
    made = site.object
    if made is None or site.m.heap.read((made.number, "*")):
        return SETTING
    return const(len(children(site, made)))


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
    Row(methods("container", "keys"), uniform, source=_DOC),
    Row(methods("container", "__len__"), container_length, source=_DOC),
)  # fmt: skip


def classes(name: str) -> str | None:
    """What the instances of a class are."""
    head, _, word = name.rpartition(".")
    return "container" if head == "torch.nn" and word in CONTAINERS.split() else None
