"""Results written by hand, beside the programs that they were made of, as the checks see them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dpmigrate import migration
from dpmigrate.facts.script import Script
from dpmigrate.result import Fault, Migrated
from tests.pipeline import script_of

#: a program of one file, and its migration
BEFORE = """\
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


def evaluate(net, loader):
    loss = 0.0
    for x, y in loader:
        loss += nn.functional.mse_loss(net(x), y).item()
    return loss


def main():
    data = TensorDataset(torch.randn(64, 4), torch.randn(64, 1))
    loader = DataLoader(data, batch_size=8, shuffle=True)
    net = nn.Linear(4, 1)
    opt = optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        for x, y in loader:
            loss = nn.functional.mse_loss(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(evaluate(net, DataLoader(data)))
        torch.save(net.state_dict(), "net.pt")


if __name__ == "__main__":
    main()
"""
AFTER = """\
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset
import dpmigrate_runtime as ddp
from torch.utils.data.distributed import DistributedSampler


def evaluate(net, loader):
    loss = 0.0
    for x, y in ddp.shard(loader):
        loss += nn.functional.mse_loss(net.module(x), y).item()
    loss = ddp.sum_all(loss)
    return loss


def main():
    data = TensorDataset(torch.randn(64, 4), torch.randn(64, 1))
    loader = DataLoader(data, batch_size=ddp.local_batch(8), sampler=DistributedSampler(data))
    net = ddp.wrap(nn.Linear(4, 1))
    opt = optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        loader.sampler.set_epoch(epoch)
        for x, y in loader:
            loss = nn.functional.mse_loss(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(evaluate(net, DataLoader(data)))
        ddp.save(net.module.state_dict(), "net.pt")


if __name__ == "__main__":
    ddp.setup()
    main()
    ddp.cleanup()
"""

Check = Callable[[Migrated], Iterator[Fault]]
Edits = list[tuple[str, str]]


def edited(text: str, edits: Edits) -> str:
    """The text with each first occurrence of the one put in the place of the other."""
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new, 1)
    return text


def migrated(before: dict[str, str], after: dict[str, str]) -> Migrated:
    """A program of modules, the script last, and the new texts of those that change."""
    script = script_of(before)
    texts = {p: after[p.source.name.removesuffix(".py")] for p in script.program.parts if p.source.name.removesuffix(".py") in after}
    again = migration._again(script, texts)
    assert isinstance(again, Script), again
    return Migrated(script, again, texts)


def said(check: Check, before: str, after: str) -> list[str]:
    """What a check says of a script."""
    return [f"{f.place}: {f.words}" for f in check(migrated({"train": before}, {"train": after}))]


def mutated(check: Check, edits: Edits, both: Edits | None = None) -> list[str]:
    """What a check says of the migration above with a change in it; ``both`` changes the program and its migration alike."""
    return said(check, edited(BEFORE, both or []), edited(edited(AFTER, both or []), edits))
