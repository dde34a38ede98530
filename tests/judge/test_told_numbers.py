"""Numbers that are told: what is in a text counts one by one, a part's batch size, losses that have the value of all ranks already, samples by their place."""

from __future__ import annotations

import pytest

from dpmigrate.execution.arithmetic import WHOLE_AND_PART
from dpmigrate.judge import counts, devices, judged, totals
from dpmigrate.program import Program
from dpmigrate.source import Source, parse
from tests.judge.test_decided import said
from tests.judge.trained import result

_MEAN = "total = ddp.mean_all(total)\n"


@pytest.mark.parametrize(
    ("end", "wrong"),
    [
        pytest.param(_MEAN + "print(total / loader.batch_size)", True, id="a part's batch size"),
        pytest.param(_MEAN + "print(f'{epoch} {total:.2f} {total / loader.batch_size:.2f}')", True, id="in a text with others"),
        pytest.param(_MEAN + "print('%d %f' % (epoch, total / loader.batch_size), loss.item())", True, id="in a text of another kind"),
        pytest.param(_MEAN + "print(f'{total:.2f} {total / len(loader):.2f} {total / val_loader.batch_size:.2f}')", False, id="that of a loader that is not divided"),
        pytest.param(_MEAN + "print(f'{epoch} {total / 64:.2f}')", False, id="a number of all ranks"),
    ],
)
def test_a_number_of_all_ranks_divided_by_that_of_one(end: str, wrong: bool) -> None:
    found = [f for f in judged(result(end=end)).faults if f.invariant == totals.NAME and "as many times too great" in f.words]
    assert bool(found) is wrong


@pytest.mark.parametrize(
    ("turn", "end", "wrong"),
    [
        pytest.param("seen = seen + len(x)\nseen = ddp.sum_all(seen)", "", True, id="in each turn"),
        pytest.param("right += (out.argmax(1) == y).sum().item()\nseen += len(x)\nright, seen = ddp.sum_all(right, seen)", "", True, id="two at once"),
        pytest.param("seen += len(x)", "old = ddp.sum_all(seen)\nboth = ddp.sum_all(old + seen)", True, id="the whole and the part"),
        pytest.param("seen += ddp.sum_all(len(x))", "print(seen)", False, id="the turn's own"),
        pytest.param("seen += len(x)", "seen = ddp.sum_all(seen)\nprint(seen + 1)", False, id="once, after the loop"),
    ],
)
def test_what_all_ranks_have_is_not_added_up_again(turn: str, end: str, wrong: bool) -> None:
    found = [f for f in judged(result(epoch="right = seen = 0", turn=turn, end=end)).faults if WHOLE_AND_PART in f.words]
    assert bool(found) is wrong


def test_a_weighted_mean_is_that_of_all_ranks() -> None:
    step = "w = (y > 0).sum()\n"
    mean = "loss = ddp.weighted_mean(nn.functional.cross_entropy(model(x), y, ignore_index=0), (y > 0).sum())\nprint(loss.item())"
    assert not said("tells numbers of rank 0's part", turn=mean)
    assert said("tells numbers of rank 0's part", turn=step + "print(loss.item())")


@pytest.mark.parametrize(
    ("turn", "least"),
    [
        pytest.param("print(out[1].detach())", 2, id="the second"),
        pytest.param("print(out.detach()[-3, 0])", 3, id="the third from the end"),
        pytest.param("for i in (1, 3, 2):\n    print(out[i].detach())", 4, id="several"),
        pytest.param("for i in range(10):\n    print(out[i].detach())", 10, id="the first ten"),
        pytest.param("few = out[:10].detach()\nfor i in range(10):\n    print(few[i])", 10, id="the first ten, cut out before"),
        pytest.param("for i in range(min(10, len(out))):\n    print(out[i].detach())", None, id="as many as there are"),
        pytest.param("print(out[0].detach(), out[-1].detach())", None, id="the first and the last"),
        pytest.param("print(out[:, 1].detach())", None, id="a column"),
    ],
)
def test_a_sample_by_its_place(turn: str, least: int | None) -> None:
    words = said("samples in a rank's part of a batch", turn=turn)
    assert (f"needs at least {least} samples" in words[0] if least else not words), words


