"""Which parameter an argument is for: torch and numpy name what may be given by its place as well."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from dpmigrate.execution.arguments import Arguments

#: made by ``python -m tests.library.signatures`` of the libraries themselves; a test holds it
FILE = Path(__file__).parents[1] / "data" / "signatures.txt"


def bound(name: str, arguments: Arguments) -> Arguments:
    """The arguments of a call with the names of the parameters that have a place, as far as they
    are known: of several signatures the first that takes as many and these names.
    """
    known = _signatures().get(name, ())
    if known and name.startswith("torch."):
        arguments = _as_in_torch(known, arguments)
    fitting = (s for s in known if len(arguments.positional) <= len(s))
    named = set(arguments.keywords)
    of_names = sorted(fitting, key=lambda s: len(named - set(s)))  # stable: the first of the best
    return arguments.named(of_names[0]) if of_names else arguments


#: numpy's names, which torch takes for its own (torch/csrc/utils/python_arg_parser.cpp)
_ALIASES = {
    "axis": "dim", "keepdims": "keepdim", "x": "input", "a": "input", "x1": "input", "x2": "other",
}  # fmt: skip


def _as_in_torch(known: tuple[tuple[str, ...], ...], arguments: Arguments) -> Arguments:
    taken = {n for s in known for n in s}
    if arguments.keywords.keys() <= taken:
        return arguments
    keywords = {
        n if n in taken else _ALIASES.get(n, n): v for n, v in arguments.keywords.items()
    }
    return Arguments(arguments.positional, keywords, arguments.star, arguments.stars)


@cache
def _signatures() -> dict[str, tuple[tuple[str, ...], ...]]:
    found = {}
    for line in FILE.read_text(encoding="utf-8").splitlines():
        name, _, told = line.partition(" ")
        found[name] = tuple(tuple(one.split()) for one in told.split("|"))
    return found
