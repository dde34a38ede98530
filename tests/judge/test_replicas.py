"""What a rank does by itself to what all ranks have in common: parameters, settings, files, data sets."""

from __future__ import annotations

import pytest

from dpmigrate.judge import faults, files, replicas, sharded, totals
from dpmigrate.judge.trial import Trial, executed
from dpmigrate.program import Program
from dpmigrate.source import Source, parse
from tests.judge.trained import result

TRAINED = '''\
import os
import random
import secrets

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset
import dpmigrate_runtime as ddp


class Rows(Dataset):
    def __init__(self, names):
        self.rows = [(n, 0) for n in names]
        self.strength = 1.0

    def draw(self):
        self.rows = [(n, np.random.randint(9)) for n, _ in self.rows]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        name, other = self.rows[i]
        return torch.tensor([float(name), float(other)]), torch.tensor(name % 2)


ddp.setup()
{begin}
data = Rows({names})
loader = DataLoader(data, batch_size=ddp.local_batch(16), sampler=ddp.DistributedSampler(data, seed=0))
net = nn.Linear(2, 2)
copy = nn.Linear(2, 2)
model = ddp.wrap(net)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
ddp.seed_ranks()
last, loss = 0.0, torch.zeros(())
for epoch in range(4):
    loader.sampler.set_epoch(epoch)
    {epoch}
    total = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        {turn}
        total += loss.item() * len(x)
    {end}
ddp.cleanup()
'''


def told(names: str = "range(64)", begin: str = "", epoch: str = "", turn: str = "", end: str = "") -> list[tuple[str, bool]]:
    lines = {"begin": begin, "epoch": epoch.replace("\n", "\n    "), "turn": turn.replace("\n", "\n        "), "end": end}
    source = parse(TRAINED.format(names=names, **lines).encode(), "train.py")
    assert isinstance(source, Source)
    return sorted({(f.invariant, f.established) for f in faults(Program.of(source))})


def test_the_right_program_has_no_fault() -> None:
    assert told() == []


@pytest.mark.parametrize(
    ("turn", "right"),
    [
        pytest.param("net.weight.data.clamp_(-1, 1)", True, id="a bound"),
        pytest.param("net.weight.data = net.weight.data.clamp(-1, 1)", True, id="a bound, given anew"),
        pytest.param("for p, q in zip(copy.parameters(), net.parameters()):\n    p.data.mul_(0.9).add_(q.data, alpha=0.1)", True, id="an average"),
        pytest.param("copy.weight.data.mul_(loss.item())", True, id="another model"),
        pytest.param("x.mul_(loss.item())", True, id="a batch"),
        pytest.param("net.bias.data.mul_(ddp.mean_all(loss.item()))", True, id="of all ranks"),
        pytest.param("net.bias.data.mul_(loss.item())", False, id="of a rank"),
        pytest.param("with torch.no_grad():\n    net.bias.mul_(loss.item())", False, id="without gradients"),
        pytest.param("with torch.no_grad():\n    net.bias[0] = loss.item()", False, id="an element"),
        pytest.param("net.bias.data = x.mean(0)", False, id="given anew"),
        pytest.param("for p in model.parameters():\n    p.data.add_(x.mean())", False, id="each of them"),
        pytest.param("[p for p in model.parameters()][0].data.add_(x.mean())", True, id="an expression that is not read again"),
        pytest.param("net.name = x.mean()", True, id="another attribute"),
        pytest.param("net.weight.mul(2).add_(x.mean())", True, id="what has just been computed"),
        pytest.param("net.bias.data.mul_(0.5).add_(x.mean())", False, id="one after the other"),
    ],
)
def test_no_rank_writes_a_parameter_by_itself(turn: str, right: bool) -> None:
    assert [t for t in told(turn=turn) if t[0] == replicas.NAME] == ([] if right else [(replicas.NAME, True)])


@pytest.mark.parametrize("line", ["net.reset_parameters()", "nn.init.normal_(net.weight)", "nn.init.normal_(model.module.weight)"])
def test_weights_are_drawn_from_a_stream_of_all_ranks(line: str) -> None:
    assert (replicas.NAME, True) in told(epoch=f"if epoch == 2:\n    {line}")
    assert told(epoch=f"if epoch == 2:\n    with ddp.same_stream():\n        {line}") == []
    assert (replicas.NAME, True) not in told(epoch="nn.init.zeros_(net.weight)")


@pytest.mark.parametrize(
    ("turn", "right"),
    [
        pytest.param("for group in optimizer.param_groups:\n    group['lr'] = 0.1 / (epoch + 1)", True, id="by the epoch"),
        pytest.param("if ddp.mean_all(loss.item()) > last:\n    for group in optimizer.param_groups:\n        group['lr'] *= 0.9", True, id="all"),
        pytest.param("if loss.item() > last:\n    for group in optimizer.param_groups:\n        group['lr'] *= 0.9", False, id="some"),
        pytest.param("optimizer.param_groups[0]['lr'] = 0.1 * loss.item()", False, id="a number"),
        ("if ddp.is_main():\n    print(optimizer.param_groups[0]['lr'])", True),  # what it asks for has been there before
        ("if ddp.is_main():\n    optimizer.param_groups[0]['lr'] = 0.01", False),
    ],
)
def test_no_rank_sets_its_optimizer_by_itself(turn: str, right: bool) -> None:
    assert [t for t in told(turn=turn) if t[0] == replicas.NAME] == ([] if right else [(replicas.NAME, True)])


