"""Every deliberate fault of a migration is caught by the line that is meant for it; right migrations pass."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpmigrate.verify import show
from dpmigrate.verify.judge import Verdict
from dpmigrate.verify.proof import Proof, Wish, prove
from tests.pipeline import FIXTURES, cases, migrate
from tests.verify.pair import MIGRATED, ORIGINAL, changed

RUNTIME = Path(__file__).resolve().parents[2] / "runtime"
WISH = Wish(steps=None, timeout=90)
_SAVE = 'torch.save({"backbone": backbone.module.state_dict(), "head": head.module.state_dict()}, "best.pt")'


def _proof(tmp_path: Path, original: str, migrated: str, wish: Wish = WISH) -> Proof:
    script = tmp_path / "program" / "train.py"
    script.parent.mkdir()
    script.write_text(original)
    found = prove(script, {script: migrated.encode()}, wish, paths=[RUNTIME])
    assert [p.name for p in script.parent.iterdir()] == ["train.py"]  # nothing is written beside the user's script
    return found


def _differing(found: Proof) -> list[str]:
    assert not found.failure, found.failure
    return [line.name for line in found.lines if line.verdict is Verdict.DIFFERS]


def test_a_right_migration_by_hand(tmp_path: Path) -> None:
    found = _proof(tmp_path, ORIGINAL, MIGRATED)
    assert _differing(found) == [] and found.holds
    compared = {line.name: line.verdict for line in found.lines}
    assert [name for name, verdict in compared.items() if verdict is Verdict.NONE] == ["text files"]


@pytest.mark.parametrize("name", [p.name for p in sorted((FIXTURES / "pairs").iterdir())])
def test_right_migrations_by_other_hands(name: str) -> None:
    """In other styles than the tool's: one rank evaluates, predictions are gathered, a sum loss is scaled, several files."""
    folder = FIXTURES / "pairs" / name
    files = ("original/train.py", "migrated/train.py") if (folder / "original").is_dir() else ("original.py", "migrated.py")
    before, after = (folder / f for f in files)
    found = prove(before, after, WISH)
    assert _differing(found) == [] and found.holds


@pytest.mark.parametrize("workers", ["num_workers=2", "num_workers=1, persistent_workers=True"])
@pytest.mark.parametrize("steps", [None, 6])
def test_batches_that_workers_fetch_ahead(workers: str, steps: int | None, tmp_path: Path) -> None:
    """The original is given the ranks' order here too, and augmentation is the sample's own in every process."""
    drawn = (
        "class Jitter(TensorDataset):\n    def __getitem__(self, i):\n        x, y = super().__getitem__(i)\n"
        "        return x + 0.1 * torch.randn(6), y\n\n\ntorch.manual_seed(0)\n"
    )
    pairs = (
        ("torch.manual_seed(0)\n", drawn),
        ("random_split(TensorDataset(", "random_split(Jitter("),
        ("DataLoader(train_set, ", f"DataLoader(train_set, {workers}, "),
    )
    found = _proof(tmp_path, changed(ORIGINAL, *pairs), changed(MIGRATED, *pairs), Wish(steps=steps, timeout=90))
    assert _differing(found) == [] and found.holds
    assert len(found.distances) == (steps or 12)


_NOISE = (
    "torch.randn(len(x), 6)",
    "torch.randn((len(x), 6), dtype=x.dtype)",
    "torch.rand(size=(len(x), 1))",
    "torch.randint(5, (len(x), 6))",
    "torch.randint(0, 5, size=(len(x), 6))",
    "torch.randn_like(x)",
    "torch.normal(x, 1.0)",
    "torch.normal(0.0, 1.0, (len(x), 6))",
    "torch.bernoulli(torch.full_like(x, 0.5))",
    "torch.empty(len(x), 6).normal_(0, 2)",
    "torch.empty_like(x).uniform_()",
    "torch.distributions.Normal(x, torch.ones_like(x)).rsample()",
    "torch.Tensor(np.random.normal(0, 1, (len(x), 6)))",
    "torch.Tensor(np.random.randn(len(x), 6))",
    "torch.Tensor(np.random.uniform(size=(len(x), 6)))",
    "torch.as_tensor(np.random.randint(0, 3, len(x)))[:, None]",
)


