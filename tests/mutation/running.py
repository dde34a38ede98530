"""The run stage: the mutant runs at two gloo ranks and is compared with the original, as ``dpmigrate verify`` does it."""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dpmigrate import migration
from dpmigrate.migration import Texts
from dpmigrate.model import Problem
from dpmigrate.verify.proof import Proof, Wish, prove
from dpmigrate.verify.runs import _LOST as LOST
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
#: a frame of a traceback with the line of code below it
_FRAME = re.compile(r'^\s*File "(?P<file>[^"]+)", line \d+, in .*\n(?P<code>.*)$', re.MULTILINE)
#: a launched rank may put its number before each line
_RANK = re.compile(r"^\[rank\d+\]: ?", re.MULTILINE)
#: where the runtime stands for another object, this is what that object would say
_NOT_ITS_OWN = "raise AttributeError"


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
    with tempfile.TemporaryDirectory(prefix="dpmigrate-mutation-run-") as made:
        folder = Path(made).resolve()
        proof = _proof(subject, texts, timeout, folder)
        outcome, why = ended(proof, said, _errors(folder))
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


def _proof(subject: Subject, texts: Texts, timeout: float, keep: Path) -> Proof:
    encoded = migration.encoded(texts)
    assert not isinstance(encoded, Problem), encoded
    files = {Path(p.source.name).resolve(): p.source.data for p in subject.script.program.parts}
    files |= {Path(source.name).resolve(): data for source, data in encoded}
    wish = Wish(2, steps=None, timeout=timeout, arguments=subject.arguments)
    wish = replace(wish, float64=not subject.settings.amp)
    script = Path(subject.key.script).resolve()
    return prove(script, files, wish, paths=[RUNTIME], keep=keep)


def _errors(kept: Path) -> list[str]:
    """What each rank of the migrated program has said of its failure, in the last attempt of a proof."""
    attempts = sorted(path for path in kept.iterdir() if path.is_dir())
    logs = sorted(attempts[-1].glob("migrated-out/logs/**/stderr.log")) if attempts else []
    return [path.read_text(encoding="utf-8", errors="replace") for path in logs]


def ended(proof: Proof, said: Described, errors: Sequence[str] = ()) -> tuple[Outcome, str]:
    """How the run of a mutant ended, and what shows it; ``errors`` are the ranks' standard errors."""
    if proof.fails:
        if _LATE.search(proof.failure):
            return Outcome.HANG, proof.failure
        return Outcome.NET if stopped(errors) else Outcome.CRASH, proof.failure
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


def stopped(errors: Sequence[str]) -> bool:
    """Whether the runtime has stopped the ranks: none of them failed by itself, and one by the runtime.

    A rank whose partner is gone says only that; the failure is the partner's.
    """
    ends = [end for text in errors if (end := _end(_RANK.sub("", text))) is not None]
    by_themselves = [end for end in ends if not end.by_runtime and not end.lost]
    return not by_themselves and any(end.by_runtime for end in ends)


@dataclass(frozen=True)
class _End:
    """The exception that ended a rank.

    ``by_runtime``: a ``raise`` of the runtime made it. A frame of the runtime with another line of code is a fault in
    what the program has handed to it. ``lost``: it says that another rank is gone.
    """

    by_runtime: bool
    lost: bool


def _end(text: str) -> _End | None:
    frames = list(_FRAME.finditer(text))
    if not frames:
        return None
    last = frames[-1]
    code = last["code"].strip()
    raised = code.startswith("raise ") and not code.startswith(_NOT_ITS_OWN)
    inside = "dpmigrate_runtime" in Path(last["file"]).parts
    return _End(raised and inside, bool(LOST.search(text[last.end() :])))
