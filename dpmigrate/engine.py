"""The whole flow of check and apply: read, link, find, plan, rewrite, verify, write. Nothing else writes files.

Facts, rules and rewriting are imported when the first file needs them: most files of a tree need none.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from dpmigrate import transaction
from dpmigrate.literals import FRAMEWORKS, TRAINING
from dpmigrate.model import File, Finding, Outcome, Problem, Start, Status, blockers, left
from dpmigrate.settings import Settings

if TYPE_CHECKING:
    from dpmigrate.facts.script import Script
    from dpmigrate.source import Source

Target = Path | tuple[Path, Problem] | tuple[str, bytes]


@dataclass(frozen=True, slots=True)
class Writing:
    """What apply does with a result: in place, to ``output``, or nowhere (``--diff``).

    ``annotate`` writes what is left to the user as comments, also into a program that is refused (in place only).
    ``gate`` is given each result before it is written, the script and the new files, and says why it must not be, None if it may.
    """

    write: bool = True
    output: Path | None = None
    vendor: bool = False
    annotate: bool = False
    gate: Callable[[Path, Mapping[Path, bytes]], str | None] | None = None


def for_file(settings: Settings, name: str) -> Settings:
    """With what the project ignores in this file."""
    if not settings.per_file:
        return settings
    from dpmigrate.walk import matches

    more = [code for pattern, codes in settings.per_file if matches(name, pattern, settings.root) for code in codes]
    return replace(settings, ignore=(*settings.ignore, *more))


@dataclass(frozen=True, slots=True)
class _Planned:
    """What apply would do with one program: the new content of its files, and all files that belong to it."""

    outcome: Outcome
    new: tuple[tuple[Source, bytes], ...] = ()
    belonging: frozenset[Path] = frozenset()


def check(targets: Iterable[Target], settings: Settings) -> Iterator[Outcome]:
    """One outcome a program; never an exception for what a file holds. Modules of a program that was looked at are not looked at alone."""
    yield from (p.outcome for p in _each(targets, settings, lambda name, data, mine: _check(name, data, mine)))


def explain(targets: Iterable[Target], settings: Settings) -> Iterator[Outcome]:
    """For each program its roles, a line of ``notes`` each; none where nothing is trained."""
    yield from (p.outcome for p in _each(targets, settings, lambda name, data, mine: _explain(name, data, mine)))


def apply(targets: Iterable[Target], settings: Settings, how: Writing) -> Iterator[Outcome]:
    """Migrate each program, all or nothing; files that are refused stay byte-identical."""
    planned = list(_each(targets, settings, lambda name, data, mine: _plan(name, data, mine, how)))
    for plan in _agreed(planned):
        yield _carry_out(plan, how)


def _each(targets: Iterable[Target], settings: Settings, step: Callable[[str, bytes, Settings], _Planned]) -> Iterator[_Planned]:
    """The step for every target: scripts first, then the modules that belong to none of them."""
    from dpmigrate.programs import order

    given = list(targets)
    paths = [t for t in given if isinstance(t, Path)]
    if len(paths) < 2 or not settings.follow:
        scripts, modules, idle = paths, [], []
    else:
        sorted_ = order(paths, FRAMEWORKS)
        scripts, modules, idle = list(sorted_.scripts), list(sorted_.modules), list(sorted_.idle)
    met: set[Path] = set()
    alone = replace(settings, follow=False)
    for target in (t for t in given if not isinstance(t, Path)):
        yield _guarded(target, step, alone)
    for path in scripts:
        plan = _guarded(path, step, settings)
        met |= plan.belonging
        yield plan
    for path in modules:
        if _absolute(path) not in met:
            plan = _guarded(path, step, settings)
            met |= plan.belonging
            yield plan
    for path in idle:
        yield _guarded(path, step, alone)


def _guarded(target: Target, step: Callable[[str, bytes, Settings], _Planned], settings: Settings) -> _Planned:
    if isinstance(target, Path):
        name = str(target)
        data = _read(target)
        if isinstance(data, Problem):
            return _failed(name, data)
    else:
        name = str(target[0])
        if isinstance(target[1], Problem):
            return _failed(name, target[1])
        data = target[1]
    try:
        return step(name, data, settings)
    except RecursionError:
        return _failed(name, Problem("nested too deeply to be analysed"))
    except Exception as e:  # a fault of ours must not stop the other files, nor pass in silence
        return _failed(name, Problem(f"internal error, please report it: {type(e).__name__}: {e}"))


def _failed(name: str, problem: Problem) -> _Planned:
    return _Planned(Outcome(name, Status.FAILED, problem=problem))


def _absolute(path: Path) -> Path:
    return Path(os.path.abspath(path))


def _read(path: Path) -> bytes | Problem:
    try:
        return path.read_bytes()
    except OSError as e:
        return Problem(f"cannot be read: {e.strerror or e}")


def _check(name: str, data: bytes, settings: Settings) -> _Planned:
    script = _script(name, data, settings, TRAINING)
    if isinstance(script, Outcome):
        return _Planned(script)
    from dpmigrate import migration, rules

    if settings.follow and transaction.unfinished(Path(name)):
        return _failed(name, Problem("an apply was interrupted while it wrote this program: 'dpmigrate apply' finishes it, 'dpmigrate undo' takes it back"))
    found = rules.check(script)
    status = Status.FINDINGS if found else Status.CLEAN
    migrates = any(f.edits for f in found) and not blockers(found)
    starts = _starts(name, None) if migrates else ()
    return _Planned(Outcome(name, status, migration.files(script.program, found), script.exempt, starts=starts), belonging=_belonging(script))


def _explain(name: str, data: bytes, settings: Settings) -> _Planned:
    script = _script(name, data, settings, TRAINING)
    if isinstance(script, Outcome):
        return _Planned(script)
    from dpmigrate.facts.explain import explained

    told = tuple(f"{script.program.place(r.line)}: {r.part}: {r.what} ({r.evidence})" for r in explained(script))
    outcome = Outcome(name, Status.CLEAN, (File(name, before=script.program.entry.text),), script.exempt, notes=told)
    return _Planned(outcome, belonging=_belonging(script))


def _belonging(script: Script) -> frozenset[Path]:
    return frozenset(_absolute(Path(p.source.name)) for p in script.program.parts)


def _script(name: str, data: bytes, settings: Settings, literals: tuple[bytes, ...]) -> Script | Outcome:
    """The facts of a program, or its outcome where nothing in it is for us."""
    follow = settings.follow and b"import" in data
    if not follow and not _relevant(data, literals):
        return Outcome(name, Status.CLEAN, reason="nothing is trained in this file")
    from dpmigrate.facts.script import Script
    from dpmigrate.linking import link
    from dpmigrate.program import Program
    from dpmigrate.source import parse

    source = parse(data, name)
    if isinstance(source, Problem):
        return Outcome(name, Status.FAILED, problem=source)
    program = link(Path(name), source) if follow else Program.of(source)
    if not any(_relevant(p.source.data, literals) for p in program.parts):
        return Outcome(name, Status.CLEAN, reason="nothing is trained in this file" + (" or those that it imports" if len(program.parts) > 1 else ""))
    return Script(program, for_file(settings, name))


def _relevant(data: bytes, literals: tuple[bytes, ...]) -> bool:
    """Whether the byte filter lets the file through: it holds a literal, or cannot be trusted to show one."""
    return any(literal in data for literal in literals) or b"\0" in data or data.startswith((b"\xff\xfe", b"\xfe\xff"))


def _plan(name: str, data: bytes, settings: Settings, how: Writing) -> _Planned:
    finished = ""
    if settings.follow and how.write and how.output is None and transaction.unfinished(Path(name)):
        told = transaction.recover(Path(name))
        if isinstance(told, Problem):
            return _failed(name, told)
        finished, data = f"{told}; ", Path(name).read_bytes()
    script = _script(name, data, settings, FRAMEWORKS)
    if isinstance(script, Outcome):
        status = Status.UNCHANGED if script.status is Status.CLEAN else script.status
        return _Planned(replace(script, status=status, reason=finished + script.reason))
    from dpmigrate import migration, rules

    found = rules.check(script)
    files = migration.files(script.program, found)
    migrated = migration.migrated_with_another(script.program)
    if migrated:
        told = f"{migrated} was migrated with another script: undo that (dpmigrate undo), and give both scripts at once"
        return _Planned(Outcome(name, Status.REFUSED, files, finished + told), belonging=_belonging(script))
    if blockers(found):
        return _refused(script, found, how)
    if script.exempt or not any(f.edits for f in found):
        return _Planned(Outcome(name, Status.UNCHANGED, files, finished + (script.exempt or "nothing to change")), belonging=_belonging(script))
    texts = migration.rewritten(script, found, _comments(script, left(found)) if how.annotate else ())
    new = texts if isinstance(texts, Problem) else migration.encoded(texts)
    if isinstance(texts, Problem) or isinstance(new, Problem):
        status = Status.REFUSED if isinstance(texts, Problem) else Status.FAILED
        problem = texts if isinstance(texts, Problem) else new
        assert isinstance(problem, Problem)
        refused = Outcome(name, status, files, problem.message) if status is Status.REFUSED else Outcome(name, status, files, problem=problem)
        return _Planned(refused, belonging=_belonging(script))
    outcome = Outcome(name, Status.CHANGED, migration.files(script.program, found, texts), notes=rules.notes(script), starts=_starts(name, how.output))
    return _Planned(outcome, tuple(new), _belonging(script))


def _starts(name: str, written: Path | None) -> tuple[Start, ...]:
    from dpmigrate.starts import starts

    return starts(Path(name), written)


def _refused(script: Script, found: tuple[Finding, ...], how: Writing) -> _Planned:
    """The program as it is; what stands in the way is written into it where the user wants that."""
    from dpmigrate import migration

    refused = Outcome(script.program.entry.name, Status.REFUSED, migration.files(script.program, found))
    comments = _comments(script, blockers(found)) if how.annotate and how.output is None else ()
    texts = migration.carried_out(script.program, comments, only_comments=True)
    new = texts if isinstance(texts, Problem) else migration.encoded(texts)
    if isinstance(texts, Problem) or isinstance(new, Problem):
        return _Planned(replace(refused, status=Status.FAILED, problem=texts if isinstance(texts, Problem) else new), belonging=_belonging(script))  # type: ignore[arg-type]
    return _Planned(replace(refused, files=migration.files(script.program, found, texts)), tuple(new), _belonging(script))


def _comments(script: Script, findings: Sequence[Finding]) -> tuple[Finding, ...]:
    from dpmigrate.annotate import annotated

    return tuple(annotated(script.program, findings))


def _agreed(planned: Sequence[_Planned]) -> Iterator[_Planned]:
    """The plans, with those refused that want one file in different ways: a module that two scripts use must be right for both."""
    wishes = [{_absolute(Path(source.name)): data for source, data in p.new} for p in planned]
    for plan, mine in zip(planned, wishes, strict=True):
        other = next((o for o, theirs in zip(planned, wishes, strict=True) if o is not plan and mine and theirs and _differ(plan, mine, o, theirs)), None)
        if other is None:
            yield plan
        else:
            shared = _differ(plan, mine, other, wishes[planned.index(other)])
            reason = f"{shared} also belongs to {other.outcome.path}, which needs it in another way; give each script a module of its own"
            files = tuple(replace(f, after=None) for f in plan.outcome.files)
            yield _Planned(replace(plan.outcome, status=Status.REFUSED, files=files, reason=reason, notes=(), starts=()), belonging=plan.belonging)


def _differ(plan: _Planned, mine: Mapping[Path, bytes], other: _Planned, theirs: Mapping[Path, bytes]) -> Path | None:
    """A file of both programs that one of them wants in another way than the other; None if there is none."""
    for path in sorted(mine.keys() | theirs.keys()):
        if path in plan.belonging and path in other.belonging and mine.get(path) != theirs.get(path):
            return path
    return None


def _carry_out(plan: _Planned, how: Writing) -> Outcome:
    """Write what was planned, if the gate lets it pass."""
    outcome = plan.outcome
    if not plan.new:
        return outcome
    as_it_was = replace(outcome, files=tuple(replace(f, after=None) for f in outcome.files), notes=(), starts=())
    if how.gate is not None and outcome.status is Status.CHANGED:
        stopped = how.gate(Path(outcome.path), {Path(source.name): data for source, data in plan.new})
        if stopped is not None:
            return replace(as_it_was, status=Status.REFUSED, reason=stopped)
    problem = _write(Path(outcome.path), plan.new, how if outcome.status is Status.CHANGED else replace(how, vendor=False))
    return outcome if problem is None else replace(as_it_was, status=Status.FAILED, problem=problem)


def _write(script: Path, new: Sequence[tuple[Source, bytes]], how: Writing) -> Problem | None:
    if not how.write:
        return None
    from dpmigrate import writing

    if how.output is None:
        wanted = [transaction.Change(Path(source.name), source.data, data) for source, data in new]
        problem = transaction.write(script, [c for c in wanted if _read(c.path) != c.after])  # another program may have written a shared file
    elif len(new) == 1:
        problem = writing.create(how.output, new[0][1])
    else:
        names = ", ".join(source.name for source, _ in new)
        return Problem(f"--output takes one file, and this program changes in {len(new)}: {names}")
    if problem is None and how.vendor:
        problem = writing.vendor((how.output or script).parent)
    return problem
