"""The run stage: the mutant runs at two gloo ranks and is compared with the original, as ``dpmigrate verify`` does it."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from pathlib import Path

from dpmigrate import migration
from dpmigrate.migration import Texts
from dpmigrate.model import Problem
from dpmigrate.verify.proof import Proof, Wish, prove
from tests.mutation import static
from tests.mutation.harmless import reason
from tests.mutation.mutants import Described, Mutant, mutants
from tests.mutation.outcomes import Outcome, Result
from tests.mutation.subjects import Subject

RUNTIME = Path(__file__).resolve().parents[2] / "runtime"
#: the way of the run without any fault; it must be proved, or the other runs of its program say nothing
CONTROL = "nothing missing"

# ------------------------------------------------- how the end of a run is recognised: all in this one place
#: what ``verify.failures`` says of a run that was not done in time
_LATE = re.compile(r"it was not done after [\d.]+ s\b")
#: a frame of a traceback with the line of code below it; a launched rank puts its number before each line
_FRAME = re.compile(r'^(?:\[\w+\]:)?\s*File "(?P<file>[^"]+)", line \d+, in .*\n(?P<code>.*)$', re.MULTILINE)
_RANK = re.compile(r"^\s*(?:\[\w+\]:)?\s*")


def control(subject: Subject) -> Described:
    """The description of the run without any fault."""
    key = subject.key
    return Described(f"{key}:{CONTROL}", key.case, key.script, "", "control", CONTROL, "", "")


def tried(subject: Subject, wanted: str, timeout: float) -> Result:
    """The result of the mutant with this id, or of the control, at two ranks.

    ``timeout`` is in seconds, for each of the runs of a proof. Raises KeyError where no mutant has the id.
    """
    start = time.perf_counter()
    if wanted == control(subject).id:
        said, texts = control(subject), subject.texts
    else:
        mutant = _found(subject, wanted)
        said, texts = mutant.described, _texts(subject, mutant)
    proof = _proof(subject, texts, timeout)
    outcome, why = ended(proof, said)
    if said.way == CONTROL and outcome is Outcome.UNNOTICED:
        outcome, why = Outcome.HARMLESS, "nothing is missing"
    changed = static.diff(subject, texts)
    seconds = round(time.perf_counter() - start, 1)
    return Result(said, outcome, why, changed, seconds=seconds)


def _found(subject: Subject, wanted: str) -> Mutant:
    for mutant in mutants(subject):
        if mutant.described.id == wanted:
            return mutant
    raise KeyError(wanted)


def _texts(subject: Subject, mutant: Mutant) -> Texts:
    texts = static.carried_out(subject, mutant)
    assert not isinstance(texts, str), texts  # the static stage has let it pass
    return texts


def _proof(subject: Subject, texts: Texts, timeout: float) -> Proof:
    encoded = migration.encoded(texts)
    assert not isinstance(encoded, Problem), encoded
    files = {Path(p.source.name).resolve(): p.source.data for p in subject.script.program.parts}
    files |= {Path(source.name).resolve(): data for source, data in encoded}
    wish = Wish(2, steps=None, timeout=timeout, arguments=subject.arguments)
    wish = replace(wish, float64=not subject.settings.amp)
    return prove(Path(subject.key.script).resolve(), files, wish, paths=[RUNTIME])


def ended(proof: Proof, said: Described) -> tuple[Outcome, str]:
    """How the run of a mutant ended, and what shows it."""
    if proof.fails:
        if _LATE.search(proof.failure):
            return Outcome.HANG, proof.failure
        return Outcome.NET if raised_by_runtime(proof.failure) else Outcome.CRASH, proof.failure
    if proof.failure:
        return Outcome.UNPROVED, proof.failure
    lines = [line for line in proof.lines if line.verdict.value != "equal"]
    told = "\n".join(f"{line.name}: {line.verdict.value}: {line.text}" for line in lines)
    if proof.differs:
        return Outcome.DIFFERS, told
    if not proof.holds:
        return Outcome.UNPROVED, told
    excuse = reason(said)
    return (Outcome.HARMLESS, excuse) if excuse else (Outcome.UNNOTICED, told)


def raised_by_runtime(failure: str) -> bool:
    """Whether the exception that ended the program was raised by a ``raise`` of the runtime.

    A frame of the runtime with another line of code is a fault in what the program has handed to it.
    """
    frames = list(_FRAME.finditer(failure))
    if not frames:
        return False
    code = _RANK.sub("", frames[-1]["code"])
    return "dpmigrate_runtime" in Path(frames[-1]["file"]).parts and code.startswith("raise ")
