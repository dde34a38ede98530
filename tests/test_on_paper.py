"""What apply tells of a result that was executed on paper."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from textwrap import dedent

import pytest

from dpmigrate import engine, migration
from dpmigrate.judge import Judgement, totals, wrapped
from dpmigrate.judge.trial import Fault
from dpmigrate.model import Outcome, Status
from dpmigrate.settings import Settings
from tests.pipeline import script

#: a training of ``model`` on ``loader``, in a function
TRAINED = """\
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        for x, y in loader:
            optimizer.zero_grad()
            loss = {loss}
            loss.backward()
            optimizer.step()
"""
SCRIPT = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
{imported}

def main():
    data = TensorDataset(torch.randn(64, 4), torch.randn(64, 2))
    loader = DataLoader(data, batch_size=16, shuffle=True)
    model = {model}
""" + TRAINED + """

if __name__ == "__main__":
    main()
"""
SUMMED = "sum(t.mean() for t in [(model(x) - y).pow(2), (model(x) - y).abs()])"


def migrated(folder: Path, *, imported: str = "", model: str = "nn.Linear(4, 2)", loss: str,
             annotate: bool = False) -> Outcome:  # fmt: skip
    path = folder / "train.py"
    path.write_text(SCRIPT.format(imported=imported, model=model, loss=loss))
    how = engine.Writing(write=False, annotate=annotate)
    (outcome,) = engine.apply([path], Settings(unproven=True), how)
    assert outcome.status is Status.CHANGED, outcome
    return outcome


def codes(outcome: Outcome) -> set[str]:
    return {f.code for file in outcome.files for f in file.findings}


@pytest.mark.parametrize(
    ("loss", "told"),
    [
        (SUMMED, False),
        (f"{SUMMED} ** 2", False),  # of a mean over all ranks
        (f"unseen({SUMMED}) + {SUMMED} ** 2", True),  # of what is not seen beside one of all ranks
        (f"unseen({SUMMED})", True),
    ],
)
@pytest.mark.parametrize("annotate", [False, True])
def test_a_loss_that_is_a_mean_needs_no_look(
    tmp_path: Path, loss: str, told: bool, annotate: bool
) -> None:
    imported = "from elsewhere import unseen\n" if "unseen" in loss else ""
    outcome = migrated(tmp_path, imported=imported, loss=loss, annotate=annotate)
    assert ("DPM305" in codes(outcome)) is told
    (new,) = [f.after for f in outcome.files if f.after is not None]
    assert ("DPM305" in new) is (told and annotate)


def test_a_model_whose_code_is_not_seen_is_named(tmp_path: Path) -> None:
    imported = "from elsewhere import Net\n"
    outcome = migrated(tmp_path, imported=imported, model="Net(4, 2)", loss=SUMMED)
    said = "it is taken for a model that treats each sample of a batch by itself"
    assert [n for n in outcome.notes if said in n] == [
        f"The code of elsewhere.Net is not seen: {said}."
    ]
    assert "DPM305" in codes(outcome)  # it may mix the samples
    seen = migrated(tmp_path, loss=SUMMED)
    assert not any(said in n for n in seen.notes)


@pytest.mark.parametrize(
    ("loader", "call", "told"),
    [
        ("shuffle=True", "model(x).squeeze()", True),
        ("shuffle=True, drop_last=True", "model(x).squeeze()", False),
        ("shuffle=True", "model(x).squeeze(1)", False),
        ("shuffle=True", "model(x)", False),
        ("shuffle=True", "torch.squeeze(model(x))", True),
    ],
)
def test_a_squeeze_of_every_axis_is_told(
    tmp_path: Path, loader: str, call: str, told: bool
) -> None:
    text = SCRIPT.replace("shuffle=True", loader)
    path = tmp_path / "train.py"
    loss = f"(({call}) ** 2).mean()"
    path.write_text(text.format(imported="", model="nn.Linear(4, 2)", loss=loss))
    (outcome,) = engine.apply([path], Settings(), engine.Writing(write=False))
    assert outcome.status is Status.CHANGED
    found = [n for n in outcome.notes if "the axis of the batch" in n]
    assert [n.partition(" also ")[0] for n in found] == [call] * told


TOTAL = """\
            optimizer.step()
            {add}
        print(total / 64)
"""


@pytest.mark.parametrize(
    ("add", "left", "noted"),
    [
        ("total += [loss.item() * x.size(0), loss.item()][epoch % 2]", True, False),
        ("total += [loss.item() * x.size(0)][0]", False, False),
        ("total += loss.item() * x.size(0)", False, False),
        ("kept.update(n=kept['n'] + loss.item() * x.size(0))", False, True),
    ],
)
def test_a_total_that_is_rank_0s_own_is_told_once(
    tmp_path: Path, add: str, left: bool, noted: bool
) -> None:
    text = SCRIPT.replace("            optimizer.step()\n", TOTAL.replace("{add}", add))
    text = text.replace("        for x, y in loader:", "        total, kept = 0.0, dict(n=0.0)\n        for x, y in loader:")
    text = text.replace("print(total / 64)", "print((total + kept['n']) / 64)")
    path = tmp_path / "train.py"
    path.write_text(text.format(imported="", model="nn.Linear(4, 2)", loss="(model(x) - y).pow(2).mean()"))
    (outcome,) = engine.apply([path], Settings(), engine.Writing(write=False))
    assert outcome.status is Status.CHANGED
    left_over = [f for file in outcome.files for f in file.findings if f.code == "DPM602" and not f.edits]
    assert bool(left_over) is left
    assert any("rank 0's own batches" in n for n in outcome.notes) is noted


UNSEEN = "from elsewhere import unseen\n"


@pytest.mark.parametrize("unproven", [False, True])
def test_what_is_not_established_is_refused_or_told(tmp_path: Path, unproven: bool) -> None:
    path = tmp_path / "train.py"
    path.write_text(SCRIPT.format(imported=UNSEEN, model="nn.Linear(4, 2)", loss="unseen(model(x), y)"))
    before = path.read_bytes()
    (outcome,) = engine.apply([path], Settings(unproven=unproven), engine.Writing(write=False))
    assert path.read_bytes() == before
    if not unproven:
        assert outcome.status is Status.REFUSED
        assert ": what elsewhere.unseen gives is not known, " in outcome.reason
        assert "(--unproven)" in outcome.reason
    else:
        assert outcome.status is Status.CHANGED
        (told,) = [n for n in outcome.notes if n.startswith("Not established")]
        assert ": what elsewhere.unseen gives is not known, " in told


TWO = """\
class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.used, self.other = nn.Linear(4, 2), nn.Linear(4, 2)

    def forward(self, x):
        return self.used(x), self.other(x)
"""


