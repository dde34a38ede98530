"""Options of the command line: argparse (https://docs.python.org/3/library/argparse.html)."""

from __future__ import annotations

from dpmigrate.execution import divergence, placements
from dpmigrate.execution.joins import join
from dpmigrate.execution.objects import ELEMENTS, Object
from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    SETTING,
    Const,
    Foreign,
    Ref,
    Setting,
    Value,
    const,
    items,
    known,
    value,
)
from dpmigrate.library.effects import none
from dpmigrate.library.sites import Row, Site, methods

_DOC = "https://docs.python.org/3/library/argparse.html"


def option_added(site: Site) -> Value:
    """``add_argument("--batch-size", default=64)``: a field of the namespace that parsing gives."""
    owner = site.object
    names = [known(v) for v in site.arguments.positional]
    words = [n for n in names if isinstance(n, str)]
    dest = known(site.arguments.keywords.get("dest", NOTHING))
    word = dest or next((w for w in words if w.startswith("--")), words[0] if words else None)
    if owner is None or not isinstance(word, str):
        return SETTING
    word = word.lstrip("-").replace("-", "_")
    default = site.arguments.keywords.get("default", NONE)
    action = known(site.arguments.keywords.get("action", NOTHING))
    if action in ("store_true", "store_false"):
        default = site.arguments.keywords.get("default", const(action == "store_false"))
    held = [a for a in default if isinstance(a, Const)]
    option = Setting(word, held[0] if held and held[0].value is not None else None)
    found: Value = (option,)
    if default == NONE:
        found = (option, *NONE)
    if held and site.m.has_default(held[0]) and _as_written(site, held[0]):
        found = (held[0],)
    others = tuple(a for a in default if not isinstance(a, Const | Setting))
    _keep(site, owner, word, (*found, *others))
    return SETTING


def _keep(site: Site, owner: Object, name: str, held: Value) -> None:
    """A field of what parsing gives; what commands set, of which the user chooses one, is beside
    each other.
    """
    root = site.m.heap.read((owner.number, "root"))
    for o in site.m.objects(root) if root else [owner]:
        if site.m.heap.read((owner.number, "command")):
            site.m.heap.widen((o.number, f"option {name}"), held)
        else:
            site.m.heap.write((o.number, f"option {name}"), held)


def _as_written(site: Site, default: Const) -> bool:
    """Whether parsing leaves a default as it is: texts go through ``type``."""
    kind = site.arguments.keywords.get("type", NONE)
    return not isinstance(default.value, str) or kind in (NONE, value(Foreign("builtins.str")))


def group_added(site: Site) -> Value:
    """``add_argument_group``, ``add_parser``: options of the same parser."""
    made = site.made("parser")
    if site.object is not None:
        root = site.m.heap.read((site.object.number, "root")) or value(Ref(site.object.number))
        site.m.heap.write((made.number, "root"), root)
        if site.word == "add_parser" or site.m.heap.read((site.object.number, "command")):
            site.m.heap.write((made.number, "command"), const(True))
    return value(Ref(made.number))


def parsed(site: Site) -> Value:
    """``parse_args()``: a namespace with the options of the parser."""
    made = site.made("namespace")
    if site.object is not None:
        for name, held in site.m.heap.names(site.object.number):
            if isinstance(name, str) and name.startswith("option "):
                site.m.heap.write((made.number, name[len("option ") :]), held)
    found = value(Ref(made.number))
    return items([found, SETTING]) if site.word == "parse_known_args" else found


def defaults_set(site: Site) -> Value:
    """``parser.set_defaults(a=1)``."""
    if site.object is not None:
        for name, held in site.arguments.keywords.items():
            _keep(site, site.object, name, held)
    return NONE


def namespace(site: Site) -> Value:
    """``Namespace(a=1)``, ``SimpleNamespace(**config)``."""
    made = site.made("namespace")
    for name, held in site.arguments.keywords.items():
        site.m.heap.write((made.number, name), held)
    if site.arguments.stars:
        site.m.heap.write((made.number, "*"), site.arguments.stars)
    return value(Ref(made.number))


def namespace_item(site: Site) -> Value | None:
    """An item of a namedtuple, or of ``vars(args)``."""
    owner = site.object
    key = site.m.constant(site.get(1) or NOTHING)
    if owner is None:
        return None
    if key is not None and isinstance(key.value, str):
        rest = site.m.heap.read((owner.number, ELEMENTS)) or NOTHING
        return join(site.m.heap.read((owner.number, key.value)) or NOTHING, rest) or SETTING
    if key is not None:
        return site.m.heap.read((owner.number, key))
    return _any_field(site, owner.number, site.get(1) or NOTHING)


def _any_field(site: Site, owner: int, key: Value) -> Value:
    """One of the fields, by a key that is not known."""
    found = join(*[h for n, h in site.m.heap.names(owner)])
    parted = site.m.parting(key, site.node)
    return divergence.differing(found, parted) if parted is not None and found else found


