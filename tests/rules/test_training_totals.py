"""DPM602: totals of an epoch cover all ranks."""

from __future__ import annotations

from textwrap import indent

import pytest

from dpmigrate.model import Severity
from tests.rules.program import STEP, after, found, hits


def _parts(add: str, start: str = "total = 0.0", end: str = "print(total)") -> dict[str, str]:
    return {"epoch_start": start, "step": STEP + add, "epoch_end": end}


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({}, id="nothing is added up"),
        pytest.param(_parts("total += loss.item()", end="print('total')  # total"), id="not read afterwards"),
        pytest.param(_parts("print(loss.item())"), id="printed in the loop"),
        pytest.param(_parts("total += 1"), id="a number of steps"),
    ],
)
def test_nothing_to_say(parts: dict[str, str]) -> None:
    assert not any(f.edits for f in hits("DPM602", **parts))


def test_only_the_unknown_is_noted() -> None:
    assert found("DPM602") == []


@pytest.mark.parametrize(
    ("add", "start", "line"),
    [
        pytest.param("total += loss.item()", "total = 0.0", "total = ddp.mean_all(total)", id="losses"),
        pytest.param("total += loss.item() * x.size(0)", "total = 0.0", "total = ddp.sum_all(total)", id="sums of losses"),
        pytest.param("total += (model(x).argmax(1) == y).sum().item()", "total = 0", "total = ddp.sum_all(total)", id="a count"),
        pytest.param("total = total + len(x)", "total = 0", "total = ddp.sum_all(total)", id="samples, written out"),
        pytest.param("total += loss.detach()", "total = torch.zeros(1)", "total = ddp.mean_all(total)", id="a tensor"),
    ],
)
@pytest.mark.parametrize("module_level", [False, True], ids=["function", "module"])
def test_found_and_fixed(add: str, start: str, line: str, module_level: bool) -> None:
    parts: dict[str, str | bool] = {**_parts(add, start), "module_level": module_level}
    assert found("DPM602", **parts) == ["for x, y in loader:"]
    assert after(**parts) == [line]


_SUMS = "loss = F.cross_entropy(model(x), y, reduction='sum', ignore_index=9)\nn = (y != 9).sum().item()\n{}\noptimizer.step()\n"


@pytest.mark.parametrize(
    "differentiated",
    [
        "(loss / max(n, 1) / 4).backward()",
        "(loss / n).backward()",
        "(loss / x.size(0)).backward()",
    ],
)
def test_a_sum_that_is_divided_where_it_is_differentiated_stays_one(differentiated: str) -> None:
    parts = {"epoch_start": "total = count = 0", "epoch_end": "print(total / max(1, count))"}
    step = _SUMS.format(differentiated) + "total += loss.item()\ncount += n"
    assert "total, count = ddp.sum_all(total, count)" in after(**parts, step=step)


def test_a_mean_that_is_divided_where_it_is_differentiated_stays_one() -> None:
    step = STEP.replace("loss.backward()", "(loss / accumulate).backward()")
    assert "(loss / accumulate).backward()" in step
    assert after(epoch_start="total = 0", step=step + "total += loss.item()", epoch_end="print(total)") == ["total = ddp.mean_all(total)"]