@pytest.mark.parametrize(
    ("lines", "finds"),
    [
        ("for p in model.other.parameters():\n        p.requires_grad = False", False),
        ("if args.first:\n        for p in model.other.parameters():\n            p.requires_grad = False", True),
        ("for n, p in model.other.named_parameters():\n        if n in args.names:\n            p.requires_grad = False", True),
    ],
)
def test_layers_without_a_loss_that_are_frozen_on_one_way_alone(tmp_path: Path, lines: str, finds: bool) -> None:
    """Where the option leaves them, DDP would wait for their gradients."""
    path = tmp_path / "train.py"
    text = SCRIPT.format(imported=f"{OPTIONS.format(False, 'bool')}{TWO}", model="Two()", loss="nn.functional.mse_loss(model(x)[0], y)")
    path.write_text(text.replace("    optimizer =", f"    {lines}\n    optimizer ="))
    (outcome,) = engine.apply([path], Settings(unproven=True), engine.Writing(write=False))
    assert outcome.status is Status.CHANGED
    assert ("find_unused=True" in str(outcome.files[-1].after)) is finds


PAIR = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

maker, critic = nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))
loader = DataLoader(TensorDataset(torch.randn(64, 4)), batch_size=16, shuffle=True)
of_maker = torch.optim.SGD(maker.parameters(), lr=0.1)
of_critic = torch.optim.SGD(critic.parameters(), lr=0.1)
for epoch in range(2):
    for (x,) in loader:
        for p in critic{part}.parameters():
            p.requires_grad_(True)
        of_critic.zero_grad()
        critic(x).mean().backward()
        of_critic.step()
        for p in critic{part}.parameters():
            p.requires_grad_(False)
        of_maker.zero_grad()
        critic(maker(x)).mean().backward()
        of_maker.step()
"""


@pytest.mark.parametrize(("part", "whole"), [("", True), ("[0]", False)])
def test_a_critic_that_is_frozen_while_another_model_learns(tmp_path: Path, part: str, whole: bool) -> None:
    """Frozen as a whole it has nothing that DDP would wait for; a part of it would be waited for."""
    path = tmp_path / "train.py"
    path.write_text(PAIR.replace("{part}", part))
    (outcome,) = engine.apply([path], Settings(unproven=True), engine.Writing(write=False))
    assert (outcome.status is Status.CHANGED and "find_unused" not in str(outcome.files[-1].after)) is whole


OPTIONS = "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--first', default={}, type={})\nargs = parser.parse_args()\n"


@pytest.mark.parametrize(
    ("default", "kind", "passes"),
    [("True", "bool", True), ("False", "bool", False), ("'1'", "str", True), ("'1'", "int", False), ("None", "bool", False)],
)
def test_what_is_established_for_the_defaults_of_options(tmp_path: Path, default: str, kind: str, passes: bool) -> None:
    """A way that another option would take is told, not refused."""
    path = tmp_path / "train.py"
    loss = "nn.functional.mse_loss(model(x), y) if args.first else mystery.loss(model(x), y)"
    path.write_text(SCRIPT.format(imported=f"import mystery\n{OPTIONS.format(default, kind)}", model="nn.Linear(4, 2)", loss=loss))
    (outcome,) = engine.apply([path], Settings(), engine.Writing(write=False))
    assert outcome.status is (Status.CHANGED if passes else Status.REFUSED)
    told = [n for n in outcome.notes if n.startswith("Shown to be right for the defaults of the options")]
    assert bool(told) is passes and all("mystery.loss" in n for n in told)


_NAMED = """\
import mystery
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--kind", default="plain")
parser.add_argument("--weight", default=-1.0, type=float)
args = parser.parse_args()
"""


def _with_options(folder: Path, loss: str, *, annotate: bool = False) -> Outcome:
    path = folder / "train.py"
    path.write_text(SCRIPT.format(imported=_NAMED, model="nn.Linear(4, 2)", loss=loss))
    (outcome,) = engine.apply([path], Settings(), engine.Writing(write=False, annotate=annotate))
    return outcome


@pytest.mark.parametrize(
    ("other", "followed"),
    [
        pytest.param("nn.functional.l1_loss(model(x), y)", True, id="a mean"),
        pytest.param("mystery.near(model(x))", False, id="not followed either"),
    ],
)
def test_options_that_are_texts_have_their_defaults_first(tmp_path: Path, other: str, followed: bool) -> None:
    """What other numbers lead to is judged where other names lead to what is not followed."""
    found = _with_options(tmp_path, f"mystery.loss(model(x), y) if args.kind == 'odd' else {other} if args.weight > 0 else nn.functional.mse_loss(model(x), y)")
    assert found.status is Status.CHANGED, found
    (told,) = [n for n in found.notes if n.startswith("Shown to be right for the defaults of the options")]
    assert ("options that are texts; with others" in told) is followed
    assert ("mystery.loss" if followed else "mystery.near") in told


@pytest.mark.parametrize(
    ("other", "written"),
    [
        pytest.param("torch.topk((model(x) - y).abs().mean(1), 4).values.mean()", "torch.topk(ddp.batch_rows((model(x) - y).abs().mean(1)), 4)", id="no mean by itself"),
        pytest.param("(model(x) - y).abs().mean(1).sort().values[:4].mean()", "ddp.batch_rows((model(x) - y).abs().mean(1)).sort().values[:4]", id="one that may be a mean"),
    ],
)
def test_what_other_numbers_lead_to_is_mended(tmp_path: Path, other: str, written: str) -> None:
    found = _with_options(tmp_path, f"mystery.loss(model(x), y) if args.kind == 'odd' else {other} if args.weight > 0 else nn.functional.mse_loss(model(x), y)")
    assert found.status is Status.CHANGED, found
    assert written in str(found.files[-1].after)
    assert any("options that are texts; with others" in n for n in found.notes) and not any(n.startswith("With other options") for n in found.notes)


def test_defaults_with_which_nothing_is_trained_say_nothing(tmp_path: Path) -> None:
    """An option without a default that a test asks for has to be given: what is told is what stands against the program then."""
    asked = _NAMED.replace("args = parser", 'parser.add_argument("--net")\nargs = parser') + 'assert args.net in ("small", "large")\n'
    path = tmp_path / "train.py"
    path.write_text(SCRIPT.format(imported=asked, model="nn.Linear(4, 2)", loss="mystery.loss(model(x), y)"))
    (found,) = engine.apply([path], Settings(), engine.Writing(write=False))
    assert found.status is Status.REFUSED
    assert "mystery.loss" in found.reason
    assert "no loss is seen" not in found.reason


_SOUNDS = """
import torch
from torch import nn
from torch.utils.data import DataLoader
from sounds import Sounds


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(1, 4, 3, padding=1)

    def forward(self, x):
        if {test}:
            x = x.unsqueeze({axis})
        return self.conv(x)


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for x in DataLoader(Sounds(), batch_size=12, shuffle=True):
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("test", "axis", "told"),
    [
        pytest.param("len(x.shape) != 3", 0, True, id="one in front"),
        pytest.param("x.dim() == 2", 1, False, id="one behind the samples"),
    ],
)
def test_an_axis_in_front_of_a_batch_is_told(tmp_path: Path, test: str, axis: int, told: bool) -> None:
    path = tmp_path / "train.py"
    path.write_text(_SOUNDS.format(test=test, axis=axis))
    (found,) = engine.apply([path], Settings(), engine.Writing(write=False))
    assert found.status is Status.CHANGED, found
    assert any(f"Where {test} is asked" in n for n in found.notes) is told


