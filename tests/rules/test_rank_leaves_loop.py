"""DPM322: no rank leaves a batch out alone."""

from __future__ import annotations

import pytest

from tests.rules.program import STEP, found, refused


@pytest.mark.parametrize(
    "step",
    [
        pytest.param("if epoch > 1:\n    continue\n" + STEP, id="a counter"),
        pytest.param(STEP + "if args.quick:\n    break", id="a setting"),
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


def test_a_try_round_everything_is_the_end_of_the_training() -> None:
    defs = "def train(loss):\n    loss.backward()\ndef never():\n    try:\n        train(torch.ones(1))\n    except ValueError:\n        pass"
    assert found("DPM322", defs=defs) == []


def test_a_test_on_the_phase_is_not_a_test_on_the_rank() -> None:
    step = "optimizer.zero_grad()\nloss = F.cross_entropy(model(x), y)\nif optimizer is not None:\n    loss.backward()\n    optimizer.step()"
    assert found("DPM322", step=step) == []


@pytest.mark.parametrize(
    ("step", "pointed"),
    [
        pytest.param("if x.sum() > 1:\n    continue\n" + STEP, "continue", id="continue"),
        pytest.param(STEP + "if torch.isnan(loss):\n    break", "break", id="break"),
        pytest.param(STEP + "if loss.item() > 9:\n    exit()", "exit()", id="exit"),
        pytest.param(STEP + "try:\n    z = y + 1\nexcept ValueError:\n    continue", "continue", id="continue in a handler"),
        pytest.param(STEP.replace("optimizer.step()", "if loss < 9:\n    optimizer.step()"), "optimizer.step()", id="a step left out"),
        pytest.param(STEP.replace("loss.backward()", "if loss < 9:\n    loss.backward()"), "loss.backward()", id="backward left out"),
        pytest.param(STEP.replace("loss.backward()", "if loss > 9:\n    pass\nelse:\n    loss.backward()"), "loss.backward()", id="backward in the other branch"),
        pytest.param(
            STEP.replace("optimizer.step()", "n, m = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0), loss\nif m < 1:\n    optimizer.step()"), "optimizer.step()",
            id="a norm beside something else",
        ),
        pytest.param("try:\n" + "".join(f"    {s}\n" for s in STEP.splitlines()) + "except RuntimeError:\n    print('memory')", "except RuntimeError:", id="caught"),
        pytest.param("try:\n" + "".join(f"    {s}\n" for s in STEP.splitlines()) + "except:\n    optimizer.zero_grad()", "except:", id="everything caught"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("module_level", [False, True], ids=["function", "module"])
def test_refused(step: str, pointed: str, module_level: bool) -> None:
    assert refused("DPM322", step=step, module_level=module_level) == [pointed]


def test_a_handler_that_skips_is_said_once() -> None:
    step = "try:\n" + "".join(f"    {s}\n" for s in STEP.splitlines()) + "except RuntimeError:\n    continue"
    assert refused("DPM322", step=step) == ["continue"]


def test_a_return_and_a_method() -> None:
    body = "".join(f"            {s}\n" for s in STEP.splitlines())
    defs = f"class T:\n    def turn(self, model, loader, optimizer):\n        for x, y in loader:\n            if x.sum() > 3:\n                return\n{body}"
    assert refused("DPM322", defs=defs, before="t = T()", batches="if True:", step="t.turn(model, loader, optimizer)") == ["return"]


def test_a_handler_round_the_epoch() -> None:
    body = "".join(f"        {s}\n" for s in STEP.splitlines())
    defs = f"def train(model, loader, optimizer):\n    for x, y in loader:\n{body}"
    step = "try:\n    train(model, loader, optimizer)\nexcept Exception as e:\n    print(e)"
    assert refused("DPM322", defs=defs, batches="if True:", step=step) == ["except Exception as e:"]


def test_a_handler_that_ends_the_program_has_a_rule_of_its_own() -> None:
    body = "".join(f"        {s}\n" for s in STEP.splitlines())
    defs = f"import sys\ndef train(model, loader, optimizer):\n    for x, y in loader:\n{body}"
    step = "try:\n    train(model, loader, optimizer)\nexcept Exception as e:\n    sys.exit(1)"
    assert found("DPM322", defs=defs, batches="if True:", step=step) == []
