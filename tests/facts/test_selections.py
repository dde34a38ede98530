"""What is chosen of a batch, by masks of any name, as DPM302 says it."""

from __future__ import annotations

import pytest

from tests.rules.program import after, hits, of, pointed, program

_STEP = "optimizer.zero_grad()\nz = model(x)\nl = F.cross_entropy(z, y, reduction='none')\n{}\nloss.backward()\noptimizer.step()"
_DEFS = """
def masked(l, keep):
    return l[keep].mean()
def labeled(l, keep):
    return masked(l, keep)
def choose(z):
    return z.argmax(1) > 0
def both(z):
    return z, z.argmax(1) > 0
def nothing(z):
    return
class Masked(nn.Module):
    def forward(self, l, sel):
        return l[sel].mean()
"""
_BATCHES = "for x, y, lab in loader:"


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param("loss = F.cross_entropy(z[torch.arange(len(z)), y], y)", id="a place in each row"),
        pytest.param("i = torch.randperm(len(z))\nloss = l[i].mean()", id="another order"),
        pytest.param("w = torch.ones(3)\nloss = (w[y] * l).mean()", id="a table by classes"),
        pytest.param("w = torch.ones(9, 2)\nloss = F.mse_loss(z, w[lab])", id="a table by what a loader gives"),
        pytest.param("loss = l[[0, 1]].mean()", id="written down"),
        pytest.param("keep = (y > 0).float()\nloss = (l * keep).mean()", id="a mask that weighs"),
        pytest.param("keep = {'a': y}\nloss = l[keep['a']].mean() + l[keep['b']].mean()", id="elements of a dict that are no masks"),
        pytest.param("k = 1\nloss = z[:, k].mean() + z[:, -k].mean() + z[:, k + 1].mean()", id="a number"),
        pytest.param("loss = l[nothing(z)].mean() + l.index_select(0, y).mean()", id="what a function does not return"),
        pytest.param("loss = l[sorted(y)].mean() + l[y.view(-1)].mean() + l[torch.where(l > 0, y, 0)].mean()", id="places by other ways"),
        pytest.param("loss = l[to(y)].mean() + l[eq(y)].mean()", id="functions that are not seen"),
        pytest.param(
            "losses = []\nfor k in range(2):\n    if k > 0:\n        losses.append(l.mean())\nloss = torch.stack(losses).mean()", id="a list of as many"
        ),
        pytest.param("losses = [l, l]\nlosses.reverse()\nloss = torch.stack(losses).mean()", id="a list"),
        pytest.param("loss = torch.stack([e for e in l if e is not None]).mean()", id="a test of form"),
    ],
)
def test_nothing_is_chosen(lines: str) -> None:
    assert hits("DPM302", defs=_DEFS + "from helpers import to, eq", batches=_BATCHES, step=_STEP.format(lines)) == []


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param("keep = (l > 0.5).view(-1)\nloss = l[keep].mean()", id="a comparison, in another form"),
        pytest.param("keep = torch.isin(y, torch.tensor([0]))\nloss = l[keep].mean()", id="isin"),
        pytest.param("keep = torch.logical_and(l > 0, y > 0)\nloss = l[keep].mean()", id="both"),
        pytest.param("keep = y ^ (l > 0)\nloss = l[~keep].mean()", id="either"),
        pytest.param("keep = torch.isfinite(l)\nloss = l[keep].mean()", id="isfinite"),
        pytest.param("keep = (y > 0).to(x.device)\nloss = l[keep].mean()", id="moved"),
        pytest.param("keep = y.to(torch.bool)\nloss = l[keep].mean()", id="to bool"),
        pytest.param("keep = y.to(dtype=bool)\nloss = l[keep].mean()", id="to Python's bool"),
        pytest.param("keep = y.type(torch.BoolTensor)\nloss = l[keep].mean()", id="type"),
        pytest.param("keep = y.bool().squeeze()\nloss = l[keep].mean()", id="bool, in another form"),
        pytest.param("keep = (z > 0).any(dim=1)\nloss = l[keep].mean()", id="any in a row"),
        pytest.param("keep = torch.where(l > 0.5, True, False)\nloss = l[keep].mean()", id="where"),
        pytest.param("keep = torch.argwhere(l > 0.5)[:, 0]\nloss = l[keep].mean()", id="argwhere"),
        pytest.param("keep = choose(z)\nloss = l[keep].mean()", id="a function's"),
        pytest.param("_, keep = both(z)\nloss = l[keep].mean()", id="a function's second"),
        pytest.param("keep, w = choose(z), 1\nloss = l[keep].mean()", id="one of two"),
        pytest.param("keep = [i for i in range(len(y)) if y[i] > 0]\nloss = l[keep].mean()", id="a list of places"),
        pytest.param("lab = lab.to(x.device)\nkeep = lab\nloss = l[lab].mean()", id="given by the loader, moved"),
        pytest.param("loss = masked(l, y > 0)", id="given to a function"),
        pytest.param("crit = Masked()\nloss = crit(l, y > 0)", id="given to a loss module"),
        pytest.param("loss = masked(l, keep=choose(z))", id="given by keyword"),
        pytest.param("loss = masked(l, lab)", id="of the loader, given to a function"),
        pytest.param("loss = labeled(l, lab)", id="handed on"),
        pytest.param("errors = nn.CrossEntropyLoss(reduction='none')\ne = errors(z, y)\nloss = e[lab].mean()", id="losses of an object"),
    ],
)
def test_means_of_what_is_chosen(lines: str) -> None:
    """The name says nothing; the mean is over what every rank has another number of."""
    text = program(defs=_DEFS, batches=_BATCHES, step=_STEP.format(lines))
    assert [(f.severity.value, pointed(text, f)[-7:]) for f in of("DPM302", text)] == [("error", ".mean()")]


