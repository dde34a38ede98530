"""What two ranks had at each site, beside what the engine says of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from dpmigrate.execution.placements import EQUAL
from tests.oracle.claims import Claim
from tests.oracle.runs import Log
from tests.oracle.sites import Site


@dataclass
class Seen:
    """A site that ran: how many pairs of values were compared, and the first that differs."""

    site: Site
    claim: Claim | None
    compared: int = 0
    differs: str = ""
    counts: str = ""  # where the ranks came here unequally often

    @property
    def wrong(self) -> str:
        """What the engine says and the ranks do not bear out; empty where there is nothing."""
        if self.claim is None:
            return ""
        found = self.differs if self.claim.uniform else ""
        return found or (self.counts if self.claim.together else "")

    def __str__(self) -> str:
        """``train.py:12:8: lr: the engine says uniform and all ranks come here; run 3 since meeting 5:
        float 0.1 | float 0.2``
        """
        had = self.differs or self.counts
        return f"{self.site.place}: {self.site.text}: the engine says {self.claim}; {had}"


@dataclass
class Figures:
    """How many sites there are of each sort."""

    programs: int = 0
    ran: int = 0
    #: of those with values that can be compared
    compared: int = 0
    uniform: int = 0
    #: all ranks come to them, says the engine
    together: int = 0
    wrong: int = 0
    #: they ran, and the engine has not come to them
    unreached: int = 0
    #: called otherwise, by the kind of placement: those that did not differ, and those that did
    imprecise: Counter[str] = field(default_factory=Counter)
    precise: Counter[str] = field(default_factory=Counter)

    def add(self, sites: Sequence[Seen]) -> None:
        """The sites of one more program."""
        self.programs += 1
        for seen in sites:
            claim = seen.claim
            self.ran += 1
            self.compared += bool(seen.compared)
            self.wrong += bool(seen.wrong)
            self.unreached += claim is None
            if claim is None:
                continue
            self.together += claim.together
            if seen.compared and claim.uniform:
                self.uniform += 1
            elif seen.compared:
                word = (
                    "where some come"
                    if claim.placement.kind in EQUAL
                    else claim.placement.kind.value
                )
                (self.precise if seen.differs else self.imprecise)[word] += 1

    def __str__(self) -> str:
        kinds = (
            f"{word}: {dict(sorted(held.items()))}"
            for word, held in (("did not differ", self.imprecise), ("differed", self.precise))
        )
        return (
            f"{self.programs} programs, {self.ran} sites, {self.compared} of them compared, "
            f"{self.uniform} called uniform, {self.together} for all ranks; "
            f"{self.wrong} not borne out; {self.unreached} not reached on paper\n"
            f"called otherwise: {'; '.join(kinds)}"
        )


def seen(
    sites: Sequence[Site], logs: Sequence[Mapping[int, Log]], claims: Mapping[int, Claim]
) -> Iterator[Seen]:
    """The sites that any rank came to."""
    for site in sites:
        if not any(site.number in log for log in logs):
            continue
        found = Seen(site, claims.get(site.number))
        ours, theirs = (log.get(site.number, Log()) for log in logs)
        for meeting in sorted(ours.counts.keys() | theirs.counts.keys()):
            _compare(found, meeting, ours, theirs)
        yield found


def _compare(found: Seen, meeting: int, ours: Log, theirs: Log) -> None:
    times = ours.counts.get(meeting, 0), theirs.counts.get(meeting, 0)
    together = found.claim is not None and found.claim.together
    if times[0] != times[1]:
        found.counts = (
            found.counts
            or f"since meeting {meeting} rank 0 came here {times[0]} times, rank 1 {times[1]} times"
        )
        if not together:
            return  # the turns of one rank are not those of the other
    pairs = zip(ours.seen.get(meeting, ()), theirs.seen.get(meeting, ()), strict=False)
    for run, (a, b) in enumerate(pairs, 1):
        if a.startswith("object ") and b.startswith("object "):
            continue
        if a == "NoneType None" and b.endswith("_rank0.Nothing"):
            continue  # what a method of an object gives that rank 0 alone has, for which there is nothing to use
        found.compared += 1
        if a != b and not found.differs:
            found.differs = f"run {run} since meeting {meeting}: {a} | {b}"
