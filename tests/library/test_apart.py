"""What differs between ranks although no rank and no batch is in it: streams, clocks, hashes, orders of sets, files that rank 0 has just made."""

from __future__ import annotations

import pytest

from tests.execution.paper import executed, held, parted, placed

_HEAD = "import os, sys, json, random, re\nimport numpy as np\nimport dpmigrate_runtime as ddp\nfrom tqdm import tqdm\nddp.setup()\nrank = ddp.rank()\n"


def _found(text: str, name: str = "x") -> str:
    return placed(executed(_HEAD + text), name)


DRAWS = (
    "random.random()", "random.choice([1, 2, 3])", "np.random.rand(3)", "np.random.choice(5)", "torch.randn(3)", "torch.randperm(4)",
    "torch.rand_like(torch.ones(2))",
)  # fmt: skip


@pytest.mark.parametrize("draw", DRAWS)
def test_streams(draw: str) -> None:
    assert _found(f"x = {draw}\n") == "uniform"
    assert _found(f"ddp.seed_ranks()\nx = {draw}\n") == "per rank"
    assert _found(f"ddp.seed_ranks()\nwith ddp.same_stream():\n    x = {draw}\n") == "uniform"
    assert _found(f"ddp.seed_ranks()\nwith ddp.same_stream():\n    pass\nx = {draw}\n") == "per rank"
    assert _found(f"with ddp.same_stream():\n    pass\nx = {draw}\n") == "uniform"
    assert _found(f"with ddp.own_streams():\n    x = {draw}\n") == "per rank"
    assert _found(f"with ddp.own_streams():\n    pass\nx = {draw}\n") == "uniform"
    assert _found(f"ddp.seed_ranks()\nx = ddp.from_main({draw})\n") == "uniform"


@pytest.mark.parametrize("draw", ["torch.randn(3, generator=g)", "np.random.RandomState(3).rand(2)", "np.random.default_rng(0).choice(5)"])
def test_streams_of_the_programs_own(draw: str) -> None:
    assert _found(f"ddp.seed_ranks()\ng = torch.Generator()\nx = {draw}\n") == "uniform"


@pytest.mark.parametrize(
    "draw",
    [
        "torch.randn(3, generator=torch.Generator().manual_seed({}))", "np.random.RandomState({}).rand(2)", "np.random.default_rng(seed={}).choice(5)",
        "torch.rand(2, generator=ddp.rank_generator(torch.Generator().manual_seed({})))",
    ],
)  # fmt: skip
def test_streams_by_their_seeds(draw: str) -> None:
    assert _found(f"x = {draw.format('rank + 3')}\n") == "per rank"
    assert _found(f"x = {draw.format('3')}\n") == ("per rank" if "rank_" in draw else "uniform")
    assert _found(f"torch.manual_seed(rank)\nx = {draw.format('3')}\n") == ("per rank" if "rank_" in draw else "uniform")


def test_a_seed_of_each_rank() -> None:
    assert _found("torch.manual_seed(3 + rank)\nx = torch.rand(2)\n") == "per rank"
    assert _found("torch.manual_seed(3)\nx = torch.rand(2)\n") == "uniform"


@pytest.mark.parametrize("owner", ["[1, 2, 3, 4]", "sys.argv", "torch.ones(9, 2)", "np.ones(9)", "sys.argv[1]"])
@pytest.mark.parametrize("key", ["rank", "rank:", ":rank + 1", "rank:rank + 2", "::rank + 1"])
def test_a_part_by_rank(owner: str, key: str) -> None:
    for bound, placement in ((key, "per rank"), (key.replace("rank", "1"), "uniform")):
        ex = executed(f"{_HEAD}x = {owner}[{bound}]\n")
        assert str(ex.depends(held(ex, "x"))) == placement


