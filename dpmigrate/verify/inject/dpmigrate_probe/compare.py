"""How far the tensors of two runs are apart, and whether their checkpoints are alike: asked in the original's process, which has the classes to load them."""

from __future__ import annotations

import json
import math
import os
import re
import traceback
from collections.abc import Callable, Iterator
from typing import Any

from dpmigrate_probe.state import CONFIG, RECORD, STATE

Step = list[Any]
#: relative distance of what is saved, by whether the runs are in float64
VALUES = {True: 1e-7, False: 2e-3}
#: what sums of ordinary numbers are off by rounding: the state of a parameter without a gradient is nothing else
ROUNDING = {True: 1e-15, False: 1e-8}
_OF_THE_RUN = re.compile(r"time|date|elapsed|duration|seed|rng|random|\bhost|\bpid\b|memory", re.IGNORECASE)


def compared(torch: Any) -> dict[str, Any]:
    """``distances`` by step, and ``checkpoints`` by file, a word and what is meant: equal, allowed, unreadable, values, differs.

    Where they could not be compared there is the reason: in ``error`` for distances, under the name '' for checkpoints.
    """
    found: dict[str, Any] = {"distances": [], "checkpoints": {}}
    with torch.no_grad():
        try:
            found["distances"] = list(distances(torch, STATE["parameters"], CONFIG["start"]))
        except Exception:
            found["error"] = traceback.format_exc()
        try:
            found["checkpoints"] = checkpoints(torch)
        except Exception as e:
            found["checkpoints"] = {"": ("unreadable", f"{type(e).__name__}: {e}"[:300])}
    return found


def distances(torch: Any, mine: dict[int, Step], migrated: str) -> Iterator[dict[str, Any]]:
    """For each step that both runs kept: distance relative to the way moved, the parameter farthest off, and the spread between the ranks."""
    files = sorted(os.listdir(migrated))
    ranks = [torch.load(os.path.join(migrated, f), weights_only=True) for f in files if f.startswith("rank") and f.endswith(".pt")]
    starts = sorted((f for f in files if f.startswith("start")), key=lambda f: int(f[5:-3]))
    start = [p for f in starts for p in torch.load(os.path.join(migrated, f), weights_only=True)]
    for step in sorted(set(mine).intersection(*ranks)):
        a, others = mine[step], [r[step] for r in ranks]
        if any([tuple(p.shape) for p in o] != [tuple(p.shape) for p in a] for o in others):
            yield {"step": step, "relative": float("inf"), "parameter": "the optimizers hold other parameters", "spread": 0.0, "moved": 1.0}
            continue
        begun = start if [tuple(p.shape) for p in start] == [tuple(p.shape) for p in a] else [torch.zeros_like(p) for p in a]
        moved = _norm(torch, [x.double() - s.double() for x, s in zip(a, begun, strict=True)])
        far = [max(float((x.double() - o[i].double()).norm()) for o in others) for i, x in enumerate(a)]
        worst = max(range(len(far)), key=lambda i: far[i])
        whole = max(_norm(torch, [x.double() - y.double() for x, y in zip(a, o, strict=True)]) for o in others)
        spread = max((_spread(x, y) for o in others[1:] for x, y in zip(others[0], o, strict=True) if x.numel()), default=0.0)
        relative = whole / moved if moved else (0.0 if not whole else float("inf"))
        name = RECORD["names"][worst] if worst < len(RECORD["names"]) else f"parameter {worst}"
        yield {"step": step, "relative": _or_infinite(relative), "parameter": name, "spread": _or_infinite(spread), "moved": moved}


def _spread(x: Any, y: Any) -> float:
    """The largest difference of two tensors; where both are no number they are alike."""
    return float((x - y).abs().masked_fill((x == y) | (x.isnan() & y.isnan()), 0.0).max())


def _or_infinite(value: float) -> float:
    """Comparisons with NaN are all false: what is no number is as far off as can be."""
    return value if math.isfinite(value) else math.inf


def _norm(torch: Any, tensors: Step) -> float:
    return float(torch.stack([t.norm() for t in tensors]).norm()) if tensors else 0.0


# ---------------------------------------------------------------- checkpoints
def checkpoints(torch: Any) -> dict[str, tuple[str, str]]:
    """For each file that the original saved, how the migrated program's differs in keys, shapes, types and values."""
    with open(os.path.join(CONFIG["start"], "rank0.json"), encoding="utf-8") as f:
        record = json.load(f)
    theirs = {**record["writes"], **record["saves"]}  # also what was put in place under another name
    mine = {name: path for name, path in RECORD["saves"].items() if os.path.exists(path)}
    alike = _Alike(torch, _share_of_a_loss(record))
    found = {}
    kinds = {kind: sum(_masked(o) == kind for o in record["saves"]) for kind in map(_masked, mine)}
    for name, path in mine.items():
        other = name if name in theirs else next((o for o in theirs if _masked(o) == _masked(name) and o not in mine), name)  # named by the clock
        if other != name and sum(map(_masked(name).__eq__, map(_masked, mine))) != kinds[_masked(name)]:  # two of one second are one file
            found[name] = ("unreadable", "its name holds the time, by which the runs' files do not pair")
            continue
        theirs.pop(other, None)
        found[name] = _file(torch, alike, path, _place(other))
    return found


def _place(name: str) -> str:
    """Where the migrated program has put a file: beside its script, or seen from where it ran."""
    with open(os.path.join(CONFIG["start"], "config.json"), encoding="utf-8") as f:
        config = json.load(f)
    beside = os.path.join(os.path.dirname(config["script"]), name)
    return beside if os.path.exists(beside) else os.path.join(config["folder"], name)


