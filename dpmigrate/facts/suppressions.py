"""What the comments of a file ask to be left alone.

``# dpmigrate: ignore[DPM501, DPM6]`` speaks for the logical line that it stands in, ``# dpmigrate: ignore`` for all rules there, and
``# dpmigrate: ignore-file``, on a line of its own, for the whole program.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

_COMMENT = re.compile(r"#\s*dpmigrate:\s*(ignore-file|ignore)\b\s*(?:\[([^\]]*)\])?", re.IGNORECASE)
_BETWEEN = (tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT)


@dataclass(frozen=True, slots=True)
class Suppressions:
    """Codes (or the beginnings of codes; '' is all) by physical line, and whether the whole file is left alone.

    ``written`` holds each code with its line, as it stands in its comment.
    """

    lines: Mapping[int, frozenset[str]] = field(default_factory=dict)
    whole_file: bool = False
    written: tuple[tuple[int, str], ...] = ()

    def covers(self, line: int, code: str) -> bool:
        """Whether a finding that begins in this line is left alone."""
        return any(code.startswith(given) for given in self.lines.get(line, ()))


def suppressions(text: str) -> Suppressions:
    """Read the comments of a source that parses."""
    if "dpmigrate:" not in text.lower():
        return Suppressions()
    lines: dict[int, frozenset[str]] = {}
    written: list[tuple[int, str]] = []
    whole, first, codes = False, 0, frozenset[str]()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        first = first or (0 if token.type in _BETWEEN else token.start[0])
        found = _COMMENT.search(token.string) if token.type == tokenize.COMMENT else None
        if found is not None and found[1].lower() == "ignore-file":
            whole = whole or token.line.strip() == token.string
        elif found is not None:
            named = [c.strip().upper() for c in (found[2] or "").split(",") if c.strip()]
            written += [(token.start[0], c) for c in named]
            codes |= frozenset(named or [""])
        if token.type == tokenize.NEWLINE:
            lines |= dict.fromkeys(range(first, token.end[0] + 1), codes) if codes else {}
            first, codes = 0, frozenset()
        elif not first:
            codes = frozenset()  # a comment between statements speaks for none
    return Suppressions(lines, whole, tuple(written))


def together(files: Iterable[tuple[Suppressions, int]]) -> Suppressions:
    """What the comments of a program's files ask for, each with the number of lines before the file; for the whole program speaks the last, its script."""
    lines: dict[int, frozenset[str]] = {}
    written: list[tuple[int, str]] = []
    whole = False
    for found, first in files:
        lines |= {line + first: codes for line, codes in found.lines.items()}
        written += [(line + first, code) for line, code in found.written]
        whole = found.whole_file
    return Suppressions(lines, whole, tuple(written))
