"""A model of which only some layers are moved to a device is refused where it is wrapped."""

from __future__ import annotations

import pytest

from dpmigrate.judge import faults, moved_in_part, wrapped
from tests.judge.trained import result

_PAIR = """
class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(2, 2), nn.Linear(2, 2)

class Placed(nn.Module):
    def __init__(self, **how):
        super().__init__()
        self.a, self.b = nn.Linear(2, 2, **how), nn.Linear(2, 2, **how)
"""


@pytest.mark.parametrize(
    ("made", "wrong"),
    [
        pytest.param("other = Pair()\nother.a.to('cuda')", True, id="one layer"),
        pytest.param("other = Pair().to('cuda')", False, id="all"),
        pytest.param("other = Pair()", False, id="none"),
        pytest.param("other = Placed(device='cuda')\nother.a.to('cuda')", False, id="layers that may be made there"),
        pytest.param("import timm\nother = timm.create_model('a').to('cuda')\nfor p in other.encoder.parameters():\n    p.requires_grad = False", False, id="of a library"),
    ],
)
def test_models_moved_in_part(made: str, wrong: bool) -> None:
    found = [f for f in faults(result(last=f"{_PAIR}\n{made}\nother = ddp.wrap(other)")) if f.invariant == moved_in_part.NAME]
    assert bool(found) is wrong, found


@pytest.mark.parametrize(
    ("made", "wrong"),
    [
        pytest.param("other = ddp.wrap(nn.Linear(2, 2).to('cuda'))", False, id="of a layer"),
        pytest.param("import lib\nother = ddp.wrap(lib.Net().to('cuda'))", False, id="of a library"),
        pytest.param("import transformers\nother = ddp.wrap(transformers.pipeline('a').model.to('cuda'))", False, id="of what a library gives"),
        pytest.param("import matplotlib.pyplot as plt\nother = ddp.wrap(plt.subplots(2).cuda())", False, id="of what it computes"),
        pytest.param("other = ddp.wrap(nn.Linear(2, 2))", True, id="none"),
    ],
)
def test_a_wrapper_may_be_moved_again_where_its_model_was_before(made: str, wrong: bool) -> None:
    found = [f for f in faults(result(last=f"{made}\nother.to('cuda')")) if f.invariant == wrapped.NAME]
    assert any("moved after its wrap" in f.words for f in found) is wrong, found
