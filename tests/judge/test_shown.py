"""Windows of rank 0 for which the other ranks wait where they meet next."""

from __future__ import annotations

import pytest

from tests.judge.test_decided import said

_SHOWN = "import matplotlib.pyplot as plt\nif ddp.is_main():\n    plt.show()"
_DRAWN = "def draw():\n    import matplotlib.pyplot as plt\n    if ddp.is_main():\n        plt.show()\n"


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        pytest.param({"epoch": _SHOWN}, True, id="before the steps"),
        pytest.param({"turn": _SHOWN}, True, id="in each step"),
        pytest.param({"end": _SHOWN}, True, id="after each epoch"),
        pytest.param({"end": _DRAWN + "draw()"}, True, id="in a function"),
        pytest.param({"last": _SHOWN + "\nddp.barrier()"}, True, id="before a barrier"),
        pytest.param({"last": _SHOWN + "\nprint(ddp.sum_all(total))"}, True, id="before a sum"),
        pytest.param({"last": _SHOWN + "\nother = ddp.wrap(nn.Linear(2, 2))"}, True, id="before another wrap"),
        pytest.param({"last": _SHOWN}, False, id="at the end, where cleanup waits without a limit"),
        pytest.param({"last": _DRAWN + "draw()"}, False, id="in a function at the end"),
        pytest.param({"last": "ddp.barrier()\n" + _SHOWN}, False, id="after the last meeting"),
        pytest.param({"last": _SHOWN.replace("plt.show", "plt.close") + "\nddp.barrier()"}, False, id="no window"),
    ],
)
def test_where_the_others_wait(parts: dict[str, str], told: bool) -> None:
    assert bool(said("somebody on rank 0", **parts)) is told


def test_each_window_is_named() -> None:
    (words,) = said("somebody on rank 0", last=_SHOWN + "\nddp.barrier()\nif ddp.is_main():\n    plt.show()\nddp.barrier()")
    assert words.startswith("plt.show(), plt.show (line ") and " wait for somebody" in words
