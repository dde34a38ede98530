"""Poolers of transformers' models: a layer that gets no gradient where only the tokens are used."""

from __future__ import annotations

import pytest

from dpmigrate.judge import faults, totals, unused
from dpmigrate.program import Program
from dpmigrate.source import Source, parse

TAGGER = '''\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from transformers import AutoModel, BertModel, DistilBertModel, BertForTokenClassification, VisionEncoderDecoderModel
import dpmigrate_runtime as ddp


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.bert = {model}
        {begin}
        self.fc = nn.Linear(768, 5)

    def forward(self, x, mask):
        {out}
        return self.fc(z)


ddp.setup()
data = TensorDataset(torch.randint(20, (64, 7)), torch.randint(5, (64,)))
loader = DataLoader(data, batch_size=ddp.local_batch(8), sampler=ddp.DistributedSampler(data))
net = ddp.wrap(Tagger())
opt = torch.optim.Adam(net.parameters())
ddp.seed_ranks()
for epoch in range(3):
    loader.sampler.set_epoch(epoch)
    for a, b in loader:
        opt.zero_grad()
        loss = nn.functional.cross_entropy(net(a, a > 0), b)
        loss.backward()
        opt.step()
ddp.cleanup()
'''
BERT = "BertModel.from_pretrained('bert-base-cased')"


def told(model: str = BERT, out: str = "z = self.bert(x, attention_mask=mask)[0][:, 0]", begin: str = "") -> list[str]:
    source = parse(TAGGER.format(model=model, out=out, begin=begin).encode(), "train.py")
    assert isinstance(source, Source)
    return [f.words for f in faults(Program.of(source)) if f.invariant == unused.NAME]


@pytest.mark.parametrize(
    ("model", "there"),
    [
        (BERT, True),
        ("BertModel(config)", True),
        ("AutoModel.from_pretrained(name)", True),
        ("VisionEncoderDecoderModel.from_pretrained(name)", True),
        ("BertModel.from_pretrained('bert-base-cased', add_pooling_layer=False)", False),
        ("DistilBertModel.from_pretrained('distilbert-base-cased')", False),
    ],
)
def test_which_models_have_a_pooler(model: str, there: bool) -> None:
    assert [("pooler" in w) for w in told(model)] == ([True] if there else [])


@pytest.mark.parametrize(
    ("out", "used"),
    [
        ("z = self.bert(x, attention_mask=mask).last_hidden_state[:, 0]", False),
        ("z = self.bert(x, attention_mask=mask)['last_hidden_state'][:, 0]", False),
        ("z, *_ = self.bert(x, attention_mask=mask, return_dict=False)", False),
        ("z = self.bert(x, attention_mask=mask).pooler_output", True),
        ("z = self.bert(x, attention_mask=mask)['pooler_output']", True),
        ("z = self.bert(x, attention_mask=mask)[1]", True),
        ("_, z = self.bert(x, attention_mask=mask, return_dict=False)", True),
        ("z = self.bert(x, attention_mask=mask)[self.which]", True),
    ],
)
def test_what_is_made_of_the_pooler(out: str, used: bool) -> None:
    assert bool(told(out=out)) is not used


@pytest.mark.parametrize("begin", ["self.bert.pooler = None", "for p in self.bert.parameters():\n            p.requires_grad = False", "self.bert.requires_grad_(False)"])
def test_a_pooler_that_is_gone_or_frozen(begin: str) -> None:
    assert told(begin=begin) == []


@pytest.mark.parametrize("part", [".last_hidden_state[:, 0]", "['last_hidden_state'][:, 0]", ".pooler_output"])
@pytest.mark.parametrize("axis", ["-1", "0"])
def test_a_softmax_over_the_samples_of_what_a_model_gives(part: str, axis: str) -> None:
    out = f"z = self.bert(x, attention_mask=mask){part}\n        z = z * torch.softmax(z.mean(-1), dim={axis})[:, None]"
    source = parse(TAGGER.format(model=BERT, out=out, begin="").encode(), "train.py")
    assert isinstance(source, Source)
    found = [f.words for f in faults(Program.of(source)) if f.invariant in (totals.COUPLED, totals.APART)]
    assert any("softmax" in words for words in found)


@pytest.mark.parametrize("part", [".last_hidden_state[:, 0]", ".pooler_output"])
def test_a_softmax_over_the_features_of_what_a_model_gives(part: str) -> None:
    out = f"z = self.bert(x, attention_mask=mask){part}\n        z = torch.softmax(z, dim=-1)"
    source = parse(TAGGER.format(model=BERT, out=out, begin="").encode(), "train.py")
    assert isinstance(source, Source)
    assert not [f for f in faults(Program.of(source)) if f.invariant in (totals.COUPLED, totals.APART)]


@pytest.mark.parametrize(
    ("out", "apart"),
    [
        pytest.param("z = self.bert(x, output_hidden_states=True).hidden_states[-1][:, 0]", True, id="the last layer"),
        pytest.param("z = self.bert(x)['hidden_states'][3].mean(dim=1)", True, id="by its name, over the tokens"),
        pytest.param("h = self.bert(x).hidden_states\n        z = (h[-1] + h[-2]).mean(1)", True, id="two layers"),
        pytest.param("z = self.bert(x).hidden_states[-1].mean(dim=0, keepdim=True).expand(len(x), 7, 768)[:, 0]", False, id="over the samples"),
    ],
)
def test_outputs_of_layers_are_rows_of_the_samples(out: str, apart: bool) -> None:
    source = parse(TAGGER.format(model=BERT, out=out, begin="").encode(), "train.py")
    assert isinstance(source, Source)
    found = [f.words for f in faults(Program.of(source)) if f.invariant in (totals.NAME, totals.COUPLED, totals.APART)]
    assert (not found) is apart, found