@pytest.mark.parametrize(
    ("begun", "lines"),
    [
        pytest.param("if wanted:\n    more = 0.0", ["if wanted:", "more = ddp.mean_all(more)"], id="under a setting"),
        pytest.param("if epoch % 2:\n    more = 0.0", [], id="under a test that changes"),
        pytest.param("if other:\n    if wanted:\n        more = 0.0", [], id="under two tests"),
        pytest.param("if wanted:\n    pass\nelse:\n    more = 0.0", [], id="in the other branch"),
        pytest.param("if wanted:\n    more = 0.0\nelif other:\n    more = 1.0", [], id="in two branches"),
        pytest.param("more = 0.0\nif wanted:\n    more = 1.0", ["more = ddp.mean_all(more)"], id="in any case"),
    ],
)
def test_what_has_a_value_on_some_ways(begun: str, lines: list[str]) -> None:
    parts = _parts("total += loss.item()\nif wanted:\n    more += loss.item()", f"total = 0.0\n{begun}", "print(total)\nif wanted:\n    print(more)")
    parts["setup"] = "import sys\nwanted = 'more' in sys.argv\nother = 'other' in sys.argv"
    made = after(**parts)
    both = "more" in " ".join(lines) and not lines[0].startswith("if")
    assert made == (["total, more = ddp.mean_all(total, more)"] if both else ["total = ddp.mean_all(total)", *lines])
    told = [f.message for f in hits("DPM602", **parts) if not f.edits]
    assert told == ([] if lines else ["more covers one rank's share of the epoch, where it has a value"])


def test_both_kinds() -> None:
    parts = _parts("total += loss.item()\ncount += x.size(0)", "total = 0.0\ncount = 0", "print(total, count)")
    assert after(**parts) == ["count = ddp.sum_all(count)", "total = ddp.mean_all(total)"]


def test_a_sum_of_losses_of_a_program_that_sums() -> None:
    parts = _parts("total += loss.item()")
    parts["step"] = parts["step"].replace("y)", "y, reduction='sum')")
    assert "total = ddp.sum_all(total)" in after(**parts)


def test_a_sum_that_goes_on_over_the_epochs_is_noted() -> None:
    """Summed after every epoch, it would count what all ranks had before once for each rank."""
    parts = {"before": "seen = 0", "step": STEP + "seen += x.size(0)", "epoch_end": "print(seen)"}
    (one,) = hits("DPM602", **parts)
    assert not one.edits and "seen is read after the loop" in one.message
    assert "not what earlier epochs have left in it" in one.advice


def test_what_is_handed_from_epoch_to_epoch_is_told_with_what_to_add() -> None:
    """Through a parameter and a result: nothing says what it begins with."""
    run = "def run(loader, model, optimizer, seen):\n    for x, y in loader:\n        optimizer.zero_grad()\n        F.cross_entropy(model(x), y).backward()\n"
    parts = {"defs": run + "        optimizer.step()\n        n = x.size(0)\n        seen += n\n    return seen", "before": "seen = 0"}
    (one,) = hits("DPM602", batches="if True:", step="seen = run(loader, model, optimizer, seen)", **parts)
    assert one.advice.startswith("write before = seen above the loop and seen = before + ddp.sum_all(seen - before) below it")


def test_a_table_has_no_such_line() -> None:
    (one,) = hits("DPM602", epoch_start="share = torch.zeros(2)", step=STEP + "share[y] += 1", epoch_end="print(share)")
    assert one.advice.startswith("reduce what one loop adds to it")


def test_a_mean_that_goes_on_is_right() -> None:
    parts = {"before": "total = 0.0", "step": STEP + "total += loss.item()", "epoch_end": "print(total)"}
    assert after(**parts) == ["total = ddp.mean_all(total)"]


@pytest.mark.parametrize(
    ("kept", "line"),
    [
        pytest.param("kept.append(loss.item())", "kept = ddp.mean_all(kept)", id="losses"),
        pytest.param("kept.append(float(loss))", "kept = ddp.mean_all(kept)", id="losses as float"),
        pytest.param("kept.append(loss.detach())", "kept = ddp.mean_all(kept)", id="losses as tensors"),
        pytest.param("kept.append(x.size(0) * loss.item())", "kept = ddp.sum_all(kept)", id="losses of all samples"),
        pytest.param("kept.append((out.argmax(1) == y).sum().item())", "kept = ddp.sum_all(kept)", id="counts"),
    ],
)
def test_lists_of_numbers_are_reduced_by_element(kept: str, line: str) -> None:
    assert line in after(**_parts(kept, "kept = []", "print(kept)"))


