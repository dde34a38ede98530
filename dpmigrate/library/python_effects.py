"""What functions of the standard library do (https://docs.python.org/3/library/)."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from dpmigrate.execution import divergence, placements
from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.joins import join
from dpmigrate.execution.objects import ELEMENTS, LENGTH
from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    SETTING,
    Data,
    Origin,
    Ref,
    Value,
    const,
    items,
    value,
)
from dpmigrate.library.copies import copied
from dpmigrate.library.effects import plain
from dpmigrate.library.natures import TEMPORARY
from dpmigrate.library.pure import ANY, computed
from dpmigrate.library.sites import Effect, Site
from dpmigrate.library.stdlib import per_rank

OPERATORS: dict[str, ast.operator] = {
    "add": ast.Add(), "sub": ast.Sub(), "mul": ast.Mult(), "truediv": ast.Div(),
    "floordiv": ast.FloorDiv(), "mod": ast.Mod(), "pow": ast.Pow(), "and_": ast.BitAnd(),
    "or_": ast.BitOr(), "xor": ast.BitXor(), "matmul": ast.MatMult(), "iadd": ast.Add(),
    "concat": ast.Add(), "imul": ast.Mult(), "isub": ast.Sub(), "itruediv": ast.Div(),
}  # fmt: skip


def operated(site: Site) -> Value:
    """``operator.mul(a, b)``: the operator itself."""
    left, right = site.get(0) or NOTHING, site.get(1) or NOTHING
    word = site.word.removeprefix("__").removesuffix("__")
    op = OPERATORS.get(word) or OPERATORS[f"{word}_"]
    return site.m.operate(op, left, right, site.node, site.frame)


def got(site: Site) -> Value:
    """``operator.getitem(x, key)``."""
    return site.m.item(
        site.get(0) or NOTHING, site.get(1) or NOTHING, site.node, site.frame
    )


def tested(site: Site) -> Value:
    """``operator.lt(a, b)``: a test of each element."""
    return site.each() if site.operands() else plain(site)


def fields(site: Site) -> Value:
    """``vars(x)``, ``dataclasses.asdict(x)``: a dictionary of the fields of an object."""
    found: list[Value] = []
    for atom in site.get(0) or NOTHING:
        made = site.m.object(atom)
        if made is not None and made.kind == "namespace" and site.word == "vars":
            found.append(value(atom))  # what is stored in it is stored in the namespace
            continue
        if made is None or made.kind not in ("instance", "namespace", "pymodule"):
            found.append(plain(site))
            continue
        new = site.m.namespace(made, site.node, site.frame)
        rest = site.m.heap.read((made.number, ELEMENTS))
        if rest:
            site.m.heap.widen((site.m.objects(new)[0].number, ELEMENTS), rest)
        found.append(new)
    return join(*found) or SETTING


def members(site: Site) -> Value | None:
    """``inspect.getmembers(module)``: pairs of a name and what the module binds to it; of an object, something that is the same on every rank."""
    pairs: list[Value] = []
    for atom in site.get(0) or NOTHING:
        made = site.m.object(atom)
        if made is None or made.kind != "pymodule":
            return plain(site)
        names = sorted((n, held) for n, held in site.m.heap.names(made.number) if isinstance(n, str) and n != ELEMENTS)
        pairs += [items([const(name), held]) for name, held in names]
    return site.m.listed(pairs, site.node, site.frame, exact=len(site.get(0) or NOTHING) == 1 and site.get(1) is None)


def replaced(site: Site) -> Value:
    """``dataclasses.replace(x, a=1)``: another one with other fields."""
    made = copied(site)
    for o in site.m.objects(made):
        for name, held in site.arguments.keywords.items():
            site.m.heap.put((o.number, name), held)
    return made


def marked(site: Site) -> Value:
    """``dataclass(C)``; ``dataclass(frozen=True)`` is a decorator, which the machine knows."""
    given = site.get(0)
    for made in site.m.objects(given or NOTHING):
        made.marks.add("dataclass")
    return given or site.ref("opaque")


def pushed(site: Site) -> Value:
    """``heapq.heappush(xs, x)``, ``bisect.insort(xs, x)``: one item more, in its place."""
    _on_list(site, "append", Arguments([site.get(1) or NOTHING]))
    _on_list(site, "sort", Arguments())
    return NONE


def popped(site: Site) -> Value:
    """``heapq.heappop(xs)``, ``heapreplace(xs, x)``: the least item, which is taken out."""
    first = _on_list(site, "pop", Arguments([SETTING]))
    if site.word != "heappop":
        _on_list(site, "append", Arguments([site.get(1) or NOTHING]))
        first = join(first, site.get(1) or NOTHING) if site.word == "heappushpop" else first
    return first


def ordered(site: Site) -> Value:
    """``heapq.heapify(xs)``."""
    return _on_list(site, "sort", Arguments())


def _on_list(site: Site, name: str, given: Arguments) -> Value:
    owners = site.get(0) or NOTHING
    found = [
        site.m.container_method(o, name, given, site.node, site.frame) or NOTHING
        for o in site.m.objects(owners)
        if o.kind == "list"
    ]
    return join(*found) or computed(site)


def groups(site: Site) -> Value:
    """``itertools.groupby(xs, key)``: keys with the items that have them."""
    each = site.m.taken(site.get(0) or NOTHING, site.node, site.frame)
    function = site.get(1, "key")
    key = each
    if function and function != NONE:
        key = site.m.call(function, Arguments([each]), site.node, site.frame)
    return _any_number(site, [items([key, _any_number(site, [each], "set")])])


def pairs(site: Site) -> Value:
    """``itertools.pairwise(xs)``."""
    each = site.m.taken(site.get(0) or NOTHING, site.node, site.frame)
    return _any_number(site, [items([each, each])], by=[site.get(0) or NOTHING])


def kept(site: Site) -> Value:
    """``itertools.takewhile(test, xs)``: some of the items; which, the test says."""
    if site.word == "takewhile" and any(o.kind == "generator" for o in site.m.objects(site.get(1) or NOTHING)):
        given = [site.get(0) or NOTHING, site.get(1) or NOTHING]
        return site.m.made_later("takewhile", given, site.node, site.frame)
    at = 0 if site.word == "compress" else 1
    each = site.m.taken(site.get(at) or NOTHING, site.node, site.frame)
    test = site.get(1 - at) or NOTHING
    if at:
        test = site.m.call(test, Arguments([each]), site.node, site.frame)
    parted = site.m.parting(test, site.node)
    found = divergence.differing(each, parted) if parted is not None and each else each
    out = _any_number(site, [found], by=[site.get(at) or NOTHING])
    if parted is not None:  # how many they are as well
        (made,) = site.m.objects(out)
        site.m.heap.write((made.number, LENGTH), divergence.differing(SETTING, parted))
    return out


def spread(site: Site) -> Value:
    """``itertools.starmap(f, pairs)``."""
    each = site.m.taken(site.get(1) or NOTHING, site.node, site.frame)
    known = site.m.known_elements(each)
    given = Arguments(known) if known is not None else Arguments(star=each)
    return _any_number(
        site, [site.m.call(site.get(0) or NOTHING, given, site.node, site.frame)],
        by=[site.get(1) or NOTHING],
    )


def _any_number(
    site: Site, each: list[Value], kind: str = "list", by: Sequence[Value] = ()
) -> Value:
    kind = "list" if kind == "set" else kind
    return site.m.listed(each, site.node, site.frame, exact=False, kind=kind, by=by)


def own_path(site: Site) -> Value:
    """``tempfile.mkdtemp()``: a name of the process's own."""
    site.event("files", paths=NONE)
    name = value(Data("text", placements.PER_RANK, origin=Origin(site.node, TEMPORARY)))
    return items([SETTING, name]) if site.word == "mkstemp" else name


