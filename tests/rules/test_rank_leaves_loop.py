"""DPM322: no rank leaves a batch out alone."""

from __future__ import annotations

import pytest

from tests.rules.program import STEP, after, found, refused, whole


@pytest.mark.parametrize(
    "step",
    [
        pytest.param("if epoch > 1:\n    continue\n" + STEP, id="a counter"),
        pytest.param(STEP + "if args.quick:\n    break", id="a setting"),
        pytest.param("if x is None or y is None:\n    continue\n" + STEP, id="a test that no batch passes"),
        pytest.param(STEP + "print('if loss > 1: break')  # if loss > 1: break", id="in a string and a comment"),
        pytest.param(STEP + "for z in x:\n    if z.sum() > 1:\n        break", id="a loop inside"),
        pytest.param(STEP + "if loss > 1:\n    print(loss)", id="nothing is left out"),
        pytest.param(STEP.replace("optimizer.step()", "if epoch % 2 == 0:\n    optimizer.step()"), id="accumulation"),
        pytest.param(STEP.replace("loss.backward()", "if big(x):\n    (loss * 2).backward()\nelse:\n    loss.backward()"), id="backward in both branches"),
        pytest.param(STEP.replace("optimizer.step()", "if big(x):\n    optimizer.step()\nelse:\n    optimizer.step()"), id="a step in both branches"),
        pytest.param(
            STEP.replace("optimizer.step()", "norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\nif norm < 10:\n    optimizer.step()"),
            id="a norm of gradients, which are equal on all ranks",
        ),
        pytest.param("try:\n    z = x + 1\nexcept ValueError:\n    pass\n" + STEP, id="a try without training"),
        pytest.param("try:\n" + "".join(f"    {s}\n" for s in STEP.splitlines()) + "except ValueError:\n    raise", id="raised again"),
        pytest.param("try:\n" + "".join(f"    {s}\n" for s in STEP.splitlines()) + "except KeyboardInterrupt:\n    pass", id="the keyboard"),
    ],
)
def test_nothing_to_say(step: str) -> None:
    setup = "import argparse\nargs = argparse.ArgumentParser().parse_args()"
    assert found("DPM322", defs="def big(x):\n    return x.sum() > 1", setup=setup, step=step) == []


@pytest.mark.parametrize(
    "turns",
    [
        pytest.param("turns = enumerate(loader)", id="enumerate"),
        pytest.param("turns = tqdm(enumerate(loader, 1), total=3)", id="under a progress bar"),
        pytest.param("turns = enumerate(loader)\nturns = tqdm(turns)", id="under a progress bar, by its name"),
    ],
)
def test_the_counter_of_an_enumerate_that_has_a_name(turns: str) -> None:
    parts = {"imports": "from tqdm import tqdm", "epoch_start": turns, "batches": "for i, (x, y) in turns:"}
    assert found("DPM322", step=STEP + "if i == 2:\n    break", **parts) == []
    assert found("DPM322", step=STEP + "if loss > 2:\n    break", **parts) == ["break"]


def test_a_try_in_a_function_that_nothing_calls() -> None:
    defs = "def train(loss):\n    loss.backward()\ndef never():\n    try:\n        train(torch.ones(1))\n    except ValueError:\n        pass"
    assert found("DPM322", defs=defs) == []


_FIT = "import sys\ndef fit(model, loader, optimizer):\n    for epoch in range(3):\n        for x, y in loader:\n" + "".join(
    f"            {s}\n" for s in STEP.splitlines()
)
_EXPLODES = "            if loss.item() > 9:\n                raise ValueError('too high')\n"