def namespace_item_set(site: Site) -> Value:
    """``vars(args)[name] = v``."""
    owner, key = site.object, site.m.constant(site.get(1) or NOTHING)
    assert owner is not None
    name = key.value if key is not None and isinstance(key.value, str) else ELEMENTS
    new = site.get(2) or NOTHING
    if name == ELEMENTS:
        site.m.heap.widen((owner.number, name), new)
    else:
        site.m.heap.put((owner.number, name), new)
    return NONE


def namespace_got(site: Site) -> Value:
    """``vars(args).get(name, default)``."""
    owner, key = site.object, site.m.constant(site.get(1) or NOTHING)
    assert owner is not None
    held = site.m.heap.read((owner.number, key.value)) if key is not None else None
    if held:
        return held
    default = site.get(2) or NONE
    if key is not None:  # no option that is known
        return join(site.m.heap.read((owner.number, ELEMENTS)) or SETTING, default)
    return join(_any_field(site, owner.number, site.get(1) or NOTHING), default)


def namespace_updated(site: Site) -> Value:
    """``vars(args).update(other)``."""
    owner = site.object
    assert owner is not None
    given = dict(site.arguments.keywords)
    for v in site.arguments.positional:
        known = site.m.known_elements(v)
        for o in site.m.objects(v):
            for name, held in site.m.heap.names(o.number):
                if known is not None and isinstance(name, Const) and isinstance(name.value, str):
                    given[name.value] = held
        if known is None:
            # any option may have another value now
            other = site.m.elements(v, site.node, site.frame)
            lying = site.m.depends(join(v, other)).kind
            loose = SETTING if lying in placements.EQUAL else v
            for name, held in list(site.m.heap.names(owner.number)):
                site.m.heap.write((owner.number, name), join(_loose(name, held), loose))
            site.m.heap.widen((owner.number, ELEMENTS), loose)
    for name, held in given.items():
        site.m.heap.put((owner.number, name), held)
    return NONE


def _loose(name: object, held: Value) -> Value:
    """A value that was set, as a default."""
    return tuple(
        Setting(str(name), a) if isinstance(a, Const) and a.value is not None else a for a in held
    )


def namespace_pairs(site: Site) -> Value:
    """``vars(args).items()``, ``keys()``, ``values()``."""
    owner = site.object
    assert owner is not None
    fields = [(n, h) for n, h in site.m.heap.names(owner.number) if isinstance(n, str)]
    names = [const(n) if n != ELEMENTS else SETTING for n, _ in fields]
    match site.word:
        case "keys":
            each = names
        case "values":
            each = [h for _, h in fields]
        case _:
            each = [items([n, h]) for n, (_, h) in zip(names, fields, strict=True)]
    return site.m.listed(each, site.node, site.frame, exact=ELEMENTS not in dict(fields))


def namespace_copied(site: Site) -> Value:
    """``vars(args).copy()``."""
    owner = site.object
    assert owner is not None
    made = site.made("namespace")
    for name, held in site.m.heap.names(owner.number):
        site.m.heap.write((made.number, name), held)
    return value(Ref(made.number))


def namespace_elements(site: Site) -> Value:
    """A loop over a namedtuple."""
    owner = site.object
    assert owner is not None
    return join(*[h for n, h in site.m.heap.names(owner.number) if isinstance(n, Const)]) or SETTING


def parser(site: Site) -> Value:
    """``ArgumentParser()``."""
    return site.ref("parser")


ROWS = (
    Row(
        "argparse.ArgumentParser configargparse.ArgumentParser jsonargparse.ArgumentParser",
        parser,
        source=_DOC,
    ),
    Row("argparse.Namespace types.SimpleNamespace", namespace, source=_DOC),
    Row("<parser>.add_argument", option_added, source=_DOC),
    Row(
        methods(
            "parser",
            """
add_argument_group add_mutually_exclusive_group add_subparsers add_parser
""",
        ),
        group_added,
        source=_DOC,
    ),
    Row("<parser>.set_defaults", defaults_set, source=_DOC),
    Row("<parser>.parse_args <parser>.parse_known_args", parsed, source=_DOC),
    Row("<parser>.print_help <parser>.print_usage", none, source=_DOC),
    Row("<namespace>.__getitem__", namespace_item, source=_DOC),
    Row("<namespace>.__iter__", namespace_elements, source=_DOC),
    Row("<namespace>.__setitem__", namespace_item_set, source=_DOC),
    Row("<namespace>.get <namespace>.pop", namespace_got, source=_DOC),
    Row("<namespace>.update", namespace_updated, source=_DOC),
    Row("<namespace>.items <namespace>.keys <namespace>.values", namespace_pairs, source=_DOC),
    Row("<namespace>.copy", namespace_copied, source=_DOC),
)  # fmt: skip
#: ``args.__dict__`` is what ``vars(args)`` gives
ATTRIBUTES = (
    Row("<namespace>.__dict__", lambda site: site.get(0), source=_DOC),
)  # fmt: skip
