"""DPM321: --amp in every kind of training step."""

from __future__ import annotations

from textwrap import dedent, indent

import pytest

from dpmigrate import rules
from dpmigrate.model import Severity
from dpmigrate.settings import Settings
from tests.pipeline import migrate, script_of
from tests.rules.program import STEP, after, found, hits, migrated, program, refused, whole

AMP = Settings(amp=True)
BF16 = Settings(amp=True, amp_dtype="bfloat16")
_CLIP = "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n"


def test_not_without_the_option() -> None:
    assert found("DPM321") == []


def test_a_program_with_autocast_keeps_its_own() -> None:
    (one,) = hits("DPM321", AMP, step=STEP.replace("loss = ", "with torch.autocast('cuda'):\n    loss = "))
    assert not one.edits and "already" in one.message


@pytest.mark.parametrize("module_level", [False, True], ids=["function", "module"])
def test_float16(module_level: bool) -> None:
    lines = [one.strip() for one in whole(AMP, module_level=module_level).splitlines()]
    i = lines.index("optimizer.zero_grad()")
    assert lines[i : i + 6] == [
        "optimizer.zero_grad()",
        "with torch.autocast(ddp.device().type, dtype=torch.float16):",
        "loss = F.cross_entropy(model(x), y)",
        "scaler.scale(loss).backward()",
        "scaler.step(optimizer)",
        "scaler.update()",
    ]
    assert lines[lines.index("optimizer = torch.optim.SGD(model.parameters(), lr=0.1)") + 1] == "scaler = torch.amp.GradScaler(ddp.device().type)"


def test_bfloat16_needs_no_scaler() -> None:
    text = whole(BF16)
    assert "dtype=torch.bfloat16" in text and "scaler" not in text


def test_clipping_sees_gradients_without_the_scale() -> None:
    lines = [one.strip() for one in whole(AMP, step=STEP.replace("optimizer.step()", _CLIP + "optimizer.step()")).splitlines()]
    assert lines[lines.index(_CLIP.strip()) - 1] == "scaler.unscale_(optimizer)"


def test_a_sum_is_scaled_inside_the_scaler() -> None:
    assert "scaler.scale(ddp.sum_loss(loss)).backward()" in after(AMP, step=STEP.replace("y)", "y, reduction='sum')"))


def test_a_name_that_is_taken() -> None:
    assert "scaler_2 = torch.amp.GradScaler(ddp.device().type)" in after(AMP, setup="scaler = 3")


def test_two_optimizers_share_one_update() -> None:
    optimizer = "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\nother = torch.optim.SGD(model.parameters(), lr=0.2)"
    lines = after(AMP, optimizer=optimizer, step=STEP + "other.step()")
    assert "scaler.step(other)" in lines and whole(AMP, optimizer=optimizer, step=STEP + "other.step()").count("scaler.update()") == 1


def test_an_optimizer_that_is_chosen() -> None:
    choice = "if os.environ.get('A'):\n    optimizer = torch.optim.Adam(model.parameters())\nelse:\n    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)"
    text = whole(AMP, optimizer=choice)
    assert "\n    scaler = torch.amp.GradScaler(ddp.device().type)\n" in text


def test_an_optimizer_made_in_a_with_block() -> None:
    text = whole(AMP, optimizer="with torch.no_grad():\n    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)")
    assert "\n        scaler = torch.amp.GradScaler(ddp.device().type)\n" in text


def test_a_training_function_gets_a_scaler_of_the_module() -> None:
    body = "".join(f"        {s}\n" for s in STEP.splitlines())
    defs = f"def train(model, loader, optimizer):\n    for x, y in loader:\n{body}"
    text = whole(AMP, defs=defs, batches="if True:", step="train(model, loader, optimizer)")
    assert "\nscaler = torch.amp.GradScaler(ddp.device().type)" in text and text.index("GradScaler") < text.index("def train(")


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
    lines = after(AMP, defs=defs, model="", optimizer="", before="t = T()", batches="if True:", step="t.turn(loader)")
    assert "self.scaler = torch.amp.GradScaler(ddp.device().type)" in lines and "self.scaler.step(self.opt)" in lines


def test_the_state_goes_with_that_of_the_optimizer() -> None:
    before = "ck = torch.load('a', map_location='cpu')\noptimizer.load_state_dict(ck['opt'])\nmodel.load_state_dict(ck['model'])"
    end = "torch.save({'opt': optimizer.state_dict(), 'model': model.state_dict()}, 'a')\nprint(optimizer.state_dict())"
    lines = after(AMP, before=before, end=end)
    assert 'if "scaler" in ck:' in lines and 'scaler.load_state_dict(ck["scaler"])' in lines
    assert any("'scaler': scaler.state_dict()" in line for line in lines)


