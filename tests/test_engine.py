"""Programs that share files: what is said of a half, what is written together, and what undo brings back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from dpmigrate import engine, plans, transaction, writing
from dpmigrate.model import Outcome, Problem, Status
from dpmigrate.settings import Settings
from dpmigrate.transaction import Change
from tests.test_cli import run

pytestmark = pytest.mark.usefixtures("forked_tool")

ENGINE = """\
import torch
def evaluate(model, loader):
    correct = 0
    with torch.no_grad():
        for x, y in loader:
            correct += (model(x).argmax(1) == y).sum().item()
    return correct
def train_epoch(model, loader, criterion, optimizer):
    for x, y in loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
TRAIN = """\
import torch
from torch import nn
from torch.utils.data import DataLoader
import engine
from data import train_set, test_set

def main():
    loader = DataLoader(train_set, batch_size=8, shuffle=True)
    test_loader = DataLoader(test_set, batch_size=8)
    model = nn.Linear(10, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(5):
        engine.train_epoch(model, loader, nn.CrossEntropyLoss(), optimizer)
        engine.evaluate(model, test_loader)

if __name__ == "__main__":
    main()
"""
TEST = """\
import torch
import engine
from torch.utils.data import DataLoader
from data import test_set
if __name__ == "__main__":
    print(engine.evaluate(torch.load("net.pt"), DataLoader(test_set, batch_size=8)))
"""
#: imports the same engine and is refused, for what stands there
REFUSED = """\
import torch
import engine
if __name__ == "__main__":
    model = torch.nn.Linear(10, 2)
    engine.train_epoch(model, [torch.zeros(3, 10)], torch.nn.MSELoss(), torch.optim.SGD(model.parameters(), lr=0.1))
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def put(files: Mapping[str, str]) -> None:
    for name, text in files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text)


def applied(*names: str, how: engine.Writing | None = None) -> dict[str, Outcome]:
    return {o.path: o for o in engine.apply([Path(n) for n in names], Settings(), how or engine.Writing())}


def checked(*names: str) -> dict[str, Outcome]:
    return {o.path: o for o in engine.check([Path(n) for n in names], Settings())}


def statuses(outcomes: Mapping[str, Outcome]) -> dict[str, Status]:
    return {path: o.status for path, o in outcomes.items()}


# ------------------------------------------------------------------ one half of a migration
def test_a_migrated_program_has_nothing_to_migrate() -> None:
    put({"train.py": TRAIN, "engine.py": ENGINE})
    assert statuses(applied("train.py")) == {"train.py": Status.CHANGED}
    assert statuses(applied("train.py", "engine.py")) == {"train.py": Status.UNCHANGED}
    assert statuses(checked("train.py", "engine.py")) == {"train.py": Status.CLEAN}
    assert statuses(checked("engine.py")) == {"engine.py": Status.CLEAN}  # a plain module of it


def test_a_script_that_starts_its_own_processes_is_no_half() -> None:
    start = "import torch.distributed as dist\ndist.init_process_group('nccl')\n"
    put({"train.py": "import dpmigrate_runtime as ddp\n" + start + TRAIN, "engine.py": ENGINE})
    assert statuses(checked("train.py")) == {"train.py": Status.CLEAN}


@pytest.mark.parametrize("who", ["train2.py", "test.py"])
def test_a_script_whose_module_was_migrated_with_another(who: str) -> None:
    put({"train.py": TRAIN, "engine.py": ENGINE})
    applied("train.py")
    put({"train2.py": TRAIN, "test.py": TEST})
    told = "engine.py was migrated with another script"
    for o in (checked(who)[who], applied(who)[who]):
        assert o.status is Status.REFUSED and o.reason.startswith(told)
    done = run("check", who, cwd=Path.cwd())
    assert done.returncode == 1 and f"{who}: apply will refuse this program: {told}" in done.stdout.decode()


def test_a_script_that_runs_nothing_of_what_was_migrated_is_whole() -> None:
    put({"train.py": TRAIN, "engine.py": ENGINE + "def size(model): ...\n"})
    applied("train.py")
    put({"count.py": "import engine\nimport torch\nengine.size(torch.load('net.pt'))\n"})
    assert statuses(checked("count.py")) == {"count.py": Status.CLEAN}


@pytest.mark.parametrize(
    "use", ["import dpmigrate_runtime as ddp\nddp.shard", "import dpmigrate_runtime\ndpmigrate_runtime.shard", "from dpmigrate_runtime import shard\nshard"]
)
def test_a_script_that_was_migrated_as_a_module(use: str) -> None:
    put({"train.py": f"{use}\n{TRAIN}", "engine.py": ENGINE})
    for o in (checked("train.py")["train.py"], applied("train.py")["train.py"]):
        assert o.status is Status.REFUSED and o.reason.startswith("it was migrated as a module of another script")


# ------------------------------------------------------------------ who else imports what changes
def noted(outcome: Outcome) -> list[str]:
    return [n for n in outcome.notes if "also imported" in n]


def test_nobody_else_imports_it() -> None:
    put({"train.py": TRAIN, "train2.py": TRAIN, "engine.py": ENGINE, "other.py": "import json\n", "engine_test.py": "# import engine\n"})
    assert [noted(o) for o in applied("train.py", "train2.py").values()] == [[], []]


def test_a_module_of_that_name_elsewhere_is_another() -> None:
    put({"train.py": TRAIN, "engine.py": ENGINE, "tools/run.py": "import engine\n", "tools/engine.py": ""})
    assert noted(applied("train.py")["train.py"]) == []


_FIT = """
def fit(model, loader, criterion, optimizer):
    for epoch in range(5):
        train_epoch(model, loader, criterion, optimizer)