_WRONG = Fault("train.py:3", wrapped.NAME, "never wrapped", established=True)
_DOUBTED = Fault("train.py:3", wrapped.NAME, "may not be wrapped", established=False)


@pytest.mark.parametrize(
    ("faults", "trains", "asked"),
    [
        pytest.param((), True, ["texts"], id="right for more than the defaults"),
        pytest.param((_WRONG,), True, ["texts"], id="known to be wrong for others"),
        pytest.param((_DOUBTED,), True, ["texts", "all"], id="not known"),
        pytest.param((), False, ["texts", "all"], id="nothing is trained"),
    ],
)
def test_how_far_the_options_have_their_defaults(faults: tuple[Fault, ...], trains: bool, asked: list[str]) -> None:
    text = SCRIPT.format(imported=_NAMED, model="nn.Linear(4, 2)", loss="model(x).mean()")
    found = migration._narrowed(script(text), lambda which: Judgement(faults, (), (), True, trains=trains, by_default=which))
    assert [j.by_default for j in found] == asked
    without = text.replace("""parser.add_argument("--kind", default="plain")""", "")
    assert len(migration._narrowed(script(without), lambda which: Judgement((), (), (), True, trains=True))) == 1
    assert migration._narrowed(script(without.replace("parser.add", "parser.find")), lambda which: Judgement((), (), (), True)) == []


@pytest.mark.parametrize("annotate", [False, True])
def test_what_other_options_need_is_kept(tmp_path: Path, annotate: bool) -> None:
    """The loss of another option is a mean over valid targets: its weights are those of all ranks, though the default has none."""
    other = "nn.functional.cross_entropy(model(x), y[:, 0].long(), ignore_index=3)"
    loss = f"mystery.loss(model(x), y) if args.weight > 9 else {other} if args.weight > 0 else nn.functional.mse_loss(model(x), y)"
    found = _with_options(tmp_path, loss, annotate=annotate)
    assert found.status is Status.CHANGED, found
    assert "ddp.weighted_mean(nn.functional.cross_entropy(" in str(found.files[-1].after)


def test_what_may_be_wrong_with_other_options_is_told(tmp_path: Path) -> None:
    """A loss that compares samples, which another option chooses beside one that is not followed."""
    other = "mystery.scale(x) * (torch.pdist(model(x)) - mystery.margin(y)).relu().mean()"
    found = _with_options(tmp_path, f"{other} if args.weight > 0 else nn.functional.mse_loss(model(x), y)")
    assert found.status is Status.CHANGED, found
    assert any(n.startswith("With other options than the defaults it may be wrong: line ") and n.endswith(" (DPM303).") for n in found.notes), found.notes


@pytest.mark.parametrize(
    ("layer", "said", "others"),
    [
        pytest.param("nn.Linear(4, 2)", "a", False, id="no layer that normalises"),
        pytest.param("nn.BatchNorm1d(4)", "a", True, id="one in a model that an option may choose"),
        pytest.param("nn.BatchNorm1d(4)", "BatchNorm takes", False, id="one in the model of the defaults"),
    ],
)
def test_what_is_said_of_the_defaults_of_options(layer: str, said: str, others: bool) -> None:
    """Where the program is not followed with other values, the notes of the defaults are kept."""
    text = SCRIPT.format(imported="", model=f"nn.Sequential({layer}, nn.Linear(4, 2))", loss="model(x).mean()")
    doubt = Fault("train.py:3", wrapped.NAME, "the program is not understood", established=False)
    usual = Judgement((), (said,), ("a total",), True, drawn="torch.rand(2)")
    found = migration._by_default(script(text), (Judgement((doubt,), (), (), False),), usual)
    assert (found.faults, found.means, found.own_totals, found.drawn) == ((), True, ("a total",), "torch.rand(2)")
    assert found.assumed[0] == said and found.assumed[-1].startswith(migration.BY_DEFAULT)
    assert (len(found.assumed) == 3) is others


