"""DPM610: the epochs end for all ranks at once."""

from __future__ import annotations

import pytest

from tests.rules.program import COUNTING, STEP, after, found, refused, whole

#: a whole training in a function, for each of several settings
_TRAIN = """
def train(width):
    loader = DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,))), batch_size=16, shuffle=True)
    model = nn.Sequential(nn.Linear(8, width), nn.Linear(width, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for x, y in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
"""


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({"epoch_end": "if epoch > 1:\n    break"}, id="a counter"),
        pytest.param({"epoch_end": "if loss > 1:\n    print('if loss: break')  # if loss: break"}, id="nothing ends"),
        pytest.param({"before": "n = 0", "epochs": "while n < 3:", "epoch_end": "n += 1"}, id="a while on a counter"),
        pytest.param({"end": "for k in range(3):\n    if loss > 1:\n        break"}, id="another loop"),
    ],
)
def test_nothing_to_say(parts: dict[str, str]) -> None:
    assert found("DPM610", **parts) == []


@pytest.mark.parametrize(
    ("end", "pointed", "lines"),
    [
        pytest.param("if loss < 1:\n    break", "break", ["if ddp.from_main(loss < 1):"], id="break"),
        pytest.param("if loss < 1:\n    continue", "continue", ["if ddp.from_main(loss < 1):"], id="continue"),
        pytest.param("if epoch:\n    if loss < 1:\n        break", "break", ["if ddp.from_main(loss < 1):"], id="under a counter too"),
        pytest.param("if loss < 1:\n    pass\nelif loss > 2:\n    break", "break", ["if ddp.from_main(loss < 1):", "elif ddp.from_main(loss > 2):"], id="elif"),
        pytest.param("if loss < 1:\n    print(1)\nelse:\n    break", "break", ["if ddp.from_main(loss < 1):"], id="else"),
        pytest.param("if loss < 1:\n    exit()", "exit()", ["if ddp.from_main(loss < 1):", "ddp.cleanup()"], id="exit"),
    ],
)
@pytest.mark.parametrize("module_level", [False, True], ids=["function", "module"])
def test_found_and_fixed(end: str, pointed: str, lines: list[str], module_level: bool) -> None:
    assert found("DPM610", epoch_end=end, module_level=module_level) == [pointed]
    assert after(epoch_end=end, module_level=module_level) == lines


def test_one_test_for_two_ends() -> None:
    end = "if loss < 1:\n    if epoch:\n        break\n    continue"
    assert len(found("DPM610", epoch_end=end)) == 1
    assert after(epoch_end=end) == ["if ddp.from_main(loss < 1):"]


@pytest.mark.parametrize(
    ("see", "decides"),
    [
        pytest.param("self.stop = value > 3", "from_main", id="a comparison"),
        pytest.param("if value > 3:\n                self.stop = True", "from_main", id="under a comparison"),
        pytest.param("self.stop = late(value)", "from_main", id="a function that compares"),
        pytest.param("self.stop = math.isnan(value)", "any_rank", id="no number"),
        pytest.param("self.stop = value is None", "any_rank", id="nothing there"),
    ],
)
def test_a_return_in_a_method_and_patience(see: str, decides: str) -> None:
    """Any rank's patience would run out before that of one process."""
    defs = f"""
    def late(value):
        return value > 3

    class Stopper:
        def __init__(self):
            self.stop = False

        def see(self, value):
            {see}
    """
    parts = {"defs": defs, "before": "s = Stopper()", "epoch_end": "s.see(loss.item())\nif s.stop:\n    return"}
    assert found("DPM610", **parts) == ["return"]
    assert after(**parts) == [f"if ddp.{decides}(s.stop):"]


def test_a_while_on_a_metric() -> None:
    parts = {"before": "value = 9.0\nn = 0", "epochs": "while n < 9 and value > 1:", "epoch_end": "n += 1\nvalue = loss.item()"}
    assert found("DPM610", **parts) == ["n < 9 and value > 1"]
    assert "while ddp.from_main(n < 9 and value > 1):" in after(**parts)


def test_an_evaluation_that_is_tested() -> None:
    end = COUNTING.replace("print(correct)", "if correct > 30:\n    break")
    assert "if ddp.from_main(correct > 30):" in after(epoch_end=end)


def test_an_exception_handler_is_refused() -> None:
    assert refused("DPM610", epoch_end="try:\n    pass\nexcept KeyboardInterrupt:\n    break") == ["break"]


def test_an_interrupt_round_the_training_is_refused() -> None:
    parts = {"before": "while True:\n    try:\n        train(3)\n    except (ValueError, KeyboardInterrupt):\n        break", "defs": _TRAIN}
    assert refused("DPM610", **parts) == ["break"]


@pytest.mark.parametrize("kind", ["Exception as e", "RuntimeError", ""])
@pytest.mark.parametrize("leaves", ["continue", "break"])
def test_a_training_that_fails_ends_all_ranks(kind: str, leaves: str) -> None:
    """One after the other, of which one may fail: several ranks cannot go on to the next."""
    lines = whole(before=f"for width in (8, 16):\n    try:\n        train(width)\n    except {kind}:\n        {leaves}", defs=_TRAIN).splitlines()
    at = next(i for i, line in enumerate(lines) if line.strip().startswith("except"))
    assert [line.strip() for line in lines[at + 1 : at + 4]] == ["if ddp.world_size() > 1:", "raise", leaves]


@pytest.mark.parametrize(
    ("inner", "pointed"),
    [
        pytest.param("while a.max() > 1:\n{}    a = a / 2", "a.max() > 1", id="while"),
        pytest.param("for k in range(3):\n    if a.max() > 1:\n        break\n{}", "break", id="break"),
    ],
)
def test_epochs_for_each_batch_of_another_loader(inner: str, pointed: str) -> None:
    body = "".join(f"        {s}\n" for s in STEP.splitlines())
    step = inner.format(f"    for x, y in loader:\n{body}")
    assert pointed in refused("DPM610", setup="others = DataLoader(train_set, batch_size=16)", batches="for a, b in others:", step=step)


def test_a_model_is_no_draw_that_rank_0_hands_on() -> None:
    defs = "def build(width):\n    return nn.Linear(8, 2)\nclass Stopper:\n    def go(self, model, loss):\n        return loss > 1"
    lines = after(
        imports="import random", defs=defs, model="model = build(random.randint(1, 3))", before="stopper = Stopper()",
        epoch_end="if not stopper.go(model, loss.item()):\n    break",
    )  # fmt: skip
    assert "if ddp.from_main(not stopper.go(model, loss.item())):" in lines
    assert not any("bool(" in line for line in lines)
