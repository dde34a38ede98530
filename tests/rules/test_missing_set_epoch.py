"""DPM205: the sampler is told the epoch."""

from __future__ import annotations

import pytest

from dpmigrate.model import Severity
from tests.rules.program import STEP, after, found, migrated, of, program, refused, whole


def _where(line: str, **parts: str | bool) -> str:
    """What stands before the line."""
    lines = [one.strip() for one in whole(**parts).splitlines() if one.strip()]
    return lines[lines.index(line) - 1]


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({"epochs": "if True:"}, id="one epoch only"),
        pytest.param({"epochs": "for part in ('a', 'b'):"}, id="a loop over literals repeats nothing"),
    ],
)
def test_nothing_to_say(parts: dict[str, str]) -> None:
    assert found("DPM205", **parts) == []


@pytest.mark.parametrize(
    ("before", "epochs", "counter", "last"),
    [
        pytest.param("", "for epoch in range(3):", "epoch", "", id="range"),
        pytest.param("", "for _ in range(3):", "_", "", id="underscore"),
        pytest.param("import tqdm", "for e in tqdm.trange(3):", "e", "", id="trange"),
        pytest.param("from tqdm import tqdm", "for e in tqdm(range(3)):", "e", "", id="a range in a bar"),
        pytest.param("bar = tqdm.tqdm(range(3), leave=False)", "for e in bar:", "e", "", id="a range in a bar with a name"),
        pytest.param("import itertools", "for e in itertools.count(1):", "e", "", id="count"),
        pytest.param("", "for i, lr in enumerate([0.1, 0.2]):", "i", "", id="enumerate"),
        pytest.param("n = 0", "while n < 3:", "n", "n += 1", id="while"),
        pytest.param("import types\ns = types.SimpleNamespace(n=0)", "while s.n < 3:", "s.n", "s.n += 1", id="while on an attribute"),
        pytest.param("n = 0\nk = 0", "while n < 3:", "n", "k += 1\nn += 1", id="another counter"),
    ],
)
@pytest.mark.parametrize("module_level", [False, True], ids=["function", "module"])
def test_counters(before: str, epochs: str, counter: str, last: str, module_level: bool) -> None:
    parts: dict[str, str | bool] = {"before": before, "epochs": epochs, "epoch_end": last, "module_level": module_level}
    assert found("DPM205", **parts) == [epochs]
    assert _where(f"loader.sampler.set_epoch({counter})", **parts).replace("ddp.from_main(s.n < 3)", "s.n < 3") == epochs


def test_a_loader_made_in_the_loop() -> None:
    parts = {"loader": "", "epoch_start": "loader = DataLoader(train_set, batch_size=16, shuffle=True)"}
    assert _where("for x, y in loader:", **parts) == "loader.sampler.set_epoch(epoch)"


def test_a_function_and_a_method() -> None:
    body = "".join(f"            {s}\n" for s in STEP.replace("optimizer", "opt").replace("model(", "net(").splitlines())
    defs = f"class T:\n    def turn(self, net, batches, opt):\n        for x, y in batches:\n{body}"
    parts = {"defs": defs, "before": "t = T()", "batches": "if True:", "step": "t.turn(model, loader, optimizer)"}
    assert "loader.sampler.set_epoch(epoch)" in whole(**parts)


_TURN = "def turn(model, batches, optimizer):\n    for x, y in batches:\n" + "".join(f"        {s}\n" for s in STEP.splitlines())
_TWO = "loader = DataLoader(train_set, batch_size=16, shuffle=True)\nother = DataLoader(val_set, batch_size=4, shuffle=True)"


