"""Python's own functions (https://docs.python.org/3/library/functions.html)."""

from __future__ import annotations

from dpmigrate.execution import arithmetic, placements
from dpmigrate.execution.foreign import Arguments
from dpmigrate.execution.names import LENGTH
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    SETTING,
    Atom,
    Const,
    Data,
    Foreign,
    Items,
    Ref,
    Setting,
    Value,
    const,
    data,
    items,
    join,
    known,
    only,
    placement_of,
    value,
)
from dpmigrate.library.effects import cut, none, number, reduce, uniform
from dpmigrate.library.sites import Effect, Row, Site, rows_of, table


def length(site: Site) -> Value:
    """``len(x)``: of rows their number, of a container what is known of it."""
    given = site.get(0) or ()
    found: list[Value] = []
    for atom in given:
        made = site.m.object(atom)
        listed = site.m.known_elements((atom,))
        if isinstance(atom, Data):
            rows = rows_of((atom,))
            p = placements.UNIFORM if rows is None else placements.size(rows.placement.segments)
            if rows is not None and rows.placement.ragged:
                p = placements.SUM
            if atom.placement.kind is Kind.UNKNOWN:
                p = placements.UNKNOWN
            found.append(
                arithmetic.derived("len", p, [(atom,)], site.node, kind="number", gradient="none")
            )
        elif listed is not None:
            found.append(const(len(listed)))
        elif made is not None and (method := site.m.method_of(made, "__len__")) is not None:
            found.append(site.m.call(value(method), Arguments(), site.node, site.frame))
        elif made is not None:
            held = site.m.heap.read((made.number, LENGTH))
            own = site.m.library.method(site.m, atom, "__len__", Arguments(), site.node, site.frame)
            found.append(held or own or SETTING)
        else:
            found.append(SETTING)
    return join(*found)


def range_(site: Site) -> Value:
    """``range(n)``: as many numbers as its bounds say."""
    given = site.arguments.all()
    try:
        bounds = [only(v) for v in given]
        exact = range(*bounds)
        if len(exact) <= 12:
            return site.m.listed([const(i) for i in exact], site.node, site.frame)
    except (LookupError, TypeError, ValueError):
        pass
    made = site.made("iterator")
    count = arithmetic.elementwise("range", given, site.node) if any(map(data, given)) else SETTING
    if len(given) == 1:
        count = given[0]
    site.m.heap.write((made.number, LENGTH), count)
    site.m.heap.write((made.number, "*"), SETTING)
    return value(Ref(made.number))


def enumerate_(site: Site) -> Value:
    """``enumerate(x)``."""
    return _paired(site, [None, site.get(0) or NOTHING])


def zip_(site: Site) -> Value:
    """``zip(a, b)``."""
    return _paired(site, list(site.arguments.positional))


def _paired(site: Site, sources: list[Value | None]) -> Value:
    listed = [site.m.known_elements(s) if s is not None else None for s in sources]
    real = [x for x in listed if x is not None]
    if real and all(x is not None or s is None for x, s in zip(listed, sources, strict=True)):
        count = min(len(x) for x in real)
        if count <= 12:
            rows = [
                items(x[i] if x is not None else const(i) for x in listed) for i in range(count)
            ]
            return site.m.listed(rows, site.node, site.frame)
    made = site.made("iterator", extra=len(sources))
    for i, s in enumerate(sources):
        site.m.heap.write((made.number, f"source {i}"), s if s is not None else SETTING)
    return value(Ref(made.number))


def wrapped(site: Site) -> Value:
    """An iterator over what something else gives: ``iter``, ``reversed``, a progress bar."""
    source = site.get(0, "iterable")
    if source is None:
        return site.ref("iterator")
    listed = site.m.known_elements(source)
    if listed is not None and site.word == "reversed":
        return site.m.listed(listed[::-1], site.node, site.frame)
    made = site.made("iterator", extra=1)
    site.m.heap.write((made.number, "source 0"), source)
    if site.word == "iter":
        site.m.library.begun(site.m, source, site.node, site.frame)
    return value(Ref(made.number))