@pytest.mark.parametrize(
    ("result", "kept"),
    [
        ("right.sum() / len(label)", "kept = ddp.mean_all(kept)"),
        ("right.sum()", "kept = ddp.sum_all(kept)"),
        ("right.sum() / out.argmax(1).sum()", ""),
    ],
)
def test_lists_of_what_a_function_works_out(result: str, kept: str) -> None:
    """The execution says how its result lies: as a mean, a sum, or as a quotient of two sums, which stays told."""
    defs = f"def rate(out, label):\n    right = out.argmax(1).eq(label)\n    value = {result}\n    return value"
    parts = _parts("kept.append(rate(model(x), y).item())", "kept = []", "print(kept)") | {"defs": defs}
    assert after(**parts) == ([kept] if kept else [])
    assert bool(hits("DPM602", **parts)[0].edits) is bool(kept)


def test_a_list_that_goes_on_over_the_epochs() -> None:
    """The mean of means is itself, the sum of sums is not."""
    parts = {"before": "kept = []", "step": STEP + "kept.append(loss.item())", "epoch_end": "print(kept)"}
    assert after(**parts) == ["kept = ddp.mean_all(kept)"]
    (one,) = hits("DPM602", **{**parts, "step": STEP + "kept.append(x.size(0))"})
    assert not one.edits and "the list kept" in one.message


@pytest.mark.parametrize("kept", ["kept.append(out.argmax(1))", "kept.extend([y.max()])", "kept.append((loss.item(), 1))"])
def test_other_lists_are_left_to_the_user(kept: str) -> None:
    (one,) = hits("DPM602", **_parts(kept, "kept = []", "print(kept)"))
    assert not one.edits and "the list kept" in one.message and one.severity is Severity.WARNING


def test_a_list_of_constants_is_the_same_on_every_rank() -> None:
    assert hits("DPM602", **_parts("kept.append(1)", "kept = []", "print(kept)")) == []


EVALUATED = """\
right, wrong = 0, 0
for a, b in DataLoader(val_set, batch_size=16):
    hits = (model(a).argmax(1) == b).sum().item()
    right += hits
    wrong += len(b) - hits
"""


@pytest.mark.parametrize(
    ("kept", "told"),
    [
        pytest.param("right / (right + wrong)", False, id="a ratio"),
        pytest.param("100 * right / (right + wrong)", False, id="a share"),
        pytest.param("right", False, id="a count"),
        pytest.param("right / loss.item()", True, id="with a number of the batch"),
    ],
)
@pytest.mark.parametrize("apart", [False, True], ids=["in the loop", "in a function"])
def test_a_list_of_numbers_of_evaluations(kept: str, told: bool, apart: bool) -> None:
    """They are those of all ranks."""
    defs = f"def test(model, val_set, loss):\n{indent(EVALUATED, '    ')}    return {kept}\n" if apart else ""
    step = f"{STEP}{'' if apart else EVALUATED}kept.append({'test(model, val_set, loss)' if apart else kept})\n"
    assert bool(found("DPM602", defs=defs, before="kept = []", step=step, end="print(kept)")) is told


def test_unknown_sums_are_noted() -> None:
    (one,) = hits("DPM602", **_parts("total += f(x)", "total = 0\nfrom metrics import f"))
    assert not one.edits and "whether total adds up sums or means is not known" in one.message


def test_a_loop_that_also_evaluates_averages_over_its_loader() -> None:
    defs = "def run(model, loader, optimizer=None):\n    total = 0.0\n    for x, y in loader:\n        loss = F.cross_entropy(model(x), y)\n        if optimizer is not None:\n"
    defs += "            optimizer.zero_grad()\n            loss.backward()\n            optimizer.step()\n        total += loss.item()\n    return total"
    parts = {"defs": defs, "batches": "if True:", "step": "run(model, loader, optimizer)", "end": "run(model, DataLoader(val_set, batch_size=4))"}
    assert "total = ddp.mean_all(total, over=loader)" in after(**parts)
    listed = {**parts, "defs": defs.replace("total = 0.0", "total = []").replace("total += loss.item()", "total.append(loss.item())")}
    assert "total = ddp.mean_all(total, over=loader)" in after(**listed)