def test_one_function_for_two_loaders() -> None:
    """Each call brings its own loader, in the same loop and in another one, also through a further function."""
    step = "turn(model, loader, optimizer)\nturn(model, other, optimizer)"
    parts: dict[str, str | bool] = {"defs": _TURN, "loader": _TWO, "batches": "if True:", "step": step}
    text = whole(**parts)
    assert "loader.sampler.set_epoch(epoch)" in text and "other.sampler.set_epoch(epoch)" in text
    end = "for e in range(2):\n    turn(model, other, optimizer)"
    lines = whole(**{**parts, "step": "turn(model, loader, optimizer)", "end": end}).splitlines()
    loops = [i for i, line in enumerate(lines) if "range(" in line]
    assert [lines[i + 1].strip() for i in loops] == ["loader.sampler.set_epoch(epoch)", "other.sampler.set_epoch(e)"]
    defs = _TURN + "def stage(data):\n    turn(model, data, optimizer)\n"
    text = whole(**{**parts, "defs": defs, "step": "stage(loader)", "end": "for e in range(2):\n    stage(other)", "module_level": True})
    assert "    loader.sampler.set_epoch(epoch)" in text and "    other.sampler.set_epoch(e)" in text


def test_a_loop_without_a_counter_for_one_of_the_loaders() -> None:
    parts = {"defs": _TURN, "loader": _TWO, "batches": "if True:", "step": "turn(model, loader, optimizer)"}
    text = whole(**parts, end="while os.environ:\n    turn(model, other, optimizer)")
    assert "for x, y in ddp.next_epoch(batches):" in text and "set_epoch" not in text


def test_an_attribute_of_self() -> None:
    defs = """
    class T:
        def __init__(self, data):
            self.loader = DataLoader(data, batch_size=4, shuffle=True)
            self.net = Net()
            self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)

        def turn(self):
            for x, y in self.loader:
                self.opt.zero_grad()
                loss = F.cross_entropy(self.net(x), y)
                loss.backward()
                self.opt.step()

        def run(self):
            for epoch in range(3):
                self.turn()
    """
    parts = {"defs": defs, "loader": "", "model": "", "optimizer": "", "epochs": "if True:", "batches": "if True:", "step": "T(train_set).run()"}
    assert "self.loader.sampler.set_epoch(epoch)" in after(**parts)


@pytest.mark.parametrize(
    ("epochs", "end"),
    [
        pytest.param("while True:", "if epoch_done():\n    break", id="no counter at all"),
        pytest.param("while not epoch_done():", "n = 1\nn += 2", id="counts by two"),
        pytest.param("for a, b in [(1, 2), (3, 4)] + []:", "", id="two names, not numbered"),
        pytest.param("for lr in rates:", "", id="over something else"),
        pytest.param("for lr in sorted(rates):", "", id="over something else, in order"),
        pytest.param("for lr in os.environ['RATES']:", "", id="over an item"),
        pytest.param("for a in zip(range(3), range(3)):", "", id="over pairs"),
    ],
)
def test_without_a_counter_the_passes_are_counted(epochs: str, end: str) -> None:
    assert "for x, y in ddp.next_epoch(loader):" in whole(defs="def epoch_done():\n    return True", epochs=epochs, epoch_end=end)


def test_a_loop_over_loaders() -> None:
    loader = "loaders = [DataLoader(d, batch_size=8, shuffle=True) for d in (train_set, val_set)]"
    text = whole(loader=loader, batches="for loader in loaders:", step="for x, y in loader:\n" + "".join(f"    {s}\n" for s in STEP.splitlines()))
    assert "for x, y in ddp.next_epoch(loader):" in text and "set_epoch" not in text


def test_a_bar_that_is_made_once_cannot_count() -> None:
    parts = {"imports": "from tqdm import tqdm", "before": "bar = tqdm(loader)", "epochs": "while True:", "batches": "for x, y in bar:"}
    assert refused("DPM205", **parts) == ["for x, y in bar:"]


def test_a_bar_that_is_made_for_each_pass_counts() -> None:
    step = "with tqdm(loader) as bar:\n    for x, y in bar:\n" + "".join(f"        {s}\n" for s in STEP.splitlines())
    text = whole(imports="from tqdm import tqdm", epochs="while True:", batches="if True:", step=step, epoch_end="break")
    assert "with tqdm(ddp.next_epoch(loader)) as bar:" in text


def test_a_bar_that_is_named_in_the_head_of_the_loop() -> None:
    text = whole(imports="from tqdm import tqdm", batches="for x, y in (bar := tqdm(loader)):")
    assert "        loader.sampler.set_epoch(epoch)\n        for x, y in (bar := tqdm(loader)):" in text


