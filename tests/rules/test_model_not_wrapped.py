"""DPM102: every trained model is wrapped."""

from __future__ import annotations

import pytest

from dpmigrate.model import Severity
from dpmigrate.settings import Settings
from tests.pipeline import findings
from tests.rules.program import after, found, migrated, program, whole


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({"model": "model = nn.DataParallel(Net())"}, id="DataParallel is replaced where it stands"),
        pytest.param({"before": "if torch.cuda.device_count() > 1:\n    model = nn.DataParallel(model)"}, id="one wrap for both, put by DPM101"),
    ],
)
def test_nothing_to_say(parts: dict[str, str]) -> None:
    assert found("DPM102", **parts) == []


@pytest.mark.parametrize(
    "end",
    [
        pytest.param("other = Net()\nprint(other(torch.ones(1, 8)))", id="a model that is not trained"),
        pytest.param("print('model = Net()')  # model = Net()", id="in a string and a comment"),
    ],
)
def test_only_the_trained_model(end: str) -> None:
    assert found("DPM102", end=end) == ["model = Net()"]


@pytest.mark.parametrize(
    ("model", "before", "pointed", "line"),
    [
        pytest.param("model = Net().to('cpu')", "", "model = Net().to('cpu')", "model = ddp.wrap(Net().to('cpu'))", id="on the value"),
        pytest.param("model = Net()", "model = model.to('cpu')", "model = model.to('cpu')", "model = ddp.wrap(model.to('cpu'))", id="assigned twice"),
        pytest.param("model = Net()", "model.to('cpu')", "model.to('cpu')", "model = ddp.wrap(model)", id="after it is moved"),
        pytest.param(
            "model = Net()",
            "for p in model.fc.parameters():\n    p.requires_grad = False",
            "for p in model.fc.parameters():",
            "model = ddp.wrap(model)",
            id="after freezing",
        ),
        pytest.param(
            "model = Net()",
            "[m.to('cpu') for m in [model, other]]",
            "[m.to('cpu') for m in [model, other]]",
            "model = ddp.wrap(model)",
            id="after it is moved with others",
        ),
        pytest.param(
            "model = Net()",
            "for m, where in ((model, 'cpu'), (other, 'cpu')):\n    m.to(where)",
            "for m, where in ((model, 'cpu'), (other, 'cpu')):",
            "model = ddp.wrap(model)",
            id="after a loop that moves it with others",
        ),
        pytest.param(
            "model = Net().to('cpu')",
            "for m in (model, other):\n    m.train()",
            "model = Net().to('cpu')",
            "model = ddp.wrap(Net().to('cpu'))",
            id="a loop that needs no bare model",
        ),
        pytest.param("model, other = Net(), 3", "", "model, other = Net(), 3", "model = ddp.wrap(model)", id="one of a tuple"),
        pytest.param("model: nn.Module = Net()", "", "model: nn.Module = Net()", "model = ddp.wrap(model)", id="annotated"),
    ],
)
@pytest.mark.parametrize("module_level", [False, True], ids=["function", "module"])
def test_found_and_fixed(model: str, before: str, pointed: str, line: str, module_level: bool) -> None:
    parts: dict[str, str | bool] = {"model": model, "before": before, "module_level": module_level}
    assert found("DPM102", **parts) == [pointed]
    assert [one for one in after(**parts) if "ddp.wrap" in one] == [line]


def test_weights_that_are_fetched_are_wrapped_outside_the_section() -> None:
    """Every rank must come to the wrap; in the section of rank 0 it would wait alone."""
    text = whole(imports="from torchvision import models", model="model = models.resnet18(pretrained=True)")
    assert "    with ddp.main_first():\n        model = models.resnet18(pretrained=True)\n    model = ddp.wrap(model)\n" in text


def test_a_parameter_with_a_model_as_default() -> None:
    defs = """
    def train(loader, net=Net()):
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for x, y in loader:
                optimizer.zero_grad()
                loss = F.cross_entropy(net(x), y)
                loss.backward()
                optimizer.step()
    """
    parts = {"defs": defs, "model": "", "optimizer": "", "epochs": "if True:", "batches": "if True:", "step": "train(loader)"}
    assert found("DPM102", **parts) == ["optimizer = torch.optim.SGD(net.parameters(), lr=0.1)"]
    assert "net = ddp.wrap(net)" in after(**parts)


