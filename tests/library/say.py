"""What the engine says of expressions, and whether that holds when they run whole and in shares.

``python -m tests.library.say "x.renorm(2, 1, 1.0)" "torch.sum(input=x)"``
"""

from __future__ import annotations

import sys

from dpmigrate.library import registry
from tests.library.sharded import Broken, claimed, dealt, given, hold, pairs, placed, run
from tests.library.test_rows import DEALINGS, shares


def said(expression: str) -> str:
    """A line: how the result lies, with its axes where they are known, and ``holds`` or what does not."""
    claim = claimed(expression, axes=True)
    p, atom = placed(claim.value)
    axes = f", {atom.axes} axes" if atom is not None and atom.axes is not None else ""
    return f"{expression}: {p}{axes}: {_checked(expression)}"


def _checked(expression: str) -> str:
    claim, numbers = claimed(expression, axes=True), given()
    if claim.drawn:
        return "drawn, so not compared"
    try:
        whole = run(expression, numbers)
    except Exception as error:  # whatever the expression does wrong
        return f"does not run: {type(error).__name__}: {error}"
    try:
        for world, strided in DEALINGS:
            dealing = dealt(world, strided)
            parts = [run(expression, shares(numbers, own)) for own in dealing]
            for v, (total, *ours) in pairs(claim, [whole, *parts]):
                hold(placed(v)[0], total, ours, dealing)
    except Broken as broken:
        return f"BROKEN at {world} ranks: {broken}"
    return "holds"


def known(name: str) -> str:
    """Whether a name has a row."""
    there = registry.has_row(registry.canonical(name)) or f".{name.rpartition('.')[2]}" in registry.METHODS
    return f"{name}: {'has a row' if there else 'has no row'}"


if __name__ == "__main__":
    for word in sys.argv[1:]:
        print(known(word) if word.replace(".", "").replace("_", "").isalnum() else said(word))
