"""DPM333: samples that a collate function leaves out."""

from __future__ import annotations

import pytest

from dpmigrate.model import Severity
from tests.rules.program import found, hits

_LOADER = "loader = DataLoader(train_set, batch_size=16, shuffle=True, collate_fn={})"


def _parts(body: str, collate: str = "put", **more: str) -> dict[str, str]:
    imports = "from torch.utils.data import default_collate\nfrom functools import partial"
    return {"imports": imports, "defs": f"def put(samples):\n    {body}", "loader": _LOADER.format(collate), **more}


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({}, id="no collate function"),
        pytest.param({"imports": "from data import put", "loader": _LOADER.format("put")}, id="of a library"),
        pytest.param(_parts("return default_collate(samples)"), id="all of them"),
        pytest.param(_parts("return default_collate([s for s in samples if TRAIN])"), id="by a setting"),
        pytest.param(_parts("longest = [1 for k in range(9) if k > 3]\n    return default_collate(samples)"), id="a condition on something else"),
        pytest.param(_parts("names = list(filter(None, NAMES))\n    return default_collate(samples)"), id="something else is filtered"),
        pytest.param(_parts("xs = []\n    for x, y in samples:\n        if len(x) < 9:\n            x = wider(x)\n        xs.append(x)\n    return xs"), id="made longer"),
        pytest.param(_parts("xs = []\n    for x, y in samples:\n        if len(x) < 9:\n            xs.append(x)\n        else:\n            xs.append(x[:9])\n    return xs"), id="on both sides"),
        pytest.param(_parts("xs, ms = [], []\n    for x, m in samples:\n        xs.append(x)\n        if m is not None:\n            ms.append(m)\n    return xs, ms"), id="a part that a sample may lack"),
        pytest.param(_parts("xs = []\n    for x, boxes in samples:\n        for b in boxes:\n            if b is None:\n                continue\n            xs.append(b)\n    return xs"), id="parts of a sample"),
        pytest.param(_parts("for x, y in samples:\n        if x is None:\n            continue\n        print(x)\n    return default_collate(samples)"), id="nothing is added"),
        pytest.param(_parts("xs = []\n    for x, y in samples:\n        xs.append(x)\n        if x is None:\n            continue\n        print(x)\n    return xs"), id="after it was added"),
        pytest.param(_parts("return default_collate([s for s in samples if s])", step="optimizer.zero_grad()\nloss = F.cross_entropy(model(x), y, reduction='sum')\nloss.backward()\noptimizer.step()"), id="a sum"),
        pytest.param(_parts("return default_collate([s for s in samples if s])", loader="loader = DataLoader(train_set, batch_size=16)\nother = DataLoader(val_set, batch_size=16, collate_fn=put)"), id="of an evaluation"),
    ],
)  # fmt: skip
def test_nothing_to_say(parts: dict[str, str]) -> None:
    assert found("DPM333", **parts) == []


@pytest.mark.parametrize(
    ("parts", "place"),
    [
        pytest.param(_parts("return default_collate([s for s in samples if s is not None])"), "s is not None", id="comprehension"),
        pytest.param(_parts("return default_collate(list(filter(lambda s: s, samples)))"), "filter(lambda s: s, samples)", id="filter"),
        pytest.param(_parts("rest = list(samples)\n    return default_collate([x for x, y in rest if len(x)])"), "len(x)", id="by another name"),
        pytest.param(_parts("xs = []\n    for x, y in samples:\n        if x is None:\n            continue\n        xs.append(x)\n    return xs"), "x is None", id="goes on"),
        pytest.param(_parts("xs = []\n    for i, s in enumerate(samples):\n        x = s[0]\n        if x is not None:\n            xs.append(x)\n    return xs"), "x is not None", id="adds only those"),
        pytest.param(_parts("pass", "lambda samples: default_collate([s for s in samples if s])"), "s", id="lambda"),
        pytest.param({"defs": "class Put:\n    def __call__(self, samples):\n        return [s for s in samples if s]", "loader": _LOADER.format("Put()")}, "s", id="object"),
        pytest.param({"defs": "class Put:\n    @staticmethod\n    def put(samples):\n        return [s for s in samples if s]", "loader": _LOADER.format("Put.put")}, "s", id="static method"),
    ],
)  # fmt: skip
def test_found(parts: dict[str, str], place: str) -> None:
    assert found("DPM333", **parts) == [place]
    assert [h.severity for h in hits("DPM333", **parts)] == [Severity.WARNING]
