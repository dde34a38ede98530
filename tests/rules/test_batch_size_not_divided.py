"""DPM202: each rank takes its share of the batch."""

from __future__ import annotations

import pytest

from dpmigrate.model import Severity
from dpmigrate.settings import Settings
from tests.rules.program import STEP, after, found, hits, refused, whole


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({"end": "val_loader = DataLoader(val_set, batch_size=7)\nprint(val_loader)"}, id="a loader that does not train"),
        pytest.param({"end": "print('DataLoader(train_set, batch_size=7)')  # DataLoader(train_set, 7)"}, id="in a string and a comment"),
        pytest.param({"imports": "import lib", "end": "lib.DataLoader(train_set, batch_size=7)"}, id="another library's DataLoader"),
    ],
)
def test_only_the_training_loader(parts: dict[str, str]) -> None:
    assert found("DPM202", **parts) == ["16"]


@pytest.mark.parametrize(
    ("parts", "pointed", "new"),
    [
        pytest.param({"loader": "loader = DataLoader(train_set, 8, shuffle=True)"}, "8", "ddp.local_batch(8)", id="positional"),
        pytest.param(
            {"setup": "n = 4", "loader": "loader = DataLoader(dataset=train_set, batch_size=n * 2)"},
            "n * 2",
            "batch_size=ddp.local_batch(n * 2)",
            id="expression",
        ),
        pytest.param(
            {"imports": "import torch.utils.data as D", "loader": "loader = D.DataLoader(train_set, batch_size=8)"}, "8", "ddp.local_batch(8)", id="alias"
        ),
        pytest.param(
            {"imports": "from torch.utils.data import DataLoader as Batches", "loader": "loader = Batches(train_set, batch_size=8)"},
            "8",
            "ddp.local_batch(8)",
            id="from",
        ),
        pytest.param(
            {"defs": "def make(s, n):\n    return DataLoader(s, batch_size=n)", "loader": "loader = make(train_set, 8)"},
            "n",
            "ddp.local_batch(n)",
            id="function",
        ),
        pytest.param({"module_level": True, "loader": "loader = DataLoader(train_set, 8)"}, "8", "ddp.local_batch(8)", id="module level"),
    ],
)
def test_found_and_fixed(parts: dict[str, str], pointed: str, new: str) -> None:
    assert found("DPM202", **parts) == [pointed]
    assert any(new in line for line in after(**parts))


def test_a_loader_of_single_samples_is_refused() -> None:
    assert refused("DPM202", loader="loader = DataLoader(train_set)") == ["DataLoader(train_set)"]


@pytest.mark.parametrize(
    ("parts", "pointed"),
    [
        pytest.param({"loader": "loader = DataLoader(train_set, batch_size=1)"}, "1", id="keyword"),
        pytest.param({"loader": "loader = DataLoader(train_set, 1)"}, "1", id="positional"),
        pytest.param({"setup": "n = 1", "loader": "loader = DataLoader(train_set, batch_size=n)"}, "n", id="a variable"),
        pytest.param({"defs": "def make(s, n):\n    return DataLoader(s, n)", "loader": "loader = make(train_set, 1)"}, "n", id="a parameter"),
    ],
)
def test_a_batch_of_one_sample_is_refused(parts: dict[str, str], pointed: str) -> None:
    assert refused("DPM202", **parts) == [pointed]
    assert found("DPM202", Settings(batch="per-rank"), **parts) == []


_OPTION = "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('-b', '--batch-size', type=int, default={})"


@pytest.mark.parametrize(
    "loader",
    ["loader = DataLoader(train_set, batch_size=args.batch_size)", "n = args.batch_size\nloader = DataLoader(train_set, n)"],
    ids=["the option", "by another name"],
)
def test_an_option_for_one_sample_is_told(loader: str) -> None:
    parts = {"setup": "args = parser.parse_args()", "loader": loader}
    warned = [h for h in hits("DPM202", imports=_OPTION.format(1), **parts) if h.severity is Severity.WARNING]
    assert len(warned) == 1 and not warned[0].edits and "--batch per-rank" in warned[0].advice
    assert "ddp.local_batch(" in whole(imports=_OPTION.format(1), **parts)
    assert all(h.edits for h in hits("DPM202", imports=_OPTION.format(16), **parts))
    assert all(h.edits for h in hits("DPM202", imports=_OPTION.format("None") + "\nparser.add_argument('--other')", **parts))


def test_an_option_for_one_sample_in_a_dictionary_is_told() -> None:
    parts = {"setup": "args = parser.parse_args()\ngiven = dict(batch_size=args.batch_size)", "loader": "loader = DataLoader(train_set, shuffle=True, **given)"}
    (warned,) = hits("DPM202", imports=_OPTION.format(1), **parts)
    assert warned.severity is Severity.WARNING and not warned.edits
    assert hits("DPM202", imports=_OPTION.format(16), **parts) == []