def test_what_is_advised_of_samples_by_their_places() -> None:
    turn = "print(out[3].detach())"
    (words,) = said("needs at least 4 samples", turn=turn)
    assert "set drop_last=True, or ask for len() first" in words
    program = result(turn=turn)
    text = program.entry.text.replace("sampler=ddp.DistributedSampler(data, seed=0))", "drop_last=True, sampler=ddp.DistributedSampler(data, seed=0, drop_last=True))")
    assert "sampler=ddp.DistributedSampler(data, seed=0, drop_last=True)" in text
    source = parse(text.encode(), "train.py")
    assert isinstance(source, Source)
    (words,) = (s for s in judged(Program.of(source)).assumed if "needs at least 4 samples" in s)
    assert words.endswith("divided by the number of ranks: ask for len() first.")


def test_a_sample_whose_place_is_an_option() -> None:
    turn = "import sys\nfor i in range(int(sys.argv[1])):\n    print(out[i].detach())"
    assert said("needs the sample of this number in a rank's part of a batch", turn=turn)


@pytest.mark.parametrize(
    ("end", "wrong"),
    [
        pytest.param("net.to('mps')", True, id="a name"),
        pytest.param("net.to(torch.device('mps'))", True, id="a device"),
        pytest.param("net.to('mps' if torch.backends.mps.is_available() else 'cpu')", False, id="if there is one"),
        pytest.param("place = torch.device('mps') if torch.backends.mps.is_available() else torch.device('cuda')\nnet.to(place)", False, id="devices"),
        pytest.param("net.to('cpu')", False, id="another one"),
    ],
)
def test_a_device_that_ddp_does_not_support(end: str, wrong: bool) -> None:
    found = [f for f in judged(result(end=end)).faults if f.invariant == devices.NAME]
    assert bool(found) is wrong


@pytest.mark.parametrize(
    ("divisor", "right"),
    [
        ("ddp.mean_count(mask.sum())", True),
        ("(ddp.mean_count(mask.sum()) + 1e-8 / ddp.world_size())", True),
        ("(1e-8 / ddp.world_size() + ddp.mean_count(mask.sum()))", True),
        ("(mask.sum() + 1e-8 / ddp.world_size())", False),
        ("(ddp.mean_count(mask.sum()) + 1.0)", False),
    ],
)
def test_a_count_of_all_ranks_and_what_keeps_it_from_zero(divisor: str, right: bool) -> None:
    turn = f"mask = (y > 0).float()\nlate = (nn.functional.cross_entropy(model(x), y, reduction='none') * mask).sum() / {divisor}\nlate.backward()\noptimizer.step()"
    found = [f for f in judged(result(turn=turn)).faults if f.invariant in (totals.NAME, totals.COUPLED, totals.APART)]
    assert (not found) is right, found


@pytest.mark.parametrize(
    ("added", "told"),
    [
        ("whole.item() * y.ne(0).sum().item()", False),
        ("whole.item() * y.size(0)", False),
        ("loss.item() * y.ne(0).sum().item()", True),
    ],
)
def test_a_mean_of_all_ranks_counts_for_each_rank_s_own_part(added: str, told: bool) -> None:
    turn = f"whole = ddp.weighted_mean(loss, y.ne(0).sum())\nparts += {added}\nseen += y.ne(0).sum().item()"
    end = "parts, seen = ddp.sum_all(parts, seen)\nprint(parts / seen)"
    sentences = judged(result(epoch="parts, seen = 0.0, 0", turn=turn, end=end)).assumed
    assert any("are no sums or means over the samples" in s for s in sentences) is told


