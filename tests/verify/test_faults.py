"""Every deliberate fault of a migration is caught by the line that is meant for it; right migrations pass."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from dpmigrate.verify import show
from dpmigrate.verify.judge import Verdict
from dpmigrate.verify.proof import Wish, prove
from tests.pipeline import FIXTURES, cases, migrate
from tests.verify.pair import MIGRATED, ORIGINAL, WISH, changed, differing, proved

pytestmark = pytest.mark.usefixtures("forked_python")

_SAVE = 'torch.save({"backbone": backbone.module.state_dict(), "head": head.module.state_dict()}, "best.pt")'


def test_a_right_migration_by_hand(tmp_path: Path) -> None:
    found = proved(tmp_path, ORIGINAL, MIGRATED)
    assert differing(found) == [] and found.holds
    compared = {line.name: line.verdict for line in found.lines}
    assert [name for name, verdict in compared.items() if verdict is Verdict.NONE] == ["text files"]


@pytest.mark.parametrize("name", [p.name for p in sorted((FIXTURES / "pairs").iterdir())])
def test_right_migrations_by_other_hands(name: str, tmp_path: Path) -> None:
    """In other styles than the tool's: one rank evaluates, predictions are gathered, a sum loss is scaled, several files."""
    folder = tmp_path / name  # outside of this repository, which would be copied as a whole
    shutil.copytree(FIXTURES / "pairs" / name, folder)
    files = ("original/train.py", "migrated/train.py") if (folder / "original").is_dir() else ("original.py", "migrated.py")
    before, after = (folder / f for f in files)
    found = prove(before, after, WISH)
    assert differing(found) == [] and found.holds


@pytest.mark.parametrize("name", ["folds_of_cross_validation", "loader_weighted_sampler", "trainer_base_class", "sum_loss", "eval_best_and_early_stop"])
def test_migrations_of_the_tool(name: str, tmp_path: Path) -> None:
    (case,) = [c for c in cases() if c.name == name]
    after = migrate(case.before, case.settings)
    assert after is not None
    found = proved(tmp_path, case.before, after, Wish(steps=12, timeout=90))
    assert differing(found) == [] and found.holds


@pytest.mark.parametrize(
    ("pairs", "line"),
    [
        pytest.param([("    train_loader.sampler.set_epoch(epoch)\n", "")], "order from epoch to epoch", id="no set_epoch"),
        pytest.param([("sampler=DistributedSampler(train_set))", "shuffle=True)"), ("    train_loader.sampler.set_epoch(epoch)\n", "")], "shards of an epoch", id="no sampler"),
        pytest.param([("Subset(val_set, range(rank, len(val_set), world)), batch_size=8", "val_set, batch_size=8, sampler=DistributedSampler(val_set)")], "samples of an evaluation", id="padded evaluation"),
        pytest.param([("    dist.all_reduce(correct)\n", "")], "numbers printed", id="unreduced metric"),
        pytest.param([("batch_size=8 // world", "batch_size=8")], "samples per step", id="batch not divided"),
        pytest.param([("y) / 2", "y) / 2 / world")], "gradient norm", id="loss divided by the ranks"),
        pytest.param([("y) / 2", "y) / 2 * world")], "gradient norm", id="loss times the ranks"),
        pytest.param([("criterion(head(backbone(x)), y)", "criterion(head.module(backbone.module(x)), y)")], "ranks alike", id="module in training"),
        pytest.param([(f"        if rank == 0:\n            {_SAVE}", f"        {_SAVE}")], "files written", id="save on all ranks"),
        pytest.param([("backbone.module.state_dict()", "backbone.state_dict()")], "checkpoints", id="module. keys"),
        pytest.param([("    if rank == 0:\n        print(", "    if True:\n        print(")], "lines printed once", id="print on all ranks"),
        pytest.param([("torch.manual_seed(0)", "torch.manual_seed(rank)")], "samples of an evaluation", id="a seed per rank before the split"),
        pytest.param([("SGD([*backbone.parameters()", "SGD([*__import__('copy').deepcopy(backbone.module).parameters()")], "parameters after step 12", id="optimizer of a copy"),
        pytest.param([("DistributedDataParallel(nn.Linear(16, 2))", "nn.Linear(16, 2)"), ("                stack.enter_context(head.no_sync())\n", ""), ("head.module", "head"), ("in (backbone, head):", "in (backbone,):")], "ranks alike", id="second model not wrapped"),
        pytest.param([("if not step % 2:", "if True:")], "ranks alike", id="last window of accumulation not synchronised"),
        pytest.param([("            nn.utils.clip_grad_norm_(backbone.parameters(), 0.05)\n", "")], "gradient norm", id="no clipping"),
        pytest.param([("    scheduler.step()\n", "    scheduler.step()\n    scheduler.step()\n")], "learning rate", id="scheduler steps once for each rank"),
        pytest.param([("lr=0.1", "lr=0.1 * world")], "learning rate", id="learning rate times the ranks"),
        pytest.param([("dist.destroy_process_group()\n", "")], "process group", id="process group left"),
        pytest.param([("if step % 2:\n", "if step % 4 == 3:\n")], "optimizer steps", id="fewer steps"),
        pytest.param([(f"        if rank == 0:\n            {_SAVE}", "        pass")], "files written", id="nothing is saved"),
    ],
)  # fmt: skip
def test_caught(pairs: list[tuple[str, str]], line: str, tmp_path: Path) -> None:
    found = proved(tmp_path, ORIGINAL, changed(MIGRATED, *pairs))
    assert line in differing(found) and not found.holds