@pytest.mark.parametrize(
    ("handler", "expected"),
    [
        pytest.param("except Exception as e:\n    print(e)", "print(e)\n        if ddp.world_size() > 1:\n            raise\n", id="told"),
        pytest.param(
            "except (ValueError, RuntimeError):\n    print(1)\n    torch.save(model.state_dict(), 'a')",
            "if ddp.world_size() > 1:\n            raise\n",
            id="several kinds, saved",
        ),
        pytest.param("except:\n    print(2)\n    return", "print(2)\n        if ddp.world_size() > 1:\n            raise\n        return\n", id="a return"),
        pytest.param(
            "except:\n    if epochs:\n        return\n    print(3)",
            "except:\n        if ddp.world_size() > 1:\n            raise\n        if epochs",
            id="a return further up",
        ),
        pytest.param(
            "except:\n    fit(model, loader, optimizer)", "except:\n        if ddp.world_size() > 1:\n            raise\n        fit", id="trains again"
        ),
    ],
)
def test_a_handler_round_the_whole_training(handler: str, expected: str) -> None:
    """An exception of one rank, its own or a library's, must not leave the others waiting."""
    text = whole(defs=_FIT + _EXPLODES, before="epochs = 3", epochs="if True:", batches="if True:", step="try:\n    fit(model, loader, optimizer)\n" + handler)
    flat = "\n".join(line[8:] if line.startswith(" " * 12) else line for line in text.splitlines()) + "\n"
    assert expected in flat, flat


@pytest.mark.parametrize(
    "handler", ["except KeyboardInterrupt:\n    print('ended')", "except (KeyboardInterrupt, SystemExit):\n    pass", "except ValueError:\n    raise"]
)
def test_a_handler_round_the_training_for_what_comes_to_all(handler: str) -> None:
    assert found("DPM322", defs=_FIT, epochs="if True:", batches="if True:", step="try:\n    fit(model, loader, optimizer)\n" + handler) == []


def test_a_test_on_the_phase_is_not_a_test_on_the_rank() -> None:
    step = "optimizer.zero_grad()\nloss = F.cross_entropy(model(x), y)\nif optimizer is not None:\n    loss.backward()\n    optimizer.step()"
    assert found("DPM322", step=step) == []


