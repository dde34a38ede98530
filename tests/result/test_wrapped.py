"""Every model that is trained is under a wrap."""

from __future__ import annotations

import pytest

from dpmigrate.result.wrapped import unwrapped
from tests.result.checked import BEFORE, Edits, mutated, said

_WRAP = "net = ddp.wrap(nn.Linear(4, 1))"
_TWO = "    opt = optim.SGD(net.parameters(), lr=0.1)"


@pytest.mark.parametrize(
    ("edits", "both"),
    [
        pytest.param([], [], id="as it is"),
        pytest.param([(_WRAP, "net = nn.Linear(4, 1)\n    net = ddp.wrap(net)")], [], id="in a statement of its own"),
        pytest.param([(_WRAP, "net = nn.Linear(4, 1)\n    net = ddp.wrap(model=net)")], [], id="given by a keyword"),
        pytest.param([(_WRAP, "ddp.wrap()\n    net = ddp.wrap(nn.Linear(4, 1))")], [], id="and a wrap of nothing"),
        pytest.param([(_WRAP, "net = nn.parallel.DistributedDataParallel(nn.Linear(4, 1))")], [], id="torch's own"),
        pytest.param([("import dpmigrate_runtime as ddp", "import dpmigrate_runtime, dpmigrate_runtime as ddp"), (_WRAP, "net = dpmigrate_runtime.wrap(nn.Linear(4, 1))")], [], id="by the full name"),
        pytest.param([], [(_TWO, f"{_TWO}\n    other = optim.SGD(net.parameters(), lr=0.1)")], id="two optimizers"),
        pytest.param([], [("lr=0.1", "lr=0.2")], id="another rate"),
    ],
)  # fmt: skip
def test_nothing_is_said(edits: Edits, both: Edits) -> None:
    assert mutated(unwrapped, edits, both) == []


def test_a_program_that_trains_nothing() -> None:
    code = "import torch\nimport dpmigrate_runtime as ddp\nddp.setup()\n"
    assert said(unwrapped, "import torch\n", code) == []


@pytest.mark.parametrize(
    ("edits", "both", "words"),
    [
        pytest.param([(_WRAP, "net = nn.Linear(4, 1)")], [], ["train.py:22: no model would be wrapped in DistributedDataParallel: each rank would train its own"], id="no wrap"),
        pytest.param([(_WRAP, "net = nn.Linear(4, 1)"), ("def main", "def wrapped():\n    return ddp.wrap(nn.Linear(4, 1))\n\n\ndef main")], [], ["train.py:22: no model would be wrapped in DistributedDataParallel: each rank would train its own"], id="a wrap that nothing runs"),
        pytest.param(
            [(_WRAP, "net = nn.Linear(4, 1)\n    spare = ddp.wrap(nn.Linear(4, 1))\n    spare(data)")], [],
            ["train.py:20: net would be trained here without DistributedDataParallel round it", "train.py:17: the optimizer would step a model without DistributedDataParallel round it: optim.SGD(net.parameters(), lr=0.1)"],
            id="another one is wrapped",
        ),
        pytest.param(
            [], [("    for epoch", "    head = nn.Linear(1, 1)\n    adam = optim.Adam(head.parameters())\n    adam.step()\n    for epoch")],
            ["train.py:19: the optimizer would step a model without DistributedDataParallel round it: optim.Adam(head.parameters())"],
            id="one of two",
        ),
        pytest.param(
            [], [("    for epoch", "    import shop\n    adam = optim.Adam(shop.head.parameters())\n    for epoch")],
            ["train.py:19: it is not seen which model shop.head is, so not whether it is wrapped"],
            id="a model that is not seen",
        ),
    ],
)  # fmt: skip
def test_what_is_not_wrapped(edits: Edits, both: Edits, words: list[str]) -> None:
    assert mutated(unwrapped, edits, both) == words


def test_the_program_itself_is_no_result() -> None:
    assert said(unwrapped, BEFORE, BEFORE + "import dpmigrate_runtime as ddp\n")