def _noisy(text: str, noise: str) -> str:
    return changed(text, ("import torch\n", "import numpy as np\nimport torch\n"), ("backbone(x)), y)", f"backbone(x + 0.1 * ({noise}))), y)"))


def test_noise_of_the_samples_is_the_samples_own(tmp_path: Path) -> None:
    """A seed for each rank is right, and is not what differs."""
    noise = " + ".join(_NOISE)
    found = _proof(tmp_path, _noisy(ORIGINAL, noise), changed(_noisy(MIGRATED, noise), ("for epoch in", "torch.manual_seed(rank)\nfor epoch in")))
    assert _differing(found) == [] and found.holds and any("drawn by the sample" in note for note in found.notes)


def test_noise_of_another_shape_is_not_compared(tmp_path: Path) -> None:
    noise = "torch.randn(6)"
    found = _proof(tmp_path, _noisy(ORIGINAL, noise), changed(_noisy(MIGRATED, noise), ("for epoch in", "torch.manual_seed(rank)\nfor epoch in")))
    verdicts = {line.name: line.verdict for line in found.lines}
    assert verdicts["parameters after step 12"] is Verdict.NONE and not found.holds


@pytest.mark.parametrize("name", ["folds_of_cross_validation", "loader_weighted_sampler", "trainer_base_class", "sum_loss", "eval_best_and_early_stop"])
def test_migrations_of_the_tool(name: str, tmp_path: Path) -> None:
    (case,) = [c for c in cases() if c.name == name]
    after = migrate(case.before, case.settings)
    assert after is not None
    found = _proof(tmp_path, case.before, after, Wish(steps=12, timeout=90))
    assert _differing(found) == [] and found.holds


_MEAN = (
    ("val_loader = DataLoader(val_set, batch_size=8)", "val_loader = DataLoader(val_set, batch_size=8, shuffle=True)"),
    ("correct += (head(backbone(x)).argmax(1) == y).sum().item()", "correct += criterion(head(backbone(x)), y).item()"),
    ("correct / len(val_set)", "correct / len(val_loader)"),
)


def test_an_evaluation_that_shuffles(tmp_path: Path) -> None:
    """A mean over batches, of which the last is smaller, depends on which samples stand together: that is nobody's fault."""
    original = changed(ORIGINAL, *_MEAN)
    migrated = migrate(original)
    assert migrated is not None
    found = _proof(tmp_path, original, migrated)
    assert _differing(found) == [] and found.holds


def test_an_evaluation_that_shuffles_and_is_wrong(tmp_path: Path) -> None:
    migrated = migrate(changed(ORIGINAL, *_MEAN))
    assert migrated is not None
    found = _proof(tmp_path, changed(ORIGINAL, *_MEAN), changed(migrated, ("correct = ddp.sum_all(correct)", "pass")))
    assert _differing(found) == ["numbers printed"]


_RETYPED = (
    ("optimizer = torch.optim.SGD", "backbone.half(); head.half()\noptimizer = torch.optim.SGD"),
    ("head(backbone(x))", "head(backbone(x.half()))"),
)


def test_a_change_of_type(tmp_path: Path) -> None:
    """In float64 nothing would come of it, and the hooks of DDP would stay; here they are gone."""
    original = ORIGINAL.replace(_RETYPED[0][0], _RETYPED[0][1]).replace(*_RETYPED[1])
    migrated = migrate(original)
    assert migrated is not None
    found = _proof(tmp_path, original, migrated)
    assert found.holds and found.retyped and found.notes[0].startswith("float32") and "changes the type of its model" in found.notes[-1]