@pytest.mark.parametrize(
    "load",
    [
        pytest.param("optimizer.load_state_dict(torch.load('a', map_location='cpu')['opt'])", id="a file that would be read twice"),
        pytest.param("optimizer.load_state_dict({})", id="no item of a checkpoint"),
        pytest.param("r = optimizer.load_state_dict(x)", id="no statement"),
    ],
)
def test_states_that_are_not_followed(load: str) -> None:
    assert not any("load_state_dict" in line and "scaler" in line for line in after(AMP, setup="x = {}", before=load))


def test_torch_is_imported_where_it_has_another_name() -> None:
    text = "import torch as th\nfrom torch import nn, optim\nfrom torch.utils.data import DataLoader\n\nmodel = nn.Linear(8, 2)\n"
    text += (
        "loader = DataLoader(list(range(8)), batch_size=2)\noptimizer = optim.SGD(model.parameters(), lr=0.1)\nfor epoch in range(2):\n    for x in loader:\n"
    )
    text += "        loss = model(x).mean()\n        loss.backward()\n        optimizer.step()\n"
    assert "import torch\n" in migrated(text, AMP)


def test_a_program_that_stands_in_its_guard() -> None:
    text = program(module_level=True)
    head, _, body = text.partition("train_set =")
    guarded = head + 'if __name__ == "__main__":\n' + indent("train_set =" + body, "    ")
    lines = [one.strip() for one in migrated(guarded, AMP).splitlines()]
    assert lines[lines.index("optimizer = torch.optim.SGD(model.parameters(), lr=0.1)") + 1] == "scaler = torch.amp.GradScaler(ddp.device().type)"


_SECOND = "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\nother = torch.optim.SGD(model.parameters(), lr=0.2)"


@pytest.mark.parametrize(
    ("step", "before"),
    [
        pytest.param(STEP + "if epoch:\n    other.step()", "other.step()", id="the last under a test"),
        pytest.param(STEP.replace("optimizer.step()", "if epoch:\n    other.step()\noptimizer.step()"), "scaler.step(optimizer)", id="the first under a test"),
        pytest.param(
            STEP.replace("optimizer.step()", "if epoch:\n    if epoch > 1:\n        other.step()\n    optimizer.step()"),
            "scaler.step(optimizer)",
            id="both under one",
        ),
    ],
)
def test_one_update_in_every_turn(step: str, before: str) -> None:
    lines = [one.strip() for one in whole(AMP, optimizer=_SECOND, step=step).splitlines()]
    assert lines.count("scaler.update()") == 1
    assert lines[lines.index("scaler.update()") - 1] in (before, "scaler.step(other)")


def test_a_loss_without_a_name_gets_one() -> None:
    step = STEP.replace("loss.backward()", "z = model(x)\nF.cross_entropy(z, y, reduction='sum').backward()\nF.cross_entropy(model(x), y).backward()")
    lines = [one.strip() for one in whole(AMP, step=step.replace("loss = F.cross_entropy(model(x), y)\n", "")).splitlines()]
    i = lines.index("z = model(x)")
    assert lines[i - 1 : i + 6] == [
        "with torch.autocast(ddp.device().type, dtype=torch.float16):",
        "z = model(x)",
        "loss = F.cross_entropy(z, y, reduction='sum')",
        "scaler.scale(ddp.sum_loss(loss)).backward()",
        "with torch.autocast(ddp.device().type, dtype=torch.float16):",
        "loss_2 = F.cross_entropy(model(x), y)",
        "scaler.scale(loss_2).backward()",
    ]


def test_steps_in_functions_that_clear_their_gradients() -> None:
    body = indent(STEP.replace("optimizer", "o"), "    ")
    defs = f"def one(model, o, x, y):\n{body}\n\ndef two(model, o, x, y):\n{body}"
    text = whole(AMP, defs=defs, step="one(model, optimizer, x, y)\ntwo(model, optimizer, x, y)")
    assert text.count("scaler.step(o)\n    scaler.update()") == 2 and text.index("GradScaler") < text.index("def one")


def test_a_step_after_the_loop_is_refused() -> None:
    """It may find no gradients: the scaler would raise. Without a scale there is nothing to refuse."""
    parts = {"step": STEP.replace("optimizer.step()", "if epoch:\n    optimizer.step()"), "epoch_end": "optimizer.step()"}
    assert refused("DPM321", AMP, **parts) == ["optimizer.step()"]
    assert refused("DPM321", BF16, **parts) == []


def test_an_optimizer_whose_steps_are_not_seen_is_refused() -> None:
    parts = {"imports": "import lib", "optimizer": _SECOND, "end": "lib.use(other)"}
    assert refused("DPM321", AMP, **parts) == ["torch.optim.SGD(model.parameters(), lr=0.2)"]
    assert refused("DPM321", BF16, **parts) == []


