"""What the user chose, frozen. Options and ``[tool.dpmigrate]`` fill it; rules and rewriting read it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Settings:
    """The choices that change findings or rewritten code."""

    amp: bool = False
    amp_dtype: Literal["float16", "bfloat16"] = "float16"
    batch: Literal["global", "per-rank"] = "global"
    sync_bn: bool = False
    unproven: bool = False  # results also where they are not shown to be right
    select: tuple[str, ...] = ()  # code prefixes; empty selects all
    ignore: tuple[str, ...] = ()
    per_file: tuple[tuple[str, tuple[str, ...]], ...] = ()  # patterns, seen from root, with codes to ignore
    root: str = ""
    follow: bool = True  # the script's own imports
    shared: frozenset[str] = frozenset()  # files, from the root, that scripts which stay as they are import as well
