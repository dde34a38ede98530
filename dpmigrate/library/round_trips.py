"""What a file gives back of what was put into it: functions that write one, those that read it, and what comes back as it was.

What has no row here need not come back as it was: text files round numbers (``np.savetxt``, ``to_csv``), and what is written by ``str`` is a text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dpmigrate.execution.machine import Machine
from dpmigrate.execution.objects import ELEMENTS, KEYS, LENGTH, ORDER
from dpmigrate.execution.values import NONE, Atom, Const, Data, Ref, Value

#: the kinds of data that a file of arrays keeps
_ARRAY = "array"


@dataclass(frozen=True, slots=True)
class Format:
    """One form of files. ``keeps``: whether reading gives a value again that was written, in its types too, as far as that is established."""

    writers: str
    readers: str
    keeps: Callable[[Machine, Value], bool]
    source: str


def _all(_m: Machine, _v: Value) -> bool:
    """Objects come back as they were."""
    return True


def _arrays(_m: Machine, v: Value) -> bool:
    """Arrays; lists and tensors come back as arrays."""
    return bool(v) and all(isinstance(a, Data) and a.kind == _ARRAY for a in v)


def _plain(m: Machine, v: Value) -> bool:
    """Dictionaries under texts, lists, texts, numbers, yes and no, and None: a number as a key comes back as a text, a tuple as a list."""
    return bool(v) and all(_plain_atom(m, a, set()) for a in v)


def _plain_atom(m: Machine, atom: Atom, around: set[int]) -> bool:
    if isinstance(atom, Const):
        return atom.type in ("str", "int", "float", "bool") or (atom,) == NONE
    if isinstance(atom, Data):
        return atom.kind in ("text", "number")
    made = m.heap.objects[atom.object] if isinstance(atom, Ref) else None
    if made is None or made.number in around or made.kind not in ("list", "dict") or made.name not in ("list", "dict"):
        return False  # other containers (Counter, defaultdict, deque) come back as a dict or a list
    inside = {*around, made.number}
    if m.heap.read((made.number, ELEMENTS)) and made.kind == "dict" and not m.heap.read((made.number, KEYS)):
        return False
    for name, held in m.heap.names(made.number):
        if name in (LENGTH, ORDER):
            continue
        known = made.kind == "list" or name in (KEYS, ELEMENTS) or (isinstance(name, Const) and name.type == "str")
        if not known or not all(_text(a) if name == KEYS else _plain_atom(m, a, inside) for a in m.bound(held)):
            return False
    return True


def _text(atom: Atom) -> bool:
    return (isinstance(atom, Const) and atom.type == "str") or (isinstance(atom, Data) and atom.kind == "text")


_PICKLES = "pickle _pickle cPickle pickle5 dill cloudpickle joblib"
_JSON = "json ujson simplejson"

FORMATS = (
    Format(
        " ".join(f"{p}.dump" for p in _PICKLES.split()), " ".join(f"{p}.load" for p in _PICKLES.split()), _all,
        "https://docs.python.org/3/library/pickle.html",
    ),
    Format("torch.save dpmigrate_runtime.save", "torch.load", _all, "https://docs.pytorch.org/docs/stable/generated/torch.save.html"),
    Format("numpy.save", "numpy.load", _arrays, "https://numpy.org/doc/stable/reference/generated/numpy.save.html"),
    Format(
        " ".join(f"{p}.dump" for p in _JSON.split()), " ".join(f"{p}.load" for p in _JSON.split()), _plain,
        "https://docs.python.org/3/library/json.html#py-to-json-table",
    ),
)  # fmt: skip

WRITERS = {name: f for f in FORMATS for name in f.writers.split()}
READERS = {name: f for f in FORMATS for name in f.readers.split()}
