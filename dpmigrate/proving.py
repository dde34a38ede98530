"""Proofs for the command line: the migration that ``apply`` would make, the way to the runtime, progress for people who wait."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from dpmigrate import engine, transaction
from dpmigrate.model import Outcome, Problem, Status
from dpmigrate.report.plain import safe
from dpmigrate.report.text import Style
from dpmigrate.settings import Settings
from dpmigrate.verify import proof, show
from dpmigrate.writing import runtime_folder


def prove(original: Path, migrated: Mapping[Path, bytes] | Path, wish: proof.Wish, former: Mapping[Path, bytes] = MappingProxyType({})) -> proof.Proof:
    """The proof, with a line on the terminal for what is going on."""
    folder = runtime_folder()
    paths = [folder.parent] if folder is not None else []
    with contextlib.ExitStack() as stack:
        listener = None
        if sys.stderr.isatty():
            from dpmigrate.verify.progress import Progress

            listener = stack.enter_context(Progress(wish.steps))
        return proof.prove(original, migrated, wish, former=former, paths=paths, listener=listener)


def migration(original: Path, settings: Settings) -> tuple[Outcome, Mapping[Path, bytes] | None]:
    """What apply says of the script, and all files of the program as they would be, if it writes anything."""
    kept: list[Mapping[Path, bytes]] = []

    def keep(path: Path, after: Mapping[Path, bytes]) -> None:
        kept.append(after)

    (outcome,) = engine.apply([original], settings, engine.Writing(write=False, gate=keep))
    return outcome, kept[0] if kept else None


def kept(outcome: Outcome) -> Mapping[Path, bytes]:
    """What the files of a program that is migrated already held before its apply; nothing where that is not known."""
    if outcome.status is not Status.UNCHANGED or not outcome.reason.startswith("already uses"):
        return {}
    found = transaction.originals(Path(outcome.path))
    if not isinstance(found, Problem) and (gone := [str(p) for p in found if not p.is_file()]):
        found = Problem(f"rewritten by the last apply and no longer there: {', '.join(gone)}")
    if isinstance(found, Problem):
        print(f"dpmigrate: {safe(outcome.path)}: {safe(found.message)}", file=sys.stderr)
        return {}
    return found


def gate(arguments: tuple[str, ...], say: Callable[[Iterable[str]], None]) -> Callable[[Path, Mapping[Path, bytes]], str | None]:
    """For ``apply --verify``: why a result must not be written, None if it is proved. ``say`` is given the table."""

    def judged(path: Path, after: Mapping[Path, bytes]) -> str | None:
        found = prove(path, after, proof.Wish(arguments=arguments))
        say(show.table(found, Style(False)))
        return None if found.holds else show.verdict(found)

    return judged