def test_a_change_of_type_after_the_wrap(tmp_path: Path) -> None:
    original = ORIGINAL.replace(_RETYPED[0][0], _RETYPED[0][1]).replace(*_RETYPED[1])
    migrated = MIGRATED.replace(_RETYPED[0][0], _RETYPED[0][1]).replace("backbone(x)", "backbone(x.half())").replace("module(x)", "module(x.half())")
    found = _proof(tmp_path, original, migrated)
    assert not found.holds and "ranks alike" in _differing(found)


def test_mixed_precision(tmp_path: Path) -> None:
    """The logic of scaling and clipping is compared; autocast is off and the report says so."""
    (case,) = [c for c in cases() if c.name == "amp_clip"]
    after = migrate(case.before, case.settings)
    assert after is not None and case.settings.amp
    found = _proof(tmp_path, case.before, after, Wish(steps=6, timeout=90))
    assert found.holds and any("autocast was switched off" in note for note in found.notes) and found.notes[0].startswith("float32")


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
        pytest.param([("DistributedDataParallel(nn.Linear(16, 2))", "nn.Linear(16, 2)"), ("                stack.enter_context(head.no_sync())\n", ""), ("head.module", "head")], "ranks alike", id="second model not wrapped"),
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
    found = _proof(tmp_path, ORIGINAL, changed(MIGRATED, *pairs))
    assert line in _differing(found) and not found.holds


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
    found = _proof(tmp_path, ORIGINAL, changed(MIGRATED, *pairs), wish)
    assert line in _differing(found) and not found.holds


@pytest.mark.parametrize("wish", [Wish(steps=4), Wish(steps=3), Wish(steps=None, epochs=1)])
def test_a_right_migration_that_is_cut(wish: Wish, tmp_path: Path) -> None:
    found = _proof(tmp_path, ORIGINAL, MIGRATED, wish)
    assert _differing(found) == [] and found.holds and found.cut
    verdicts = {line.name: line.verdict for line in found.lines}
    assert [name for name, v in verdicts.items() if v is Verdict.NONE] == ["text files", "process group"]


_TABLE = '    print(f"epoch {epoch} accuracy {accuracy:.4f}")\n'
_ROW = "open('log.csv', 'a').write(f'{epoch},{accuracy:.4f}\\n')\n"


@pytest.mark.parametrize("right", [True, False])
def test_numbers_in_files(right: bool, tmp_path: Path) -> None:
    pairs = [(f"    {_TABLE}", f"    {_TABLE}        {_ROW}"), *([] if right else [("    dist.all_reduce(correct)\n", "")])]
    found = _proof(tmp_path, changed(ORIGINAL, (_TABLE, f"{_TABLE}    {_ROW}")), changed(MIGRATED, *pairs))
    assert ("text files" in _differing(found)) is not right


def test_one_rank_evaluates_a_part_of_the_same_data(tmp_path: Path) -> None:
    """The passes of the ranks are then not the same in number."""
    sharded = "DataLoader(Subset(val_set, range(rank, len(val_set), world)), batch_size=8)"
    _, _, rest = MIGRATED.partition("    with torch.no_grad():\n")
    loop = "    with torch.no_grad():\n" + rest.partition("    dist.all_reduce(correct)\n")[0]
    assert "correct" in loop
    alone = "    if rank == 0:\n" + "".join(f"    {line}\n" for line in loop.splitlines())
    found = _proof(tmp_path, ORIGINAL, changed(MIGRATED, (sharded, "DataLoader(val_set, batch_size=8)"), (loop, alone)))
    assert _differing(found) == [] and found.holds


_STREAM = (
    ("import torch\n", "import torch\nfrom torch.utils.data import IterableDataset\n"),
    ("train_loader = ", "class Stream(IterableDataset):\n    def __iter__(self):\n        yield from list(train_set)[part]\n\n\ntrain_loader = "),
)


