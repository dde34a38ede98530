"""Which lines of a new text were there before."""

from __future__ import annotations

import random

import pytest

from dpmigrate.lines import Lines


def _loop(name: str) -> list[str]:
    ways = [f"    {word} model.kind == {kind}:\n        part = {kind}" for word, kind in (("if", 1), ("elif", 2), ("elif", 3))]
    return [f"def {name}(model):", *"\n".join(ways).splitlines(), "    use(part)", "    del part", ""]


def test_functions_that_are_alike() -> None:
    old = [*_loop("shown"), *_loop("evaluated"), *_loop("trained")]
    new = [line.replace("model.kind", "model.module.kind") for line in old]
    new.insert(0, "import dpmigrate_runtime as ddp")
    lines = Lines("\n".join(old), "\n".join(new))
    assert [lines.place(n) for n in range(2, len(new))] == list(range(1, len(old)))
    assert all(lines.stays(n + 2) == (old[n] == new[n + 1]) for n in range(len(old) - 1))


@pytest.mark.parametrize("seed", range(50))
def test_as_few_lines_as_can_be_are_new(seed: int) -> None:
    rng = random.Random(seed)
    old = [rng.choice("abcd") for _ in range(rng.randrange(12))]
    new = list(old)
    for _ in range(rng.randrange(5)):
        if new and rng.random() < 0.5:
            new.pop(rng.randrange(len(new)))
        else:
            new.insert(rng.randrange(len(new) + 1), rng.choice("abcde"))
    lines = Lines("\n".join(old), "\n".join(new))
    kept = [(lines.old(n)[0], n) for n in range(1, len(new) + 1) if lines.stays(n)]
    assert kept == sorted(set(kept)) and len({i for i, _ in kept}) == len(kept)
    assert all(old[i - 1] == new[j - 1] for i, j in kept)
    assert len(kept) == _most(old, new)


def _most(a: list[str], b: list[str]) -> int:
    most = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            most[i + 1][j + 1] = most[i][j] + 1 if x == y else max(most[i][j + 1], most[i + 1][j])
    return most[-1][-1]


def test_texts_that_have_nothing_in_common() -> None:
    old, new = "\n".join(map(str, range(1500))), "\n".join(map(str, range(5000, 6500)))
    lines = Lines(old, new)
    assert not any(lines.stays(n) for n in range(1, 1501))
    assert lines.place(1500) == 1500


def test_empty_texts() -> None:
    assert Lines("", "").place(1) == 1
    assert Lines("", "a\nb").place(2) == 1
    assert list(Lines("a\nb", "").old(1)) == []