def test_what_is_trained_by_no_default_is_not_established(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    text = SCRIPT.format(imported=f"import mystery\n{OPTIONS.format(False, 'bool')}", model="nn.Linear(4, 2)", loss="mystery.loss(model(x), y)")
    path.write_text(text.replace("    main()", "    if args.first:\n        main()"))
    (outcome,) = engine.apply([path], Settings(), engine.Writing(write=False))
    assert outcome.status is Status.REFUSED


CURVED = """\
import mystery, time

class Curved(nn.Module):
    def forward(self, out, y):
        mean = nn.functional.mse_loss(out, y)
        return mean * time.time()

curved = Curved()
"""


def test_what_is_doubted_beside_a_told_loss(tmp_path: Path) -> None:
    """A part of a loss whose scale is not known hides nothing of another part, which is no mean."""
    path = tmp_path / "train.py"
    loss = "curved(model(x), y) + mystery.scale() * nn.functional.mse_loss(model(x), y)"
    text = SCRIPT.format(imported=CURVED, model="nn.Linear(4, 2)", loss=loss)
    text = text.replace("    model =", "    other = DataLoader(data, batch_size=16, shuffle=True)\n    model =")
    path.write_text(text.replace("for x, y in loader:", "for batch in zip(loader, other):").replace("optimizer.zero_grad()", "(x, y), _ = batch"))
    (outcome,) = engine.apply([path], Settings(), engine.Writing(write=False))
    assert outcome.status is Status.REFUSED
    assert ": a rank's loss may be no mean over its samples: per rank: a clock, line 9. Prove it" in outcome.reason


def test_what_is_established_passes(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(SCRIPT.format(imported="", model="nn.Linear(4, 2)", loss=SUMMED))
    (outcome,) = engine.apply([path], Settings(), engine.Writing(write=False))
    assert outcome.status is Status.CHANGED
    assert not any(n.startswith("Not established") for n in outcome.notes)


#: a loss that is taken by its name for one that compares samples
BY_NAME = """
class ContrastiveLoss(nn.Module):
    def forward(self, a, b):
        return {value}
"""


@pytest.mark.parametrize(
    ("value", "unproven", "status"),
    [
        ("(a - b).pow(2).sum(1).mean()", False, Status.CHANGED),
        ("(a - b).pow(2).sum(1).mean()", True, Status.CHANGED),
        ("(a @ b.t()).pow(2).mean()", False, Status.CHANGED),  # of the samples of all ranks
        ("nn.functional.dropout(a @ b.t()).mean()", False, Status.REFUSED),
        ("nn.functional.dropout(a @ b.t()).mean()", True, Status.REFUSED),
        ("unseen(a, b)", True, Status.REFUSED),
    ],
)
def test_a_loss_that_is_shown_to_be_a_mean_is_no_coupled_one(tmp_path: Path, value: str, unproven: bool, status: Status) -> None:
    path = tmp_path / "train.py"
    imported = UNSEEN + BY_NAME.format(value=value)
    path.write_text(SCRIPT.format(imported=imported, model="nn.Linear(4, 2)", loss="ContrastiveLoss()(model(x), y)"))
    (outcome,) = engine.apply([path], Settings(unproven=unproven), engine.Writing(write=False))
    assert outcome.status is status, outcome
    assert ("DPM303" in codes(outcome)) is (status is Status.REFUSED)


@pytest.mark.parametrize(("value", "why"), [("unseen(a, b)", "what elsewhere.unseen gives is not known"), ("nn.functional.dropout(a @ b.t()).mean()", "a rank's loss may be no mean")])
def test_a_refused_loss_comes_with_what_its_execution_says(tmp_path: Path, value: str, why: str) -> None:
    path = tmp_path / "train.py"
    imported = UNSEEN + BY_NAME.format(value=value)
    path.write_text(SCRIPT.format(imported=imported, model="nn.Linear(4, 2)", loss="ContrastiveLoss()(model(x), y)"))
    (outcome,) = engine.apply([path], Settings(), engine.Writing(write=False))
    assert why in outcome.reason
    assert "--unproven" not in outcome.reason  # what the rules found stays in the way


#: two models, of which one has a layer that no loss reaches, wrapped beside one statement
BESIDE = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Left(nn.Module):
    def __init__(self):
        super().__init__()
        self.used = nn.Linear(4, 2)
        self.spare = nn.Linear(4, 2)

    def forward(self, x):
        return self.used(x)


def build():
    return Left(), nn.Linear(2, 2)


def main():
    loader = DataLoader(TensorDataset(torch.randn(64, 4), torch.randn(64, 2)), batch_size=8, shuffle=True)
    {targets} = build()
    optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1)
    for epoch in range(2):
        for x, y in loader:
            optimizer.zero_grad()
            loss = (second(first(x)) - y).pow(2).mean()
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize("targets", ["first, second", "(first, second)"])
def test_find_unused_is_written_where_the_layer_is(tmp_path: Path, targets: str) -> None:
    path = tmp_path / "train.py"
    path.write_text(BESIDE.format(targets=targets))
    (outcome,) = engine.apply([path], Settings(), engine.Writing(write=False))
    assert outcome.status is Status.CHANGED, outcome.reason
    (new,) = [f.after for f in outcome.files if f.after is not None]
    assert "first = ddp.wrap(first, find_unused=True)" in new
    assert "second = ddp.wrap(second)" in new


def test_several_doubts_are_counted() -> None:
    faults = [Fault("train.py:3", totals.NAME, f"doubt {n}", established=False) for n in (1, 2, 3)]
    judgement = Judgement(tuple(faults), (), (), False)
    assert migration.doubted(judgement) == "train.py:3: doubt 1, and 2 more"
    assert migration.doubted(Judgement(tuple(faults[:1]), (), (), False)) == "train.py:3: doubt 1"


CRITIC = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    data = TensorDataset(torch.randn(64, 4), torch.randn(64, 1))
    loader = DataLoader(data, batch_size=16, shuffle=True)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        total, last = 0.0, None
        for x, y in loader:
            for _ in range(3):
                optimizer.zero_grad()
                last = (model(x) - y).pow(2).mean(){scale}
                last.backward()
                optimizer.step()
            total += last.item()
        print(total, -last.item() if last is not None else 0.0)


if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize(
    ("scale", "status"),
    [
        ("", Status.CHANGED),  # what later steps read is the loss of the last turn, and only told
        (" * (1.0 if last is None else last.item())", Status.REFUSED),
    ],
)
def test_what_later_steps_read_is_shared_only_where_training_goes_by_it(
    tmp_path: Path, scale: str, status: Status
) -> None:
    path = tmp_path / "train.py"
    path.write_text(CRITIC.format(scale=scale))
    (outcome,) = engine.apply([path], Settings(), engine.Writing(write=False))
    assert outcome.status is status
    new = next((f.after for f in outcome.files if f.after is not None), "")
    assert "ddp.mean_all((model" not in new


@pytest.mark.parametrize(
    ("model", "told"),
    [
        ("nn.DataParallel(nn.BatchNorm1d(4))", False),  # which has divided the batch as well
        ("nn.BatchNorm1d(4)\n    if torch.cuda.device_count() > 1:\n        model = nn.DataParallel(model)", True),
    ],
)
def test_batch_norm_is_told_of_where_one_gpu_had_the_whole_batch(tmp_path: Path, model: str, told: bool) -> None:
    outcome = migrated(tmp_path, model=model, loss="(model(x)[:, :2] - y).pow(2).mean()")
    assert any(n.startswith("BatchNorm") for n in outcome.notes) is told


@pytest.mark.parametrize(
    ("loader", "model", "told"),
    [
        ("shuffle=True", "nn.BatchNorm1d(4)", True),
        ("shuffle=True, drop_last=True", "nn.BatchNorm1d(4)", True),
        ("shuffle=True", "nn.Sequential(nn.Unflatten(1, (1, 2, 2)), nn.BatchNorm2d(1), nn.Flatten())", False),
        ("shuffle=True", "nn.Sequential(nn.Unflatten(1, (2, 2, 1)), nn.AdaptiveAvgPool2d(1), nn.Conv2d(2, 2, 1), nn.BatchNorm2d(2), nn.Flatten())", True),
        ("shuffle=True", "nn.Sequential(nn.Unflatten(1, (2, 2, 1)), nn.AdaptiveAvgPool2d((2, 1)), nn.BatchNorm2d(2), nn.Flatten())", False),
        ("shuffle=True", "nn.Sequential(nn.Unflatten(1, (2, 2, 1)), nn.BatchNorm2d(2), nn.AdaptiveAvgPool2d(1), nn.Flatten())", False),
    ],
)
def test_that_batchnorm_needs_two_samples_is_told_where_it_may_have_one(tmp_path: Path, loader: str, model: str, told: bool) -> None:
    path = tmp_path / "train.py"
    path.write_text(SCRIPT.replace("shuffle=True", loader).format(imported="", model=model, loss="(model(x)[:, :2] - y).pow(2).mean()"))
    (outcome,) = engine.apply([path], Settings(), engine.Writing(write=False))
    (note,) = [n for n in outcome.notes if n.startswith("BatchNorm")]
    assert ("two samples or more for each rank" in note) is told
    assert ("a shorter last batch" in note) is (told and "drop_last" not in loader)


@pytest.mark.parametrize(
    ("number", "told"),
    [
        ("(model(x) > 0).sum().item() / 16", True),
        ("100. * (model(x) > 0).sum() / size", True),
        ("int((model(x) > 0).sum()) / len(data)", True),
        ("(model(x) > 0).sum().item() / x.size(0)", False),
        ("ddp.sum_all((model(x) > 0).sum().item()) / 16", False),
        ("loss.item() / 16", False),
        ("epoch / 16", False),
    ],
)
def test_parts_that_are_divided_by_a_number_of_all_ranks(tmp_path: Path, number: str, told: bool) -> None:
    path = tmp_path / "train.py"
    then = f"size = 16\n            share = {number}\n            print(f'{{share:.3f}}')"
    text = SCRIPT.format(imported="import dpmigrate_runtime as ddp" if "ddp" in number else "", model="nn.Linear(4, 2)", loss="(model(x) - y).pow(2).mean()")
    path.write_text(text.replace("optimizer.step()\n", f"optimizer.step()\n            {then}\n", 1))
    (outcome,) = engine.apply([path], Settings(unproven=True), engine.Writing(write=False))
    assert any("as many times too small" in n for n in outcome.notes) is told, outcome


@pytest.mark.parametrize(
    ("then", "told"),
    [
        ("", False),
        ("print(epoch)", False),
        ("print(loss.item())", True),
        ("print(loss.sqrt().item())", True),
        ("good = (model(x) > 0).sum().item()\n            print(good / (model(x) > -1).sum().item())", True),
        ("import time\n            print(f'{time.time()}: {loss.item()}')", True),
        ("import time\n            print(f'{time.time()}')", False),
        ("last = loss.item()\n    torch.save({'loss': last}, 'last.pt')", True),
        ("import json\n            print(json.dumps({'epoch': epoch, 'losses': [loss.item()]}))", True),
        ("import json\n            print(json.dumps({'epoch': epoch}))", False),
        ("print((model(x) > 0).sum().item())", True),
        ("from types import SimpleNamespace\n            print('{m.loss:.3f}'.format(m=SimpleNamespace(loss=loss.item())))", True),
    ],
)
def test_means_over_a_part_of_the_batch_are_told(tmp_path: Path, then: str, told: bool) -> None:
    text = SCRIPT.format(imported="", model="nn.Linear(4, 2)", loss="(model(x) - y).pow(2).mean()")
    path = tmp_path / "train.py"
    path.write_text(text.replace("optimizer.step()", f"optimizer.step()\n            {then}"))
    (outcome,) = engine.apply([path], Settings(), engine.Writing(write=False))
    assert outcome.status is Status.CHANGED, outcome
    assert any("numbers of rank 0's part of the batch" in n for n in outcome.notes) is told


@pytest.mark.parametrize(
    ("setting", "device", "words"),
    [
        ("where = 'cuda'", "where", ""),
        ("where = 'cuda' if torch.cuda.is_available() else 'cpu'", "torch.device(where)", ""),
        ("where = json.load(open('settings.json'))", "torch.device(where['device'])", "torch.device(where['device']) takes the name of the device from outside"),
        ("import argparse\np = argparse.ArgumentParser()\np.add_argument('--old')\nold = torch.load(p.parse_args().old, map_location='cuda')", "'cuda'", ""),
        ("where = json.load(open('settings.json'))", "where['device']", "nn.Linear(4, 2).to(where['device']) takes the name of the device from outside"),
        ("where = json.load(open('settings.json'), object_hook=dict)", "where['a'].device", "nn.Linear(4, 2).to(where['a'].device) takes the name"),
        ("here = torch.zeros(1)", "here.device", ""),
        ("here = torch.device('cuda' if torch.cuda.is_available() else 'cpu')", "here", ""),
        ("where = torch.cuda.current_device() if torch.cuda.is_available() else 'cpu'", "where", ""),
        ("where = sys.argv[1]", "torch.device(where)", "torch.device(where) takes the name of the device from outside"),
        ("where = 1", "f'cuda:{where}'", ""),
        ("where = int(sys.argv[1])", "f'cuda:{where}'", "GPU: where chooses it no more"),
        ("where = json.load(open('settings.json'))", "f\"cuda:{where['gpu']}\"", "GPU: where['gpu'] chooses it no more"),
    ],
)
def test_who_chooses_the_device(tmp_path: Path, setting: str, device: str, words: str) -> None:
    path = tmp_path / "train.py"
    imported = f"import json, sys\n{setting}\n"
    path.write_text(SCRIPT.format(imported=imported, model=f"nn.Linear(4, 2).to({device})", loss="(model(x) - y).pow(2).mean()"))
    (outcome,) = engine.apply([path], Settings(unproven=True), engine.Writing(write=False))
    assert outcome.status is Status.CHANGED, outcome
    found = [n for n in outcome.notes if "device from outside" in n or n.startswith("GPU")]
    assert [n[: len(words)] for n in found] == ([words] if words else [])


@pytest.mark.parametrize(
    ("asked", "still"),
    [
        ("pynvml.nvmlDeviceGetHandleByIndex(where)", "pynvml.nvmlDeviceGetHandleByIndex(where) (line "),
        ("def used(gpu):\n    return pynvml.nvmlDeviceGetHandleByIndex(gpu)\nused(where)", "pynvml.nvmlDeviceGetHandleByIndex(gpu) (line "),
        ("pynvml.nvmlDeviceGetHandleByIndex(0)", ""),
        ("there = torch.zeros(1).to(f'cuda:{where}')\npynvml.show(there)", ""),
        ("print(where)", ""),
    ],
)
def test_who_is_given_the_number_of_a_device(tmp_path: Path, asked: str, still: str) -> None:
    path = tmp_path / "train.py"
    imported = f"import pynvml, sys; where = int(sys.argv[1])\n{asked}\n"
    path.write_text(SCRIPT.format(imported=imported, model="nn.Linear(4, 2).to(f'cuda:{where}')", loss="(model(x) - y).pow(2).mean()"))
    (outcome,) = engine.apply([path], Settings(unproven=True), engine.Writing(write=False))
    (told,) = [n for n in outcome.notes if n.startswith("GPU")]
    assert still in told and ("all the same" in told) is bool(still)


PADDED = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Sequences(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, i):
        return torch.randn(3 + i % 40, 4), torch.randn(3 + i % 40, 2)


def together(batch):
    longest = {longest}
    xs, ys = {made}(len(batch), longest, 4), {made}(len(batch), longest, 2)
    for i in range(len(batch)):
        xs[i, :batch[i][0].size(0)] = batch[i][0]
        ys[i, :batch[i][1].size(0)] = batch[i][1]
    return xs, ys


loader = DataLoader(Sequences(), batch_size=16, shuffle=True, collate_fn=together)
model = nn.Linear(4, 2)
""" + dedent(TRAINED)


@pytest.mark.parametrize("made", ["torch.FloatTensor", "(lambda *s: torch.empty(s))"])
@pytest.mark.parametrize(
    ("longest", "loss", "status"),
    [
        ("max(x.size(0) for x, _ in batch)", "nn.functional.l1_loss(model(x), y)", Status.REFUSED),
        ("max(x.size(0) for x, _ in batch)", "nn.functional.l1_loss(model(x).sum(1), y.sum(1))", Status.CHANGED),
        ("43", "nn.functional.l1_loss(model(x), y)", Status.CHANGED),
    ],
)
def test_a_mean_over_what_an_own_function_pads_is_not_that_of_the_batch(tmp_path: Path, made: str, longest: str, loss: str, status: Status) -> None:
    path = tmp_path / "train.py"
    path.write_text(PADDED.format(made=made, longest=longest, loss=loss))
    (outcome,) = engine.apply([path], Settings(), engine.Writing(write=False))
    assert outcome.status is status, outcome.problem


TURNED = PADDED.replace(
    "    longest = {longest}\n", "    xs, ys = zip(*batch)\n    longest = {longest}\n    batch = list(zip(xs, ys))\n"
).replace("{made}(len(batch)", "{made}(len(ys)")


@pytest.mark.parametrize(("longest", "status"), [("max(x.size(0) for x in xs)", Status.REFUSED), ("43", Status.CHANGED)])
def test_a_batch_that_is_taken_apart_has_its_samples_still(tmp_path: Path, longest: str, status: Status) -> None:
    path = tmp_path / "train.py"
    path.write_text(TURNED.format(made="torch.FloatTensor", longest=longest, loss="nn.functional.l1_loss(model(x), y)"))
    (outcome,) = engine.apply([path], Settings(), engine.Writing(write=False))
    assert outcome.status is status, outcome.problem


@pytest.mark.parametrize(
    ("scores", "status"),
    [
        ("model(x)", Status.CHANGED),
        ("model(x).squeeze()", Status.REFUSED),  # one number of each sample, perhaps
        ("model(x).squeeze(1)", Status.REFUSED),
        ("model(x)[:, 0]", Status.REFUSED),
        ("model(x).view(-1)", Status.REFUSED),
    ],
)
@pytest.mark.parametrize("loss", ["nn.functional.cross_entropy({}, {})", "nn.CrossEntropyLoss()({}, {})"])
def test_samples_are_no_classes(tmp_path: Path, scores: str, loss: str, status: Status) -> None:
    path = tmp_path / "train.py"
    target = "y" if status is Status.CHANGED else "y[:, 0].sigmoid()"
    features = 1 if "squeeze" in scores else 2  # of two, squeeze takes nothing out
    path.write_text(SCRIPT.format(imported="", model=f"nn.Linear(4, {features})", loss=loss.format(scores, target)))
    (outcome,) = engine.apply([path], Settings(), engine.Writing(write=False))
    assert outcome.status is status, outcome
    if status is Status.REFUSED:  # the line is that of the user's file: the new text was not written
        (line,) = re.findall(r"train\.py:(\d+)", outcome.reason)
        assert "backward()" in path.read_text().splitlines()[int(line) - 1]


@pytest.mark.parametrize(
    ("scores", "found"),
    [
        ("model(x)", "log_softmax(model(x), dim=-1)"),
        ("model(x).squeeze()", "log_softmax(ddp.batch_rows(model(x).squeeze()), dim=-1)"),
        ("model(x).squeeze(1)", "log_softmax(ddp.batch_rows(model(x).squeeze(1)), dim=-1)"),
        ("model(x)[:, 0]", "log_softmax(ddp.batch_rows(model(x)[:, 0]), dim=-1)"),
        ("model(x).view(-1)", None),
    ],
)
def test_a_softmax_over_the_samples(tmp_path: Path, scores: str, found: str | None) -> None:
    path = tmp_path / "train.py"
    target = "y" if scores == "model(x)" else "y[:, 0].sigmoid()"
    features = 1 if "squeeze" in scores else 2
    loss = f"-(nn.functional.log_softmax({scores}, dim=-1) * {target}).mean()"
    path.write_text(SCRIPT.format(imported="", model=f"nn.Linear(4, {features})", loss=loss))
    (outcome,) = engine.apply([path], Settings(), engine.Writing(write=False))
    if found is None:
        assert outcome.status is Status.REFUSED, outcome
    else:
        assert outcome.status is Status.CHANGED and found in str(outcome.files[-1].after), outcome


MIXED = """\
order = torch.randperm(x.size(0))
            lam = numpy.random.beta(1, 1)
            out = model(lam * x + (1 - lam) * x[order])
            loss = lam * (out - y).pow(2).mean() + (1 - lam) * (out - y[order]).pow(2).mean()
            loss.backward()"""


def test_partners_that_each_rank_draws_are_told(tmp_path: Path) -> None:
    text = SCRIPT.format(imported="import numpy", model="nn.Linear(4, 2)", loss="(model(x) - y).pow(2).mean()")
    path = tmp_path / "train.py"
    for line, told in ((MIXED, True), ("loss.backward()", False)):
        path.write_text(text.replace("loss.backward()", line))
        (outcome,) = engine.apply([path], Settings(), engine.Writing(write=False))
        assert outcome.status is Status.CHANGED, outcome
        assert any("that is one of the same part" in n for n in outcome.notes) is told


COUNTED = """\
import torch
from torch.utils.data import DataLoader, Dataset


class Growing(Dataset):
    def __init__(self):
        self.x, self.calls, self.held = torch.randn(64, 4), 0, {{}}

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        {counted}
        return self.x[i] * {factor}, self.x[i].sum(0, keepdim=True)


loader = DataLoader(Growing(), batch_size=16, shuffle=True)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    (model(x) - y).square().mean().backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("counted", "factor", "told"),
    [
        pytest.param("self.calls += 1", "min(1, self.calls / 100)", True, id="a number of samples so far"),
        pytest.param("self.calls = (self.calls + 1) % 8", "self.calls", True, id="a place that moves on"),
        pytest.param("self.calls += 1", "2", False, id="a count that no sample goes by"),
        pytest.param("self.calls = i", "self.calls", False, id="anew for each sample"),
        pytest.param("self.held[i] = self.held.get(i, 0) + 1", "self.held[i]", False, id="a count of each sample"),
    ],
)
def test_samples_that_go_by_those_before_are_told(tmp_path: Path, counted: str, factor: str, told: bool) -> None:
    path = tmp_path / "train.py"
    path.write_text(COUNTED.format(counted=counted, factor=factor))
    (outcome,) = engine.apply([path], Settings(), engine.Writing(write=False))
    assert outcome.status is Status.CHANGED, outcome
    assert any("is done for each sample, and samples go by self.calls" in n for n in outcome.notes) is told


