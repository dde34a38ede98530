"""DPM222: data that are drawn anew between the epochs."""

from __future__ import annotations

from textwrap import indent

import pytest

from tests.rules.program import STEP, after, found, hits, refused, whole

_CLASS = """
class Pairs(Dataset):
    def __init__(self):
        self.x = torch.zeros(8, 2)
    def __len__(self):
        return 8
    def __getitem__(self, i):
        return self.x[i], 0
    def draw(self):
        self.x = {value}
    def again(self):
        self.draw()
"""


def _parts(call: str, value: str = "torch.rand(8, 2)", **more: str) -> dict[str, str]:
    return {
        "imports": "import random\nimport numpy as np\nfrom torch.utils.data import Dataset",
        "defs": _CLASS.format(value=value),
        "data": "train_set = Pairs()",
        "epoch_start": call,
        **more,
    }


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({}, id="nothing is called"),
        pytest.param(_parts("train_set.draw()", "self.x + 1"), id="nothing is drawn"),
        pytest.param(_parts("train_set.set_epoch(epoch)"), id="an epoch is told"),
        pytest.param(_parts("", before="train_set.draw()"), id="before the epochs"),
        pytest.param(_parts("", step="train_set.draw()\n" + STEP), id="in a batch"),
        pytest.param(_parts("other.draw()", setup="other = Pairs()"), id="other data"),
        pytest.param(_parts("print('train_set.draw()')  # train_set.draw()"), id="in a string and a comment"),
        pytest.param(_parts("train_set.x = torch.ones(8, 2)"), id="nothing drawn is put in"),
        pytest.param(_parts("order = [3, 4]\ntrain_set.x = order"), id="nothing drawn is put in, by a name"),
        pytest.param(_parts("other.x = torch.rand(8, 2)", setup="other = Pairs()"), id="put into other data"),
        pytest.param(_parts("train_set.transform = torch.rand(8, 2)"), id="a transform"),
        pytest.param(_parts("print(train_set.x)"), id="shown"),
        pytest.param(_parts("'a remark'"), id="a string"),
        pytest.param(
            _parts(
                "model.change(train_set)", net="class Net(nn.Module):\n    def forward(self, x):\n        return x\n    def change(self, d):\n        d.draw()"
            ),
            id="in a model",
        ),
        pytest.param(_parts("order = torch.randperm(8)\nprint(order)"), id="drawn for something else"),
        pytest.param(_parts("", before="order = torch.randperm(8)", epoch_end="train_set.x = train_set.x[order]"), id="drawn before the epochs"),
        pytest.param(_parts("if train_set.draw():\n    pass"), id="in the head of a larger statement"),
    ],
)
def test_nothing_to_say(parts: dict[str, str]) -> None:
    assert found("DPM222", **parts) == []


@pytest.mark.parametrize(
    "value",
    ["torch.rand(8, 2)", "torch.randperm(8)", "np.random.rand(8, 2)", "[random.random()]", "rng.permutation(8)", "torch.empty(8, 2).normal_()"],
)
def test_what_is_drawn(value: str) -> None:
    assert "with ddp.same_stream():" in after(**_parts("train_set.draw()", value, before="rng = np.random.default_rng(0)"))


@pytest.mark.parametrize("call", ["train_set.draw()", "train_set.again()", "loader.dataset.draw()", "kept = train_set.draw()"])
def test_where_it_is_called(call: str) -> None:
    assert f"    with ddp.same_stream():\n            {call}\n" in whole(**_parts(call))


@pytest.mark.parametrize(
    ("lines", "kept"),
    [
        pytest.param("random.shuffle(train_set.x)", "", id="shuffled in place"),
        pytest.param("train_set.x = torch.rand(8, 2)", "", id="put in"),
        pytest.param("train_set.x[0] += torch.rand(2)", "", id="added to a part"),
        pytest.param("loader.dataset.x = train_set.x[torch.randperm(8)]", "", id="through the loader"),
        pytest.param("order = torch.randperm(8)", "train_set.x = train_set.x[order]", id="drawn in a statement of its own"),
    ],
)
def test_what_is_put_into_the_data(lines: str, kept: str) -> None:
    assert f"    with ddp.same_stream():\n            {lines}\n        {kept}".rstrip() in whole(**_parts(f"{lines}\n{kept}"))


def test_data_of_another_file_may_draw() -> None:
    (hit,) = hits("DPM222", imports="from data import Ratings", data="train_set = Ratings()", epoch_start="train_set.sample_negatives()")
    assert "train_set.sample_negatives() may draw" in hit.message


def test_a_function_that_leads_to_the_epoch() -> None:
    parts = _parts("refresh(train_set)")
    parts["defs"] += "\n\ndef refresh(data):\n    data.draw()"
    assert len(hits("DPM222", **parts)) == 1