def _masked(name: str) -> str:
    return re.sub(r"\d+", "#", name)


def _share_of_a_loss(record: dict[str, Any]) -> Callable[[float, float], bool]:
    """Whether ours is the loss of a batch, and theirs that of rank 0's part of it."""
    pairs = [(a[0], b[0]) for a, b in zip(RECORD["losses"], record["losses"], strict=False)]
    return lambda ours, theirs: any(_apart(a, ours) < 1e-6 and _apart(b, theirs) < 1e-6 for a, b in pairs)


def _file(torch: Any, alike: _Alike, a: str, b: str) -> tuple[str, str]:
    if not os.path.exists(b):
        return "differs", "missing"
    try:
        mine = torch.load(a, map_location="cpu", weights_only=False)
    except Exception as e:
        return "unreadable", f"the original's own cannot be loaded: {type(e).__name__}: {e}"[:300]
    try:
        other = torch.load(b, map_location="cpu", weights_only=False)
    except Exception as e:
        return "differs", f"the original's program cannot load it: {type(e).__name__}: {e}"[:300]
    found = dict(reversed(list(alike.different(mine, other, ""))))
    return next(((kind, found[kind]) for kind in ("differs", "values", "allowed") if kind in found), ("equal", ""))


def _keys(a: dict[Any, Any], b: dict[Any, Any]) -> dict[Any, Any]:
    """``a`` by the keys of ``b``: a migrated program saves the bare model, without DataParallel's part of the name."""
    shorter = {k: ".".join(p for p in k.split(".") if p != "module") for k in a if isinstance(k, str) and "module" in k.split(".")}
    return {shorter[k] if k not in b and shorter.get(k) in b else k: v for k, v in a.items()}


def _apart(a: float, b: float) -> float:
    if a == b or (a != a and b != b):
        return 0.0
    return _or_infinite(abs(a - b) / max(abs(a), abs(b), 1e-12))


class _Alike:
    """The differences of two checkpoints, the first of each kind first."""

    def __init__(self, torch: Any, share: Callable[[float, float], bool]) -> None:
        self._torch, self._share = torch, share

    def different(self, a: Any, b: Any, path: str) -> Iterator[tuple[str, str]]:
        torch = self._torch
        if isinstance(a, torch.nn.Module) and isinstance(b, torch.nn.Module):
            a = a.module if isinstance(a, torch.nn.DataParallel) else a
            if type(a) is not type(b):
                yield "differs", f"{path or 'the model'}: {type(a).__name__} became {type(b).__name__}"
                return
            a, b = dict(a.state_dict()), dict(b.state_dict())
        if isinstance(a, dict) and isinstance(b, dict):
            yield from self._dicts(a, b, path)
        elif isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
            yield from self._tensors(a, b, path)
        elif isinstance(a, list | tuple) and isinstance(b, list | tuple):
            if len(a) != len(b):
                yield "differs", f"{path}: {len(a)} items became {len(b)}"
            for i, (x, y) in enumerate(zip(a, b, strict=False)):
                yield from self.different(x, y, f"{path}[{i}]")
        elif type(a) is not type(b):
            yield "differs", f"{path}: {type(a).__name__} became {type(b).__name__}"
        elif type(a) in (int, float):
            yield from self._numbers(float(a), float(b), path)

    def _dicts(self, a: dict[Any, Any], b: dict[Any, Any], path: str) -> Iterator[tuple[str, str]]:
        a = _keys(a, b)
        lost, new = [k for k in a if k not in b], [k for k in b if k not in a]
        if lost:
            yield "differs", f"{path or 'keys'}: {lost[:2]} became {new[:2]}"
        elif new:  # beside parts with names of their own, more of them harm nobody; in a model's state they do
            state = any(isinstance(v, self._torch.Tensor) for v in a.values())
            yield "differs" if state else "allowed", f"{path or 'keys'}: {new[:2]} are new"
        for k in a:
            if k in b:
                yield from self.different(a[k], b[k], f"{path}[{k!r}]")

    def _tensors(self, a: Any, b: Any, path: str) -> Iterator[tuple[str, str]]:
        ranks = len(a) // len(b) if a.dim() and b.dim() and len(b) else 0
        if not path and ranks > 1 and a.shape == (len(b) * ranks, *b.shape[1:]) and a.dtype == b.dtype:
            yield "allowed", f"one rank's share of a batch, {len(b)} samples of {len(a)}"
        elif (a.shape, a.dtype) != (b.shape, b.dtype):
            yield "differs", f"{path}: {tuple(a.shape)} {a.dtype} became {tuple(b.shape)} {b.dtype}"
        elif a.dim() == 0:
            yield from self._numbers(float(a), float(b), path)
        elif a.dtype.is_floating_point and path and a.numel():  # a tensor alone may be a picture of noise
            x, y = a.detach().double(), b.detach().double()
            far = _or_infinite(float((x - y).norm()) / max(float(x.norm()), float(y.norm()), 1e-12))
            if far > VALUES[CONFIG["float64"]] and float((x - y).abs().nan_to_num(math.inf).max()) > ROUNDING[CONFIG["float64"]]:
                yield "values", f"the values of {path} are {far:.1e} apart"

    def _numbers(self, a: float, b: float, path: str) -> Iterator[tuple[str, str]]:
        if path and not _OF_THE_RUN.search(path) and _apart(a, b) > VALUES[CONFIG["float64"]]:
            yield ("allowed", f"{path} is the loss of rank 0's part of the batch") if self._share(a, b) else ("values", f"{path}: {a:.6g} became {b:.6g}")