BACKWARDS = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    loader = DataLoader(TensorDataset(torch.randn(64, 4), torch.randn(64, 1)), batch_size=16, shuffle=True)
    one, two = nn.Linear(4, 1), nn.Linear(4, 1)
    optimizer = torch.optim.SGD([*one.parameters(), *two.parameters()], lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        first, second = one(x), {second}
        (first - y).square().mean().backward({retain})
        (second - y).square().mean().backward()
        optimizer.step()


if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize(
    ("second", "retain", "status"),
    [
        ("two(x)", "", Status.CHANGED),  # each backward goes through a wrapper of its own
        ("one(x)", "", Status.CHANGED),  # ddp.wrap averages what each backward brings; the model that nothing uses needs no wrap
        ("two(first)", "retain_graph=True", Status.REFUSED),
    ],
)
def test_backwards_of_two_models_may_follow_each_other(tmp_path: Path, second: str, retain: str, status: Status) -> None:
    path = tmp_path / "train.py"
    path.write_text(BACKWARDS.format(second=second, retain=retain))
    (outcome,) = engine.apply([path], Settings(), engine.Writing(write=False))
    assert outcome.status is status, outcome


#: a model that gives its loss, of which labels are left out that a mask chooses: only the execution of the result shows that it is no mean over the samples
OWN_LOSS = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 3)

    def forward(self, x, y, mask):
        out = self.body(x)
        criterion = nn.CrossEntropyLoss()
        labels = torch.where(mask, y, torch.tensor(criterion.ignore_index).type_as(y))
        return out, criterion(out, labels)


