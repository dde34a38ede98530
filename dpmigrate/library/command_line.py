"""Options of the command line: argparse (https://docs.python.org/3/library/argparse.html)."""

from __future__ import annotations

from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    SETTING,
    Const,
    Ref,
    Setting,
    Value,
    const,
    items,
    join,
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
    others = tuple(a for a in default if not isinstance(a, Const | Setting))
    root = site.m.heap.read((owner.number, "root"))
    for o in site.m.objects(root) if root else [owner]:
        site.m.heap.write((o.number, f"option {word}"), (*found, *others))
    return SETTING


def group_added(site: Site) -> Value:
    """``add_argument_group``, ``add_parser``: options of the same parser."""
    made = site.made("parser")
    if site.object is not None:
        root = site.m.heap.read((site.object.number, "root")) or value(Ref(site.object.number))
        site.m.heap.write((made.number, "root"), root)
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
            site.m.heap.write((site.object.number, f"option {name}"), held)
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
    """An item of a namedtuple."""
    owner = site.object
    key = site.m.constant(site.get(1) or NOTHING)
    if owner is None:
        return None
    if key is not None:
        return site.m.heap.read((owner.number, key))
    return join(*[h for n, h in site.m.heap.names(owner.number)])


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
)  # fmt: skip
