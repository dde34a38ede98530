"""A proof for people and for programs: a table of lines, or JSON. Nothing of the user's text is interpreted."""

from __future__ import annotations

import json
from collections.abc import Iterator

from dpmigrate.report.plain import safe
from dpmigrate.report.text import Style
from dpmigrate.verify.judge import Verdict
from dpmigrate.verify.proof import Proof

COLOURS = {Verdict.EQUAL: "32", Verdict.BOUND: "32", Verdict.DIFFERS: "1;31", Verdict.NONE: "2", Verdict.KNOWN: "33"}


def verdict(proof: Proof) -> str:
    """The whole in a sentence, and one on what is torch's fault."""
    if not proof.aborted:
        return _verdict(proof)
    names = ", ".join(map(str, proof.aborted))
    return f"{_verdict(proof)} Rank {names} aborted when it had finished everything, a known fault of torch."


def _verdict(proof: Proof) -> str:
    if proof.fails:
        return "NOT proved: the migrated program fails where the original runs."
    if proof.failure:
        return "Could not be proved."
    if proof.holds and proof.cut:
        unseen = [line.name for line in proof.lines if line.verdict is Verdict.NONE]
        more = f" Not seen before the cut: {', '.join(unseen)}." if unseen else ""
        return f"Proved for {proof.cut}: the migrated program trains like the original.{more}"
    if proof.holds:
        return "Proved: the migrated program trains like the original."
    bad = [line.name for line in proof.lines if line.verdict is Verdict.DIFFERS]
    return f"NOT proved: {', '.join(bad)}." if bad else "Not proved: nothing differs, but the parameters could not be compared."


def exit_code(proof: Proof) -> int:
    """0 proved, 1 something differs or only the migrated program fails, 2 it could not be judged."""
    return 0 if proof.holds else 1 if proof.differs or proof.fails else 2


def table(proof: Proof, style: Style) -> Iterator[str]:
    """One line for each thing compared, what was done to make the runs comparable, and the verdict."""
    if proof.failure:
        yield from (f"  {safe(words)}" for words in proof.failure.splitlines())
    width = max((len(line.name) for line in proof.lines), default=0)
    kinds = max((len(v.value) for v in Verdict), default=0)
    for line in proof.lines:
        yield f"  {line.name.ljust(width)}  {style.paint(line.verdict.value.ljust(kinds), COLOURS[line.verdict])}  {safe(line.text)}"
    if proof.lines:
        yield ""
        for note in proof.notes:
            yield f"  {note}"
        yield f"  seconds: original {proof.seconds[0]:.1f}, migrated {proof.seconds[1]:.1f}"
    yield style.paint(verdict(proof), "1;32" if proof.holds else "1;31")


def document(proof: Proof) -> str:
    """The proof as JSON."""
    return json.dumps(
        {
            "proved": proof.holds,
            "cut": proof.cut,
            "failure": proof.failure,
            "fails": proof.fails,
            "aborted_at_exit": list(proof.aborted),
            "lines": [{"name": line.name, "verdict": line.verdict.value, "text": line.text} for line in proof.lines],
            "notes": list(proof.notes),
            "distances": [
                {"step": d.step, "relative": d.relative, "parameter": d.parameter, "ranks_apart": d.spread, "moved": d.moved} for d in proof.distances
            ],
            "losses": [{"step": s, "original": a, "migrated": b} for s, a, b in proof.losses],
            "seconds": {"original": proof.seconds[0], "migrated": proof.seconds[1]},
        },
        indent=2,
        allow_nan=True,
    )