def iterate(site: Site) -> Value | None:
    """The elements of an iterator, taken from what it goes over."""
    made = site.object
    assert made is not None
    count = made.extra
    if not isinstance(count, int):
        held = site.m.heap.read((made.number, "*"))
        return held or SETTING
    given = (site.m.heap.read((made.number, f"source {i}")) or NOTHING for i in range(count))
    sources = [site.m.bound(g) for g in given]
    each = [SETTING if s == SETTING else site.m.elements(s, site.node, site.frame) for s in sources]
    return each[0] if count == 1 and site.m.heap.objects[made.number].name != "zip" else items(each)


def mapped(site: Site) -> Value:
    """``map(f, xs)``: the function is called for each element."""
    function, *sources = site.arguments.positional or [NOTHING]
    listed = [site.m.known_elements(s, 12) for s in sources]
    known_all = [x for x in listed if x is not None]
    if known_all and len(known_all) == len(listed):
        rows = list(zip(*known_all, strict=False))
        found = [_call(site, function, list(r)) for r in rows]
        return site.m.listed(found, site.node, site.frame)
    elements = [site.m.elements(s, site.node, site.frame) for s in sources]
    return site.m.listed([_call(site, function, elements)], site.node, site.frame, exact=False)


def _call(site: Site, function: Value, given: list[Value]) -> Value:
    return site.m.call(function, Arguments(given), site.node, site.frame)


def filtered(site: Site) -> Value:
    """``filter(f, xs)``: of parameters some, of rows some."""
    function, source = site.get(0) or NOTHING, site.get(1) or NOTHING
    elements = site.m.elements(source, site.node, site.frame)
    if function != NONE:
        _call(site, function, [elements])
    return site.m.listed([elements], site.node, site.frame, exact=False)


def collected(kind: str) -> Effect:
    """``list(x)``, ``tuple(x)``, ``set(x)``, ``sorted(x)``."""

    def effect(site: Site) -> Value:
        source = site.get(0)
        if source is None:
            return site.m.listed([], site.node, site.frame, kind=kind)
        listed = site.m.known_elements(source)
        if listed is not None:
            if site.word == "tuple":
                return items(listed)
            exact = site.word not in ("set", "frozenset", "sorted")
            return site.m.listed(listed, site.node, site.frame, exact=exact, kind=kind)
        site.m.library.begun(site.m, source, site.node, site.frame)
        elements = site.m.elements(source, site.node, site.frame)
        made = site.m.listed([elements], site.node, site.frame, exact=False, kind=kind)
        for atom in source:
            other = site.m.object(atom)
            count = site.m.heap.read((other.number, LENGTH)) if other is not None else None
            if count and data(count):
                site.m.heap.write((site.m.objects(made)[0].number, LENGTH), count)
        return made

    return effect


def dictionary(site: Site) -> Value:
    """``dict(a=1)``, ``dict(other)``, ``dict(pairs)``."""
    made = site.made("dict")
    for v in site.arguments.positional:
        listed = site.m.known_elements(v)
        pairs = [site.m.known_elements(p) for p in listed] if listed is not None else []
        if (
            listed is not None
            and all(p is not None and len(p) == 2 for p in pairs)
            and not _dicts(site, v)
        ):
            for p in pairs:
                assert p is not None
                site.m.set_item(value(Ref(made.number)), p[0], p[1], site.node, site.frame)
        else:
            site.m.merge(made, v, site.node, site.frame)
    for name, v in site.arguments.keywords.items():
        site.m.heap.write((made.number, Const("str", name)), v)
    if site.arguments.stars:
        site.m.heap.widen((made.number, "*"), site.arguments.stars)
    return value(Ref(made.number))


def _dicts(site: Site, v: Value) -> bool:
    return any(o.kind == "dict" for o in site.m.objects(v))


def next_(site: Site) -> Value:
    """``next(it)``, ``next(it, default)``."""
    source = site.get(0) or NOTHING
    return join(site.m.elements(source, site.node, site.frame), site.get(1) or NOTHING)