_TRAINED = "backbone.module.state_dict()"


@pytest.mark.parametrize(
    ("wish", "pairs", "line"),
    [
        pytest.param(Wish(steps=4), [("    dist.all_reduce(correct)\n", "")], "numbers printed", id="unreduced metric"),
        pytest.param(Wish(steps=4), [(_TRAINED, "backbone.state_dict()")], "checkpoints", id="module. keys"),
        pytest.param(Wish(steps=None, epochs=1), [(_TRAINED, "backbone.state_dict()")], "checkpoints", id="module. keys, one epoch"),
        pytest.param(Wish(steps=4), [("    train_loader.sampler.set_epoch(epoch)\n", "")], "order from epoch to epoch", id="no set_epoch"),
        pytest.param(Wish(steps=2), [("DistributedSampler(train_set)", "DistributedSampler(train_set, shuffle=False)")], "order from epoch to epoch", id="no shuffle"),
        pytest.param(Wish(steps=None), [("for epoch in", "first = __import__('copy').deepcopy(backbone.module).state_dict()\nfor epoch in"), (_TRAINED, "first")], "checkpoints", id="an untrained model is saved"),
    ],
)  # fmt: skip
def test_caught_before_the_cut(wish: Wish, pairs: list[tuple[str, str]], line: str, tmp_path: Path) -> None:
    """Twenty steps are what users run: the epoch of the cut is evaluated and saved, and the next one's order is looked at."""
    found = proved(tmp_path, ORIGINAL, changed(MIGRATED, *pairs), wish)
    assert line in differing(found) and not found.holds


@pytest.mark.parametrize("wish", [Wish(steps=4), Wish(steps=3), Wish(steps=None, epochs=1)])
def test_a_right_migration_that_is_cut(wish: Wish, tmp_path: Path) -> None:
    found = proved(tmp_path, ORIGINAL, MIGRATED, wish)
    assert differing(found) == [] and found.holds and found.cut
    verdicts = {line.name: line.verdict for line in found.lines}
    assert [name for name, v in verdicts.items() if v is Verdict.NONE] == ["text files", "process group"]


_TABLE = '    print(f"epoch {epoch} accuracy {accuracy:.4f}")\n'
_ROW = "open('log.csv', 'a').write(f'{epoch},{accuracy:.4f}\\n')\n"


