"""Totals of a pass are put together before they are told; what is told while it trains may be rank 0's."""

from __future__ import annotations

import pytest

from dpmigrate.judge import compared, counts, judged, own_totals
from dpmigrate.judge.totals import NAME as TOTALS
from tests.judge.trained import result

_SAVED = "if total < best:\n    best = total\n    ddp.save(net.state_dict(), 'net.pt')"
_LIST = {"epoch": "if epoch == 0: kept = []", "turn": "kept.append(loss.item())"}


@pytest.mark.parametrize(
    ("parts", "wrong"),
    [
        pytest.param({"end": "print(total / len(loader))"}, True, id="told after the loop"),
        pytest.param({"end": "print(f'{epoch}: {total / len(loader):.3f}')"}, True, id="in a text"),
        pytest.param({"end": "total = ddp.mean_all(total)\nprint(total / len(loader))"}, False, id="put together"),
        pytest.param({"end": "print(total / len(loader))\ntotal = ddp.mean_all(total)"}, True, id="put together too late"),
        pytest.param({"turn": "print(total / (i + 1))"}, False, id="so far, while it trains"),
        pytest.param({"end": "print(loss.item())"}, False, id="the last batch"),
        pytest.param({"turn": "part = 0\nfor k in range(2):\n    part += loss.item()", "end": "print(part)"}, False, id="added up within the last batch"),
        pytest.param({"turn": "meter.update(loss.item(), x.size(0))", "end": "print(meter.avg)"}, True, id="by an object"),
        pytest.param({"turn": "meter.update(loss.item(), x.size(0))", "end": "meter.sum, meter.count = ddp.sum_all(meter.sum, meter.count)\nprint(meter.avg)"}, True, id="its quotient from before"),
        pytest.param({"end": "print(round(total / len(loader), 3))"}, True, id="rounded"),
        pytest.param({"epoch": "smooth = 0.0", "turn": "smooth = 0.9 * smooth + 0.1 * loss.item()", "end": "print(smooth)"}, True, id="a moving mean"),
        pytest.param({**_LIST, "last": "print(kept)"}, True, id="a list"),
        pytest.param({**_LIST, "last": "kept = ddp.mean_all(kept)\nprint(kept)"}, False, id="a list that is put together"),
        pytest.param({**_LIST, "end": "kept = ddp.mean_all(kept)", "last": "print(kept)"}, False, id="after each epoch, of which there may be none"),
        pytest.param({"epoch": "rows = torch.empty(0)", "turn": "rows = torch.cat((rows, out[:, 0].detach()))", "end": "print(rows.median())"}, True, id="rows that grow"),
        pytest.param(
            {"epoch": "rows = torch.empty(0)", "turn": "rows = torch.cat((rows, out[:, 0].detach()))", "end": "rows = ddp.gather_all(rows)\nprint(rows.median())"},
            False,
            id="rows that grow and are gathered",
        ),
        pytest.param({"epoch": "stats = {'loss': 0.0}", "turn": "stats['loss'] += loss.item()", "end": "print(stats['loss'])"}, True, id="an entry"),
        pytest.param({"end": _SAVED}, True, id="decides what is saved"),
        pytest.param({"end": f"total = ddp.mean_all(total)\n{_SAVED}"}, False, id="decides put together"),
        pytest.param({"epoch": "with torch.no_grad():\n    best = sum(nn.functional.cross_entropy(net(a), b).item() for a, b in val_loader)", "end": "print(best)"}, False, id="an evaluation"),
    ],
)
def test_totals_of_a_pass(parts: dict[str, str], wrong: bool) -> None:
    found = [f for f in judged(result(**parts)).faults if f.invariant == own_totals.NAME]
    assert bool(found) is wrong, found
    assert all(f.established for f in found)


def test_what_the_user_is_told_of_is_left() -> None:
    program = result(end="print(total / len(loader))")
    assert not any(f.invariant == own_totals.NAME for f in judged(program, settled=[own_totals.NAME]).faults)


@pytest.mark.parametrize(
    ("turn", "wrong"),
    [
        pytest.param("print(i * len(x))", True, id="one rank's"),
        pytest.param("print(f'{i * len(x)} of 64')", True, id="in a text"),
        pytest.param("print('{}/64'.format((i + 1) * x.size(0)))", True, id="by a method of a text"),
        pytest.param("print(i * len(x) * ddp.world_size())", False, id="of all ranks"),
        pytest.param("print(i * ddp.world_size() * len(x))", False, id="in another order"),
        pytest.param("ranks = ddp.world_size()\nprint(i * len(x) * ranks)", False, id="by a variable"),
        pytest.param("ranks = ddp.world_size()\nstep = i * ranks\nprint(step * len(x))", False, id="by two variables"),
        pytest.param("print(len(x))", False, id="a batch of the rank"),
    ],
)
def test_counts_of_samples(turn: str, wrong: bool) -> None:
    found = [f for f in judged(result(turn=turn)).faults if f.invariant == counts.NAME]
    assert bool(found) is wrong, found


