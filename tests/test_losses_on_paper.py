"""Losses that are functions of sums and means over the batch, or compare samples: the execution of the result shows of which, whatever the spelling."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpmigrate import engine
from dpmigrate.contract import OF_GRADIENTS
from dpmigrate.model import Outcome, Severity, Status
from dpmigrate.settings import Settings
from tests.pipeline import cases

PROGRAM = """
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

{defined}

def main():
    loader = DataLoader(TensorDataset(torch.randn(60, 4), torch.rand(60, 3)), batch_size=12, shuffle=True)
    held_out = DataLoader(TensorDataset(torch.randn(20, 4), torch.rand(20, 3)), batch_size=12)
    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        for x, t in loader:
            p = model(x).sigmoid()
            loss = {loss}
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        {evaluated}


if __name__ == "__main__":
    main()
"""


def applied(folder: Path, loss: str, defined: str = "", evaluated: str = "") -> tuple[Outcome, str]:
    path = folder / "train.py"
    path.write_text(PROGRAM.format(loss=loss, defined=defined, evaluated=evaluated))
    (outcome,) = engine.apply([path], Settings(), engine.Writing(write=False))
    return outcome, str(outcome.files[-1].after)


def codes(outcome: Outcome) -> set[str]:
    return {f.code for file in outcome.files for f in file.findings if not f.edits}


@pytest.mark.parametrize(
    ("defined", "loss", "expected"),
    [
        pytest.param("", "1 - (2 * (p * t).sum() + 1) / ((p + t).sum() + 1)", ["(ddp.batch_sum(2 * (p * t).sum()) + 1) / (ddp.batch_sum((p + t).sum()) + 1)"], id="dice"),
        pytest.param(
            "import segmentation_models_pytorch as smp\ndice = smp.losses.DiceLoss('multilabel')",
            "F.mse_loss(p, t) + dice(p, t)",
            ["F.mse_loss(p, t) + dice(ddp.batch_rows(p), ddp.batch_rows(t))"],
            id="a loss of a library of which the form is not known",
        ),
        pytest.param(
            "def overlap(p, t):\n    both = (p * t).sum(0)\n    return (1 - both / (p + t - p * t).sum(0)).mean()",
            "overlap(p, t)",
            ["ddp.batch_sum(both) / ddp.batch_sum((p + t - p * t).sum(0))"],
            id="by class",
        ),
        pytest.param("", "(p - t).pow(2).sum().sqrt()", ["ddp.batch_sum((p - t).pow(2).sum()).sqrt()"], id="the root of a sum, by a method"),
        pytest.param("", "F.mse_loss(p, t) * (p.abs().mean() + 1)", ["ddp.batch_mean(F.mse_loss(p, t)) * ddp.batch_mean(p.abs().mean() + 1)"], id="a product of means"),
        pytest.param("", "10 * torch.log10(F.mse_loss(p, t) / t.max(1)[0].mean())", ["ddp.batch_mean(F.mse_loss(p, t)) / "], id="the logarithm of a quotient"),
        pytest.param(
            "def overlap(p, t):\n    found = (2 * (p * t).sum() + 1) / ((p + t).sum() + 1)\n    if found > 1:\n        raise ValueError('range')\n    return found",
            "1 - overlap(p, t)",
            ["(ddp.batch_sum(2 * (p * t).sum()) + 1) / (ddp.batch_sum((p + t).sum()) + 1)"],
            id="a quotient that is tested for its range",
        ),
        pytest.param(
            "def overlap(p, t):\n    found = (2 * (p * t).sum() + 1) / ((p + t).sum() + 1)\n    return found if found < 0.5 else found**2",
            "1 - overlap(p, t)",
            ["(ddp.batch_sum(2 * (p * t).sum()) + 1) / (ddp.batch_sum((p + t).sum()) + 1)"],
            id="another loss by the quotient of all samples",
        ),
        pytest.param(
            "def masked(error, mask, least=1e-6):\n    return (error * mask).sum() / mask.sum().clamp_min(least)",
            "masked((p - t).abs(), (t > 0.5).float())",
            ["ddp.batch_sum((error * mask).sum()) / ddp.batch_sum(mask.sum()).clamp_min(least)"],
            id="a guard that is a parameter",
        ),
        pytest.param(
            "def relative(p, t):\n    loss = (p - t).abs().sum()\n    loss /= t.sum() + 1\n    return loss",
            "relative(p, t)",
            ["loss /= ddp.batch_sum(t.sum()) + 1", "ddp.sum_loss(loss).backward()"],
            id="divided in place",
        ),
        pytest.param(
            "def averaged(p, t):\n    loss = F.mse_loss(p, t)\n    loss /= len(p)\n    return loss",
            "averaged(p, t)",
            ["loss /= ddp.batch_sum(len(p))"],
            id="a mean divided by the size of the batch",
        ),
        pytest.param(
            "def weighed(p, t):\n    many = t.sum()\n    return F.binary_cross_entropy_with_logits(p, t, pos_weight=(t.numel() - many) / many)",
            "weighed(p, t)",
            ["ddp.batch_sum(t.numel() - many) / ddp.batch_sum(many)"],
            id="weights by counts of the batch",
        ),
        pytest.param("", "F.mse_loss(p, t) + (p.sum() - t.sum()) ** 2 / 100", ["F.mse_loss(p, t) + ddp.batch_sum(p.sum() - t.sum()) ** 2"], id="beside a mean"),
    ],
)
def test_functions_of_sums(tmp_path: Path, defined: str, loss: str, expected: list[str]) -> None:
    outcome, after = applied(tmp_path, loss, defined)
    assert outcome.status is Status.CHANGED, outcome
    assert not codes(outcome) & {"DPM302", "DPM303", "DPM305"}
    assert not [part for part in expected if part not in after], after
    # the executions of equal texts are kept, with the nodes of the trees of the first time
    again, after_again = applied(tmp_path, loss, defined)
    assert (again.status, after_again) == (outcome.status, after)


@pytest.mark.parametrize(
    ("defined", "loss", "expected"),
    [
        pytest.param(
            "def pairs(a, b):\n    sim = F.normalize(a, dim=1) @ F.normalize(b, dim=1).t()\n    return F.cross_entropy(sim / 0.1, torch.arange(len(a)))",
            "pairs(p, t)",
            ["ddp.batch_rows(F.normalize(a, dim=1)) @ ddp.batch_rows(F.normalize(b, dim=1).t(), dim=1)", "torch.arange(ddp.batch_sum(len(a)))"],
            id="samples of two kinds",
        ),
        pytest.param(
            "def views(a, b):\n    n = a.size(0)\n    z = torch.cat([a, b])\n    sim = (z @ z.T).masked_fill(torch.eye(2 * n, dtype=torch.bool), -1e9)\n"
            "    return F.cross_entropy(sim, torch.cat([torch.arange(n, 2 * n), torch.arange(n)]))",
            "views(p, model(x + 0.1))",
            ["ddp.batch_rows(z, segments=2) @ ddp.batch_rows(z.T, dim=1, segments=2)", "torch.eye(ddp.batch_sum(2 * n)", "torch.arange(ddp.batch_sum(n))"],
            id="two views of each sample",
        ),
        pytest.param(
            "def hardest(z, y):\n    apart = torch.cdist(z, z)\n    same = y[:, None] == y[None, :]\n"
            "    return torch.relu((apart * same).max(1)[0] - apart.masked_fill(same, 1e9).min(1)[0] + 0.3).mean()",
            "hardest(p, (t[:, 0] > 0.5).long())",
            ["torch.cdist(ddp.batch_rows(z), ddp.batch_rows(z))", "ddp.batch_rows(y[:, None]) == ddp.batch_rows(y[None, :], dim=1)"],
            id="by labels",
        ),
        pytest.param(
            "def agreement(p, t):\n    mp, mt = p.mean(), t.mean()\n    both = ((p - mp) * (t - mt)).mean()\n    return 1 - 2 * both / (p.var() + t.var() + (mp - mt) ** 2)",
            "agreement(p, t)",
            ["ddp.batch_rows(p).var() + ddp.batch_rows(t).var()"],
            id="a correlation",
        ),
        pytest.param("def f(p):\n    return (p[0] - p[1]).abs().mean()", "f(p)", ["ddp.batch_rows(p)[0] - ddp.batch_rows(p)[1]"], id="samples at places"),
        pytest.param(
            "def f(p):\n    every = p @ p.t()\n    return every[: len(p) // 2].mean()", "f(p)", ["every[: ddp.batch_sum(len(p)) // 2]"], id="a part of the batch"
        ),
        pytest.param(
            "def f(z):\n    sim = (z @ z.t()).fill_diagonal_(-1e9)\n    return F.cross_entropy(sim, (torch.arange(len(z)) + 1) % len(z))",
            "f(p)",
            ["(ddp.batch_rows(z) @ ddp.batch_rows(z.t(), dim=1)).fill_diagonal_(-1e9)", "(torch.arange(ddp.batch_sum(len(z))) + 1) % ddp.batch_sum(len(z))"],
            id="a diagonal that is filled, numbers of numbers",
        ),
        pytest.param("", "torch.norm(p - t)", ["torch.norm(ddp.batch_rows(p - t))"], id="a norm of all"),
        pytest.param("", "F.mse_loss(p, t) + torch.relu(1 - p.std(dim=0)).mean()", ["F.mse_loss(p, t) + torch.relu(1 - ddp.batch_rows(p).std(dim=0))"], id="a spread"),
        pytest.param(
            "def f(a, b):\n    return F.cross_entropy(a @ b.t(), torch.arange(len(a)), reduction='sum') / 12",
            "f(p, t)",
            ["torch.arange(ddp.batch_sum(len(a))), reduction='sum') / 12", "            loss.backward()"],
            id="a sum that each rank makes of all samples",
        ),
        pytest.param(
            "def f(a, b):\n    return F.cross_entropy(a @ b.t(), torch.arange(len(a)), reduction='sum')",
            "f(p, t) + F.mse_loss(p, t)",
            ["loss = f(p, t) + F.mse_loss(p, t)"],
            id="such a sum beside a mean",
        ),
        pytest.param(
            "def f(z):\n    return torch.pdist(z).mul(-2).exp().mean().log()",
            "f(p)",
            ["return torch.pdist(ddp.batch_rows(z)).mul(-2).exp().mean().log()"],
            id="the logarithm of a mean over all pairs",
        ),
        pytest.param(
            "def f(a, b):\n    return F.cross_entropy(torch.einsum('ik,jk->ij', [a, b]), torch.arange(len(a)))",
            "f(p, t)",
            ["[ddp.batch_rows(a), ddp.batch_rows(b)]"],
            id="operands in a list",
        ),
        pytest.param(
            "def f(z, y):\n    same = y.view(-1, 1).eq(y.view(1, -1)).float()\n    return (same * torch.cdist(z, z)).sum() / same.sum()",
            "f(p, (t[:, 0] > 0.5).long())",
            ["ddp.batch_rows(y.view(-1, 1)).eq(ddp.batch_rows(y.view(1, -1), dim=1))"],
            id="labels as a row",
        ),
        pytest.param(
            "def f(z):\n    sim = z @ z.t()\n    n = len(z)\n    return sim[~torch.eye(n, dtype=torch.bool)].view(n, -1).logsumexp(1).mean()",
            "f(p)",
            ["[~torch.eye(ddp.batch_sum(n), dtype=torch.bool)].view(ddp.batch_sum(n), -1)"],
            id="a view by the number of samples",
        ),
        pytest.param(
            "def f(z, y):\n    n = z.size(0)\n    apart = z.pow(2).sum(1, keepdim=True).expand(n, n)\n    apart = apart + apart.t()\n"
            "    apart.addmm_(z, z.t(), beta=1, alpha=-2)\n    same = y.expand(n, n).eq(y.expand(n, n).t())\n    far = []\n"
            "    for i in range(n):\n        far.append(apart[i][same[i]].max().unsqueeze(0))\n    return torch.cat(far).mean()",
            "f(p, (t[:, 0] > 0.5).long())",
            ["apart.addmm_(ddp.batch_rows(z), ddp.batch_rows(z.t(), dim=1), beta=1, alpha=-2)", "for i in range(ddp.batch_sum(n)):"],
            id="a turn for each sample",
        ),
        pytest.param(
            "def f(z):\n    z = z * 2\n    torch.relu_(z)\n    return (z @ z.t()).logsumexp(1).mean()",
            "f(p)",
            ["    torch.relu_(z)\n    return (ddp.batch_rows(z) @ ddp.batch_rows(z.t(), dim=1))"],
            id="a function that changes its argument",
        ),
        pytest.param(
            "def f(z, y):\n    apart = torch.cdist(z, z)\n    n = apart.size(0)\n    return (apart * y.expand(n, n)).mean()",
            "f(p, t[:, 0])",
            ["ddp.batch_rows(y).expand(n, n)"],
            id="as many as there are rows of all ranks",
        ),
        pytest.param(
            "def f(a, b):\n    views = torch.cat([a.unsqueeze(1), b.unsqueeze(1)], dim=1)\n    z = torch.cat(torch.unbind(views, dim=1), dim=0)\n"
            "    return F.cross_entropy(z @ z.t(), torch.arange(len(z)).roll(len(a)))",
            "f(p, t)",
            ["ddp.batch_rows(z, segments=2) @ ddp.batch_rows(z.t(), dim=1, segments=2)"],
            id="views on an axis of their own",
        ),
        pytest.param(
            "def f(a, b):\n    z = torch.stack([a, b], dim=1).flatten(0, 1)\n    return F.cross_entropy(z @ z.t(), torch.arange(len(z)))",
            "f(p, t)",
            ["ddp.batch_rows(z, each=2) @ ddp.batch_rows(z.t(), dim=1, each=2)"],
            id="the views of each sample side by side",
        ),
        pytest.param(
            "def f(a, b):\n    n = len(a)\n    near = F.cosine_similarity(a.repeat_interleave(n, 0), b.repeat(n, 1), dim=1)\n"
            "    return F.cross_entropy(near.view(n, n), torch.arange(n))",
            "f(p, t)",
            ["ddp.batch_rows(a).repeat_interleave(ddp.batch_sum(n), 0), ddp.batch_rows(b).repeat(ddp.batch_sum(n), 1)"],
            id="all pairs one below the other",
        ),
    ],
)
def test_losses_that_compare_samples(tmp_path: Path, defined: str, loss: str, expected: list[str]) -> None:
    outcome, after = applied(tmp_path, loss, defined)
    assert outcome.status is Status.CHANGED, outcome
    assert not codes(outcome) & {"DPM302", "DPM303", "DPM305"}
    assert not [part for part in expected if part not in after], after


@pytest.mark.parametrize(
    ("defined", "loss"),
    [
        pytest.param("def f(p):\n    near = p[p[:, 0] > 0]\n    return (near @ near.t()).pow(2).mean()", "f(p)", id="samples that are chosen"),
        pytest.param("def f(p):\n    return (F.dropout(p) @ p.t()).exp().mean()\n\n\ndef g(p):\n    return F.dropout(p @ p.t()).mean()", "g(p)", id="drawn for pairs"),
        pytest.param("", "(p * torch.rand(1)).mean() * (p @ p.t()).exp().mean()", id="beside a draw"),
        pytest.param("import elsewhere", "elsewhere.contrastive(p, t)", id="code that is not seen"),
        pytest.param("def f(p):\n    q = p * 2\n    q.sub_(q.flip(0))\n    return q.pow(2).mean()", "f(p)", id="changed in place"),
        pytest.param("def f(p):\n    q = p * 2\n    q -= q.flip(0)\n    return q.pow(2).mean()", "f(p)", id="an assignment that changes it"),
        pytest.param("head = nn.Linear(3, 2)", "(head(p - p.mean(0)) ** 2).mean()", id="a layer behind it"),
        pytest.param("", "F.mse_loss(model(x.softmax(0)), t)", id="the whole model behind it"),
        pytest.param(
            "mask = ~torch.eye(24, dtype=torch.bool)\n\n\ndef f(z):\n    n = len(z)\n    return (z @ z.t())[mask[:n, :n]].exp().mean()", "f(p)", id="a part of a table of pairs"
        ),
    ],
)
def test_comparisons_that_are_not_understood(tmp_path: Path, defined: str, loss: str) -> None:
    outcome, after = applied(tmp_path, loss, defined)
    assert "ddp.batch_rows" not in after
    assert outcome.status is Status.REFUSED or codes(outcome) & {"DPM303", "DPM305"}


@pytest.mark.parametrize(
    "loss",
    [
        pytest.param("F.mse_loss(p, t)", id="a mean"),
        pytest.param("F.mse_loss(p, t) + 0.1 * sum(w.pow(2).sum().sqrt() for w in model.parameters())", id="functions of parameters"),
        pytest.param("((p - t) / p.norm(dim=1, keepdim=True)).abs().mean()", id="functions of each sample"),
    ],
)
def test_nothing_to_put_together(tmp_path: Path, loss: str) -> None:
    outcome, after = applied(tmp_path, loss)
    assert outcome.status is Status.CHANGED, outcome
    assert "ddp.batch_" not in after


_DICE = "def dice(p, t):\n    return 1 - (2 * (p * t).sum() + 1) / ((p + t).sum() + 1)"


def test_an_evaluation_without_gradients_exchanges_nothing(tmp_path: Path) -> None:
    evaluated = "with torch.no_grad():\n            print(sum(dice(model(x).sigmoid(), t).item() for x, t in held_out))"
    outcome, after = applied(tmp_path, "dice(p, t)", _DICE, evaluated)
    assert outcome.status is Status.CHANGED, outcome
    assert "ddp.batch_sum(2 * (p * t).sum())" in after


_NET = """
class Net(nn.Linear):
    def loss(self, p, t):
        near = F.mse_loss(p, t, reduction="sum")
        return near + torch.sum(p.exp() - 1 - p), near