@pytest.mark.parametrize(
    ("lines", "new"),
    [
        ("loss = F.cross_entropy(z[lab], y[lab])", "loss = ddp.weighted_mean(F.cross_entropy(z[lab], y[lab]), ddp.weight_of(y[lab]))"),
        ("keep = {'a': y > 0}\nloss = l[keep['a']].mean()", "loss = ddp.weighted_mean(l[keep['a']].mean(), l[keep['a']].numel())"),
        (
            "kept = torch.stack([a for a, b in zip(l, y) if b > 0])\nloss = kept.mean()",
            "loss = ddp.weighted_mean(kept.mean(), kept.numel())",
        ),
    ],
)
def test_what_is_written(lines: str, new: str) -> None:
    assert new in after(defs=_DEFS, batches=_BATCHES, step=_STEP.format(lines))


def test_parts_of_a_batch_by_their_names() -> None:
    step = _STEP.replace("z = model(x)", "x, y = batch['x'], batch['y']\nz = model(x)")
    new = "loss = ddp.weighted_mean(F.cross_entropy(z[batch['lab']], y[batch['lab']]), ddp.weight_of(y[batch['lab']]))"
    assert new in after(batches="for batch in loader:", step=step.format("loss = F.cross_entropy(z[batch['lab']], y[batch['lab']])"))


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param("loss = l[choose(z)].mean()", id="a call is not written twice"),
        pytest.param("loss = l.index_select(0, torch.where(y > 0)[0]).mean()", id="by places"),
        pytest.param("kept = [a for a, b in zip(l, y) if b > 0]\nloss = torch.stack(kept).mean()", id="a list has no elements to count"),
        pytest.param("kept = []\nfor a, b in zip(l, y):\n    if b > 0:\n        kept.append(a)\nloss = torch.stack(kept).mean()", id="a list that is filled"),
    ],
)
def test_what_cannot_be_written_is_refused(lines: str) -> None:
    assert [h.severity.value for h in hits("DPM302", defs=_DEFS, batches=_BATCHES, step=_STEP.format(lines))] == ["blocker"]


def test_values_that_are_made_of_each_other_end() -> None:
    """By every way through two variables that are given anew fourteen times there would be more than all numbers."""
    chain = "\n".join(f"a = torch.relu(a) * {k} + b\nb = b.detach() * a.abs()" for k in range(14))
    line = f"a = b = model(x)\n{chain}\nloss = F.cross_entropy(a, y) + a[b > 0].mean() + (a[1:] - b[:-1]).mean()"
    step = f"optimizer.zero_grad()\n{line}\nloss.backward()\noptimizer.step()"
    assert hits("DPM302", step=step)
