"""Python's own functions (https://docs.python.org/3/library/functions.html)."""

from __future__ import annotations

from dpmigrate.execution import arithmetic, derivation, divergence, placements
from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.divergence import in_no_order
from dpmigrate.execution.joins import join
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    SETTING,
    Const,
    Data,
    Foreign,
    Items,
    Origin,
    Setting,
    Value,
    const,
    data,
    known,
    only,
    placement_of,
    value,
)
from dpmigrate.library.axes import rows_in_list
from dpmigrate.library.cutting import least
from dpmigrate.library.effects import cut, none, number, plain, uniform, within
from dpmigrate.library.natures import ADDRESS
from dpmigrate.library.reductions import reduce
from dpmigrate.library.sites import Effect, Row, Site, examples, prefixed

_DOC = "https://docs.python.org/3/library/functions.html"


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
        out = arithmetic.elementwise(site.word, [inner], site.node)
        return least(site, out) if site.word == "min" else out

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
        return derivation.derived(
            "sum", placements.SUM, [(each,)], site.node, axes=axes, keep_axes=False
        )
    listed = site.m.known_elements(source)
    parts = listed
    if parts is None:
        parts = [in_no_order(site.m.taken(source, site.node, site.frame))]
    out: Value = const(0)
    for v in parts:
        if data(v) or data(out):
            out = arithmetic.binary("add", out, v, site.node)
        else:
            out = site.m.plain([out, v], "sum", site.node, site.frame)
    if listed is not None:
        return out
    count = site.m.counts([source])
    why = site.m.parting(count, site.node) if count else None
    if count and (placement_of(out).kind in placements.EQUAL or (why is not None and why.whose)):
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
        if site.word == "int" and any(d.fraction for d in data(moved)):
            moved = derivation.derived("int", placements.elementwise([placement_of(moved)]), [moved], site.node)
        elif site.word != "float" and placement_of(moved).kind in (Kind.PARTIAL, Kind.RATIO):
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
    origin = Origin(site.node, ADDRESS)
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


ROWS = (
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
int(0.7 * x.size(0))
int((x > 0).sum() * 0.7)
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
    Row("builtins.globals", module_names, source=_DOC),
    Row("builtins.delattr", none, source=_DOC),
    Row(
        prefixed(
            "builtins.",
            """
locals slice object memoryview help eval exec compile
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