def test_a_bar_that_another_function_goes_through() -> None:
    """The second pass would have the order of the first."""
    inner = "".join(f"            {s}\n" for s in STEP.splitlines())
    step = f"with tqdm(loader) as bar:\n    def turn():\n        for x, y in bar:\n{inner}    turn()\n"
    parts = {"imports": "from tqdm import tqdm", "epochs": "while True:", "batches": "if True:", "step": step, "epoch_end": "break"}
    assert refused("DPM205", **parts) == ["for x, y in bar:"]


def test_a_loader_without_a_name_there_counts_its_passes() -> None:
    body = "".join(f"        {s}\n" for s in STEP.splitlines())
    defs = f"def turn(model, data, optimizer):\n    loader = DataLoader(data, batch_size=4)\n    for x, y in loader:\n{body}"
    text = whole(defs=defs, batches="if True:", step="turn(model, train_set, optimizer)")
    assert "for x, y in ddp.next_epoch(loader):" in text


def test_a_loop_that_nothing_comes_to_is_refused() -> None:
    """Who repeats it is not seen, so set_epoch cannot be placed."""
    text = program(module_level=True).replace("for epoch in range(3):", "def one_epoch():")
    assert "def one_epoch():" in text
    (one,) = of("DPM205", text)
    assert one.severity is Severity.BLOCKER and "nothing in this program is seen to come here" in one.message


_SECOND = "".join(f"    {line}\n" for line in STEP.splitlines())


def test_two_passes_in_an_epoch() -> None:
    """A counter of epochs would give both passes one order."""
    new = whole(epoch_end=f"for x, y in loader:\n{_SECOND}")
    assert new.count("for x, y in ddp.next_epoch(loader):") == 2
    assert "set_epoch(" not in new
    assert whole(epochs="if True:", epoch_end=f"for x, y in loader:\n{_SECOND}").count("for x, y in ddp.next_epoch(loader):") == 2


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({"epoch_end": f"for x, y in DataLoader(val_set, batch_size=4):\n{_SECOND}"}, id="over another loader"),
        pytest.param(
            {"end": f"for more in range(2):\n    for x, y in loader:\n{_SECOND}".replace("\n    ", "\n        ").replace("        for", "    for")},
            id="in another loop over epochs",
        ),
        pytest.param(
            {"batches": "if epoch:\n    for x, y in loader:\n" + _SECOND.replace("    ", "        ") + "else:\n  for x, y in loader:"}, id="of which one runs"
        ),
    ],
)
def test_one_pass_in_an_epoch(parts: dict[str, str]) -> None:
    assert "loader.sampler.set_epoch(epoch)" in whole(**parts)


def test_a_pass_that_begins_after_another_loop() -> None:
    """The sampler still has the order of that loop's last epoch."""
    steps = "".join(f"    {line}\n" for line in STEP.splitlines())
    drawn = f"it = iter(loader)\nfor i in range(3):\n    x, y = next(it)\n{steps}"
    assert "it = iter(ddp.next_epoch(loader))" in after(end=drawn)
    assert "next_epoch" not in whole(before=drawn)


def test_two_loaders_in_step() -> None:
    steps = "".join(f"    {line}\n" for line in STEP.splitlines())
    text = after(
        end="for epoch in range(2):\n    pairs = iter(zip(range(9), loader))\n    for i in range(4):\n        _, (x, y) = next(pairs)\n"
        + steps.replace("    ", "        ")
    )
    assert "pairs = iter(zip(range(9), ddp.next_epoch(loader)))" in text


_UNSHUFFLED = "loader = DataLoader(train_set, batch_size=16)"
_MADE = "def make():\n    return DataLoader(TensorDataset(torch.randn(64, 8), torch.ones(64)), batch_size=16, shuffle=True)"


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({"loader": _UNSHUFFLED, "batches": "for (x, y), (u, v) in zip(loader, loader):"}, id="in the order of the data"),
        pytest.param(
            {"loader": "a, loader = make(), make()", "defs": _MADE, "batches": "for (x, y), (u, v) in zip(a, loader):"}, id="two loaders of one function"
        ),
        pytest.param(
            {"before": "it = iter(loader)", "batches": "for i in range(4):", "step": "x, y = next(it)\n" + STEP + "x, y = next(it)\n" + STEP}, id="one pass"
        ),
        pytest.param({"step": STEP + "if epoch:\n    u, v = next(iter(loader))\n    print(model(u))"}, id="a look at it"),
    ],
)
def test_one_pass_at_once(parts: dict[str, str]) -> None:
    assert refused("DPM205", **parts) == []


