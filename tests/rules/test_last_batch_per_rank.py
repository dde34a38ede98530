"""DPM617: what the last turn of a training loop leaves."""

from __future__ import annotations

import pytest

from tests.rules.program import STEP, found, hits, of

_OUT = STEP + "out = model(x)\n"


@pytest.mark.parametrize(
    ("end", "names"),
    [
        pytest.param("print(F.l1_loss(out, out * 2))", "out is", id="a number"),
        pytest.param("kept = {'a': [score(out, y)]}\ntorch.save(kept, 'kept.pt')", "y, out are", id="kept in a list"),
        pytest.param("def of(a):\n    return a.mean()\nprint(of(out))", "out is", id="given to a function"),
        pytest.param("for a, b in DataLoader(val_set, batch_size=16):\n    print(out)", "out is", id="in another loop"),
        pytest.param("print(rate)", "rate is", id="made of a total before it has the turn's own part"),
    ],
)
def test_what_is_left(end: str, names: str) -> None:
    (one,) = hits("DPM617", epoch_start="seen = 0", step=_OUT + "rate = out.mean() / (seen + 1)\nseen += len(y)\n", epoch_end=f"print(seen)\n{end}")
    assert one.message == f"{names} read after the loop, which leaves rank 0's part of the last batch there"
    assert not one.edits


@pytest.mark.parametrize(
    ("step", "end"),
    [
        pytest.param(_OUT, "print(out.shape, len(y), x.device)", id="their form"),
        pytest.param(_OUT, "if out is not None:\n    del out", id="whether there is one"),
        pytest.param(STEP, "print(loss.item())", id="the loss, which is told as that of a part"),
        pytest.param(STEP, "print(epoch, model)", id="nothing of a batch"),
        pytest.param(STEP + "n = 3\n", "print(n)", id="made in every turn of something else"),
        pytest.param(_OUT, "for x, y in DataLoader(val_set, batch_size=16):\n    out = model(x)\nprint(out, y)", id="of another loop"),
        pytest.param(f"{STEP}hits += y.sum().item()\n", "print(hits)", id="a total, of which another rule speaks"),
        pytest.param(STEP + "step = epoch * len(loader) + i\n", "print(step)", id="a counter beside the batch"),
    ],
)
def test_nothing_to_say(step: str, end: str) -> None:
    batches = "for i, (x, y) in enumerate(loader):" if "step =" in step else "for x, y in loader:"
    assert found("DPM617", epoch_start="hits = 0", batches=batches, step=step, epoch_end=end) == []


def test_the_name_of_a_batch_may_be_that_of_the_loader_s_module_too() -> None:
    lines = [
        "import torch", "from torch.utils import data", "model = torch.nn.Linear(3, 2)", "opt = torch.optim.SGD(model.parameters(), 0.1)",
        "loader = data.DataLoader(data.TensorDataset(torch.randn(8, 3)), 4, shuffle=True)", "for epoch in range(2):",
        "    for i, data in enumerate(loader):", "        loss = model(data[0]).mean()", "        opt.zero_grad()", "        loss.backward()",
        "        opt.step()", "        done = epoch * len(loader) + i", "    print(done)",
    ]  # fmt: skip
    assert of("DPM617", "\n".join(lines)) == []
