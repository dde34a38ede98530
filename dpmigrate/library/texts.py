"""Methods of texts, paths and plain data (https://docs.python.org/3/library/stdtypes.html)."""

from __future__ import annotations

from dpmigrate.execution.divergence import differing
from dpmigrate.execution.objects import LENGTH
from dpmigrate.execution.placements import EQUAL
from dpmigrate.execution.values import (
    NOTHING,
    SETTING,
    Const,
    Setting,
    Value,
    const,
    data,
    items,
    known,
    value,
)
from dpmigrate.library.sites import Row, Site, methods

_DOC = "https://docs.python.org/3/library/stdtypes.html#string-methods"


def text_method(site: Site) -> Value | None:
    """A method of a text or of plain data: made of what it is given."""
    folded = _folded(site)
    if folded is not None:
        return folded
    if all(site.m.depends(v).kind in EQUAL for v in site.all()):
        placed = any(d.turn for v in site.all() for d in data(v))
        return site.m.text([*site.all()], site.node, site.frame) if placed else SETTING
    template = known(site.get(0) or NOTHING) if site.word == "format" else None
    if isinstance(template, str):
        made = site.m.filled_in(template, site.arguments, site.node, site.frame)
        if made is not None:
            return made
    if site.word in _LISTS:
        each = site.m.text([*site.all()], site.node, site.frame)
        if site.word == "partition":
            return items([each] * 3)
        listed = site.m.listed([each], site.node, site.frame, exact=False)
        why = site.m.parting(each, site.node)
        if why is not None:  # as many as the text says
            (new,) = site.m.objects(listed)
            site.m.heap.write((new.number, LENGTH), differing(SETTING, why))
        return listed
    return site.m.text([*site.all()], site.node, site.frame)


def _folded(site: Site) -> Value | None:
    """The result for texts that are known; of texts that are defaults, as a default."""
    if site.word not in _PURE or site.arguments.keywords or site.arguments.star:
        return None
    owner, *given = (known(v) for v in site.all())
    if not isinstance(owner, str) or not all(isinstance(g, str | int) for g in given):
        return None
    try:
        result = getattr(owner, site.word)(*given)
    except (TypeError, ValueError):
        return None
    made = const(result)
    if all(isinstance(a, Const) for v in site.all() for a in v):
        return made
    return value(Setting("", Const(type(result).__name__, result)))


#: methods that give a list
_LISTS = ("split", "splitlines", "partition", "rsplit")
#: methods of texts that give a text, a number or a truth value, and do nothing else
_PURE = (
    *("lower", "upper", "strip", "lstrip", "rstrip", "find", "rfind", "index", "count"),
    *("startswith", "endswith", "replace", "title", "capitalize", "casefold", "swapcase"),
    *("isdigit", "isalpha", "isalnum", "islower", "isupper", "isspace", "removeprefix"),
    *("removesuffix", "center", "ljust", "rjust", "zfill"),
)

ROWS = (
    Row(
        methods(
            "str|text|setting",
            """
format join split strip replace lower upper startswith endswith lstrip rstrip encode decode
title zfill ljust rjust splitlines isdigit find count partition rsplit capitalize center
casefold rfind removeprefix removesuffix items keys values get exists is_file is_dir
glob rglob resolve with_suffix joinpath read_text iterdir absolute relative_to as_posix
index total_seconds strftime hexdigest parse_args isoformat group groups expanduser isalpha
isalnum islower isupper swapcase translate maketrans format_map lstrip title encode append
extend update pop copy setdefault sort reverse insert remove clear tolist lower __enter__
__exit__ with_name stat is_absolute samefile add
to_dict sample iterrows head __class__ __name__ weekday date time timestamp astimezone
timetuple isocalendar bit_length is_integer as_integer_ratio conjugate hex fromhex count_
most_common elements subtract
""",
        ),
        text_method,
        ("'a'.upper()",),
        _DOC,
    ),
)  # fmt: skip