def test_sync_bn() -> None:
    settings = Settings(sync_bn=True)
    assert "    model = ddp.wrap(Net(), sync_bn=True)\n" in whole(settings)
    assert "model = ddp.wrap(model, sync_bn=True)" in after(settings, before="model.to('cpu')")


def test_an_attribute_of_self() -> None:
    defs = """
    class T:
        def __init__(self):
            self.net = Net()
            self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)

        def turn(self, loader):
            for x, y in loader:
                self.opt.zero_grad()
                loss = F.cross_entropy(self.net(x), y)
                loss.backward()
                self.opt.step()
    """
    lines = after(defs=defs, model="", optimizer="", before="t = T()", batches="if True:", step="t.turn(loader)")
    assert "self.net = ddp.wrap(Net())" in lines


_TRAINER = """
class Trainer:
    def __init__(self, model, loader, optimizer):
        self.loader, self.optimizer = loader, optimizer
        self.model = model.to('cuda')
    def train(self):
        for epoch in range(3):
            self.epoch()
    def epoch(self):
        net = {given}
        for x, y in self.loader:
            self.optimizer.zero_grad()
            loss = F.cross_entropy(net(x), y)
            loss.backward()
            self.optimizer.step()
"""


@pytest.mark.parametrize("given", ["self.model", "self.model.train()", "self.model.train().train()"])
@pytest.mark.parametrize("made", ["Net()", "torch.hub.load('a', 'b')"])
def test_a_local_name_in_each_epoch_is_no_place_for_a_wrap(given: str, made: str) -> None:
    """It would be made anew each time; before the name is bound there is nothing to wrap."""
    text = program(defs=_TRAINER.format(given=given), model=f"model = {made}", epochs="if True:", batches="if True:", step="pass", end="Trainer(model, loader, optimizer).train()")
    new = migrated(text)
    assert "self.model = ddp.wrap(model.to('cuda'))" in new and new.count("ddp.wrap(") == 1
    assert f"        net = {given}\n" in new


def test_another_model_that_a_method_named_train_gives() -> None:
    net = "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.fc = nn.Linear(8, 2)\n"
    net += "    def forward(self, x):\n        return self.fc(x)\n    def train(self, mode=True):\n        return nn.Linear(8, 2)\n"
    text = program(net=net, defs=_TRAINER.format(given="self.model.train()"), epochs="if True:", batches="if True:", step="pass", end="Trainer(model, loader, optimizer).train()")
    assert any(f.severity is Severity.BLOCKER for f in findings(text))


_ITSELF = """
def turn(net, loader, optimizer):
    net = net.train()
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize("epochs", ["for epoch in range(3):", "if True:"])
def test_a_parameter_that_is_given_itself_is_wrapped_where_the_model_is_made(epochs: str) -> None:
    text = whole(defs=_ITSELF, epochs=epochs, batches="if True:", step="turn(model, loader, optimizer)")
    assert "    model = ddp.wrap(Net())\n" in text and text.count("ddp.wrap(") == 1


_MODES = """
def set_mode(net, train):
    for p in net.parameters():
        p.requires_grad = train
    net.train(train)
    return {given}
def fit(net, loader, optimizer):
    for epoch in range(2):
        net = set_mode(net, True)
        for x, y in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(net(x), y)
            loss.backward()
            optimizer.step()
        net = set_mode(net, False)
    return net
"""


def test_a_function_that_hands_the_model_back() -> None:
    """It changes the model in each epoch and is no new one: the wrap stands where the model is made."""
    parts = {"epochs": "if True:", "batches": "if True:", "step": "model = fit(model, loader, optimizer)"}
    text = whole(defs=_MODES.format(given="net"), **parts)
    assert "    model = ddp.wrap(Net())\n" in text and text.count("ddp.wrap(") == 1


@pytest.mark.parametrize("given", ["nn.Sequential(net)", "net if train else Net()", "(net := Net())"])
def test_a_function_that_gives_another_model(given: str) -> None:
    text = program(defs=_MODES.format(given=given), epochs="if True:", batches="if True:", step="model = fit(model, loader, optimizer)")
    assert any(f.severity is Severity.BLOCKER for f in findings(text))
