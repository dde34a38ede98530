"""Words about a place of the program. What line of which file that is, only the program can say: ``Script.told``."""

from __future__ import annotations

import ast
from dataclasses import dataclass

#: stands in the words for the place
PLACE = "{place}"


@dataclass(frozen=True, slots=True)
class Told:
    """The words, and the node whose place they name, if they name one; what helps, where that is another thing than the rule says."""

    words: str
    node: ast.AST | None = None
    advice: str = ""
