"""How the end of a run is recognised: by what the proof itself says of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpmigrate import contract
from dpmigrate.verify.failures import unfinished
from dpmigrate.verify.judge import Line, Verdict
from dpmigrate.verify.proof import Proof
from dpmigrate.verify.runs import Config, Ran
from tests.mutation import running
from tests.mutation.harmless import REASONS, reason
from tests.mutation.mutants import WAYS, Described
from tests.mutation.outcomes import Outcome
from tests.mutation.running import ended

CONFIG = Config("out", "/tmp/copy", "/home/user", "/tmp/copy/train.py", "/tmp/copy", 2)


def said(name: str, way: str = "missing") -> Described:
    return Described(f"a/train.py:DPM1:{name}:{way}:1", "a", "train.py", "DPM1", name, way, "", "")


def failed(ran: Ran) -> Proof:
    """The proof of a migrated program that ended so, while the original runs."""
    told = f"the migrated program fails, the original does not: {unfinished(ran, 2, 60, CONFIG)}"
    return Proof(failure=told, fails=True)


def crashed(*errors: str) -> Outcome:
    """The outcome where the ranks have said this on their standard error."""
    proof = failed(Ran(Path("out"), 1, 1.0, (), "".join(errors), ()))
    outcome, why = ended(proof, said("ddp.wrap"), errors)
    assert why == proof.failure
    return outcome


def traceback(file: str, code: str, error: str, rank: str = "") -> str:
    lines = [
        "Traceback (most recent call last):",
        '  File "/tmp/copy/train.py", line 3, in main',
        "    train()",
        f'  File "{file}", line 60, in _compare',
        f"    {code}",
        *error.splitlines(),
    ]
    return "".join(f"{rank}{line}\n" for line in lines)


RUNTIME = "/lib/dpmigrate_runtime/_drift.py"
NET = traceback(RUNTIME, "raise RuntimeError(", "RuntimeError: the weights have parted")
OWN = traceback("/tmp/copy/train.py", "raise ValueError(", "ValueError: mine")
LOST = traceback("/lib/torch/distributed.py", "work.wait()", "RuntimeError: Connection closed by peer")


@pytest.mark.parametrize("rank", ["", "[rank1]: "])
@pytest.mark.parametrize(
    ("file", "code", "error", "want"),
    [
        (RUNTIME, "raise RuntimeError(", "RuntimeError: the weights have parted", Outcome.NET),
        (RUNTIME, "raise ValueError(text) from None", "ValueError: 3 ranks", Outcome.NET),
        (RUNTIME, "raise Lost(text)", "dpmigrate_runtime.Lost: " + "\nline" * 20, Outcome.NET),
        (RUNTIME, "size // ranks", "TypeError: unsupported operand", Outcome.CRASH),
        (RUNTIME, "raise AttributeError(name)", "AttributeError: sampler", Outcome.CRASH),
        ("/lib/torch/nn/module.py", "raise AttributeError(", "AttributeError: x", Outcome.CRASH),
        ("/tmp/copy/train.py", "raise ValueError(", "ValueError: mine", Outcome.CRASH),
    ],
)
def test_who_has_raised(file: str, code: str, error: str, want: Outcome, rank: str) -> None:
    assert crashed(traceback(file, code, error, rank)) is want


@pytest.mark.parametrize(
    ("errors", "want"),
    [
        ((NET, NET), Outcome.NET),
        ((NET, LOST), Outcome.NET),
        ((LOST, NET), Outcome.NET),
        ((NET, ""), Outcome.NET),
        ((NET, OWN), Outcome.CRASH),
        ((LOST, OWN), Outcome.CRASH),
        ((LOST, LOST), Outcome.CRASH),
        (("killed\n",), Outcome.CRASH),
        ((), Outcome.CRASH),
    ],
)
def test_a_rank_that_fails_by_itself_decides(errors: tuple[str, ...], want: Outcome) -> None:
    assert crashed(*errors) is want


def test_the_last_of_several_exceptions_counts() -> None:
    chained = "\nThe above exception was the direct cause of the following exception:\n\n"
    assert crashed(LOST + chained + NET) is Outcome.NET


def test_standard_errors_are_those_of_the_last_attempt(tmp_path: Path) -> None:
    assert running._errors(tmp_path) == []
    for attempt in ("first", "second"):
        for rank in (0, 1):
            log = tmp_path / attempt / "migrated-out" / "logs" / "x" / str(rank) / "stderr.log"
            log.parent.mkdir(parents=True)
            log.write_text(f"{attempt} {rank}")
    assert running._errors(tmp_path) == ["second 0", "second 1"]


def test_a_run_that_is_not_done_in_time_hangs() -> None:
    stack = traceback(RUNTIME, "raise RuntimeError(", "stands there")
    late = Ran(Path("out"), -9, 60.0, (), "", (), stacks=(stack, stack))
    assert ended(failed(late), said("ddp.wrap"))[0] is Outcome.HANG


@pytest.mark.parametrize(
    ("verdicts", "want"),
    [
        ([Verdict.EQUAL, Verdict.DIFFERS], Outcome.DIFFERS),
        ([Verdict.EQUAL, Verdict.NONE], Outcome.UNPROVED),
        ([Verdict.EQUAL, Verdict.BOUND], Outcome.UNNOTICED),
        ([Verdict.EQUAL, Verdict.EQUAL], Outcome.UNNOTICED),
    ],
)
def test_what_the_proof_has_found(verdicts: list[Verdict], want: Outcome) -> None:
    lines = tuple(Line(f"line {i}", v, "text", needed=True) for i, v in enumerate(verdicts))
    outcome, why = ended(Proof(lines), said("ddp.save"))
    assert outcome is want
    unequal = [n for n in lines if n.verdict is not Verdict.EQUAL]
    assert why == "\n".join(f"{n.name}: {n.verdict.value}: text" for n in unequal)


def test_a_proof_that_could_not_be_made_proves_nothing() -> None:
    proof = Proof(failure="the original does not run here")
    assert ended(proof, said("ddp.wrap")) == (Outcome.UNPROVED, proof.failure)


def test_what_may_be_missing_is_harmless_only_where_it_is_proved() -> None:
    equal = Proof((Line("parameters", Verdict.EQUAL, "", needed=True),))
    differs = Proof((Line("parameters", Verdict.DIFFERS, "", needed=True),))
    outcome, why = ended(equal, said("ddp.cleanup"))
    assert (outcome, why) == (Outcome.HARMLESS, REASONS["ddp.cleanup", "*"])
    assert ended(differs, said("ddp.cleanup"))[0] is Outcome.DIFFERS


def test_a_reason_is_for_its_kind_alone() -> None:
    assert reason(said("ddp.wrap", "too late"))
    assert not reason(said("ddp.wrap", "missing"))
    assert not reason(said("ddp.sum_all", "too late"))


def test_reasons_are_about_ways_and_names_that_exist() -> None:
    names = {name for name, _ in REASONS}
    assert {way for _, way in REASONS} <= {*WAYS, "*"}
    assert {n.removeprefix("ddp.") for n in names if n.startswith("ddp.")} <= contract.NAMES.keys()