@pytest.mark.parametrize(
    ("parts", "at"),
    [
        pytest.param({"batches": "for (x, y), (u, v) in zip(loader, loader):"}, "zip(loader, loader)", id="zip"),
        pytest.param(
            {"epoch_start": "it = iter(loader)", "step": "u, v = next(it)\n" + STEP.replace("y)", "y) + model(u).mean()")}, "next(it)", id="next beside for"
        ),
    ],
)
def test_two_passes_at_once_are_refused(parts: dict[str, str], at: str) -> None:
    assert refused("DPM205", **parts) == [at]


@pytest.mark.parametrize("batches", ["if epoch < 2:", "try:"])
def test_a_loader_that_is_built_in_a_part_of_the_epoch(batches: str) -> None:
    """Before that part the variable has no loader yet."""
    body = "".join(f"    {line}\n" for line in STEP.splitlines())
    step = f"own = DataLoader(train_set, batch_size=16, shuffle=True)\nfor x, y in own:\n{body}"
    parts = {"loader": "", "batches": batches, "step": step, "epoch_end": "finally:\n    print(epoch)" if batches == "try:" else ""}
    text = whole(**parts)
    assert "for x, y in ddp.next_epoch(own):" in text and "set_epoch" not in text


@pytest.mark.parametrize(
    ("bar", "told"),
    [
        pytest.param("bar = tqdm(loader) if verbose else loader", True, id="a bar or the loader itself"),
        pytest.param("bar = tqdm(loader) if verbose else other", False, id="a bar or another loader"),
    ],
)
def test_a_bar_that_may_be_the_loader(bar: str, told: bool) -> None:
    parts = {"imports": "from tqdm import tqdm\nverbose = True", "epoch_start": bar, "batches": "for x, y in bar:", "before": "other = DataLoader(train_set, batch_size=16)"}
    assert ("loader.sampler.set_epoch(epoch)" in whole(**parts)) is told


def test_bars_of_one_name_in_two_withs() -> None:
    step = "with tqdm(loader) as bar:\n    for x, y in bar:\n        " + STEP.strip().replace("\n", "\n        ")
    end = "with tqdm(val_loader) as bar:\n    for x, y in bar:\n        print(model(x).shape)"
    new = whole(imports="from tqdm import tqdm", batches="if True:", step=step, epoch_end=end)
    assert "loader.sampler.set_epoch(epoch)" in new
    assert "bar.sampler" not in new


@pytest.mark.parametrize(
    ("imports", "line", "loop"),
    [
        pytest.param("from tqdm import tqdm as bar", "progress = bar(enumerate(train_loader))", "progress", id="another name"),
        pytest.param("from tqdm.auto import tqdm as bar", "progress = bar(enumerate(train_loader)) if epoch else enumerate(train_loader)", "progress", id="on one of two ways"),
        pytest.param("import tqdm.notebook as shown", "shown_loader = shown.tqdm(train_loader)", "enumerate(shown_loader)", id="of a module"),
        pytest.param("from rich.progress import track as follow", "", "enumerate(follow(train_loader))", id="rich"),
        pytest.param("from tqdm import tqdm\ndef show(it, desc=None):\n    if tqdm is None:\n        return it\n    return tqdm(it, desc=desc)", "", "enumerate(show(train_loader))", id="a function of the program"),
    ],
)
def test_progress_bars_by_any_name(imports: str, line: str, loop: str) -> None:
    text = f'''\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
{imports}


def main():
    data = TensorDataset(torch.randn(64, 4), torch.randn(64, 1))
    train_loader = DataLoader(data, batch_size=8, shuffle=True)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        {line or "pass"}
        for i, (x, y) in {loop}:
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()


main()
'''
    new = migrated(text)
    assert "train_loader.sampler.set_epoch(epoch)" in new
    assert "sampler=ddp.DistributedSampler(data" in new


