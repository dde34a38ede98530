"""The workers of all ranks have seeds of their own."""

from __future__ import annotations

import pytest

from dpmigrate.judge import faults, workers
from dpmigrate.program import Program
from dpmigrate.source import Source, parse
from tests.judge.trained import result

_NOISY = """\
class Noisy(torch.utils.data.Dataset):
    def __len__(self): return 64
    def __getitem__(self, i):
        return data[i][0] * np.random.rand(), data[i][1]
base = 3
def begin(number):
    {}
loader = DataLoader(Noisy(), batch_size=ddp.local_batch(16), sampler=ddp.DistributedSampler(Noisy()), num_workers=2, worker_init_fn=begin)
"""
_OF_EVALUATION = """\
def begin(number):
    np.random.seed(number)
shown = DataLoader(data, batch_size=16, worker_init_fn=begin)
"""


@pytest.mark.parametrize(
    ("begins", "alike"),
    [
        pytest.param("np.random.seed(base + number)", True, id="the worker's number"),
        pytest.param("np.random.seed(17)", True, id="one seed for all"),
        pytest.param("mine = base + number\n    np.random.seed(mine)", True, id="in a variable"),
        pytest.param("np.random.seed(base + ddp.worker_number(number))", False, id="its number among those of all ranks"),
        pytest.param("np.random.seed(torch.initial_seed() % 2**32)", False, id="torch's seed of the worker"),
        pytest.param("seed = torch.initial_seed() % 2**32\n    np.random.seed(seed + number)", False, id="the same in a variable"),
        pytest.param("np.random.seed(np.random.get_state()[1][0] + number)", False, id="the state that the worker begins with"),
        pytest.param("np.random.seed()", False, id="a seed of the system"),
        pytest.param("random.seed(number)", False, id="a stream that no sample draws from"),
        pytest.param("here = ddp.rank()\n    np.random.seed(number + 100 * here)", False, id="the rank"),
    ],
)
def test_workers_of_training(begins: str, alike: bool) -> None:
    found = faults(result(epoch=_NOISY.format(begins) + "loader.sampler.set_epoch(epoch)"))
    assert any(f.invariant == workers.NAME for f in found) is alike, found


@pytest.mark.parametrize(("given", "alike"), [("base", True), ("ddp.rank()", False)])
def test_a_function_that_is_given_more(given: str, alike: bool) -> None:
    begins = _NOISY.format("mine = own + 7\n    np.random.seed(mine)").replace("begin(number)", "begin(number, own)")
    begins = begins.replace("init_fn=begin", f"init_fn=functools.partial(begin, own={given})")
    found = faults(result(epoch=f"import functools\n{begins}loader.sampler.set_epoch(epoch)"))
    assert any(f.invariant == workers.NAME for f in found) is alike, found


def test_a_loader_that_is_distributed() -> None:
    whole = "DataLoader(Noisy(), batch_size=16, shuffle=True, num_workers=2, worker_init_fn=begin)"
    made = _NOISY.format("np.random.seed(number)").rpartition("loader = ")[0] + f"loader = ddp.distribute({whole})\n"
    found = faults(result(epoch=made + "loader.sampler.set_epoch(epoch)"))
    assert any(f.invariant == workers.NAME for f in found)


def test_workers_of_an_evaluation() -> None:
    drawn = "x = x * np.random.rand()"
    found = faults(result(epoch=_OF_EVALUATION, step=drawn))
    assert not [f for f in found if f.invariant == workers.NAME]


_TAKEN = """\
class Noisy(torch.utils.data.Dataset):
    def __len__(self): return 64
    def __getitem__(self, i):
        return data[i][0] * np.random.rand(), data[i][1]
ddp.setup()
data = TensorDataset(torch.randn(64, 2), torch.randint(0, 2, (64,)))
loader = DataLoader(Noisy(), batch_size=ddp.local_batch(16), sampler=ddp.DistributedSampler(Noisy()), num_workers={workers})
model = ddp.wrap(nn.Linear(2, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
{before}
batches = iter(loader)
{after}
for step in range(8):
    try:
        x, y = next(batches)
    except StopIteration:
        batches = iter(ddp.next_epoch(loader))
        x, y = next(batches)
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
ddp.cleanup()
"""
_IMPORTS = (
    "import numpy as np\nimport torch\nfrom torch import nn\nfrom torch.utils.data import DataLoader, TensorDataset\nimport dpmigrate_runtime as ddp\n"
)


@pytest.mark.parametrize("bar", ["loader", "map(list, loader)", "(batch for batch in loader)"])
@pytest.mark.parametrize(("kept", "alike"), [("False", False), ("True", True)])
def test_a_look_at_a_batch_before_the_ranks_have_their_streams(bar: str, kept: str, alike: bool) -> None:
    """The loop makes an iterator of its own, whose workers are seeded anew, but for those that stay."""
    text = _TAKEN.format(before="first = next(iter(loader))\nddp.seed_ranks()", after="", workers=f"2, persistent_workers={kept}")
    text = text.partition("batches = iter")[0] + f"for x, y in {bar}:\n    loss = nn.functional.cross_entropy(model(x), y)\n    loss.backward()\n    optimizer.step()\n"
    source = parse((_IMPORTS + text).encode(), "train.py")
    assert isinstance(source, Source)
    found = list(faults(Program.of(source)))
    assert any(f.invariant == workers.NAME for f in found) is alike, found


@pytest.mark.parametrize(
    ("parts", "alike"),
    [
        pytest.param({"after": "ddp.seed_ranks()"}, True, id="before the ranks have streams of their own"),
        pytest.param({"before": "ddp.seed_ranks()"}, False, id="after that"),
        pytest.param({"after": "ddp.seed_ranks()", "workers": "0"}, False, id="no workers"),
        pytest.param({"after": "first = next(iter(loader))\nddp.seed_ranks()\nbatches = iter(loader)"}, True, id="made again"),
    ],
)
def test_an_iterator_that_is_made_before(parts: dict[str, str], alike: bool) -> None:
    source = parse((_IMPORTS + _TAKEN.format(**{"before": "", "after": "", "workers": "2", **parts})).encode(), "train.py")
    assert isinstance(source, Source)
    found = list(faults(Program.of(source)))
    assert any(f.invariant == workers.NAME for f in found) is alike, found