def main():
    data = TensorDataset(torch.randn(64, 4), torch.randint(0, 3, (64,)), torch.rand(64) > 0.5)
    loader = DataLoader(data, batch_size=16, shuffle=True)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        model.train()
        for x, y, mask in loader:
            out, loss = model(x, y, mask)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        total = 0.0
        {quiet}
            for x, y, mask in DataLoader(data, batch_size=16):
                out, loss = model(x, y, mask)
                total += loss.item()
        print(total)


if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize(
    ("quiet", "status"),
    [
        ("with torch.no_grad():", Status.CHANGED),
        # the runtime exchanges numbers where there are gradients, and the ranks have different batches
        ("if epoch > 0:", Status.REFUSED),
    ],
)
def test_a_mean_over_valid_targets_that_the_result_shows(tmp_path: Path, quiet: str, status: Status) -> None:
    path = tmp_path / "train.py"
    path.write_text(OWN_LOSS.format(quiet=quiet))
    (outcome,) = engine.apply([path], Settings(), engine.Writing(write=False))
    assert outcome.status is status, outcome
    weighted = "ddp.weighted_mean(criterion(out, labels), ddp.weight_of(labels, weight=criterion.weight, ignore_index=criterion.ignore_index))"
    assert (weighted in str(outcome.files[-1].after)) is (status is Status.CHANGED)