def test_a_draw_of_each_rank_parts_the_ranks() -> None:
    ex = executed(f"{_HEAD}if random.random() < 0.5:\n    print(1)\nddp.seed_ranks()\nif random.random() < 0.5:\n    print(2)\n")
    assert parted(ex) == [False, True]


@pytest.mark.parametrize("choices", ["[(1, 2), (3, 4)]", "[len, print]", "[[1], [2]]", "[torch.nn.ReLU(), torch.nn.GELU()]"])
def test_objects_that_are_drawn(choices: str) -> None:
    assert _found(f"import random\nx = random.choice({choices})\n") == "uniform"
    assert _found(f"ddp.seed_ranks()\nx = random.choice({choices})\n") == "per rank"


def test_what_cannot_be_shuffled() -> None:
    assert _found("ddp.seed_ranks()\nx = 1\nxs = []\nrandom.shuffle(xs)\nrandom.shuffle(sys.argv)\nrandom.shuffle({})\n") == "uniform"


@pytest.mark.parametrize("shuffle", ["random.shuffle", "np.random.shuffle"])
def test_shuffled_in_place(shuffle: str) -> None:
    text = "xs = [1, 2, 3]\n{}\nx = 0\nfor i in xs:\n    x = i\n"
    assert _found(text.format(f"{shuffle}(xs)")) == "uniform"
    assert _found(text.format(f"ddp.seed_ranks()\n{shuffle}(xs)")) == "per rank"


@pytest.mark.parametrize(
    ("expression", "placement"),
    [
        ("next(iter(set(names)))", "per rank"),
        ("list(set(names))[0]", "per rank"),
        ("[n for n in {'a', 'b'}][0]", "per rank"),
        ("set(names).pop()", "per rank"),
        ("list({3, 1, 2})[0]", "uniform"),
        ("list({'a'})[0]", "uniform"),
        ("sorted(set(names))[0]", "uniform"),
        ("sorted(list(set(names)))[0]", "uniform"),
        ("len(set(names))", "uniform"),
        ("max(set(names))", "uniform"),
        ("'a' in set(names)", "uniform"),
        ("list(set(list(set(names))))[0]", "per rank"),
        ("sorted(set(list(set(names))))[0]", "uniform"),
    ],
)
def test_the_order_of_a_set(expression: str, placement: str) -> None:
    assert _found(f"names = sys.argv[1].split(',')\nx = {expression}\n") == placement


def test_a_list_of_a_set_is_sorted() -> None:
    text = "names = list(set(sys.argv[1].split(',')))\n{}x = names[0]\n"
    assert _found(text.format("")) == "per rank"
    assert _found(text.format("names.sort()\n")) == "uniform"


@pytest.mark.parametrize(
    "expression",
    [
        "repr(rank)", "format(rank, 'd')", "hex(rank)", "json.dumps({'a': rank})", "re.sub('a', 'b', str(rank))", "os.path.dirname(ddp.main_path('a'))",
        "sys.stdout.write(str(rank))", "open('a', 'w').write(str(rank))", "tqdm([1]).update(1)", "ddp.main_path('a')", "hash('a')", "id(rank)",
        "'{m.value}'.format(m=meter)", "f'{meter}'", "str(meter)", "'%s' % meter",
    ],
)  # fmt: skip
def test_plain_data_of_one_rank(expression: str) -> None:
    meter = "class Meter:\n    def __init__(self, value):\n        self.value = value\n"
    assert _found(f"{meter}meter = Meter(rank)\nx = {expression}\n") == "per rank"


@pytest.mark.parametrize(
    "expression",
    ["repr(2)", "hex(int(sys.argv[1]))", "json.dumps({'a': 1})", "os.path.dirname('a')", "sys.stdout.write('a')", "hash(3)", "'{m.value}'.format(m=meter)", "str(meter)"],
)
def test_plain_data_of_all(expression: str) -> None:
    meter = "class Meter:\n    def __init__(self, value):\n        self.value = value\n"
    assert _found(f"{meter}meter = Meter(1)\nx = {expression}\n") == "uniform"


