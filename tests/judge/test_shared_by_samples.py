"""A tensor that a data set gives with each sample as it holds it: any sample's is that of all."""

from __future__ import annotations

import pytest

from dpmigrate import judge
from dpmigrate.program import Program
from dpmigrate.source import Source, parse

_PROGRAM = """\
import torch
from torch import nn
from torch.utils.data import ConcatDataset, DataLoader, Dataset, Subset, random_split
import dpmigrate_runtime as ddp


class Fields(Dataset):
    def __init__(self, k=1):
        self.x = torch.load("x.pt")
        h, w = self.x.shape[-2], self.x.shape[-1]
        rows, columns = torch.meshgrid(torch.linspace(0, 1, h), torch.linspace(0, 1, w), indexing="ij")
        self.grid = torch.stack([rows, columns], dim=-1) * k
        self.other, self.later, self.k = torch.ones(4, 4, 2), None, 0

    def __len__(self):
        return 64

    def filled(self, i):
        self.grid.copy_(self.x[i].unsqueeze(-1))
        return self.grid

    def __getitem__(self, i):
        {sample}


def put(batch):
    return torch.stack([b[0] for b in batch]), torch.stack([b[1] for b in batch])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 1)

    def forward(self, x, grid):
        if grid.dim() == 3:
            grid = grid.unsqueeze(0).expand(x.size(0), -1, -1, -1)
        return self.fc(torch.cat((x.unsqueeze(-1), grid), dim=-1)).squeeze(-1)


ddp.setup()
data = {data}
loader = DataLoader(data, batch_size=ddp.local_batch(16), sampler=ddp.DistributedSampler(data, seed=0){more})
model = ddp.wrap(Net())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
ddp.seed_ranks()
for epoch in range(4):
    loader.sampler.set_epoch(epoch)
    for x, grid in loader:
        x, grid = x.float(), grid.to("cpu", non_blocking=True)
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x, {grid}), x)
        loss.backward()
        optimizer.step()
ddp.cleanup()
"""
_PLAIN = "return self.x[i], self.grid"


def _words(sample: str = _PLAIN, grid: str = "grid[0]", data: str = "Fields()", more: str = "") -> list[str]:
    text = _PROGRAM.format(sample=sample, grid=grid, data=data, more=more)
    source = parse(text.encode(), "train.py")
    assert isinstance(source, Source)
    return [f.words for f in judge.faults(Program.of(source))]


@pytest.mark.parametrize(
    "grid",
    ["grid[0]", "grid[-1]", "grid.float()[0]", "grid[0].clone()", "grid[0] if grid.dim() == 4 else grid", "grid", "grid[epoch % 2]"],
)
@pytest.mark.parametrize("data", ["Fields()", "Subset(Fields(), range(32))", "random_split(Fields(), [32, 32])[0]"])
def test_any_sample_has_it(grid: str, data: str) -> None:
    assert not _words(grid=grid, data=data)


def test_numpy_gives_it_as_well() -> None:
    assert not _words("return self.x[i], self.other.numpy()")


@pytest.mark.parametrize(
    "sample",
    [
        "return self.x[i], self.x[i].unsqueeze(-1).repeat(1, 1, 2)",
        "return self.x[i], torch.rand(4, 4, 2)",
        "return self.x[i], self.grid + torch.rand(1)",
        "self.grid = self.grid + 1\n        return self.x[i], self.grid",
        "self.k += 1\n        return self.x[i], self.grid * self.k",
        "self.grid.add_(1)\n        return self.x[i], self.grid",
        "self.grid += 1\n        return self.x[i], self.grid",
        "self.grid[0] = 1\n        return self.x[i], self.grid",
        "return self.x[i], self.filled(i)",
        "return self.x[i], self.grid if i % 2 else self.other",
        "if i % 2:\n            return self.x[i], self.other\n        return self.x[i], self.grid",
        "if self.later is None:\n            self.later = self.x[i].unsqueeze(-1).repeat(1, 1, 2)\n        return self.x[i], self.later",
        "return self.x[i], torch.load(f'{i}.pt')",
        "return self.x[i], self.grid.normal_()",
    ],
)
def test_samples_that_may_have_another(sample: str) -> None:
    assert _words(sample)


@pytest.mark.parametrize(
    "grid",
    [
        "(grid + torch.rand_like(grid))[0]",
        "nn.functional.dropout(grid)[0]",
        "(grid * x.unsqueeze(-1))[0]",
        "grid.cumsum(0)[1]",
        "x[0].unsqueeze(-1).repeat(1, 1, 2)",
        "grid[: len(grid) // 2].sum(0)",
    ],
)
def test_what_is_made_of_it_is_not_known_to_be_shared(grid: str) -> None:
    assert _words(grid=grid)


def test_one_of_two_things_is_no_such_tensor() -> None:
    """A batch of unknown form beside it: the first of that is the rank's own sample."""
    text = _PROGRAM.format(sample=_PLAIN, grid="either[0]", data="Fields()", more="")
    text = text.replace("        optimizer.zero_grad()", "        either = grid if flag else rest.get(x)\n        optimizer.zero_grad()")
    text = "import lib, sys\nflag = len(sys.argv) > 1\nrest = lib.Rest()\n" + text
    source = parse(text.encode(), "train.py")
    assert isinstance(source, Source)
    assert list(judge.faults(Program.of(source)))


def test_samples_of_several_data_sets() -> None:
    assert _words(data="ConcatDataset([Fields(1), Fields(2)])")
    assert _words(data="ConcatDataset([Fields(k) for k in range(3)])")


def test_what_a_function_puts_together_is_not_followed() -> None:
    assert _words(more=", collate_fn=put")
