"""Whether a squeeze may drop the axis of the batch, where a rank's part of the last batch is one sample."""

from __future__ import annotations

import pytest

from dpmigrate.judge import judged
from tests.judge.trained import result


@pytest.mark.parametrize(
    ("turn", "said"),
    [
        ("z = net(x).sum(1).squeeze()", "name the axis"),
        ("z = net(x).sum(1).squeeze(-1)", "leave it out"),
        ("z = net(x).sum(1).squeeze(0)", "leave it out"),
        ("z = torch.squeeze(net(x).sum(1), dim=-1)", "leave it out"),
        ("z = net(x).squeeze(0)", "leave it out"),
        ("z = net(x.view(len(x), -1)).squeeze(1).squeeze(-1)", ""),
        ("z = net(x).squeeze(1)", ""),
        ("z = net(x)[:, :1].squeeze(-1)", ""),
        ("z = net(x).unsqueeze(1).squeeze(1)", ""),
    ],
)
def test_a_batch_of_one_sample(turn: str, said: str) -> None:
    found = [s for s in judged(result(turn=turn)).assumed if "drops the axis of the batch" in s]
    assert [s for s in found if said in s] == found
    assert bool(found) is bool(said)


def test_an_axis_that_may_be_the_last_one_left() -> None:
    found = [s for s in judged(result(turn="z = nn.Linear(2, int(input()))(x).squeeze()\nw = z.squeeze(-1)")).assumed if "drops the axis of the batch" in s]
    assert len(found) == 2


@pytest.mark.parametrize("loader", ["ddp.shard(val_loader, blocks=True)", "ddp.shard(DataLoader(data, batch_size=1))", "val_loader"])
def test_whole_batches_of_an_evaluation(loader: str) -> None:
    last = f"with torch.no_grad():\n    for x, y in {loader}:\n        z = net(x).sum(1).squeeze()\n        w = z.view(-1)[3]\n"
    assert not [s for s in judged(result(last=last)).assumed if "drops the axis" in s or "of this number" in s or "at least" in s]