@pytest.mark.parametrize("right", [True, False])
def test_numbers_in_files(right: bool, tmp_path: Path) -> None:
    pairs = [(f"    {_TABLE}", f"    {_TABLE}        {_ROW}"), *([] if right else [("    dist.all_reduce(correct)\n", "")])]
    found = proved(tmp_path, changed(ORIGINAL, (_TABLE, f"{_TABLE}    {_ROW}")), changed(MIGRATED, *pairs))
    assert ("text files" in differing(found)) is not right


def test_one_rank_evaluates_a_part_of_the_same_data(tmp_path: Path) -> None:
    """The passes of the ranks are then not the same in number."""
    sharded = "DataLoader(Subset(val_set, range(rank, len(val_set), world)), batch_size=8)"
    _, _, rest = MIGRATED.partition("    with torch.no_grad():\n")
    loop = "    with torch.no_grad():\n" + rest.partition("    dist.all_reduce(correct)\n")[0]
    assert "correct" in loop
    alone = "    if rank == 0:\n" + "".join(f"    {line}\n" for line in loop.splitlines())
    found = proved(tmp_path, ORIGINAL, changed(MIGRATED, (sharded, "DataLoader(val_set, batch_size=8)"), (loop, alone)))
    assert differing(found) == [] and found.holds


_STREAM = (
    ("import torch\n", "import torch\nfrom torch.utils.data import IterableDataset\n"),
    ("train_loader = ", "class Stream(IterableDataset):\n    def __iter__(self):\n        yield from list(train_set)[part]\n\n\ntrain_loader = "),
)


def test_streams(tmp_path: Path) -> None:
    original = changed(ORIGINAL, *_STREAM, ("(train_set, batch_size=8, shuffle=True)", "(Stream(), batch_size=8)"), ("[part]", "[:]"))
    parts = ("(train_set, batch_size=8 // world, sampler=DistributedSampler(train_set))", "(Stream(), batch_size=8 // world)")
    right = changed(MIGRATED, *_STREAM, parts, ("[part]", "[rank::world]"), ("    train_loader.sampler.set_epoch(epoch)\n", ""))
    found = proved(tmp_path, original, right)
    assert differing(found) == [] and found.holds
    wrong = changed(right, ("[rank::world]", "[:]"), ("batch_size=8 // world", "batch_size=8"))
    folder = tmp_path / "wrong"
    folder.mkdir()
    assert "samples per step" in differing(proved(folder, original, wrong))


def test_lines_printed_between_backwards(tmp_path: Path) -> None:
    """With accumulation a pass trains before its first optimizer step: what is printed there is of one rank's batch."""
    line = ("        loss.backward()\n", "        loss.backward()\n        print(f'step {step} loss {loss.item():.6f}')\n")
    theirs = MIGRATED.partition("loss.backward()")[0].rpartition("\n")[2]
    mine = (f"{theirs}loss.backward()\n", f"{theirs}loss.backward()\n{' ' * 8}print(f'step {{step}} loss {{loss.item():.6f}}') if rank == 0 else None\n")
    found = proved(tmp_path, changed(ORIGINAL, line), changed(MIGRATED, mine))
    assert differing(found) == [] and found.holds


_SCALED = (
    ("criterion = nn", "scaler = torch.amp.GradScaler('cpu')\ncriterion = nn"),
    ("loss.backward()", "scaler.scale(loss).backward()"),
    ("            optimizer.step()\n", "            scaler.step(optimizer)\n            scaler.update()\n"),
)
_CLIP = "            nn.utils.clip_grad_norm_(backbone.parameters(), 0.05)\n"


@pytest.mark.parametrize(("before", "right"), [pytest.param(_CLIP, False, id="clipped before"), pytest.param("", True, id="clipped after")])
def test_the_scale_is_taken_out_before_gradients_are_clipped(before: str, right: bool, tmp_path: Path) -> None:
    after = "" if before else _CLIP
    migrated = changed(MIGRATED, (_CLIP, f"{before}            scaler.unscale_(optimizer)\n{after}"), *_SCALED)
    found = proved(tmp_path, ORIGINAL, migrated, Wish(steps=None, float64=False, timeout=90))
    assert ("gradient norm" in differing(found)) is not right