def test_streams(tmp_path: Path) -> None:
    original = changed(ORIGINAL, *_STREAM, ("(train_set, batch_size=8, shuffle=True)", "(Stream(), batch_size=8)"), ("[part]", "[:]"))
    parts = ("(train_set, batch_size=8 // world, sampler=DistributedSampler(train_set))", "(Stream(), batch_size=8 // world)")
    right = changed(MIGRATED, *_STREAM, parts, ("[part]", "[rank::world]"), ("    train_loader.sampler.set_epoch(epoch)\n", ""))
    found = _proof(tmp_path, original, right)
    assert _differing(found) == [] and found.holds
    wrong = changed(right, ("[rank::world]", "[:]"), ("batch_size=8 // world", "batch_size=8"))
    folder = tmp_path / "wrong"
    folder.mkdir()
    assert "samples per step" in _differing(_proof(folder, original, wrong))


def test_dropout_inside_attention(tmp_path: Path) -> None:
    layers = "nn.TransformerEncoderLayer(6, 2, 16, batch_first=True), nn.Flatten(), nn.Linear(6, 16)"
    pairs = (("nn.Sequential(nn.Linear(6, 16), nn.ReLU())", f"nn.Sequential(nn.Unflatten(1, (1, 6)), {layers})"),)
    found = _proof(tmp_path, changed(ORIGINAL, *pairs), changed(MIGRATED, *pairs))
    assert _differing(found) == [] and found.holds


def test_noise_that_begins_late_is_no_proof(tmp_path: Path) -> None:
    pairs = [("backbone(x)), y)", "backbone(x + (torch.randn(6) if epoch else 0))), y)")]
    clip = "            nn.utils.clip_grad_norm_(backbone.parameters(), 0.05)\n"
    found = _proof(tmp_path, changed(ORIGINAL, *pairs), changed(MIGRATED, *pairs, (clip, clip.replace("0.05", "0.05 if not epoch else 99"))))
    assert not found.holds
    early = _proof_again(tmp_path, changed(ORIGINAL, *pairs), changed(MIGRATED, *pairs, (clip, "")))
    assert "gradient norm" in _differing(early)  # before the noise


def _proof_again(tmp_path: Path, original: str, migrated: str) -> Proof:
    folder = tmp_path / "again"
    folder.mkdir()
    return _proof(folder, original, migrated)


_BY_SET = (
    "(points.sum(1) > 0).long()",
    "torch.tensor([NUMBERED.index('abcdefgh'[int(v)]) % 2 for v in (points[:, 0].abs() * 3).clamp(max=7)])",
)
_OWN = 'list(set("abcdefgh"))'


@pytest.mark.parametrize("right", [True, False])
def test_labels_numbered_by_a_set(right: bool, tmp_path: Path) -> None:
    """Ranks hash strings each in its own way, as they do without the proof."""
    shared = f"(box := [{_OWN}], dist.broadcast_object_list(box))[0][0]"
    original, migrated = (changed(text, _BY_SET, ("points = ", "NUMBERED = ORDER\npoints = ")) for text in (ORIGINAL, MIGRATED))
    found = _proof(tmp_path, changed(original, ("ORDER", _OWN)), changed(migrated, ("ORDER", shared if right else _OWN)))
    assert found.holds is right and (right or "parameters after step 1" in _differing(found))


def test_lines_printed_between_backwards(tmp_path: Path) -> None:
    """With accumulation a pass trains before its first optimizer step: what is printed there is of one rank's batch."""
    line = ("        loss.backward()\n", "        loss.backward()\n        print(f'step {step} loss {loss.item():.6f}')\n")
    theirs = MIGRATED.partition("loss.backward()")[0].rpartition("\n")[2]
    mine = (f"{theirs}loss.backward()\n", f"{theirs}loss.backward()\n{' ' * 8}print(f'step {{step}} loss {{loss.item():.6f}}') if rank == 0 else None\n")
    found = _proof(tmp_path, changed(ORIGINAL, line), changed(MIGRATED, mine))
    assert _differing(found) == [] and found.holds


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
    found = _proof(tmp_path, ORIGINAL, migrated, Wish(steps=None, float64=False, timeout=90))
    assert ("gradient norm" in _differing(found)) is not right