def test_a_step_that_may_have_run_before_the_turn_ends_is_refused() -> None:
    step = STEP.replace("optimizer.step()", "if epoch:\n    other.step()\nif epoch > 1:\n    continue\noptimizer.step()")
    assert refused("DPM321", AMP, optimizer=_SECOND, step=step) == ["optimizer.step()"]


def test_clearing_gradients_by_hand_and_asking_for_them() -> None:
    step = STEP.replace("optimizer.zero_grad()", "for p in model.parameters():\n    if p.grad is not None:\n        p.grad.zero_()")
    assert refused("DPM321", AMP, step=step) == []


def test_a_scaler_of_its_own_without_autocast_is_kept() -> None:
    (one,) = hits("DPM321", AMP, before="s = torch.amp.GradScaler('cuda')")
    assert not one.edits and "GradScaler already" in one.message


def test_an_optimizer_inside_another_object_gets_a_scaler_of_the_module() -> None:
    """The backward stands outside the class whose attribute the optimizer is."""
    defs = "class Warm:\n    def __init__(self, optimizer):\n        self.inner = optimizer\n\n    def go(self):\n        self.inner.step()"
    text = whole(AMP, defs=defs, before="warm = Warm(optimizer)", step=STEP.replace("optimizer.step()", "warm.go()"))
    assert "scaler.step(self.inner)" in text and "self.scaler" not in text and text.index("GradScaler") < text.index("class Warm")


def test_an_attribute_that_is_taken() -> None:
    defs = """
    class T:
        def __init__(self):
            self.net = Net()
            self.scaler = None
            self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)

        def turn(self, loader):
            for x, y in loader:
                self.opt.zero_grad()
                loss = F.cross_entropy(self.net(x), y)
                loss.backward()
                self.opt.step()
    """
    lines = after(AMP, defs=defs, model="", optimizer="", before="t = T()", batches="if True:", step="t.turn(loader)")
    assert "self.grad_scaler.step(self.opt)" in lines


def test_optimizers_under_different_tests_are_refused() -> None:
    step = STEP.replace("optimizer.step()", "if epoch:\n    optimizer.step()\nelse:\n    other.step()")
    assert refused("DPM321", AMP, optimizer=_SECOND, step=step) == ["other.step()"]


def test_gradients_by_autograd_grad_are_refused() -> None:
    step = STEP + "g = torch.autograd.grad(loss, x)"
    assert refused("DPM321", AMP, step=step) == ["torch.autograd.grad(loss, x)"]
    assert refused("DPM321", AMP, end="g = torch.autograd.grad(loss, x)") == []


@pytest.mark.parametrize(
    ("parts", "pointed"),
    [
        pytest.param({"defs": "def back(loss):\n    loss.backward()", "step": STEP.replace("loss.backward()", "back(loss)")}, "loss.backward()", id="backward in another function"),
        pytest.param({"defs": "def clip(model):\n    " + _CLIP, "step": STEP.replace("optimizer.step()", "clip(model)\noptimizer.step()")}, _CLIP.strip(), id="clipping elsewhere"),
        pytest.param({"step": STEP.replace("optimizer.step()", "[p.grad.clamp_(-1, 1) for p in model.parameters()]\noptimizer.step()")}, "p.grad", id="gradients by hand"),
        pytest.param(
            {"imports": "from lib import clip_gradient", "step": STEP.replace("optimizer.step()", "clip_gradient(optimizer, 1)\noptimizer.step()")}, "clip_gradient(optimizer, 1)",
            id="clipping of another file",
        ),
        pytest.param({"step": STEP.replace("optimizer.step()", "n = optimizer.step()")}, "optimizer.step()", id="no step that is a statement"),
    ],
)  # fmt: skip
def test_refused(parts: dict[str, str], pointed: str) -> None:
    assert refused("DPM321", AMP, **parts) == [pointed]


def test_steps_in_two_functions_are_refused() -> None:
    defs = "def a(o):\n    o.step()\ndef b(o):\n    o.step()"
    assert refused("DPM321", AMP, defs=defs, step=STEP.replace("optimizer.step()", "a(optimizer)\nb(optimizer)")) == ["o.step()", "o.step()"]


def test_gradients_by_hand_are_right_without_a_scale() -> None:
    step = STEP.replace("optimizer.step()", "[p.grad.clamp_(-1, 1) for p in model.parameters()]\nnum = torch.clip(x, 0, 1)\noptimizer.step()")
    assert refused("DPM321", BF16, step=step) == []


def test_gradients_after_training_and_other_clips() -> None:
    step = STEP + "num = torch.clip(x, 0, 1)\nx.clip(0)"
    assert refused("DPM321", AMP, step=step, end="print(model.fc.weight.grad)") == []