@pytest.mark.parametrize(
    ("step", "pointed"),
    [
        pytest.param("if x.sum() > 1:\n    continue\n" + STEP, "continue", id="continue"),
        pytest.param(STEP + "if x.max() > 9:\n    exit()", "exit()", id="exit"),
        pytest.param(STEP + "if torch.isnan(loss) or x.max() > 9:\n    break", "break", id="finite or something else"),
        pytest.param(STEP + "if torch.isnan(x).all():\n    break", "break", id="whether none of them is a number"),
        pytest.param(STEP + "if torch.isfinite(x).any():\n    break", "break", id="whether one of them is a number"),
        pytest.param(STEP + "if loss.item() * len(x) > 9:\n    break", "break", id="times the number of samples"),
        pytest.param(STEP + "best = min(best, loss.item())\nif best < 1:\n    break", "break", id="the lowest so far"),
        pytest.param(STEP + "best = loss.item() if x.max() < 1 else 2\nif best < 1:\n    break", "break", id="chosen by the batch"),
        pytest.param(STEP + "if x.max() < 1:\n    best = loss.item()\nif best < 1:\n    break", "break", id="kept by the batch"),
        pytest.param(STEP + "try:\n    best = loss.item()\nexcept OSError:\n    best = loss.item()\nif best < 1:\n    break", "break", id="kept in a handler"),
        pytest.param("x, y = next(it)\n" + STEP + "if x.max() > 9:\n    break", "break", id="a batch that is drawn"),
        pytest.param(STEP + "seen.append(loss.item())\nif sum(seen) > 9:\n    break", "break", id="losses in a list"),
        pytest.param(STEP + "kept['loss'] = loss.item()\nif kept['loss'] > 9:\n    break", "break", id="losses in a dict"),
        pytest.param(STEP + "meter.update(loss.item())\nif meter.mean > 9:\n    break", "break", id="losses in a meter"),
        pytest.param(STEP + "best *= loss.item()\nif best < 1:\n    break", "break", id="a product of losses"),
        pytest.param(STEP + "for best in (3, loss.item()):\n    pass\nif best < 1:\n    break", "break", id="gone through"),
        pytest.param(STEP + "if F.cross_entropy(model(x), y, reduction='sum') > 9:\n    break", "break", id="a sum over the batch"),
        pytest.param(STEP + "if big(x):\n    break", "break", id="a function of the batch"),
        pytest.param(STEP + "for z in range(int(y[0])):\n    if late():\n        exit()", "exit()", id="in a loop inside"),
        pytest.param(STEP.replace("optimizer.step()", "if y.max() < 9:\n    optimizer.step()"), "optimizer.step()", id="a step left out"),
        pytest.param(STEP.replace("loss.backward()", "if y.max() < 9:\n    loss.backward()"), "loss.backward()", id="backward left out"),
        pytest.param(
            STEP.replace("loss.backward()", "if y.max() > 9:\n    pass\nelse:\n    loss.backward()"), "loss.backward()", id="backward in the other branch",
        ),
        pytest.param(
            STEP.replace("optimizer.step()", "n, m = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0), x.max()\nif m < 1:\n    optimizer.step()"),
            "optimizer.step()", id="a norm beside something else",
        ),
    ],
)  # fmt: skip
@pytest.mark.parametrize("module_level", [False, True], ids=["function", "module"])
def test_refused(step: str, pointed: str, module_level: bool) -> None:
    defs = "import time\ndef late():\n    return time.time() > 9\ndef big(x):\n    return x.sum() > 1"
    defs += "\nclass Meter:\n    def __init__(self):\n        self.mean = 0.0\n    def update(self, value):\n        self.mean = 0.9 * self.mean + 0.1 * value"
    before = "best, seen, kept, meter, it = 9.0, [], {}, Meter(), iter(loader)"
    assert refused("DPM322", defs=defs, before=before, step=step, module_level=module_level) == [pointed]


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        pytest.param("if torch.isnan(loss):\n    break", "if ddp.any_rank(torch.isnan(loss)):", id="isnan"),
        pytest.param("if not torch.isfinite(x).all():\n    continue", "if ddp.any_rank(not torch.isfinite(x).all()):", id="one of them is not finite"),
        pytest.param("if epoch and torch.isinf(loss):\n    break", "if ddp.any_rank(epoch and torch.isinf(loss)):", id="finite and a counter"),
        pytest.param("if not math.isfinite(loss.item()):\n    continue", "if ddp.any_rank(not math.isfinite(loss.item())):", id="isfinite of a number"),
        pytest.param(
            "if loss != loss or np.isinf(loss.item()):\n    break", "if ddp.any_rank(loss != loss or np.isinf(loss.item())):", id="by itself, or isinf"
        ),
        pytest.param("if torch.isnan(loss).any().item():\n    break", "if ddp.any_rank(torch.isnan(loss).any().item()):", id="any of them"),
        pytest.param("if time.time() - start > 9:\n    break", "if ddp.any_rank(time.time() - start > 9):", id="a time limit"),
        pytest.param("if late():\n    exit()", "if ddp.any_rank(late()):", id="a function of the clock"),
        pytest.param("start = start - time.time()\nif start < 9:\n    break", "if ddp.any_rank(start < 9):", id="a clock that adds up"),
        pytest.param("if late():\n    if late() + 1:\n        break", "    if ddp.any_rank(late() + 1):", id="two tests"),
    ],
)
@pytest.mark.parametrize("module_level", [False, True], ids=["function", "module"])
def test_decided_together(step: str, expected: str, module_level: bool) -> None:
    defs = "import math, time\nimport numpy as np\ndef late():\n    return time.time() > 9"
    parts = {"defs": defs, "before": "start = time.time()", "step": STEP + step}
    assert expected in whole(None, module_level=module_level, **parts)


def test_a_step_on_finite_losses_only() -> None:
    step = STEP.replace("loss.backward()", "if {}:\n    loss.backward()")
    assert "if not ddp.any_rank(not torch.isfinite(loss)):" in whole(step=step.format("torch.isfinite(loss)"))
    assert "if not ddp.any_rank(torch.isnan(loss)):" in whole(step=step.format("not torch.isnan(loss)"))


_DRAWS = """
import random
import numpy as np
from random import random as toss
own = np.random.RandomState(epochs)
def coin(p):
    return random.random() < p
class Stopper:
    def __init__(self):
        self.late = hash(self)
        self.p = random.random()
"""