def test_loaders_that_the_epoch_chooses() -> None:
    made = "{0} = {{'train': DataLoader(train_set, batch_size=16, shuffle=True)}}"
    text = whole(
        loader=f"{made.format('first')}\n{made.format('second')}",
        epoch_start="sides = first if epoch < 2 else second\nphase = 'train'", batches="for x, y in sides[phase]:",
    )  # fmt: skip
    lines = [line.strip() for line in text.splitlines()]
    told = next(i for i, line in enumerate(lines) if "set_epoch" in line or "next_epoch" in line)
    assert told > lines.index("sides = first if epoch < 2 else second")


@pytest.mark.parametrize("phases", ["enumerate(['train', 'val'])", "enumerate(tqdm(('train', 'val')))", "tqdm(['train', 'val'])"])
def test_the_place_of_a_phase_is_no_epoch(phases: str) -> None:
    """It is the same in each epoch, and so would be the order of the samples."""
    target = "i, phase" if "enumerate" in phases else "phase"
    body = "".join(f"            {line}\n" for line in STEP.splitlines())
    batches = f"for {target} in {phases}:\n    if phase == 'train':\n        for x, y in loader:\n{body}"
    text = whole(imports="from tqdm import tqdm", batches=batches, step="    print(phase)")
    assert "loader.sampler.set_epoch(epoch)" in text and "set_epoch(i)" not in text and "next_epoch" not in text


_TRAINER = """
class Trainer:
    def __init__(self, model, loader, optimizer):
        self.model, self.loader, self.optimizer = model, loader, optimizer

    def run(self):
        for x, y in self.loader:
            self.optimizer.zero_grad()
            loss = F.cross_entropy(self.model(x), y)
            loss.backward()
            self.optimizer.step()
"""


@pytest.mark.parametrize(
    ("start", "run", "told", "before"),
    [
        ("trainer = Trainer(model, loader, optimizer)", "trainer.run()", "trainer.loader.sampler.set_epoch(epoch)", "trainer.run()"),
        ("print(epoch)", "trainer = Trainer(model, loader, optimizer); trainer.run()", "trainer.loader.sampler.set_epoch(epoch)", "trainer.run()"),
        ("print(epoch)", "Trainer(model, loader, optimizer).run()", "for x, y in ddp.next_epoch(self.loader):", "self.optimizer.zero_grad()"),
        (
            "print(epoch)", "if (trainer := Trainer(model, loader, optimizer)):\n    trainer.run()",
            "for x, y in ddp.next_epoch(self.loader):", "self.optimizer.zero_grad()",
        ),
    ],
)  # fmt: skip
def test_an_object_that_each_epoch_makes(start: str, run: str, told: str, before: str) -> None:
    text = whole(defs=_TRAINER, epoch_start=start, batches=run, step="")
    lines = [line.strip() for line in text.replace("; ", "\n").splitlines() if line.strip()]
    assert lines.index(before) - lines.index(told) == 1


@pytest.mark.parametrize(
    ("stages", "epochs", "anew"),
    [
        pytest.param("for stage in range(2):", "for epoch in range(3):", True, id="a range"),
        pytest.param("for rate in (0.1, 0.01):", "for epoch in range(1, 4):", True, id="from one, over literals"),
        pytest.param("for rate in (0.1, 0.01):", "for epoch, _ in enumerate(range(3)):", True, id="enumerated"),
        pytest.param("for stage in range(2):", "for epoch in range(stage * 3, stage * 3 + 3):", False, id="a counter that goes on"),
        pytest.param("for stage in range(2):\n    epoch = 0", "while epoch < 3:", True, id="a counter that is set back"),
        pytest.param("epoch = 0\nfor stage in range(2):", "while epoch < 3 * stage + 3:", False, id="a counter that is kept"),
        pytest.param("for stage in range(2):\n    loader = DataLoader(train_set, batch_size=16, shuffle=True)", "for epoch in range(3):", False, id="another loader"),
    ],
)
def test_epochs_of_several_stages(stages: str, epochs: str, anew: bool) -> None:
    """With a counter that begins anew the orders of the first stage would come again."""
    inner = f"    {epochs}\n        for x, y in loader:\n" + "".join(f"            {line}\n" for line in STEP.splitlines())
    inner += "        epoch += 1\n" * epochs.startswith("while")
    text = whole(epochs="if True:", batches=stages + "\n" + inner, step="")
    assert ("for x, y in ddp.next_epoch(loader):" in text) is anew
    assert ("loader.sampler.set_epoch(epoch)" in text) is not anew