def test_state_that_another_function_saves() -> None:
    """The scaler is made where that function sees it."""
    defs = "def save(optimizer, path):\n    torch.save({'opt': optimizer.state_dict()}, path)\n"
    lines = whole(AMP, defs=defs, end="save(optimizer, 'a')").splitlines()
    assert lines.index("scaler = torch.amp.GradScaler(ddp.device().type)") < lines.index("def save(optimizer, path):")
    assert any("'scaler': scaler.state_dict()" in line for line in lines)


def test_state_that_another_object_saves() -> None:
    """It has no ``self.scaler``."""
    text = """
    import torch
    import torch.nn as nn
    from torch.utils.data import DataLoader, TensorDataset

    class Keeper:
        def save(self, optimizer):
            torch.save({"opt": optimizer.state_dict()}, "a")

    class Trainer:
        def __init__(self):
            self.net = nn.Linear(8, 2)
            self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
            self.keeper = Keeper()

        def fit(self, loader):
            for epoch in range(2):
                for x, y in loader:
                    loss = nn.functional.cross_entropy(self.net(x), y)
                    self.optimizer.zero_grad()
                    loss.backward()
                    self.optimizer.step()
            self.keeper.save(self.optimizer)

    if __name__ == "__main__":
        Trainer().fit(DataLoader(TensorDataset(torch.randn(64, 8), torch.zeros(64).long()), batch_size=16, shuffle=True))
    """
    result = migrate(dedent(text), AMP)
    assert result is not None and "self.scaler.step(self.optimizer)" in result and "scaler.state_dict()" not in result


_ENGINE = """
from torch import nn
criterion = nn.CrossEntropyLoss()

def train_epoch(model, loader, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        {step}
"""
_TRAIN = """
import torch
from torch.utils.data import DataLoader, TensorDataset
{imports}

model = torch.nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(torch.randn(64, 8), torch.zeros(64).long()), batch_size=16, shuffle=True)
for epoch in range(2):
    train_epoch(model, loader, optimizer)
torch.save({{"optimizer": optimizer.state_dict()}}, "a")
"""


def test_a_step_of_another_file_than_its_backward() -> None:
    files = {
        "tools": "def advance(optimizer):\n    optimizer.step()\n",
        "engine": "from tools import advance" + _ENGINE.format(step="advance(optimizer)"),
        "train": _TRAIN.format(imports="from engine import train_epoch"),
    }
    stopped = [f.message for f in rules.check(script_of(files, AMP)) if f.code == "DPM321" and f.severity is Severity.BLOCKER]
    assert stopped == ["the scaler cannot be placed: backward passes and optimizer steps stand in several files"]


def test_state_that_a_file_saves_which_does_not_see_the_scaler() -> None:
    files = {"engine": _ENGINE.format(step="optimizer.step()"), "train": _TRAIN.format(imports="from engine import train_epoch")}
    (told,) = [f for f in rules.check(script_of(files, AMP)) if f.code == "DPM321" and f.severity is Severity.WARNING]
    assert told.message.startswith("the scaler's state is not seen here") and told.edits == ()


def test_an_optimizer_that_the_object_is_given_from_outside() -> None:
    """Its scaler is no attribute of what gives it."""
    text = """
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    class Trainer:
        def fit(self, loader):
            for x, y in loader:
                loss = torch.nn.functional.cross_entropy(self.net(x), y)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()

    def main():
        trainer = Trainer()
        trainer.net = torch.nn.Linear(8, 2)
        trainer.optimizer = torch.optim.SGD(trainer.net.parameters(), lr=0.1)
        for epoch in range(2):
            trainer.fit(DataLoader(TensorDataset(torch.randn(64, 8), torch.zeros(64).long()), batch_size=16, shuffle=True))

    if __name__ == "__main__":
        main()
    """
    result = migrate(dedent(text), AMP)
    assert result is not None and "            scaler.step(self.optimizer)" in result


def test_two_functions_that_step_and_clear_for_themselves() -> None:
    """The update stands after each; a step whose gradients another function clears would be skipped for what an earlier one has left."""
    own = "def {0}(model, optimizer, x, y):\n    optimizer.zero_grad()\n    F.cross_entropy(model(x), y).backward()\n    optimizer.step()\n"
    parts = {"defs": own.format("one") + own.format("two"), "step": "one(model, optimizer, x, y)\ntwo(model, optimizer, x, y)"}
    assert not [f for f in hits("DPM321", AMP, **parts) if f.severity is Severity.BLOCKER]
    uncleared = parts["defs"].replace("def two(model, optimizer, x, y):\n    optimizer.zero_grad()", "def two(model, optimizer, x, y):\n    print(3)")
    told = [f.message for f in hits("DPM321", AMP, **parts | {"defs": uncleared}) if f.severity is Severity.BLOCKER]
    assert len(told) == 1 and "several functions" in told[0]