"""


@pytest.mark.parametrize(
    ("others", "told"),
    [
        pytest.param({}, "loader.sampler.set_epoch(epoch)", id="nobody else"),
        pytest.param({"quick_test.py": REFUSED.replace("train_epoch", "fit")}, "ddp.next_epoch(loader)", id="a script with other loaders"),
    ],
)
def test_a_shared_loop_over_epochs_takes_any_loader(others: dict[str, str], told: str) -> None:
    calls = TRAIN.replace("    for epoch in range(5):\n        engine.train_epoch", "    if True:\n        engine.fit")
    put({"train.py": calls, "engine.py": ENGINE + _FIT, "data.py": "train_set = test_set = list(range(64))\n", **others})
    assert applied("train.py")["train.py"].status is Status.CHANGED
    lines = [line.strip() for line in Path("engine.py").read_text().splitlines()]
    assert told in lines


@pytest.mark.parametrize("given", [("train.py",), ("train.py", "test.py")], ids=["alone", "at once"])
def test_who_imports_it_and_stays_is_named(given: tuple[str, ...]) -> None:
    put({"train.py": TRAIN, "engine.py": ENGINE, "test.py": TEST})
    [note] = noted(applied(*given)["train.py"])
    assert note.startswith("engine.py is also imported by test.py, not rewritten here")


@pytest.mark.parametrize("given", [("train.py",), ("train.py", "test.py")], ids=["alone", "at once"])
def test_what_a_script_that_stays_imports_is_right_for_both(given: tuple[str, ...]) -> None:
    """It calls the function with a model that nothing has wrapped."""
    put({"train.py": TRAIN, "engine.py": ENGINE, "test.py": TEST})
    applied(*given)
    assert "ddp.unwrap(model)(" in Path("engine.py").read_text()


def test_who_imports_it_from_another_folder_of_the_project_is_named() -> None:
    """The script is a module of a package, whose root other scripts start from as well."""
    inside = {f"proj/{name}": text.replace("import engine", "from proj import engine") for name, text in (("train.py", TRAIN), ("engine.py", ENGINE))}
    inside["proj/engine.py"] = ENGINE
    put({"proj/__init__.py": "", "tests/check.py": "from proj.engine import evaluate\n", **inside})
    put({"data.py": "train_set = test_set = list(range(64))\n"})
    [note] = noted(applied("proj/train.py")["proj/train.py"])
    assert note.startswith("proj/engine.py is also imported by tests/check.py, not rewritten here")
    assert "ddp.unwrap(model)(" in Path("proj/engine.py").read_text()


@pytest.mark.parametrize("sign", ["pyproject.toml", ".git/HEAD", ""], ids=["project", "git", "working directory"])
@pytest.mark.parametrize(
    ("user", "text"),
    [
        pytest.param("tests/test_x.py", "from pkg.engine import evaluate\n", id="a test"),
        pytest.param("tests/unit/test_x.py", "from src.pkg.engine import evaluate\n", id="by the name of src"),
        pytest.param("scripts/infer.py", "import sys\nsys.path.insert(0, 'src')\nimport pkg.engine as engine\n", id="a script"),
    ],
)
@pytest.mark.parametrize("module", [True, False], ids=["as a module", "as a script"])
def test_who_imports_it_from_beside_src_is_named(sign: str, user: str, text: str, module: bool) -> None:
    train = TRAIN.replace("import engine", "from pkg import engine") if module else TRAIN
    put({"src/pkg/train.py": train, "src/pkg/engine.py": ENGINE, "src/pkg/__init__.py": "", user: text})
    put({"src/pkg/data.py" if not module else "src/data.py": "train_set = test_set = list(range(64))\n", **({sign: ""} if sign else {})})
    [note] = noted(applied("src/pkg/train.py")["src/pkg/train.py"])
    assert note.startswith(f"src/pkg/engine.py is also imported by {user}, not rewritten here")
    assert "ddp.unwrap(model)(" in Path("src/pkg/engine.py").read_text()


def test_who_imports_another_file_from_beside_src_is_not_named() -> None:
    put({"src/pkg/train.py": TRAIN, "src/pkg/engine.py": ENGINE, "src/pkg/data.py": "train_set = test_set = list(range(64))\n"})
    put({"setup.py": "", "tests/test_x.py": "from pkg.data import train_set\n", "tests/test_y.py": "from engine import Turbine\n", "tests/engine.py": ""})
    assert noted(applied("src/pkg/train.py")["src/pkg/train.py"]) == []


def test_what_nobody_else_imports_has_the_plain_spelling() -> None:
    put({"train.py": TRAIN, "train2.py": TRAIN, "engine.py": ENGINE})
    applied("train.py", "train2.py")
    assert "model.module(" in Path("engine.py").read_text()


def test_several_files_of_one_script_are_named_at_once() -> None:
    both = TRAIN.replace("import engine", "import engine\nimport loops")
    both = both.replace(
        "        engine.evaluate(model, test_loader)", "        engine.evaluate(model, test_loader)\n        loops.evaluate(model, test_loader)"
    )
    put(
        {
            "train.py": both,
            "engine.py": ENGINE,
            "loops.py": ENGINE.partition("def train_epoch")[0],
            "test.py": TEST.replace("import engine", "import engine, loops"),
        }
    )
    [note] = noted(applied("train.py")["train.py"])
    assert note in [
        f"{one} and {other} are also imported by test.py, not rewritten here: see that the new files are right there too."
        for one, other in (("engine.py", "loops.py"), ("loops.py", "engine.py"))
    ]


def test_a_refused_script_that_imports_it_is_named() -> None:
    put({"train.py": TRAIN, "engine.py": ENGINE, "other.py": REFUSED})
    outcomes = applied("train.py", "other.py")
    assert statuses(outcomes) == {"train.py": Status.CHANGED, "other.py": Status.REFUSED}
    assert [n.partition(",")[0] for n in noted(outcomes["train.py"])] == ["engine.py is also imported by other.py"]


def test_through_another_module_the_script_is_named(tmp_path: Path) -> None:
    put(
        {
            "train.py": TRAIN,
            "engine.py": ENGINE,
            "helpers.py": "from engine import evaluate\n",
            "a/run.py": "import sys\nsys.path.append('..')\nimport helpers\n",
        }
    )
    put({"broken.py": "import engine\nprint 1\n"})
    [note] = noted(applied("train.py")["train.py"])
    assert note.startswith("engine.py is also imported by helpers.py, not") or note.startswith("engine.py is also imported by a/run.py, not")


# ------------------------------------------------------------------ comments
def test_comments_of_a_refused_program_are_no_wish() -> None:
    put({"train.py": TRAIN, "engine.py": ENGINE, "other.py": REFUSED, "third.py": REFUSED})
    outcomes = applied("train.py", "other.py", "third.py", how=engine.Writing(annotate=True))
    assert statuses(outcomes) == {"train.py": Status.CHANGED, "other.py": Status.REFUSED, "third.py": Status.REFUSED}
    assert "TODO(" not in Path("engine.py").read_text()


def test_two_refused_programs_comment_a_file_once() -> None:
    put({"other.py": REFUSED, "third.py": REFUSED, "engine.py": ENGINE})
    outcomes = applied("other.py", "third.py", how=engine.Writing(annotate=True))
    assert statuses(outcomes) == {"other.py": Status.REFUSED, "third.py": Status.REFUSED}
    assert Path("engine.py").read_text().count("TODO(") == 1
    assert [f.after is not None for o in outcomes.values() for f in o.files if f.path == "engine.py"] == [True, False]


# ------------------------------------------------------------------ undo
def two() -> dict[str, bytes]:
    put({"train.py": TRAIN, "train2.py": TRAIN, "engine.py": ENGINE})
    before = {name: Path(name).read_bytes() for name in ("train.py", "train2.py", "engine.py")}
    assert set(statuses(applied("train.py", "train2.py")).values()) == {Status.CHANGED}
    return before


def test_what_another_script_needs_is_not_undone() -> None:
    before = two()
    problem = transaction.undo(Path("train.py"))
    assert isinstance(problem, Problem)
    assert problem.message == "train2.py was migrated with it and needs engine.py as it is: first 'dpmigrate undo train2.py'"
    assert transaction.undo(Path("train2.py")) == [Path("train2.py")]
    assert b"ddp" in Path("engine.py").read_bytes()
    assert isinstance(transaction.undo(Path("train.py")), list)
    assert {name: Path(name).read_bytes() for name in before} == before


def test_a_script_that_was_brought_back_in_another_way_needs_nothing() -> None:
    before = two()
    Path("train2.py").write_bytes(before["train2.py"])
    assert isinstance(transaction.undo(Path("train.py")), list)
    assert {name: Path(name).read_bytes() for name in before} == before


def test_scripts_of_other_folders_are_asked_too(monkeypatch: pytest.MonkeyPatch) -> None:
    scripts = ("tools/train.py", "more/jobs/train2.py")
    put({".git/HEAD": "", "engine.py": ENGINE, **dict.fromkeys(scripts, TRAIN)})
    before = {name: Path(name).read_bytes() for name in ("engine.py", *scripts)}
    assert set(statuses(applied(*scripts)).values()) == {Status.CHANGED}
    problem = transaction.undo(Path("tools/train.py"))
    assert isinstance(problem, Problem)
    assert problem.message == "more/jobs/train2.py was migrated with it and needs engine.py as it is: first 'dpmigrate undo more/jobs/train2.py'"
    monkeypatch.chdir("tools")
    problem = transaction.undo(Path("train.py"))
    assert isinstance(problem, Problem)
    assert "first 'dpmigrate undo ../more/jobs/train2.py'" in problem.message
    assert isinstance(transaction.undo(Path("../more/jobs/train2.py")), list)
    assert isinstance(transaction.undo(Path("train.py")), list)
    monkeypatch.chdir("..")
    assert {name: Path(name).read_bytes() for name in before} == before


# ------------------------------------------------------------------ together or not at all
@pytest.mark.parametrize(
    ("mine", "theirs", "lines"),
    [
        pytest.param("import a\nx = 1\nz = 3\n", "import b\nx = 1\n    z = 4\n", ": 'z = 3' here, 'z = 4' there", id="in another form"),
        pytest.param("x = 1\ny = 2\nz = 3\n", "x = 1\nz = 3\n", ": 'y = 2' here, nothing there", id="in one alone"),
        pytest.param("import a\nx = 1\n", "import b\nx = 1\n", "", id="imports alone"),
        pytest.param("x = 1\n\n", "x = 1\n", "", id="empty lines"),
    ],
)
def test_two_wishes_for_one_file(mine: str, theirs: str, lines: str) -> None:
    def wants(script: str, text: str) -> plans.Planned:
        change = Change(Path("engine.py"), b"x = 0\n", text.encode())
        return plans.Planned(Outcome(script, Status.CHANGED), {Path(script): b"", Path("engine.py"): b"x = 0\n"}, (change,))

    one, other = plans.agreed([wants("one.py", mine), wants("other.py", theirs)])
    assert one.outcome.status is Status.REFUSED
    assert one.outcome.reason.endswith(f"also belongs to other.py, which needs it in another way{lines}; give each script a module of its own")
    assert other.outcome.status is Status.CHANGED or other.outcome.reason


def test_a_failed_proof_stops_those_that_share_a_file() -> None:
    put({"train.py": TRAIN, "train2.py": TRAIN, "engine.py": ENGINE, "alone.py": TRAIN.replace("engine", "own"), "own.py": ENGINE})
    seen: dict[str, set[str]] = {}

    def gate(path: Path, after: Mapping[Path, bytes]) -> str | None:
        seen[str(path)] = {str(p) for p in after}
        return "it differs" if path.name == "train2.py" else None

    outcomes = applied("train.py", "train2.py", "alone.py", how=engine.Writing(gate=gate))
    assert statuses(outcomes) == {"train.py": Status.REFUSED, "train2.py": Status.REFUSED, "alone.py": Status.CHANGED}
    assert outcomes["train2.py"].reason == "it differs"
    assert outcomes["train.py"].reason == "it shares files with train2.py, which is not written: it differs"
    assert Path("engine.py").read_text() == ENGINE and Path("train.py").read_text() == TRAIN
    assert seen["train.py"] == {"train.py", "engine.py"}


def test_one_that_cannot_be_written_stops_those_that_share_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    put({"train.py": TRAIN, "train2.py": TRAIN, "engine.py": ENGINE})
    real = writing.obstacle
    monkeypatch.setattr(writing, "obstacle", lambda path, before: Problem("is read-only") if path.name == "train2.py" else real(path, before))
    outcomes = applied("train.py", "train2.py")
    assert statuses(outcomes) == {"train.py": Status.REFUSED, "train2.py": Status.FAILED}
    assert Path("engine.py").read_text() == ENGINE


# ------------------------------------------------------------------ what a project ignores in a file
@pytest.mark.parametrize(
    ("pattern", "code", "left_out"),
    [
        pytest.param("train.py", "DPM5", False, id="the script's pattern"),
        pytest.param("engine.py", "DPM4", False, id="another code"),
        pytest.param("engine.py", "DPM", True, id="all codes"),
        pytest.param("engine.py", "DPM5", True, id="its group"),
    ],
)
def test_files_of_a_program_have_their_own_ignores(pattern: str, code: str, left_out: bool) -> None:
    put({"train.py": TRAIN, "engine.py": ENGINE.replace("    correct = 0\n", "    import os\n    os.makedirs('out')\n    correct = 0\n")})
    put({"pyproject.toml": f"[tool.dpmigrate]\nper-file-ignores = {{ '{pattern}' = ['{code}'] }}\n"})
    said = json.loads(run("check", "train.py", "--output-format", "json", cwd=Path.cwd()).stdout)["files"][0]["findings"]
    codes = {f["code"] for f in said if f["path"] == "engine.py"}
    assert ("DPM505" in codes) is not left_out
    assert "DPM201" in {f["code"] for f in said} and "ddp.shard" in run("apply", "--diff", "train.py", cwd=Path.cwd()).stdout.decode()
    text = run("check", "train.py", cwd=Path.cwd()).stdout.decode()
    assert ("DPM505" in text) is not left_out
    assert ("exist_ok=" in run("apply", "--diff", "train.py", cwd=Path.cwd()).stdout.decode()) is not left_out


# ------------------------------------------------------------------ places in messages
@pytest.mark.parametrize(
    ("module", "use", "said"),
    [
        pytest.param(
            "import torch.distributed as dist\ndef init():\n    dist.init_process_group('nccl')\n",
            "engine.init()\n    model = nn.Linear(10, 2)",
            "(engine.py, line 17)",
            id="its own mode",
        ),
        pytest.param(
            "import torch.multiprocessing as mp, torch.distributed as dist\ndef init():\n    dist.init_process_group('nccl')\n    mp.spawn(init)\n",
            "engine.init()\n    model = nn.Linear(10, 2)",
            "starts its processes itself (engine.py, line 18)",
            id="its own start",
        ),
    ],
)
def test_words_name_the_file_of_a_line(module: str, use: str, said: str) -> None:
    put({"train.py": TRAIN.replace("    model = nn.Linear(10, 2)", f"    {use}"), "engine.py": ENGINE + "\n" + module})
    assert said in checked("train.py")["train.py"].reason


def test_words_name_the_loop_of_another_file() -> None:
    own = """def batches(data):
    for i in range(8):
        yield data[i]
def go(model, data, optimizer):
    for x in batches(data):
        model(x).sum().backward()
        optimizer.step()
"""
    fed = TRAIN.replace("engine.train_epoch(model, loader, nn.CrossEntropyLoss(), optimizer)", "feed.go(model, train_set, optimizer)")
    put({"train.py": "import feed\n" + fed, "engine.py": "def evaluate(model, loader): ...\n", "feed.py": own})
    [message] = [f.message for f in checked("train.py")["train.py"].findings if f.code == "DPM901"]
    assert message.endswith("(feed.py, line 5)")
