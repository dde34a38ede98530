"""The whole flow of check and apply: read, link, find, plan, rewrite, verify, write. Nothing else writes files.

Facts, rules and rewriting are imported when the first file needs them: most files of a tree need none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from dpmigrate.literals import FRAMEWORKS, TRAINING
from dpmigrate.model import File, Finding, Outcome, Problem, Status, blockers, left
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


def check(targets: Iterable[Target], settings: Settings) -> Iterator[Outcome]:
    """One outcome a file; never an exception for what a file holds."""
    for target in targets:
        yield _guarded(target, lambda name, data: _check(name, data, settings))


def explain(targets: Iterable[Target], settings: Settings) -> Iterator[Outcome]:
    """For each file its roles, a line of ``notes`` each; none where nothing is trained."""
    for target in targets:
        yield _guarded(target, lambda name, data: _explain(name, data, settings))


def _explain(name: str, data: bytes, settings: Settings) -> Outcome:
    script = _script(name, data, settings, TRAINING)
    if isinstance(script, Outcome):
        return script
    from dpmigrate.facts.explain import explained

    told = tuple(f"{r.line}: {r.part}: {r.what} ({r.evidence})" for r in explained(script))
    return Outcome(name, Status.CLEAN, (File(name, before=script.program.entry.text),), script.exempt, notes=told)


def apply(targets: Iterable[Target], settings: Settings, how: Writing) -> Iterator[Outcome]:
    """Migrate each program, all or nothing; files that are refused stay byte-identical."""
    for target in targets:
        yield _guarded(target, lambda name, data: _apply(name, data, settings, how))


def _guarded(target: Target, step: Callable[[str, bytes], Outcome]) -> Outcome:
    if isinstance(target, Path):
        name = str(target)
        data = _read(target)
        if isinstance(data, Problem):
            return Outcome(name, Status.FAILED, problem=data)
    else:
        name = str(target[0])
        if isinstance(target[1], Problem):
            return Outcome(name, Status.FAILED, problem=target[1])
        data = target[1]
    try:
        return step(name, data)
    except RecursionError:
        return Outcome(name, Status.FAILED, problem=Problem("nested too deeply to be analysed"))
    except Exception as e:  # a fault of ours must not stop the other files, nor pass in silence
        return Outcome(name, Status.FAILED, problem=Problem(f"internal error, please report it: {type(e).__name__}: {e}"))


def _read(path: Path) -> bytes | Problem:
    try:
        return path.read_bytes()
    except OSError as e:
        return Problem(f"cannot be read: {e.strerror or e}")


def _check(name: str, data: bytes, settings: Settings) -> Outcome:
    script = _script(name, data, settings, TRAINING)
    if isinstance(script, Outcome):
        return script
    from dpmigrate import migration, rules

    found = rules.check(script)
    status = Status.FINDINGS if found else Status.CLEAN
    return Outcome(name, status, migration.files(script.program, found), script.exempt)


def _script(name: str, data: bytes, settings: Settings, literals: tuple[bytes, ...]) -> Script | Outcome:
    """The facts of a program, or its outcome where nothing in it is for us."""
    path = Path(name) if settings.follow else None
    if not _relevant(data, literals) and not (path is not None and _imports(data)):
        return Outcome(name, Status.CLEAN, reason="nothing is trained in this file")
    from dpmigrate.facts.script import Script
    from dpmigrate.linking import link
    from dpmigrate.program import Program
    from dpmigrate.source import parse

    source = parse(data, name)
    if isinstance(source, Problem):
        return Outcome(name, Status.FAILED, problem=source)
    program = link(path, source) if path is not None else Program.of(source)
    if not any(_relevant(p.source.data, literals) for p in program.parts):
        return Outcome(name, Status.CLEAN, reason="nothing is trained in this program")
    return Script(program, for_file(settings, name))


def _relevant(data: bytes, literals: tuple[bytes, ...]) -> bool:
    return any(literal in data for literal in literals) or not _plain(data)


def _imports(data: bytes) -> bool:
    return b"import" in data


def _plain(data: bytes) -> bool:
    """Whether the byte filter can be trusted: text in which the literals stand as they are."""
    return b"\0" not in data and not data.startswith((b"\xff\xfe", b"\xfe\xff"))


def _apply(name: str, data: bytes, settings: Settings, how: Writing) -> Outcome:
    script = _script(name, data, settings, FRAMEWORKS)
    if isinstance(script, Outcome):
        return Outcome(name, Status.UNCHANGED if script.status is Status.CLEAN else script.status, reason=script.reason, problem=script.problem)
    from dpmigrate import migration, rules

    found = rules.check(script)
    as_it_is = Outcome(name, Status.UNCHANGED, migration.files(script.program, found), script.exempt or "nothing to change")
    if blockers(found):
        return _refused(script, found, how)
    if script.exempt or not any(f.edits for f in found):
        return as_it_is
    texts = migration.rewritten(script, found, _comments(script, left(found)) if how.annotate else ())
    if isinstance(texts, Problem):
        return replace(as_it_is, status=Status.REFUSED, reason=texts.message)
    new = migration.encoded(texts)
    if how.gate is not None and not isinstance(new, Problem):
        stopped = how.gate(Path(name), {Path(source.name): data for source, data in new})
        if stopped is not None:
            return replace(as_it_is, status=Status.REFUSED, reason=stopped)
    problem = new if isinstance(new, Problem) else _write(Path(name), new, how)
    if problem is not None:
        return replace(as_it_is, status=Status.FAILED, reason="", problem=problem)
    return Outcome(name, Status.CHANGED, migration.files(script.program, found, texts), notes=rules.notes(script))


def _refused(script: Script, found: tuple[Finding, ...], how: Writing) -> Outcome:
    """The program as it is; what stands in the way is written into it where the user wants that."""
    from dpmigrate import migration

    name = script.program.entry.name
    refused = Outcome(name, Status.REFUSED, migration.files(script.program, found))
    comments = _comments(script, blockers(found)) if how.annotate and how.output is None else ()
    if not comments:
        return refused
    texts = migration.carried_out(script.program, comments, only_comments=True)
    new = texts if isinstance(texts, Problem) else migration.encoded(texts)
    problem = new if isinstance(new, Problem) else _write(Path(name), new, replace(how, vendor=False))
    if problem is not None:
        return replace(refused, status=Status.FAILED, problem=problem)
    assert not isinstance(texts, Problem)
    return replace(refused, files=migration.files(script.program, found, texts))


def _comments(script: Script, findings: Sequence[Finding]) -> tuple[Finding, ...]:
    from dpmigrate.annotate import annotated

    return tuple(annotated(script.program, findings))


def _write(script: Path, new: Sequence[tuple[Source, bytes]], how: Writing) -> Problem | None:
    if not how.write:
        return None
    from dpmigrate import writing

    if how.output is None:
        problem = writing.write_all([(Path(source.name), source.data, data) for source, data in new])
    elif len(new) == 1:
        problem = writing.create(how.output, new[0][1])
    else:
        names = ", ".join(source.name for source, _ in new)
        return Problem(f"--output takes one file, and this program changes in {len(new)}: {names}")
    if problem is None and how.vendor:
        problem = writing.vendor((how.output or script).parent)
    return problem
