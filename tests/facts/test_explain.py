"""Which part each thing plays, and why."""

from __future__ import annotations

import pytest

from dpmigrate.facts.explain import explained
from tests.pipeline import script
from tests.rules.program import COUNTING, STEP, program


def _told(**parts: str | bool) -> dict[str, tuple[str, str]]:
    return {r.part: (r.what, r.evidence) for r in explained(script(program(**parts)))}  # type: ignore[arg-type]


def test_nothing_is_trained() -> None:
    assert explained(script("import torch\nprint(1)\n")) == []


def test_the_parts_of_a_program() -> None:
    told = _told(epoch_end="with torch.no_grad():\n    for x, y in DataLoader(val_set, batch_size=4):\n        print(model(x))")
    assert set(told) == {"model", "wrap", "optimizer", "training loader", "training loop", "epoch loop", "loss", "evaluation loop"}
    what, why = told["model"]
    assert what == "Net()" and why.startswith("the optimizer of line ") and why.endswith(" trains its parameters")
    assert told["optimizer"] == ("torch.optim.SGD(model.parameters(), lr=0.1)", "it gets the parameters of model")
    assert told["training loop"][0] == "for x, y in loader" and "reaches backward() in line " in told["training loop"][1]
    assert told["evaluation loop"][1].startswith(
        "goes over DataLoader(val_set, batch_size=4), calls the model and never reaches backward(); every rank takes all "
    )
    assert told["epoch loop"][0] == "for epoch in range(3)" and told["loss"][1] == "a mean over the batch"
    assert told["wrap"][1] == "the model is wrapped here, as the migration will have it"


@pytest.mark.parametrize(
    ("parts", "part", "evidence"),
    [
        pytest.param({"model": "model = nn.DataParallel(Net())"}, "wrap", "DataParallel, which becomes ddp.wrap", id="a wrap that is there"),
        pytest.param(
            {"optimizer": "optimizer = torch.optim.SGD(unknown, lr=0.1)"}, "optimizer", "it gets the parameters of what cannot be followed", id="unknown"
        ),
        pytest.param({"step": STEP.replace("y)", "y, reduction='sum')")}, "loss", "a sum over the batch: cross_entropy with reduction='sum'", id="a sum"),
    ],
)
def test_the_evidence(parts: dict[str, str], part: str, evidence: str) -> None:
    assert _told(**parts)[part][1] == evidence


def test_a_loop_that_serves_both() -> None:
    defs = "def run(model, loader, optimizer=None):\n    for x, y in loader:\n        loss = F.cross_entropy(model(x), y)\n        if optimizer is not None:\n"
    defs += "            optimizer.zero_grad()\n            loss.backward()\n            optimizer.step()"
    told = _told(defs=defs, batches="if True:", step="run(model, loader, optimizer)", end="run(model, DataLoader(val_set, batch_size=4))")
    assert "it evaluates as well, as its calls decide" in told["training loop"][1]


_NORM = "model = nn.Sequential(nn.Linear(8, 2), nn.BatchNorm1d(2))"


def test_how_an_evaluation_runs() -> None:
    assert _told(end=COUNTING)["evaluation loop"][1].endswith("reaches backward(); its batches are dealt out to the ranks")
    with_buffers = _told(end="model.eval()\n" + COUNTING, model=_NORM)["evaluation loop"][1]
    assert "dealt out to the ranks, from rank 0's buffers (line " in with_buffers
    printed = COUNTING.replace("correct +=", "print('a')\n        correct +=")
    assert "every rank takes all batches: print() has an effect in every batch (line " in _told(end=printed)["evaluation loop"][1]
    assert "evaluation loop" not in _told(end="for x, y in loader:\n    print(x)")


def test_long_things_are_cut() -> None:
    assert (
        len(
            _told(model=f"model = Net()\nnames = [{'1, ' * 60}]", optimizer=f"optimizer = torch.optim.SGD(model.parameters(), lr={'0' * 90}.1)")["optimizer"][0]
        )
        == 80
    )
