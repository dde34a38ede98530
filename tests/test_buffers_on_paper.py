"""Buffers that are given something of a rank's own part of the batch: the execution of the result shows it, by whichever name they are written."""

from __future__ import annotations

from pathlib import Path
from textwrap import indent

import pytest

from dpmigrate import engine
from dpmigrate.model import Finding, Outcome, Severity, Status
from dpmigrate.settings import Settings
from tests.rules.program import program

_NET = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 2)
        self.register_buffer("kept", torch.zeros(3, 2))
        self.register_buffer("scale", torch.ones(2))
        {made}

    def forward(self, x):
        z = self.fc(x)
        {forward}
        return z * self.scale
"""
_STEP = """\
optimizer.zero_grad()
loss = F.cross_entropy(model(x), y)
loss.backward()
optimizer.step()
with torch.no_grad():
"""


def applied(folder: Path, forward: str = "pass", step: str = "pass", made: str = "pass", model: str = "model = Net()") -> Outcome:
    net = _NET.format(made=made, forward=indent(f"with torch.no_grad():\n{indent(forward, '    ')}", " " * 8).strip())
    path = folder / "train.py"
    path.write_text(program(net=net, step=_STEP + indent(step, "    "), model=model, end="torch.save(model.state_dict(), 'model.pt')"))
    (outcome,) = engine.apply([path], Settings(), engine.Writing(write=False))
    return outcome


def told(outcome: Outcome) -> list[Finding]:
    return [f for file in outcome.files for f in file.findings if f.code == "DPM118"]


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param("part = self.kept[0]\npart += z.mean(0)", id="a row"),
        pytest.param("kept = self.kept\nkept[1] = z.mean(0)", id="an item"),
        pytest.param("kept = self.kept\nkept.mul_(0.9).add_(z.mean(0), alpha=0.1)", id="methods in place"),
        pytest.param("rows = self.kept[:2]\nrows.copy_(z[:2])", id="a slice"),
        pytest.param("kept = self.kept.data.view(-1)\nkept[:2] += z.mean(0)", id="a view of its data"),
        pytest.param("a, b, c = self.kept\nb.add_(z.mean(0))", id="unpacked"),
        pytest.param("for row in self.kept:\n    row.add_(z.mean(0))", id="a loop over its rows"),
        pytest.param("parts = [self.kept[0], self.kept[1]]\nparts[0] += z.mean(0)", id="in a list"),
        pytest.param("self.kept[0][z.sum(1).argmax() % 2] = 1.0", id="a place that goes by the samples"),
        pytest.param("self.also = self.kept\nself.also += z.mean(0)", id="another attribute"),
        pytest.param("kept = self.kept.numpy()\nkept[0] = z.mean(0).numpy()", id="an array"),
        pytest.param("torch.add(self.kept, z.mean(0), out=self.kept)", id="an argument named out"),
        pytest.param("kept = self.get_buffer('kept')\nkept += z.mean(0)", id="by its name"),
        pytest.param("kept = self._buffers['kept']\nkept += z.mean(0)", id="in the dictionary of buffers"),
        pytest.param("if z.mean() > 0:\n    kept = self.kept\n    kept += 1", id="where the samples say so"),
        pytest.param("kept = self.kept\nkept += len(z)", id="a number of samples"),
    ],
)
def test_another_name_in_forward_is_seen(lines: str, tmp_path: Path) -> None:
    outcome = applied(tmp_path, lines)
    assert outcome.status is Status.REFUSED
    (finding,) = told(outcome)
    assert finding.severity is Severity.BLOCKER
    assert finding.message == "the buffer kept would hold rank 0's part of each batch"
    assert (tmp_path / "train.py").read_text().splitlines()[finding.span.line - 1].strip() in [line.strip() for line in lines.splitlines()]


@pytest.mark.parametrize(
    ("lines", "made"),
    [
        pytest.param("model.kept += x.mean(0)[:2]", "pass", id="of the model"),
        pytest.param("model.kept[0] = x.mean(0)[:2]", "pass", id="an item"),
        pytest.param("kept = model.kept\nkept.mul_(0.9).add_(x.mean(0)[:2])", "pass", id="a variable"),
        pytest.param("for kept in model.buffers():\n    kept.add_(x.mean(0)[:2])", "pass", id="all of them"),
        pytest.param("named = {n: b for n, b in model.named_buffers()}\nfor n in named:\n    named[n].add_(x.mean(0)[:2])", "pass", id="all by their names"),
        pytest.param("state = model.state_dict()\nstate['kept'].add_(x.mean(0)[:2])", "pass", id="an entry of the state"),
        pytest.param("nn.init.constant_(model.kept, x.mean().item())", "pass", id="filled by a function of nn.init"),
        pytest.param("def put(kept, new):\n    kept.copy_(new)\nput(model.kept, x.mean(0)[:2])", "pass", id="in a function"),
        pytest.param("kept = model.more\nkept += x.mean(0)[:2]", "self.more = nn.Buffer(torch.zeros(2))", id="an nn.Buffer"),
        pytest.param("mean = model.norm.running_mean\nmean.copy_(x.mean(0)[:2])", "self.norm = nn.BatchNorm1d(2)", id="of a layer of torch"),
    ],
)
def test_writes_of_the_training_itself_are_seen(lines: str, made: str, tmp_path: Path) -> None:
    outcome = applied(tmp_path, step=lines, made=made)
    assert outcome.status is Status.REFUSED
    assert {f.severity for f in told(outcome)} == {Severity.BLOCKER}


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({"forward": "part = self.kept[0]\npart += 1"}, id="steps are counted"),
        pytest.param({"forward": "kept = self.kept.clone()\nkept[0] = z.mean(0)"}, id="a copy"),
        pytest.param({"forward": "kept = self.kept + 1\nkept += z.mean(0)"}, id="made of it"),
        pytest.param({"forward": "kept = self.kept\nkept.mul_(0.9)"}, id="the same on all ranks"),
        pytest.param({"forward": "part = z.detach().clone()\npart += self.kept[0]"}, id="only read"),
        pytest.param({"forward": "kept = self.kept\nkept = kept + z.mean(0)"}, id="a variable bound anew"),
        pytest.param({"forward": "kept = self.kept\nkept += self.fc.bias"}, id="made of the weights"),
        pytest.param({"step": "kept = model.kept.clone()\nkept.add_(x.mean(0)[:2])"}, id="a copy in the training"),
        pytest.param({"step": "kept = model.kept\nkept.fill_(float(epoch))"}, id="the epoch"),
        pytest.param({"made": "self.norm = nn.BatchNorm1d(2)", "step": "print(model.norm.running_mean.mean())"}, id="a BatchNorm"),
    ],
)
def test_what_all_ranks_have_alike_is_migrated(parts: dict[str, str], tmp_path: Path) -> None:
    outcome = applied(tmp_path, **parts)
    assert outcome.status is Status.CHANGED, outcome
    assert not told(outcome)


def test_what_an_evaluation_alone_reads_is_told(tmp_path: Path) -> None:
    lines = "if self.training:\n    kept = self.kept\n    kept.mul_(0.9)\n    kept.add_(z.mean(0))\nelse:\n    z = z - self.kept[0]"
    outcome = applied(tmp_path, lines)
    assert outcome.status is Status.CHANGED
    assert [(f.severity, f.message) for f in told(outcome)] == [
        (Severity.NOTE, "the buffer kept would hold rank 0's part of each batch, as the running statistics of a BatchNorm do")
    ]


def test_under_data_parallel_forward_saw_the_first_gpu_alone(tmp_path: Path) -> None:
    parallel = "model = nn.DataParallel(Net()).cuda()"
    outcome = applied(tmp_path, "kept = self.kept\nkept += z.mean(0)", model=parallel)
    assert outcome.status is Status.CHANGED
    assert [f.severity for f in told(outcome)] == [Severity.NOTE]


def test_under_data_parallel_the_training_saw_whole_batches(tmp_path: Path) -> None:
    parallel = "model = nn.DataParallel(Net()).cuda()"
    outcome = applied(tmp_path, step="kept = model.module.kept\nkept += x.mean(0)[:2]", model=parallel)
    assert outcome.status is Status.REFUSED
    assert [f.severity for f in told(outcome)] == [Severity.BLOCKER]
