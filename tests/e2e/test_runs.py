"""Migrated programs run, plain and at two gloo ranks, and end where the original ends.

The bound for parameters is that of float32 SGD after up to 50 steps, 1e-6, with room for longer runs; both sides start from the same seed and
take the samples in the same order.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

from tests.e2e.running import Run, files, kinds, numbers, run, tensors
from tests.pipeline import Case, cases, migrate

RUNNABLE = [c for c in cases() if c.facts["expect"] == "migrate" and c.facts.get("run")]
CHOSEN = [c for c in RUNNABLE if c.facts.get("e2e")]
TOLERANCE = 2e-6


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    chosen = RUNNABLE if metafunc.config.getoption("--all-runs") else CHOSEN
    metafunc.parametrize("case", chosen, ids=[c.name for c in chosen])


def test_migrated_program_trains_like_the_original(case: Case, tmp_path: Path) -> None:
    arguments = [str(a) for a in case.facts.get("args", [])]
    after = migrate(case.before, case.settings)
    assert after is not None
    original = run(tmp_path / "original", case.before, arguments)
    assert original.code == 0, original.errors
    plain = run(tmp_path / "plain", after, arguments)
    assert plain.code == 0, plain.errors
    ranks = run(tmp_path / "ranks", after, arguments, ranks=2)
    assert ranks.code == 0, ranks.errors

    assert kinds(plain.lines) == kinds(original.lines)
    assert kinds(ranks.lines) == kinds(original.lines)
    assert ranks.outputs[1] == ""
    assert files(original.folder) == files(plain.folder) == files(ranks.folder)
    # half precision is another computation: there the run, its files and its lines are compared, not its numbers
    fixed = case.facts.get("order") == "fixed" and case.facts.get("exact", True) and not case.settings.amp
    for result in (plain, ranks):
        same_structure(case, original, result)
        if fixed:
            same_parameters(case, original, result)
            same_numbers(case, original, result)


def checkpoints(case: Case, result: Run) -> dict[str, dict[str, torch.Tensor]]:
    """The checkpoint files, loaded where the script's own classes are not needed."""
    import pickle
    import runpy

    out = {}
    for pattern in case.facts.get("checkpoints", []):
        for path in sorted(result.folder.glob(pattern)):
            try:
                out[path.name] = tensors(torch.load(path, map_location="cpu", weights_only=True))
            except pickle.UnpicklingError:  # a whole model: its classes live in the script
                main = sys.modules["__main__"]
                for name, value in runpy.run_path(str(result.folder / "train.py"), run_name="loading").items():
                    if isinstance(value, type):
                        setattr(main, name, value)
                out[path.name] = tensors(torch.load(path, map_location="cpu", weights_only=False))
    return out


def same_structure(case: Case, original: Run, result: Run) -> None:
    a, b = checkpoints(case, original), checkpoints(case, result)
    if any(any(ch.isdigit() for ch in name) for name in a):
        return  # named by a number or a time
    shapes = [{f: {k: (t.shape, t.dtype) for k, t in c.items()} for f, c in side.items()} for side in (a, b)]
    assert shapes[0] == shapes[1]


def same_parameters(case: Case, original: Run, result: Run) -> None:
    a, b = checkpoints(case, original), checkpoints(case, result)
    for name in a.keys() & b.keys():
        for key, tensor in a[name].items():
            if tensor.is_floating_point():
                torch.testing.assert_close(b[name][key], tensor, atol=TOLERANCE * case.facts.get("drift", 1), rtol=1e-4, msg=f"{name} {key}: ".__add__)


def same_numbers(case: Case, original: Run, result: Run) -> None:
    patterns = case.facts.get("metrics", [])
    a, b = numbers(original.outputs, patterns), numbers(result.outputs, patterns)
    assert len(a) == len(b)
    for x, y in zip(a, b, strict=True):
        for p, q in zip(x, y, strict=True):
            assert float(q) == pytest.approx(float(p), rel=1e-3, abs=2e-4), (x, y)
