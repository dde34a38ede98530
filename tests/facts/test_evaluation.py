"""How each loop that does not train will run: split, in full on every rank, or left alone; and which buffers are made equal before it."""

from __future__ import annotations

import pytest

from dpmigrate.facts.evaluation import Evaluation, Way
from dpmigrate.facts.reasons import Why
from dpmigrate.facts.script import Script
from tests.pipeline import script
from tests.rules.program import program

_BN = "model = nn.Sequential(nn.Linear(8, 2), nn.BatchNorm1d(2))"
_EVAL = "model.eval()\nn = 0"
_ADD = "n += (model(a).argmax(1) == b).sum().item()"


def _script(body: str, start: str = "n = 0", after: str = "print(n)", source: str = "DataLoader(val_set)", target: str = "a, b", **parts: str) -> Script:
    inside = "".join(f"    {line}\n" for line in body.splitlines())
    return script(program(end=f"{start}\nfor {target} in {source}:\n{inside}{after}", **parts))  # type: ignore[arg-type]


def _one(body: str, **parts: str) -> Evaluation:
    (found,) = _script(body, **parts).evaluations
    return found


def test_training_is_no_evaluation() -> None:
    assert script(program()).evaluations == ()


def test_left_alone() -> None:
    found = _one("n += len(a)")
    assert (found.way, found.why, found.split, found.meets, found.undivided) == (Way.ALONE, None, False, False, False)


def test_split() -> None:
    found = _one(_ADD)
    assert (found.way, found.why, found.sums, found.rows, found.split, found.meets) == (Way.SPLIT, None, ("n",), (), True, True)
    assert not found.synchronised


def test_in_blocks() -> None:
    found = _one(
        "n += 1\nkept.extend(model(a).tolist())\nothers.append(b)\ntable[b] += 1",
        start="n, kept, others = 0, [], []\ntable = torch.zeros(2)",
        after="print(n, kept, table)",
    )
    assert (found.way, found.sums, found.rows) == (Way.BLOCKS, ("n", "table"), ("kept",))


_METER = "class M:\n    def __init__(self):\n        self.sum = self.n = 0\n    def add(self, v):\n        self.sum += v\n        self.n += 1\n        self.avg = self.sum / self.n"


def test_a_meter() -> None:
    found = _one("m.add(model(a).sum().item())", start="m = M()", after="print(m.avg)", defs=_METER)
    assert (found.way, found.sums, found.again) == (Way.SPLIT, ("m.sum", "m.n"), ("m.avg = m.sum / m.n",))


@pytest.mark.parametrize(
    ("body", "parts", "why", "about"),
    [
        pytest.param("print(model(a))", {}, Why.NOTHING_ADDED, "", id="nothing is added up"),
        pytest.param(_ADD, {"source": "zip(DataLoader(val_set), DataLoader(val_set))", "target": "(a, b), (c, d)"}, Why.SEVERAL_LOADERS, "", id="two loaders"),
        pytest.param(f"{_ADD}\nprint(n)", {}, Why.READ_INSIDE, "n", id="a running number"),
        pytest.param("n = n + n * model(a).sum().item()", {}, Why.READ_INSIDE, "n", id="a number that grows by itself"),
        pytest.param(f"{_ADD}\nbreak", {}, Why.LEAVES, "break", id="left early"),
        pytest.param(f"{_ADD}\nn += int(c)", {"source": "zip(DataLoader(val_set), range(3))", "target": "(a, b), c"}, Why.OTHER_BATCHES, "zip", id="beside something"),
        pytest.param(_ADD, {"source": "first(DataLoader(val_set), 3)", "defs": "def first(loader, k):\n    for i, pair in enumerate(loader):\n        if i == k:\n            return\n        yield pair"}, Why.OTHER_BATCHES, "first", id="the first of a generator"),
        pytest.param(_ADD, {"source": "twice(DataLoader(val_set))", "defs": "def twice(loader):\n    for pair in loader:\n        yield pair\n    yield pair"}, Why.OTHER_BATCHES, "twice", id="more of a generator"),
        pytest.param(_ADD, {"start": "n = 1"}, Why.NOT_ZERO, "n", id="from one"),
        pytest.param("m.add(model(a).sum().item())", {"start": "m = M()\nm.add(3)", "after": "print(m.avg)", "defs": _METER.replace("__init__", "set"), "before": "m = M()"}, Why.NOT_RESET, "m", id="a meter that goes on"),
        pytest.param(_ADD, {"start": "kept = list(DataLoader(val_set))\nn = 0", "source": "kept", "after": "for a, b in kept:\n    print(n)"}, Why.KEPT_BATCHES, "kept", id="batches for another loop"),
        pytest.param("n += score(model, a)", {"model": _BN, "defs": "def score(net, a):\n    return net(a).sum().item()"}, Why.MODEL_ELSEWHERE, "", id="no name for the model"),
    ],
)  # fmt: skip
def test_in_full(body: str, parts: dict[str, str], why: Why, about: str) -> None:
    found = _script(body, **parts).evaluations[0]
    assert found.way is Way.WHOLE and found.why is not None
    assert (found.why.why, found.why.about) == (why, about) and str(found.why) == why.value.format(about)
    assert not found.sums and not found.rows and not found.split


