"""Where a model is moved: as the program said, and never when it is wrapped already."""

from __future__ import annotations

import pytest

from dpmigrate.result.moved import moves
from tests.result.checked import Edits, mutated

_WRAP = "ddp.wrap(nn.Linear(4, 1))"
_ANY = (_WRAP, "ddp.wrap(nn.Linear(4, 1).to(ddp.device()))")


def later(*lines: str) -> Edits:
    """The lines stand before the loop over epochs."""
    return [("    for epoch", "".join(f"    {line}\n" for line in lines) + "    for epoch")]


@pytest.mark.parametrize(
    ("edits", "both"),
    [
        pytest.param([], [], id="no move"),
        pytest.param([(_WRAP, "ddp.wrap(nn.Linear(4, 1).cuda())")], [], id="at the wrap"),
        pytest.param([_ANY], [], id="to the rank's"),
        pytest.param([_ANY], later("net.cuda()"), id="again, in any case"),
        pytest.param([_ANY], later("if torch.cuda.is_available():", "    net.cuda()"), id="again, where there is a GPU"),
        pytest.param([_ANY], later("cuda = torch.cuda.is_available()", "if cuda:", "    net.to('cuda')"), id="by a name for that"),
        pytest.param([(_WRAP, 'ddp.wrap(nn.Linear(4, 1).to("cuda" if data else "cpu"))')], later("if data:", "    net.cuda()"), id="under the same test"),
        pytest.param([("    net = ddp.wrap(nn.Linear(4, 1))", "    if data:\n        net = ddp.wrap(nn.Linear(4, 1).to(ddp.device()))\n        net.cuda()")], [], id="all of it under one test"),
        pytest.param([], later("net.to(torch.float16)", "net.to(memory_format=torch.channels_last)"), id="changes of type"),
        pytest.param([(_WRAP, "nn.Linear(4, 1)\n    net.to('cuda')\n    net = ddp.wrap(net)")], later("net.to('cuda')"), id="moved before, too"),
        pytest.param([], [*later("other = nn.Linear(4, 1)", "other.cuda()"), ("    for epoch", "    data.to('cuda')\n    for epoch")], id="another"),
        pytest.param([("net = ddp.wrap(nn.Linear(4, 1))", "net = nn.Linear(4, 1)"), ("    opt =", "    net = ddp.wrap(net)\n    opt =")], [("    opt =", "    net.cuda()\n    opt =")], id="by order"),
        pytest.param([(_WRAP, "nn.Linear(4, 1)\n    net = ddp.wrap()\n    net = ddp.wrap(net)")], [], id="a wrap of nothing"),
    ],
)  # fmt: skip
def test_nothing_is_said(edits: Edits, both: Edits) -> None:
    assert mutated(moves, edits, both) == []


_ASKED = "the model would be moved at its wrap in any case, but the program does it under the test"
_LATE = "would be moved here when it is wrapped already (train.py:16): DistributedDataParallel looks at the parameters once"


@pytest.mark.parametrize(
    ("edits", "both", "words"),
    [
        pytest.param([_ANY], later("if data:", "    net.cuda()"), f"train.py:16: {_ASKED} data (train.py:19)", id="under a test"),
        pytest.param([_ANY], later("if data:", "    net.to(device='cuda')"), f"train.py:16: {_ASKED} data (train.py:19)", id="device="),
        pytest.param([_ANY], later("net.to('cuda') if data else net"), f"train.py:16: {_ASKED} data (train.py:18)", id="in an expression"),
        pytest.param([], later("net.to('cuda')"), f"train.py:18: net {_LATE}", id="wrapped on the CPU"),
        pytest.param([], later("net.to(device='cuda')"), f"train.py:18: net {_LATE}", id="wrapped on the CPU, device="),
        pytest.param([], later("net = net.cuda()"), f"train.py:18: net {_LATE}", id="wrapped on the CPU, bound again"),
        pytest.param([], [("    loss = 0.0\n", "    loss = 0.0\n    net.cuda()\n")], f"train.py:8: net {_LATE}".replace("16", "17"), id="in a function"),
        pytest.param([("    net = ddp.wrap(nn.Linear(4, 1))", "    net = nn.Linear(4, 1)\n    net = ddp.wrap(net)")], [("    loss = 0.0\n", "    loss = 0.0\n    net.cuda()\n")], f"train.py:8: net {_LATE}".replace("16", "18"), id="in a function, bare before"),
        pytest.param([], [*later("net.to('cuda')"), ("def main", "def spare():\n    net = main()\n    net.cuda()\n\n\ndef main"), ("    for epoch", "    if data:\n        return net\n    for epoch")], f"train.py:23: net {_LATE}".replace("16", "21"), id="moved before by what nothing calls"),
    ],
)  # fmt: skip
def test_other_moves_than_the_program_makes(edits: Edits, both: Edits, words: str) -> None:
    assert mutated(moves, edits, both) == [words]
