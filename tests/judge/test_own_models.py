"""Models of the program's own on bases of libraries, and modules in packages: their code is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpmigrate import engine, judge
from dpmigrate.model import Status
from dpmigrate.program import Program
from dpmigrate.settings import Settings
from dpmigrate.source import Source, parse

TRAINED = '''\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from {library} import {base}, BertModel
import dpmigrate_runtime as ddp


class Net({base}):
    def __init__(self, config, classes=2):
        super().__init__(config)
        self.bert = BertModel(config)
        self.out = nn.Linear(config.hidden_size, classes)
        self.post_init()

    def forward(self, ids, target=None):
        logits = self.out(self.bert(ids)[1])
        if target is not None:
            return {loss}
        return logits


ddp.setup()
data = TensorDataset(torch.zeros(64, 8).long(), torch.zeros(64).long())
loader = DataLoader(data, batch_size=ddp.local_batch(8), sampler=ddp.DistributedSampler(data, seed=0))
model = ddp.wrap(Net.{made})
opt = torch.optim.AdamW(model.parameters(), lr=1e-4)
ddp.seed_ranks()
for epoch in range(3):
    loader.sampler.set_epoch(epoch)
    for x, y in loader:
        opt.zero_grad()
        loss = model(x, y)
        loss.backward()
        opt.step()
ddp.cleanup()
'''
MEAN = "nn.functional.cross_entropy(logits, target)"


@pytest.mark.parametrize(("library", "base"), [("transformers", "BertPreTrainedModel"), ("transformers", "PreTrainedModel"), ("pytorch_transformers", "BertPreTrainedModel")])
@pytest.mark.parametrize("made", ["from_pretrained('bert-base-uncased', classes=3)", "from_pretrained('bert-base-uncased', 3, cache_dir='here')", "from_config(torch.load('config.pt'))"])
@pytest.mark.parametrize(("loss", "means"), [(MEAN, True), (f"{MEAN}.sqrt()", False)])
def test_the_forward_of_an_own_model_is_read(library: str, base: str, made: str, loss: str, means: bool) -> None:
    text = TRAINED.format(library=library, base=base, made=made, loss=loss)
    source = parse(text.encode(), "train.py")
    assert isinstance(source, Source)
    found = judge.judged(Program.of(source))
    assert found.means is means
    assert [f for f in found.faults if f.established] == []


NETS = "from torch import nn\n\n\nclass Net(nn.Sequential):\n    def __init__(self):\n        super().__init__(nn.Linear(4, 2))\n"
SCRIPT = '''\
import torch
import nets
from nets.small import Net as Small
from torch.utils.data import DataLoader, TensorDataset

loader = DataLoader(TensorDataset(torch.randn(64, 4), torch.randn(64, 2)), batch_size=16, shuffle=True)
model = nets.small.Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for x, y in loader:
        optimizer.zero_grad()
        loss = (model(x) - y).pow(2).mean()
        loss.backward()
        optimizer.step()
'''


def test_an_import_binds_a_module_in_its_package(tmp_path: Path) -> None:
    (tmp_path / "nets").mkdir()
    (tmp_path / "nets" / "__init__.py").write_text("")
    (tmp_path / "nets" / "small.py").write_text(NETS)
    (tmp_path / "train.py").write_text(SCRIPT)
    (outcome,) = engine.apply([tmp_path / "train.py"], Settings(), engine.Writing(write=False))
    assert outcome.status is Status.CHANGED, outcome


def test_an_embedding_that_makes_another_one(tmp_path: Path) -> None:
    model = "nn.Sequential(nn.Embedding(9, 2).from_pretrained(torch.randn(9, 2)), nn.Flatten(), nn.Linear(8, 2))"
    text = SCRIPT.replace("nets.small.Net()", model).replace("import nets\nfrom nets.small import Net as Small\n", "from torch import nn\n")
    (tmp_path / "train.py").write_text(text.replace("torch.randn(64, 4)", "torch.randint(9, (64, 4))"))
    (outcome,) = engine.apply([tmp_path / "train.py"], Settings(), engine.Writing(write=False))
    assert outcome.status is Status.CHANGED, outcome


def test_a_file_that_only_defines_its_training_says_so() -> None:
    text = (
        "import torch\nfrom torch import nn\nimport dpmigrate_runtime as ddp\n\n\n"
        "def fit(model, loader):\n    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "    for x, y in loader:\n        loss = nn.functional.mse_loss(model(x), y)\n"
        "        optimizer.zero_grad()\n        loss.backward()\n        optimizer.step()\n\n\n"
        "if __name__ == '__main__':\n    ddp.setup()\n    print('see the README')\n    ddp.cleanup()\n"
    )
    source = parse(text.encode(), "train.py")
    assert isinstance(source, Source)
    (fault,) = judge.faults(Program.of(source))
    assert "nothing calls fit, line 6, which would train" in fault.words