def test_batches_of_its_own_under_a_name() -> None:
    assert _one(_ADD, start="kept = list(DataLoader(val_set))\nn = 0", source="kept").way is Way.SPLIT


def test_a_generator_that_only_hands_on() -> None:
    found = _one(_ADD, source="moved(DataLoader(val_set))", defs="def moved(loader):\n    for a, b in loader:\n        a = a.float()\n        yield a, b")
    assert found.way is Way.SPLIT


def test_a_second_model_in_a_function() -> None:
    """The buffers of the one that has a name in the loop would be made equal, and not those of the other."""
    defs = "def score(net, a):\n    return net(a).sum().item()"
    optimizer = "other = nn.Linear(8, 2)\noptimizer = torch.optim.SGD([*model.parameters(), *other.parameters()], lr=0.1)"
    step = "optimizer.zero_grad()\n(F.cross_entropy(model(x), y) + F.cross_entropy(other(x), y)).backward()\noptimizer.step()"
    parts = {"model": _BN, "defs": defs, "optimizer": optimizer, "step": step}
    both = _one(f"{_ADD}\nn += score(other, a)", **parts)
    assert both.why is not None and both.why.why is Why.MODEL_ELSEWHERE
    assert _one(f"{_ADD}\nn += score(model, a)", start=_EVAL, **parts).way is Way.SPLIT


def test_the_loader_of_training() -> None:
    split, printed, looked_at = (_one(b, source="loader") for b in (_ADD, "print(model(a))", "print(a)"))
    assert (split.way, split.undivided) == (Way.SPLIT, False)
    assert (printed.way, printed.undivided) == (Way.WHOLE, True)
    assert looked_at.undivided and looked_at.why is not None and looked_at.why.why is Why.NO_MODEL


def test_the_batches_of_training_in_full_have_rank_0s_buffers_too() -> None:
    assert _one("print(model(a))", source="loader", model=_BN).synchronised == ("model",)


@pytest.mark.parametrize(("body", "way"), [pytest.param(_ADD, Way.SPLIT, id="split"), pytest.param("print(model(a))", Way.WHOLE, id="in full")])
def test_buffers(body: str, way: Way) -> None:
    found = _one(body, model=_BN, start=_EVAL)
    assert (found.way, found.synchronised, found.meets) == (way, ("model",), True)
    assert not _one(body).synchronised


def test_no_meeting_where_a_rank_may_come_alone() -> None:
    found = _one("print(model(a))", model=_BN, start="if torch.rand(1) > 2:\n    return\nn = 0")
    assert not found.synchronised and not found.meets
    found = _one(_ADD, model=_BN, start=f"if torch.rand(1) > 2:\n    return\n{_EVAL}")
    assert found.synchronised and found.meets  # DPM511 makes the test one that all ranks answer alike


def test_the_places_where_ranks_meet_are_those_of_the_fact() -> None:
    for body, model, meets in ((_ADD, "model = Net()", True), ("print(model(a))", "model = Net()", False), ("print(model(a))", _BN, True)):
        found = _script(body, model=model)
        (loop,) = (e.loop.node for e in found.evaluations)
        assert (loop in found.meetings) is meets and found.meets(loop) is meets
    whole = _script(_ADD, start="n = 1")
    assert whole.evaluations[0].loop.node not in whole.meetings


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({"start": _EVAL}, id="eval"),
        pytest.param({"start": "model.train(False)\nn = 0"}, id="train, False"),
        pytest.param({"start": "model.train(mode=False)\nn = 0"}, id="train, by keyword"),
        pytest.param({"start": "model.training = False\nn = 0"}, id="the attribute"),
        pytest.param({"start": "quiet(model)\nn = 0", "defs": "def quiet(net):\n    net.eval()"}, id="in a function"),
        pytest.param({"start": "for m in get():\n    m.eval()\nn = 0"}, id="of a model that is not known"),
        pytest.param({"start": _EVAL.replace("model", "model.module"), "model": "model = nn.DataParallel(nn.Sequential(nn.Linear(8, 2), nn.BatchNorm1d(2)))"}, id="behind .module"),
        pytest.param({"model": "model = nn.Linear(8, 2)"}, id="a model without buffers"),
    ],
)  # fmt: skip
def test_an_evaluation_out_of_training_mode_is_split(parts: dict[str, str]) -> None:
    assert _one(_ADD, **{"model": _BN, **parts}).way is Way.SPLIT


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({}, id="no word of it"),
        pytest.param({"start": "model.train()\nn = 0"}, id="train"),
        pytest.param({"start": "was = model.training\nn = 0"}, id="the attribute is read"),
        pytest.param({"start": "criterion = nn.CrossEntropyLoss()\ncriterion.eval()\nn = 0"}, id="of a loss"),
        pytest.param({"start": "switch = model.eval\nn = 0"}, id="not called"),
        pytest.param({"start": "print('model.eval()')  # model.eval()\nn = 0"}, id="in a string and a comment"),
    ],
)
def test_an_evaluation_in_training_mode_is_not(parts: dict[str, str]) -> None:
    """BatchNorm's running statistics would see a part of the batches on each rank."""
    found = _one(_ADD, **{"model": _BN, **parts})
    assert found.why is not None and (found.way, found.why.why, found.why.about) == (Way.WHOLE, Why.TRAINING_MODE, "model")
    assert found.synchronised == ("model",)
