"""``zip(*...)`` turns pairs of samples into columns, whatever expression gives the pairs: the columns have the order of the pairs."""

from __future__ import annotations

import pytest

from dpmigrate.judge import judged
from tests.judge.trained import result

_MADE = """
def put(batch):
    xs, ys = [b[0] for b in batch], [b[1] for b in batch]
    {}
    return torch.stack([x * 2 for x in xs]), torch.stack(list(ys))
other = ddp.distribute(DataLoader(data, batch_size=ddp.local_batch(8), collate_fn=put))
for x, y in other:
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
"""
_SORTED = "sorted(zip(xs, ys), key=lambda p: p[0][0].item(), reverse=True)"


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("xs, ys = zip(*zip(xs, ys))", id="as they were"),
        pytest.param("xs, ys = zip(*[(b[0], b[1]) for b in batch])", id="a comprehension"),
        pytest.param("xs, ys = zip(*((b[0], b[1]) for b in batch))", id="a generator"),
        pytest.param(f"xs, ys = zip(*{_SORTED})", id="both sorted"),
        pytest.param("xs, ys = zip(*sorted(batch, key=lambda b: b[0][0].item()))", id="the batch sorted"),
        pytest.param(f"pairs = {_SORTED}\n    xs, ys = zip(*pairs)", id="both sorted, by a name"),
        pytest.param("order, xs = zip(*sorted(enumerate(xs), key=lambda p: p[1][0].item()))\n    ys = [ys[i] for i in order]", id="by an order"),
    ],
)
def test_columns_in_one_order(line: str) -> None:
    assert judged(result(end=_MADE.format(line))).means


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(f"xs, _ = zip(*{_SORTED})", id="one sorted"),
        pytest.param(f"_, ys = zip(*{_SORTED})", id="the other sorted"),
        pytest.param(f"xs, _ = list(zip(*{_SORTED}))", id="in a list"),
        pytest.param(f"xs = list(zip(*{_SORTED}))[0]", id="by a place"),
        pytest.param(f"xs, _ = [list(t) for t in zip(*{_SORTED})]", id="each a list"),
        pytest.param("xs, _ = zip(*list(zip(xs, ys))[::-1])", id="turned round"),
        pytest.param("xs, _ = zip(*reversed(list(zip(xs, ys))))", id="reversed"),
    ],
)
def test_columns_in_two_orders(line: str) -> None:
    """Which sample meets which label then is another thing in a rank's part of the batch."""
    found = judged(result(end=_MADE.format(line)))
    assert not found.means
    assert found.faults
