"""Rank 0 alone reports to experiment trackers, and is the first to download."""

from __future__ import annotations

from collections.abc import Iterator

from dpmigrate.judge.files import ALONE
from dpmigrate.judge.notes import DOWNLOADED, REPORTED
from dpmigrate.judge.trial import Fault, Trial


def faults(trial: Trial) -> Iterator[Fault]:
    """Reports that every rank makes, and downloads that all of them begin at once."""
    for event in trial.result.trace.of(DOWNLOADED):
        yield trial.fault(event.node, ALONE, "every rank downloads this at the same time, into the same files")
    for event in trial.result.trace.of(REPORTED):
        yield trial.fault(event.node, ALONE, "every rank reports this to the experiment tracker")