"""


def test_a_total_of_a_loss_that_is_shown_to_be_a_sum(tmp_path: Path) -> None:
    """It is added up over the ranks as the loss is: their mean would be that of one rank's part."""
    text = PROGRAM.format(loss="model.loss(p, t)[0]", defined=_NET, evaluated="print(epoch, total)").replace("nn.Linear(4, 3)", "Net(4, 3)")
    text = text.replace("        for x, t in loader:", "        total = 0.0\n        for x, t in loader:")
    path = tmp_path / "train.py"
    path.write_text(text.replace("optimizer.step()", "optimizer.step()\n            total += loss.item()"))
    (outcome,) = engine.apply([path], Settings(), engine.Writing(write=False))
    assert outcome.status is Status.CHANGED, outcome
    after = str(outcome.files[-1].after)
    assert "ddp.sum_loss(loss).backward()" in after
    assert "total = ddp.sum_all(total)" in after


_TOLD = "for x, t in held_out:\n            print(dice(model(x).sigmoid(), t).item())"
_ADDED = "total = 0.0\n        for x, t in held_out:\n            total += dice(model(x).sigmoid(), t).item()\n        print(total)"


@pytest.mark.parametrize(
    ("defined", "evaluated", "over"),
    [
        pytest.param(_DICE, _TOLD, "held_out", id="a function of sums, on whole batches of every rank"),
        pytest.param(_DICE, _ADDED, "ddp.shard(held_out)", id="a function of sums, in a share of the batches"),
        pytest.param("def dice(p, t):\n    return F.cross_entropy(p, t[:, 0].long(), ignore_index=0)", _ADDED, "ddp.shard(held_out)", id="a mean over valid targets"),
        pytest.param("def dice(p, t):\n    return F.mse_loss(p, t) + 0.1 * p.pow(2).sum()", _TOLD, "held_out", id="a term that is a sum"),
    ],
)
def test_an_evaluation_with_gradients_goes_without(tmp_path: Path, defined: str, evaluated: str, over: str) -> None:
    """A sum would count the samples by the ranks, and what a part of the ranks computes would wait for the others."""
    outcome, after = applied(tmp_path, "dice(p, t)", defined, evaluated)
    assert outcome.status is Status.CHANGED, outcome
    assert f"        with torch.no_grad():\n            for x, t in {over}:\n" in after


