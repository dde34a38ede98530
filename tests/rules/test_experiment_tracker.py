"""DPM504: one run for one training."""

from __future__ import annotations

import pytest

from tests.rules.program import STEP, after, found, refused, whole

_EVALUATE = """
def evaluate(model, val_loader):
    correct = 0
    for x, y in val_loader:
        correct += (model(x).argmax(1) == y).sum().item()
    return correct
"""


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({"end": "print('wandb.log({})')  # wandb.log({})"}, id="in a string and a comment"),
        pytest.param({"end": "wandb = []\nwandb.append(3)"}, id="another object of that name"),
        pytest.param({"imports": "import mylib.wandb as w", "end": "w.log({})"}, id="another library's"),
        pytest.param({"imports": "import wandb", "end": "if wandb.run is not None:\n    pass"}, id="a question whether a run is there"),
        pytest.param({"imports": "import wandb", "end": "if wandb.run:\n    pass"}, id="the same, short"),
        pytest.param({"imports": "import wandb", "end": "print(wandb)"}, id="the module itself"),
        pytest.param({"imports": "import wandb", "end": "there = 1 if wandb.run else 0"}, id="a question in an expression"),
        pytest.param({"imports": "import wandb", "end": "run = wandb.run if wandb.run else None"}, id="taken where it is there"),
        pytest.param({"imports": "import wandb", "end": "run = None if wandb.run is None else wandb.run"}, id="the other way round"),
    ],
)
def test_nothing_to_say(parts: dict[str, str]) -> None:
    assert found("DPM504", **parts) == []


@pytest.mark.parametrize(
    ("imports", "call"),
    [
        pytest.param("import wandb", "wandb.init(project='p')", id="keyword"),
        pytest.param("import wandb as wb", "wb.log({'a': 1})", id="alias"),
        pytest.param("from wandb import log", "log({'a': 1})", id="from-import"),
        pytest.param("import mlflow", "mlflow.log_metric('a', 1)", id="mlflow"),
        pytest.param("import wandb", "wandb.config.update({'a': 1})", id="a method of the settings"),
    ],
)
@pytest.mark.parametrize("module_level", [False, True], ids=["function", "module"])
def test_statements_are_guarded(imports: str, call: str, module_level: bool) -> None:
    parts: dict[str, str | bool] = {"imports": imports, "end": call, "module_level": module_level}
    assert found("DPM504", **parts) == [call]
    lines = [one.strip() for one in whole(**parts).splitlines()]
    assert lines[lines.index(call) - 1] == "if ddp.is_main():"


def test_neighbours_share_a_guard_and_nested_calls_go_along() -> None:
    end = "wandb.log({'a': wandb.Image(1)})\nwandb.finish()"
    assert found("DPM504", imports="import wandb", end=end) == ["wandb.log({'a': wandb.Image(1)})", "wandb.finish()"]
    assert after(imports="import wandb", end=end) == ["if ddp.is_main():"]


@pytest.mark.parametrize(
    ("line", "new"),
    [
        pytest.param("run = wandb.init(project='p')", "run = ddp.main_only(wandb.init, project='p')", id="value used"),
        pytest.param("with wandb.init() as run:\n    run.log({})", "with ddp.main_only(wandb.init) as run:", id="with"),
        pytest.param("wandb.run.name = 'x'", "if ddp.is_main():", id="a name for the run"),
        pytest.param("wandb.config.lr = 0.1", "if ddp.is_main():", id="a setting noted"),
    ],
)
def test_values_and_notes(line: str, new: str) -> None:
    assert after(imports="import wandb", end=line) == [new]


@pytest.mark.parametrize(
    ("line", "new"),
    [
        pytest.param("ex.observers.append(FileStorageObserver('runs'))", "if ddp.is_main():", id="an observer"),
        pytest.param("ex.observers.append(MongoObserver.create())", "if ddp.is_main():", id="made by a class method"),
        pytest.param("o = FileStorageObserver('runs')", "o = ddp.main_only(FileStorageObserver, 'runs')", id="kept in a variable"),
    ],
)
def test_observers_of_sacred(line: str, new: str) -> None:
    assert after(imports=_SACRED, setup=f"ex = Experiment('e')\n{line}") == [new]