def test_a_mean_over_valid_targets_that_are_made_in_the_call(tmp_path: Path) -> None:
    """The loss weights each of its calls by itself."""
    path = tmp_path / "train.py"
    text = OWN_LOSS.format(quiet="with torch.no_grad():").replace("(out, labels)", "(out, labels if len(x) > 2 else pick(y))")
    path.write_text(text.replace("class Net", "def pick(y):\n    return y.masked_fill(y == 0, -100)\n\n\nclass Net"))
    (outcome,) = engine.apply([path], Settings(), engine.Writing(write=False))
    assert outcome.status is Status.CHANGED, outcome
    assert "ddp.weighted_loss(" in str(outcome.files[-1].after)


@pytest.mark.parametrize(
    ("loader", "total", "told"),
    [
        ("shuffle=True", "loss.item() * len(x)", True),
        ("shuffle=True, drop_last=True", "loss.item() * len(x)", False),
        ("shuffle=True", "loss.item()", False),
    ],
)
def test_sums_that_count_samples_twice_are_told(tmp_path: Path, loader: str, total: str, told: bool) -> None:
    path = tmp_path / "train.py"
    text = SCRIPT.format(imported="", model="nn.Linear(4, 2)", loss="nn.functional.mse_loss(model(x), y)").replace("shuffle=True", loader)
    text = text.replace("        for x, y in", "        total = 0.0\n        for x, y in").replace("optimizer.step()\n", f"optimizer.step()\n            total += {total}\n        print(total / len(data))\n")
    path.write_text(text)
    (outcome,) = engine.apply([path], Settings(), engine.Writing(write=False))
    assert outcome.status is Status.CHANGED, outcome
    assert any("count those again" in n for n in outcome.notes) is told


@pytest.mark.parametrize(
    ("shown", "told"),
    [
        ("print(100 * total / max(seen, 1))", False),
        ("print(float(total) / seen, round(total * 100.0 / seen, 2))", False),
        ("print(total / seen, total / len(data))", True),
        ("print(total / seen, total)", True),
    ],
)
def test_sums_that_are_divided_by_each_other_are_not_told(tmp_path: Path, shown: str, told: bool) -> None:
    path = tmp_path / "train.py"
    text = SCRIPT.format(imported="", model="nn.Linear(4, 2)", loss="nn.functional.mse_loss(model(x), y)")
    adds = "optimizer.step()\n            total += loss.item() * len(x)\n            seen += len(x)\n"
    text = text.replace("        for x, y in", "        total = seen = 0.0\n        for x, y in").replace("optimizer.step()\n", f"{adds}        {shown}\n")
    path.write_text(text)
    (outcome,) = engine.apply([path], Settings(), engine.Writing(write=False))
    assert outcome.status is Status.CHANGED, outcome
    assert any("count those again" in n for n in outcome.notes) is told


ONE_MODEL = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head, self.rest = nn.Linear(4, 4), nn.Linear(4, 2), nn.Linear(4, 4)

    def forward(self, x):
        return self.head(torch.relu(self.body(x)))

    def features(self, x):
        return torch.relu(self.body(x))


data = TensorDataset(torch.randn(64, 4), torch.randint(0, 2, (64,)))
loader = DataLoader(data, batch_size=16, shuffle=True)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for x, y in loader:
        optimizer.zero_grad()
{step}
        optimizer.step()