@pytest.mark.parametrize(
    "evaluated",
    [
        pytest.param("print(sum(dice(model(x).sigmoid(), t).item() for x, t in held_out))", id="no statement of its own"),
        pytest.param(
            "for x, t in held_out:\n            x.requires_grad_()\n            made = dice(model(x).sigmoid(), t)\n"
            "            print(made.item(), torch.autograd.grad(made, x)[0].norm())",
            id="it takes gradients",
        ),
    ],
)
def test_an_evaluation_that_cannot_go_without(tmp_path: Path, evaluated: str) -> None:
    outcome, after = applied(tmp_path, "dice(p, t)", _DICE, evaluated)
    assert "ddp.batch_sum" not in after
    assert outcome.status is Status.REFUSED or "DPM305" in codes(outcome)


def test_a_mean_that_meets_the_samples_again(tmp_path: Path) -> None:
    """What has a gradient has that of a rank's part alone, so that the samples have to be those of all ranks as well."""
    outcome, after = applied(tmp_path, "(p - p.mean()).pow(2).mean() + ((t - t.mean()) * p).mean()")
    assert outcome.status is Status.CHANGED, outcome
    assert "(ddp.batch_rows(p) - ddp.batch_mean(p.mean())).pow(2).mean() + ((t - ddp.batch_mean(t.mean())) * p).mean()" in after


