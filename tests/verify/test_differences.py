"""What differs without anybody being wrong, noise, types, rounding, is no fault; where it hides one, nothing is called proved."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpmigrate.verify.judge import Verdict
from dpmigrate.verify.proof import Proof, Wish
from tests.pipeline import cases, migrate
from tests.verify.pair import MIGRATED, ORIGINAL, changed, differing, proved

pytestmark = pytest.mark.usefixtures("forked_python")


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
    found = proved(tmp_path, changed(ORIGINAL, *pairs), changed(MIGRATED, *pairs), Wish(steps=steps, timeout=90))
    assert differing(found) == [] and found.holds
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
    found = proved(tmp_path, _noisy(ORIGINAL, noise), changed(_noisy(MIGRATED, noise), ("for epoch in", "torch.manual_seed(rank)\nfor epoch in")))
    assert differing(found) == [] and found.holds and any("drawn by the sample" in note for note in found.notes)


def test_noise_of_another_shape_is_not_compared(tmp_path: Path) -> None:
    noise = "torch.randn(6)"
    found = proved(tmp_path, _noisy(ORIGINAL, noise), changed(_noisy(MIGRATED, noise), ("for epoch in", "torch.manual_seed(rank)\nfor epoch in")))
    verdicts = {line.name: line.verdict for line in found.lines}
    assert verdicts["parameters after step 12"] is Verdict.NONE and not found.holds


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
    found = proved(tmp_path, original, migrated)
    assert differing(found) == [] and found.holds


def test_an_evaluation_that_shuffles_and_is_wrong(tmp_path: Path) -> None:
    migrated = migrate(changed(ORIGINAL, *_MEAN))
    assert migrated is not None
    found = proved(tmp_path, changed(ORIGINAL, *_MEAN), changed(migrated, ("correct = ddp.sum_all(correct)", "pass")))
    assert differing(found) == ["numbers printed"]


_RETYPED = (
    ("optimizer = torch.optim.SGD", "backbone.half(); head.half()\noptimizer = torch.optim.SGD"),
    ("head(backbone(x))", "head(backbone(x.half()))"),
)


def test_a_change_of_type(tmp_path: Path) -> None:
    """In float64 nothing would come of it, and the hooks of DDP would stay; here they are gone."""
    original = ORIGINAL.replace(_RETYPED[0][0], _RETYPED[0][1]).replace(*_RETYPED[1])
    migrated = migrate(original)
    assert migrated is not None
    found = proved(tmp_path, original, migrated)
    assert found.holds and found.retyped and found.notes[0].startswith("float32") and "changes the type of its model" in found.notes[-1]


def test_a_change_of_type_after_the_wrap(tmp_path: Path) -> None:
    original = ORIGINAL.replace(_RETYPED[0][0], _RETYPED[0][1]).replace(*_RETYPED[1])
    migrated = MIGRATED.replace(_RETYPED[0][0], _RETYPED[0][1]).replace("backbone(x)", "backbone(x.half())").replace("module(x)", "module(x.half())")
    found = proved(tmp_path, original, migrated)
    assert not found.holds and "ranks alike" in differing(found)


def test_mixed_precision(tmp_path: Path) -> None:
    """The logic of scaling and clipping is compared; autocast is off and the report says so."""
    (case,) = [c for c in cases() if c.name == "amp_clip"]
    after = migrate(case.before, case.settings)
    assert after is not None and case.settings.amp
    found = proved(tmp_path, case.before, after, Wish(steps=6, timeout=90))
    assert found.holds and any("autocast was switched off" in note for note in found.notes) and found.notes[0].startswith("float32")


def test_dropout_inside_attention(tmp_path: Path) -> None:
    layers = "nn.TransformerEncoderLayer(6, 2, 16, batch_first=True), nn.Flatten(), nn.Linear(6, 16)"
    pairs = (("nn.Sequential(nn.Linear(6, 16), nn.ReLU())", f"nn.Sequential(nn.Unflatten(1, (1, 6)), {layers})"),)
    found = proved(tmp_path, changed(ORIGINAL, *pairs), changed(MIGRATED, *pairs))
    assert differing(found) == [] and found.holds


def test_noise_that_begins_late_is_no_proof(tmp_path: Path) -> None:
    pairs = [("backbone(x)), y)", "backbone(x + (torch.randn(6) if epoch else 0))), y)")]
    clip = "            nn.utils.clip_grad_norm_(backbone.parameters(), 0.05)\n"
    found = proved(tmp_path, changed(ORIGINAL, *pairs), changed(MIGRATED, *pairs, (clip, clip.replace("0.05", "0.05 if not epoch else 99"))))
    assert not found.holds
    early = _proof_again(tmp_path, changed(ORIGINAL, *pairs), changed(MIGRATED, *pairs, (clip, "")))
    assert "gradient norm" in differing(early)  # before the noise


def _proof_again(tmp_path: Path, original: str, migrated: str) -> Proof:
    folder = tmp_path / "again"
    folder.mkdir()
    return proved(folder, original, migrated)


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
    found = proved(tmp_path, changed(original, ("ORDER", _OWN)), changed(migrated, ("ORDER", shared if right else _OWN)))
    assert found.holds is right and (right or "parameters after step 1" in differing(found))


def test_tensors_that_are_made_on_a_gpu(tmp_path: Path) -> None:
    """A program that knows nothing but GPUs is run on the CPU, also where it names the device of a tensor that it makes."""
    made = 'torch.ones(2, device=torch.device("cuda")) + torch.cuda.FloatTensor(2).zero_() + torch.ones(1).new_zeros(2, device="cuda:0")'
    pair = ("nn.CrossEntropyLoss()", f"nn.CrossEntropyLoss({made})")
    found = proved(tmp_path, changed(ORIGINAL, pair), changed(MIGRATED, pair), Wish(steps=4, timeout=90))
    assert differing(found) == [] and found.holds


_NORM = ("nn.Sequential(nn.Linear(6, 16), nn.ReLU())", "nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU())")


def test_a_rank_with_one_sample_under_batch_norm(tmp_path: Path) -> None:
    """The proof leaves the batch's statistics out, but not that a batch of one sample has none."""
    few = ("[64, 21]", "[58, 27]")
    found = proved(tmp_path, changed(ORIGINAL, _NORM, few), changed(MIGRATED, _NORM, few))
    assert "migrated" in found.failure and "Expected more than 1 value per channel" in found.failure


