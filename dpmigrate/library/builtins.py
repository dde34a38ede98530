"""Python's own functions (https://docs.python.org/3/library/functions.html)."""

from __future__ import annotations

from dpmigrate.execution import arithmetic, divergence, placements
from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.divergence import in_no_order
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
    Origin,
    Ref,
    Setting,
    Value,
    const,
    data,
    join,
    known,
    only,
    placement_of,
    value,
)
from dpmigrate.library.effects import cut, none, number, plain, uniform, within
from dpmigrate.library.layer_table import derives
from dpmigrate.library.reductions import reduce
from dpmigrate.library.sites import Effect, Row, Site, examples, prefixed, rows_in_list

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
    return join(*found, default) or SETTING


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
    answers = {_has(site, atom, name) for atom in owner}
    if len(answers) == 1 and None not in answers:
        return const(answers.pop())
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
        plain = not cls.extra.unknown and (not cls.extra.kinds or name == "module")
        return False if plain else None
    if name == "module" and made.kind in ("wrapper", "module", "container"):
        return made.kind == "wrapper"
    return None


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


def extreme(how: str) -> Effect:
    """``max(a, b)``, ``min(xs)``."""

    def effect(site: Site) -> Value:
        given = site.arguments.positional
        if len(given) == 1:
            given = [site.m.laid_out(given[0], site.node, site.frame)]
        out = of_values(site, given)
        if len(given) == 1:
            out = join(out, site.arguments.keywords.get("default") or NOTHING)
        chosen = None
        if "key" in site.arguments.keywords:
            source = given[0] if len(given) == 1 else value(Items(tuple(given)))
            chosen = site.m.order_of(source, site.arguments, site.node, site.frame)
        if chosen is None and len(given) == 1:
            chosen = site.m.parting(site.m.counts(given), site.node)
        return divergence.differing(out, chosen) if chosen is not None and out else out

    def of_values(site: Site, given: list[Value]) -> Value:
        if len(given) > 1:
            if not any(map(data, given)):
                return SETTING if not _same(given) else given[0]
            sizes = {a.placement if isinstance(a, Data) else None for v in given for a in v}
            if len(sizes) == 1 and all(p is not None and p.kind is Kind.SIZE and p.times for p in sizes):
                return given[0]  # of several batches, of each of which every rank has as many
            return within(arithmetic.elementwise(site.word, given, site.node), given)
        inner = in_no_order(join(*[site.m.taken(v, site.node, site.frame) for v in given]))
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


def some_or_all(site: Site) -> Value:
    """``any(xs)``, ``all(xs)``."""
    return site.each(kind="number") if site.operands() else plain(site)


def total(site: Site) -> Value:
    """``sum(xs)``: of a list the sum of its items, of rows their sum."""
    source = site.get(0) or NOTHING
    if any(d.kind in ("tensor", "array") for d in data(source)):
        return reduce("sum", at=9, default=0)(site) or SETTING
    each = rows_in_list(site)
    if each is not None:
        axes = each.axes - 1 if each.axes is not None else None
        return arithmetic.derived(
            "sum", placements.SUM, [(each,)], site.node, axes=axes, keep_axes=False
        )
    listed = site.m.known_elements(source)
    parts = listed
    if parts is None:
        parts = [in_no_order(site.m.taken(source, site.node, site.frame))]
    out: Value = const(0)
    for v in parts:
        out = arithmetic.binary("add", out, v, site.node) if data(v) or data(out) else SETTING
    if listed is not None:
        return out
    count = site.m.counts([source])
    if count and placement_of(out).kind in placements.EQUAL:
        why = site.m.parting(count, site.node)
        whole = placement_of(count) != placements.SUM
        out = divergence.differing(out, why) if why is not None and whole else out
    # of any number of batches: sizes add up to a part of their total
    origin = Origin(site.node, "sum")
    return tuple(
        a._replace(placement=placements.SUM, origin=origin)
        if isinstance(a, Data) and a.placement.kind is Kind.SIZE
        else a
        for a in out
    )


def converted(site: Site) -> Value:
    """``int(x)``, ``float(x)``, ``bool(x)``: linear but for bool and int's rounding."""
    given = site.get(0) or const(0)
    try:
        held = only(given)
        made = {"int": int, "float": float, "bool": bool}[site.word](held)
        return const(made)
    except (LookupError, ValueError, TypeError, OverflowError):
        pass
    texts = tuple(d for d in data(given) if d.kind == "text")
    site.m.may_raise(site.m.parting(texts, site.node), "ValueError")
    if data(given):
        moved = cut(given)
        if site.word != "float" and placement_of(moved).kind in (Kind.PARTIAL, Kind.RATIO):
            # what is added up is taken to be a count, which int leaves as it is
            kept = (placements.SUM, placements.MAX, placements.MIN)
            if site.word == "bool" or placement_of(moved) not in kept:
                moved = site.data(placements.PER_RANK, gradient="none")
        return tuple(a._replace(kind="number", axes=0) if isinstance(a, Data) else a for a in moved)
    guess = known(given)
    if isinstance(guess, int | float):
        return value(Setting("", Const(site.word, guess)))
    return site.m.plain([given], site.word, site.node, site.frame)