def test_the_reason_is_what_is_left(tmp_path: Path) -> None:
    """Where the losses are right and something else is not, that is said."""
    outcome, _ = applied(tmp_path, "(t * (p - t).abs()).sum() / max(t.sum(), torch.tensor(1.0 * epoch)) if unheard(t) else dice(p, t)", _DICE)
    assert outcome.status is Status.REFUSED, outcome


@pytest.mark.parametrize(
    "added",
    [
        pytest.param("for c in y.unique():\n        loss = loss + F.cross_entropy(p[y == c], y[y == c], ignore_index=0)", id="for each class that is there"),
        pytest.param("loss = loss + (p[y > 0].mean() if (y > 0).any() else 0)", id="if there are any"),
        pytest.param("if (y > 0).any():\n        loss = loss + 1 / p.sum()", id="a function of a sum, if there are any"),
    ],
)
def test_what_only_some_ranks_come_to(tmp_path: Path, added: str) -> None:
    """The exchange would wait for ranks that have no such class."""
    defined = f"def apart(p, t):\n    y = t[:, 0].round().long()\n    loss = F.cross_entropy(p, y)\n    {added}\n    return loss"
    outcome, after = applied(tmp_path, "apart(p, t)", defined)
    assert outcome.status is Status.REFUSED or not any(f"ddp.{name}(" in after for name in OF_GRADIENTS), outcome