# ---------------------------------------------------------------------- loaders that are built in every epoch
_MAKES = """
class Draws:
    def __init__(self, n):
        self.known = list(range(n))

    def rows(self, k):
        return [[u, random.choice(self.known)] for u in self.known for _ in range(k)]

    def loader(self, k):
        drawn = map(lambda u: random.sample(self.known, k), self.known)
        rows = torch.tensor([r[0] for r in drawn]).float()
        return DataLoader(TensorDataset(torch.stack([rows] * 8, 1), torch.zeros(len(rows)).long()), batch_size=16, shuffle=True)

    def plain(self, k):
        return DataLoader(TensorDataset(torch.ones(64, 8), torch.zeros(64).long()), batch_size=16, shuffle=True)


def some(u):
    return random.random()


def stream(n):
    for i in range(n):
        yield random.random()


def data_of(values):
    return TensorDataset(torch.tensor([[float(v)] * 8 for v in values]), torch.zeros(len(values)).long())
"""
_BUILD = "loader = DataLoader({}, batch_size=16, shuffle=True)"
_IN_ORDER = "from random import random as chance\nimport random\nimport numpy as np\nimport lib"


def _built(lines: str, **more: str) -> dict[str, str]:
    return {"imports": _IN_ORDER, "defs": _MAKES, "setup": "draws = Draws(64)", "loader": "", "epoch_start": lines, **more}


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param("loader = draws.plain(2)", id="nothing is drawn"),
        pytest.param("random.seed(epoch)\nloader = draws.plain(2)", id="a seed"),
        pytest.param("rows = torch.randperm(64, generator=torch.Generator().manual_seed(epoch))\n" + _BUILD.format("data_of(rows)"), id="a stream of its own"),
        pytest.param("noise = random.random()\nprint(noise)\nloader = draws.plain(2)", id="drawn for something else"),
        pytest.param("loader = draws.plain(2)\nprint('draws.loader(2)')  # draws.loader(2)", id="in a string and a comment"),
        pytest.param(_BUILD.format("lib.Data()").replace("lib.Data()", "torch.utils.data.Subset(train_set, [0, 1])"), id="a data set of torch's"),
    ],
)
def test_loaders_for_which_nothing_is_drawn(lines: str) -> None:
    assert found("DPM222", **_built(lines)) == []


def test_a_loader_that_is_drawn_once() -> None:
    assert found("DPM222", **_built("", loader="loader = draws.loader(2)")) == []


def test_a_sampler_of_each_batch_is_no_loader() -> None:
    assert found("DPM222", **_built("", loader="loader = draws.plain(2)", step="z = some(3)\n" + STEP)) == []


