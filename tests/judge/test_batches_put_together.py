"""What ranks exchange, and not where a DataLoader puts batches together."""

from __future__ import annotations

from textwrap import indent

import pytest

from dpmigrate.judge import group, judged
from tests.judge.trained import result

_MADE = """
def put(samples):
    x = torch.stack([s[0] for s in samples])
    return {}, torch.stack([s[1] for s in samples])
other = ddp.distribute(DataLoader(data, batch_size=ddp.local_batch(8), collate_fn=put))
for x, y in other:
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        pytest.param("x", False, id="nothing"),
        pytest.param("x - ddp.batch_mean(x.mean(0))", True, id="a mean"),
        pytest.param("x * ddp.world_size() / ddp.world_size()", False, id="the number of ranks"),
    ],
)
def test_workers_exchange_nothing(given: str, wrong: bool) -> None:
    found = [f for f in judged(result(end=_MADE.format(given))).faults if f.invariant == group.NAME and "workers" in f.words]
    assert bool(found) is wrong


@pytest.mark.parametrize(
    ("given", "coupled"),
    [pytest.param("x", False, id="each by itself"), pytest.param("x - x.mean(0)", True, id="their mean"), pytest.param("x / x.std()", True, id="their spread")],
)
def test_a_loss_of_samples_that_meet_in_a_batch(given: str, coupled: bool) -> None:
    """No result is right by which each rank takes the mean of its own part."""
    found = [f.words for f in judged(result(end=_MADE.format(given))).faults if "samples meet where a batch is put together" in f.words]
    assert bool(found) is coupled


def test_what_follows_an_exception_is_no_part_of_it() -> None:
    """A batch may have been under way where an exception came: the handler runs in the process that trains."""
    lines = indent(_MADE.format("x").strip("\n"), "    ")
    end = f"try:\n{lines}\nexcept KeyboardInterrupt:\n    pass\nddp.barrier()\n"
    assert not [f for f in judged(result(end=end)).faults if f.invariant == group.NAME]