@pytest.mark.parametrize(
    ("test", "decided"),
    [
        pytest.param("random.random() < 0.7", "", id="random"),
        pytest.param("toss() < 0.7", "", id="from-import"),
        pytest.param("np.random.rand() < 0.7", "", id="numpy"),
        pytest.param("np.random.binomial(n=1, p=0.7)", "", id="keywords"),
        pytest.param("torch.rand(1).item() < 0.7", "", id="torch.rand"),
        pytest.param("torch.randint(0, 2, (1,)).item()", "", id="torch.randint"),
        pytest.param("torch.bernoulli(torch.tensor(0.7))", "", id="torch.bernoulli"),
        pytest.param("torch.rand(1, generator=g).item() < 0.7", "", id="a stream of its own"),
        pytest.param("own.rand() < 0.7", "", id="another one"),
        pytest.param("coin(0.7)", "", id="a function of the program"),
        pytest.param("not coin(p=0.7)", "", id="not"),
        pytest.param("epoch > 1 or coin(0.7)", "", id="a counter or a draw"),
        pytest.param("coin(0.7) and coin(0.6)", "", id="two draws"),
        pytest.param("coin(0.7) or stopper.late", "ddp.from_main(coin(0.7)) or ddp.any_rank(stopper.late)", id="a draw or a flag"),
        pytest.param("coin(0.7) and not torch.isnan(loss)", "ddp.from_main(coin(0.7)) and not ddp.any_rank(torch.isnan(loss))", id="a draw and a guard"),
        pytest.param("random.random() < loss.item()", "ddp.from_main(random.random()) < ddp.mean_all(loss.item())", id="a draw against the loss"),
    ],
)
@pytest.mark.parametrize("module_level", [False, True], ids=["function", "module"])
def test_a_draw_is_rank_0s(test: str, decided: str, module_level: bool) -> None:
    """Any of W ranks draws a yes of probability p with 1 - (1 - p)^W."""
    step = STEP.replace("loss.backward()\noptimizer.step()", f"if {test}:\n    loss.backward()\n    optimizer.step()")
    text = whole(imports="epochs = 3", defs=_DRAWS, before="stopper = Stopper()\ng = torch.Generator()", step=step, module_level=module_level)
    assert f"if {decided or f'ddp.from_main({test})'}:" in text


@pytest.mark.parametrize(
    ("step", "line"),
    [
        pytest.param("coin(0.5) and loss.backward()", "ddp.from_main(coin(0.5)) and loss.backward()", id="and"),
        pytest.param("loss.backward() if coin(0.5) else None", "loss.backward() if ddp.from_main(coin(0.5)) else None", id="a conditional expression"),
        pytest.param("while coin(p=0.5):\n    optimizer.step()", "while ddp.from_main(coin(p=0.5)):", id="while"),
        pytest.param("for k in range(random.randint(1, 3)):\n    optimizer.step()", "for k in ddp.from_main(range(random.randint(1, 3))):", id="turns"),
        pytest.param(
            "n = random.randint(1, 3)\nprint(n)\nfor k in range(n):\n    optimizer.step()",
            "n = ddp.from_main(random.randint(1, 3))",
            id="a number that is shown",
        ),
        pytest.param("if coin(0.5):\n    optimizer.step()\nelse:\n    other.step()", "if ddp.from_main(coin(0.5)):", id="one of two optimizers"),
        pytest.param(
            "if coin(0.5):\n    if stopper.late:\n        optimizer.step()",
            "if ddp.from_main(coin(0.5)):\n                if ddp.any_rank(stopper.late):",
            id="two tests",
        ),
    ],
)
def test_draws_in_other_places(step: str, line: str) -> None:
    parts = {"imports": "epochs = 3", "defs": _DRAWS, "before": "other = torch.optim.Adam(model.parameters())\nstopper = Stopper()"}
    assert line in whole(step=STEP.replace("loss.backward()\noptimizer.step()" if "backward" in step else "optimizer.step()", step), **parts)


