"""The static stage: would apply write this text? Nothing is run."""

from __future__ import annotations

import ast
import contextlib
import difflib
import functools
import hashlib
import re
import time
import warnings
from collections.abc import Collection, Iterator
from dataclasses import replace
from unittest import mock

from dpmigrate import migration
from dpmigrate.execution.engine import Execution
from dpmigrate.judge.trial import executed
from dpmigrate.migration import Judged, Texts
from dpmigrate.model import Problem
from dpmigrate.rewrite.apply import Refused, apply
from dpmigrate.rewrite.compose import Conflict, compose
from dpmigrate.rewrite.verify import verify
from tests.mutation import equivalent
from tests.mutation.mutants import Mutant, mutants
from tests.mutation.outcomes import Outcome, Result
from tests.mutation.subjects import Subject


def judged(subject: Subject, wanted: Collection[str]) -> Iterator[Result]:
    """The results of the mutants with these ids."""
    right = _digest(subject, subject.texts)
    on_paper: list[Execution] = []
    for mutant in mutants(subject):
        if mutant.described.id in wanted:
            start = time.perf_counter()
            with _remembered():
                result = _judge(subject, mutant, right)
                if result.outcome in (Outcome.PASSED, Outcome.PASSED_IDLE, Outcome.TOLD):
                    on_paper = on_paper or [equivalent.right_one(subject)]
                    result = _explained(subject, mutant, on_paper[0], result)
            yield replace(result, seconds=round(time.perf_counter() - start, 3))


def _judge(subject: Subject, mutant: Mutant, right: str) -> Result:
    said = mutant.described
    why, texts = rewritten(subject, mutant)
    told = sorted(sentences(texts) - sentences(subject.texts))
    if texts is None:
        unchecked = carried_out(subject, mutant)
        if isinstance(unchecked, str):
            return Result(said, Outcome.IMPOSSIBLE, unchecked)
        texts = unchecked
    changed = diff(subject, texts)
    try:
        digest = _digest(subject, texts)
    except SyntaxError as error:
        return Result(said, Outcome.BROKEN, str(error), changed)
    if digest == right:
        return Result(said, Outcome.SAME)
    if why or told:
        return Result(said, Outcome.REFUSED if why else Outcome.TOLD, why or told[0], changed, digest)
    passed = Outcome.PASSED if subject.runnable else Outcome.PASSED_IDLE
    return Result(said, passed, "", changed, digest)


def _explained(subject: Subject, mutant: Mutant, right: Execution, result: Result) -> Result:
    """The result of a mutant that passes or is told, with the reason where it is right all the same."""
    texts = carried_out(subject, mutant)
    assert not isinstance(texts, str), texts
    told = result.outcome is Outcome.TOLD
    why = equivalent.reason(subject, right, mutant.described, texts, told=told)
    return replace(result, outcome=Outcome.EQUIVALENT, why=why) if why else result


@contextlib.contextmanager
def _remembered() -> Iterator[None]:
    """A file of a program that the fault is not in is rewritten and checked by itself once; what
    was executed of the last programs is kept, the original among them.
    """
    with (
        mock.patch("dpmigrate.rewrite.apply.apply", _applied),
        mock.patch("dpmigrate.rewrite.verify.verify", _verified),
        mock.patch("dpmigrate.judge.trial.executed", _executed),
    ):
        yield


_applied = functools.lru_cache(64)(apply)
_verified = functools.lru_cache(64)(verify)
_executed = functools.lru_cache(2)(executed)


def rewritten(subject: Subject, mutant: Mutant) -> tuple[str, Texts | None]:
    """What apply says against writing the mutant, '' where it would write it, with the new texts.

    ``migration.rewritten`` is what apply calls with the findings of the rules, and holds all checks of a result.
    """
    texts = migration.rewritten(subject.script, mutant.findings)
    return (texts.message, None) if isinstance(texts, Problem) else ("", texts)


def sentences(texts: Texts | None) -> set[str]:
    """What apply tells after writing, with ``--unproven`` also what is not shown; without the lines,
    which a fault may move.
    """
    if not isinstance(texts, Judged):
        return set()
    judgement = texts.judgement
    told = (*judgement.assumed, *judgement.own_totals, *judgement.doubts)
    plain = (re.sub(r"[:,] (line )?\d+|:\d+", "", sentence) for sentence in told)
    # of code that is told of only what is said of it counts: the fault may be in the code
    return {re.sub(r"^.*?( \(and \d+ more\))? (?=(tells|may tell|puts|goes by) )", "", sentence) for sentence in plain}


def carried_out(subject: Subject, mutant: Mutant) -> Texts | str:
    """The new texts without any check; why there are none where an edit does not fit its place.

    That is a fault of the mutator and no mutant.
    """
    texts = {}
    for part, found in migration._by_file(subject.script.program, mutant.findings).items():
        try:
            texts[part] = _applied(part.source.text, compose(found))
        except (Conflict, Refused) as error:
            return str(error)
    return texts


def _digest(subject: Subject, texts: Texts) -> str:
    """The program as Python sees it, as a short word; raises SyntaxError where it does not compile."""
    made = hashlib.sha256()
    for part in subject.script.program.parts:
        text = texts.get(part, part.source.text)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, part.source.name, "exec", dont_inherit=True)
            made.update(ast.dump(ast.parse(text)).encode("utf-8", "surrogatepass"))
    return made.hexdigest()[:16]


def diff(subject: Subject, texts: Texts) -> str:
    """What the mutant has otherwise than the right result, as a unified diff with little round it."""
    out: list[str] = []
    for part in subject.script.program.parts:
        right, wrong = (t.get(part, part.source.text) for t in (subject.texts, texts))
        name = part.source.name
        lines = right.splitlines(), wrong.splitlines()
        out += difflib.unified_diff(*lines, name, name, lineterm="", n=1)
    return "\n".join(out)