@pytest.mark.parametrize(
    ("lines", "under"),
    [
        pytest.param("loader = draws.loader(2)", ["loader = draws.loader(2)"], id="by a method"),
        pytest.param("loader = Draws.loader(draws, k=2)", ["loader = Draws.loader(draws, k=2)"], id="by its class, keyword"),
        pytest.param(_BUILD.format("data_of(draws.rows(2)[0])"), [_BUILD.format("data_of(draws.rows(2)[0])")], id="its data in the call"),
        pytest.param("rows = draws.rows(2)[0]\n" + _BUILD.format("data_of(rows)"), ["rows = draws.rows(2)[0]"], id="its data in a statement"),
        pytest.param("rows = [u for u in range(64) if chance() < 0.5]\n" + _BUILD.format("data_of(rows)"), ["rows = [u for u in range(64) if chance() < 0.5]"], id="a subset, from-import"),
        pytest.param("rows = np.random.choice(64, 9)\n" + _BUILD.format("data_of(rows)"), ["rows = np.random.choice(64, 9)"], id="numpy"),
        pytest.param("order = torch.randperm(64)\nrows = order[:9]\n" + _BUILD.format("torch.utils.data.Subset(train_set, rows)"), ["order = torch.randperm(64)"], id="torch, through a name"),
        pytest.param("rows = map(some, range(64))\nkept = list(rows)\n" + _BUILD.format("data_of(kept)"), ["rows = map(some, range(64))", "kept = list(rows)"], id="drawn when it is gone through"),
        pytest.param("rows = stream(64)\nkept = list(rows)\n" + _BUILD.format("data_of(kept)"), ["rows = stream(64)", "kept = list(rows)"], id="a generator"),
        pytest.param("rows = []\nfor u in range(9):\n    rows.append(random.random())\n" + _BUILD.format("data_of(rows)"), ["for u in range(9):", "rows.append(random.random())"], id="a loop that fills a list"),
        pytest.param("rows = [0] * 9\nfor u in range(9):\n    rows[u] = random.random()\n" + _BUILD.format("data_of(rows)"), ["for u in range(9):", "rows[u] = random.random()"], id="a loop that fills places"),
        pytest.param("rows = list(range(64))\nrandom.shuffle(rows)\n" + _BUILD.format("data_of(rows)"), ["random.shuffle(rows)"], id="shuffled in place"),
        pytest.param("rows = list(range(64))\nif epoch > 1:\n    random.shuffle(rows)\n" + _BUILD.format("data_of(rows)"), ["random.shuffle(rows)"], id="under a test of all ranks"),
        pytest.param("rows = list(range(64))\nif lib.now():\n    random.shuffle(rows)\n" + _BUILD.format("data_of(rows)"), ["if lib.now():", "random.shuffle(rows)"], id="under a test of this rank's"),
        pytest.param("draws.kept = draws.rows(2)[0]\n" + _BUILD.format("data_of(draws.kept)"), ["draws.kept = draws.rows(2)[0]"], id="an attribute"),
        pytest.param("draws.known.append(random.randint(0, 9))\n" + _BUILD.format("data_of(draws.known)"), ["draws.known.append(random.randint(0, 9))"], id="an attribute that is filled"),
        pytest.param(_BUILD.format("lib.Ratings('a')"), [_BUILD.format("lib.Ratings('a')")], id="a data set of another library may draw"),
        pytest.param("loader = lib.get_loader(epoch)", ["loader = lib.get_loader(epoch)"], id="a loader of another library may draw"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("module_level", [False, True], ids=["function", "module"])
def test_a_loader_that_is_drawn_in_every_epoch(lines: str, under: list[str], module_level: bool) -> None:
    text = whole(module_level=module_level, **_built(lines))
    body, depth = text.splitlines(), 0
    enclosed = []
    for i, line in enumerate(body):
        if line.strip() == "with ddp.same_stream():":
            depth = len(line) - len(line.lstrip())
            rest = body[i + 1 :]
            enclosed += [r.strip() for r in rest[: next(j for j, r in enumerate(rest) if r.strip() and len(r) - len(r.lstrip()) <= depth)]]
    stood = [line for line in enclosed if not line.startswith("train_set_2 = ")]  # the data set has a name of its own for the sampler
    assert [line[:9] for line in stood] == [line[:9] for line in under]
    assert "ddp.seed_ranks()" in text


def test_a_loader_for_evaluation() -> None:
    lines = "held = draws.loader(2)\nwith torch.no_grad():\n    right = 0\n    for a, b in held:\n        right += (model(a).argmax(1) == b).sum().item()\nprint(right)"
    assert "with ddp.same_stream():\n            held = draws.loader(2)" in whole(**_built("", loader="loader = draws.plain(2)", epoch_end=lines))


_TRAIN = "def train(model, loader, optimizer):\n    for x, y in loader:\n" + "".join(f"        {line}\n" for line in STEP.splitlines())


def test_a_loader_that_is_built_where_it_is_used() -> None:
    """It is built before the statement: what stands in a statement that trains cannot all have one stream."""
    head = whole(**_built("", batches="for x, y in draws.loader(2):"))
    assert "        with ddp.same_stream():\n            drawn_loader = draws.loader(2)\n" in head
    assert "for x, y in ddp.next_epoch(drawn_loader):" in head
    given = _built("", batches="if True:", step="train(model, draws.loader(k=2), optimizer)")
    call = whole(**{**given, "defs": _MAKES + _TRAIN})
    assert "drawn_loader = draws.loader(k=2)\n" in call and "train(model, drawn_loader, optimizer)" in call


@pytest.mark.parametrize(
    ("batches", "step", "pointed"),
    [
        pytest.param("if True:", "[train(model, draws.loader(2), optimizer) for _ in range(2)]", "draws.loader(2)", id="in a comprehension"),
        pytest.param("while train(model, draws.loader(2), optimizer):", "pass", "draws.loader(2)", id="in the head of a while"),
        pytest.param("if lib.now():", "l = draws.loader(2)\ntrain(model, l, optimizer)", "l = draws.loader(2)", id="under a test of this rank's"),
    ],
)
def test_refused(batches: str, step: str, pointed: str) -> None:
    parts = _built("", batches=batches, step=step)
    assert refused("DPM222", **{**parts, "defs": _MAKES + _TRAIN}) == [pointed]


def test_a_function_that_builds_and_trains() -> None:
    """What is drawn in it is run by the ranks together there."""
    run = "def run(model, draws, optimizer):\n    loader = draws.loader(2)\n    train(model, loader, optimizer)\n"
    text = whole(**{**_built("", batches="if True:", step="run(model, draws, optimizer)"), "defs": _MAKES + _TRAIN + run})
    assert "    with ddp.same_stream():\n        loader = draws.loader(2)\n" in text


def test_a_stream_that_is_not_given() -> None:
    assert found("DPM222", **_built("rows = torch.randperm(64, generator=None)\n" + _BUILD.format("data_of(rows)")))


@pytest.mark.parametrize(
    ("line", "drawn"),
    [
        pytest.param("data.x = data.x[order]", ["np.random.shuffle(order)"], id="put into it"),
        pytest.param("print(data.x[order])", [], id="shown"),
    ],
)
@pytest.mark.parametrize("given", [True, False], ids=["in a function that is given the data", "in the loop"])
def test_an_order_that_is_shuffled_in_place(line: str, drawn: list[str], given: bool) -> None:
    lines = f"order = list(range(8))\nnp.random.shuffle(order)\n{line}"
    if given:
        parts = _parts("renew(train_set)")
        parts["defs"] += "\ndef renew(data):\n" + indent(lines, "    ")
    else:
        parts = _parts(lines.replace("data.", "train_set."))
    assert found("DPM222", **parts) == drawn
    assert ("with ddp.same_stream():" in [new.strip() for new in after(**parts)]) is bool(drawn)