def attribute(site: Site) -> Value:
    """``getattr(x, name)``: of a name that is known."""
    owner, key = site.get(0) or NOTHING, site.get(1) or NOTHING
    names = [a.value for a in key if isinstance(a, Const) and isinstance(a.value, str)]
    default = site.get(2) or NOTHING
    if names and len(names) == len(key):
        found = [site.m.attribute(owner, n, site.node, site.frame) for n in names]
        return join(*found, default)
    guess = known(key)
    libraries = [a for a in owner if isinstance(a, Foreign)]
    if isinstance(guess, str):
        return join(site.m.attribute(owner, guess, site.node, site.frame), default)
    if libraries and len(libraries) == len(owner):
        return join(*[value(Foreign(f"{a.name}.*")) for a in libraries], default)
    found = [held for o in site.m.objects(owner) for _, held in site.m.heap.names(o.number)]
    return join(*found, default) or SETTING


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


def has_attribute(site: Site) -> Value:
    """``hasattr(x, name)``."""
    owner, name = site.get(0) or NOTHING, known(site.get(1) or NOTHING)
    if not isinstance(name, str):
        return SETTING
    answers = {_has(site, atom, name) for atom in owner}
    return const(answers.pop()) if len(answers) == 1 and None not in answers else SETTING


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
        plain = not cls.extra.unknown and (not cls.extra.kinds or name == "module")
        return False if plain else None
    return name == "module" if made.kind in ("wrapper", "module", "container") else None


def is_instance(site: Site) -> Value:
    """``isinstance(x, C)``: known for the program's own classes and for literals."""
    owner, wanted = site.get(0) or NOTHING, site.get(1) or NOTHING
    classes = site.deep(wanted)
    answers = {_is(site, a, c) for a in owner for c in classes if not isinstance(c, Items)}
    if True in answers and answers <= {True, False} and len(owner) == 1:
        return const(True)
    return const(False) if answers == {False} else SETTING


_LITERALS = {"list": "list", "dict": "dict", "set": "set"}


def _is(site: Site, atom: object, cls: object) -> bool | None:
    name = cls.name if isinstance(cls, Foreign) else ""
    made = site.m.object(atom) if isinstance(atom, Ref) else None
    wanted = site.m.object(cls) if isinstance(cls, Ref) else None
    if made is not None and made.kind in _LITERALS and name.startswith("builtins."):
        return name == f"builtins.{made.kind}"
    if isinstance(atom, Items) and name.startswith("builtins."):
        return name == "builtins.tuple"
    if isinstance(atom, Const) and name.startswith("builtins."):
        return name == f"builtins.{atom.type}" or (atom.type == "bool" and name == "builtins.int")
    if isinstance(atom, Data):
        if name == "torch.Tensor":
            return atom.kind == "tensor"
        if name.startswith("builtins.") or wanted is not None:
            return False if atom.kind == "tensor" else None
        return None
    if made is not None and made.kind == "instance" and wanted is not None:
        own = site.m.class_of(made)
        return own is not None and wanted.number in own.extra.order
    if made is not None and name:
        kinds = site.m.library.kinds(name)
        if made.kind in kinds or kinds & site.m.kinds(made):
            if "wrapper" in kinds or "wrapper" in site.m.kinds(made):
                return made.name == name.rsplit(".", 1)[-1]
            return True if name in ("torch.nn.Module",) else None
        return False if made.kind in ("instance", "module", "wrapper") and kinds else None
    return None


def extreme(how: str) -> Effect:
    """``max(a, b)``, ``min(xs)``."""

    def effect(site: Site) -> Value:
        given = site.arguments.positional
        if len(given) > 1:
            if not any(map(data, given)):
                return SETTING if not _same(given) else given[0]
            return arithmetic.elementwise(site.word, given, site.node)
        inner = join(*[site.m.elements(v, site.node, site.frame) for v in given])
        p = placement_of(site.flat(inner))
        if p.kind in placements.EQUAL or not data(inner):
            return (
                site.m.opaque_result([inner], site.word, site.node, site.frame)
                if data(inner)
                else SETTING
            )
        return arithmetic.elementwise(site.word, [inner], site.node)

    return effect


def _same(given: list[Value]) -> bool:
    return len(set(given)) == 1