_OTHERWISE = """
import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--near", action="store_true")
args = parser.parse_args()


def f(p, t):
    if args.near:
        near = p[p[:, 0] > 0]
        return (p @ t.t()).exp().mean() * (near @ near.t()).pow(2).mean()
    return F.cross_entropy(p @ t.t(), torch.arange(len(p)))
"""


def test_what_is_right_by_default_alone(tmp_path: Path) -> None:
    """Where it is not established for other values, their losses stay as they were, which is told."""
    outcome, after = applied(tmp_path, "f(p, t)", _OTHERWISE)
    assert outcome.status is Status.CHANGED, outcome
    assert any("defaults of the options" in n for n in outcome.notes)
    assert "F.cross_entropy(ddp.batch_rows(p) @ ddp.batch_rows(t.t(), dim=1), torch.arange(ddp.batch_sum(len(p))))" in after
    assert "(p @ t.t()).exp().mean() * " in after


def test_what_makes_no_loss_right_is_not_put_there_unproven_either(tmp_path: Path) -> None:
    """With ``--unproven`` a doubt is no refusal, and shows all the same that the numbers of the global batch do not help."""
    (case,) = (c for c in cases() if c.name == "buffers_of_the_batch")
    path = tmp_path / "train.py"
    path.write_text(case.before)
    (outcome,) = engine.apply([path], case.settings, engine.Writing(write=False))
    assert case.settings.unproven
    assert any(n.startswith("Not established: ") for n in outcome.notes)
    assert outcome.files[-1].after == (case.path / "after.py").read_bytes().decode()