def test_parameters_have_names_where_the_model_is_gone_at_the_end(tmp_path: Path) -> None:
    def inside(text: str) -> str:
        head, _, rest = text.partition("torch.manual_seed(0)\n")
        body = "".join(f"    {line}\n" if line else "\n" for line in f"torch.manual_seed(0)\n{rest}".splitlines())
        return f"{head}\ndef main():\n{body}\n\nmain()\n"

    found = _proof(tmp_path, inside(ORIGINAL), changed(inside(MIGRATED), ("y) / 2", "y) / 2 / world")))
    assert any("they part at step 1, weight first" in line.text for line in found.lines)


def test_epochs_cut_the_runs(tmp_path: Path) -> None:
    found = _proof(tmp_path, ORIGINAL, MIGRATED, Wish(steps=None, epochs=2, timeout=90))
    assert found.holds and [d.step for d in found.distances] == list(range(1, 9)) and found.cut == "2 epochs"


def test_a_sum_loss_that_is_averaged(tmp_path: Path) -> None:
    pairs = (
        ("nn.CrossEntropyLoss()", 'nn.CrossEntropyLoss(reduction="sum")'),
        ("lr=0.1", "lr=0.01"),
        ("backbone.parameters(), 0.05", "backbone.parameters(), 99"),
    )
    found = _proof(tmp_path, changed(ORIGINAL, *pairs), changed(MIGRATED, *pairs))
    assert {"parameters after step 1", "gradient norm"} <= set(_differing(found))
    assert any("a ratio of 0.5" in line.text for line in found.lines)


@pytest.mark.parametrize(
    ("pairs", "words"),
    [
        pytest.param([("    scheduler.step()\n", "    if rank:\n        raise ValueError('no more')\n")], "ValueError: no more", id="crash of one rank"),
        pytest.param(
            [("    scheduler.step()\n", "    if rank and epoch == 1:\n        break\n")], "the migrated program fails", id="early stop on a local value"
        ),
    ],
)
def test_runs_that_fail(pairs: list[tuple[str, str]], words: str, tmp_path: Path) -> None:
    found = _proof(tmp_path, ORIGINAL, changed(MIGRATED, *pairs))
    assert words in found.failure and not found.holds
    assert found.fails and show.exit_code(found) == 1 and show.verdict(found) == "NOT proved: the migrated program fails where the original runs."


def test_a_program_that_fails_by_itself_is_not_judged(tmp_path: Path) -> None:
    pair = ("    scheduler.step()\n", "    raise ValueError('no more')\n")
    found = _proof(tmp_path, changed(ORIGINAL, pair), changed(MIGRATED, pair))
    assert found.failure.startswith("the original does not run here") and not found.fails and show.exit_code(found) == 2


def test_a_migrated_program_that_leaves_no_record_is_not_judged(tmp_path: Path) -> None:
    found = _proof(tmp_path, ORIGINAL, MIGRATED + "import os\nos._exit(0)\n")
    assert "processes left a record" in found.failure and not found.fails and show.exit_code(found) == 2


def test_a_hang_shows_where_each_rank_stands(tmp_path: Path) -> None:
    hanging = changed(MIGRATED, ("    scheduler.step()\n", "    if rank == 0:\n        dist.barrier()\n    else:\n        __import__('time').sleep(900)\n"))
    found = _proof(tmp_path, ORIGINAL, hanging, Wish(steps=None, timeout=25))
    assert "it was not done after 25 s" in found.failure
    assert "rank 0:" in found.failure and "rank 1:" in found.failure and "train.py" in found.failure