@pytest.mark.parametrize(
    ("epoch", "turn", "words"),
    [
        pytest.param("window = []", "window.append(loss.item())\nif (i + 1) % 2 == 0:\n    shown = np.mean(window)\n    print(f'{shown:.4f}')\n    window = []", "tells numbers of rank 0's part", id="a window that is made anew"),
        pytest.param("best = 0.0", "print(f'{loss.item():.3f} {unseen(loss)}')", "tells numbers of rank 0's part", id="beside what is not known"),
        pytest.param("", "print('right', (out.argmax(1) == y).sum())", "tells numbers of rank 0's part", id="a tensor"),
        pytest.param("", "print('%d' % (y > 0).sum())", "tells numbers of rank 0's part", id="a tensor in a text"),
        pytest.param("", "print(torch.bincount(y))", "tells numbers of rank 0's part", id="a table"),
        pytest.param("", "print(ddp.sum_all(torch.bincount(y)))", "", id="the table of all ranks"),
        pytest.param("", "print(f'{ddp.mean_all(loss.item()):.3f}')", "", id="the mean of all ranks"),
        pytest.param("", "print(f'{i} {len(loader)}')", "", id="counters"),
    ],
)
def test_numbers_of_a_batch_in_training(epoch: str, turn: str, words: str) -> None:
    found = said("numbers of rank 0's part", epoch=epoch, turn=turn)
    assert bool(found) is bool(words)
    assert all(words in sentence for sentence in found)


@pytest.mark.parametrize(
    ("turn", "wrong"),
    [
        pytest.param("print('[{}/{}] {}'.format(i * len(x), len(data), loss.item()))", True, id="format"),
        pytest.param("print(f'{i * len(x)} {loss.item()}')", True, id="f-string"),
        pytest.param("print('%d %f' % (i * len(x), loss.item()))", True, id="percent"),
        pytest.param("print('{} {}'.format(i * len(x) * ddp.world_size(), loss.item()))", False, id="of all ranks"),
        pytest.param("print('{}'.format(loss.item()))\nelsewhere = '{} {}'.format(i * len(x), loss.item())", False, id="a text that nobody sees"),
    ],
)
def test_each_number_in_a_text_counts(turn: str, wrong: bool) -> None:
    """Also beside one that may be told as rank 0's."""
    found = [f for f in judged(result(turn=turn)).faults if f.invariant == counts.NAME]
    assert bool(found) is wrong, found


_SHARED = "hits, tried = [0, 0], [0, 0]\nwith torch.no_grad():\n    for a, b in ddp.shard(val_loader):\n        for k in range(len(b)):\n            tried[b[k]] += 1\n    {}\n"


@pytest.mark.parametrize(("together", "wrong"), [("pass", True), ("tried = ddp.sum_all(tried)", False)])
def test_a_count_of_the_samples_of_a_share_is_a_part(together: str, wrong: bool) -> None:
    found = [f for f in judged(result(end=_SHARED.format(together) + "print(tried[0])")).faults if "before the ranks add up" in f.words]
    assert bool(found) is wrong, found


_TABLE = """\
held = 0.0
with torch.no_grad():
    for a, b in ddp.shard(val_loader):
        held += nn.functional.cross_entropy(model.module(a), b).item()
{reduced}
table = pandas.DataFrame([{{"trained": total * accuracy, "held out": held}}])
if ddp.is_main():
    table.to_csv("table.csv")
"""


@pytest.mark.parametrize(
    ("reduced", "wrong"),
    [
        pytest.param("held = ddp.sum_all(held)", False, id="beside the training's own number"),
        pytest.param("", True, id="the evaluation's part"),
    ],
)
def test_a_table_of_numbers_comes_from_those_that_differ(reduced: str, wrong: bool) -> None:
    program = result(epoch="import pandas", turn="total = total + accuracy", end=_TABLE.format(reduced=reduced))
    found = [f for f in judged(program).faults if "before the ranks add up" in f.words]
    assert bool(found) is wrong


