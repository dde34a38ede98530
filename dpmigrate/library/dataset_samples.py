"""One sample of a data set, and in which order a data set gives its samples
(https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.Dataset).
"""

from __future__ import annotations

import ast
from functools import lru_cache

from dpmigrate.execution import identity, placements
from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.joins import join
from dpmigrate.execution.objects import EXISTS, Delta, Object
from dpmigrate.execution.values import (
    SETTING,
    Atom,
    Bound,
    Const,
    Data,
    Items,
    Ref,
    Value,
    const,
    items,
    value,
)
from dpmigrate.library.sites import Site

#: the event of a data set that gives its samples in an order of its own
OWN_ORDER = "order of its own"
#: data sets of torchvision that give an image, put through ``transform``, and a target
PAIRS = frozenset((
    "MNIST", "FashionMNIST", "KMNIST", "EMNIST", "QMNIST", "CIFAR10", "CIFAR100", "SVHN", "STL10", "ImageFolder", "DatasetFolder", "ImageNet", "FakeData",
    "Omniglot", "USPS", "Food101", "OxfordIIITPet", "Flowers102", "Caltech101", "Caltech256", "Places365", "StanfordCars", "GTSRB", "DTD", "EuroSAT",
    "FGVCAircraft",
))  # fmt: skip
#: data sets that are a part of another one
_PARTS = ("Subset", "random_split")
#: objects of the program that keep what a sample leaves for the next one
_STATE = ("instance", "list", "dict", "set")


def sample(site: Site, dataset: Value, index: Value) -> Value:
    """One sample of a data set, as its ``__getitem__`` gives it."""
    found: list[Value] = []
    for atom in dataset:
        made = site.m.object(atom)
        if made is None:
            found.append(SETTING)
            continue
        method = site.m.method_of(made, "__getitem__") or site.m.method_of(made, "__iter__")
        if made.kind == "instance" and method is not None:
            found.append(_item_of(site, method, index))
            continue
        if site.m.heap.read((made.number, "dealing")):
            own_order(site)
        inner = site.m.heap.read((made.number, "dataset"))
        tensors = site.m.heap.read((made.number, "tensors"))
        if tensors:
            found.append(_unbatched(tensors))
        elif inner:
            one = sample(site, inner, index)
            found.append(one if made.name in _PARTS else _apart(one))
        elif made.kind == "list":
            found.append(site.m.contents(made) or SETTING)
        else:
            found.append(_transformed(site, made) or value(Data("samples", placements.UNIFORM)))
    return join(*(found if len(found) == 1 else map(_apart, found))) or SETTING


def _transformed(site: Site, made: Object) -> Value | None:
    """What a transform of the program makes of an image, as one that gives several views of it, and its target; None where the transform is a library's."""
    transform = site.m.heap.read((made.number, "transform")) if made.name in PAIRS else None
    if not transform or not all(_of_program(site, a) for a in transform):
        return None
    image = value(Data("samples", placements.UNIFORM))
    one, _ = _worked_out(site, transform, image)
    return items([one or SETTING, image])


def _of_program(site: Site, a: Atom) -> bool:
    """Whether what is called is the program's."""
    made = site.m.object(a) if isinstance(a, Ref) else None
    return made is not None and (made.kind == "function" or (made.kind == "instance" and site.m.method_of(made, "__call__") is not None))


def _item_of(site: Site, method: Atom, index: Value) -> Value:
    """``dataset[i]``: what the data set holds itself, and gives as it is, all samples share."""
    assert isinstance(method, Bound)
    fields = site.m.heap.names(method.receiver.object) if isinstance(method.receiver, Ref) else ()
    held = identity.NOWHERE.union(*(identity.is_held(v) for _, v in fields))
    frozen, delta = _worked_out(site, value(method), index)
    node = site.m.heap.objects[method.function].extra.node
    if not _asks_which(node) and (_takes_next(node) or _leaves_state(site, delta)):
        own_order(site)
    if not _writes(site, delta, node):
        frozen = _shared(frozen, held)
    return frozen or SETTING


def _shared(v: Value, held: frozenset[int]) -> Value:
    """A sample in which the tensors that the data set holds are marked: they are those of all samples."""
    out: list[Atom] = []
    for a in v:
        if isinstance(a, Items):
            a = Items(tuple(_shared(i, held) for i in a.items))
        elif isinstance(a, Data) and a.kind in ("tensor", "array") and a.placement.kind in placements.EQUAL:
            a = a._replace(alike=bool(a.held) and a.held <= held and not a.sources)
        out.append(a)
    return tuple(out)


