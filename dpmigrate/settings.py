"""What the user chose, frozen. Options and ``[tool.dpmigrate]`` fill it; rules and rewriting read it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal


@dataclass(frozen=True, slots=True)
class Settings:
    """The choices that change findings or rewritten code."""

    amp: bool = False
    amp_dtype: Literal["float16", "bfloat16"] = "float16"
    batch: Literal["global", "per-rank"] = "global"
    sync_bn: bool = False
    select: tuple[str, ...] = ()  # code prefixes; empty selects all
    ignore: tuple[str, ...] = ()
    per_file: tuple[tuple[str, tuple[str, ...]], ...] = ()  # patterns, seen from root, with codes to ignore
    root: str = ""

    def for_file(self, name: str) -> Settings:
        """With what the project ignores in this file."""
        if not self.per_file:
            return self
        import pathspec

        path = Path(name).resolve()
        root = Path(self.root).resolve()
        place = path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name
        more = [code for pattern, codes in self.per_file if pathspec.PathSpec.from_lines("gitignore", [pattern]).match_file(place) for code in codes]
        return replace(self, ignore=(*self.ignore, *more))
