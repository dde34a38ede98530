"""Texts that a tokenizer fills up to the longest of those that it is given: the rank's, not those of the batch."""

from __future__ import annotations

import pytest

from dpmigrate.execution.values import placement_of
from tests.execution.paper import executed, module_of

_PROGRAM = """
from torch import nn
from torch.utils.data import DataLoader
import transformers
tokenizer = transformers.AutoTokenizer.from_pretrained("a")
encoder = transformers.BertModel.from_pretrained("a")
network = transformers.BertForSequenceClassification.from_pretrained("a")
words = nn.Linear(8, 5)
option = open("option").read()
class Texts:
    def __len__(self):
        return 9
    def __getitem__(self, i):
        return {{"text": open(str(i)).read(), "label": i}}
def join(samples):
    given = tokenizer([s["text"] for s in samples], {padding}return_tensors="pt")
    return given["input_ids"], given["attention_mask"], torch.tensor([s["label"] for s in samples])
for ids, mask, label in DataLoader(Texts(), 4, collate_fn=join):
    out = encoder(ids, attention_mask=mask)
    last = out.last_hidden_state
    found = {found}
"""


def _said(found: str, padding: str = "padding=True, ") -> str:
    ex = executed(_PROGRAM.format(found=found, padding=padding))
    return str(placement_of(ex.bound(ex.heap.read((module_of(ex).number, "found")) or ())))


@pytest.mark.parametrize(
    ("padding", "padded"),
    [
        ("padding=True, ", True),
        ("padding='longest', ", True),
        ("padding=option, ", True),
        ("None, None, None, True, True, ", True),
        ("padding='max_length', max_length=9, ", False),
        ("padding=False, ", False),
        ("max_length=9, truncation=True, ", False),
    ],
)
def test_what_is_filled_up(padding: str, padded: bool) -> None:
    assert _said("ids", padding) == ("rows(axis 0, padded)" if padded else "rows(axis 0)")


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        ("mask", "rows(axis 0, padded)"),
        ("last", "rows(axis 0, padded)"),
        ("words(last)", "rows(axis 0, padded)"),
        ("out.pooler_output", "rows(axis 0)"),
        ("out[1]", "rows(axis 0)"),
        ("last[:, 0]", "rows(axis 0)"),
        ("last.mean(1)", "rows(axis 0)"),
        ("(last * mask.unsqueeze(-1)).sum(1) / mask.sum(1, keepdim=True)", "rows(axis 0)"),
        ("network(ids, attention_mask=mask).logits", "rows(axis 0)"),
        ("network(ids, attention_mask=mask)[0]", "rows(axis 0)"),
        ("network(ids, attention_mask=mask, labels=label).loss", "partial(mean)"),
        ("nn.functional.cross_entropy(network(ids, attention_mask=mask).logits, label)", "partial(mean)"),
        # a mean over what fills the texts up as well
        ("nn.functional.cross_entropy(words(last).transpose(1, 2), ids)", "per rank"),
        ("last.mean()", "per rank"),
    ],
)
def test_what_is_made_of_it(found: str, wanted: str) -> None:
    assert _said(found) == wanted