@pytest.mark.parametrize(
    ("step", "start", "lines"),
    [
        pytest.param(
            "right += (model(x).argmax(1) == y).sum().item()\nn += len(x)\nshare = right / float(n)", "right = n = 0",
            ["right, n = ddp.sum_all(right, n)", "share = right / float(n)"], id="a ratio",
        ),
        pytest.param("total += loss.item()\nshare = total * 2", "total = 0", ["total = ddp.mean_all(total)", "share = total * 2"], id="a mean"),
        pytest.param("share = 0.9 * share + 0.1 * loss.item()", "share = 0", ["share = ddp.mean_all(share)"], id="a moving average"),
        pytest.param("share = loss.item() * (1 - 0.9) + share * 0.9", "share = 0", ["share = ddp.mean_all(share)"], id="a moving average, the other way round"),
        pytest.param(
            "share['loss'] += loss.item() * len(x)\nshare['n'] += len(x)", "share = {'loss': 0.0, 'n': 0}",
            ["share['loss'], share['n'] = ddp.sum_all(share['loss'], share['n'])"], id="a dict",
        ),
    ],
)  # fmt: skip
def test_totals_beside_plain_counters(step: str, start: str, lines: list[str]) -> None:
    assert after(epoch_start=start, step=STEP + step, epoch_end="print(share)") == lines


@pytest.mark.parametrize(
    ("step", "start"),
    [
        pytest.param("share = total", "share = total = 0", id="no counter in it"),
        pytest.param("n += len(x)\nshare = x.mean() / n", "n = share = 0", id="something of the batch in it"),
        pytest.param("n += len(x)\nshare = f(n)", "n = share = 0", id="a function of somewhere"),
        pytest.param("n += len(x)\nif n > 3:\n    share = n / 2", "n = share = 0", id="under a test"),
        pytest.param("n += len(x)\nshare = n / 2\nshare = n / 3", "n = share = 0", id="computed twice"),
        pytest.param("n += len(x)\nmean = n / 2", "n = share = 0", id="not read"),
        pytest.param("share = share * 2", "share = 0", id="multiplied"),
        pytest.param("share = 0.5 * share + 0.5 * share", "share = 0", id="nothing is added"),
        pytest.param("share['n'] -= len(x)", "share = {'n': 0}", id="taken away"),
        pytest.param("share[i] += 1", "share = {'n': 0}\ni = 'n'", id="an unknown entry of steps"),
        pytest.param("share['n'] = 1 + share['n']\nshare['m'] = 3 * 2", "share = {'n': 0}", id="steps, written out"),
        pytest.param("part = [0.5]\npart[0] = 2\nshare[i] += part[0]", "share = {'n': 0}\ni = 'n'", id="a table of numbers"),
        pytest.param("other['n'] += len(x)", "share = {'n': 0}\nother = {'n': 0}", id="a dict that is not read"),
        pytest.param("bar.update(1)", "bar = share = tqdm(loader)", id="a bar"),
        pytest.param("meter.update(3)", "meter = share = Meter()", id="a constant"),
        pytest.param("update(loss.item())\nmake().update(loss.item())", "share = 0", id="no variable"),
        pytest.param("mine.update(loss.item())", "mine = share = Mine()", id="a class of this file"),
    ],
)
def test_other_lines_of_the_loop(step: str, start: str) -> None:
    parts = {"imports": "from lib import Meter\nfrom tqdm import tqdm", "defs": "class Mine:\n    def update(self, x):\n        print(x)"}
    assert not any("share" in line for line in after(epoch_start=start, step=STEP + step, epoch_end="print(share)", **parts))
    assert not [f for f in hits("DPM602", epoch_start=start, step=STEP + step, epoch_end="print(share)", **parts) if "share" in f.message]