def test_the_reason_is_the_programs_where_its_edits_cannot_stand() -> None:
    """The samples of all ranks are compared by their places, in a loop that leaves small batches out."""
    path = Path(__file__).parent.parent / "fixtures" / "buffers_of_the_batch" / "before.py"
    (outcome,) = engine.apply([path], Settings(), engine.Writing(write=False))
    assert outcome.status is Status.REFUSED
    assert "before.py:63: a rank's loss may be no mean over its samples: per rank: places in the batch, line 40" in outcome.reason


_PAIRS = """
SIZE = 12

def apart(p, t):
    both = torch.cat([p, t], dim=0)
    near = torch.exp(torch.mm(both, both.t()))
    others = near.masked_select(~torch.eye(2 * SIZE).bool()).view(2 * SIZE, -1)
    own = torch.exp((p * t).sum(dim=-1))
    return (-torch.log(torch.cat([own, own]) / others.sum(dim=-1))).mean()
"""


def test_sizes_beside_samples_that_are_put_together_stay_those_of_the_global_batch(tmp_path: Path) -> None:
    """They would be those of a rank's part if its samples met each other alone; and a mean that all ranks have is none over weights."""
    path = tmp_path / "train.py"
    path.write_text(PROGRAM.format(loss="apart(p, t)", defined=_PAIRS, evaluated="").replace("batch_size=12, shuffle=True", "batch_size=SIZE, shuffle=True, drop_last=True"))
    (outcome,) = engine.apply([path], Settings(), engine.Writing(write=False))
    assert outcome.status is Status.CHANGED
    text = str(outcome.files[-1].after)
    assert "near.masked_select(~torch.eye(2 * SIZE).bool()).view(2 * SIZE, -1)" in text
    assert "torch.mm(ddp.batch_rows(both, segments=2), ddp.batch_rows(both.t(), dim=1, segments=2))" in text
    assert "weighted_mean" not in text and "ddp.batch_rows(torch.cat([own, own]), segments=2)" in text


