"""A right result, spoiled in one place: the judge names the invariant that breaks, and no other."""

from __future__ import annotations

from textwrap import indent

import pytest

from dpmigrate.judge import (
    backwards,
    before,
    bound,
    classes,
    devices,
    epochs,
    executed,
    faults,
    files,
    group,
    own_totals,
    parted,
    scaling,
    sharded,
    statistics,
    streams,
    totals,
    unused,
    wrapped,
)
from dpmigrate.judge import judged as judgement
from dpmigrate.library.sites import PADDING
from dpmigrate.program import Program
from dpmigrate.source import Source, parse

RIGHT = '''\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
import dpmigrate_runtime as ddp


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.1))
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        return self.head(self.body(x))


def evaluate(model, loader):
    model.eval()
    right, count = 0, 0
    with torch.no_grad():
        for x, y in ddp.shard(loader):
            right += (model.module(x).argmax(1) == y).sum().item()
            count += y.size(0)
    right, count = ddp.sum_all(right, count)
    return right / count


def main():
    torch.manual_seed(0)
    train_set = TensorDataset(torch.randn(64, 4), torch.randint(0, 2, (64,)))
    loader = DataLoader(train_set, batch_size=ddp.local_batch(16), sampler=ddp.DistributedSampler(train_set, seed=0))
    test_loader = DataLoader(TensorDataset(torch.randn(32, 4), torch.randint(0, 2, (32,))), batch_size=16)
    model = ddp.wrap(Net())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    ddp.seed_ranks()
    for epoch in range(4):
        loader.sampler.set_epoch(epoch)
        model.train()
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        print(epoch, evaluate(model, test_loader))
    ddp.save(model.module.state_dict(), "net.pt")


if __name__ == "__main__":
    ddp.setup()
    main()
    ddp.cleanup()
'''


def judged(text: str) -> list[tuple[str, str]]:
    """The invariants that a result breaks, with what is said."""
    source = parse(text.encode(), "train.py")
    assert isinstance(source, Source)
    return [(f.invariant, f.words) for f in faults(Program.of(source))]


def test_what_is_right_stays() -> None:
    assert judged(RIGHT) == []


def test_a_process_that_ends_early_ends_its_group() -> None:
    text = RIGHT.replace("    main()\n    ddp.cleanup()\n", "    main()\n    raise SystemExit(3)\n")
    source = parse(text.encode(), "train.py")
    assert isinstance(source, Source)
    assert not any(f.established for f in faults(Program.of(source)))


@pytest.mark.parametrize(
    ("step", "right"),
    [
        pytest.param("out = model(x)\nloss = nn.functional.cross_entropy(out + model.module.head(x.repeat(1, 2)), y)\nloss.backward()", True, id="beside a forward"),
        pytest.param("part = model.module.head(x.repeat(1, 2))\nloss = (model(x) + part).mean()\nloss.backward()", True, id="before it"),
        pytest.param("loss = model.module.head(x.repeat(1, 2)).mean()\nloss.backward()", False, id="alone"),
        pytest.param("out = model(x)\nout.sum().backward(retain_graph=True)\nloss = (out + model.module.head(x.repeat(1, 2))).mean()\nloss.backward()", False, id="after the backward"),
    ],
)
def test_a_part_that_is_called_past_the_wrapper(step: str, right: bool) -> None:
    """``ddp.wrap`` averages what a backward comes to after a forward."""
    lines = "".join(f"            {line}\n" for line in step.splitlines())
    text = RIGHT.replace("            loss = nn.functional.cross_entropy(model(x), y)\n            loss.backward()\n", lines)
    assert (wrapped.NAME not in {name for name, _ in judged(text)}) is right


def test_batches_may_be_those_of_each_rank() -> None:
    source = parse(RIGHT.replace("ddp.local_batch(16)", "16").encode(), "train.py")
    assert isinstance(source, Source)
    assert list(faults(Program.of(source), divided=False)) == []
    assert {f.invariant for f in faults(Program.of(source))} == {sharded.NAME}