torch.save(model.state_dict(), "model.pt")
"""


@pytest.mark.parametrize(
    ("step", "option"),
    [
        pytest.param(
            ["out = model(x)", "nn.functional.cross_entropy(out, y).backward(retain_graph=True)", "out.square().mean().backward()"], True,
            id="two backwards of one forward",
        ),
        pytest.param(
            ["first, second = model(x), model(x + 1)", "nn.functional.cross_entropy(first, y).backward()", "second.square().mean().backward()"], True,
            id="two forwards before two backwards",
        ),
        pytest.param(
            ["loss = nn.functional.cross_entropy(model(x), y) + model.rest.weight.norm()", "loss.backward()"], False, id="a weight beside forward",
        ),
        pytest.param(
            ["loss = nn.functional.cross_entropy(model(x), y) + model.features(x).mean()", "loss.backward()"], True, id="a part after the whole",
        ),
    ],
)  # fmt: skip
def test_each_backward_is_averaged_whatever_it_leaves_out(tmp_path: Path, step: list[str], option: bool) -> None:
    """None of this goes with DDP's own search for unused parameters, or with one averaging for each forward."""
    path = tmp_path / "train.py"
    path.write_text(ONE_MODEL.replace("{step}", "\n".join(" " * 8 + line for line in step)))
    (outcome,) = engine.apply([path], Settings(), engine.Writing(write=False))
    assert outcome.status is Status.CHANGED, outcome.reason
    assert ("find_unused=True" in str(outcome.files[-1].after)) is option


KEPT_DIGITS = """\
import os
import torch
import urllib.request
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torchvision import datasets


class Digits(Dataset):
    def __init__(self, root, train=True, download=False):
        self.root = {root}
        if download:
            self.download()
        if not self._check_exists():
            raise RuntimeError("no digits")
        self.x, self.y = torch.load(os.path.join(self.root, "train.pt" if train else "test.pt"))

    def __getitem__(self, i):
        return self.x[i], self.y[i]

    def __len__(self):
        return len(self.x)

    def _check_exists(self):
        return os.path.exists(os.path.join(self.root, "train.pt")) and os.path.exists(os.path.join(self.root, "test.pt"))

    def download(self):
        if self._check_exists():
            return
        path = os.path.join(self.root, "raw.bin")
        if not os.path.exists(path):
            data = urllib.request.urlopen("https://example.org/digits")
            with open(path, "wb") as f:
                f.write(data.read())
        with open(path, "rb") as f:
            both = torch.load(f)
{labels}
        with open(os.path.join(self.root, "train.pt"), "wb") as f:
            torch.save((both["x"], both["y"]), f)
        with open(os.path.join(self.root, "test.pt"), "wb") as f:
            torch.save((both["x2"], both["y2"]), f)


model = nn.Linear(4, 2)
optimizer = torch.optim.Adam(model.parameters())
loader = DataLoader(Digits("data", download=True), batch_size=8, shuffle=True)
for epoch in range(2):
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("root", "labels", "rank_0_goes_first"),
    [
        pytest.param("root", "        both['y'] = both['x']", ['train_set = Digits("data", download=True)'], id="the constructor fetches"),
        pytest.param(
            "os.path.expanduser(root)", "        both['y'] = datasets.MNIST(self.root, download=True).targets", ["if self._check_exists():"],
            id="it fetches others' files",
        ),
    ],
)  # fmt: skip
def test_rank_0_goes_first_once_through_what_fetches_and_makes_files(tmp_path: Path, root: str, labels: str, rank_0_goes_first: list[str]) -> None:
    """Where it runs a whole constructor first, it waits for nobody inside; a wait before a statement is no part of the tests in it."""
    path = tmp_path / "train.py"
    path.write_text(KEPT_DIGITS.replace("{labels}", labels).replace("{root}", root))
    (outcome,) = engine.apply([path], Settings(), engine.Writing(write=False))
    assert outcome.status is Status.CHANGED, outcome.reason
    lines = [line.strip() for line in str(outcome.files[-1].after).splitlines()]
    assert [after for line, after in pairwise(lines) if "main_first()" in line] == rank_0_goes_first


GRAPHS = """
import torch
from torch import nn
from torch_geometric.datasets import PPI
from torch_geometric.loader import DataLoader
from torch_geometric.nn import SAGEConv


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = SAGEConv(50, 121)

    def forward(self, x, edges):
        return self.conv(x, edges)


def main():
    loader = DataLoader(PPI(root="data"), batch_size=2)
    model = Net()
    criterion = {criterion}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        for data in loader:
            optimizer.zero_grad()
            out = model(data.x, data.edge_index)
            loss = criterion({given})
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize(
    ("criterion", "given", "weight"),
    [
        ("nn.BCEWithLogitsLoss()", "out, data.y.float()", "out.numel()"),
        ("nn.MSELoss()", "input=out, target=data.y", "out.numel()"),
        ("nn.MSELoss()", "out.view(-1), data.y", "out.view(-1).numel()"),
        ("nn.CrossEntropyLoss()", "out, data.y", "ddp.weight_of(data.y, weight=criterion.weight, ignore_index=criterion.ignore_index)"),
    ],
)
def test_a_loss_of_the_nodes_of_graphs_is_weighted_by_their_number(tmp_path: Path, criterion: str, given: str, weight: str) -> None:
    """Whether ``data.y`` has a row for each node is not seen, of the scores it is."""
    path = tmp_path / "train.py"
    path.write_text(GRAPHS.format(criterion=criterion, given=given))
    (outcome,) = engine.apply([path], Settings(), engine.Writing(write=False))
    assert outcome.status is Status.CHANGED, outcome
    assert f"ddp.weighted_mean(criterion({given}), {weight})" in str(outcome.files[-1].after)


def test_a_part_that_the_settings_leave_out_is_told(tmp_path: Path) -> None:
    """It would be wrong with other settings, which are written in the program."""
    path = tmp_path / "train.py"
    loss = "nn.functional.cross_entropy(model(x), y[:, 0].long(), ignore_index={})"
    text = SCRIPT.format(imported="mixed = True", model="nn.Linear(4, 2)", loss=loss.format(3))
    (line,) = [one for one in text.splitlines() if one.strip().startswith("loss =")]
    indent = line[: len(line) - len(line.lstrip())]
    other = f"{indent}if not mixed:\n{indent}    {loss.format(2)}.backward()\n"
    for written, told in ((text, False), (text.replace(line, other + line), True)):
        path.write_text(written)
        (found,) = engine.apply([path], Settings(), engine.Writing(write=False))
        assert found.status is Status.CHANGED, found
        assert any(n.startswith("line 15: this part") for n in found.notes) is told