@pytest.mark.parametrize(
    ("step", "start", "named"),
    [
        pytest.param("share['n'] = share['n'] + len(x)", "share = {'n': 3}", "share['n'] is read", id="written out, of a dict that begins with something"),
        pytest.param("share['n'] += len(x)", "share = {'n': 3}", "share['n'] is read", id="a dict that begins with something"),
        pytest.param("share['n'] += len(x)", "share = make()", "share['n'] is read", id="a dict from somewhere"),
        pytest.param("share = 0.5 * share + 0.5 * x[0]", "share = 0", "share is read", id="a moving average of something"),
        pytest.param("share.update(loss.item(), x.size(0))", "share = Meter()", "share is read", id="a meter of another file"),
        pytest.param("share.add(loss.item())", "share = lib.Meter()", "share is read", id="its other spelling"),
        pytest.param("share.add(loss.data)", "share = Meter()", "share is read", id="a tensor's data"),
        pytest.param("share.update(loss.detach(), len(x))", "share = Meter()", "share is read", id="a detached tensor"),
        pytest.param("share['a'].update(loss.item(), 3)", "share = {'a': Meter()}", "share['a'] is read", id="in a dict"),
        pytest.param("share = share * x.mean() + 0.1 * loss.item()", "share = 0", "share is read", id="a moving average with a factor of the batch"),
        pytest.param("share = share * 0.5 + loss.item()", "share = 0", "share is read", id="a sum that forgets"),
        pytest.param("share = max(share, loss.item())", "share = 0", "share is read", id="the largest"),
        pytest.param("share[i] += len(x)", "share, i = make(), 0", "share is read", id="an unknown entry"),
        pytest.param("share[0][1][2:] += loss.tolist()", "share = [[[], []]]", "share is read", id="a table in tables"),
        pytest.param("cost[0] = loss.item()\nshare[i, :2] += cost / len(loader)", "share, cost, i = make(), make(), 0", "share is read", id="by another table"),
        pytest.param("cost[0] = x.mean()\nshare[i] = cost[0] / 2 + share[i]", "share, cost, i = make(), make(), 0", "share is read", id="written out"),
        pytest.param("share[y] += 1", "share = torch.zeros(2)", "share is read", id="a table"),
        pytest.param("share['kept'].append(loss.item())", "share = make()", "the list share['kept'] is read", id="a list in something"),
    ],
)
def test_what_cannot_be_reduced_is_told(step: str, start: str, named: str) -> None:
    (one,) = hits("DPM602", imports="import lib\nfrom lib import Meter, make", epoch_start=start, step=STEP + step, epoch_end="print(share)")
    assert not one.edits and one.message.startswith(named) and one.advice


_TRAINER = "class T:\n    def __init__(self):\n        self.total = self.kept = 0\n    def keep(self, loss):\n        print(loss)\nt = T()"


@pytest.mark.parametrize(
    ("parts", "named"),
    [
        pytest.param({"defs": _TRAINER, "step": STEP + "t.total += loss.item()", "epoch_end": "print(t.total)"}, "t.total", id="an attribute"),
        pytest.param({"defs": "total = 0\ndef add(loss):\n    global total\n    total += loss.item()\ndef show():\n    print(total)", "step": STEP + "total += loss.item()", "top": "total = 0", "before": "global total", "epoch_end": "show()"}, "total", id="a global"),
        pytest.param({"before": "total = make()", "defs": "def make():\n    pass", "step": STEP + "n = x.size(0)\ntotal += n", "epoch_end": "print(total)"}, "total", id="a start from somewhere"),
    ],
)  # fmt: skip
def test_what_grows_otherwise_is_told(parts: dict[str, str | bool], named: str) -> None:
    (one,) = [f for f in hits("DPM602", **parts) if not f.edits]
    assert one.message == f"{named} is read after the loop and covers rank 0's share" and one.advice


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({"defs": _TRAINER, "step": STEP + "t.total += loss.item()"}, id="not read"),
        pytest.param({"defs": _TRAINER, "step": STEP + "t.kept += loss.item()\nt.keep(t.kept)"}, id="read in the loop only"),
        pytest.param({"defs": _TRAINER, "step": STEP + "t.total += 1", "epoch_end": "print(t.total)"}, id="a step"),
        pytest.param({"defs": _TRAINER, "step": STEP + "t.total *= loss.item()", "epoch_end": "print(t.total)"}, id="no sum"),
        pytest.param({"step": STEP + "loss += x.sum()", "epoch_end": "print(loss)"}, id="made anew in every turn"),
    ],
)
def test_what_does_not_grow_or_is_not_read(parts: dict[str, str]) -> None:
    assert not [f for f in hits("DPM602", **parts) if "read after the loop" in f.message]