_GIVEN = """
def turn(model, loader, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
"""
_OPTIONS = "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--first', action='store_true')\nargs = parser.parse_args()"


@pytest.mark.parametrize(
    ("other", "inside"),
    [
        pytest.param("print(1)", True, id="under a test alone"),
        pytest.param("if epoch_0:\n    loader = None", True, id="under two tests"),
        pytest.param("else:\n    loader = None", False, id="in both branches"),
        pytest.param("elif epoch_0:\n    loader = None\nelse:\n    loader = []", False, id="in all branches"),
    ],
)
def test_a_loader_that_is_made_under_a_test(other: str, inside: bool) -> None:
    """Where the variable may have no value, the sampler is told where training uses it."""
    loader = f"epoch_0 = len(train_set) > 9\nif args.first:\n    loader = DataLoader(train_set, batch_size=16, shuffle=True)\n{other}"
    step = "turn(model, loader, optimizer)"
    parts = {"defs": _GIVEN, "imports": _OPTIONS, "loader": loader, "batches": "if args.first:", "step": step}
    assert _where("turn(model, loader, optimizer)", **parts) == ("loader.sampler.set_epoch(epoch)" if inside else "if args.first:")


def test_a_loader_that_may_be_gone_through_without_end() -> None:
    """Each way counts its own passes: that over the loader where it begins, that of the generator in the generator."""
    defs = "from itertools import repeat\n\ndef endless(given):\n    for one in repeat(given):\n        yield from one"
    text = whole(defs=defs, before="if os.environ.get('STEPS'):\n    loader = endless(loader)", step="if epoch > 1:\n    break\n" + STEP)
    assert "yield from ddp.next_epoch(one)" in text and "for x, y in ddp.next_epoch(loader):" in text and "set_epoch" not in text


_GUARDED = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from tqdm import tqdm


def fit(model, epochs):
    for epoch in range(epochs):
        bar = tqdm(enumerate(loader), total=len(loader))
        for i, (x, y) in bar:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            bar.set_postfix(loss=loss.item())


{guard}:
    loader = DataLoader(TensorDataset(torch.randn(32, 4), torch.randint(0, 2, (32,))), batch_size=8, shuffle=True)
    net = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    fit(net, 2)
"""


@pytest.mark.parametrize(
    ("guard", "before"),
    [
        pytest.param("if __name__ == '__main__'", "for epoch in range(epochs):", id="where the program is started"),
        pytest.param("import sys\nif len(sys.argv) < 3", "for epoch in range(epochs):", id="under a test, before the iterator of the bar is made"),
    ],
)
def test_a_loader_of_the_module_that_a_function_reads(guard: str, before: str) -> None:
    lines = [line.strip() for line in migrated(_GUARDED.format(guard=guard)).splitlines()]
    place = lines.index("loader.sampler.set_epoch(epoch)")
    assert lines[place - 1] == before and lines[place + 1].startswith("bar = ")


@pytest.mark.parametrize(
    ("lines", "counted"),
    [
        pytest.param("turn(model, loader, optimizer)\nturn(model, loader, optimizer)", True, id="one after the other"),
        pytest.param("a, b = turn(model, loader, optimizer), turn(model, loader, optimizer)", True, id="in one statement"),
        pytest.param("if epoch < 2:\n    turn(model, loader, optimizer)\nelse:\n    turn(model, loader, optimizer)", False, id="one or the other"),
        pytest.param("turn(model, loader, optimizer)", False, id="once"),
    ],
)
def test_passes_of_one_loop_in_an_epoch(lines: str, counted: bool) -> None:
    """A function that is called twice in an epoch would have the order of its counter both times."""
    text = whole(defs=_GIVEN, batches=lines, step="")
    assert ("for x, y in ddp.next_epoch(loader):" in text) is counted
    assert ("loader.sampler.set_epoch(epoch)" in text) is not counted
