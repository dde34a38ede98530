"""Python's functions that ask objects for their attributes and classes: ``getattr``, ``isinstance``
(https://docs.python.org/3/library/functions.html).
"""

from __future__ import annotations

from dpmigrate.execution import divergence
from dpmigrate.execution.joins import join
from dpmigrate.execution.objects import ELEMENTS
from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    RESULTS,
    SETTING,
    Atom,
    Bound,
    Const,
    Data,
    Foreign,
    Items,
    Method,
    Ref,
    Value,
    const,
    known,
    value,
)
from dpmigrate.library.effects import uniform
from dpmigrate.library.layer_table import derives
from dpmigrate.library.module_tree import MODULES
from dpmigrate.library.public_attributes import BASES_BY_NAME
from dpmigrate.library.results import fields_of, tuple_class
from dpmigrate.library.sites import Row, Site

_DOC = "https://docs.python.org/3/library/functions.html"


def attribute(site: Site) -> Value:
    """``getattr(x, name)``: of a name that is known."""
    owner, key = site.get(0) or NOTHING, site.get(1) or NOTHING
    names = [a.value for a in key if isinstance(a, Const) and isinstance(a.value, str)]
    default = site.get(2) or NOTHING
    if names and len(names) == len(key):
        return join(*[_got(site, atom, n, default) for atom in owner for n in names])
    guess = known(key)
    libraries = [a for a in owner if isinstance(a, Foreign)]
    if isinstance(guess, str):
        return join(site.m.attribute(owner, guess, site.node, site.frame), default)
    if libraries and len(libraries) == len(owner):
        return join(*[value(Foreign(f"{a.name}.*")) for a in libraries], default)
    found = [
        _of_stars(held) if name == "*" else held
        for o in site.m.objects(owner)
        for name, held in site.m.heap.names(o.number)
    ]
    meant = tuple(a for a in join(*found) if not (isinstance(a, Foreign) and _is_aside(a.name)))
    return join(meant, default) or SETTING


#: what a module of the program may import to derive from it, or to wrap tensors in: no name that is chosen
#: by a setting means that
_BASES = frozenset((
    "torch.autograd.Function", "torch.autograd.Variable", "torch.Variable", "torch.nn.Module", "torch.Tensor",
    "torch.nn.Parameter", "torch.utils.data.Dataset", "abc.ABC", "abc.abstractmethod",
))  # fmt: skip

#: and what it may import for its annotations
_ANNOTATIONS = ("typing.", "typing_extensions.", "collections.abc.")


def _is_aside(name: str) -> bool:
    return name in _BASES or name.startswith(_ANNOTATIONS)


def _of_stars(modules: Value) -> Value:
    """Whatever a module of the program has by a star import of a library."""
    return tuple(Foreign(f"{a.name}.*") if isinstance(a, Foreign) else a for a in modules)


def _got(site: Site, atom: Atom, name: str, default: Value) -> Value:
    """An attribute of an atom, or the default where it may have none."""
    has = _has(site, atom, name) if default else True
    if has is False:
        return default
    found = site.m.attribute((atom,), name, site.node, site.frame)
    return found if has else _differing(site, join(found, default), (atom,), name)


def set_attribute(site: Site) -> Value:
    """``setattr(x, name, v)``."""
    owner, key, new = (site.get(i) or NOTHING for i in range(3))
    name = known(key)
    if isinstance(name, str):
        site.m.set_attribute(owner, name, new, site.node, site.frame)
    else:
        for o in site.m.objects(owner):
            site.m.heap.widen((o.number, "*"), new)
    return NONE


def set_plainly(site: Site) -> Value:
    """``object.__setattr__(x, name, v)``."""
    owner, key, new = (site.get(i) or NOTHING for i in range(3))
    site.m.set_plainly(owner, key, new, site.node, site.frame)
    return NONE


def names_of(site: Site) -> Value:
    """``dir(x)``: the names that a module of the program binds, in the order of the alphabet."""
    found = site.m.objects(site.get(0) or NOTHING)
    if len(found) != 1 or found[0].kind != "pymodule":
        return uniform(site)
    held = dict(site.m.heap.names(found[0].number))
    names = [n for n in held if isinstance(n, str)]
    if len(names) != len(held) or "*" in held or any(site.m.bound(v) != v for v in held.values()):
        return uniform(site)  # it has others, or may not have all of these
    return value(Items(tuple(const(n) for n in sorted(names))))


