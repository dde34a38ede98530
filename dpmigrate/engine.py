"""The whole flow of check and apply: read, link, find, plan, rewrite, verify, write. Nothing else writes files.

Facts, rules and rewriting are imported when the first file needs them: most files of a tree need none.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from dpmigrate import reading, transaction
from dpmigrate.execution.budget import planning
from dpmigrate.literals import BY_NAME, FRAMEWORKS, TRAINED_WITH, TRAINING, UNSEEN
from dpmigrate.model import File, Finding, Outcome, Problem, Severity, Status, blockers, left
from dpmigrate.plans import Planned, Writing, absolute, agreed, carried_out
from dpmigrate.settings import Settings
from dpmigrate.transaction import Change

if TYPE_CHECKING:
    from dpmigrate import migration
    from dpmigrate.facts.script import Script
    from dpmigrate.judge import Judgement
    from dpmigrate.program import Program
    from dpmigrate.source import Source

__all__ = ["Target", "Writing", "apply", "check", "explain"]

Target = Path | tuple[Path, Problem] | tuple[str, bytes]


def check(targets: Iterable[Target], settings: Settings) -> Iterator[Outcome]:
    """One outcome a program; never an exception for what a file holds. Modules of a program that was looked at are not looked at alone."""
    yield from (p.outcome for p in _each(targets, settings, lambda name, data, mine: _check(name, data, mine)))


def explain(targets: Iterable[Target], settings: Settings) -> Iterator[Outcome]:
    """For each program its roles, a line of ``notes`` each; none where nothing is trained."""
    yield from (p.outcome for p in _each(targets, settings, lambda name, data, mine: _explain(name, data, mine)))


def apply(targets: Iterable[Target], settings: Settings, how: Writing) -> Iterator[Outcome]:
    """Migrate each program, all or nothing; files that are refused stay byte-identical."""
    given = list(targets)

    def step(name: str, data: bytes, mine: Settings) -> Planned:
        return _plan(name, data, mine, how)

    planned = agreed(list(_each(given, settings, step)))
    if how.output is None:
        users = _importers(planned, [t for t in given if isinstance(t, Path)])
        if users:
            for_both = replace(settings, shared=frozenset(map(str, users)))
            planned = agreed([_guarded(Path(p.outcome.path), step, for_both) if p.migrates and users.keys() & p.written.keys() else p for p in planned])
        planned = [plan.noted(_told(plan, users)) if plan.migrates else plan for plan in planned]
    yield from carried_out(planned, how)


def _importers(planned: Sequence[Planned], given: Sequence[Path]) -> dict[Path, list[str]]:
    """The files that change, each with the scripts that import it and stay as they are."""
    migrated = frozenset(path for p in planned if p.migrates for path in p.belonging)
    changed = {path for p in planned if p.migrates for path in p.written if os.path.isfile(path)}
    if not changed:
        return {}
    from dpmigrate.importers import importers

    users: dict[Path, list[str]] = {}
    for path, user in importers(changed, migrated, given):
        users.setdefault(path, []).append(user)
    return users


def _told(plan: Planned, users: Mapping[Path, Sequence[str]]) -> tuple[str, ...]:
    """A sentence for each group of scripts, with all the files that they share with the program."""
    shared: dict[tuple[str, ...], list[Path]] = {}
    for c in plan.changes:
        if who := users.get(absolute(c.path)):
            shared.setdefault(tuple(who), []).append(c.path)
    out = []
    for who, paths in shared.items():
        names = [str(p) for p in paths]
        files = f"{', '.join(names[:-1])} and {names[-1]} are" if len(names) > 1 else f"{names[0]} is"
        right = "the new files are" if len(names) > 1 else f"the new {paths[0].name} is"
        out.append(f"{files} also imported by {', '.join(who)}, not rewritten here: see that {right} right there too.")
    return tuple(out)


def _each(targets: Iterable[Target], settings: Settings, step: Callable[[str, bytes, Settings], Planned]) -> Iterator[Planned]:
    """The step for every target: scripts first, then the modules that belong to none of them."""
    from dpmigrate.programs import kinds

    given = list(targets)
    paths = [t for t in given if isinstance(t, Path)]
    if len(paths) < 2 or not settings.follow:
        scripts, modules, idle = paths, [], []
    else:
        found = kinds(paths, FRAMEWORKS)
        scripts, modules, idle = list(found.scripts), list(found.modules), list(found.idle)
    met: set[Path] = set()
    alone = replace(settings, follow=False)
    for target in (t for t in given if not isinstance(t, Path)):
        yield _guarded(target, step, alone)
    for path in scripts:
        plan = _guarded(path, step, settings)
        met |= plan.belonging
        yield plan
    for path in modules:
        if absolute(path) not in met:
            plan = _guarded(path, step, settings)
            met |= plan.belonging
            yield plan
    for path in idle:
        yield _guarded(path, step, alone)


def _guarded(target: Target, step: Callable[[str, bytes, Settings], Planned], settings: Settings) -> Planned:
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
        with planning():
            return step(name, data, settings)
    except RecursionError:
        return _failed(name, Problem("nested too deeply to be analysed"))
    except OSError as e:
        return _failed(name, Problem(f"{e.filename or 'a file that it needs'} cannot be read: {reading.why(e)}"))
    except Exception as e:  # a fault of ours must not stop the other files, nor pass in silence
        return _failed(name, Problem(f"internal error, please report it: {type(e).__name__}: {e}"))


def _failed(name: str, problem: Problem) -> Planned:
    return Planned(Outcome(name, Status.FAILED, problem=problem))


def _read(path: Path) -> bytes | Problem:
    try:
        return reading.content(path)
    except OSError as e:
        return Problem(f"cannot be read: {reading.why(e)}")


def _check(name: str, data: bytes, settings: Settings) -> Planned:
    script = _script(name, data, settings, TRAINING)
    if isinstance(script, Outcome):
        return Planned(script)
    from dpmigrate import migration, rules

    if settings.follow and transaction.unfinished(Path(name)):
        return _failed(name, Problem("an apply was interrupted while it wrote this program: 'dpmigrate apply' finishes it, 'dpmigrate undo' takes it back"))
    half = migration.half_done(script)
    if half:
        return _planned(script, Outcome(name, Status.REFUSED, migration.files(script.program, ()), half))
    found = rules.check(script)
    status = Status.FINDINGS if found else Status.CLEAN
    migrates = any(f.edits for f in found) and not blockers(found)
    outcome = Outcome(name, status, migration.files(script.program, found), script.exempt)
    return _planned(script, _with_starts(outcome, None) if migrates else outcome)


def _explain(name: str, data: bytes, settings: Settings) -> Planned:
    script = _script(name, data, settings, TRAINING)
    if isinstance(script, Outcome):
        return Planned(replace(script, notes=()))
    from dpmigrate.facts.explain import explained

    told = tuple(f"{script.program.place(r.line)}: {r.part}: {r.what} ({r.evidence})" for r in explained(script))
    reason = script.exempt or ("" if script.roles.backwards else "what trains is not seen, as a check says")
    outcome = Outcome(name, Status.CLEAN, (File(name, before=script.program.entry.text),), reason, notes=told)
    return replace(_planned(script, outcome), outcome=outcome)


def _script(name: str, data: bytes, settings: Settings, literals: tuple[bytes, ...]) -> Script | Outcome:
    """The facts of a program, or its outcome where nothing in it is for us."""
    follow = settings.follow and b"import" in data
    if not follow and not _relevant([data], literals):
        return Outcome(name, Status.CLEAN, reason=_idle([data]))
    from dpmigrate.facts.script import Script
    from dpmigrate.linking import link
    from dpmigrate.program import Program
    from dpmigrate.source import parse

    source = parse(data, name)
    if isinstance(source, Problem):
        return Outcome(name, Status.FAILED, problem=source)
    program = link(Path(name), source) if follow else Program.of(source)
    for closed, problem in program.closed:  # what it does cannot be known
        return Outcome(name, Status.FAILED, problem=Problem(f"{closed}, which it imports, {problem.message}"))
    files = [p.source.data for p in program.parts]
    script = Script.running(program, settings) if _relevant(files, literals) else None
    if script is None or script.idle:
        for unread, problem in program.unread:  # what is trained may stand there
            if problem.line is not None and _relevant([reading.content(Path(unread))], literals):
                return Outcome(name, Status.FAILED, problem=Problem(f"{unread}, which it imports, cannot be read: line {problem.line}: {problem.message}"))
    return script or Outcome(name, Status.CLEAN, reason=_idle(files), notes=_unread(program))


def _relevant(files: Sequence[bytes], literals: tuple[bytes, ...]) -> bool:
    """Whether the byte filter lets a program through: a file holds a literal, cannot be trusted to show one, or may train without showing it."""

    def held(wanted: tuple[bytes, ...]) -> bool:
        return any(literal in data for data in files for literal in wanted)

    unclear = any(b"\0" in data or data.startswith((b"\xff\xfe", b"\xfe\xff")) for data in files)
    if unclear or held(literals) or (held(BY_NAME) and held(TRAINED_WITH)):
        return True
    return held(FRAMEWORKS) and any(UNSEEN.search(data) for data in files)


def _idle(files: Sequence[bytes]) -> str:
    """Why the byte filter leaves a program out."""
    where = "in this file" + (" or those that it imports" if len(files) > 1 else "")
    used = any(literal in data for data in files for literal in FRAMEWORKS)
    return f"nothing is trained {where}" if used else f"torch is not used {where}"


def _plan(name: str, data: bytes, settings: Settings, how: Writing) -> Planned:
    finished = ""
    if settings.follow and how.write and how.output is None and transaction.unfinished(Path(name)):
        told = transaction.recover(Path(name))
        if isinstance(told, Problem):
            return _failed(name, told)
        finished, data = f"{told}; ", reading.content(Path(name))
    script = _script(name, data, settings, FRAMEWORKS)
    if isinstance(script, Outcome):
        status = Status.UNCHANGED if script.status is Status.CLEAN else script.status
        return Planned(replace(script, status=status, reason=finished + script.reason))
    return _of_script(name, script, how, finished, [])


def _of_script(name: str, script: Script, how: Writing, finished: str, results: list[Judgement]) -> Planned:
    """A program planned; ``results``: what the judge has said of those that were not right, one after the other."""
    from dpmigrate import migration, rules

    half = migration.half_done(script)
    if half:
        return _planned(script, Outcome(name, Status.REFUSED, migration.files(script.program, ()), finished + half))
    found = rules.check(script)
    files = migration.files(script.program, found)
    texts: migration.Judged | Problem | None = None
    without: migration.Judged | None = None
    why = ""
    of_others: tuple[str, ...] = ()
    rest = tuple(f for f in found if not (f.of_means and (f.edits or f.severity is Severity.BLOCKER)))
    if len(rest) < len(found) and not blockers(rest) and not script.exempt:
        texts = migration.rewritten(script, rest)
        if (again := _again(name, script, how, finished, texts, results)) is not None:
            return again
        if isinstance(texts, migration.Judged) and texts.judgement.means and not texts.judgement.doubts:
            if not texts.judgement.by_default:
                found = rest
            elif blockers(found):
                found, of_others = rest, migration.of_other_options(script.program, blockers(_not_mended(found)))
            else:  # what other values of the options lead to may need these edits
                without, texts = texts, None
        elif script.shown_bent and isinstance(texts, migration.Shown) and not texts.bent and not texts.coupled:
            return _planned(script, Outcome(name, Status.REFUSED, files, texts.message))  # the losses are no reason any more
        else:
            why = texts.message.removesuffix(f". {migration.PROVE}") if isinstance(texts, Problem) else ""
            texts = None
    if blockers(found):
        return _refused(script, found, how, why)
    if script.exempt or not any(f.edits for f in found):
        return _planned(script, Outcome(name, Status.UNCHANGED, files, finished + (script.exempt or "nothing to change")))
    if texts is None or how.annotate:
        texts = migration.rewritten(script, found, _comments(script, left(found)) if how.annotate else ())
    if without is not None and isinstance(texts, Problem):
        found, texts = rest, without
    shown = isinstance(texts, migration.Judged) and texts.judgement.means and not texts.judgement.by_default
    if shown and any(f.of_means and not f.edits for f in found):
        found = tuple(f for f in found if f.edits or not f.of_means)
        if how.annotate:
            texts = migration.rewritten(script, found, _comments(script, left(found)))
    if (again := _again(name, script, how, finished, texts, results)) is not None:
        return again
    if isinstance(texts, Problem):
        return _planned(script, Outcome(name, Status.REFUSED, files, texts.message))
    new = migration.encoded(texts)
    if isinstance(new, Problem):
        return _planned(script, Outcome(name, Status.FAILED, files, problem=new))
    doubts: tuple[str, ...] = ()
    if texts.judgement.doubts:
        doubts = (f"{migration.NOT_ESTABLISHED}: {migration.doubted(texts.judgement)}. Prove it by running: dpmigrate verify",)
    of_result = (*texts.judgement.assumed, *texts.judgement.own_totals)
    notes = (*rules.notes(script, texts.judgement.drawn, texts.judgement.drawn_in_full), *of_result, *of_others, *doubts)
    outcome = Outcome(name, Status.CHANGED, migration.files(script.program, found, texts), notes=notes)
    return _planned(script, _started(_with_starts(outcome, how.output), how.output), new)


def _again(
    name: str, script: Script, how: Writing, finished: str, texts: migration.Judged | Problem, results: list[Judgement]
) -> Planned | None:  # fmt: skip
    """The program planned once more, with what the execution of a result has shown; None where that is nothing new."""
    from dpmigrate import migration

    if isinstance(texts, migration.Shown) and texts.judgement is not None:
        results.append(texts.judgement)
    steering = len(script.moving.parts)
    told = isinstance(texts, migration.Judged | migration.Shown) and _shown(script, texts)
    if len(script.moving.parts) > steering:  # with these in place other numbers may need nothing
        plain = _of_script(name, script, how, finished, results)
        if plain.outcome.status is Status.CHANGED:
            return plain
        script.shown_steering = False  # the rest of what was told may be enough
    mended = _mended(name, script, how, finished, texts, results)
    if not told or (mended is not None and mended.outcome.status is Status.CHANGED):
        return mended
    # what was told may be enough
    plain = _of_script(name, script, how, finished, results)
    return plain if mended is None or plain.outcome.status is Status.CHANGED else mended


def _shown(script: Script, shown: migration.Judged | migration.Shown) -> bool:
    """Tell the rules what the execution of a result has shown; whether they were not told of it before, but for numbers that move the training."""
    from dpmigrate import migration

    draws = [d for d in shown.draws if d not in script.shown_draws]
    made = [n for n in shown.made_first if n not in script.shown_made]
    script.shown_draws += draws
    script.shown_made += made
    known = {(b.node, b.name) for b in script.shown_buffers}
    buffers = [b for b in shown.buffers if (b.node, b.name) not in known]
    script.shown_buffers += buffers
    if isinstance(shown, migration.Judged):
        if script.shown_steering is None and shown.judgement.by_part:
            script.shown_steering = True
        return bool(draws or made or buffers)
    wraps = {w: words for w, words in shown.wraps if w not in script.shown_unused}
    calls = [c for c in shown.over_weights if c not in script.shown_over_weights]
    waits = [s for s in shown.waits if s not in script.shown_waits]
    questions = [q for q in shown.questions if q not in script.shown_questions]
    quieted = shown.loud and not script.quieted
    script.shown_unused |= wraps
    script.shown_over_weights += calls
    script.shown_waits += waits
    script.shown_questions += questions
    script.quieted |= shown.loud
    told = bool(wraps or calls or quieted or draws or waits or questions or made or buffers)
    if not told and script.shown_steering is None:  # what was told before may be enough
        script.shown_steering = True
    return told


def _mended(
    name: str, script: Script, how: Writing, finished: str, texts: migration.Judged | Problem, results: list[Judgement]
) -> Planned | None:  # fmt: skip
    """The program with what the global batch gives where a result has shown that a loss takes it of a rank's part; None where that makes no loss right
    that was not. Of a program that is refused all the same the reason is in what stood against the result without these edits.
    """
    from dpmigrate import migration

    bent = texts.bent if isinstance(texts, migration.Judged | migration.Shown) else ()
    before = dict(script.shown_bent)
    new = {node: call for node, call in bent if node not in before}
    every = frozenset({*before, *new})
    if not new or every in script.tried_bent:
        return None
    script.tried_bent.add(every)
    quieted, script.quieted = script.quieted, True  # an evaluation that records gradients would exchange as well
    script.shown_bent |= new
    again = _of_script(name, script, how, finished, results)
    gathered = not script.whole_sizes and any(c.startswith("batch_rows") for c in new.values())
    if gathered and (again.outcome.status is not Status.CHANGED or _adds_up_sizes(script)):
        shown = script.shown_bent
        script.whole_sizes, script.tried_bent = True, {every}  # what is sized for the samples of all ranks may have had that size before
        # other sums, and other rows, may be of sizes that were a rank's own
        script.shown_bent = {n: c for n, c in {**before, **new}.items() if c.startswith("batch_rows")}
        whole = _of_script(name, script, how, finished, results)
        script.whole_sizes = whole.outcome.status is Status.CHANGED
        again, script.shown_bent = (whole, script.shown_bent) if script.whole_sizes else (again, shown)
    # where other values of the options are not established, their losses would be changed in part
    by_default = isinstance(texts, migration.Shown) and texts.by_default
    of_some = isinstance(texts, migration.Judged) and bool(texts.judgement.by_default)  # right for as many values now, or for more
    less = f"{migration.BY_DEFAULT};" if of_some else migration.BY_DEFAULT
    against = (migration.NOT_ESTABLISHED,) if by_default else (migration.NOT_ESTABLISHED, less)
    changed = again.outcome.status is Status.CHANGED and not any(n.startswith(against) for n in again.outcome.notes)
    if changed:
        return again
    script.quieted, script.shown_bent = quieted, before
    files = again.outcome.files if how.annotate else tuple(replace(f, findings=_not_mended(f.findings)) for f in again.outcome.files)
    blocked = again.outcome.status is not Status.REFUSED or any(blockers(f.findings) for f in files)
    if blocked or not isinstance(texts, migration.Shown) or texts.judgement is None:
        return None
    reason = migration.standing(texts.judgement, last) if (last := results[-1]) is not texts.judgement else ""
    return replace(again, outcome=replace(again.outcome, reason=reason, files=files)) if reason else None


def _adds_up_sizes(script: Script) -> bool:
    """Whether the setting of the batch size, which is a rank's by then, is added up over the ranks again."""
    return any(script.sizes.read_in(n) is not None for n, c in script.shown_bent.items() if c.startswith("batch_sum"))