@pytest.mark.parametrize(
    ("shown", "told"),
    [
        pytest.param("print(f'{seen} of 64')", True, id="one rank's"),
        pytest.param("if seen % 32 == 0:\n    print('seen %d' % seen)", True, id="now and then"),
        pytest.param("print(seen * ddp.world_size())", False, id="of all ranks"),
    ],
)
def test_sums_of_sizes_that_are_shown(shown: str, told: bool) -> None:
    judgement = judged(result(epoch="seen = 0", turn=f"seen += len(x)\n{shown}"))
    assert any("tells how many samples rank 0 has had" in s for s in judgement.assumed) is told
    assert not [f for f in judgement.faults if f.invariant == counts.NAME]


@pytest.mark.parametrize(
    ("turn", "wrong"),
    [
        pytest.param("if ddp.mean_all(loss.item() > 1.0): break", True, id="what each rank finds"),
        pytest.param("if ddp.mean_all(loss.item()) > 1.0: break", False, id="what all have"),
    ],
)
def test_decisions_are_not_averaged(turn: str, wrong: bool) -> None:
    found = [f for f in judged(result(turn=turn)).faults if "averaged" in f.words and f.invariant == TOTALS]
    assert bool(found) is wrong, found


_GROWN = {"epoch": "kept = torch.ones(1, 2)", "turn": "kept = torch.cat((kept, out.detach()))"}


def test_every_place_that_tells_or_keeps_a_total_is_named() -> None:
    """What grows and is not put together: by a logger of a configuration, of which nothing is known, by a table, a list."""
    top = "import json, logging, pickle\nimport pandas as pd\nargs = json.load(open('args.json'))\n"
    told = "score = kept.sum().cos().item()\nargs.logger.info('score %.2f' % score)\ntable = pd.DataFrame(kept.numpy())"
    kept = "table.to_csv('kept.csv')\ntable[:2].to_json('kept.json')\npickle.dump({'score': score}, open('kept.pickle', 'wb'))"
    (words,) = judged(result(epoch=top + _GROWN["epoch"], turn=_GROWN["turn"], end=f"{told}\n{kept}")).own_totals
    where = words.partition(" tell")[0]
    assert where.startswith("args.logger.info('score %.2f' % score), ")
    assert [w.partition(" (line")[0] for w in where.split(", ")[1:]] == ["table.to_csv", "table[:2].to_json", "pickle.dump"]


@pytest.mark.parametrize(
    ("parts", "wrong"),
    [
        pytest.param({"epoch": "seen = 0", "turn": "seen += len(x)\nif seen > 100:\n    best = 0.0"}, True, id="a count held against a limit"),
        pytest.param({"epoch": "seen = [0]", "turn": "seen[0] += len(x)\nif 32 <= seen[0]:\n    seen[0] = 0"}, True, id="an entry"),
        pytest.param({"epoch": "seen = 0", "turn": "seen += len(x) * ddp.world_size()\nif seen > 100:\n    best = 0.0"}, False, id="that of all ranks"),
        pytest.param({"epoch": "seen = 0", "turn": "seen += len(x)", "end": "if seen > 0:\n    best = 0.0"}, False, id="whether there was one"),
        pytest.param({"step": "if len(x) != 16: continue"}, True, id="the global batch's size"),
        pytest.param({"step": "if len(x) != ddp.local_batch(16): continue"}, False, id="a part's size"),
        pytest.param({"step": "if len(x) < 4: continue"}, False, id="another size"),
        pytest.param({"end": "if any(len(a) != 16 for a, _ in val_loader): best = 0.0"}, False, id="a batch that is not divided"),
    ],
)
def test_comparisons_of_numbers_of_samples(parts: dict[str, str], wrong: bool) -> None:
    found = [f for f in judged(result(**parts)).faults if f.invariant == compared.NAME]
    assert bool(found) is wrong, found


@pytest.mark.parametrize(
    ("told", "left"),
    [
        pytest.param({"total"}, "print(kept)", id="one of them"),
        pytest.param({"kept"}, "print(total / len(loader))", id="the other"),
        pytest.param({"total", "kept"}, "", id="both"),
        pytest.param({"best"}, "print(total / len(loader)), print", id="another one"),
    ],
)
def test_totals_are_told_of_by_what_holds_them(told: set[str], left: str) -> None:
    program = result(**{**_LIST, "end": "print(total / len(loader))", "last": "print(kept)"})
    found = judged(program, settled=[own_totals.NAME], told=told).own_totals
    assert (left in found[0]) if left else found == ()


def test_what_an_object_holds_is_known_by_the_call_that_gives_it() -> None:
    program = result(turn="meter.update(loss.item(), x.size(0))", end="print(meter.avg)")
    assert judged(program, told={"meter"}).own_totals == ()
    assert judged(program, told={"total"}).own_totals != ()