def test_a_total_that_is_read_in_the_next_epoch() -> None:
    parts = {"before": "total = 0", "epoch_start": "if epoch:\n    print(total)\ntotal = 0", "step": STEP + "total += loss.item()"}
    assert after(**parts) == ["total = ddp.mean_all(total)"]
    assert found("DPM602", **{**parts, "epoch_start": "total = 0\nprint(total)"}) == []


def test_a_start_with_a_type() -> None:
    assert after(epoch_start="total: float = 0.0", step=STEP + "total += loss.item()", epoch_end="print(total)") == ["total = ddp.mean_all(total)"]


def test_a_mean_and_a_sum_in_one_loop() -> None:
    step = "a = F.cross_entropy(model(x), y)\na.backward()\nb = F.cross_entropy(model(x), y, reduction='sum')\nb.backward()\noptimizer.step()\nta += a.item()\ntb += b.item()"
    got = after(epoch_start="ta = tb = 0", step=step, epoch_end="print(ta, tb)")
    assert "ta = ddp.mean_all(ta)" in got and "tb = ddp.sum_all(tb)" in got
    same = step.replace("b = F", "a = F").replace("b.b", "a.b").replace("b.item", "a.item")
    assert "ta, tb = ddp.sum_all(ta, tb)" in after(epoch_start="ta = tb = 0", step=same, epoch_end="print(ta, tb)")  # the second one, twice


def test_many_totals_take_several_lines() -> None:
    names = [f"quite_a_long_name_{n}" for n in range(4)]
    step = "\n".join(f"{n} += len(x)" for n in names)
    got = after(epoch_start=" = ".join(names) + " = 0", step=STEP + step, epoch_end=f"print({', '.join(names)})")
    assert len(got) == 2 and all(len(line) < 120 for line in got)
    assert got[0] == f"{names[0]}, {names[1]} = ddp.sum_all({names[0]}, {names[1]})"


def test_a_method() -> None:
    body = "".join(f"            {s}\n" for s in STEP.splitlines())
    defs = f"class T:\n    def turn(self, model, loader, optimizer):\n        total = 0.0\n        for x, y in loader:\n{body}            total += loss.item()\n        return total"
    assert "total = ddp.mean_all(total)" in after(defs=defs, before="t = T()", batches="if True:", step="t.turn(model, loader, optimizer)")


_TURN = "def turn(model, batches, optimizer, kept{default}):\n    for x, y in batches:\n{step}"


def _turned(kept: str, call: str, **parts: str) -> dict[str, str | bool]:
    step = "".join(f"        {s}\n" for s in (STEP + kept).splitlines())
    defs = parts.pop("top", "") + "\n" + _TURN.format(default=parts.pop("default", ""), step=step)
    return {"defs": defs, "batches": "if True:", "step": call, **parts}


def test_a_list_from_outside_is_filled_anew() -> None:
    """Its name in the function is the function's own; what the others see is the list."""
    parts = _turned("kept.append(loss.item())", "turn(model, loader, optimizer, kept)", before="kept = []")
    assert "kept[:] = ddp.mean_all(kept)" in after(**parts)
    parts = _turned("history.append(loss.item())", "turn(model, loader, optimizer, 1)", top="history = []", end="print(history)")
    assert "history[:] = ddp.mean_all(history)" in after(**parts)
    parts["defs"] = str(parts["defs"]).replace("    for x", "    global history\n    for x")
    assert "history = ddp.mean_all(history)" in after(**parts)