_SUMMED = """
import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--size", type=int, default=12)
args = parser.parse_args()


class Apart(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.size = size
        self.summed = nn.CrossEntropyLoss(reduction="sum")
        mask = torch.ones((2 * size, 2 * size), dtype=bool).fill_diagonal_(0)
        for i in range(size):
            mask[i, size + i] = mask[size + i, i] = 0
        self.mask = mask

    def forward(self, p, t):
        both = torch.cat([p, t], dim=0)
        near = F.cosine_similarity(both.unsqueeze(1), both.unsqueeze(0), dim=2)
        own = torch.cat((torch.diag(near, self.size), torch.diag(near, -self.size)), dim=0).reshape(2 * self.size, 1)
        others = near[self.mask].reshape(2 * self.size, -1)
        return self.summed(torch.cat((own, others), dim=1), torch.zeros(2 * self.size).long()) / (2 * self.size)

apart = Apart(args.size)
"""


def test_a_loss_that_is_told_the_size_of_the_batch_keeps_that_of_the_global_one(tmp_path: Path) -> None:
    """Its constructor as well; and a sum over the samples of all ranks is that of each rank, and no part of it."""
    path = tmp_path / "train.py"
    text = PROGRAM.format(loss="apart(p, t)", defined=_SUMMED, evaluated="").replace("batch_size=12, shuffle=True", "batch_size=args.size, shuffle=True, drop_last=True")
    path.write_text(text)
    (outcome,) = engine.apply([path], Settings(), engine.Writing(write=False))
    assert outcome.status is Status.CHANGED, outcome
    after = str(outcome.files[-1].after)
    assert "F.cosine_similarity(ddp.batch_rows(both.unsqueeze(1), segments=2), ddp.batch_rows(both.unsqueeze(0), dim=1, segments=2), dim=2)" in after
    assert "apart = Apart(args.size)" in after
    assert "sum_loss" not in after and "batch_sum" not in after


