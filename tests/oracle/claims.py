"""What the engine says of the sites of a program: how their values lie across the ranks, and whether
all ranks come to them.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field

from dpmigrate.execution import placements
from dpmigrate.execution.machine import Frame
from dpmigrate.execution.placements import EQUAL, Placement
from dpmigrate.execution.values import Atom, Items, Ref, Value, atom_placement
from dpmigrate.judge.judged import Judged
from dpmigrate.judge.watching import Watching
from dpmigrate.program import Program
from tests.oracle.sites import Sites

#: objects that are, or may come as, containers that a fingerprint goes into (``vars(x)``)
_HOLDERS = ("list", "dict", "set", "namespace", "iterator", "instance")
#: how deep; at least as deep as fingerprints go
_DEPTH = 4


@dataclass
class Claim:
    """What holds of a site in every context in which it was evaluated; ``regimes`` are those of
    ``Machine.regime``.
    """

    placement: Placement = placements.ZERO
    regimes: set[str] = field(default_factory=set)
    ends: bool = False  # in some context the expression has a value

    @property
    def uniform(self) -> bool:
        """Whether ranks that come here have the same values, one after the other."""
        # what is padded is the same but for the length of a rank's longest sample
        return self.ends and self.placement.kind in EQUAL and not self.placement.padded and "some" not in self.regimes

    @property
    def together(self) -> bool:
        """Whether all ranks come here equally often."""
        return self.regimes == {"all"}

    def __str__(self) -> str:
        where = {"own": "in turns of each rank's own", "some": "where only some ranks may come"}
        others = [where[r] for r in sorted(self.regimes) if r in where]
        return " and ".join([str(self.placement), *(others or ["all ranks come here"])])


class Observed(Judged):
    """An execution that remembers the values of the sites."""

    def __init__(self, program: Program, numbers: Mapping[ast.expr, int]) -> None:
        super().__init__(program, Watching())
        self.numbers = numbers
        self.claims: dict[int, Claim] = {}

    def evaluate(self, node: ast.expr, frame: Frame) -> Value:
        found = super().evaluate(node, frame)
        number = self.numbers.get(node)
        if number is not None:
            claim = self.claims.setdefault(number, Claim())
            claim.regimes.add(self.regime)
            if found:
                claim.ends = True
                claim.placement = placements.join(claim.placement, self._lies(found, 0))
        return found

    def _lies(self, v: Value, depth: int) -> Placement:
        """How a value lies, with all that it holds."""
        return placements.joined(self._atom_lies(a, depth) for a in v)

    def _atom_lies(self, atom: Atom, depth: int) -> Placement:
        if isinstance(atom, Items):
            return placements.joined(self._lies(i, depth) for i in atom.items)
        if (
            not isinstance(atom, Ref)
            or depth > _DEPTH
            or self.heap.objects[atom.object].kind not in _HOLDERS
        ):
            return atom_placement(atom)
        # past read(), which would note that the call under way depends on it
        heap = self.heap
        held = [heap._store.get((atom.object, name)) for name in heap.fields.get(atom.object, ())]
        return placements.joined(
            [placements.UNIFORM, *(self._lies(h, depth + 1) for h in held if h)]
        )


def claims(program: Program, sites: Sites) -> Mapping[int, Claim]:
    """Execute the program on paper; what it says of each site that it comes to."""
    execution = Observed(program, {node: n for n, node in enumerate(sites.nodes)})
    execution.run()
    assert execution.trace.ended is None, execution.trace.ended
    return execution.claims