def test_tensors_that_are_made_on_a_gpu(tmp_path: Path) -> None:
    """A program that knows nothing but GPUs is run on the CPU, also where it names the device of a tensor that it makes."""
    made = 'torch.ones(2, device=torch.device("cuda")) + torch.cuda.FloatTensor(2).zero_() + torch.ones(1).new_zeros(2, device="cuda:0")'
    pair = ("nn.CrossEntropyLoss()", f"nn.CrossEntropyLoss({made})")
    found = _proof(tmp_path, changed(ORIGINAL, pair), changed(MIGRATED, pair), Wish(steps=4, timeout=90))
    assert _differing(found) == [] and found.holds


_NORM = ("nn.Sequential(nn.Linear(6, 16), nn.ReLU())", "nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU())")


def test_a_rank_with_one_sample_under_batch_norm(tmp_path: Path) -> None:
    """The proof leaves the batch's statistics out, but not that a batch of one sample has none."""
    few = ("[64, 21]", "[58, 27]")
    found = _proof(tmp_path, changed(ORIGINAL, _NORM, few), changed(MIGRATED, _NORM, few))
    assert "migrated" in found.failure and "Expected more than 1 value per channel" in found.failure


def test_a_deep_network_with_batch_norm_keeps_its_numbers(tmp_path: Path) -> None:
    """Without any normalisation layers of these weights would grow beyond all numbers at once."""
    layers = "for _ in range(40) for m in (nn.Conv1d(1, 1, 3, padding=1), nn.BatchNorm1d(1, track_running_stats=False))"
    deep = f"nn.Sequential(nn.Unflatten(1, (1, 6)), *[m {layers}], nn.Flatten(), nn.Linear(6, 16))"
    large = "with torch.no_grad():\n    [p.mul_(1e9) for m in backbone.modules() if isinstance(m, nn.Conv1d) for p in m.parameters()]\n"
    pairs = (("nn.Sequential(nn.Linear(6, 16), nn.ReLU())", deep), ("head = ", f"{large}head = "))
    found = _proof(tmp_path, changed(ORIGINAL, *pairs), changed(MIGRATED, *pairs), Wish(steps=4, timeout=90))
    assert _differing(found) == [] and found.holds


def test_checkpoints_that_do_not_pair_by_their_numbers(tmp_path: Path) -> None:
    """Two checkpoints named by the same second are one file: which of the other run's belongs to it cannot be told."""
    found = _proof(tmp_path, changed(ORIGINAL, ('"best.pt"', '"best_1.pt"')), changed(MIGRATED, ('"best.pt"', 'f"best_{epoch + 2}.pt"')))
    (line,) = (line for line in found.lines if line.name == "checkpoints")
    assert line.verdict is Verdict.NONE and "holds the time" in line.text


def test_the_state_of_a_parameter_without_a_gradient(tmp_path: Path) -> None:
    """What an optimizer keeps of it is rounding alone, another one on each side; in a checkpoint it is no difference."""
    pairs = (
        ("torch.optim.SGD([*backbone.parameters(), *head.parameters()], lr=0.1, momentum=0.9)", "torch.optim.Adam(rows, lr=0.01)"),
        ("optimizer = ", "rows = [*backbone.parameters(), *head.parameters()]\noptimizer = "),
        ('"best.pt")', '"best.pt")\n        state = {"noise": optimizer.state_dict()["state"][0]["exp_avg"] * 1e-9 + RANKS * 1e-17}\n        SAVE'),
    )
    own = ("RANKS", "0"), ("SAVE", 'torch.save(state, "state.pt")')
    theirs = ("RANKS", "1"), ("SAVE", 'if rank == 0:\n            torch.save(state, "state.pt")')
    found = _proof(tmp_path, changed(ORIGINAL, *pairs, *own), changed(MIGRATED, *pairs, *theirs))
    assert _differing(found) == [] and found.holds