def test_a_loader_that_cannot_be_read_is_left_to_distribute() -> None:
    assert found("DPM202", defs="def make(s, **kw):\n    return DataLoader(s, **kw)", loader="loader = make(train_set)") == []


def test_per_rank_keeps_the_number() -> None:
    settings = Settings(batch="per-rank")
    assert found("DPM202", settings) == []
    assert "loader = DataLoader(train_set, batch_size=16, sampler=" in whole(settings)


@pytest.mark.parametrize(
    ("loader", "words"),
    [
        pytest.param("loader = DataLoader(train_set, batch_size=5)", ["batches of 5 samples can be divided over 5 ranks only"], id="a prime number"),
        pytest.param("size = 15\nloader = DataLoader(train_set, batch_size=size)", ["batches of 15 samples can be divided over 3, 5 or 15 ranks only"], id="in a variable"),
        pytest.param(
            "SIZE = 15\ndef make(n):\n    return DataLoader(train_set, batch_size=n)\ndef handed(k):\n    return make(k)\nloader = handed(SIZE)",
            ["batches of 15 samples can be divided over 3, 5 or 15 ranks only"], id="handed on",
        ),
        pytest.param("loader = DataLoader(train_set, batch_size=6)", [], id="even"),
        pytest.param("loader = DataLoader(train_set, batch_size=999_999_999_989)", [], id="more than anybody divides"),
        pytest.param("loader = DataLoader(train_set, batch_size=2 * n)", [], id="not a number"),
    ],
)  # fmt: skip
def test_numbers_that_two_ranks_do_not_divide(loader: str, words: list[str]) -> None:
    told = [h.message for h in hits("DPM202", loader=loader) if h.severity is Severity.WARNING]
    assert [t.split(":")[0] for t in told] == words
    if words:
        assert "ddp.local_batch(" in whole(loader=loader)


def test_a_data_set_of_whole_batches_is_refused() -> None:
    assert refused("DPM202", loader="loader = DataLoader(train_set, batch_size=None)") == ["None"]
    assert refused("DPM202", setup="n = None", loader="loader = DataLoader(train_set, batch_size=n)") == ["n"]


@pytest.mark.parametrize(
    ("line", "new"),
    [
        pytest.param("loader.batch_sampler.batch_size = 2 * n", "loader.batch_sampler.batch_size = ddp.local_batch(2 * n)", id="set"),
        pytest.param("loader.batch_sampler.batch_size += 4", "loader.batch_sampler.batch_size += ddp.local_batch(4)", id="added to"),
        pytest.param("loader.batch_sampler.batch_size *= 2", "loader.batch_sampler.batch_size *= 2", id="so many times what it was"),
        pytest.param("b = loader.batch_sampler\nb.batch_size = 8", "b.batch_size = ddp.local_batch(8)", id="through a name"),
        pytest.param("val_loader.batch_sampler.batch_size = 2", "val_loader.batch_sampler.batch_size = 2", id="of another loader"),
    ],
)
def test_a_size_that_is_set_later(line: str, new: str) -> None:
    setup = "n = 8\nval_loader = DataLoader(val_set, batch_size=4)"
    assert new in whole(setup=setup, end=line)


def test_a_size_that_may_be_another_loaders_is_refused() -> None:
    setup = "val_loader = DataLoader(val_set, batch_size=4)"
    defs = "def grow(l):\n    l.batch_sampler.batch_size = 32"
    assert refused("DPM202", setup=setup, defs=defs, end="grow(loader)\ngrow(val_loader)") == ["l.batch_sampler.batch_size = 32"]


def test_batches_of_the_programs_own_keep_their_size() -> None:
    own = "loader = DataLoader(train_set, batch_sampler=torch.utils.data.BatchSampler(range(32), 8, False))"
    assert "    loader.batch_sampler.batch_size = 16" in whole(loader=own, end="loader.batch_sampler.batch_size = 16")


@pytest.mark.parametrize(
    ("step", "written"),
    [
        ("x, y = x.squeeze(0), y", True),
        ("x = x.squeeze(dim=0)", True),
        ("x = x.squeeze(1)", False),
        ("x = x.squeeze()", False),
        ("z = torch.ones(1, 3).squeeze(0)", False),
    ],
)
def test_a_step_that_is_written_for_one_sample(step: str, written: bool) -> None:
    parts = {"setup": _OPTION.format(1) + "\nargs = parser.parse_args()", "loader": "loader = DataLoader(train_set, batch_size=args.batch_size, shuffle=True)"}
    told = [f for f in hits("DPM202", **parts, step=f"{step}\n{STEP}") if f.severity is Severity.WARNING]
    assert [("takes the axis of the samples away" in f.message, f.advice.startswith("Keep it")) for f in told] == [(written, written)]