@pytest.mark.parametrize(("given", "right"), [("total", False), ("loss.item()", False), ("ddp.sum_all(total)", True), ("epoch", True)])
def test_no_rank_steps_its_scheduler_by_itself(given: str, right: bool) -> None:
    assert told(end=f"scheduler.step({given})") == ([] if right else [(replicas.NAME, True)])


@pytest.mark.parametrize(
    ("begin", "end", "right"),
    [
        pytest.param("", "if epoch:\n    net.load_state_dict(best)", True, id="by the epoch"),
        pytest.param("", "if ddp.sum_all(total) > last:\n    best = copy.state_dict()\nnet.load_state_dict(best)", True, id="all"),
        pytest.param("", "if total > last:\n    best = copy.state_dict()\nnet.load_state_dict(best)", False, id="chosen by some"),
        pytest.param("", "if total > last:\n    net.load_state_dict(best)", False, id="loaded by some"),
        pytest.param("", "if loss > last:\n    optimizer.load_state_dict(kept)", False, id="of an optimizer"),
        pytest.param("", "net.load_state_dict({'weight': best['weight'], 'bias': best['bias'] * loss.item()})", True, id="numbers in a dictionary"),
        pytest.param("", "if ddp.is_main():\n    copy.load_state_dict(best)", True, id="on rank 0"),
        pytest.param("others", "if seen > last:\n    best = copy.state_dict()\nnet.load_state_dict(best)", True, id="all batches of another loader"),
        pytest.param("ddp.shard(others)", "if seen > last:\n    best = copy.state_dict()\nnet.load_state_dict(best)", False, id="some of them"),
    ],
)
def test_no_rank_loads_a_state_by_itself(begin: str, end: str, right: bool) -> None:
    others = f"seen = 0.0\nfor a, _ in {begin or 'others'}:\n    seen += copy(a).sum().item()\n{end}"
    made = "others = DataLoader(TensorDataset(torch.randn(64, 2), torch.zeros(64)), batch_size=16)\n"
    found = told(begin=made, epoch="best = copy.state_dict()\nkept = optimizer.state_dict()", end=others.replace("\n", "\n    "))
    assert ((replicas.NAME, True) in found) is not right


@pytest.mark.parametrize(
    ("seen", "right"),
    [("copy(a)", True), ("nn.functional.dropout(copy(a))", False), ("copy(a + torch.randn_like(a))", False), ("nn.functional.dropout(copy(a), training=False)", True)],
)
@pytest.mark.parametrize("trains_on", [True, False])
def test_no_rank_loads_a_state_that_its_own_draws_have_chosen(seen: str, right: bool, trains_on: bool) -> None:
    made = "others = DataLoader(TensorDataset(torch.randn(64, 2), torch.zeros(64)), batch_size=16)\nbest = None\n"
    choice = f"seen = 0.0\nfor a, _ in others:\n    seen += {seen}.sum().item()\nif seen > last:\n    best = copy.state_dict()"
    load = "\nnet.load_state_dict(best)" if trains_on else "\nif epoch == 3:\n    break\n"
    end = (choice + load).replace("\n", "\n    ") + ("" if trains_on else "\nnet.load_state_dict(best)")
    found = told(begin=made, end=end)
    assert ((replicas.NAME, True) in found) is not (right or not trains_on)


@pytest.mark.parametrize(
    ("names", "epoch", "known"),
    [
        pytest.param("[n for n in range(99) if hash(str(n)) % 3]", "", True, id="by the hash of a text"),
        pytest.param("[n for n in range(99) if hash(n) % 3]", "", True, id="by the hash of what is not known"),
        pytest.param("[n for n in range(99) if n % 3]", "", None, id="by the number"),
        pytest.param("[n for n in range(99) if ddp.same_hash(str(n)) % 3]", "", None, id="by a hash of all ranks"),
        pytest.param("range(64)", "data.draw()", False, id="drawn numbers in a list"),
        pytest.param("random.SystemRandom(1).sample(range(99), 64)", "", False, id="drawn from the system"),
        pytest.param("random.Random(1).sample(range(99), 64)", "", None, id="drawn with one seed"),
        pytest.param("[secrets.choice((1, 2)) for _ in range(64)]", "", False, id="numbers of the process"),
        pytest.param("range(64)", "with ddp.same_stream():\n    data.draw()", None, id="drawn by all ranks"),
        pytest.param("range(64)", "data.strength = np.random.rand()", None, id="a drawn number"),
    ],
)
def test_no_rank_has_a_data_set_of_its_own(names: str, epoch: str, known: bool | None) -> None:
    assert told(names=names, epoch=epoch) == ([(sharded.NAME, known)] if known is not None else [])


