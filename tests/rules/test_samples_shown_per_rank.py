"""DPM613: the number of samples that a line of progress shows."""

from __future__ import annotations

import pytest

from tests.rules.program import STEP, after, found

_LOOP = "for i, (x, y) in enumerate(loader):"
_ENUMERATE = {"batches": _LOOP}


@pytest.mark.parametrize(
    ("lines", "parts"),
    [
        pytest.param("print(i)", {}, id="the number alone"),
        pytest.param("print(3 * len(x))", {}, id="not the batch's number"),
        pytest.param("print(i * 16)", {}, id="the global batch"),
        pytest.param("print(i * len(loader))", {}, id="batches"),
        pytest.param("print(i * len(val_set))", {}, id="another length"),
        pytest.param("print(i * len([1, 2]))", {}, id="a list's length"),
        pytest.param("print(i * len())", {}, id="of nothing"),
        pytest.param("print(i * x.size(1))", {}, id="another dimension"),
        pytest.param("print(i * x.shape[1])", {}, id="another dimension of shape"),
        pytest.param("print(i * other.batch_size)", {"setup": "other = DataLoader(val_set)"}, id="another loader's"),
        pytest.param("print('i * len(x)')  # i * len(x)", {}, id="in a string and a comment"),
        pytest.param("print(loss.item() / (i * len(x)))", {}, id="a sum of this rank is divided by it"),
        pytest.param("shown, seen = 0, (i + 1) * len(x)\nprint(loss.item() / seen)", {}, id="a sum is divided by what keeps it beside another"),
        pytest.param("*rest, n = 1, 2, i * len(x)\nprint(n)", {}, id="taken apart with a star"),
        pytest.param("rest = {}\nrest['n'] = i * len(x)\nprint(loss.item() / rest['n'])", {}, id="kept in a dict"),
        pytest.param("seen = (i + 1) * len(x)\nprint(loss.item() / seen)", {}, id="a sum is divided by what keeps it"),
        pytest.param("z = y[i * len(x)] if i < 0 else 0\nprint(9 / z)", {}, id="a place in something divided by"),
        pytest.param("check(i * len(x))", {"defs": "def check(n):\n    return n"}, id="given to a function"),
        pytest.param("(lambda: check)()(i * len(x))", {"defs": "def check(n):\n    return n"}, id="given to something called"),
        pytest.param("if i * len(x) > 3:\n    print(i)", {}, id="asked"),
        pytest.param("for x, _ in DataLoader(val_set, batch_size=16):\n    pass\nprint(i * len(x))", {}, id="of the last batch of an evaluation"),
        pytest.param("batch = {'x': x, 'y': y}\nfor k, v in batch.items():\n    print(k)\nprint(i * len(batch))", {}, id="how many fields there are"),
    ],
)
def test_nothing_to_say(lines: str, parts: dict[str, str]) -> None:
    assert found("DPM613", **{**_ENUMERATE, **parts, "step": STEP + lines}) == []


@pytest.mark.parametrize(
    ("lines", "new"),
    [
        pytest.param("print(i * len(x))", "print(i * len(x) * ddp.world_size())", id="len"),
        pytest.param("print((i + 1) * x.size(0))", "print((i + 1) * x.size(0) * ddp.world_size())", id="size, counted from one"),
        pytest.param("print(x.shape[0] * i)", "print(x.shape[0] * i * ddp.world_size())", id="shape, the other way round"),
        pytest.param("print(i * loader.batch_size)", "print(i * loader.batch_size * ddp.world_size())", id="the loader's batch size, a rank's"),
        pytest.param("print(f'{i * len(x)}/{len(train_set)}')", "print(f'{i * len(x) * ddp.world_size()}/{len(train_set)}')", id="in an f-string"),
        pytest.param("print('{}'.format(i * len(x)))", "print('{}'.format(i * len(x) * ddp.world_size()))", id="format"),
        pytest.param("print('%d' % (i * len(x)))", "print('%d' % (i * len(x) * ddp.world_size()))", id="per cent"),
        pytest.param("print(100. * i * len(x) / 640)", "print(100. * i * len(x) * ddp.world_size() / 640)", id="a share of the whole"),
        pytest.param("n = epoch * 640 + i * len(x)\nprint(n)", "n = epoch * 640 + i * len(x) * ddp.world_size()", id="kept, after earlier epochs"),
        pytest.param("shown, n = loss.item(), (i + 1) * len(x)\nprint(shown, n)", "shown, n = loss.item(), (i + 1) * len(x) * ddp.world_size()", id="kept beside another"),
        pytest.param("print(i * len(y[0]))", "print(i * len(y[0]) * ddp.world_size())", id="a part of the batch"),
    ],
)
def test_found_and_fixed(lines: str, new: str) -> None:
    assert new in after(**_ENUMERATE, step=STEP + lines)


def test_a_name_that_another_loop_has_as_well() -> None:
    parts = {**_ENUMERATE, "setup": "val_loader = DataLoader(val_set, batch_size=16)", "step": STEP + "print(i * len(x))"}
    end = "with torch.no_grad():\n    for i, (x, y) in enumerate(val_loader):\n        print(model(x).mean())"
    assert found("DPM613", **parts, end=end) == ["i * len(x)"]


def test_ways_to_count() -> None:
    text = "print(n * len(x) * ddp.world_size())"
    assert text in after(epoch_start="n = 0", step=STEP + "n += 1\nprint(n * len(x))")
    assert text in after(before="it = iter(loader)", batches="for n in range(4):", step="x, y = next(it)\n" + STEP + "print(n * len(x))")
    assert text in after(before="it = iter(loader)\nn = 0", batches="while n < 4:", step="x, y = next(it)\n" + STEP + "n += 1\nprint(n * len(x))")
    assert found("DPM613", batches="for x, y in loader:", step=STEP + "print(n * len(x))", before="n = 3") == []


def test_a_loop_for_both_phases_and_two_loaders() -> None:
    two = {"setup": "other = DataLoader(train_set, batch_size=16)", "batches": "for i, ((x, y), (a, b)) in enumerate(zip(loader, other)):"}
    assert found("DPM613", **two, step=STEP + "print(i * len(x))") == ["i * len(x)"]
    step = "loss = F.cross_entropy(model(x), y)\nif phase == 'train':\n    loss.backward()\n    optimizer.step()\nprint(i * len(x))"
    assert found("DPM613", epoch_start="for phase in ('train', 'val'):\n    pass", batches=_LOOP, step=step) == []
