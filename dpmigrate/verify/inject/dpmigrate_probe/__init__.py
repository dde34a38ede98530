"""What really happened in a run: losses, steps, samples, files and lines, recorded from inside the user's process.

It patches torch alone and imports nothing of dpmigrate. Each process that trained leaves ``rank<R>.json`` (the record) and ``rank<R>.pt`` (its parameters
by step) in the folder ``out``; the original, which runs last, also compares what both have left (``compare``).

Beside recording it makes two runs comparable, as far as the configuration asks: float64, no dropout, no statistics of the batch, random
augmentation and noise seeded by the sample, and the sample order of another run in place of this one's.
"""

from __future__ import annotations

import atexit
import faulthandler
import functools
import importlib.abc
import importlib.util
import json
import os
import signal
import sys
from typing import Any

from dpmigrate_probe.state import CONFIG, PID, RANK, RECORD, STATE


class _After(importlib.abc.MetaPathFinder):
    """Runs something when a module has been imported for the first time."""

    def __init__(self, name: str, then: Any) -> None:
        self.name, self.then = name, then

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name != self.name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            execute, then = spec.loader.exec_module, self.then

            def exec_module(module: Any) -> None:
                execute(module)
                then(module)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def enter() -> None:
    """Keep this process from writing what is the user's, and watch it if it is the script itself: neither the launcher nor one that the script starts."""
    from dpmigrate_probe import outputs

    outputs.guard()
    if (CONFIG["ranks"] and "RANK" not in os.environ) or os.environ.get("DPMIGRATE_PROBED"):
        return
    os.environ["DPMIGRATE_PROBED"] = str(PID)
    atexit.register(_leave)
    if hasattr(signal, "SIGUSR1"):
        faulthandler.register(signal.SIGUSR1, open(os.path.join(CONFIG["out"], f"stack{RANK}.txt"), "w"), all_threads=False)  # noqa: SIM115
    outputs.watch()
    _note_status()
    sys.meta_path.insert(0, _After("torch", _with_torch))


def _with_torch(torch: Any) -> None:
    from dpmigrate_probe import comparable, data, noise, outputs, training

    comparable.install(torch)
    noise.install(torch)
    data.install(torch)
    training.install(torch)
    outputs.record_saves(torch)


def _note_status() -> None:
    leave = sys.exit

    @functools.wraps(leave)
    def noted(status: Any = None, /) -> Any:
        STATE["status"] = status
        leave(status)

    sys.exit = noted


def _ended_well() -> bool:
    # Python sets this for an exception that nothing has caught, but not for SystemExit
    return not hasattr(sys, "last_type") and STATE["status"] in (None, 0)


def _leave() -> None:
    torch = sys.modules.get("torch")
    if os.getpid() != PID or torch is None or not hasattr(torch, "save"):
        return
    from dpmigrate_probe import compare, outputs

    distributed = torch.distributed
    RECORD["group_left"] = bool(distributed.is_available() and distributed.is_initialized()) and not RECORD["cut"]
    try:
        import resource

        RECORD["memory"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    except ImportError:
        pass
    STATE["leaving"] = True
    outputs.settle()
    outputs.plain_save(torch)(STATE["parameters"], os.path.join(CONFIG["out"], f"rank{RANK}.pt"))
    if CONFIG["start"]:
        RECORD["compared"] = compare.compared(torch)
    # what the program has registered with atexit has run, since this was registered first: all that
    # can follow is the interpreter's own end
    RECORD["ended"] = _ended_well()
    path = os.path.join(CONFIG["out"], f"rank{RANK}.json")
    with open(f"{path}.part", "w", encoding="utf-8") as f:  # a launcher that ends the others may interrupt this
        json.dump(RECORD, f)
    os.replace(f"{path}.part", path)