def test_turns_that_all_ranks_make() -> None:
    step = "n = int(x.size(0) * torch.rand(1))\nfor k in range(2):\n    optimizer.step()\nfor k in x:\n    optimizer.step()"
    assert found("DPM322", step=STEP + step) == []


def test_a_draw_that_says_one_thing_here_and_there() -> None:
    """One variable decides for the step and for the data: both by rank 0's draw. Where only the data of a batch change, every rank draws for itself."""
    parts = {"imports": "epochs = 3", "defs": _DRAWS}
    mixed = "r = random.random()\nif r < 0.5:\n    x = x + 1\n" + STEP
    assert "from_main" not in whole(step=mixed, **parts)
    text = whole(step=mixed.replace("loss.backward()", "if r > 0.2:\n    loss.backward()"), **parts)
    assert "r = ddp.from_main(random.random())" in text and text.count("from_main") == 1
    alone = STEP.replace("loss.backward()", "r = random.random()\nif r > 0.2:\n    loss.backward()")
    assert "if ddp.from_main(r > 0.2):" in whole(step=alone, **parts)
    beside = mixed.replace("loss.backward()", "if r > toss():\n    loss.backward()")
    assert "if ddp.from_main(r > toss()):" in whole(step=beside, **parts)
    parted = "if y.max() > 1:\n    r = random.random()\n    x = x * r\n" + STEP.replace("loss.backward()", "if r > 0.2:\n    loss.backward()")
    assert "if ddp.from_main(r > 0.2):" in whole(step=parted, **parts)


@pytest.mark.parametrize(
    ("test", "decided"),
    [
        pytest.param("loss.item() > 9", "ddp.mean_all(loss.item()) > 9", id="item"),
        pytest.param("loss > 9", "ddp.mean_all(loss) > 9", id="a tensor"),
        pytest.param("float(loss.detach()) > 9", "ddp.mean_all(float(loss.detach())) > 9", id="float"),
        pytest.param("loss.data.cpu() > 9", "ddp.mean_all(loss.data.cpu()) > 9", id="data"),
        pytest.param("9 < -loss.item()", "9 < ddp.mean_all(-loss.item())", id="negative"),
        pytest.param("abs(loss.item() - last) > 9", "abs(ddp.mean_all(loss.item() - last)) > 9", id="a difference"),
        pytest.param("loss.item() > 1.5 * last", "ddp.mean_all(loss.item()) > ddp.mean_all(1.5 * last)", id="the last one"),
        pytest.param("loss.item() / 2 > last", "ddp.mean_all(loss.item() / 2) > ddp.mean_all(last)", id="a half"),
        pytest.param("moving > 9", "ddp.mean_all(moving) > 9", id="a moving average"),
        pytest.param("total / 5 > 9", "ddp.mean_all(total / 5) > 9", id="a total"),
        pytest.param("loss * total > 9", "ddp.mean_all(loss) * ddp.mean_all(total) > 9", id="each for itself"),
        pytest.param("other > 9", "ddp.mean_all(other) > 9", id="one of two"),
        pytest.param("low.item() > 9", "", id="the lowest of the batch"),
        pytest.param("loss.item() ** 2 > 9", "ddp.mean_all(loss.item()) ** 2 > 9", id="its square"),
        pytest.param("not loss > 9", "not ddp.mean_all(loss) > 9", id="not"),
        pytest.param("epoch and loss > 9", "epoch and ddp.mean_all(loss) > 9", id="a counter and a loss"),
        pytest.param("F.mse_loss(model(x)[:, 0], y.float()) > 9", "ddp.mean_all(F.mse_loss(model(x)[:, 0], y.float())) > 9", id="a call"),
    ],
)
def test_a_mean_over_the_batch_is_averaged(test: str, decided: str) -> None:
    more = "moving = 0.9 * moving + 0.1 * loss.item()\ntotal += loss.item()\ntotal *= 0.5\nlow = x.min()\nother, rest = loss.item(), 3\n"
    step = f"{STEP}{more}if {test}:\n    break\nif epoch:\n    last = loss.item()"
    if decided:
        assert f"if {decided}:" in whole(before="last = moving = 0.0\ntotal = 0.0", step=step)
    else:
        assert refused("DPM322", before="last = moving = 0.0\ntotal = 0.0", step=step) == ["break"]


