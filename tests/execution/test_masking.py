"""Masks of what samples are filled up with, and products that add that up."""

from __future__ import annotations

import pytest

from dpmigrate.library.sites import PADDING
from tests.execution.paper import executed

_HEAD = """
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader
class Texts(torch.utils.data.Dataset):
    def __len__(self): return 64
    def __getitem__(self, i): return torch.ones(i % 5 + 1, dtype=torch.long)
def collate(samples): return pad_sequence(samples, batch_first=True)
words = torch.nn.Embedding(9, 4)
"""


def _noted(mask: str, product: str = "torch.matmul(torch.softmax(scores, dim=-1), e)", collate: str = ", collate_fn=collate") -> int:
    """How often a product is seen to add up what the samples are filled up with."""
    lines = ["e = words(s)", "scores = torch.matmul(e, e.transpose(-2, -1)) / 2.0", *mask.splitlines(), f"e = {product}"]
    loop = "\n".join(f"    {line}" for line in lines)
    return len(list(executed(f"{_HEAD}for s in DataLoader(Texts(), batch_size=8{collate}):\n{loop}\n").trace.of(PADDING)))


@pytest.mark.parametrize(
    "mask",
    [
        "scores = scores.masked_fill((s == 0).unsqueeze(1), -1e9)",
        "scores.masked_fill_(s.eq(0)[:, None], -1e9)",
        "scores = scores.masked_fill(~(s != 0).unsqueeze(1), -1e9)",
        "scores = scores.masked_fill((s != 0).unsqueeze(1) == 0, -1e9)",
        "scores = scores.masked_fill((s.ne(0).unsqueeze(1) == True) != True, -1e9)",
        "scores = scores.masked_fill(torch.logical_not(s > 0).unsqueeze(1), -1e9)",
        "scores = torch.where((s == 0).unsqueeze(1), torch.tensor(-1e9), scores)",
        "scores = scores + (1.0 - (s != 0).float()).unsqueeze(1) * -1e9",
        "e = e * (s != 0).unsqueeze(2)",
    ],
)
def test_what_is_filled_up_is_taken_out(mask: str) -> None:
    assert not _noted(mask)


@pytest.mark.parametrize(
    "mask",
    [
        "pass",
        "scores = scores.masked_fill((s != 0).unsqueeze(1), -1e9)",
        "scores = scores.masked_fill((s == 0).unsqueeze(1) == 0, -1e9)",
        "scores = scores.masked_fill(~s.eq(0)[:, None], -1e9)",
    ],
)
@pytest.mark.parametrize(
    "product",
    [
        "torch.matmul(torch.softmax(scores, dim=-1), e)",
        "F.softmax(scores, -1) @ e",
        "torch.bmm(F.dropout(scores.softmax(-1), 0.1), e)",
        "torch.einsum('bqk,bkd->bqd', scores.softmax(-1), e)",
    ],
)
def test_what_is_filled_up_is_added_up(mask: str, product: str) -> None:
    """No mask, or one that takes out the samples' own."""
    assert _noted(mask, product)


def test_samples_of_one_length() -> None:
    assert not _noted("pass", collate="")


def test_weights_of_classes() -> None:
    """They go over the features of each place."""
    assert not _noted("pass", "torch.softmax(e, dim=-1) @ words.weight.t()")
