"""Functions of the runtime are given what they take; the program starts no ranks of its own."""

from __future__ import annotations

import pytest

from dpmigrate.judge import faults, given, group
from tests.judge.trained import result


def _names(**parts: str) -> set[str]:
    return {f.invariant for f in faults(result(**parts))}


@pytest.mark.parametrize(
    "end",
    [
        "total = ddp.sum_all(total)",
        "total, n = ddp.mean_all(total, 3)",
        "for x, y in ddp.shard(val_loader):\n    pass",
        "path = ddp.main_path('a.txt')",
        "names = ddp.clean_keys({'a': 1})",
        "import os\nos.makedirs('a', exist_ok=True)",
        "import shutil\nshutil.rmtree('a', ignore_errors=True)",
        "import os\nos.path.join('a', 'b')",
    ],
)
def test_what_is_taken(end: str) -> None:
    assert given.NAME not in _names(end=end)


@pytest.mark.parametrize(
    "end",
    [
        "total = ddp.sum_all('total')",
        "total = ddp.sum_all(total, axis=0)",
        "for x, y in ddp.shard('val'):\n    pass",
        "size = ddp.local_batch([16])",
        "size = ddp.local_batch((16, 2))",
        "ddp.any_rank(Meter())",
        "ddp.clean_keys('model.pt')",
        "ddp.main_path(Meter())",
        "ddp.main_path(print)",
        "ddp.shard(Meter())",
        "ddp.from_main(print)",
        "ddp.accumulate(model)",
        "import os\nif ddp.is_main():\n    os.mkdir('a', exist_ok=True)",
        "import shutil\nif ddp.is_main():\n    shutil.copy('a', 'b', exist_ok=True)",
    ],
)
def test_what_is_not_taken(end: str) -> None:
    assert given.NAME in _names(end=end)


def test_a_loss_of_each_sample_is_no_loss() -> None:
    step = "w = ddp.sum_loss(nn.functional.cross_entropy(model(x), y, reduction='none'))"
    assert given.NAME in _names(step=step)


@pytest.mark.parametrize("start", ["torch.distributed.init_process_group('gloo')", "torch.multiprocessing.spawn(print, nprocs=2)"])
def test_ranks_of_the_program_itself(start: str) -> None:
    assert group.NAME not in _names()
    assert group.NAME in _names(last=start)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        ("TensorDataset([1, 2], torch.ones(2))", True),
        ("TensorDataset(torch.ones(2), [n * 2 for n in range(2)])", True),
        ("TensorDataset({'x': 1})", True),
        ("TensorDataset(torch.ones(2), torch.ones(2))", False),
        ("TensorDataset(torch.stack([torch.ones(2)]))", False),
        ("TensorDataset(*[torch.ones(2)])", False),
        ("TensorDataset(torch.ones(2) if val_loader else [1])", False),
    ],
)
def test_a_list_where_torch_takes_tensors(made: str, said: bool) -> None:
    """The program fails by itself: what is refused for it is told where."""
    head = "import torch\nfrom torch.utils.data import TensorDataset\n"
    assert ("TensorDataset" in str([f.words for f in faults(result(end=head + made))])) is said
    tried = f"try:\n    {made}\nexcept AttributeError:\n    pass"
    assert not any("TensorDataset" in f.words for f in faults(result(end=head + tried)))