_SACRED = "from sacred import Experiment\nfrom sacred.observers import FileStorageObserver, MongoObserver"


def test_the_number_of_a_run_of_sacred() -> None:
    assert after(imports=_SACRED, setup="_run = start()\npath = f'runs/{_run._id}'") == ["path = f'runs/{ddp.from_main(_run._id)}'"]
    assert after(imports=_SACRED, setup="ex = Experiment('e')\nprint(ex.current_run._id)") == ["print(ddp.from_main(ex.current_run._id))"]
    assert found("DPM504", setup="_run = start()\nprint(_run._id)") == []
    assert refused("DPM504", imports=_SACRED, setup="_run = start()", step=f"{STEP}print(_run._id)") == ["_run._id"]


def test_in_a_method_and_a_function() -> None:
    defs = "class T:\n    def note(self, v):\n        wandb.log({'v': v})\ndef note(v):\n    wandb.log({'v': v})"
    assert found("DPM504", imports="import wandb", defs=defs) == ["wandb.log({'v': v})"] * 2


def test_an_evaluation_in_the_arguments_runs_on_every_rank() -> None:
    """Under a guard it would wait for the others for ever."""
    parts = {
        "imports": "import wandb",
        "defs": _EVALUATE,
        "setup": "v = DataLoader(val_set, batch_size=4)",
        "epoch_end": "wandb.log({'a': evaluate(model, v)})",
    }
    assert after(**parts)[-1] == "ddp.main_only(wandb.log, {'a': evaluate(model, v)})"


@pytest.mark.parametrize(
    ("line", "new"),
    [
        pytest.param("lr = wandb.config.lr", "lr = ddp.main_settings(wandb.config).lr", id="attribute"),
        pytest.param("config = wandb.config", "config = ddp.main_settings(wandb.config)", id="the settings as a whole"),
        pytest.param("lr = wandb.config['lr']", "lr = ddp.main_settings(wandb.config)['lr']", id="item"),
        pytest.param("config = dict(wandb.config)", "config = dict(ddp.main_settings(wandb.config))", id="copied"),
        pytest.param("if wandb.config.deep:\n    pass", "if ddp.main_settings(wandb.config).deep:", id="a decision"),
        pytest.param("ok = wandb.config.lr == 3", "ok = ddp.main_settings(wandb.config).lr == 3", id="a comparison"),
        pytest.param("run = wandb.init()\nlr = run.config.lr", "lr = ddp.main_settings(run.config).lr", id="of the run"),
        pytest.param("with wandb.init() as run:\n    config = run.config", "config = ddp.main_settings(run.config)", id="of the run that a statement enters"),
    ],
)
def test_settings_are_those_of_rank_0(line: str, new: str) -> None:
    assert new in after(imports="import wandb", setup="wandb.init()\n" + line)


def test_settings_of_something_else() -> None:
    assert after(imports="import wandb, runs", setup="run = runs.new()\nlr = run.config.lr\nwandb.init()") == ["if ddp.is_main():"]


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({"epoch_end": "lr = wandb.config.lr"}, id="in each epoch"),
        pytest.param({"step": "lr = wandb.config.lr\n" + STEP}, id="in each step"),
        pytest.param({"setup": "rates = [wandb.config.lr for _ in range(3)]"}, id="for each element"),
        pytest.param({"defs": "def rate():\n    return wandb.config.lr", "epoch_end": "rate()"}, id="in a function that is called in each epoch"),
    ],
)
def test_settings_that_are_read_again_and_again(parts: dict[str, str]) -> None:
    assert refused("DPM504", imports="import wandb", **parts) == ["wandb.config"]


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("d = os.path.join(wandb.run.dir, 'x')", id="the run's directory"),
        pytest.param("run = None if wandb.run else wandb.run", id="taken where it is not there"),
        pytest.param("run = wandb.run if wandb.run is None else 3", id="taken where it is none"),
        pytest.param("run = wandb.init() if epoch else wandb.run", id="taken where something else says so"),
        pytest.param("run = wandb.run or 3", id="something else in its place"),
        pytest.param("run = 3 if wandb.run else wandb.run.name", id="a part of it where it is not there"),
    ],
)
def test_reading_back_is_refused(line: str) -> None:
    (what,) = refused("DPM504", imports="import wandb", setup=line)
    assert what == "wandb.run"


