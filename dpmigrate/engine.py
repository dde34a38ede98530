"""The whole flow of check and apply: read, find, plan, rewrite, verify, write. Nothing else writes files.

Facts, rules and rewriting are imported when the first file needs them: most files of a tree need none.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from dpmigrate.literals import FRAMEWORKS, TRAINING
from dpmigrate.model import Finding, Outcome, Problem, Start, Status, blockers, left
from dpmigrate.settings import Settings

if TYPE_CHECKING:
    from dpmigrate.facts.script import Script
    from dpmigrate.source import Source

Target = Path | tuple[Path, Problem] | tuple[str, bytes]


@dataclass(frozen=True, slots=True)
class Writing:
    """What apply does with a result: in place, to ``output``, or nowhere (``--diff``).

    ``annotate`` writes what is left to the user as comments, also into a program that is refused (in place only).
    ``gate`` is given each result before it is written and says why it must not be, None if it may.
    """

    write: bool = True
    output: Path | None = None
    vendor: bool = False
    annotate: bool = False
    gate: Callable[[Path, bytes], str | None] | None = None


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
    return Outcome(name, Status.CLEAN, reason=script.exempt, before=script.source.text, notes=told)


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
    from dpmigrate import rules

    found = rules.check(script)
    status = Status.FINDINGS if found else Status.CLEAN
    migrates = any(f.edits for f in found) and not blockers(found)
    return Outcome(name, status, found, script.exempt, before=script.source.text, starts=_starts(name, None) if migrates else ())


def _script(name: str, data: bytes, settings: Settings, literals: tuple[bytes, ...]) -> Script | Outcome:
    """The facts of a file, or its outcome where nothing in it is for us."""
    if not any(literal in data for literal in literals) and _plain(data):
        return Outcome(name, Status.CLEAN, reason="nothing is trained in this file")
    from dpmigrate.facts.script import Script
    from dpmigrate.source import parse

    source = parse(data, name)
    if isinstance(source, Problem):
        return Outcome(name, Status.FAILED, problem=source)
    return Script(source, for_file(settings, name))


def _plain(data: bytes) -> bool:
    """Whether the byte filter can be trusted: text in which the literals stand as they are."""
    return b"\0" not in data and not data.startswith((b"\xff\xfe", b"\xfe\xff"))


def _apply(name: str, data: bytes, settings: Settings, how: Writing) -> Outcome:
    script = _script(name, data, settings, FRAMEWORKS)
    if isinstance(script, Outcome):
        return Outcome(name, Status.UNCHANGED if script.status is Status.CLEAN else script.status, reason=script.reason, problem=script.problem)
    from dpmigrate import rules

    found = rules.check(script)
    text = script.source.text
    if script.exempt or not any(f.edits for f in found):
        if blockers(found):
            return _refused(script, found, how)
        return Outcome(name, Status.UNCHANGED, found, script.exempt or "nothing to change", before=text)
    if blockers(found):
        return _refused(script, found, how)
    after = rewritten(script, found, _comments(script, left(found)) if how.annotate else ())
    if isinstance(after, Problem):
        return Outcome(name, Status.REFUSED, found, after.message, before=text)
    encoded = script.source.encode(after)
    if how.gate is not None and not isinstance(encoded, Problem):
        stopped = how.gate(Path(name), encoded)
        if stopped is not None:
            return Outcome(name, Status.REFUSED, found, stopped, before=text)
    problem = encoded if isinstance(encoded, Problem) else _write(name, script.source, encoded, how)
    if problem is not None:
        return Outcome(name, Status.FAILED, found, problem=problem, before=text)
    return Outcome(name, Status.CHANGED, found, before=text, after=after, notes=rules.notes(script), starts=_starts(name, how.output))


def _starts(name: str, written: Path | None) -> tuple[Start, ...]:
    from dpmigrate.starts import starts

    return starts(Path(name), written)


def _refused(script: Script, found: tuple[Finding, ...], how: Writing) -> Outcome:
    """The program as it is; what stands in the way is written into it where the user wants that."""
    source = script.source
    refused = Outcome(source.name, Status.REFUSED, found, before=source.text)
    comments = _comments(script, blockers(found)) if how.annotate and how.output is None else ()
    if not comments:
        return refused
    after = _carried_out(script, comments, lambda new: [] if ast.dump(ast.parse(new)) == ast.dump(source.tree) else ["the comments changed the program"])
    encoded = after if isinstance(after, Problem) else source.encode(after)
    problem = encoded if isinstance(encoded, Problem) else _write(source.name, source, encoded, replace(how, vendor=False))
    if problem is not None:
        return replace(refused, status=Status.FAILED, problem=problem)
    assert isinstance(after, str)
    return replace(refused, after=after)


def _comments(script: Script, findings: Sequence[Finding]) -> tuple[Finding, ...]:
    from dpmigrate.annotate import annotated

    return tuple(annotated(script.source, findings))


def rewritten(script: Script, found: Sequence[Finding], comments: Sequence[Finding] = ()) -> str | Problem:
    """The migrated text after all self-checks, or what stood in the way."""
    return _carried_out(script, (*found, *comments), lambda new: _recheck(new, script))


def _carried_out(script: Script, found: Sequence[Finding], recheck: Callable[[str], Sequence[str]]) -> str | Problem:
    from dpmigrate.rewrite.apply import Refused, apply
    from dpmigrate.rewrite.compose import Conflict, compose
    from dpmigrate.rewrite.verify import verify

    text = script.source.text
    try:
        plan = compose(found)
        after = apply(text, plan)
    except Conflict as e:
        return Problem(f"two rules disagree, please report it: {e}")
    except Refused as e:
        where = f"line {e.span.line}: " if e.span is not None else ""
        return Problem(f"{where}{e.message}")
    wrong = verify(text, after, plan, recheck)
    return Problem(f"the result failed a self-check, please report it: {wrong[0]}") if wrong else after


def _recheck(text: str, script: Script) -> list[str]:
    """What a second run would still find in the result."""
    from dpmigrate.facts.script import Script
    from dpmigrate.source import parse

    source = parse(text.encode("utf-8", "surrogatepass"), script.source.name)
    if isinstance(source, Problem):
        return [source.message]
    again = Script(source, script.settings)
    return [] if again.exempt else ["a second run would not recognise the result as migrated"]


def _write(name: str, source: Source, data: bytes, how: Writing) -> Problem | None:
    if not how.write:
        return None
    from dpmigrate import writing

    target = how.output if how.output is not None else Path(name)
    problem = writing.create(target, data) if how.output is not None else writing.write(target, source.data, data)
    if problem is None and how.vendor:
        problem = writing.vendor(target.parent)
    return problem