_MASKED = """
def masked(error, target):
    valid = (target > 0.5).float()
    return (error * valid).sum() / (valid.sum() + 1e-6)


def overlap(p, t):
    both = (p * t).sum()
    return 1 - (2 * both + 1e-6) / (p.sum() + t.sum() + 1e-6)


def spread(p, t):
    parts = []
    for mask in (t[:, 0] > 0.5, t[:, 0] <= 0.5):
        if not mask.any():
            continue
        parts.append(p[mask].mean(0))
    return (parts[0] - parts[-1]).pow(2).sum()
"""


def test_the_reason_of_a_refusal_is_what_cannot_be_mended(tmp_path: Path) -> None:
    """Not the sums of the batch beside it, which are put together: those were named, and taken for comparisons of samples."""
    loss = "masked(F.smooth_l1_loss(p, t, reduction='none'), t) + overlap(p, t) + spread(p, t)"
    outcome, _ = applied(tmp_path, loss, _MASKED)
    assert outcome.status is Status.REFUSED
    (line,) = [n for n, text in enumerate((tmp_path / "train.py").read_text().splitlines(), 1) if "mask.any()" in text]
    assert f"per rank: not mask.any(), line {line}" in outcome.reason
    assert not any(f.severity is Severity.BLOCKER for file in outcome.files for f in file.findings)


@pytest.mark.parametrize("loss", ["masked((p - t).abs(), t)", "overlap(p, t)", "masked(F.smooth_l1_loss(p, t, reduction='none'), t) + overlap(p, t)"])
def test_without_it_the_rest_is_mended(tmp_path: Path, loss: str) -> None:
    outcome, _ = applied(tmp_path, loss, _MASKED)
    assert outcome.status is Status.CHANGED, outcome.reason


def test_a_comparison_of_samples_stays_the_reason_of_a_refusal(tmp_path: Path) -> None:
    outcome, _ = applied(tmp_path, "overlap(p, t) + spread(p, t) + (p[1:] - p[:-1]).abs().max()", _MASKED)
    assert outcome.status is Status.REFUSED and (outcome.reason or "DPM303" in codes(outcome))


@pytest.mark.parametrize("part", ["kept[mask] = ", "kept[mask, :] = "])
def test_a_tensor_in_which_a_part_is_stored_is_not_put_together(tmp_path: Path, part: str) -> None:
    """What is stored in another tensor is lost: ``ddp.batch_rows(kept)[mask] = x[order][mask]``."""
    defined = f"def f(model, x, t):\n    order = t[:, 0].argsort()\n    kept = torch.zeros_like(x)\n    mask = t[:, 1] > 0.5\n    {part}x[order][mask]\n    return F.mse_loss(model(kept), t)"
    outcome, after = applied(tmp_path, "f(model, x, t)", defined)
    assert outcome.status is Status.REFUSED, after