def _apart(v: Value) -> Value:
    """A sample of one of several data sets: each may share other tensors."""
    return tuple(
        Items(tuple(map(_apart, a.items))) if isinstance(a, Items) else a._replace(alike=False) if isinstance(a, Data) else a
        for a in v
    )


def _worked_out(site: Site, function: Value, given: Value) -> tuple[Value, Delta]:
    """What a function of the program gives of a sample, and what it leaves; draws in it come from worker streams.

    What no table knows of it is not missed: whatever a sample is made of, batches are rows of it.
    """
    missed = dict(site.m.trace.missed)
    site.m.heap.mark()
    result = site.m.call(function, Arguments([given]), site.node, site.frame)
    result = site.m.elements(result, site.node, site.frame) if _generator(site, result) else result
    frozen = _frozen(site, result, 4)
    delta = site.m.heap.rollback()
    site.m.trace.missed = missed
    return frozen, delta


def own_order(site: Site) -> None:
    """Samples come in an order of the data set's own, whichever is asked for."""
    if site.object is not None and site.object.kind == "loader":
        site.event(OWN_ORDER, loader=value(Ref(site.object.number)))


@lru_cache(4096)
def _asks_which(node: ast.AST) -> bool:
    """Whether ``__getitem__`` reads the index that it is given, for more than a test of its bounds."""
    if not isinstance(node, ast.FunctionDef) or node.name != "__getitem__":
        return True  # an iterable data set goes on by itself
    if node.args.vararg or len(node.args.args) < 2:
        return True
    bounds = {
        n
        for a in ast.walk(node)
        if isinstance(a, ast.Assert | ast.Raise)
        or (isinstance(a, ast.If) and not a.orelse and all(isinstance(s, ast.Raise) for s in a.body))
        for n in ast.walk(a)
    }
    index = node.args.args[1].arg
    return any(
        isinstance(n, ast.Name) and n.id == index and isinstance(n.ctx, ast.Load) and n not in bounds
        for n in ast.walk(node)
    )


@lru_cache(4096)
def _takes_next(node: ast.AST) -> bool:
    """Whether ``__getitem__`` goes on with an iterator: ``next(self.rows)``."""
    called = [n.func for n in ast.walk(node) if isinstance(n, ast.Call)]
    return any(isinstance(f, ast.Name) and f.id == "next" for f in called)


def _leaves_state(site: Site, delta: Delta) -> bool:
    """Whether a sample changes what was there before it: what the next one finds depends on it."""
    objects = site.m.heap.objects
    made = {n for n, name in delta if name == EXISTS}
    return any(
        n in objects and n not in made and objects[n].kind in _STATE and not str(name).startswith("#")
        and not identity.alike(site.m.heap.read((n, name)), new)
        for (n, name), new in delta.items()
    )  # fmt: skip


def _writes(site: Site, delta: Delta, node: ast.AST) -> bool:
    """Whether a sample may write into what was there before it, be it the same on paper."""
    objects = site.m.heap.objects
    made = {n for n, name in delta if name == EXISTS}
    stored = any(n in objects and n not in made and objects[n].kind in _STATE for n, name in delta if not str(name).startswith("#"))
    return stored or any(
        (isinstance(n, ast.Attribute) and n.attr.endswith("_") and not n.attr.endswith("__"))
        or isinstance(n, ast.AugAssign)
        or (isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store))
        for n in ast.walk(node)
    )  # fmt: skip


def _generator(site: Site, v: Value) -> bool:
    return any(o.kind == "generator" for o in site.m.objects(v))


def _frozen(site: Site, v: Value, depth: int) -> Value:
    """A sample as a value that outlives the branch: dictionaries and lists become tuples with
    names.
    """
    found: list[Atom] = []
    for a in v:
        made = site.m.object(a)
        if isinstance(a, Items):
            found.append(Items(tuple(_frozen(site, i, depth - 1) for i in a.items)))
        elif made is not None and made.kind in ("list", "dict") and depth:
            held = [(n, site.m.bound(x)) for n, x in site.m.heap.names(made.number)]
            fields = tuple(
                items(
                    [(n,) if isinstance(n, Const) else const(str(n)), _frozen(site, x, depth - 1)]
                )
                for n, x in held
            )
            found.append(Items((const(f"<{made.kind}>"), *fields)))
        else:
            found.append(a)
    return tuple(found)


def _unbatched(v: Value) -> Value:
    """A sample of tensors that lie side by side."""
    found: list[Atom] = []
    for a in v:
        if isinstance(a, Items):
            found.append(Items(tuple(_unbatched(i) for i in a.items)))
        elif isinstance(a, Data):
            axes = a.axes - 1 if a.axes else None
            found.append(a._replace(axes=axes))
        else:
            found.append(a)
    return tuple(found)