def test_what_the_decision_keeps() -> None:
    """``best`` is given a loss on all ranks at once, since all decide alike."""
    step = STEP + "if loss.item() < best:\n    best = loss.item()\n    continue"
    assert "if ddp.mean_all(loss.item()) < ddp.mean_all(best):" in whole(before="best = 9.0", step=step)


def test_what_an_evaluation_gives() -> None:
    """It is the same on every rank."""
    defs = (
        "def evaluate(model, val_loader):\n    correct = 0\n    for a, b in val_loader:\n        correct += (model(a).argmax(1) == b).sum().item()\n"
        "    return correct"
    )
    step = STEP + "if evaluate(model, val_loader) > 30:\n    break"
    parts = {"defs": defs, "setup": "val_loader = DataLoader(val_set, batch_size=16)"}
    assert "if ddp.from_main(evaluate(model, val_loader) > 30):" in whole(step=step, **parts)


def test_a_step_left_out_by_the_clock() -> None:
    defs = "import time\ndef late():\n    return time.time() > 9"
    assert "if ddp.any_rank(late()):" in whole(defs=defs, step=STEP.replace("optimizer.step()", "if late():\n    optimizer.step()"))


def test_a_loop_that_the_clock_ends() -> None:
    text = whole(defs="import time", before="it = iter(loader)", epochs="if True:", batches="while time.time() < 9:", step="x, y = next(it)\n" + STEP)
    assert "while ddp.any_rank(time.time() < 9):" in text


def test_the_end_of_the_data_comes_to_all_ranks() -> None:
    step = "try:\n    x, y = next(it)\nexcept StopIteration:\n    break\n" + STEP
    assert found("DPM322", before="it = iter(loader)", epochs="if True:", batches="while True:", step=step) == []


_RAISES = "if ddp.world_size() > 1:\n{0}    raise"


@pytest.mark.parametrize(
    ("handler", "body"),
    [
        pytest.param("except RuntimeError:", "print('memory')", id="caught"),
        pytest.param("except:", "optimizer.zero_grad()", id="everything caught"),
        pytest.param("except RuntimeError:", "continue", id="continue"),
    ],
)
def test_a_handler_is_for_one_process(handler: str, body: str) -> None:
    step = "try:\n" + "".join(f"    {s}\n" for s in STEP.splitlines()) + f"{handler}\n    {body}"
    text = whole(step=step)
    assert text.count("ddp.world_size() > 1") == 1
    assert f"{handler}\n                {_RAISES.format(' ' * 16)}" in text


def test_a_return_and_a_method() -> None:
    body = "".join(f"            {s}\n" for s in STEP.splitlines())
    defs = f"class T:\n    def turn(self, model, loader, optimizer):\n        for x, y in loader:\n            if x.sum() > 3:\n                return\n{body}"
    assert refused("DPM322", defs=defs, before="t = T()", batches="if True:", step="t.turn(model, loader, optimizer)") == ["return"]


def test_a_handler_round_the_epoch() -> None:
    body = "".join(f"        {s}\n" for s in STEP.splitlines())
    defs = f"def train(model, loader, optimizer):\n    for x, y in loader:\n{body}"
    step = "try:\n    train(model, loader, optimizer)\nexcept Exception as e:\n    print(e)"
    assert "except Exception as e:\n                if ddp.world_size() > 1:" in whole(defs=defs, batches="if True:", step=step)


def test_a_handler_that_ends_the_program_has_a_rule_of_its_own() -> None:
    body = "".join(f"        {s}\n" for s in STEP.splitlines())
    defs = f"import sys\ndef train(model, loader, optimizer):\n    for x, y in loader:\n{body}"
    step = "try:\n    train(model, loader, optimizer)\nexcept Exception as e:\n    sys.exit(1)"
    assert found("DPM322", defs=defs, batches="if True:", step=step) == []


def test_a_file_that_asks_to_stop() -> None:
    """It may come between two ranks' questions."""
    assert "if ddp.from_main(os.path.exists('STOP')):" in whole(step=f"{STEP}\nif os.path.exists('STOP'):\n    break")