@pytest.mark.parametrize(
    ("line", "right"),
    [
        pytest.param("open('log.txt', 'w').write('a')", False, id="open"),
        pytest.param("log = open(os.path.join(os.environ['OUT'], 'log.txt'), mode='a+')", False, id="a folder that is given"),
        pytest.param("open('log.txt').read()", True, id="read"),
        pytest.param("open('log.txt', 'rb').read()", True, id="read as bytes"),
        pytest.param("open('log.txt', os.environ['MODE'])", True, id="in a way that is not known"),
        pytest.param("open(ddp.main_path('log.txt'), 'w').write('a')", True, id="a path of rank 0"),
        pytest.param("open(f'log{ddp.rank()}.txt', 'w').write('a')", True, id="a file of each rank"),
        pytest.param("if ddp.is_main():\n    open('log.txt', 'w').write('a')", True, id="on rank 0"),
        pytest.param("log = ddp.main_only(open, 'log.txt', 'w')", True, id="an object of rank 0"),
        pytest.param("with ddp.main_first():\n    open('log.txt', 'w').write('a')", True, id="one after the other"),
        pytest.param("os.makedirs('out')", False, id="a folder"),
        pytest.param("os.makedirs('out', exist_ok=True)", True, id="a folder that may be there"),
        pytest.param("try:\n    os.mkdir('out')\nexcept FileExistsError:\n    pass", True, id="a folder that is there"),
        pytest.param("if ddp.is_main():\n    os.mkdir('out')", True, id="a folder of rank 0"),
        pytest.param("old = os.environ['OLD']\nold.rename(target=os.environ['NEW'])", False, id="a path that gets another name"),
        pytest.param("old = os.environ['OLD']\nnew = old.rename(columns={'a': 'b'})", True, id="columns that get other names"),
        pytest.param("name = input('name')", False, id="a question"),
        pytest.param("name = ddp.from_main(ddp.main_only(input, 'name'))", True, id="a question of rank 0"),
    ],
)
def test_rank_0_alone_writes_and_asks(line: str, right: bool) -> None:
    assert told(begin=line) == ([] if right else [(files.ALONE, True)])


def test_what_rank_0_was_told_is_not_known_to_the_others() -> None:
    line = "name = ddp.main_only(input, 'name')\nif name == 'more':\n    epochs = ddp.mean_all(3.0)"
    assert ("all ranks reach what they do together", True) in told(begin=line)


@pytest.mark.parametrize(("count", "right"), [("loader.sampler", False), ("loader.sampler.whole", True), ("data", True), ("loader.dataset", True)])
def test_the_samples_of_a_sampler_are_those_of_its_rank(count: str, right: bool) -> None:
    found = told(end=f"total = ddp.sum_all(total)\n    print(total / len({count}))")
    assert found == ([] if right else [(totals.NAME, True)])


@pytest.mark.parametrize(
    ("change", "told"),
    [
        pytest.param("nn.utils.vector_to_parameters(nn.utils.parameters_to_vector(net.parameters()) * 0.9, net.parameters())", False, id="a vector"),
        pytest.param("nn.utils.vector_to_parameters(nn.utils.parameters_to_vector(net.parameters()) * x.mean(), net.parameters())", True, id="a vector by the batch"),
        pytest.param("torch._foreach_mul_(list(net.parameters()), 0.9)", False, id="all of a list"),
        pytest.param("torch._foreach_mul_(list(net.parameters()), x.mean())", True, id="all of a list by the batch"),
        pytest.param("net.weight.data[i % 2] = 0.0", False, id="a row"),
        pytest.param("net.weight.data[random.randrange(2)] = 0.0", True, id="a row by a draw"),
        pytest.param("net.weight.data[random.randrange(2)].zero_()", True, id="a row by a draw, in place"),
        pytest.param("net.weight.data.normal_()", True, id="drawn anew"),
        pytest.param("with ddp.same_stream():\n    net.weight.data.normal_()", False, id="drawn anew by all alike"),
        pytest.param("k = random.randrange(2)\nwith ddp.same_stream():\n    net.weight.data[k].normal_()", True, id="a row by a draw, drawn anew by all alike"),
        pytest.param("net.weight.requires_grad_(i > 5)", False, id="trained later"),
        pytest.param("net.weight.requires_grad_(random.random() > 0.5)", True, id="trained by a draw"),
    ],
)
def test_what_a_step_writes_into_parameters(change: str, told: bool) -> None:
    case = Trial(executed(result(turn=change)))
    assert bool(list(replicas.faults(case))) is told


def test_a_sampler_that_each_rank_may_choose_by_itself() -> None:
    made = "ddp.DistributedSampler(data, seed=0)"
    text = TRAINED.format(names="range(64)", begin="", epoch="pass", turn="pass", end="pass")
    source = parse(text.replace(f"sampler={made}", f"sampler={made} if secrets.randbelow(2) else {made}").encode(), "train.py")
    assert isinstance(source, Source)
    found = list(sharded.faults(Trial(executed(Program.of(source)), None)))
    assert [f.words.partition(":")[0] for f in found if "sampler" in f.words or "loader" in f.words] == ["not all ranks may have the same loader here"]
