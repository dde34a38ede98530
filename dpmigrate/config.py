"""``[tool.dpmigrate]`` in pyproject.toml: the nearest one above the first path. Whatever it says that is not understood is an error."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


class ConfigError(Exception):
    """What is wrong, with the file and the key."""


@dataclass(frozen=True, slots=True)
class Config:
    """What the project wants. ``options`` are defaults of command-line options, by their names there; patterns are seen from ``root``."""

    root: Path = Path()
    options: Mapping[str, Any] = field(default_factory=dict)
    exclude: tuple[str, ...] = ()
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()


def load(path: Path) -> Config:
    """The configuration for a path; an empty one if there is none. ConfigError for what cannot be read or understood."""
    start = path.resolve()
    for folder in (start, *start.parents):
        file = folder / "pyproject.toml"
        if file.is_file():
            table = _table(file)
            if table is not None:
                return _config(file, table)
        if (folder / ".git").exists():
            break
    return Config()


def _table(file: Path) -> Mapping[str, Any] | None:
    import tomllib

    try:
        read = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as e:
        raise ConfigError(f"{file}: {e}") from e
    table = read.get("tool", {}).get("dpmigrate")
    if table is not None and not isinstance(table, dict):
        raise ConfigError(f"{file}: [tool.dpmigrate] is not a table")
    return table


def _config(file: Path, table: Mapping[str, Any]) -> Config:
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key not in _KEYS:
            raise ConfigError(f"{file}: [tool.dpmigrate] has no key {key!r}; it knows {', '.join(sorted(_KEYS))}")
        fits, wanted = _KEYS[key]
        if not fits(value):
            raise ConfigError(f"{file}: [tool.dpmigrate] {key} must be {wanted}, not {value!r}")
        values[key.replace("-", "_")] = value
    exclude = tuple(values.pop("exclude", ()))
    per_file = tuple((pattern, _upper(codes)) for pattern, codes in values.pop("per_file_ignores", {}).items())
    return Config(file.parent, values, exclude, per_file)


def _upper(codes: list[str]) -> tuple[str, ...]:
    return tuple(code.strip().upper() for code in codes)


def _strings(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(x, str) for x in value)


def _one_of(*words: str) -> tuple[Callable[[Any], bool], str]:
    return lambda value: value in words, " or ".join(f'"{w}"' for w in words)


_CODES = (_strings, 'a list of codes, as ["DPM501"]')
_FLAG: tuple[Callable[[Any], bool], str] = (lambda value: isinstance(value, bool), "true or false")
_KEYS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "select": _CODES,
    "ignore": _CODES,
    "exclude": (_strings, "a list of patterns, as in .gitignore"),
    "per-file-ignores": (lambda value: isinstance(value, dict) and all(map(_strings, value.values())), "a table of patterns with lists of codes"),
    "amp": _FLAG,
    "amp-dtype": _one_of("float16", "bfloat16"),
    "batch": _one_of("global", "per-rank"),
    "sync-bn": _FLAG,
    "output-format": _one_of("text", "json"),
}
