"""``[tool.dpmigrate]`` in pyproject.toml: the nearest one above the first path. Whatever it says that is not understood is an error."""

from __future__ import annotations

import os
import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dpmigrate import reading
from dpmigrate.walk import is_pattern

#: bytes of a pyproject.toml; what is larger is something else
_LARGEST = 1_000_000


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
    start = Path(os.path.realpath(path))
    for folder in ((start, *start.parents) if os.path.isdir(start) else start.parents):
        table = _table(folder / "pyproject.toml")
        if table is not None:
            return _config(folder / "pyproject.toml", table)
        if os.path.exists(folder / ".git"):
            break
    return Config()


def _table(file: Path) -> Mapping[str, Any] | None:
    """What the file says of us; None where it says nothing, or is not there. One that is there and cannot be read may say something."""
    import tomllib

    try:
        data = reading.content(file, _LARGEST + 1)
    except (FileNotFoundError, NotADirectoryError):
        if file.is_symlink():
            raise ConfigError(f"{file}: a link that leads nowhere") from None
        return None
    except OSError as e:
        if isinstance(e, PermissionError) and not os.path.lexists(file):
            return None  # the folder is closed: what is wrong is told of the file that is named in it
        raise ConfigError(f"{file}: cannot be read: {reading.why(e)}") from e
    if len(data) > _LARGEST:
        raise ConfigError(f"{file}: larger than {_LARGEST // 1_000_000} MB")
    try:
        read = tomllib.loads(data.decode("utf-8-sig").replace("\r\n", "\n"))
    except UnicodeDecodeError as e:
        line = data[: e.start].count(b"\n") + 1
        raise ConfigError(f"{file}: line {line} is not UTF-8: byte 0x{data[e.start]:02x}") from e
    except RecursionError as e:
        raise ConfigError(f"{file}: nested too deeply to be read") from e
    except ValueError as e:  # a mistake, or a number that is longer than Python reads
        raise ConfigError(f"{file}: {str(e).partition(';')[0]}") from e
    tool = read.get("tool", {})
    if not isinstance(tool, dict):
        raise ConfigError(f"{file}: tool is not a table, so that [tool.dpmigrate] cannot be read")
    table = tool.get("dpmigrate")
    if table is not None and not isinstance(table, dict):
        raise ConfigError(f"{file}: [tool.dpmigrate] is not a table")
    return table


def _config(file: Path, table: Mapping[str, Any]) -> Config:
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key not in _KEYS:
            raise ConfigError(f"{file}: [tool.dpmigrate] has no key {_shown(key)}; it knows {', '.join(sorted(_KEYS))}")
        fits, wanted = _KEYS[key]
        if not fits(value):
            raise ConfigError(f"{file}: [tool.dpmigrate] {key} must be {wanted}, not {_shown(value)}")
        for pattern in _patterns(key, value):
            if ".." in pattern.split("/") or not is_pattern(pattern):
                raise ConfigError(f"{file}: [tool.dpmigrate] {key}: {_shown(pattern)} is no pattern for files of the project")
        values[key.replace("-", "_")] = value
    exclude = tuple(values.pop("exclude", ()))
    per_file = tuple((pattern, _upper(codes)) for pattern, codes in values.pop("per_file_ignores", {}).items())
    return Config(file.parent, values, exclude, per_file)


def _patterns(key: str, value: Any) -> list[str]:
    return list(value) if key in ("exclude", "per-file-ignores") else []


def _shown(value: object) -> str:
    """A value for a message; one without end is cut."""
    return reprlib.repr(value)


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
    "unproven": _FLAG,
    "output-format": _one_of("text", "json"),
}
