"""A draw by which a step has one loss or another is one for all ranks."""

from __future__ import annotations

import pytest

from dpmigrate.judge import chosen, judged
from tests.judge.trained import result

#: a model whose own draws, in a function that its forward calls, are those of its samples
_NOISY = """
class Noisy(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)

    def {name}(self, z):
        if random.random() < 0.5:
            z = z * 2
        return z

    def forward(self, x):
        return self.{name}(self.layer(x))


noisy = ddp.wrap(Noisy())
noisy(x).sum(1).mean().backward()
"""

_LOSS = "if {test}:\n    extra = z.pow(2).mean()\nelse:\n    extra = z.abs().mean()\nextra.backward()"


@pytest.mark.parametrize(
    ("step", "wrong"),
    [
        pytest.param("task = random.choice(['a', 'b'])\nz = model(x)\n" + _LOSS.format(test="task == 'a'"), True, id="a task"),
        pytest.param("z = model(x)\n" + _LOSS.format(test="np.random.rand() < 0.5"), True, id="a probability"),
        pytest.param("task = ddp.from_main(random.choice(['a', 'b']))\nz = model(x)\n" + _LOSS.format(test="task == 'a'"), False, id="rank 0's task"),
        pytest.param("z = model(x)\n" + _LOSS.format(test="i % 2"), False, id="the number of the turn"),
        pytest.param("if random.random() < 0.5:\n    x = x.flip(1)\nz = model(x)\nz.mean().backward()", False, id="samples that are flipped"),
        pytest.param("model.state = None\nif random.random() < 0.5:\n    model.state = model(x).mean()\nmodel.state.backward()", True, id="an attribute"),
        pytest.param(_NOISY.format(name="shaken"), False, id="in a model"),
        pytest.param("z = model(x).mean()\nif random.random() < 0.5:\n    z += model(x).pow(2).mean()\nz.backward()", True, id="a term that is added"),
    ],
)
def test_what_a_loss_goes_by(step: str, wrong: bool) -> None:
    found = [f for f in judged(result(step=step)).faults if f.invariant == chosen.NAME]
    assert bool(found) is wrong


@pytest.mark.parametrize(
    ("step", "tests"),
    [
        pytest.param("{} \nz = ddp.weighted_mean(model(x), 2.0)\nz.backward()".format("if random.random() < 0.5:\n    x = x * 2"), 1, id="a statement"),
        pytest.param("x = x * 2 if random.random() < 0.5 else x\nz = ddp.weighted_mean(model(x), 2.0)\nz.backward()", 1, id="an expression"),
        pytest.param("x = x * 2 if i % 2 else x.abs()\nz = ddp.weighted_mean(model(x), 2.0)\nz.backward()", 0, id="the number of the turn"),
        pytest.param("if random.random() < 0.5:\n    x = x * 2\nmodel(x).mean().backward()", 0, id="a mean of what is drawn for a rank's samples"),
        pytest.param("k = 1\nif random.random() < 0.5:\n    k = 2\nddp.weighted_mean(model(x), 2.0).backward()", 0, id="nothing of the batch"),
    ],
)
def test_draws_that_say_what_becomes_of_a_batch(step: str, tests: int) -> None:
    """They are given back where a loss is not shown to be a mean over the samples."""
    assert len(judged(result(step=step)).draws) == tests


def test_a_size_of_each_ranks_own_is_no_unknown_value() -> None:
    """How often a tensor is repeated may come from what a draw has made, as in a model that is sometimes given no labels."""
    step = "many = x.repeat(1, int(torch.randint(1, 4, ())))\nz = model(x).mean(1) + many.mean(1)\nz.mean().backward()"
    found = judged(result(step=step))
    assert not found.doubts and not [f for f in found.faults if "how often" in f.words], (found.doubts, found.faults)


_FORCED = """
class Forced(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)

    def forward(self, x):
        z = self.layer(x)
        {way}
        return z


forced = ddp.wrap(Forced())
of_forced = torch.optim.SGD(forced.parameters(), lr=0.1)
{loss}.backward()
of_forced.step()
"""


@pytest.mark.parametrize(
    ("way", "loss", "mean"),
    [
        pytest.param("z = z * 2 if random.random() < 0.5 else z", "forced(x).sum(1).mean()", True, id="a mean"),
        pytest.param("if random.random() < 0.5:\n            z = self.layer(z)", "ddp.sum_loss(forced(x).sum())", True, id="a sum that is made a mean"),
        pytest.param("z = z * 2 if random.random() < 0.5 else z", "forced(x).sum()", False, id="a sum"),
        pytest.param("z = z.t() if random.random() < 0.5 else z", "ddp.sum_loss(forced(x).sum())", False, id="rows on another axis"),
        pytest.param("z = z * (2.0 if random.random() < 0.5 else 1.0)", "ddp.sum_loss(forced(x).sum())", False, id="a drawn number"),
        pytest.param("z = z.mean(0) if random.random() < 0.5 else z", "ddp.sum_loss(forced(x).sum())", False, id="the mean of the rows"),
    ],
)
def test_rows_of_the_rank_that_a_model_chooses_by_its_own_draw_stay_such_rows(way: str, loss: str, mean: bool) -> None:
    found = judged(result(step=_FORCED.format(way=way, loss=loss))).faults
    assert (not [f for f in found if "loss" in f.words]) is mean