def own_folder(site: Site) -> Value:
    """``tempfile.TemporaryDirectory()``."""
    site.event("files", paths=NONE)
    origin = Origin(site.node, TEMPORARY)
    return site.ref("own folder", name=value(Data("text", placements.PER_RANK, origin=origin)))


def own_folder_entered(site: Site) -> Value:
    """``with TemporaryDirectory() as path``."""
    assert site.object is not None
    return site.m.heap.read((site.object.number, "name")) or SETTING


def own_object(word: str) -> Effect:
    """An object of the process's own: whatever it says differs."""

    def effect(site: Site) -> Value:
        made = site.ref(ANY)
        held = value(Data(ANY, placements.PER_RANK, origin=Origin(site.node, word)))
        site.m.heap.write((site.m.objects(made)[0].number, ELEMENTS), held)
        return made

    return effect


def timed(site: Site) -> Value:
    """``timeit.timeit(f)``: how long it takes."""
    for v in site.arguments.positional[:1]:
        if site.m.objects(v):
            site.m.call(v, Arguments(), site.node, site.frame)
    return per_rank("a clock")(site) or NOTHING


def given_back(site: Site) -> Value:
    """``contextlib.closing(x)``: x."""
    return site.get(0) or NOTHING


def part_of_path(site: Site) -> Value:
    """``path.parent``, ``path.name``: made of the path."""
    return plain(site)


def unbound(site: Site) -> Value:
    """``str.lower(x)``, ``dict.get(x, key)``: the method of the first argument."""
    first, *rest = site.arguments.positional or [NOTHING]
    method = site.m.attribute(first, site.word, site.node, site.frame)
    given = Arguments(rest, site.arguments.keywords, site.arguments.star, site.arguments.stars)
    return site.m.call(method, given, site.node, site.frame) if first else computed(site)


def keyed(site: Site) -> Value:
    """``dict.fromkeys(keys, v)``."""
    made = site.made("dict")
    keys, held = site.get(0) or NOTHING, site.get(1) or NONE
    listed = site.m.known_elements(keys)
    for key in listed if listed is not None else [site.m.taken(keys, site.node, site.frame)]:
        site.m.set_item(value(Ref(made.number)), key or SETTING, held, site.node, site.frame)
    return value(Ref(made.number))