def test_a_deep_network_with_batch_norm_keeps_its_numbers(tmp_path: Path) -> None:
    """Without any normalisation layers of these weights would grow beyond all numbers at once."""
    layers = "for _ in range(40) for m in (nn.Conv1d(1, 1, 3, padding=1), nn.BatchNorm1d(1, track_running_stats=False))"
    deep = f"nn.Sequential(nn.Unflatten(1, (1, 6)), *[m {layers}], nn.Flatten(), nn.Linear(6, 16))"
    large = "with torch.no_grad():\n    [p.mul_(1e9) for m in backbone.modules() if isinstance(m, nn.Conv1d) for p in m.parameters()]\n"
    pairs = (("nn.Sequential(nn.Linear(6, 16), nn.ReLU())", deep), ("head = ", f"{large}head = "))
    found = proved(tmp_path, changed(ORIGINAL, *pairs), changed(MIGRATED, *pairs), Wish(steps=4, timeout=90))
    assert differing(found) == [] and found.holds


def test_samples_that_are_normalised_as_channels(tmp_path: Path) -> None:
    """Each by itself, as adaptive instance normalisation does it: such statistics are no batch's, and are left as they are."""
    own = "lambda self, x: nn.functional.batch_norm(x.view(1, -1, 4), None, None, None, None, True).view(x.shape)"
    pair = ("nn.ReLU())", f"type('Own', (nn.Module,), {{'forward': {own}}})())")
    found = proved(tmp_path, changed(ORIGINAL, pair), changed(MIGRATED, pair), Wish(steps=4, timeout=90))
    assert differing(found) == [] and found.holds


def test_checkpoints_that_do_not_pair_by_their_numbers(tmp_path: Path) -> None:
    """Two checkpoints named by the same second are one file: which of the other run's belongs to it cannot be told."""
    found = proved(tmp_path, changed(ORIGINAL, ('"best.pt"', '"best_1.pt"')), changed(MIGRATED, ('"best.pt"', 'f"best_{epoch + 2}.pt"')))
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
    found = proved(tmp_path, changed(ORIGINAL, *pairs, *own), changed(MIGRATED, *pairs, *theirs))
    assert differing(found) == [] and found.holds
