"""What two runs did, compared: one line for each thing that a right migration keeps.

``numbers`` judges parameters, losses, gradients and rates, ``data`` the samples, ``outside`` what can be seen without looking in: lines, files, processes.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpmigrate.verify.judge import data, numbers, outside
from dpmigrate.verify.judge.evidence import Distance, Evidence, Line, Verdict

__all__ = ["Distance", "Evidence", "Line", "Verdict", "judge", "proved"]

CHECKS = (
    numbers.losses,
    numbers.gradients,
    numbers.ranks_alike,
    numbers.steps,
    numbers.rates,
    data.samples,
    data.shards,
    data.order,
    data.evaluation,
    outside.metrics,
    outside.lines_once,
    outside.files,
    outside.contents,
    outside.checkpoints,
    outside.process_group,
)


def judge(evidence: Evidence) -> list[Line]:
    """All lines, that of the parameters first."""
    known = [outside.aborted(evidence)] if evidence.aborted else []
    return [*numbers.parameters(evidence), *(check(evidence) for check in CHECKS), *known]


def proved(lines: Sequence[Line]) -> bool:
    """Whether nothing differs and the parameters were compared to the last step."""
    needed = [line.verdict for line in lines if line.needed]
    return bool(needed) and Verdict.NONE not in needed and all(line.verdict is not Verdict.DIFFERS for line in lines)
