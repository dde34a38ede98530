"""Random numbers that the ranks draw alike: from streams of the process that are seeded again, and from generators of the program."""

from __future__ import annotations

import pytest

from dpmigrate.judge import judged, streams
from tests.judge.trained import result

_NOISE = "x = x + torch.randn(x.shape)"
_ARRAYS = "x = x + torch.as_tensor(np.random.normal(size=x.shape))"
_DRAWN = "x = x + torch.as_tensor({}.normal(size=(x.shape[0], 2)))"
_MADE = "if epoch == 0:\n    g = {}"
_SAMPLE = "class Noisy(torch.utils.data.Dataset):\n    def __getitem__(self, i):\n        return data[i][0] * rng.random(), data[i][1]\n"

_OF_SAMPLE = (
    "class Noisy(torch.utils.data.Dataset):\n    def __len__(self): return 64\n    def __getitem__(self, i):\n"
    "        rng = np.random.default_rng({})\n        return data[i][0] * rng.normal(), data[i][1]\n"
    "noisy = DataLoader(Noisy(), batch_size=ddp.local_batch(16), sampler=ddp.DistributedSampler(Noisy()))"
)
_PICTURE = "z = torch.randn(4, 2)\nprint(net(z))"
_AGAIN = "model(z).sum().backward()"


@pytest.mark.parametrize(
    ("parts", "alike"),
    [
        pytest.param({"step": _NOISE}, False, id="own streams"),
        pytest.param({"epoch": "torch.manual_seed(7 + epoch)", "step": _NOISE}, True, id="seeded anew"),
        pytest.param({"epoch": "torch.manual_seed(7 + epoch)\nddp.seed_ranks()", "step": _NOISE}, False, id="and parted again"),
        pytest.param({"epoch": "np.random.seed(epoch)", "step": _NOISE}, False, id="another stream"),
        pytest.param({"step": _ARRAYS}, False, id="own streams of numpy"),
        pytest.param({"epoch": "np.random.seed(epoch)", "step": _ARRAYS}, True, id="numpy seeded anew"),
        pytest.param({"epoch": "np.random.seed(epoch)", "step": "x = x * np.random.beta(0.2, 0.2)"}, False, id="one number for the batch"),
        pytest.param({"epoch": "torch.manual_seed(7 + epoch)", "step": _ARRAYS}, False, id="torch seeded anew, numpy drawn"),
        pytest.param({"epoch": "random.seed(epoch)", "step": "p = random.sample(range(50), 8)"}, False, id="a list that all ranks draw"),
        pytest.param({"end": "torch.manual_seed(1)\nwith torch.no_grad():\n    z = torch.randn(4, 2)\nddp.seed_ranks()", "step": _NOISE}, False, id="in an evaluation"),
        pytest.param({"last": f"torch.manual_seed(1)\n{_PICTURE}"}, False, id="when nothing is trained any more"),
        pytest.param({"last": f"torch.manual_seed(1)\n{_PICTURE}\n{_AGAIN}"}, True, id="and before another training"),
        pytest.param({"end": f"torch.manual_seed(1)\n{_PICTURE}"}, True, id="after each epoch"),
        pytest.param({"step": "x = x + torch.randn(x.shape, generator=generator)"}, True, id="a generator with one seed"),
        pytest.param({"step": "x = x + torch.randn(8, 2, generator=generator)"}, True, id="as many in a turn of a rank"),
        pytest.param({"step": "x = x * torch.rand((), generator=generator)"}, False, id="one number from a generator"),
        pytest.param({"epoch": "z = torch.randn(8, 2, generator=generator)"}, False, id="for all ranks together"),
        pytest.param({"epoch": _MADE.format("torch.Generator()"), "step": "x = x + torch.randn(x.shape, generator=g)"}, True, id="torch's seed of generators"),
        pytest.param({"epoch": _MADE.format("np.random.default_rng(0)"), "step": _DRAWN.format("g")}, True, id="default_rng"),
        pytest.param({"epoch": _MADE.format("np.random.default_rng(0)"), "step": "i = g.permutation(len(x))"}, True, id="a method that chooses"),
        pytest.param({"epoch": _MADE.format("np.random.RandomState(seed=0)"), "step": _DRAWN.format("g")}, True, id="RandomState"),
        pytest.param({"epoch": _MADE.format("np.random.Generator(np.random.PCG64(3))"), "step": _DRAWN.format("g")}, True, id="Generator"),
        pytest.param({"epoch": _MADE.format("np.random.default_rng(np.random.default_rng(0))"), "step": _DRAWN.format("g")}, True, id="of another generator"),
        pytest.param({"epoch": _MADE.format("np.random.default_rng()"), "step": _DRAWN.format("g")}, False, id="a seed of the system"),
        pytest.param({"epoch": _MADE.format("np.random.default_rng(0)\n    g.seed(ddp.rank())"), "step": _DRAWN.format("g")}, False, id="a rank's seed"),
        pytest.param({"epoch": "rng = random.Random(0)\n" + _SAMPLE, "step": "x = x + Noisy()[0][0]"}, True, id="random.Random for a sample"),
        pytest.param({"epoch": _OF_SAMPLE.format("[3, i]"), "step": "x = next(iter(noisy))[0]"}, False, id="a seed of the sample's own"),
        pytest.param({"epoch": _OF_SAMPLE.format("[3, 4]"), "step": "x = next(iter(noisy))[0]"}, True, id="one list of seeds"),
        pytest.param({"epoch": "rng = random.Random()\n" + _SAMPLE, "step": "x = x + Noisy()[0][0]"}, False, id="random.Random of the system"),
        pytest.param({"epoch": "rng = random.Random(0)", "step": "x = x * rng.uniform(0, 1)"}, False, id="random.Random for the batch"),
    ],
)
def test_random_numbers_of_training(parts: dict[str, str], alike: bool) -> None:
    found = [f for f in judged(result(**parts)).faults if f.invariant == streams.NAME]
    assert bool(found) is alike, found


_DIVIDED = "for x, y in val_loader:\n    with torch.no_grad():\n        {}\n        total += nn.functional.cross_entropy(net(x), y).item()\n"


@pytest.mark.parametrize(
    ("draw", "loader", "said"),
    [
        pytest.param("x = x + torch.randn_like(x)", "shard", "torch.randn_like(x)", id="torch"),
        pytest.param("x = x + torch.randn(x.shape, generator=generator)", "shard", "torch.randn(x.shape, generator=generator)", id="a generator"),
        pytest.param("x = x + torch.as_tensor(np.random.RandomState(1).randn(*x.shape))", "shard", "np.random.RandomState(1).randn(*x.shape)", id="numpy"),
        pytest.param("x = x * random.random()", "shard", "", id="one number"),
        pytest.param("pass", "shard", "", id="no draw"),
        pytest.param("x = x + torch.randn_like(x)", "list", "", id="not divided"),
        pytest.param("x = x * torch.rand(())", "list", "", id="one number, not divided"),
        pytest.param("pass", "list", "", id="no draw, not divided"),
    ],
)
def test_draws_of_an_evaluation(draw: str, loader: str, said: str) -> None:
    """What is drawn for its samples is not what one process draws, and no fault."""
    over = "ddp.shard(val_loader)" if loader == "shard" else "val_loader"
    found = judged(result(end=_DIVIDED.format(draw).replace("val_loader", over)))
    assert found.drawn == said
    drawn = draw.partition("x + ")[2] or draw.partition("x * ")[2]
    if loader == "list":  # each rank draws for the whole evaluation
        assert found.drawn_in_full == drawn
    assert not [f for f in found.faults if f.invariant == streams.NAME]
