"""A training program and its migration by hand, in plain torch, for faults to be put into."""

from __future__ import annotations

from pathlib import Path

from dpmigrate.verify.judge import Verdict
from dpmigrate.verify.proof import Proof, Wish, prove

RUNTIME = Path(__file__).resolve().parents[2] / "runtime"
WISH = Wish(steps=None, timeout=300)

ORIGINAL = """\
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(0)
draw = torch.Generator().manual_seed(1)
points = torch.randn(85, 6, generator=draw)
train_set, val_set = random_split(TensorDataset(points, (points.sum(1) > 0).long()), [64, 21])
train_loader = DataLoader(train_set, batch_size=8, shuffle=True)
val_loader = DataLoader(val_set, batch_size=8)
backbone = nn.Sequential(nn.Linear(6, 16), nn.ReLU())
head = nn.Linear(16, 2)
optimizer = torch.optim.SGD([*backbone.parameters(), *head.parameters()], lr=0.1, momentum=0.9)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
criterion = nn.CrossEntropyLoss()
best = 0.0
for epoch in range(3):
    for step, (x, y) in enumerate(train_loader):
        loss = criterion(head(backbone(x)), y) / 2
        loss.backward()
        if step % 2:
            nn.utils.clip_grad_norm_(backbone.parameters(), 0.05)
            optimizer.step()
            optimizer.zero_grad()
    scheduler.step()
    correct = 0
    with torch.no_grad():
        for x, y in val_loader:
            correct += (head(backbone(x)).argmax(1) == y).sum().item()
    accuracy = correct / len(val_set)
    print(f"epoch {epoch} accuracy {accuracy:.4f}")
    if accuracy >= best:
        best = accuracy
        torch.save({"backbone": backbone.state_dict(), "head": head.state_dict()}, "best.pt")
"""

#: begins and ends its group so that torch does not abort a rank in the interpreter's exit now and
#: then (pytorch/pytorch#179291)
MIGRATED = """\
import contextlib
import gc
import torch
import torch.distributed as dist
import torch.distributed.nn.functional
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Subset, TensorDataset, random_split
from torch.utils.data.distributed import DistributedSampler

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
draw = torch.Generator().manual_seed(1)
points = torch.randn(85, 6, generator=draw)
train_set, val_set = random_split(TensorDataset(points, (points.sum(1) > 0).long()), [64, 21])
train_loader = DataLoader(train_set, batch_size=8 // world, sampler=DistributedSampler(train_set))
val_loader = DataLoader(Subset(val_set, range(rank, len(val_set), world)), batch_size=8)
backbone = DistributedDataParallel(nn.Sequential(nn.Linear(6, 16), nn.ReLU()))
head = DistributedDataParallel(nn.Linear(16, 2))
optimizer = torch.optim.SGD([*backbone.parameters(), *head.parameters()], lr=0.1, momentum=0.9)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
criterion = nn.CrossEntropyLoss()
best = 0.0
for epoch in range(3):
    train_loader.sampler.set_epoch(epoch)
    for step, (x, y) in enumerate(train_loader):
        with contextlib.ExitStack() as stack:
            if not step % 2:
                stack.enter_context(backbone.no_sync())
                stack.enter_context(head.no_sync())
            loss = criterion(head(backbone(x)), y) / 2
            loss.backward()
        if step % 2:
            nn.utils.clip_grad_norm_(backbone.parameters(), 0.05)
            optimizer.step()
            optimizer.zero_grad()
    scheduler.step()
    correct = torch.tensor(0)
    with torch.no_grad():
        for x, y in val_loader:
            correct += (head.module(backbone.module(x)).argmax(1) == y).sum()
    dist.all_reduce(correct)
    accuracy = correct.item() / len(val_set)
    if rank == 0:
        print(f"epoch {epoch} accuracy {accuracy:.4f}")
    if accuracy >= best:
        best = accuracy
        if rank == 0:
            torch.save({"backbone": backbone.module.state_dict(), "head": head.module.state_dict()}, "best.pt")
for model in (backbone, head):
    model._remove_autograd_hooks()
    model.reducer = model.logger = model.process_group = None
dist.barrier()
dist.destroy_process_group()
gc.collect()
"""


def changed(text: str, *pairs: tuple[str, str]) -> str:
    """The text with each piece replaced; a piece that is not there is a mistake of the test."""
    for old, new in pairs:
        assert old in text, old
        text = text.replace(old, new)
    return text


def proved(tmp_path: Path, original: str, migrated: str, wish: Wish = WISH) -> Proof:
    """The proof of the migration, written into a folder of its own."""
    script = tmp_path / "program" / "train.py"
    script.parent.mkdir()
    script.write_text(original)
    found = prove(script, {script: migrated.encode()}, wish, paths=[RUNTIME])
    assert [p.name for p in script.parent.iterdir()] == ["train.py"]  # nothing is written beside the user's script
    return found


def differing(found: Proof) -> list[str]:
    """The lines by which the two runs differ."""
    assert not found.failure, found.failure
    return [line.name for line in found.lines if line.verdict is Verdict.DIFFERS]
