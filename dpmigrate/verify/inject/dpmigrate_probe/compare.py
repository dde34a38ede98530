"""How far the tensors of two runs are apart, and whether their checkpoints are alike: asked in the original's process, which has the classes to load them."""

from __future__ import annotations

import json
import os
import re
import traceback
from collections.abc import Iterator
from typing import Any

from dpmigrate_probe.state import CONFIG, RECORD, STATE

Step = list[Any]
ALLOWED = "allowed: "  # the judge knows the word


def compared(torch: Any) -> dict[str, Any]:
    """``distances`` by step and ``checkpoints`` by file; ``error`` if they could not be read."""
    try:
        with torch.no_grad():
            return {"distances": list(distances(torch, STATE["parameters"], CONFIG["start"])), "checkpoints": checkpoints(torch)}
    except Exception:
        return {"error": traceback.format_exc()}


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
        spread = max((float((x - y).abs().max()) for o in others[1:] for x, y in zip(others[0], o, strict=True) if x.numel()), default=0.0)
        relative = whole / moved if moved else (0.0 if not whole else float("inf"))
        name = RECORD["names"][worst] if worst < len(RECORD["names"]) else f"parameter {worst}"
        yield {"step": step, "relative": relative, "parameter": name, "spread": spread, "moved": moved}


def _norm(torch: Any, tensors: Step) -> float:
    return float(torch.stack([t.norm() for t in tensors]).norm()) if tensors else 0.0


def checkpoints(torch: Any) -> dict[str, str]:
    """For each file that the original saved: '' where the migrated program's has the same keys, shapes and types, otherwise the first difference.

    What a right migration may change begins with ``ALLOWED``.
    """
    with open(os.path.join(CONFIG["start"], "rank0.json"), encoding="utf-8") as f:
        record = json.load(f)
    theirs = {**record["writes"], **record["saves"]}  # also what was put in place under another name
    mine = {name: path for name, path in RECORD["saves"].items() if os.path.exists(path)}
    found = {}
    for name, path in mine.items():
        other = name if name in theirs else next((o for o in theirs if _masked(o) == _masked(name) and o not in mine), name)  # named by the clock
        theirs.pop(other, None)
        found[name] = _file(torch, path, _place(other))
    return found


def _place(name: str) -> str:
    """Where the migrated program has put a file: beside its script, or seen from where it ran."""
    with open(os.path.join(CONFIG["start"], "config.json"), encoding="utf-8") as f:
        config = json.load(f)
    beside = os.path.join(os.path.dirname(config["script"]), name)
    return beside if os.path.exists(beside) else os.path.join(config["folder"], name)


def _masked(name: str) -> str:
    return re.sub(r"\d+", "#", name)


def _file(torch: Any, a: str, b: str) -> str:
    if not os.path.exists(b):
        return "missing"
    try:
        mine = torch.load(a, map_location="cpu", weights_only=False)
    except Exception:
        return ""  # not even the original can read its own
    try:
        other = torch.load(b, map_location="cpu", weights_only=False)
    except Exception as e:
        return f"the original's program cannot load it: {type(e).__name__}: {e}"[:300]
    found = list(_different(torch, mine, other, ""))
    return next((f for f in found if not f.startswith(ALLOWED)), found[0] if found else "")


def _keys(a: dict[Any, Any], b: dict[Any, Any]) -> dict[Any, Any]:
    """``a`` by the keys of ``b``: a migrated program saves the bare model, without DataParallel's part of the name."""
    shorter = {k: ".".join(p for p in k.split(".") if p != "module") for k in a if isinstance(k, str) and "module" in k.split(".")}
    return {shorter[k] if k not in b and shorter.get(k) in b else k: v for k, v in a.items()}


def _different(torch: Any, a: Any, b: Any, path: str) -> Iterator[str]:
    if isinstance(a, torch.nn.Module) and isinstance(b, torch.nn.Module):
        a = a.module if isinstance(a, torch.nn.DataParallel) else a
        if type(a) is not type(b):
            yield f"{path or 'the model'}: {type(a).__name__} became {type(b).__name__}"
            return
        a, b = dict(a.state_dict()), dict(b.state_dict())
    if isinstance(a, dict) and isinstance(b, dict):
        a = _keys(a, b)
        lost, new = [k for k in a if k not in b], [k for k in b if k not in a]
        if lost:
            yield f"{path or 'keys'}: {lost[:2]} became {new[:2]}"
        elif new:  # beside parts with names of their own, more of them harm nobody; in a model's state they do
            yield f"{'' if any(isinstance(v, torch.Tensor) for v in a.values()) else ALLOWED}{path or 'keys'}: {new[:2]} are new"
        for k in a:
            if k in b:
                yield from _different(torch, a[k], b[k], f"{path}[{k!r}]")
    elif isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        ranks = len(a) // len(b) if a.dim() and b.dim() and len(b) else 0
        if not path and ranks > 1 and a.shape == (len(b) * ranks, *b.shape[1:]) and a.dtype == b.dtype:
            yield f"{ALLOWED}one rank's share of a batch, {len(b)} samples of {len(a)}"
        elif (a.shape, a.dtype) != (b.shape, b.dtype):
            yield f"{path}: {tuple(a.shape)} {a.dtype} became {tuple(b.shape)} {b.dtype}"
    elif isinstance(a, list | tuple) and isinstance(b, list | tuple):
        if len(a) != len(b):
            yield f"{path}: {len(a)} items became {len(b)}"
        for i, (x, y) in enumerate(zip(a, b, strict=False)):
            yield from _different(torch, x, y, f"{path}[{i}]")
    elif type(a) is not type(b):
        yield f"{path}: {type(a).__name__} became {type(b).__name__}"