def has_attribute(site: Site) -> Value:
    """``hasattr(x, name)``."""
    owner, name = site.get(0) or NOTHING, known(site.get(1) or NOTHING)
    if not isinstance(name, str):
        return SETTING
    raised = len(site.m.raised)
    answers = {_has(site, atom, name) for atom in owner}
    if len(answers) == 1 and None not in answers:
        return const(answers.pop())
    if site.m.raised[raised:]:  # on some ranks alone
        return divergence.differing(SETTING, site.m.raised[-1][1])
    return _differing(site, SETTING, owner, name)


def _differing(site: Site, found: Value, owner: Value, name: str) -> Value:
    """What is said of an attribute where some ranks alone have it."""
    held = (site.m.heap.read((o.number, name)) for o in site.m.objects(owner))
    why = next((p for v in held if (p := divergence.presence(v)) is not None), None)
    return divergence.differing(found, why) if why is not None else divergence.whichever(found, owner)


def _has(site: Site, atom: Atom, name: str) -> bool | None:
    """Whether an atom has an attribute; None where that is not known."""
    made = site.m.object(atom)
    if made is None:
        return None
    held = site.m.heap.read((made.number, name))
    if held:
        return True if site.m.bound(held) == held else None
    cls = site.m.class_of(made)
    if cls is not None and made.kind == "instance":
        if site.m.in_class(cls, name):
            return True
        # wrappers hold their model as ``module``; no class of a library of modules has that
        if site.m.method_of(made, "__getattr__") is not None:
            site.m.attribute(value(atom), name, site.node, site.frame)  # it may find it all the same
            return None
        bare = not cls.extra.kinds or name == "module" or _lacking(cls.extra.foreign, name)
        others = site.m.heap.read((made.number, "*")) or site.m.heap.read((made.number, ELEMENTS))
        return False if bare and not (cls.extra.unknown or others) else None
    if name == "module" and made.kind in ("wrapper", "module", "container"):
        return made.kind == "wrapper"
    return None


def _lacking(bases: tuple[str, ...], name: str) -> bool:
    """Whether classes of libraries that an object derives from certainly have no such attribute."""
    known = all(base in BASES_BY_NAME for base in bases)
    return known and not name.startswith("__") and not any(name in BASES_BY_NAME[b] for b in bases)


def is_instance(site: Site) -> Value:
    """``isinstance(x, C)``: known for the program's own classes and for literals."""
    owner, wanted = site.get(0) or NOTHING, site.get(1) or NOTHING
    classes = site.deep(wanted)
    site.event("class asked", of=owner, classes=tuple(classes))
    answers = {_is(site, a, c) for a in owner for c in classes if not isinstance(c, Items)}
    if True in answers and answers <= {True, False} and len(owner) == 1:
        return const(True)
    return const(False) if answers == {False} else divergence.whichever(SETTING, owner)


_LITERALS = {"list": "list", "dict": "dict", "set": "set"}


def _is(site: Site, atom: object, cls: object) -> bool | None:
    name = cls.name if isinstance(cls, Foreign) else ""
    made = site.m.object(atom) if isinstance(atom, Ref) else None
    wanted = site.m.object(cls) if isinstance(cls, Ref) else None
    if named := tuple_class(name):
        return _is_named(atom, named)
    if made is not None and made.kind in _LITERALS and name.startswith("builtins."):
        return name == f"builtins.{made.kind}"
    if isinstance(atom, Items) and name.startswith("builtins."):
        return name == "builtins.tuple"
    if isinstance(atom, Items) and name == "torch.Tensor":
        return False
    if isinstance(atom, Const) and name.startswith("builtins."):
        return name == f"builtins.{atom.type}" or (atom.type == "bool" and name == "builtins.int")
    if isinstance(atom, Data):
        tensor = atom.kind in ("tensor", RESULTS)
        if name == "torch.Tensor":
            return tensor
        if name.startswith("builtins.") or wanted is not None:
            return False if tensor else None
        return None
    if made is not None and made.kind == "instance" and wanted is not None:
        own = site.m.class_of(made)
        return own is not None and wanted.number in own.extra.order
    if made is not None and name.startswith("torch.nn.") and made.kind in ("module", "container"):
        answer = derives(made.name, name.rpartition(".")[2])
        if answer is not None:
            return answer
    if made is not None and name:
        kinds = site.m.library.kinds(name)
        if made.kind in kinds or kinds & site.m.kinds(made):
            if "wrapper" in kinds or "wrapper" in site.m.kinds(made):
                return made.name == name.rsplit(".", 1)[-1]
            return True if name in ("torch.nn.Module",) else None
        return False if made.kind in ("instance", "module", "wrapper") and kinds else None
    return None