def test_parameters_have_names_where_the_model_is_gone_at_the_end(tmp_path: Path) -> None:
    def inside(text: str) -> str:
        head, _, rest = text.partition("torch.manual_seed(0)\n")
        body = "".join(f"    {line}\n" if line else "\n" for line in f"torch.manual_seed(0)\n{rest}".splitlines())
        return f"{head}\ndef main():\n{body}\n\nmain()\n"

    found = proved(tmp_path, inside(ORIGINAL), changed(inside(MIGRATED), ("y) / 2", "y) / 2 / world")))
    assert any("they part at step 1, weight first" in line.text for line in found.lines)


def test_epochs_cut_the_runs(tmp_path: Path) -> None:
    found = proved(tmp_path, ORIGINAL, MIGRATED, Wish(steps=None, epochs=2, timeout=90))
    assert found.holds and [d.step for d in found.distances] == list(range(1, 9)) and found.cut == "2 epochs"


def test_a_sum_loss_that_is_averaged(tmp_path: Path) -> None:
    pairs = (
        ("nn.CrossEntropyLoss()", 'nn.CrossEntropyLoss(reduction="sum")'),
        ("lr=0.1", "lr=0.01"),
        ("backbone.parameters(), 0.05", "backbone.parameters(), 99"),
    )
    found = proved(tmp_path, changed(ORIGINAL, *pairs), changed(MIGRATED, *pairs))
    assert {"parameters after step 1", "gradient norm"} <= set(differing(found))
    assert any("a ratio of 0.5" in line.text for line in found.lines)


@pytest.mark.parametrize(
    ("pairs", "words"),
    [
        pytest.param([("    scheduler.step()\n", "    if rank:\n        raise ValueError('no more')\n")], "ValueError: no more", id="crash of one rank"),
        pytest.param(
            # without the last barrier, in which the two would wait for each other until the timeout
            [("    scheduler.step()\n", "    if rank and epoch == 1:\n        break\n"), ("dist.barrier()\n", "")], "the migrated program fails", id="early stop on a local value"
        ),
    ],
)
def test_runs_that_fail(pairs: list[tuple[str, str]], words: str, tmp_path: Path) -> None:
    found = proved(tmp_path, ORIGINAL, changed(MIGRATED, *pairs))
    assert words in found.failure and not found.holds
    assert found.fails and show.exit_code(found) == 1 and show.verdict(found) == "NOT proved: the migrated program fails where the original runs."


def test_a_program_that_fails_by_itself_is_not_judged(tmp_path: Path) -> None:
    pair = ("    scheduler.step()\n", "    raise ValueError('no more')\n")
    found = proved(tmp_path, changed(ORIGINAL, pair), changed(MIGRATED, pair))
    assert found.failure.startswith("the original does not run here") and not found.fails and show.exit_code(found) == 2


def test_a_migrated_program_that_leaves_no_record_is_not_judged(tmp_path: Path) -> None:
    found = proved(tmp_path, ORIGINAL, MIGRATED + "import os\nos._exit(0)\n")
    assert "processes left a record" in found.failure and not found.fails and show.exit_code(found) == 2


def test_a_hang_shows_where_each_rank_stands(tmp_path: Path) -> None:
    hanging = changed(MIGRATED, ("    scheduler.step()\n", "    if rank == 0:\n        dist.barrier()\n    else:\n        __import__('time').sleep(900)\n"))
    for limit in (10, 40, 160):  # a busy machine may need longer until both ranks are there
        (tmp_path / f"{limit}").mkdir()
        found = proved(tmp_path / f"{limit}", ORIGINAL, hanging, Wish(steps=None, timeout=limit))
        assert f"it was not done after {limit} s" in found.failure
        if found.failure.count("train.py") >= 2:
            break
    assert "rank 0:" in found.failure and "rank 1:" in found.failure and "train.py" in found.failure