def total(site: Site) -> Value:
    """``sum(xs)``: of a list the sum of its items, of rows their sum."""
    source = site.get(0) or NOTHING
    if any(d.kind in ("tensor", "array") for d in data(source)):
        return reduce("sum")(site) or SETTING
    listed = site.m.known_elements(source)
    parts = listed if listed is not None else [site.m.elements(source, site.node, site.frame)]
    out: Value = const(0)
    for v in parts:
        out = arithmetic.binary("add", out, v, site.node) if data(v) or data(out) else SETTING
    return out


def converted(site: Site) -> Value:
    """``int(x)``, ``float(x)``, ``bool(x)``: linear but for bool and int's rounding."""
    given = site.get(0) or const(0)
    try:
        held = only(given)
        made = {"int": int, "float": float, "bool": bool}[site.word](held)
        return const(made)
    except (LookupError, ValueError, TypeError, OverflowError):
        pass
    if data(given):
        moved = tuple(a._replace(kind="number") if isinstance(a, Data) else a for a in cut(given))
        return moved
    guess = known(given)
    if isinstance(guess, int | float):
        return value(Setting("", Const(site.word, guess)))
    return site.m.plain([given], site.word, site.node, site.frame)


def text(site: Site) -> Value:
    """``str(x)``."""
    given = site.get(0)
    return site.m.text([given], site.node) if given else const("")


def opened(site: Site) -> Value:
    """``open(path, mode)``: a file of the process."""
    made = site.ref("file", path=site.get(0), mode=site.get(1, "mode"))
    site.event("open", path=site.get(0) or NOTHING, mode=site.get(1, "mode") or NOTHING)
    return made


def printed(site: Site) -> Value:
    """``print``."""
    site.event("print", values=site.arguments.joined() or NONE)
    return NONE


def ended(site: Site) -> Value:
    """The process ends here."""
    site.event("exit")
    return NOTHING


def type_of(site: Site) -> Value:
    """``type(x)``."""
    found = [
        value(Ref(c.number))
        for o in site.m.objects(site.get(0) or NOTHING)
        if (c := site.m.class_of(o))
    ]
    return join(*found) or SETTING


_PLAIN = """
id hash callable issubclass repr ascii chr ord hex oct bin format vars dir globals locals
input slice object memoryview bytes bytearray complex divmod help
"""
ROWS = (
    Row("builtins.len", length),
    Row("builtins.range", range_),
    Row("builtins.enumerate", enumerate_),
    Row("builtins.zip", zip_),
    Row("builtins.iter builtins.reversed", wrapped),
    Row("builtins.map", mapped),
    Row("builtins.filter", filtered),
    Row("builtins.list builtins.tuple", collected("list")),
    Row("builtins.sorted", collected("list")),
    Row("builtins.set builtins.frozenset", collected("set")),
    Row("builtins.dict", dictionary),
    Row("builtins.next", next_),
    Row("builtins.getattr", attribute),
    Row("builtins.setattr", set_attribute),
    Row("builtins.hasattr", has_attribute),
    Row("builtins.isinstance", is_instance),
    Row("builtins.max builtins.min", extreme("max")),
    Row("builtins.sum", total),
    Row("builtins.abs builtins.round builtins.pow", number),
    Row("builtins.any builtins.all", number),
    Row("builtins.int builtins.float builtins.bool", converted),
    Row("builtins.str", text),
    Row("builtins.open", opened),
    Row("builtins.print", printed),
    Row("builtins.exit builtins.quit", ended),
    Row("builtins.type", type_of),
    Row("builtins.delattr", none),
    Row(" ".join(f"builtins.{w}" for w in _PLAIN.split()), uniform),
)
FUNCTIONS = table(ROWS)
OF_KIND = {("iterator", "__iter__"): Row("", iterate)}


def classes(name: str) -> str | None:
    """Exceptions and enumerations."""
    last = name.rsplit(".", 1)[-1]
    if name in ("enum.Enum", "enum.IntEnum", "enum.Flag", "enum.StrEnum"):
        return None
    if name.startswith("builtins.") and last.endswith(("Error", "Exception", "Warning")):
        return "exception"
    return None


def _exception(site: Site) -> Value:
    return SETTING


def pattern(name: str) -> Row | None:
    """Exceptions are plain."""
    return Row(name, _exception) if classes(name) else None
