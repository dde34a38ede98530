"""What the tool says of programs, as digests: to be compared between processes, which must not differ.

    PYTHONHASHSEED=0 python -m tests.outputs [--whole] [--shuffled SEED] SCRIPT...

Prints one line of JSON for each script: the digests (with ``--whole``: the texts) of the report of ``check``, of the diff and the words of ``apply``, and of the
JSON documents of both. Each is what the command line prints.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import json
import os
import random
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tests import shuffled

if TYPE_CHECKING:
    from dpmigrate.settings import Settings


def said(path: Path, settings: Settings) -> dict[str, str]:
    """Everything that the tool prints of a script, by the kind of output."""
    from dpmigrate import engine
    from dpmigrate.report import changes, machine, text

    plain = text.Style(False)
    checked = list(engine.check([path], settings))
    applied = list(engine.apply([path], settings, engine.Writing(write=False)))
    roles = list(engine.explain([path], settings))
    return {
        "check": _lines([*(line for o in checked for line in text.findings(o, plain, source=True)), *text.check_summary(checked, plain)]),
        "apply": _lines(line for o in applied for line in text.apply_result(o, plain, written=None)),
        "diff": "".join(changes.patch(o).decode("latin-1") for o in applied),
        "roles": _lines(line for o in roles for line in text.roles(o, plain)),
        "json of check": machine.document(checked),
        "json of apply": machine.document(applied),
    }


def _lines(lines: Iterator[str] | Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def settings_of(path: Path) -> Settings:
    """The settings of a fixture; the default ones of any other script."""
    import tomllib

    from dpmigrate.settings import Settings

    for folder in path.parents[:3]:
        if (folder / "case.toml").is_file():
            facts = tomllib.loads((folder / "case.toml").read_text())
            return Settings(amp=bool(facts.get("amp")), sync_bn=bool(facts.get("sync_bn")), batch=facts.get("batch", "global"), unproven=bool(facts.get("unproven")))
    return Settings()


def _stirred(seed: int) -> list[object]:
    """Objects that are kept and others that are freed, so that what is made next lies elsewhere, in another order: ``hash(node)`` is an address."""
    chance = random.Random(seed)
    kept: list[object] = []
    for _ in range(20_000 if seed else 0):
        thing: object = [None] * chance.randrange(1, 12) if chance.random() < 0.5 else {"a": 1}
        if chance.random() < 0.5:
            kept.append(thing)
    return kept


def main(words: Sequence[str]) -> None:
    """Print the lines."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--shuffled", type=int)
    parser.add_argument("scripts", nargs="+", type=Path)
    given = parser.parse_args(words)
    if given.shuffled is not None:
        shuffled.install(given.shuffled)
    seed = int(os.environ.get("PYTHONHASHSEED", "0"))
    gc.disable()
    for path in [script.resolve() for script in given.scripts]:
        kept = _stirred(seed)
        os.chdir(path.parent)
        began = time.monotonic()
        out = said(Path(path.name), settings_of(path))
        shown = out if given.whole else {kind: hashlib.sha256(words.encode("utf-8", "surrogatepass")).hexdigest() for kind, words in out.items()}
        print(json.dumps({"script": str(path), "seconds": round(time.monotonic() - began, 2), **shown}), flush=True)
        del kept
        gc.collect()


if __name__ == "__main__":
    main(sys.argv[1:])
