"""All mutants of a program, each the right migration with one edit spoiled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from dpmigrate.edit import AddImport, Edit
from dpmigrate.model import Finding
from dpmigrate.rewrite.compose import span_of
from tests.mutation.labels import label
from tests.mutation.operators import OPERATORS
from tests.mutation.places import Places
from tests.mutation.subjects import Subject

#: all edits of one finding at once, where there are several
FINDING = "finding missing"
WAYS = (*OPERATORS, FINDING)


@dataclass(frozen=True)
class Described:
    """What is said of a mutant: of which finding it spoils which edit, and how."""

    id: str
    case: str
    script: str
    code: str
    label: str
    way: str
    place: str  # file and line, in the original
    edit: str
    instead: str = ""

    @property
    def kind(self) -> str:
        """By what mutants are counted."""
        return f"{self.label}: {self.way}"


@dataclass(frozen=True)
class Mutant:
    """A mutant with the findings that make it."""

    described: Described
    findings: tuple[Finding, ...] = field(repr=False)


def mutants(subject: Subject) -> Iterator[Mutant]:
    """Every mutant, in the order of the text; the same ones in every process."""
    places = Places(part.tree for part in subject.script.program.parts)
    numbers: Counter[str] = Counter()
    for code, edit in _owned(subject.found):
        for way, operator in OPERATORS.items():
            for instead in operator(edit, places):
                found = _kept(subject.found, {edit: instead})
                yield _mutant(subject, numbers, code, label(edit), way, (edit,), instead, found)
    for finding in subject.found:
        own = [e for e in finding.edits if not isinstance(e, AddImport)]
        if len(own) > 1:
            found = _kept(subject.found, dict.fromkeys(own, ()))
            name = finding.code
            yield _mutant(subject, numbers, name, name, FINDING, tuple(own), (), found)


def _mutant(
    subject: Subject,
    numbers: Counter[str],
    code: str,
    name: str,
    way: str,
    edits: tuple[Edit, ...],
    instead: tuple[Edit, ...],
    found: tuple[Finding, ...],
) -> Mutant:
    key = f"{subject.key}:{code}:{name}:{way}"
    numbers[key] += 1
    place = _place(subject, edits[0])
    told = "; ".join(map(str, edits)), "; ".join(map(str, instead))
    case, script = subject.key.case, subject.key.script
    said = Described(f"{key}:{numbers[key]}", case, script, code, name, way, place, *told)
    return Mutant(said, found)


def _place(subject: Subject, edit: Edit) -> str:
    program = subject.script.program
    if isinstance(edit, AddImport):
        return program.entry.name
    return program.place(span_of(edit).line)


def _owned(found: Iterable[Finding]) -> list[tuple[str, Edit]]:
    """Every edit once, with the smallest code that asks for it, as ``compose`` counts them."""
    owners: dict[Edit, str] = {}
    for finding in found:
        for edit in finding.edits:
            owners[edit] = min(finding.code, owners.get(edit, finding.code))
    order = sorted(owners, key=lambda e: (span_of(e), owners[e], repr(e)))
    return [(owners[edit], edit) for edit in order]


def _kept(found: Iterable[Finding], instead: Mapping[Edit, Sequence[Edit]]) -> tuple[Finding, ...]:
    """The findings with other edits in the places of some. One that loses all of its edits is left out: with
    none it would be said of what is left to the user, and tell what the mutant is to pass over in silence.
    """
    out = []
    for finding in found:
        edits = tuple(new for e in finding.edits for new in instead.get(e, (e,)))
        if any(not isinstance(e, AddImport) for e in edits) or edits == finding.edits:
            out.append(replace(finding, edits=edits))
    return tuple(out)
