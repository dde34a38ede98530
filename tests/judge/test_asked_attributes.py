"""Attributes that are read right behind the question whether they are there."""

from __future__ import annotations

import pytest

from dpmigrate.judge import faults
from tests.judge.trained import result

_HEAD = """
class Plain(nn.Module):
    def __init__(self, names):
        super().__init__()
        for name in names:
            self.add_module(name, nn.Linear(2, 2))
plain = Plain(open('names').read().split())
other = Plain([])
"""
_WORDS = "there is no attribute module here"
_MAYBE = "it is not known whether an object without a wrapper has module: its attributes have computed names, and hasattr is true of each"


@pytest.mark.parametrize(
    "read",
    [
        "if hasattr(plain, 'module'):\n    x = plain.module",
        "if hasattr(plain, 'module'):\n    plain = plain.module",
        "if random.random() < 2 and hasattr(plain, 'module'):\n    print(3)\n    x = plain.module",
        "x = plain.module if hasattr(plain, 'module') else plain",
        "if hasattr(plain, 'module'):\n    for i in range(2):\n        x = plain.module",
    ],
)
def test_what_lacks_it_does_not_come_there(read: str) -> None:
    """Whether it is lacking is not known then, which is no fault for certain, and nothing that may be passed over."""
    said = {(f.words, f.established) for f in faults(result(last=_HEAD + read))}
    assert (_MAYBE, False) in said
    assert _WORDS not in {words for words, _ in said}


@pytest.mark.parametrize(
    "read",
    [
        "x = plain.module",
        "if hasattr(plain, 'model'):\n    x = plain.module",
        "if hasattr(plain, 'module'):\n    plain = nn.Linear(2, 2)\n    x = plain.module",
        "if hasattr(plain, 'module'):\n    x = other.module",
        "if hasattr(plain, 'module'):\n    print(3)\nelse:\n    x = plain.module",
        "if random.random() < 2 or hasattr(plain, 'module'):\n    x = plain.module",
        "if not hasattr(plain, 'module'):\n    x = plain.module",
        "if hasattr(plain, 'module'):\n    for i in range(2):\n        x = plain.module\n        plain = nn.Linear(2, 2)",
    ],
)
def test_what_lacks_it_may_come_there(read: str) -> None:
    assert _WORDS in {f.words for f in faults(result(last=_HEAD + read))}