@pytest.mark.parametrize("asks", ["os.path.exists('a')", "os.listdir('a')", "os.path.isfile('a')"])
def test_what_rank_0_has_made_before(asks: str) -> None:
    assert _found(f"x = {asks}\n") == "uniform"
    assert _found(f"with ddp.main_first():\n    x = {asks}\n") == "per rank"
    assert _found(f"with ddp.main_first():\n    pass\nx = {asks}\n") == "uniform"


@pytest.mark.parametrize(("made", "some"), [("os.mkdir('a')", True), ("os.makedirs('a')", True), ("os.makedirs('a', exist_ok=True)", False)])
def test_who_comes_first_makes_the_folder(made: str, some: bool) -> None:
    ex = executed(f"{_HEAD}try:\n    {made}\nexcept OSError:\n    print(1)\nprint(2)\n")
    assert parted(ex) == [some, False]


_SET = "class Own(torch.utils.data.Dataset):\n    def __getitem__(self, i):\n        if i > 5:\n            print(1)\n        return torch.ones(3), i\n"


def test_each_rank_has_other_samples() -> None:
    ex = executed(f"{_HEAD}{_SET}for x, y in torch.utils.data.DataLoader(Own(), batch_size=4):\n    print(2)\nz = Own()[3]\n")
    assert parted(ex) == [True, False]
    assert (placed(ex, "x"), placed(ex, "y")) == ("rows(axis 0)", "rows(axis 0)")
    assert placed(ex, "z") == "uniform"


def test_a_sample_may_be_made_of_what_no_table_knows() -> None:
    text = "class Own:\n    def __getitem__(self, i):\n        read = unheard.of(str(i)).convert('RGB')\n        return read + 1, str(i)\n"
    ex = executed(f"import unheard\n{text}for x, y in torch.utils.data.DataLoader(Own(), batch_size=4):\n    pass\n")
    assert (placed(ex, "x"), placed(ex, "y")) == ("rows(axis 0)", "rows(axis 0)")
    assert not ex.trace.missed


def test_added_at_places() -> None:
    loader = "for t in torch.utils.data.DataLoader(torch.ones(8)):\n    np.add.at(x, t.numpy(), 1)\n"
    assert _found(f"x = np.zeros(3)\n{loader}") == "partial(sum)"
    assert _found(f"x = np.ones(3)\n{loader}") == "unknown"
    assert _found("x = np.ones(3)\nnp.add.at(x, [1], 1)\n") == "uniform"


_MODEL = "model = torch.nn.Linear(2, 2)\n"


@pytest.mark.parametrize(
    ("call", "printed"),
    [
        ("torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: print(step))", 1),
        ("torch.optim.lr_scheduler.LambdaLR(optimizer, lr_lambda=[f, f])", 1),
        ("torch.optim.lr_scheduler.CyclicLR(optimizer, 1, 2, scale_fn=f)", 1),
        ("torch.optim.lr_scheduler.StepLR(optimizer, 3)", 0),
        ("torch.optim.lr_scheduler.SequentialLR(optimizer, [torch.optim.lr_scheduler.StepLR(optimizer, 3)], [4])", 0),
    ],
)
def test_schedulers_call_what_they_are_given(call: str, printed: int) -> None:
    head = f"{_MODEL}def f(step):\n    print(step)\noptimizer = torch.optim.SGD(model.parameters(), lr=1)\n"
    assert len(parted(executed(f"{head}{call}\n"))) == printed


@pytest.mark.parametrize(("name", "runs"), [("reset_parameters", [1, 2]), ("module", [2])])
def test_modules_of_a_library_may_have_more_than_is_seen(name: str, runs: list[int]) -> None:
    text = f"{_MODEL}if hasattr(model, '{name}'):\n    print(1)\nelse:\n    print(2)\n"
    assert len(parted(executed(text))) == len(runs)