def _is_named(atom: object, named: str) -> bool | None:
    """Whether an atom is a named tuple of a library; tuples whose class is not known may be one."""
    if isinstance(atom, Items):
        return atom.named == named if atom.named or len(atom.items) != len(fields_of(named)) else None
    return False if isinstance(atom, Const) or (isinstance(atom, Data) and atom.kind == "tensor") else None


def is_subclass(site: Site) -> Value:
    """``issubclass(C, Base)``, known where ``Base`` is one of the program's own classes."""
    owner, wanted = site.get(0) or NOTHING, site.get(1) or NOTHING
    answers = {_derives(site, a, b) for a in owner for b in site.deep(wanted) if not isinstance(b, Items)}
    if len(answers) == 1 and (len(owner) == 1 or answers == {False}) and None not in answers:
        return const(answers.pop())
    return divergence.whichever(SETTING, owner)


def _derives(site: Site, atom: Atom, base: object) -> bool | None:
    """What is no class of the program derives from none of its classes; what is no class at all raises."""
    wanted = site.m.object(base) if isinstance(base, Ref) else None
    if wanted is None or wanted.kind != "class":
        return None
    made = site.m.object(atom)
    if made is None:
        return False if isinstance(atom, Foreign | Const) else None
    if made.kind == "class":
        return wanted.number in made.extra.order
    return None if made.kind in ("opaque", "any") else False


def is_callable(site: Site) -> Value:
    """``callable(x)``: known of functions, classes and modules, and of what is plainly data."""
    owner = site.get(0) or NOTHING
    answers = {_callable(site, a) for a in owner}
    if None not in answers and len(answers) == 1:
        return const(answers.pop())
    return divergence.whichever(SETTING, owner)


def _callable(site: Site, atom: Atom) -> bool | None:
    made = site.m.object(atom)
    if made is not None:
        if made.kind in _LITERALS:
            return False
        called = made.kind in ("function", "class") or bool(site.m.kinds(made) & MODULES) or site.m.method_of(made, "__call__") is not None
        return True if called else None
    if isinstance(atom, Bound | Method):
        return True
    plain = isinstance(atom, Const | Items) or (isinstance(atom, Data) and atom.kind in ("tensor", "number", "text"))
    return False if plain else None


def type_of(site: Site) -> Value:
    """``type(x)``."""
    given = site.get(0) or NOTHING
    site.event("class read", of=given)
    classes = {a: found for a in given if (found := _class(site, a))}
    own = [c for a, c in classes.items() if isinstance(a, Ref) and site.m.class_of(site.m.heap.objects[a.object])]
    return join(*classes.values()) if len(classes) == len(given) > 0 else join(*own) or SETTING


def _class(site: Site, atom: Atom) -> Value:
    """The class of an atom, where it is certain."""
    made = site.m.object(atom)
    if made is not None:
        cls = site.m.class_of(made)
        plain = made.kind in _LITERALS and made.name == made.kind
        return value(Ref(cls.number)) if cls is not None else value(Foreign(f"builtins.{made.kind}")) if plain else NOTHING
    if isinstance(atom, Items):
        return value(Foreign("builtins.tuple")) if not atom.named else NOTHING
    if isinstance(atom, Const) and atom.value is not None:
        return value(Foreign(f"builtins.{atom.type}"))
    return value(Foreign("torch.Tensor")) if isinstance(atom, Data) and atom.kind == "tensor" else NOTHING


ROWS = (
    Row("builtins.getattr", attribute, source=_DOC),
    Row("builtins.setattr", set_attribute, source=_DOC),
    Row("builtins.object.__setattr__", set_plainly, source=_DOC),
    Row("builtins.hasattr", has_attribute, source=_DOC),
    Row("builtins.isinstance", is_instance, source=_DOC),
    Row("builtins.issubclass", is_subclass, source=_DOC),
    Row("builtins.callable", is_callable, source=_DOC),
    Row("builtins.type", type_of, source=_DOC),
    Row("builtins.dir", names_of, source=_DOC),
)
