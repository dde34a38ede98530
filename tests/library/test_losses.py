"""Losses that a program derives from torch's: what they are given, and what they are not."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tests.execution.paper import executed, placed

_HEAD = """
import torch.nn as nn, torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
from elsewhere import options
for x, t in DataLoader(TensorDataset(torch.ones(8, 4), torch.ones(8).long()), 4):
    pass
class Plain(nn.CrossEntropyLoss):
    def forward(self, a, b):
        return F.cross_entropy(a, b, weight=self.weight, ignore_index=self.ignore_index, reduction=self.reduction, label_smoothing=self.label_smoothing)
class Further(Plain):
    def __init__(self, *given, **named):
        super().__init__(*given, **named)
class Flags(nn.modules.loss._Loss):
    def __init__(self, size_average=None, reduce=None, reduction="mean", eps=0.1):
        super(Flags, self).__init__(size_average, reduce, reduction)
    def forward(self, a, b):
        return F.cross_entropy(a, b, reduction=self.reduction)
class Weights(nn.modules.loss._WeightedLoss):
    def forward(self, a, b):
        return F.cross_entropy(a, b, weight=self.weight, reduction=self.reduction)
class Learnt(nn.modules.loss._Loss):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))
    def forward(self, a, b):
        return F.cross_entropy(a * self.scale, b, reduction=self.reduction)
"""


@pytest.mark.parametrize(
    ("made", "found"),
    [
        ("Plain()", "partial(mean)"),
        ("Plain(reduction='sum')", "partial(sum)"),
        ("Plain(torch.ones(4))", "ratio"),
        ("Plain(ignore_index=-100)", "ratio"),  # who writes it down has labels that are left out
        ("Plain(None, None, 1)", "ratio"),
        ("Plain(**options)", "unknown"),
        ("Further()", "partial(mean)"),
        ("Further(reduction='none')", "rows(axis 0)"),
        ("Further(torch.ones(4), reduction='sum')", "partial(sum)"),
        ("Flags()", "partial(mean)"),
        ("Flags(eps=0.2)", "partial(mean)"),
        ("Flags(reduction='sum')", "partial(sum)"),
        ("Flags(True, None, 'sum')", "partial(mean)"),
        ("Flags(False)", "partial(sum)"),
        ("Flags(False, False)", "rows(axis 0)"),
        ("Flags(options.average)", "unknown"),
        ("Flags(reduction=options.reduction)", "unknown"),
        ("Weights()", "partial(mean)"),
        ("Weights(torch.ones(4))", "ratio"),
        ("Weights(None, None, None, 'sum')", "partial(sum)"),
        ("Learnt()", "partial(mean)"),
        ("nn.CrossEntropyLoss(size_average=options.average)", "unknown"),
        ("nn.MSELoss(True, None, 'sum')", "partial(mean)"),
    ],
)
def test_reductions(made: str, found: str) -> None:
    loss = "c(x, x)" if "MSE" in made else "c(x, t)"
    assert placed(executed(f"{_HEAD}c = {made}\nfound = {loss}"), "found") == found


@pytest.mark.parametrize(
    ("spoken", "lies"),
    [
        ("pass", "partial(mean)"),
        ("filler = -100", "ratio"),
        ("filler = torch.nn.CrossEntropyLoss().ignore_index", "ratio"),
        ("import transformers\nfill = transformers.DataCollatorForTokenClassification", "ratio"),
        ("from transformers import DataCollatorForSeq2Seq\nfill = DataCollatorForSeq2Seq", "ratio"),
        ("filler = 100", "partial(mean)"),
        ("def own(x, y, ignore_index=-100, *, filler=None):\n    return self.ignore_index", "partial(mean)"),
        ("def own(x, y, filler=-100):\n    return x", "ratio"),
        ("def own(x, y, *, filler=-100):\n    return x", "ratio"),
    ],
)
def test_labels_of_a_program_that_speaks_of_the_ignored_one_need_not_count(spoken: str, lies: str) -> None:
    text = f"""
from torch.utils.data import DataLoader, TensorDataset
import dpmigrate_runtime as ddp
{spoken}
ddp.setup()
ds = TensorDataset(torch.randn(8, 4), torch.randint(0, 2, (8,)))
loader = DataLoader(ds, batch_size=ddp.local_batch(4), sampler=ddp.DistributedSampler(ds))
for x, y in loader:
    found = torch.nn.functional.cross_entropy(x, y)
    other = torch.nn.functional.mse_loss(x, x)
"""
    ex = executed(text)
    assert placed(ex, "found") == lies
    assert placed(ex, "other") == "partial(mean)"


_WORDS = """
import torch
import torch.nn as nn, torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset
class Words(Dataset):
    def __len__(self):
        return 8
    def __getitem__(self, i):
        return torch.rand(5, 4), torch.randint(1, 4, (1 + i % 3,)), torch.tensor([1 + i % 3])
def together(samples):
    xs, ys, sizes = zip(*samples)
    return torch.stack(xs), torch.cat(ys), torch.cat(sizes)
for x, y, sizes in DataLoader(Words(), 4, collate_fn=together):
    pass
steps = torch.full((x.size(0),), 5, dtype=torch.long)
scores = x.log_softmax(2).transpose(0, 1)
found = """


@pytest.mark.parametrize(
    ("loss", "found"),
    [
        ("nn.CTCLoss()(scores, y, steps, sizes)", "partial(mean)"),
        ("F.ctc_loss(scores, y, steps, sizes)", "partial(mean)"),
        ("nn.CTCLoss(reduction='sum')(scores, y, steps, sizes)", "partial(sum)"),
        ("F.ctc_loss(scores, y, steps, sizes, reduction='none')", "rows(axis 0)"),
        ("F.mse_loss(y.float(), y.float() * 2)", "ratio"),  # in another loss each of their elements counts
    ],
)
def test_targets_put_end_to_end(loss: str, found: str) -> None:
    """CTC divides the loss of each sample by its length and takes the mean over the samples: each of three ranks of equal
    batches has a mean of the same weight (https://docs.pytorch.org/docs/stable/generated/torch.nn.CTCLoss.html).
    """
    assert placed(executed(_WORDS + loss), "found") == found


@pytest.mark.parametrize("ranks", [2, 3])
def test_ctc_is_the_mean_of_the_ranks_means(ranks: int) -> None:
    torch.manual_seed(0)
    scores = torch.randn(9, 6, 5, dtype=torch.float64).log_softmax(2)
    words = [torch.randint(1, 5, (n,)) for n in (1, 4, 2, 3, 1, 4)]

    def loss(part: list[int]) -> torch.Tensor:
        sizes = torch.tensor([len(words[i]) for i in part])
        mean: torch.Tensor = nn.CTCLoss()(scores[:, part], torch.cat([words[i] for i in part]), torch.full((len(part),), 9), sizes)
        return mean

    parts = [list(range(r, 6, ranks)) for r in range(ranks)]
    torch.testing.assert_close(torch.stack([loss(p) for p in parts]).mean(), loss(list(range(6))))