@pytest.mark.parametrize("added", ["n += 1", "n = n + 1", "n = 1 + n"])
def test_turns_of_a_share_are_counted_in_any_form(added: str) -> None:
    share = f"n = 0\nwith torch.no_grad():\n    for a, b in ddp.shard(val_loader):\n        net(a)\n        {added}\n"
    assert not [f for f in judged(result(end=f"{share}n = ddp.sum_all(n)\nprint(n)")).faults if f.invariant == TOTALS]
    assert [f for f in judged(result(end=f"{share}print(n)")).faults if f.invariant == TOTALS]


_PUT = """\
def put(kept, idx, names):
    kept.extend([names[i] for i in idx.detach().cpu().numpy().tolist()])

def keep(kept, p, t):
    kept['p'] += p.tolist()
    kept['t'] += t.tolist()

def accuracy(a, b, hits=0):
    for p, q in zip(a, b):
        hits += p == q
    return hits / len(a)

class Kept:
    def __init__(self):
        self.p, self.t = [], []

    def update(self, p, t):
        self.p.extend(p.tolist())
        self.t.extend(t.tolist())

    def value(self):
        return sum(int(a == b) for a, b in zip(self.p, self.t)) / len(self.p)
"""
_LISTS = {"top": _PUT, "epoch": "pred, true = [], []", "turn": "put(pred, out.argmax(1), ['a', 'b'])\nput(true, y, ['a', 'b'])"}


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({**_LISTS, "end": "print(accuracy(pred, true))"}, id="a function goes through them"),
        pytest.param({**_LISTS, "end": "print(sum(1 for p, q in zip(pred, true) if p == q) / len(pred))"}, id="a generator does"),
        pytest.param({**_LISTS, "end": "print(np.mean([p == q for p, q in zip(pred, true)]))"}, id="a list of comparisons"),
        pytest.param({**_LISTS, "end": "print(f'{epoch}: {accuracy(pred, true):.3f}')"}, id="in a text"),
        pytest.param({**_LISTS, "top": f"import json\n{_PUT}", "end": "with open('a.json', 'w') as f:\n    json.dump({'a': accuracy(pred, true)}, f)"}, id="in a file"),
        pytest.param({**_LISTS, "top": f"from sklearn.metrics import f1_score\n{_PUT}", "end": "print(f1_score(true, pred))"}, id="by a library"),
        pytest.param(
            {"top": _PUT, "epoch": "kept = {'p': [], 't': []}", "turn": "keep(kept, out.argmax(1), y)", "end": "print(accuracy(kept['p'], kept['t']))"}, id="lists of a dict"
        ),
        pytest.param({"top": _PUT, "epoch": "kept = Kept()", "turn": "kept.update(out.argmax(1), y)", "end": "print(kept.value())"}, id="an object of the program"),
    ],
)
def test_what_is_made_of_a_ranks_own_lists_is_told_whatever_it_differs_since(parts: dict[str, str]) -> None:
    assert judged(result(**parts)).own_totals


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({**_LISTS, "end": "pred, true = ddp.gather_all(pred, true)\nprint(accuracy(pred, true))"}, id="gathered"),
        pytest.param({**_LISTS, "top": f"import time\nbegan = time.time()\n{_PUT}", "end": "print(time.time() - began)"}, id="a time"),
        pytest.param({**_LISTS, "top": f"import os\n{_PUT}", "end": "print(os.getpid(), random.random())"}, id="a process and a draw"),
        pytest.param({**_LISTS, "end": "print(len(loader.dataset), epoch)"}, id="of the data set"),
        pytest.param({"end": "with torch.no_grad():\n    kept = []\n    for a, b in val_loader:\n        kept.extend(net(a).argmax(1).tolist())\n    print(kept)"}, id="an evaluation in full"),
    ],
)
def test_what_is_no_total_of_a_rank_is_not_told(parts: dict[str, str]) -> None:
    assert not judged(result(**parts)).own_totals


_EVALUATION = "with torch.no_grad():\n    hits = 0\n    for {}, b in val_loader:\n        hits += (net({}).argmax(1) == b).sum().item()\n"


@pytest.mark.parametrize(
    ("name", "shown", "told"),
    [
        pytest.param("x", "print(i * len(x), hits)", True, id="of the evaluation's last batch"),
        pytest.param("a", "print(i * len(x))", False, id="of the training's batch, by itself"),
    ],
)
def test_numbers_for_which_another_loop_has_given_the_batch(name: str, shown: str, told: bool) -> None:
    judgement = judged(result(turn=_EVALUATION.format(name, name) + shown))
    assert bool([f for f in judgement.faults if f.invariant == counts.NAME]) is not told
    assert any("goes by the size of a batch that rank 0 has" in s for s in judgement.assumed) is told
