"""Methods of texts, paths and plain data (https://docs.python.org/3/library/stdtypes.html)."""

from __future__ import annotations

from dpmigrate.execution.placements import EQUAL
from dpmigrate.execution.values import (
    NOTHING,
    SETTING,
    Const,
    Setting,
    Value,
    known,
    value,
)
from dpmigrate.library.sites import Row, Site, methods

_DOC = "https://docs.python.org/3/library/stdtypes.html#string-methods"


def text_method(site: Site) -> Value | None:
    """A method of a text or of plain data: made of what it is given."""
    if site.word in ("split", "splitlines", "partition", "rsplit") and site.receiver is not None:
        return SETTING
    lying = (site.m.depends(v) for v in site.all())
    if all(p.kind in EQUAL for p in lying):
        first = known(site.get(0) or NOTHING)
        if site.word in ("lower", "upper", "strip") and isinstance(first, str):
            made = Const("str", getattr(first, site.word)())
            return value(made) if isinstance(site.receiver, Const) else value(Setting("", made))
        return SETTING
    return site.m.text([*site.all()], site.node)


ROWS = (
    Row(
        methods(
            "str|text|setting",
            """
format join split strip replace lower upper startswith endswith lstrip rstrip encode decode
title zfill ljust rjust splitlines isdigit find count partition rsplit capitalize center
casefold rfind removeprefix removesuffix items keys values get exists mkdir is_file is_dir
glob rglob resolve with_suffix joinpath read_text open iterdir absolute relative_to as_posix
index total_seconds strftime hexdigest parse_args isoformat group groups expanduser isalpha
isalnum islower isupper swapcase translate maketrans format_map lstrip title encode append
extend update pop copy setdefault sort reverse insert remove clear tolist lower __enter__
__exit__ rename unlink rmdir touch write_text with_name stat is_absolute samefile add
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
