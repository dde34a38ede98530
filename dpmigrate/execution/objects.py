"""Objects: what never changes of one, and the names of the fields that the machine keeps of it."""

from __future__ import annotations

import ast
from collections import Counter, OrderedDict, deque
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

from dpmigrate.execution.values import Unbound, Value

#: what containers of Python may be, by the kind of their objects
PLAIN: dict[str, tuple[type, ...]] = {
    "list": (list, deque), "dict": (dict, Counter, OrderedDict), "tuple": (tuple,), "set": (set, frozenset),
}  # fmt: skip
#: what is said of an operation that fails whatever the ranks do
ENDS = "so that the program ends here on one process too"
#: a place in the store: (owner, name)
Location = tuple[int, Hashable]
Delta = dict[Location, Value | None]
#: the name of what a container holds under keys that are not known
ELEMENTS = "*"
#: the field that holds how many items a list has, where they are kept one by one
LENGTH = "#length"
#: the field that holds keys of a dictionary that are not known one by one
KEYS = "#keys"
#: the field that says why ranks may have the keys of a dictionary in another order
ORDER = "#order"
#: the fields that say which items a container has, and hold none
COUNTS = (LENGTH, KEYS, ORDER)
#: the name of the number of fields that an object ever had: who goes through all of them reads it
FIELDS = "#fields"
#: the field that an object has from the moment it is made
EXISTS = "#exists"
EXISTING: Value = (Unbound("made"),)


@dataclass(slots=True, eq=False)
class Object:
    """What never changes of an object; its fields are in the store.

    ``kind`` is a word of the machine (``function``, ``class``, ``instance``, ``list`` …) or of a
    library (``module``, ``loader``, ``optimizer`` …); ``many`` says that one place made several of
    them.
    """

    number: int
    kind: str
    name: str
    node: ast.AST | None
    context: int
    extra: Any = None
    many: bool = False
    #: something other than a local variable holds it, so that an earlier one may be alive
    kept: bool = False
    #: what held earlier ones holds what is made of them instead: those are held no more
    let_go: bool = False
    #: an iterator that only local variables hold: what it goes over is held as long as they live
    passing: bool = False
    marks: set[str] = field(default_factory=set)
    #: the object in whose place it was made, or the first of a chain of them
    root: int = 0
    #: the branches that have made it in some of their arms alone, unless it was made once more since: number of the branch -> those arms
    arms: dict[int, frozenset[int]] = field(default_factory=dict)
    #: the object that it is a part of, or stands for, where it exists as long as that does
    owner: int = 0


#: objects that are scopes: what they hold, names hold
SCOPES = ("function", "pymodule")
#: objects of which several made at one place are told apart by their fields
WEAK = ("instance", "list", "dict", "set", "any")
#: objects that programs choose between, each with what belongs to it
CHOSEN = ("instance", "module", "library model")
#: objects of code that is not seen: a call of any method may change any field
UNSEEN = ("opaque", "any")
#: a mark of what code that is not seen has made of plain data alone: no object of the program's own classes
OF_A_LIBRARY = "made of plain data"
#: objects that may be made for one statement only
OF_ONE_STATEMENT = (*WEAK, "slice", "iterator", "bar", "backward")
#: objects that code which is not seen gives, and of which nothing else is known by their numbers
RESULTS = ("output",)
#: objects that do not keep alive what they go over
PASSING = "iterator"


def not_known(word: str) -> str:
    """What is told where no table says what an operation gives: a function by its name, a method by
    its name behind a dot.
    """
    return f"what {'a ' if word in ('call', 'count') else ''}{word}{'()' if word.startswith('.') else ''} gives is not known"
