"""Reads the tensors that two runs left and says how far they are apart, as JSON: a process of its own, so that the tool itself never imports torch.

python measure.py ORIGINAL_OUT ORIGINAL_ROOT MIGRATED_OUT MIGRATED_ROOT
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

Step = list[torch.Tensor]


def distances(original: Path, migrated: Path) -> list[dict[str, Any]]:
    """For each step that both runs kept: distance relative to the way moved, the parameter farthest off, and the spread between the ranks."""
    mine = _steps(original / "rank0.pt")
    ranks = [_steps(p) for p in sorted(migrated.glob("rank*.pt"))]
    start = [p for f in sorted(migrated.glob("start*.pt"), key=lambda f: int(f.stem[5:])) for p in torch.load(f, weights_only=True)]
    names = json.loads((original / "rank0.json").read_text()).get("names", [])
    out = []
    for step in sorted(set(mine).intersection(*ranks)):
        a, others = mine[step], [r[step] for r in ranks]
        if any([tuple(p.shape) for p in o] != [tuple(p.shape) for p in a] for o in others):
            out.append({"step": step, "relative": float("inf"), "parameter": "the optimizers hold other parameters", "spread": 0.0})
            continue
        begun = start if [tuple(p.shape) for p in start] == [tuple(p.shape) for p in a] else [torch.zeros_like(p) for p in a]
        moved = _norm([x.double() - s.double() for x, s in zip(a, begun, strict=True)])
        far = [max(float((x.double() - o[i].double()).norm()) for o in others) for i, x in enumerate(a)]
        worst = max(range(len(far)), key=lambda i: far[i])
        whole = max(_norm([x.double() - y.double() for x, y in zip(a, o, strict=True)]) for o in others)
        spread = max((float((x - y).abs().max()) for o in others[1:] for x, y in zip(others[0], o, strict=True) if x.numel()), default=0.0)
        relative = whole / moved if moved else (0.0 if not whole else float("inf"))
        out.append({"step": step, "relative": relative, "parameter": names[worst] if worst < len(names) else f"parameter {worst}", "spread": spread})
    return out


def _steps(path: Path) -> dict[int, Step]:
    return torch.load(path, weights_only=True) if path.exists() else {}


def _norm(tensors: Step) -> float:
    return float(torch.stack([t.norm() for t in tensors]).norm()) if tensors else 0.0


def checkpoints(original: Path, migrated: Path, names: list[str]) -> dict[str, str]:
    """For each file that the original saved: '' where the migrated program's has the same keys, shapes and types, otherwise the first difference."""
    return {name: _file(original / name, migrated / name) for name in dict.fromkeys(names) if (original / name).exists()}


def _file(a: Path, b: Path) -> str:
    if not b.exists():
        return "missing"
    try:
        mine = torch.load(a, map_location="cpu", weights_only=True)
    except Exception:
        return ""  # a whole model, or objects of the script's: only its own code can read it
    try:
        other = torch.load(b, map_location="cpu", weights_only=True)
    except Exception as e:
        return f"cannot be read as the original's can: {type(e).__name__}"
    return next(_different(_bare(mine), other, ""), "")


def _bare(value: Any) -> Any:
    """With DataParallel's prefix taken out of the keys: a migrated program saves the bare model."""
    if isinstance(value, dict):
        return {k.removeprefix("module.") if isinstance(k, str) else k: _bare(v) for k, v in value.items()}
    return value


def _different(a: Any, b: Any, path: str) -> Iterator[str]:
    if isinstance(a, dict) and isinstance(b, dict):
        lost, new = [k for k in a if k not in b], [k for k in b if k not in a]
        if lost or new:
            yield f"{path or 'keys'}: {lost[:2]} became {new[:2]}" if lost else f"{path or 'keys'}: {new[:2]} are new"
        for k in a:
            if k in b:
                yield from _different(a[k], b[k], f"{path}[{k!r}]")
    elif isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        if (a.shape, a.dtype) != (b.shape, b.dtype):
            yield f"{path}: {tuple(a.shape)} {a.dtype} became {tuple(b.shape)} {b.dtype}"
    elif isinstance(a, list | tuple) and isinstance(b, list | tuple):
        if len(a) != len(b):
            yield f"{path}: {len(a)} items became {len(b)}"
        for i, (x, y) in enumerate(zip(a, b, strict=False)):
            yield from _different(x, y, f"{path}[{i}]")
    elif type(a) is not type(b):
        yield f"{path}: {type(a).__name__} became {type(b).__name__}"


if __name__ == "__main__":
    out_a, root_a, out_b, root_b = map(Path, sys.argv[1:5])
    saves = json.loads((out_a / "rank0.json").read_text()).get("saves", [])
    json.dump({"distances": distances(out_a, out_b), "checkpoints": checkpoints(root_a, root_b, saves)}, sys.stdout)
