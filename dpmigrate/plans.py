"""What is planned for several programs, and what of it is written: a file that two of them share must be right for both, and both are written or none."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from functools import cached_property
from pathlib import Path
from textwrap import shorten

from dpmigrate import interrupts, transaction
from dpmigrate.model import Outcome, Problem, Status
from dpmigrate.transaction import Change


@dataclass(frozen=True, slots=True)
class Writing:
    """What apply does with a result: in place, to ``output``, or nowhere (``--diff``).

    ``annotate`` writes what is left to the user as comments, also into a program that is refused (in place only).
    ``gate`` is given each result before it is written, the script and all files of the program as they will be, and says why it must not be, None if it may.
    """

    write: bool = True
    output: Path | None = None
    vendor: bool = False
    annotate: bool = False
    gate: Callable[[Path, Mapping[Path, bytes]], str | None] | None = None


@dataclass(frozen=True, eq=False)
class Planned:
    """What apply would do with one program: its files as they are, and those that change."""

    outcome: Outcome
    files: Mapping[Path, bytes] = field(default_factory=dict)
    changes: tuple[Change, ...] = ()

    @property
    def migrates(self) -> bool:
        """Whether the program is rewritten; one that is refused may get comments."""
        return self.outcome.status is Status.CHANGED

    @cached_property
    def belonging(self) -> frozenset[Path]:
        """All files of the program."""
        return frozenset(map(absolute, self.files))

    @cached_property
    def written(self) -> Mapping[Path, bytes]:
        """The new content of each file that changes."""
        return {absolute(c.path): c.after for c in self.changes}

    def wanted(self, path: Path) -> str:
        """The file as the program wants it, changed or not."""
        return next(text for p, text in self.result.items() if absolute(p) == path).decode(errors="replace")

    @property
    def result(self) -> Mapping[Path, bytes]:
        """All files of the program as they will be."""
        return {**self.files, **{c.path: c.after for c in self.changes}}

    def left(self, status: Status, *, reason: str = "", problem: Problem | None = None) -> Planned:
        """The program left as it is, and why."""
        files = tuple(replace(f, after=None) for f in self.outcome.files)
        return Planned(replace(self.outcome, status=status, files=files, reason=reason, problem=problem, notes=(), starts=(), unread=()), self.files)

    def noted(self, notes: tuple[str, ...]) -> Planned:
        """The plan with more to be said in the report."""
        return replace(self, outcome=replace(self.outcome, notes=(*self.outcome.notes, *notes)))

    def without(self, paths: frozenset[Path]) -> Planned:
        """The plan without the changes of these files."""
        files = tuple(replace(f, after=None) if absolute(Path(f.path)) in paths else f for f in self.outcome.files)
        return replace(self, outcome=replace(self.outcome, files=files), changes=tuple(c for c in self.changes if absolute(c.path) not in paths))


def absolute(path: Path) -> Path:
    """The path from the root, with links as they are."""
    return Path(os.path.abspath(path))


def agreed(planned: Sequence[Planned]) -> list[Planned]:
    """The plans, with those refused that want one file in different ways; comments of refused programs give way to what is migrated."""
    plans = [_agreed(plan, planned) for plan in planned]
    taken = frozenset(path for plan in plans if plan.migrates for path in plan.written)
    for i, plan in enumerate(plans):
        if not plan.migrates:
            plans[i] = plan.without(taken)
            taken |= plans[i].written.keys()
    return plans


def _agreed(plan: Planned, planned: Sequence[Planned]) -> Planned:
    for other in planned:
        if plan is not other and plan.migrates and other.migrates and (shared := _disputed(plan, other)) is not None:
            lines = _apart(plan.wanted(shared), other.wanted(shared))
            reason = f"{shared} also belongs to {other.outcome.path}, which needs it in another way{lines}; give each script a module of its own"
            return plan.left(Status.REFUSED, reason=reason)
    return plan


def _disputed(plan: Planned, other: Planned) -> Path | None:
    """A file of both programs that one of them wants in another way than the other; None if there is none."""
    for path in sorted((plan.written.keys() | other.written.keys()) & plan.belonging & other.belonging):
        if plan.written.get(path) != other.written.get(path):
            return path
    return None


def _apart(mine: str, theirs: str) -> str:
    """Two lines by which the texts differ, one that both have in another form where there is one: ``: 'x = 1' here, 'x = 2' there``."""
    one, other = ([line.strip() for line in text.splitlines() if line.strip()] for text in (mine, theirs))
    pairs = []
    for what, start, end, begin, until in SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
        telling = [[line for line in lines if not line.startswith(("import ", "from "))][:1] for lines in (one[start:end], other[begin:until])]
        if what != "equal" and any(telling):
            pairs.append((what != "replace", [repr(shorten(line[0], 70, placeholder=" …")) if line else "nothing" for line in telling]))
    return ": {} here, {} there".format(*min(pairs, key=lambda pair: pair[0])[1]) if pairs else ""


def carried_out(planned: Sequence[Planned], how: Writing) -> Iterator[Outcome]:
    """Write what was planned, if the gate lets it pass: programs that share a file that changes are written together or not at all.

    A signal ends it between two groups, after the outcomes of all that is written: ``Interrupted``.
    """
    done: dict[Planned, Outcome] = {}
    with interrupts.held():
        for i, plan in enumerate(planned):
            if plan not in done:
                group = _sharing(plan, planned)
                try:
                    with interrupts.released():
                        stopped = _stopped(group, how)
                except KeyboardInterrupt:
                    yield from (done[p] for p in planned[i:] if p in done)
                    raise
                done |= stopped or _written_together(group, how)
            yield done[plan]


def _written_together(group: Sequence[Planned], how: Writing) -> Mapping[Planned, Outcome]:
    """Write the programs of a group; where one of them cannot be written, those before it get their old files again."""
    done: dict[Planned, Outcome] = {}
    for plan in group:
        done[plan] = _written(plan, [o for o in group if o is not plan], how)
        if done[plan].problem is not None and plan.changes and len(group) > 1:
            told = f"it shares files with {plan.outcome.path}, which could not be written"
            return {p: done[p] if p is plan else _taken_back(p, told, p in done) for p in reversed(group)}
    return done


def _taken_back(plan: Planned, told: str, written: bool) -> Outcome:
    """The program as it was before, or, where it cannot be, what the user can do."""
    problem = transaction.undo(Path(plan.outcome.path)) if written and plan.changes else None
    if isinstance(problem, Problem):
        return plan.noted((f"{told}, and this one cannot be taken back: {problem.message}",)).outcome
    return plan.left(Status.REFUSED, reason=told).outcome


def _sharing(plan: Planned, planned: Sequence[Planned]) -> list[Planned]:
    """The plan and all that change a file of it, or of one another."""
    group, paths = [plan], set(plan.written)
    while more := [p for p in planned if p not in group and paths & p.written.keys()]:
        group += more
        paths.update(*(p.written for p in more))
    return group


def _stopped(group: Sequence[Planned], how: Writing) -> Mapping[Planned, Outcome]:
    """What is said of each program where one of them must not be written, or cannot be; nothing where all may."""
    for plan in group:
        why = how.gate(Path(plan.outcome.path), plan.result) if how.gate is not None and plan.migrates else None
        stopped = plan.left(Status.REFUSED, reason=why) if why is not None else None
        if stopped is None and len(group) > 1 and (problem := _obstacle(plan, how)) is not None:
            stopped, why = plan.left(Status.FAILED, problem=problem), problem.message
        if stopped is not None:
            told = f"it shares files with {plan.outcome.path}, which is not written: {why}"
            return {p: (stopped if p is plan else p.left(Status.REFUSED, reason=told)).outcome for p in group}
    return {}


def _obstacle(plan: Planned, how: Writing) -> Problem | None:
    from dpmigrate import writing

    found = (writing.obstacle(c.path, c.before) for c in plan.changes if how.write)
    return next((problem for problem in found if problem is not None), None)


def _written(plan: Planned, others: Sequence[Planned], how: Writing) -> Outcome:
    """Write the files of one program; the others share some of them."""
    if not (how.write and plan.changes):
        return plan.outcome
    from dpmigrate import writing

    script = Path(plan.outcome.path)
    beside = _runtime_place(plan, how)
    fresh = beside is not None and not os.path.lexists(writing.vendored(beside))
    problem = writing.vendor(beside) if beside is not None else None
    if problem is not None:
        return plan.left(Status.FAILED, problem=problem).outcome
    if how.output is None:
        problem = transaction.write(script, plan.changes, [Path(o.outcome.path) for o in others])
    elif len(plan.changes) == 1:
        problem = writing.create(how.output, plan.changes[0].after)
    else:
        names = ", ".join(str(c.path) for c in plan.changes)
        problem = Problem(f"--output takes one file, and this program changes in {len(plan.changes)}: {names}")
    if problem is None:
        return plan.outcome
    if beside is not None and fresh:
        writing.unvendor(beside)
    return plan.left(Status.FAILED, problem=problem).outcome


def _runtime_place(plan: Planned, how: Writing) -> Path | None:
    """The folder that gets a copy of the runtime; None where the user wants none."""
    if not how.vendor or not plan.migrates:
        return None
    from dpmigrate.started import result_as_module

    script = Path(plan.outcome.path)
    module = result_as_module(script, how.output)  # python -m looks where it is started, not beside the script
    return module.folder if module is not None else (how.output or script).parent