def test_reading_for_the_tracker_itself() -> None:
    assert found("DPM504", imports="import wandb", end="wandb.log({'lr': wandb.config.lr})") == ["wandb.log({'lr': wandb.config.lr})"]


@pytest.mark.parametrize(
    ("change", "reads", "told"),
    [
        ("wandb.config.lr = 0.1", "print(config.lr)", True),
        ("wandb.config['lr'] = 0.1", "print(config['lr'])", True),
        ("wandb.config.update({'lr': 0.1})", "print(config.get('lr'))", True),
        ("wandb.config.update({'lr': 0.1}, allow_val_change=True)", "print(config.lr)", True),
        ("wandb.config.update(dict(defaults))", "", True),
        ("setattr(wandb.config, name(), 3)", "", True),
        ("wandb.config.update({'size': 3})", "print(config.lr)", False),
        ("wandb.config.size = 3", "", False),
    ],
)
def test_settings_that_are_changed_after_they_are_read(change: str, reads: str, told: bool) -> None:
    setup = "defaults = {'lr': 1}\nwandb.init(config=defaults)\n"
    late = {"imports": "import wandb", "setup": f"{setup}config = wandb.config\n{change}\n{reads}"}
    assert ("wandb.config" in refused("DPM504", **late)) is told
    if not change.startswith("setattr"):  # which hands the settings out as well
        assert refused("DPM504", **{**late, "setup": f"{setup}{change}\nconfig = wandb.config\n{reads}"}) == []


@pytest.mark.parametrize(
    "value",
    ["wandb.run or {}", "{} if not wandb.run else wandb.run", "wandb.run if wandb.run else {}", "{} if wandb.run is None else wandb.run"],
)
def test_a_run_that_is_begun_where_there_is_none(value: str) -> None:
    """The ranks that have none get an object that does nothing."""
    text = after(imports="import wandb", before="run = " + value.format("wandb.init(project='p')"), end="run.log({'a': 1})")
    assert "run = " + value.format("ddp.main_only(wandb.init, project='p')") in text


_HELD = """
class Log:
    def __init__(self):
        import wandb
        self.module = wandb
        self.run = wandb.init(project="p")

    def add(self, value):
        self.module.log({"a": value})

    def end(self):
        self.run.finish()


def tell(value, tracker):
    tracker.log({"b": value})


def tell_list(value, tracker):
    tracker.log(value)
"""


def test_a_tracker_that_an_attribute_or_a_parameter_has() -> None:
    """The module is known whatever holds it; the run that ``main_only`` makes needs no guard, and of other things with such a method nothing is said."""
    end = "log = Log()\nlog.add(1)\nlog.end()\ntell(2, log.module)\ntell_list(3, Own())"
    own = "class Own:\n    def log(self, value):\n        print(value)"
    parts = {"defs": f"{_HELD}\n{own}", "end": end}
    assert found("DPM504", **parts) == ['wandb.init(project="p")', 'self.module.log({"a": value})', 'tracker.log({"b": value})']
    lines = [one.strip() for one in whole(**parts).splitlines()]
    assert 'self.run = ddp.main_only(wandb.init, project="p")' in lines
    assert lines[lines.index("self.run.finish()") - 1] == "def end(self):"
    for call in ('self.module.log({"a": value})', 'tracker.log({"b": value})'):
        assert lines[lines.index(call) - 1] == "if ddp.is_main():"
    assert lines[lines.index("tracker.log(value)") - 1] == "def tell_list(value, tracker):"