@pytest.mark.parametrize(
    ("shown", "told"),
    [
        pytest.param("loss.item(), len(x) / (time.time() - start)", True, id="beside a rate"),
        pytest.param("'%d %.4f (%.4f) %.2f/s' % (epoch, loss.item(), total / (epoch + 1), len(x) / (time.time() - start))", True, id="in a text"),
        pytest.param("len(x) / (time.time() - start)", False, id="a rate alone"),
        pytest.param("json.dumps({'sec': time.time() - start, 'loss': loss.item()})", True, id="entries of a JSON text"),
        pytest.param("[{'sec': time.time() - start, 'loss': loss.item()}]", True, id="entries of a dictionary"),
        pytest.param("json.dumps({'sec': time.time() - start, 'loss': ddp.mean_all(loss.item())})", False, id="entries of a JSON text, of all ranks"),
    ],
)
def test_a_loss_beside_what_differs_by_nature(shown: str, told: bool) -> None:
    """What one call tells in several turns is looked at number by number."""
    turn = f"import json\nimport time\nstart = time.time()\ntotal += loss.item()\nprint({shown})"
    assert bool(said("tells numbers of rank 0's part", epoch="total = 0", turn=turn)) is told


@pytest.mark.parametrize(
    ("rate", "right"),
    [
        ("0.1 * 0.9 ** (i * loader.batch_size / 1000)", False),
        ("0.1 * 0.9 ** (i * loader.batch_size * ddp.world_size() / 1000)", True),
        ("0.1 * 0.9 ** i", True),
    ],
)
def test_a_learning_rate_by_the_size_of_one_ranks_batch(rate: str, right: bool) -> None:
    step = f"optimizer.param_groups[0]['lr'] = ddp.from_main({rate})"
    found = [f for f in judged(result(step=step)).faults if "the batch size of one rank (" in f.words]
    assert bool(found) is not right


@pytest.mark.parametrize(
    ("parameters", "established"),
    [
        pytest.param("unseen.chosen(model)", False, id="what is trained is not seen"),
        pytest.param("other.parameters()", False, id="another model is trained, which nothing calls"),
    ],
)
def test_no_loader_is_only_measured_on_where_the_training_is_not_seen(parameters: str, established: bool) -> None:
    """Of which batches the model learns is not known then: that the numbers of a rank's part are those of an evaluation is no more than a guess."""
    program = result(top="import unseen\nother = nn.Linear(2, 2)", turn="print(loss.item())")
    text = program.entry.text.replace("optim.SGD(model.parameters()", f"optim.SGD({parameters}")
    source = parse(text.encode(), "train.py")
    assert isinstance(source, Source)
    faults = judged(Program.of(source)).faults
    assert faults and any(f.established for f in faults if "tells the number of its own part" in f.words) is established
    assert any("no loss is seen" in f.words for f in faults)


def test_a_loader_that_is_only_measured_on() -> None:
    loader = "val_loader = DataLoader(data, batch_size=4, sampler=ddp.DistributedSampler(data, seed=0))\n"
    measured = "for x, y in val_loader:\n    with torch.no_grad():\n        print(nn.functional.cross_entropy(model(x), y).item())"
    assert any(f.established for f in judged(result(end=loader + measured)).faults if "tells the number of its own part" in f.words)


@pytest.mark.parametrize(
    ("turn", "told"),
    [
        pytest.param("part = nn.functional.mse_loss(out, y[:, None] + out.detach(), reduction='sum').item()\nall_of_it += part * x.size(0)", True, id="a part times a rank's size"),
        pytest.param("part = nn.functional.mse_loss(out, y[:, None] + out.detach(), reduction='sum').item()\nall_of_it += (part * ddp.world_size()) * x.size(0)", False, id="times all ranks'"),
    ],
)
def test_a_part_of_a_sum_times_the_number_of_ranks_is_a_mean(turn: str, told: bool) -> None:
    parts = {"epoch": "all_of_it = 0.0", "turn": turn, "end": "all_of_it = ddp.sum_all(all_of_it)\nprint(all_of_it)"}
    assert bool(said("no sums or means over the samples", **parts)) is told