@pytest.mark.parametrize(
    ("before", "given"),
    [pytest.param("kept = collections.deque()", "kept", id="another kind"), pytest.param("", "f()", id="made in the call")],
)
def test_what_is_given_may_be_no_list(before: str, given: str) -> None:
    (one,) = hits("DPM602", **_turned("kept.append(loss.item())", f"turn(model, loader, optimizer, {given})", before=before))
    assert not one.edits and "the list kept" in one.message


@pytest.mark.parametrize(
    ("read", "advice"),
    [
        pytest.param("v.avg", "reduce what is read of it: ddp.mean_all(v.avg) for means of batches", id="an average"),
        pytest.param("v.table", "reduce what it counts up before it is read: ddp.sum_all(…)", id="a table"),
    ],
)
def test_the_help_fits_what_is_read_of_a_meter(read: str, advice: str) -> None:
    step = STEP + "v.update(loss.item(), 3)"
    (one,) = [f for f in hits("DPM602", imports="from lib import Meter", before="v = Meter()", step=step, epoch_end=f"print({read})") if not f.edits]
    assert one.advice.startswith(advice)


def test_lists_of_samples_are_gathered() -> None:
    """A list cannot be subtracted, and its sum over the ranks is none of its elements."""
    add = "seen += y.detach().tolist()\nprint(len(seen))"
    (one,) = hits("DPM602", **_parts(add, start="seen = [0]", end="print(seen)"))
    assert one.advice.startswith("gather it (ddp.gather_all)")


def test_rows_that_are_gathered_are_not_told() -> None:
    add = "gt = np.concatenate((gt, y.numpy()))\npd = np.concatenate((pd, model(x).argmax(1).numpy()))"
    parts = _parts(add, start="gt, pd = np.empty(0), np.empty(0)", end="print(sum(gt == pd) / pd.shape[0])")
    assert found("DPM602", imports="import numpy as np", **parts) == []
    assert "gt, pd = ddp.gather_all(gt, pd)" in after(imports="import numpy as np", **parts)


@pytest.mark.parametrize(
    ("kept", "alike"),
    [
        ("optimizer.param_groups[0]['lr']", True),
        ("scheduler.get_last_lr()[0]", True),
        ("scheduler.get_last_lr()[0] + loss.item() * 0.5 * y[0].item()", False),
        ("{'lr': 0.1, 'first': y[0].item()}", False),
        ("(0.1, y[0].item())", False),
    ],
)
def test_a_list_of_what_is_the_same_on_all_ranks(kept: str, alike: bool) -> None:
    before = "scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)\nkept = []"
    told = hits("DPM602", before=before, step=STEP + f"kept.append({kept})", end="print(kept)")
    assert bool(told) is not alike


@pytest.mark.parametrize(
    ("line", "told"),
    [
        pytest.param("held.update('loss', loss.item())", False, id="all that it keeps"),
        pytest.param("held.update('loss', loss.item(), out.max().item())", True, id="a part of it"),
    ],
)
def test_what_is_made_whole_for_the_training_is_not_told(line: str, told: bool) -> None:
    keeper = "class Keeper:\n    factor, most = 1.0, 0.0\n\n    def update(self, key, q, most=0.0):\n        self.factor = 0.9 * self.factor + q\n        self.most += most\n"
    step = f"optimizer.zero_grad()\nout = model(x)\nloss = F.cross_entropy(out, y) * held.factor\nloss.backward()\noptimizer.step()\n{line}"
    parts = {"before": "held = Keeper()", "defs": keeper, "step": step, "epoch_end": "print(held.most)"}
    assert any(f.advice for f in hits("DPM602", **parts)) is told
    assert any("ddp.mean_all(loss.item())" in line for line in after(**parts))