def _not_mended(found: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Findings without those that take a part of a loss for none of means, in which what it takes of a rank's part becomes that of the global batch:
    where the program is refused all the same, that is not why.
    """
    mended = [f.span for f in found if f.code == "DPM302" and f.edits]

    def is_mended(f: Finding) -> bool:
        return f.of_means and f.severity is Severity.BLOCKER and any(f.span.covers(m) or m.covers(f.span) for m in mended)

    return tuple(f for f in found if not is_mended(f))


def _planned(script: Script, outcome: Outcome, new: Sequence[tuple[Source, bytes]] = ()) -> Planned:
    files = {Path(p.source.name): p.source.data for p in script.program.parts}
    texts = {source.name: (source.data, data) for source, data in new}
    changed = tuple(replace(f, data=texts.get(f.path)) for f in outcome.files)
    outcome = replace(outcome, files=changed, notes=(*outcome.notes, *_unread(script.program)))
    return Planned(outcome, files, tuple(Change(Path(source.name), source.data, data) for source, data in new))


def _unread(program: Program) -> tuple[str, ...]:
    return tuple(f"{name} is imported and taken for code of others: {problem.message}" for name, problem in program.unread)


def _with_starts(outcome: Outcome, written: Path | None) -> Outcome:
    """With the lines elsewhere that start the program, and the files that may hold such lines and cannot be read."""
    from dpmigrate.starts import starts

    unread: list[tuple[str, Problem]] = []
    found = starts(Path(outcome.path), written, unread)
    return replace(outcome, starts=found, unread=tuple(unread))


def _started(outcome: Outcome, written: Path | None) -> Outcome:
    """With the module that the script is started as, if it is; the result has to lie in the same package."""
    from dpmigrate.started import result_as_module

    module = result_as_module(Path(outcome.path), written)
    if module is None:
        return outcome
    return replace(outcome, module=module.name, folder="" if module.folder == Path.cwd() else os.path.relpath(module.folder))


def _refused(script: Script, found: tuple[Finding, ...], how: Writing, why: str) -> Planned:
    """The program as it is; what stands in the way is written into it where the user wants that.

    ``why`` is what the execution on paper says against the result where only findings about its losses stand in the way.
    """
    from dpmigrate import migration

    refused = _planned(script, Outcome(script.program.entry.name, Status.REFUSED, migration.files(script.program, found), why))
    comments = _comments(script, blockers(found)) if how.annotate and how.output is None else ()
    texts = migration.carried_out(script.program, comments, only_comments=True)
    if isinstance(texts, Problem):
        return refused.left(Status.FAILED, problem=texts)
    new = migration.encoded(texts)
    if isinstance(new, Problem):
        return refused.left(Status.FAILED, problem=new)
    return _planned(script, replace(refused.outcome, files=migration.files(script.program, found, texts)), new)


def _comments(script: Script, findings: Sequence[Finding]) -> tuple[Finding, ...]:
    from dpmigrate.annotate import annotated

    return tuple(annotated(script.program, findings))