@pytest.mark.parametrize(
    ("setting", "there"),
    [
        pytest.param("if loss.item() < 0.4:\n    done = True", "if ddp.mean_all(loss.item()) < 0.4:", id="a mean"),
        pytest.param("if loss.item() < 0.4 and seen > 9:\n    done = True", "if ddp.mean_all(loss.item()) < 0.4 and seen > 9:", id="a mean and a counter"),
        pytest.param("if torch.isnan(loss):\n    done = True", "if ddp.any_rank(torch.isnan(loss)):", id="not finite"),
    ],
)
def test_a_flag_is_set_by_all_ranks_where_its_test_stands(setting: str, there: str) -> None:
    """Rank 0's flag would follow its part of the batch alone: the others would not be asked."""
    lines = after(before="done, seen = False, 0", step=f"{STEP}\nseen += 1\n{setting}\nif done:\n    break", epoch_end="if done:\n    break")
    assert there in lines


def test_a_test_that_what_it_has_set_decides_again() -> None:
    """The flag's setter reads a number that the same branch sets for the next turn."""
    setter = "if model(x).max().item() >= due:\n    due, late = plan.pop(0), True"
    step = f"{STEP}\n{setter}\nif late:\n    break"
    assert refused("DPM322", before="due, late, plan = 1, False, [2, 3]", step=step) != []


def test_a_flag_that_nobody_can_set_for_the_whole_batch() -> None:
    step = f"{STEP}\nif model(x).max().item() > 3:\n    done = True\nif done:\n    break"
    assert refused("DPM322", before="done = False", step=step) != []


_OWN = "class Enough(Exception):\n    pass\n"
_GUARDED = """\
try:
    for epoch in range(3):
        for x, y in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            seen += 1
            if {test}:
                raise Enough
except Enough:
    print(seen)
"""


@pytest.mark.parametrize(
    ("test", "there"),
    [("seen == 30", "if seen == 30:"), ("loss.item() < 0.8", "if ddp.mean_all(loss.item()) < 0.8:"), ("torch.isnan(loss)", "if ddp.any_rank(torch.isnan(loss)):")],
)
def test_an_exception_by_which_the_program_itself_leaves_its_training(test: str, there: str) -> None:
    text = whole(defs=_OWN, before="seen = 0", epochs="if True:", batches="if True:", step=_GUARDED.format(test=test))
    assert there in text
    assert "world_size() > 1" not in text


def test_an_exception_of_its_own_that_nobody_can_raise_for_the_whole_batch() -> None:
    step = _GUARDED.format(test="model(x).max().item() > 3")
    assert refused("DPM322", defs=_OWN, before="seen = 0", epochs="if True:", batches="if True:", step=step) != []


def test_an_exception_that_the_program_does_not_raise_itself_ends_a_rank() -> None:
    step = _GUARDED.format(test="seen == 30").replace("raise Enough", "seen += 1")
    assert "world_size() > 1" in whole(defs=_OWN, before="seen = 0", epochs="if True:", batches="if True:", step=step)


_COLLATE = "from torch.utils.data import default_collate\ndef collate(rows):\n    rows = list(rows)\n    if len(rows) < 3:\n        return {none}\n    return default_collate(rows)"


@pytest.mark.parametrize("none", ["None", "", "None, None", "{'x': None, 'y': None}"])
def test_a_function_that_may_give_no_batch(none: str) -> None:
    """One rank may have none where another one has."""
    loader = "loader = DataLoader(train_set, batch_size=16, shuffle=True, collate_fn=collate)"
    step = "if x is None:\n    continue\n" + STEP
    assert refused("DPM322", defs=_COLLATE.format(none=none), loader=loader, step=step) == [none or "return"]


def test_a_function_that_gives_a_part_of_a_batch_as_none() -> None:
    loader = "loader = DataLoader(train_set, batch_size=16, shuffle=True, collate_fn=collate)"
    assert found("DPM322", defs=_COLLATE.format(none="rows, None"), loader=loader, step=STEP) == []
