"""Hashes that are the same in every process."""

from __future__ import annotations

import dataclasses
import enum
import hashlib
import os
from typing import Any


def same_hash(value: Any) -> int:
    """``hash(value)``, the same on every rank: Python hashes text in every process in another way.

    For splits by file name, words that are numbered by their hash, seeds. Numbers have Python's own hash; text, bytes and paths have a digest, of 64 bits
    and with a sign as well; tuples, frozensets, members of an Enum and frozen dataclasses have one of their parts. Other objects have their own, which
    differs between ranks where it is their place in memory. Raises TypeError for what Python does not hash.
    """
    if isinstance(value, enum.Enum):
        value = f"{type(value).__qualname__}.{value.name}"
    elif isinstance(value, os.PathLike):
        value = os.fspath(value)
    if value is None or isinstance(value, str):
        value = str(value).encode("utf-8", "surrogatepass")
    if isinstance(value, bytes):
        return int.from_bytes(hashlib.blake2b(value, digest_size=8).digest(), "big", signed=True)
    if isinstance(value, tuple):
        return hash(tuple(map(same_hash, value)))
    if isinstance(value, frozenset):
        return hash(frozenset(map(same_hash, value)))
    own = hash(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return same_hash(tuple(getattr(value, part.name) for part in dataclasses.fields(value)))
    return own