SHARD = "sampler=ddp.DistributedSampler(train_set, seed=0)"
LOADER = f"DataLoader(train_set, batch_size=ddp.local_batch(16), {SHARD})"
SPOILED = [
    pytest.param("model = ddp.wrap(Net())", "model = Net()\n    model.module = model", wrapped.NAME, id="no wrap"),
    pytest.param("loss = nn.functional.cross_entropy(model(x), y)", "loss = nn.functional.cross_entropy(model.module(x), y)", wrapped.NAME, id="past the wrapper"),
    pytest.param("model = ddp.wrap(Net())", "model = nn.DataParallel(Net())", wrapped.NAME, id="DataParallel"),
    pytest.param("model = ddp.wrap(Net())", "model = Net()\n    if torch.cuda.device_count() > 1:\n        model = ddp.wrap(model)", wrapped.NAME, id="a wrap on some ways"),
    pytest.param("model = ddp.wrap(Net())", "model = Net()\n    model.module = model\n    spare = ddp.wrap(Net())\n    spare(torch.zeros(2, 4))", wrapped.NAME, id="another one is wrapped"),
    pytest.param("model.module.state_dict()", "model.state_dict.module()", wrapped.NAME, id="module of a method"),
    pytest.param("if __name__ == \"__main__\":\n    ddp.setup()\n", "if __name__ == \"__main__\":\n", group.NAME, id="no setup"),
    pytest.param("    main()\n    ddp.cleanup()\n", "    main()\n", group.NAME, id="no cleanup"),
    pytest.param("    ddp.setup()\n    main()\n", "    main()\n    ddp.setup()\n", group.NAME, id="setup too late"),
    pytest.param(SHARD, "shuffle=True", sharded.NAME, id="no sampler"),
    pytest.param(SHARD, f"shuffle=True, {SHARD}", sharded.NAME, id="shuffled as well"),
    pytest.param("ddp.local_batch(16)", "16", sharded.NAME, id="whole batches"),
    pytest.param("ddp.local_batch(16)", "ddp.local_batch(1)", sharded.NAME, id="batches of one sample"),
    pytest.param(LOADER, "ddp.distribute(DataLoader(train_set, shuffle=True, batch_size=16))", None, id="a loader dealt"),
    pytest.param(LOADER, "ddp.distribute(DataLoader(train_set, shuffle=True, batch_size=1))", sharded.NAME, id="a loader of one sample dealt"),
    pytest.param(LOADER, "ddp.distribute(DataLoader(train_set, shuffle=True))", sharded.NAME, id="a loader without a size dealt"),
    pytest.param("        for x, y in loader:\n            optimizer", "        for x, y in ddp.shard(loader):\n            optimizer", sharded.NAME, id="a loader for evaluations"),
    pytest.param("        loader.sampler.set_epoch(epoch)\n", "", epochs.NAME, id="no epoch"),
    pytest.param("        loader.sampler.set_epoch(epoch)\n        model.train()\n", "        it = enumerate(loader)\n        model.train()\n        for i, (x, y) in it:\n            pass\n        loader.sampler.set_epoch(epoch)\n", epochs.NAME, id="epoch after a pass"),
    pytest.param("        loader.sampler.set_epoch(epoch)\n", "        loader.sampler.set_epoch(0)\n", epochs.NAME, id="one epoch"),
    pytest.param("        loader.sampler.set_epoch(epoch)\n", "        for i, phase in enumerate(('train', 'val')):\n            if i == 0:\n                loader.sampler.set_epoch(i)\n", epochs.NAME, id="a phase for an epoch"),
    pytest.param("        loader.sampler.set_epoch(epoch)\n", "        loader.sampler.set_epoch(epoch + 3)\n", None, id="another number of the epoch"),
    pytest.param("        loader.sampler.set_epoch(epoch)\n", "        ddp.next_epoch(loader)\n", None, id="the next epoch"),
    pytest.param("        print(epoch, evaluate", "        loader.sampler.set_epoch(epoch)\n        print(epoch, evaluate", None, id="told once more"),
    pytest.param("    ddp.seed_ranks()\n", "", streams.NAME, id="one stream"),
    pytest.param("torch.manual_seed(0)", "import time\n    torch.manual_seed(int(time.time()))", streams.SEEDS, id="seeded by the clock"),
    pytest.param("torch.manual_seed(0)", "import time\n    torch.manual_seed(ddp.from_main(int(time.time())))", None, id="seeded by one clock"),
    pytest.param("    ddp.seed_ranks()\n", "    ddp.seed_ranks()\n    import time\n    torch.manual_seed(int(time.time()))\n", None, id="seeded by the clock in training"),
    pytest.param("    right, count = ddp.sum_all(right, count)\n", "", totals.NAME, id="no sum"),
    pytest.param("ddp.sum_all(right, count)", "ddp.mean_all(right, count)", totals.NAME, id="sums averaged"),
    pytest.param("    right, count = ddp.sum_all(right, count)\n", "        right, count = ddp.sum_all(right, count)\n    right, count = right, count\n", None, id="summed in the with"),
    pytest.param("            count += y.size(0)\n", "            count += y.size(0)\n            ddp.barrier()\n", parted.NAME, id="a collective in a share"),
    pytest.param("    ddp.seed_ranks()\n", "    ddp.seed_ranks()\n    with ddp.main_first():\n        ddp.barrier()\n", parted.NAME, id="a collective while rank 0 goes first"),
    pytest.param("    ddp.seed_ranks()\n", "    ddp.seed_ranks()\n    with ddp.main_first():\n        with ddp.main_first():\n            pass\n", None, id="first of those that go first"),
    pytest.param("            loss.backward()\n", "            if ddp.is_main():\n                loss.backward()\n", parted.NAME, id="backward on one rank"),
    pytest.param("    ddp.save(model", "    torch.save(model", files.NAME, id="every rank saves"),
    pytest.param("model.module.state_dict()", "model.state_dict()", files.NAME, id="names of the wrapper"),
    pytest.param("model.module.state_dict()", "getattr(model, 'module', model).state_dict()", None, id="the bare model, if there is one"),
    pytest.param("    ddp.save(model.module.state_dict(),", "    state = {'net': model.module}\n    ddp.save(state['net'].module.state_dict(),", wrapped.NAME, id="what only a wrapper has is asked of the model"),
    pytest.param("    ddp.save(model.module.state_dict(),", "    state = {'net': model.module}\n    ddp.save(ddp.unwrap(state['net']).state_dict(),", None, id="the model of a model"),
    pytest.param("nn.functional.cross_entropy(model(x), y)\n", "nn.functional.cross_entropy(model.forward(x), y)\n", None, id="forward of the wrapper"),
    pytest.param("    ddp.save(", "    print(done)\n    ddp.save(", bound.NAME, id="a name that is not bound"),
    pytest.param("return self.head(self.body(x))", "return self.body(x)", unused.NAME, id="a layer that no loss reaches"),
    pytest.param("cross_entropy(model(x), y)", "cross_entropy(model(x), y, reduction='sum')", totals.NAME, id="a sum that is no mean"),
    pytest.param("            count += y.size(0)\n", "            count += 1\n", None, id="batches are counted"),
    pytest.param("(model.module(x).argmax(1) == y).sum().item()", "nn.functional.cross_entropy(model.module(x), y).item()", None, id="means of batches are added up"),
    pytest.param("    right, count = ddp.sum_all(right, count)\n", "    right = ddp.sum_all(right)\n", totals.NAME, id="one of two sums"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after", "invariant"), SPOILED)
def test_what_is_spoiled_is_named(before: str, after: str, invariant: str | None) -> None:
    assert before in RIGHT
    told = judged(RIGHT.replace(before, after, 1))
    names = {name for name, _ in told}
    assert invariant in names if invariant else not names, told


OUTPUTS = RIGHT.replace("return self.head(self.body(x))", "return {{'out': {out}}}").replace("model(x), y)", "model(x)['out'], y)")
OUTPUTS = OUTPUTS.replace("model.module(x).argmax", "model.module(x)['out'].argmax")


def test_what_a_wrapper_gives_in_a_dictionary_has_passed_through_it() -> None:
    right = OUTPUTS.format(out="self.head(self.body(x))")
    assert judged(right) == []
    past = judged(right.replace("cross_entropy(model(x)", "cross_entropy(model.module(x)"))
    assert {name for name, _ in past} == {wrapped.NAME}


def test_an_output_that_no_loss_is_made_of() -> None:
    text = OUTPUTS.format(out="self.body(x), 'more': self.head(self.body(x))")
    assert unused.NAME in {name for name, _ in judged(text)}


KEPT = RIGHT.replace("nn.ReLU(), nn.Dropout(0.1)", "nn.BatchNorm1d(8), nn.Dropout(0.1)")
SYNCED = KEPT.replace("    model.eval()\n", "    model.eval()\n    ddp.sync_buffers(model)\n")


@pytest.mark.parametrize(
    ("text", "right"),
    [
        (SYNCED, True),
        (KEPT, False),
        (KEPT.replace("ddp.wrap(Net())", "ddp.wrap(Net(), sync_bn=True)"), True),
        (KEPT.replace("    for epoch in range(4):\n", "    for epoch in range(4):\n        ddp.sync_buffers(model)\n"), False),
        (KEPT.replace("        model.train()\n", "        model.eval()\n"), True),
        (RIGHT, True),
    ],
)
def test_a_divided_evaluation_uses_one_set_of_running_statistics(text: str, right: bool) -> None:
    told = judged(text)
    assert (statistics.NAME in {n for n, _ in told}) is not right, told


SCALED = RIGHT.replace("    ddp.seed_ranks()\n", "    scaler = torch.amp.GradScaler()\n    ddp.seed_ranks()\n")
SCALED = SCALED.replace("loss.backward()", "scaler.scale(loss).backward()").replace("optimizer.step()", "scaler.step(optimizer)\n            scaler.update()")


@pytest.mark.parametrize(
    ("before", "after", "right"),
    [
        ("", "", True),
        ("scaler.step(optimizer)", "optimizer.step()", False),
        ("scaler.scale(loss).backward()", "loss.backward()", False),
        ("scaler.scale(loss).backward()", "(scaler.scale(loss) if torch.cuda.is_available() else loss).backward()", True),
    ],
)
def test_scaled_gradients_are_stepped_by_their_scaler(before: str, after: str, right: bool) -> None:
    assert before in SCALED
    told = judged(SCALED.replace(before, after, 1) if before else SCALED)
    assert {n for n, _ in told} == (set() if right else {scaling.NAME}), told


ONE_PROCESS = RIGHT.replace(SHARD, "shuffle={}").replace("ddp.wrap(Net())", "Net()").replace("ddp.local_batch(16)", "16").replace("model.module", "model")


@pytest.mark.parametrize(
    ("before", "after", "right"),
    [
        ("True", "", True),
        ("False", "shuffle=False, ", True),
        ("False", "", False),
        ("True", "shuffle=False, ", False),
        ("True", "shuffle=open('options').read() == 'y', ", False),
        ("open('options').read() == 'y'", "shuffle=open('options').read() == 'y', ", True),
        ("open('options').read() == 'y'", "", False),
        ("open('options').read() == 'y'", "shuffle=False, ", False),
    ],
)
def test_a_sampler_shuffles_where_the_loader_did(before: str, after: str, right: bool) -> None:
    texts = ONE_PROCESS.replace("shuffle={}", f"shuffle={before}"), RIGHT.replace(SHARD, f"sampler=ddp.DistributedSampler(train_set, {after}seed=0)")
    sources = [parse(t.encode(), "train.py") for t in texts]
    original, result = (Program.of(s) for s in sources if isinstance(s, Source))
    told = {f.invariant for f in faults(result, executed(original))}
    assert told == (set() if right else {sharded.NAME})


_CLIPPED = "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n            "
_OFF = "scaler.unscale_(optimizer)\n            "
_STEP = "scaler.step(optimizer)\n            scaler.update()"


@pytest.mark.parametrize(
    ("lines", "right"),
    [
        pytest.param(_OFF + _CLIPPED + _STEP, True, id="clipped without the scale"),
        pytest.param(_CLIPPED + _STEP, False, id="clipped with the scale"),
        pytest.param(_CLIPPED + _OFF + _STEP, False, id="taken off too late"),
        pytest.param("if torch.cuda.is_available():\n                " + _OFF + _CLIPPED + _STEP, True, id="taken off, perhaps"),
        pytest.param("if epoch > 1:\n                " + _OFF + _CLIPPED + _STEP, False, id="taken off in later epochs"),
        pytest.param("scaler.step(optimizer)", False, id="never updated"),
        pytest.param("scaler.update()\n            scaler.step(optimizer)", False, id="updated before the step"),
        pytest.param("if torch.cuda.is_available():\n                scaler.step(optimizer)\n            scaler.update()", False, id="updated where it did not step"),
        pytest.param("scaler.step(unseen.optimizer)\n            scaler.update()", True, id="an optimizer that is not followed"),
        pytest.param("scaler.step(optimizer)\n        scaler.update()", False, id="updated after the epoch"),
        pytest.param(_OFF + _OFF + _STEP, False, id="taken off twice"),
        pytest.param("scaler.step(optimizer)\n            " + _OFF + "scaler.update()", False, id="taken off after the step"),
        pytest.param("if epoch > 1:\n                scaler.step(optimizer)\n                scaler.update()", True, id="stepped at times"),
        pytest.param("scaler.step(optimizer)\n            scaler.step(other)\n            scaler.update()", True, id="two optimizers"),
        pytest.param("scaler.unscale_(other)\n            " + _OFF + _CLIPPED + _STEP, True, id="both"),
        pytest.param("scaler.unscale_(apart)\n            " + _CLIPPED + _STEP, False, id="off the gradients of other parameters"),
    ],
)
def test_a_scaler_does_each_thing_once_and_clipping_comes_after_the_scale(lines: str, right: bool) -> None:
    made = "    other = torch.optim.SGD(model.parameters(), lr=0.1)\n    apart = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1)\n"
    text = SCALED.replace(_STEP, lines).replace("    scaler = ", f"{made}    scaler = ")
    told = [n for n, _ in judged(text)]
    assert (scaling.NAME not in told) is right, told


def test_what_the_program_did_with_a_scaler_before_stays() -> None:
    result, original = (t.replace("scaler.step(optimizer)", "optimizer.step()") for t in (SCALED, SCALED))
    sources = [parse(t.encode(), "train.py") for t in (result, original)]
    programs = [Program.of(s) for s in sources if isinstance(s, Source)]
    assert scaling.NAME not in {f.invariant for f in faults(programs[0], executed(programs[1]))}


COUPLED = [
    pytest.param("(model(x) - y[:, None]).pow(2).mean().sqrt()", "(model(x) - y[:, None]).pow(2).mean().sqrt()", id="a root of a mean"),
    pytest.param("(nn.functional.normalize(model(x)) @ nn.functional.normalize(model(x)).t()).mean()", "@", id="each with each"),
    pytest.param("(model(x) / model(x).std(0)).mean()", "model(x).std(0)", id="a statistic of the batch"),
    pytest.param("(model(x) * torch.rand(1)).mean()", "", id="a weight that each rank draws"),
]


@pytest.mark.parametrize(("loss", "word"), COUPLED)
def test_a_loss_of_the_samples_of_a_batch_together_is_told(loss: str, word: str) -> None:
    text = RIGHT.replace("nn.functional.cross_entropy(model(x), y)", loss)
    source = parse(text.encode(), "train.py")
    assert isinstance(source, Source)
    doubts = judgement(Program.of(source)).doubts
    if not word:
        assert doubts == ()
        return
    (doubt,) = doubts
    assert "a rank's loss may be no mean over its samples" in doubt
    assert f": {word}, line" in doubt
    assert judgement(Program.of(source), settled=[totals.APART]).doubts == ()


TAGS = RIGHT.replace("        return self.head(self.body(x))\n", """\
        lengths = (x[:, 0] > 0) + 1
        packed = nn.utils.rnn.pack_padded_sequence(x[:, :, None].expand(-1, -1, 4), lengths, batch_first=True, enforce_sorted=False)
        out, lengths = nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)
        out = self.head(self.body(out))
        return {given}
""")


@pytest.mark.parametrize(
    ("given", "refused", "told"),
    [
        ("out.mean(1)", False, True),
        ("out[:, -1]", True, True),
        ("out.sum(-1, keepdim=True).mean(1) * torch.ones(2)", False, True),
        ("out.sum(1) / lengths[:, None]", False, False),
        ("out[:, 0]", False, False),
        ("out[torch.arange(len(x)), lengths - 1]", False, False),
    ],
)
def test_a_mean_counts_what_sequences_are_filled_up_with(given: str, refused: bool, told: bool) -> None:
    """What samples are reduced to over their padded places goes by the longest of a rank's part, as is told."""
    text = TAGS.format(given=given)
    found = judged(text)
    assert {n for n, _ in found} == ({totals.APART} if refused else set()), found
    source = parse(text.encode(), "train.py")
    assert isinstance(source, Source)
    assert bool(list(executed(Program.of(source)).trace.of(PADDING))) is told


CHOICE = """\
    if torch.cuda.device_count() > 3:
        loader = DataLoader(train_set, batch_size=ddp.local_batch(8), sampler=ddp.DistributedSampler(train_set, seed=1))
    for epoch in range"""


def test_one_of_two_samplers_is_told() -> None:
    text = RIGHT.replace("    for epoch in range", CHOICE, 1)
    assert judged(text) == []
    late = text.replace("        loader.sampler.set_epoch(epoch)\n", "", 1)
    assert {name for name, _ in judged(late)} == {epochs.NAME}


def test_the_ranks_may_draw_the_same_on_purpose() -> None:
    again = "        with ddp.same_stream():\n            torch.randperm(4)\n        model.train()\n"
    text = RIGHT.replace("    ddp.seed_ranks()\n", "").replace("        model.train()\n", again, 1).replace("nn.Dropout(0.1)", "nn.ReLU()")
    assert "with ddp.same_stream()" in text
    assert judged(text) == []
    assert {name for name, _ in judged(text.replace("with ddp.same_stream():", "if True:"))} == {streams.NAME}


OWN_SET = """\
class Own(torch.utils.data.Dataset):
    def __init__(self, rows):
        self.rows = rows
        self.names = [f"row {i}" for i in range(64)]
        self.noise = 0.1

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i], i % 2


def evaluate(model, loader):
"""
ORDERS = [
    ("random.shuffle(train_set.rows)", False),
    ("order = list(range(64))\n        random.shuffle(order)\n        train_set.rows = [train_set.rows[i] for i in order]", False),
    ("order = np.random.permutation(64)\n        train_set.rows = [train_set.rows[i] for i in order]", False),
    ("with ddp.same_stream():\n            random.shuffle(train_set.rows)", True),
    ("train_set.noise = random.random()", True),
    ("random.shuffle(other)", True),
]


@pytest.mark.parametrize(("drawn", "right"), ORDERS)
def test_the_ranks_divide_a_data_set_in_one_order(drawn: str, right: bool) -> None:
    text = RIGHT.replace("def evaluate(model, loader):\n", OWN_SET).replace("import torch\n", "import random\nimport numpy as np\nimport torch\n", 1)
    text = text.replace("train_set = TensorDataset(torch.randn(64, 4), torch.randint(0, 2, (64,)))", "other, train_set = [1, 2, 3], Own([torch.randn(4) for _ in range(64)])")
    text = text.replace("        loader.sampler.set_epoch(epoch)\n", f"        loader.sampler.set_epoch(epoch)\n        {drawn}\n")
    told = [w for name, w in judged(text) if name == sharded.NAME and "for itself" in w]
    assert bool(told) is not right, judged(text)


TEXTS = RIGHT.replace(
    "    train_set = TensorDataset(torch.randn(64, 4), torch.randint(0, 2, (64,)))\n",
    """\
    texts = ["low", "high"] * 32
    words = {words}
    number = {number}
    train_set = TensorDataset(torch.randn(64, 4), torch.tensor([number[t] for t in texts]))
""",
)
NUMBERED = "{w: i for i, w in enumerate(words)}"


@pytest.mark.parametrize(
    ("words", "number", "right"),
    [
        ("list(set(texts))", NUMBERED, False),
        ("set(texts)", NUMBERED, False),
        ("sorted(set(texts))", NUMBERED, True),
        ("ddp.from_main(list(set(texts)))", NUMBERED, True),
        ("list(dict.fromkeys(texts))", NUMBERED, True),
        ("set(texts)", "{w: len(w) for w in words}", False),  # not seen that the order is lost
    ],
)
def test_labels_are_numbered_alike_on_all_ranks(words: str, number: str, right: bool) -> None:
    told = judged(TEXTS.replace("{words}", words).replace("{number}", number))
    assert {n for n, _ in told} == (set() if right else {sharded.NAME}), told


READ_BACK = RIGHT.replace("    ddp.save(model.module.state_dict(), \"net.pt\")\n", """\
    path = {path}
    ddp.save(model.module.state_dict(), path)
{between}
    model.module.load_state_dict(torch.load({read}, map_location=ddp.device()))
    print(evaluate(model, test_loader))
""")


@pytest.mark.parametrize(
    ("path", "between", "read", "known"),
    [
        ("'net.pt'", "", "'net.pt'", True),
        ("open('options').read()", "", "path", True),
        ("'net.pt'", "    ddp.barrier()", "path", None),
        ("open('options').read()", "    ddp.barrier()", "path", None),
        ("'net.pt'", "", "'other.pt'", None),
        ("'net.pt'", "    if not ddp.is_main():\n        return", "path", None),
        ("'other.pt'", "    if ddp.is_main():\n        torch.save(path, 'net.pt')", "'net.pt'", True),
        ("'other.pt'", "    with ddp.main_first():\n        torch.save(path, 'net.pt')", "'net.pt'", None),
    ],
)
def test_no_rank_reads_what_rank_0_still_writes(path: str, between: str, read: str, known: bool | None) -> None:
    source = parse(READ_BACK.format(path=path, between=between, read=read).encode(), "train.py")
    assert isinstance(source, Source)
    told = [f.established for f in faults(Program.of(source)) if f.invariant == files.NAME]
    assert told == ([known] if known is not None else [])


def test_what_all_ranks_have_is_not_gathered() -> None:
    text = RIGHT.replace("right, count = 0, 0", "right, count, rows = 0, 0, []").replace("            count +=", "            rows.append(model.module(x).argmax(1))\n            count +=")
    text = text.replace("    return right / count", "    return right / count, len(ddp.gather_all(rows))").replace("ddp.shard(loader)", "ddp.shard(loader, blocks=True)")
    assert judged(text) == []
    whole = text.replace("ddp.shard(loader, blocks=True)", "loader").replace("    right, count = ddp.sum_all(right, count)\n", "")
    assert {w for _, w in judged(whole)} == {"what every rank has of all samples is put together: each would count several times"}


def test_training_is_not_in_the_stream_of_all() -> None:
    inside = RIGHT.replace("        for x, y in loader:\n            optimizer", "        for x, y in loader:\n          with ddp.same_stream():\n            optimizer")
    inside = inside.replace("            optimizer.zero_grad()", "            optimizer.zero_grad()", 1)
    assert "with ddp.same_stream():" in inside
    assert streams.NAME in {name for name, _ in judged(inside)}


@pytest.mark.parametrize(("count", "right"), [("known.sum()", True), ("y[known].numel()", True), ("y.numel()", False)])
def test_a_mean_is_weighted_by_what_it_is_a_mean_of(count: str, right: bool) -> None:
    loss = f"ddp.weighted_mean(nn.functional.cross_entropy(model(x)[known], y[known]), {count})"
    text = RIGHT.replace("            loss = nn.functional.cross_entropy(model(x), y)", f"            known = x[:, 0] > 0\n            loss = {loss}")
    assert loss in text
    assert (totals.NAME in {name for name, _ in judged(text)}) is not right


def test_what_is_not_established_says_so() -> None:
    text = RIGHT.replace("nn.functional.cross_entropy(model(x), y)", "unseen(model(x), y)", 1)
    source = parse(f"from elsewhere import unseen\n{text}".encode(), "train.py")
    assert isinstance(source, Source)
    found = list(faults(Program.of(source)))
    assert found
    assert not any(f.established for f in found)


@pytest.mark.parametrize("loss", ["loss = model(x, y)", "_, loss = model(x, y)"])
def test_how_a_loss_takes_the_samples_together_is_told_by_no_model_of_unseen_code(loss: str) -> None:
    text = RIGHT.replace("ddp.wrap(Net())", "ddp.wrap(Unseen())")
    text = text.replace("loss = nn.functional.cross_entropy(model(x), y)", loss, 1)
    assert loss in text
    source = parse(f"from elsewhere import Unseen\n{text}".encode(), "train.py")
    assert isinstance(source, Source)
    (found,) = {f for f in faults(Program.of(source)) if "the loss" in f.words}
    assert (found.invariant, found.established) == (totals.COUPLED, False)
    assert "Unseen, whose code is not seen" in found.words


#: losses that go through what a network gives, samples or several results
THROUGH = [
    "real, fake = model(x)\nloss = sum(((1 - r) ** 2).mean() for r in real + fake)",
    "real, fake = model(x)\nloss = 0\nfor r, f in zip(real, fake):\n    loss = loss + (r - f).abs().mean()",
    "found = model(x)\nloss = 0\nfor i in range(len(found)):\n    loss = loss + (found[i] ** 2).mean()",
    "loss = 0\nfor layer in model(x):\n    for part in layer:\n        loss = loss + part.pow(2).mean()",
    "loss = torch.stack([h.mean() for h in model(x).hidden]).sum()",
]


@pytest.mark.parametrize("loss", THROUGH)
def test_results_of_a_network_that_a_loop_goes_through_are_not_taken_for_samples(loss: str) -> None:
    """A list of maps, each of all samples: the sum of their means is a mean, and no sum over samples."""
    before = "loss = nn.functional.cross_entropy(model(x), y)"
    text = RIGHT.replace("ddp.wrap(Net())", "ddp.wrap(Unseen())")
    (line,) = {s for s in text.splitlines() if s.strip() == before}
    text = text.replace(line, indent(loss, line[: -len(before)]), 1)
    source = parse(f"from elsewhere import Unseen\n{text}".encode(), "train.py")
    assert isinstance(source, Source)
    (found,) = {f for f in faults(Program.of(source)) if "loss" in f.words}
    assert not found.established
    assert "results" in found.words


#: a batch of a divided test loader, of which rank 0 tells a number
LOOK = """\
        tests = DataLoader(train_set, batch_size=ddp.local_batch(16), sampler=ddp.DistributedSampler(train_set, seed=1))
        tests.sampler.set_epoch(epoch)
        with torch.no_grad():
            x, y = next(iter(tests))
            number = {number}
        {guard}
            print(number)
        print(epoch, evaluate"""


@pytest.mark.parametrize("guard", ["if ddp.is_main():", "if True:"])
@pytest.mark.parametrize(
    ("number", "right"),
    [
        ("(model.module(x) - 1).square().mean()", False),
        ("-10 * torch.log10((model.module(x) - 1).square().mean())", False),
        ("ddp.mean_all((model.module(x) - 1).square().mean())", True),
        ("loss.detach()", True),
    ],
)
def test_what_is_told_of_an_evaluation_is_of_all_samples(number: str, right: bool, guard: str) -> None:
    text = RIGHT.replace("        print(epoch, evaluate", LOOK.format(number=number, guard=guard))
    assert (totals.NAME in {name for name, _ in judged(text)}) is not right


TOLD = """\
            optimizer.step()
            total += loss.item() * x.size(0)
            seen += x.size(0)
            print(total / seen)
        {put_together}
        {told}
"""


@pytest.mark.parametrize(
    ("put_together", "told", "right"),
    [
        ("total, seen = ddp.sum_all(total, seen)", "print(total / seen)", True),
        ("", "if ddp.is_main():\n            print(f'{total:.3f}')", False),
        ("", "ddp.save({'model': model.module.state_dict(), 'loss': [total]}, 'a.pt')", False),
        ("total = ddp.sum_all(total)", "ddp.save({'loss': [total]}, 'a.pt')", True),
        ("", "print(loss.item())", True),  # of the last batch, which is no total
        ("total, seen = ddp.sum_all(total, seen)", "print(total / seen, time.time())", True),
        ("total, seen = ddp.sum_all(total, seen)", "print(f'{total / seen} {time.time()}')", True),
        ("", "print(f'{loss.item()} {time.time()}')", True),
        ("", "print(f'{loss.item()} {loss.item() * 2} {x.size(0)}')", True),
        ("seen = ddp.sum_all(seen)", "print(f'{total} {seen} {loss.item()}')", False),
        ("seen = y.numpy()[y.numpy() > 0].sum()", "print(seen)", False),  # a choice that is not followed
        ("seen = ddp.sum_all(y.numpy()[y.numpy() > 0].sum())", "print(seen / 2)", True),
        ("for i in range(len(y)):\n            if y[i] > 0:\n                seen += 1", "print(seen)", False),
    ],
)
def test_totals_of_the_training(put_together: str, told: str, right: bool) -> None:
    text = RIGHT.replace("            optimizer.step()\n", TOLD.format(put_together=put_together, told=told))
    text = text.replace("        model.train()\n", "        model.train()\n        total, seen = 0.0, 0\n")
    text = text.replace("import torch\n", "import time\nimport torch\n", 1)
    source = parse(text.encode(), "train.py")
    assert isinstance(source, Source)
    found = judgement(Program.of(source))
    assert bool(found.own_totals) is not right
    assert not any(f.established and f.invariant == totals.NAME for f in found.faults)


@pytest.mark.parametrize(
    ("told", "wrong"),
    [
        ("print(total / seen)", {totals.NAME}),
        ("print(total / (epoch * loader.batch_size))", {totals.NAME}),
        ("print(total / (seen * ddp.world_size()))", set()),
        ("print(total / len(train_set))", set()),
        ("print(1 / seen)", {own_totals.NAME}),
        ("print(total / len(kept))", {totals.NAME}),
        ("print(total / len(steps))", set()),
    ],
)
def test_a_total_of_all_ranks_divided_by_the_samples_of_one(told: str, wrong: set[str]) -> None:
    text = RIGHT.replace("            optimizer.step()\n", TOLD.format(put_together="total = ddp.sum_all(total)", told=told))
    text = text.replace("        model.train()\n", "        model.train()\n        total, seen = 0.0, 0\n")
    text = text.replace("            print(total / seen)\n", "            kept.extend(y.tolist())\n            steps.append(1)\n", 1)
    text = text.replace("total, seen = 0.0, 0\n", "total, seen = 0.0, 0\n        kept, steps = [], []\n")
    assert {name for name, _ in judged(text)} == wrong


def test_a_mean_divided_by_the_samples_of_one_rank_is_told() -> None:
    text = RIGHT.replace("            optimizer.step()\n", TOLD.format(put_together="total = ddp.mean_all(total)", told="print(total)"))
    text = text.replace("        model.train()\n", "        model.train()\n        total, seen = 0.0, 0\n").replace("loss.item() * x.size(0)", "loss.item()")
    source = parse(text.encode(), "train.py")
    assert isinstance(source, Source)
    (told,) = [s for s in judgement(Program.of(source)).assumed if "grows" in s]
    assert told.startswith("print(total / seen) tells a mean divided by one rank's part of a total: it grows with the number of ranks.")


def test_numbers_of_an_evaluation_in_a_file() -> None:
    right = RIGHT.replace("    return right / count", "    with open(ddp.main_path('a.json'), 'w') as f:\n        json.dump({'right': right}, f)\n    return right / count")
    right = right.replace("import torch\n", "import json\nimport torch\n", 1)
    assert judged(right) == []
    late = right.replace("    right, count = ddp.sum_all(right, count)\n", "").replace("    return right / count", "    right, count = ddp.sum_all(right, count)\n    return right / count")
    assert {name for name, _ in judged(late)} == {totals.NAME}


STEP = """\
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
"""


def _two(second: str) -> str:
    """Two losses, each with a backward of its own."""
    return RIGHT.replace(
        STEP,
        f"""\
            optimizer.zero_grad()
            out = model(x)
            loss = nn.functional.cross_entropy(out, y)
            loss.backward(retain_graph=True)
            {second}
            optimizer.step()
""",
    )


#: DDP without the runtime's completion of each backward
BY_HAND = "torch.nn.parallel.DistributedDataParallel(Net())"


def test_a_forward_is_differentiated_once() -> None:
    """By DDP itself; ``ddp.wrap`` averages each backward."""
    again = _two("(out ** 2).mean().backward()")
    assert judged(again) == []
    assert backwards.NAME in {name for name, _ in judged(again.replace("ddp.wrap(Net())", BY_HAND))}
    once = _two("(model(x) ** 2).mean().backward()").replace("ddp.wrap(Net())", BY_HAND)
    assert backwards.NAME not in {name for name, _ in judged(once)}
    assert judged(_two("(model(x) ** 2).mean().backward()")) == []
    assert judged(_two("(out.detach() ** 2).mean()")) == []


def test_a_second_backward_that_may_be_the_first_is_no_fault() -> None:
    text = RIGHT.replace(STEP, STEP.replace("            loss.backward()\n", "            if torch.cuda.is_available():\n                loss.backward(retain_graph=True)\n            loss.backward()\n"))
    assert backwards.NAME not in {name for name, _ in judged(text)}


@pytest.mark.parametrize("line", ["weights = model.state_dict()", "model.load_state_dict(torch.load('net.pt', map_location='cpu'))"])
def test_names_are_those_of_the_bare_model(line: str) -> None:
    text = RIGHT.replace("    ddp.seed_ranks()\n", f"    {line}\n    ddp.seed_ranks()\n")
    assert {name for name, _ in judged(text)} == {files.NAME}
    assert judged(text.replace(line, line.replace("model.", "model.module.", 1))) == []


def test_names_of_a_wrapper_that_the_original_has_as_well() -> None:
    line = "    weights = model.state_dict()\n"
    before = RIGHT.replace("ddp.wrap", "nn.DataParallel").replace("    ddp.seed_ranks()\n", line).replace("ddp.setup()", "pass").replace("    ddp.cleanup()\n", "")
    source = parse(before.encode(), "train.py")
    after = parse(RIGHT.replace("    ddp.seed_ranks()\n", f"{line}    ddp.seed_ranks()\n").encode(), "train.py")
    assert isinstance(source, Source)
    assert isinstance(after, Source)
    assert not [f for f in faults(Program.of(after), executed(Program.of(source))) if f.invariant == files.NAME]


def test_a_name_that_is_a_loader_or_something_else() -> None:
    """``loader.sampler.set_epoch``: a tensor has no sampler, and that path ends."""
    text = RIGHT.replace("    test_loader = ", "    if torch.cuda.device_count() > 3:\n        loader = torch.randn(64, 4)\n    test_loader = ")
    assert "loader = torch.randn" in text
    assert epochs.NAME not in {name for name, _ in judged(text)}


FLAG = """\
def want(module, flag):
    for p in module.parameters():
        p.requires_grad = flag


def main():
"""


def _frozen(*lines: tuple[str, str]) -> str:
    """The right result, with lines put before others of its own."""
    text = RIGHT.replace("def main():\n", FLAG)
    for line, next_line in lines:
        indent = next_line[: len(next_line) - len(next_line.lstrip())]
        text = text.replace(next_line, f"{indent}{line}\n{next_line}", 1)
    return text


SEED, FORWARD, MADE = "    ddp.seed_ranks()", "            loss = nn.functional", "    model = ddp.wrap("


def test_layers_frozen_after_the_wrap() -> None:
    assert judged(_frozen()) == []
    assert {name for name, _ in judged(_frozen(("want(model.module.body, False)", SEED)))} == {unused.NAME}
    assert {name for name, _ in judged(_frozen(("model.module.body.requires_grad_(False)", SEED)))} == {unused.NAME}
    # wanted again before the next backward
    assert judged(_frozen(("want(model, False)", SEED), ("want(model, True)", FORWARD))) == []


def test_layers_frozen_before_the_wrap() -> None:
    before = _frozen(("net = Net()", MADE), ("want(net.body, False)", MADE)).replace("ddp.wrap(Net())", "ddp.wrap(net)")
    assert judged(before) == []
    again = before.replace(SEED, "    want(model.module.body, True)\n" + SEED)
    assert {name for name, _ in judged(again)} == {wrapped.NAME}
    by_name = "for name, p in net.named_parameters():\n        p.requires_grad = name.startswith(os.environ['PART'])"
    chosen = "import os\n" + again.replace("want(net.body, False)", by_name)
    assert {name for name, _ in judged(chosen)} == {wrapped.NAME}
    # DDP is shown all parameters
    assert judged(again.replace("ddp.wrap(net)", "ddp.wrap(net, find_unused=True, thaws=True)")) == []


@pytest.mark.parametrize(
    ("forward", "penalty", "found"),
    [
        ("self.head(self.body(x))", "model.module.weight.sum()", True),
        ("self.head(self.body(x)) + self.weight.sum()", "model.module.head.weight.norm()", False),
        ("self.head(self.body(x)) * self.weight", "model.module.weight.sum()", False),
        ("self.body(x) * self.weight", "model.module.head.weight.norm()", True),
    ],
)
@pytest.mark.parametrize("option", [", find_unused_parameters=True", ""])
def test_a_parameter_that_a_loss_is_made_of_beside_forward(forward: str, penalty: str, found: bool, option: str) -> None:
    """DDP waits for its gradient as for any other, unless it has taken it for unused."""
    text = RIGHT.replace("        self.head =", "        self.weight = nn.Parameter(torch.ones(8))\n        self.head =", 1)
    text = text.replace("return self.head(self.body(x))", f"return {forward}")
    text = text.replace("            loss.backward()", f"            loss = loss + 0.1 * {penalty}\n            loss.backward()")
    assert {name for name, _ in judged(text.replace("ddp.wrap(Net())", "ddp.wrap(Net(), find_unused=True)"))} == set()
    told = {name for name, _ in judged(text.replace("ddp.wrap(Net())", BY_HAND[:-1] + f"{option})"))}
    assert (unused.NAME in told) is bool(found and option)


@pytest.mark.parametrize("move", ["model.to(device)", "model.cuda()", "model = model.to(device=device)"])
def test_a_model_that_is_moved_after_its_wrap(move: str) -> None:
    device = ("device = ddp.device()", MADE)
    late = _frozen(device, (move, SEED))
    assert {name for name, _ in judged(late)} == {wrapped.NAME}
    assert judged(late.replace("ddp.wrap(Net())", "ddp.wrap(Net().to(device))")) == []


def test_a_model_that_is_not_known_may_have_been_moved_before() -> None:
    device = ("device = ddp.device()", MADE)
    text = _frozen(device, ("model.to(device)", SEED)).replace("    model = ddp.wrap(Net())", "    net = Net() if x else missing.Net()\n    model = ddp.wrap({})")
    text = text.replace("import torch\n", "import torch\nimport sys\nimport missing\n\nx = len(sys.argv) > 1\n", 1)
    assert wrapped.NAME not in {name for name, words in judged(text.format("net.to(device)")) if "moved after" in words}
    assert any("moved after" in words for _, words in judged(text.format("net")))


@pytest.mark.parametrize("move", ["model.to(torch.float64)", "model.cpu()", "model.to('cpu')"])
def test_a_wrapper_that_stays_where_it_is(move: str) -> None:
    assert judged(_frozen((move, SEED))) == []


@pytest.mark.parametrize("away", ["model.cpu()", "model.to('cpu')", "model.module.cpu()", "ddp.unwrap(model).to(device='cpu')"])
@pytest.mark.parametrize("back", ["model.to(device)", "model.cuda()", "pass"])
def test_a_model_that_leaves_its_device_is_not_trained_again(away: str, back: str) -> None:
    placed = _frozen(("device = ddp.device()", MADE)).replace("ddp.wrap(Net())", "ddp.wrap(Net().to(device))")
    told = "        print(epoch, evaluate(model, test_loader))\n"
    assert told in placed
    again = placed.replace(told, f"{told}        {away}\n        {back}\n")
    assert {name for name, _ in judged(again)} == {wrapped.NAME}
    at_the_end = placed.replace('    ddp.save(model.module', f'    {away}\n    ddp.save(model.module')
    assert at_the_end != placed
    assert judged(at_the_end) == []
    copied = placed.replace(told, f"{told}        copy.deepcopy(model.module).cpu()\n").replace("import torch\n", "import copy\nimport torch\n", 1)
    assert judged(copied) == []


def test_a_look_at_the_first_batch_is_no_pass() -> None:
    look = "        size = len(next(iter(loader))[0])\n        model.train()\n"
    text = RIGHT.replace("        model.train()\n", look, 1)
    assert judged(text) == []
    late = text.replace("        loader.sampler.set_epoch(epoch)\n", "", 1)
    assert {name for name, _ in judged(late)} == {epochs.NAME}


def test_a_line_that_reads_several_names_is_counted_once() -> None:
    before = "import sys\nif len(sys.argv) > 1:\n    a = 1\n    b = 2\nprint(a, b)\nprint(a, b)\n"
    after = before.replace("print(a, b)\n", "print(b, a, b, a)\n", 1)

    def said(text: str) -> list[str]:
        sources = [parse(t.encode(), "train.py") for t in (text, before)]
        assert all(isinstance(s, Source) for s in sources)
        new, old = (Program.of(s) for s in sources if isinstance(s, Source))
        return [f.words for f in faults(new, executed(old)) if f.invariant == bound.NAME]

    assert said(after) == []
    assert said(before + "print(c)\n") == ["c is not bound here"]


def test_a_name_that_was_read_is_bound_from_there_on() -> None:
    before = RIGHT.replace("    model = ddp.wrap(Net())", "    if torch.cuda.is_available():\n        size = 8\n    assert size\n    print(size)\n    model = nn.DataParallel(Net())")
    source, after = parse(before.encode(), "train.py"), parse(before.replace("    print(size)", "    print(size, size)").encode(), "train.py")
    assert isinstance(source, Source)
    assert isinstance(after, Source)
    assert not [f for f in faults(Program.of(after), executed(Program.of(source))) if f.invariant == bound.NAME]


def test_of_a_part_of_a_trace_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = RIGHT.replace("model = ddp.wrap(Net())", "model = Net()\n    model.module = model")
    source, before = parse(wrong.encode(), "train.py"), parse(RIGHT.encode(), "train.py")
    assert isinstance(source, Source) and isinstance(before, Source)
    original = executed(Program.of(before))
    monkeypatch.setattr("dpmigrate.execution.budget.STEPS", 300)
    exhausted = executed(Program.of(before))
    for told in (judgement(Program.of(source), original), judgement(Program.of(source), exhausted)):
        (fault,) = told.faults
        assert not fault.established
        assert "the program is not understood: the program takes more steps" in fault.words
        assert told.doubts and not told.means
    monkeypatch.undo()
    assert any(f.established for f in judgement(Program.of(source), original).faults)


def test_the_program_before_is_executed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    first, again = (parse(RIGHT.encode(), "train.py") for _ in range(2))
    assert isinstance(first, Source) and isinstance(again, Source)
    kept = before(Program.of(first))
    assert before(Program.of(again)) is kept
    other = parse(RIGHT.replace("lr=0.1", "lr=0.2").encode(), "train.py")
    assert isinstance(other, Source)
    assert before(Program.of(other)) is not kept


@pytest.mark.parametrize(
    ("device", "right"),
    [
        ("'cuda'", True),
        ("args.where", True),
        ("ddp.device()", True),
        ("torch.device(args.where)", True),
        ("torch.device('cuda' if torch.cuda.is_available() else 'cpu')", True),
        ("torch.device('cpu')", True),
        ("'cuda:1'", False),
        ("1", False),
        ("torch.device('cuda', 0)", False),
        ("args.gpu", False),
        ("torch.device(args.gpu)", False),
        ("device=args.gpu", False),
    ],
)
@pytest.mark.parametrize("moved", ["model.to({})", "x = x.to({}, non_blocking=True)"])
def test_a_gpu_with_a_number_is_that_of_all_ranks(device: str, right: bool, moved: str) -> None:
    options = "args = argparse.Namespace()\n    parser = argparse.ArgumentParser()\n    parser.add_argument('--gpu', type=int, default=2)\n    parser.add_argument('--where', default='cuda')\n    args = parser.parse_args()\n"
    text = RIGHT.replace("import torch\n", "import argparse\nimport torch\n", 1).replace("    torch.manual_seed(0)\n", f"    {options}    torch.manual_seed(0)\n    x = torch.ones(2)\n")
    moved = moved.format(device) if "device=" not in device or "x.to" not in moved else f"x = x.to({device})"
    text = text.replace("    model = ddp.wrap(Net())\n", f"    model = Net()\n    {moved}\n    model = ddp.wrap(model)\n")
    assert {name for name, _ in judged(text)} == (set() if right else {devices.NAME})


@pytest.mark.parametrize(("given", "right"), [("0, map_location='cpu'", True), ("'a.pt', map_location='cuda:0'", False), ("'a.pt', 'cuda:1'", False)])
def test_a_file_of_a_number_is_no_gpu(given: str, right: bool) -> None:
    text = RIGHT.replace("    torch.manual_seed(0)\n", f"    torch.manual_seed(0)\n    state = torch.load({given})\n")
    assert {name for name, _ in judged(text)} == (set() if right else {devices.NAME})


@pytest.mark.parametrize(
    ("asked", "right"),
    [
        ("model.module.__class__.__name__", True),
        ("type(model.module).__name__", True),
        ("isinstance(model.module, Net)", True),
        ("isinstance(model, nn.Module)", True),
        ("isinstance(model, (nn.DataParallel, nn.parallel.DistributedDataParallel))", True),
        ("[isinstance(m, nn.Linear) for m in model.modules()]", True),
        ("isinstance(model, Other)", True),
        ("model.__class__.__name__", False),
        ("type(model).__name__", False),
        ("isinstance(model, Net)", False),
        ("isinstance(model, (Other, Net))", False),
    ],
)
def test_the_class_of_the_model_and_not_of_the_wrapper(asked: str, right: bool) -> None:
    text = RIGHT.replace("    ddp.save(", f"    print({asked})\n    ddp.save(").replace("class Net(", "class Other:\n    pass\n\n\nclass Net(")
    assert {name for name, _ in judged(text)} == (set() if right else {classes.NAME})


@pytest.mark.parametrize("read", ["out.logits", "out[0]", "out['logits']"])
def test_what_a_model_of_a_library_gives_has_passed_through_its_wrapper(read: str) -> None:
    text = RIGHT.replace("ddp.wrap(Net())", "ddp.wrap(AutoModelForSequenceClassification.from_pretrained('a'))").replace("import torch\n", "import torch\nfrom transformers import AutoModelForSequenceClassification\n", 1)
    text = text.replace("            loss = nn.functional.cross_entropy(model(x), y)", f"            out = model(x)\n            loss = nn.functional.cross_entropy({read}, y)")
    assert wrapped.NAME not in {name for name, _ in judged(text)}
    past = text.replace("out = model(x)", "out = model.module(x)")
    assert wrapped.NAME in {name for name, _ in judged(past)}


def test_one_of_several_loaders_is_told_the_epoch_also_where_another_is_not_known() -> None:
    several = "    if torch.cuda.is_available():\n        loader = DataLoader(train_set, batch_size=ddp.local_batch(8), sampler=ddp.DistributedSampler(train_set, seed=0))\n"
    several += "    elif torch.backends.mps.is_available():\n        loader = missing\n"
    text = RIGHT.replace("    test_loader = ", f"{several}    test_loader = ", 1)
    assert epochs.NAME not in {name for name, _ in judged(text)}
    untold = text.replace("        loader.sampler.set_epoch(epoch)\n", "")
    assert epochs.NAME in {name for name, _ in judged(untold)}


TWICE = """\
    for fold in range(2):
        torch.nn.init.normal_(torch.ones(2))
        with ddp.own_streams():
            for epoch in range(4):
"""


def test_what_is_built_between_two_trainings_is_drawn_by_all() -> None:
    head, body = RIGHT.split("    for epoch in range(4):\n")
    loop, tail = body.split("    ddp.save(")
    inner = "".join(f"        {line}\n" for line in loop.splitlines())
    whole = head.replace("    ddp.seed_ranks()\n", "") + TWICE + inner + "    ddp.save(" + tail
    assert judged(whole) == []
    alike = whole.replace("with ddp.own_streams():", "if True:")
    assert {name for name, _ in judged(alike)} == {streams.NAME}


@pytest.mark.parametrize(("method", "right"), [("__getitem__", True), ("read", False)])
def test_a_data_set_reads_its_samples_and_no_checkpoint(method: str, right: bool) -> None:
    own = "class Kept(torch.utils.data.Dataset):\n    def __init__(self, names):\n        self.names = names\n    def __len__(self):\n        return 64\n"
    own += f"    def {method}(self, i):\n        return torch.load(self.names[i]), 1\n"
    text = RIGHT.replace("def evaluate(", f"{own}\n\ndef evaluate(", 1).replace("import torch\n", "import sys\nimport torch\n", 1)
    read = "kept[epoch]" if right else "kept.read(epoch)"
    looked = f"        ddp.save(model.module.state_dict(), sys.argv[2])\n        print({read})\n"
    text = text.replace("        print(epoch, evaluate(model, test_loader))\n", looked).replace("    model = ddp.wrap", "    kept = Kept(sys.argv[3:])\n    model = ddp.wrap", 1)
    assert (files.NAME not in {name for name, _ in judged(text)}) is right


def test_what_every_object_has_is_the_wrappers_own() -> None:
    text = RIGHT.replace("    model.eval()\n", "    model.eval()\n    print(model.__dict__)\n", 1)
    assert "print(model.__dict__)" in text
    assert (wrapped.NAME, "__dict__ is the wrapper's own here") in judged(text)


MASKED = """\
            known = (y > 0).float()
            loss = (nn.functional.cross_entropy(model(x), y, reduction="none") * known).sum() / ddp.mean_count(known.sum())
            total += loss.item() * {weight}
"""


@pytest.mark.parametrize(
    ("weight", "right"),
    [("known.sum().item()", False), ("known.sum()", False), ("x.size(0)", True), ("ddp.mean_count(known.sum())", True)],
)
@pytest.mark.parametrize("put_together", ["total = ddp.sum_all(total)", "pass"])
def test_what_was_divided_by_the_count_of_all_is_weighted_by_it(weight: str, right: bool, put_together: str) -> None:
    text = RIGHT.replace("            loss = nn.functional.cross_entropy(model(x), y)\n", MASKED.format(weight=weight))
    text = text.replace("        model.train()\n", "        model.train()\n        total = 0.0\n")
    text = text.replace("        print(epoch, evaluate", f"        {put_together}\n        print(total)\n        print(epoch, evaluate")
    source = parse(text.encode(), "train.py")
    assert isinstance(source, Source)
    found = judgement(Program.of(source))
    wrong = any(f.established and f.invariant == totals.NAME for f in found.faults)
    assert wrong is (not right and "sum_all" in put_together)
    assert bool(found.own_totals) is ("sum_all" not in put_together)


SAMPLES = """\
class Samples(torch.utils.data.Dataset):
    def __init__(self, data):
        self.data = data

    def __len__(self):
        return len(self.data)

    def __getitem__(self, i):
        x, y = self.data[i]
        return x * {draw}, y


def main():
"""


@pytest.mark.parametrize("draw", ["random.random()", "np.random.rand()", "torch.rand(1)"])
def test_each_rank_draws_its_own_samples(draw: str) -> None:
    text = RIGHT.replace("def main():\n", SAMPLES.format(draw=draw)).replace("import torch\n", "import random\nimport numpy as np\nimport torch\n", 1)
    text = text.replace("    loader = DataLoader(train_set", "    train_set = Samples(train_set)\n    loader = DataLoader(train_set", 1)
    assert judged(text) == []
    assert {name for name, _ in judged(text.replace("    ddp.seed_ranks()\n", ""))} == {streams.NAME}


def test_what_the_program_draws_for_all_ranks() -> None:
    text = RIGHT.replace("nn.Dropout(0.1)", "nn.Identity()").replace("    ddp.seed_ranks()\n", "").replace("import torch\n", "import random\nimport torch\n", 1)
    drawn = text.replace("            optimizer.zero_grad()\n", "            if random.random() < 0.5:\n                continue\n            optimizer.zero_grad()\n", 1)
    assert "random.random" in drawn
    assert judged(drawn) == []


TRANSFORMED = """\
{definition}

class Samples(torch.utils.data.Dataset):
    pass


def main():
"""


@pytest.mark.parametrize(
    ("definition", "handed"),
    [
        ("def moved(x):\n    return x + random.random()\n", "transform=moved"),
        ("def moved(x):\n    return x + random.random()\n", "transform=transforms.Compose([transforms.Lambda(moved)])"),
        ("class Moved:\n    def __call__(self, x):\n        return x + random.random()\n", "transform=transforms.Compose([Moved()])"),
    ],
)
def test_transforms_draw_as_each_rank_does(definition: str, handed: str) -> None:
    text = RIGHT.replace("def main():\n", TRANSFORMED.format(definition=definition)).replace(
        "import torch\n", "import random\nimport torch\nfrom torchvision import datasets, transforms\n", 1
    )
    made = f'    train_set = datasets.FakeData(64, (4,), 2, {handed})\n'
    text = text.replace("    loader = DataLoader(train_set", f"{made}    loader = DataLoader(train_set", 1)
    assert streams.NAME not in {name for name, _ in judged(text)}
    assert streams.NAME in {name for name, _ in judged(text.replace("    ddp.seed_ranks()\n", ""))}


FILLED = """\
def made():
    if os.path.exists("features"):
        return False
    os.makedirs("features", exist_ok=True)
    return True


def prepared():
    {first}
        new = made()
    {between}
    if new:
        {write}


def main():
    prepared()
"""


@pytest.mark.parametrize("write", ["np.save('features/0.npy', np.zeros(3))", "open('features/0.txt', 'w')", "ddp.save({'a': 1}, 'features/0.pt')"])
@pytest.mark.parametrize(
    ("first", "between", "wrong"),
    [
        ("with ddp.main_first():", "", True),
        ("with ddp.main_first():", "new = ddp.from_main(new)", False),
        ("if ddp.is_main():\n        new = False\n    if True:", "", False),
    ],
)
def test_what_the_ranks_found_in_their_turns_decides_nothing_later(write: str, first: str, between: str, wrong: bool) -> None:
    text = RIGHT.replace("def main():\n", FILLED.format(write=write, first=first, between=between)).replace("import torch\n", "import os\nimport numpy as np\nimport torch\n", 1)
    words = {w for _, w in judged(text)}
    assert any("the ranks part here" in w for w in words) is wrong


def test_files_that_rank_0_makes_in_its_turn() -> None:
    inside = FILLED.replace("    if new:\n        {write}", "        if new:\n            {write}").format(write="np.save('a.npy', np.zeros(3))", first="with ddp.main_first():", between="")
    text = RIGHT.replace("def main():\n", inside).replace("import torch\n", "import os\nimport numpy as np\nimport torch\n", 1)
    assert "            np.save" in text
    assert judged(text) == []


@pytest.mark.parametrize(
    ("between", "wrong"),
    [("", True), ("    ddp.barrier()\n", False), ("    total = ddp.sum_all(1)\n", False), ("    print('made')\n", True)],
)
@pytest.mark.parametrize("removed", ["shutil.rmtree('out')", "os.rmdir('out')"])
@pytest.mark.parametrize("makes", ["os.makedirs('out', exist_ok=True)", "open('out/a.txt', 'a')"])
def test_no_rank_makes_a_folder_that_rank_0_removes(between: str, wrong: bool, removed: str, makes: str) -> None:
    lines = f"def main():\n    if ddp.is_main():\n        {removed}\n{between}    {makes}\n"
    text = RIGHT.replace("def main():\n", lines).replace("import torch\n", "import os\nimport shutil\nimport torch\n", 1)
    said = {w for _, w in judged(text)}
    assert any("may still be removing" in w for w in said) is (wrong and "makedirs" in makes)


_PARTS = """
    def features(self, x):
        return self.body(x)

    def norm(self, x):
        return x.pow(2).mean()
"""
_FORWARD = "        return self.head(self.body(x))\n"


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        pytest.param("pass", "{METHOD}'norm')(x)", True, id="a method without parameters after forward"),
        pytest.param("{METHOD}'norm')(x)", "pass", False, id="a method without parameters before it"),
        pytest.param("pass", "{METHOD}'features')(x).mean()", True, id="a part of the parameters after forward"),
        pytest.param("{METHOD}'features')(x).mean()", "pass", False, id="a part of them before it"),
        pytest.param("pass", "model(x).mean()", False, id="forward twice"),
        pytest.param("{METHOD}'features')(x).mean()", "model(x).mean()", False, id="a part between two forwards"),
        pytest.param("{METHOD}'features')(x).mean()", "{METHOD}'norm')(x)", True, id="a part and nothing"),
    ],
)
@pytest.mark.parametrize("rare", [False, True])
@pytest.mark.parametrize("option", [", find_unused_parameters=True", ""])
def test_a_pass_after_that_of_a_part(before: str, after: str, found: bool, rare: bool, option: str) -> None:
    """What DDP does with two passes before one backward was found by runs on two processes."""
    assert _FORWARD in RIGHT
    text = RIGHT.replace(_FORWARD, _FORWARD + _PARTS, 1)
    lines = [e.replace("{METHOD}", "ddp.method(model, ") for e in (before, after)]
    first, last = (f"extra = extra + {e}" if e != "pass" else e for e in lines)
    if rare:
        first, last = (f"if epoch > 1: {e}" for e in (first, last))
    text = text.replace(FORWARD, f"            extra = 0.0\n            {first}\n{FORWARD}", 1)
    text = text.replace("            loss.backward()", f"            {last}\n            (loss + extra).backward()", 1)
    assert {name for name, _ in judged(text.replace("ddp.wrap(Net())", "ddp.wrap(Net(), find_unused=True)"))} == set()
    told = {name for name, _ in judged(text.replace("ddp.wrap(Net())", BY_HAND[:-1] + f"{option})"))}
    assert (unused.NAME in told) is bool(found and option)


def test_passes_on_two_sides_of_a_test() -> None:
    """Neither comes after the other."""
    text = RIGHT.replace(_FORWARD, _FORWARD + _PARTS, 1).replace("ddp.wrap(Net())", "ddp.wrap(Net(), find_unused=True)")
    sides = '            if epoch > 1:\n                loss = model(x).mean()\n            else:\n                loss = ddp.method(model, "features")(x).mean()\n'
    text = text.replace("            loss.backward()", sides + "            loss.backward()", 1)
    text = text.replace(next(line for line in text.splitlines(True) if line.startswith(FORWARD)), "", 1)
    assert {name for name, _ in judged(text)} == set()


def test_a_backward_is_done_with_the_passes_before_it() -> None:
    text = RIGHT.replace(_FORWARD, _FORWARD + _PARTS, 1).replace("ddp.wrap(Net())", "ddp.wrap(Net(), find_unused=True)")
    again = '            loss.backward()\n            ddp.method(model, "features")(x).mean().backward()'
    assert unused.NAME not in {name for name, _ in judged(text.replace("            loss.backward()", again, 1))}