_SUMMED = "optimizer.zero_grad()\nloss = F.cross_entropy(model(x), y, reduction='sum')\nloss.backward()\noptimizer.step()\n"


@pytest.mark.parametrize(
    ("add", "line"),
    [
        pytest.param("total += loss.item() * x.size(0)", "total += (loss.item() * ddp.world_size()) * x.size(0)", id="a product"),
        pytest.param("total = total + len(x) * float(loss)", "total = total + len(x) * (float(loss) * ddp.world_size())", id="written out"),
        pytest.param("n = x.size(0)\ntotal += loss.detach() * n", "total += (loss.detach() * ddp.world_size()) * n", id="a name for the size"),
        pytest.param("part = loss.item() * x.size(0)\ntotal += part", "part = (loss.item() * ddp.world_size()) * x.size(0)", id="a name for the product"),
    ],
)
def test_a_part_of_a_sum_times_the_size_of_a_batch(add: str, line: str) -> None:
    lines = after(epoch_start="total = 0.0", step=_SUMMED + add, epoch_end="print(total)")
    assert {line, "total = ddp.sum_all(total)"} <= set(lines)


@pytest.mark.parametrize(
    ("step", "add"),
    [
        pytest.param(_SUMMED, "total += loss.item()", id="the part itself"),
        pytest.param(_SUMMED, "total += loss.item() / x.size(0)", id="divided by the size"),
        pytest.param(_SUMMED, "total += loss.item() * 4", id="times a number"),
        pytest.param(STEP, "total += loss.item() * x.size(0)", id="a mean"),
        pytest.param(STEP, "total += (model(x).argmax(1) == y).sum().item()", id="a count"),
    ],
)
def test_what_is_no_part_or_not_scaled_stays(step: str, add: str) -> None:
    lines = after(epoch_start="total = 0.0", step=step + add, epoch_end="print(total)")
    assert not any("world_size" in line for line in lines)
    assert any(line.startswith("total = ddp.") for line in lines)


def test_in_a_meter_and_in_a_list() -> None:
    meter = "class Meter:\n    def __init__(self):\n        self.sum = 0.0\n        self.count = 0\n\n    def update(self, val, n):\n        self.sum += val * n\n        self.count += n\n"
    add = "meter.update(loss.item(), x.size(0))\nrows.append(loss.item() * len(x))"
    lines = after(defs=meter, epoch_start="meter, rows = Meter(), []", step=_SUMMED + add, epoch_end="print(meter.sum / meter.count, sum(rows))")
    assert "meter.update(loss.item() * ddp.world_size(), x.size(0))" in lines
    assert "rows.append((loss.item() * ddp.world_size()) * len(x))" in lines


def test_where_a_part_stays_the_advice_says_what_to_write() -> None:
    (told,) = [f for f in hits("DPM602", defs="class Kept:\n    total = 0.0\n", before="kept = Kept()", step=_SUMMED + "kept.total += loss.item() * x.size(0)", end="print(kept.total)") if f.advice]
    assert told.advice is not None
    assert "loss.item() * ddp.world_size()" in told.advice


_WEIGHTED = STEP.replace("(model(x), y)", "(model(x), y, ignore_index=3)")


@pytest.mark.parametrize(
    ("start", "add", "end"),
    [
        pytest.param("kept = {'loss': []}", "kept['loss'].append(loss.item())", "print(kept)", id="as it is"),
        pytest.param("kept = {'loss': []}", "kept['loss'].append(loss.item() * 2)", "print(kept)", id="what is made of it"),
    ],
)
def test_means_over_weights_are_those_of_all_ranks(start: str, add: str, end: str) -> None:
    """DPM302 makes the loss that of all ranks, so that nothing is left to be put together."""
    assert _WEIGHTED != STEP
    assert found("DPM602", epoch_start=start, step=_WEIGHTED + add, epoch_end=end) == []
    assert found("DPM602", epoch_start=start, step=STEP + add, epoch_end=end) != []