def text(site: Site) -> Value:
    """``str(x)``."""
    given = site.get(0)
    return site.m.text([given], site.node, site.frame) if given else const("")


def hashed(site: Site) -> Value:
    """``hash(x)``, ``id(x)``: each process has its own seed for texts, and its own addresses."""
    given = site.get(0) or NOTHING
    if site.word == "hash" and all(isinstance(a, Const) and a.type in _NUMBERS for a in given):
        return SETTING
    origin = Origin(site.node, "a hash or an address of the process")
    return value(Data("number", placements.PER_RANK, origin=origin))


#: types of constants whose hashes do not depend on the process
_NUMBERS = ("int", "float", "bool", "complex")


def opened(site: Site) -> Value:
    """``open(path, mode)``: a file of the process."""
    path, mode = site.get(0, "file") or site.get(0, "filename"), site.get(1, "mode")
    made = site.ref("file", path=path, mode=mode)
    site.event("open", path=path or NOTHING, mode=mode or NOTHING)
    return made


def typed(site: Site) -> Value:
    """``input()``: a line that somebody types."""
    site.event("typed")
    return uniform(site)


def debugged(site: Site) -> Value:
    """``breakpoint()``: the process waits for commands that somebody types."""
    site.event("typed")
    return NONE


def printed(site: Site) -> Value:
    """``print``: to ``sys.stdout``, in whose place the program may have put an object."""
    site.tell("print")
    stream = site.arguments.keywords.get("file")
    if stream is None:
        stream = site.m.heap.read((site.m.heap.number(Foreign("sys")), "stdout")) or NOTHING
    for made in site.m.objects(stream):
        method = site.m.method_of(made, "write")
        if method is not None:
            text = site.m.text(site.arguments.positional, site.node, site.frame)
            site.m.call(value(method), Arguments([text]), site.node, site.frame)
    return NONE


def module_names(site: Site) -> Value:
    """``globals()``: what the module binds."""
    module = site.m.heap.objects[site.frame.module]
    return site.m.namespace(module, site.node, site.frame)


def ended(site: Site) -> Value:
    """The process ends here."""
    site.event("exit")
    return NOTHING


def type_of(site: Site) -> Value:
    """``type(x)``."""
    site.event("class read", of=site.get(0) or NOTHING)
    found = [
        value(Ref(c.number))
        for o in site.m.objects(site.get(0) or NOTHING)
        if (c := site.m.class_of(o))
    ]
    return join(*found) or SETTING


ROWS = (
    Row("builtins.getattr", attribute, source=_DOC),
    Row("builtins.setattr", set_attribute, source=_DOC),
    Row("builtins.object.__setattr__", set_plainly, source=_DOC),
    Row("builtins.hasattr", has_attribute, source=_DOC),
    Row("builtins.isinstance", is_instance, source=_DOC),
    Row(
        "builtins.max builtins.min",
        extreme("max"),
        ("max(1, 2)", "max(x.mean().item(), 2.0)"),
        _DOC,
    ),
    Row(
        "builtins.sum",
        total,
        examples("""
sum([x.mean(), y.mean()])
sum([x, y])
sum(x)
sum([x.sum(), w.sum()])
"""),
        _DOC,
    ),
    Row(
        "builtins.abs builtins.round builtins.pow",
        number,
        ("abs(x)", "pow(x, 2)", "round(x.mean().item(), 3)"),
        _DOC,
    ),
    Row("builtins.any builtins.all", some_or_all, source=_DOC),
    Row(
        "builtins.int builtins.float builtins.bool",
        converted,
        examples("""
float(x.mean())
float(x.sum())
int(x.size(0) / 2)
int((x > 0).sum())
float(x.max())
int(x.mean() * 100)
int(x.size(0) * 2)
bool(x.max() > 0)
"""),
        _DOC,
    ),
    Row("builtins.str builtins.repr builtins.ascii builtins.format", text, source=_DOC),
    Row(
        prefixed("builtins.", "chr ord hex oct bin bytes bytearray complex divmod"),
        plain,
        source=_DOC,
    ),
    Row("builtins.id builtins.hash", hashed, source=_DOC),
    Row("builtins.open", opened, source=_DOC),
    Row("builtins.print", printed, source=_DOC),
    Row("builtins.input", typed, source=_DOC),
    Row("builtins.breakpoint pdb.set_trace", debugged, source=_DOC),
    Row("builtins.exit builtins.quit", ended, source=_DOC),
    Row("builtins.type", type_of, source=_DOC),
    Row("builtins.globals", module_names, source=_DOC),
    Row("builtins.dir", names_of, source=_DOC),
    Row("builtins.delattr", none, source=_DOC),
    Row(
        prefixed(
            "builtins.",
            """
callable issubclass locals slice object memoryview help eval exec compile
""",
        ),
        uniform,
        source=_DOC,
    ),
)  # fmt: skip


def pattern(name: str) -> Row | None:
    """Exceptions are plain."""
    last = name.rsplit(".", 1)[-1]
    plain = name.startswith("builtins.") and last.endswith(("Error", "Exception", "Warning"))
    return Row(name, uniform, source=_DOC) if plain else None


def classes(name: str) -> str | None:
    """Exceptions."""
    return "exception" if pattern(name) is not None else None
