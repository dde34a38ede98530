"""The static stage: would apply write this text? Nothing is run."""

from __future__ import annotations

import ast
import difflib
import time
import warnings
from collections.abc import Collection, Iterator

from dpmigrate import migration
from dpmigrate.migration import Texts
from dpmigrate.model import Problem
from dpmigrate.rewrite.apply import Refused, apply
from dpmigrate.rewrite.compose import Conflict, compose
from tests.mutation.mutants import Mutant, mutants
from tests.mutation.outcomes import Outcome, Result
from tests.mutation.subjects import Subject


def judged(subject: Subject, wanted: Collection[str] | None = None) -> Iterator[Result]:
    """The result of every mutant; ``wanted`` names the only ones of which it is asked.

    Of several mutants with one text the first counts: it is the same one whatever is wanted.
    """
    seen: dict[tuple[str, ...], str] = {_shape(subject, subject.texts): ""}
    for mutant in mutants(subject):
        start = time.perf_counter()
        result = _judge(subject, mutant, seen, wanted)
        if result is not None:
            said, outcome, why, diff = result
            yield Result(said.described, outcome, why, diff, round(time.perf_counter() - start, 3))


_Judged = tuple[Mutant, Outcome, str, str]


def _judge(
    subject: Subject,
    mutant: Mutant,
    seen: dict[tuple[str, ...], str],
    wanted: Collection[str] | None,
) -> _Judged | None:
    asked = wanted is None or mutant.described.id in wanted
    told, texts = rewritten(subject, mutant) if asked else ("", None)
    if texts is None:
        unchecked = carried_out(subject, mutant)
        if isinstance(unchecked, str):
            return (mutant, Outcome.IMPOSSIBLE, unchecked, "") if asked else None
        texts = unchecked
    try:
        shape = _shape(subject, texts)
    except SyntaxError as error:
        return (mutant, Outcome.BROKEN, str(error), diff(subject, texts)) if asked else None
    first = seen.setdefault(shape, mutant.described.id)
    if not asked:
        return None
    if first != mutant.described.id:
        return mutant, Outcome.TWICE if first else Outcome.SAME, first, ""
    idle = Outcome.PASSED if subject.runnable else Outcome.PASSED_IDLE
    return mutant, Outcome.REFUSED if told else idle, told, diff(subject, texts)


def rewritten(subject: Subject, mutant: Mutant) -> tuple[str, Texts | None]:
    """What apply says against writing the mutant, '' where it would write it, with the new texts.

    ``migration.rewritten`` is what apply calls with the findings of the rules, and holds all checks of a result.
    """
    texts = migration.rewritten(subject.script, mutant.findings)
    return (texts.message, None) if isinstance(texts, Problem) else ("", texts)


def carried_out(subject: Subject, mutant: Mutant) -> Texts | str:
    """The new texts without any check; why there are none where an edit does not fit its place.

    That is a fault of the mutator and no mutant.
    """
    texts = {}
    for part, found in migration._by_file(subject.script.program, mutant.findings).items():
        try:
            texts[part] = apply(part.source.text, compose(found))
        except (Conflict, Refused) as error:
            return str(error)
    return texts


def _shape(subject: Subject, texts: Texts) -> tuple[str, ...]:
    """The program as Python sees it; raises SyntaxError where it does not compile."""
    out = []
    for part in subject.script.program.parts:
        text = texts.get(part, part.source.text)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
            compile(text, part.source.name, "exec", dont_inherit=True)
        out.append(ast.dump(tree))
    return tuple(out)


def diff(subject: Subject, texts: Texts) -> str:
    """What the mutant has otherwise than the right result, as a unified diff with little round it."""
    out: list[str] = []
    for part in subject.script.program.parts:
        right, wrong = (t.get(part, part.source.text) for t in (subject.texts, texts))
        name = part.source.name
        lines = right.splitlines(), wrong.splitlines()
        out += difflib.unified_diff(*lines, name, name, lineterm="", n=1)
    return "\n".join(out)
