"""A rank that is aborted in the interpreter's exit: a fault of torch, which these programs imitate."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dpmigrate.report.text import Style
from dpmigrate.verify import failures, page, proof, scratch, show
from dpmigrate.verify.judge import Line, Verdict
from dpmigrate.verify.proof import Listener, Proof, Wish
from dpmigrate.verify.runs import Config, Ran, run
from tests.verify.pair import MIGRATED, ORIGINAL, changed, differing, proved

pytestmark = pytest.mark.usefixtures("forked_python")

#: Python deletes what modules hold after all that is registered with atexit has run. The functions
#: are kept as defaults, since their modules may be gone by then.
_LAST = """
import os, sys
class Last:
    def __del__(self, write=os.write, abort=os.abort, stat=os.stat, other=os.path.dirname(os.environ["DPMIGRATE_PROBE"]) + "/rank0.json"):
        WAIT
        write(2, b"terminate called without an active exception\\n")
        abort()
if os.environ["RANK"] == "1":
    sys.last = Last()
"""
#: rank 1 goes down when rank 0 has left its record
ABORTS = _LAST.replace(
    "WAIT",
    """while True:
            try:
                stat(other)
                break
            except OSError:
                continue""",
)
#: rank 1 goes down while rank 0 is still at work
CUTS_SHORT = f"import torch{_LAST.replace('WAIT', 'pass')}import time\nwhile os.environ['RANK'] == '0':\n    time.sleep(1)\n"


def test_the_proof_goes_on(tmp_path: Path) -> None:
    found = proved(tmp_path, ORIGINAL, MIGRATED + ABORTS)
    assert not differing(found) and found.holds and not found.fails and found.aborted == (1,)
    assert show.exit_code(found) == 0
    (line,) = [line for line in found.lines if line.verdict is Verdict.KNOWN]
    assert line.name == "exit" and line.text.startswith("rank 1 aborted in the interpreter's exit, after it had finished everything: a known fault of torch")
    assert "The cure: import torch.distributed.nn.functional before init_process_group()" in line.text
    words = "Proved: the migrated program trains like the original. Rank 1 aborted when it had finished everything, a known fault of torch."
    assert show.verdict(found) == words
    table = "\n".join(show.table(found, Style(False)))
    assert "  exit  " in table and "known fault" in table and "exit code 0" not in table
    assert json.loads(show.document(found))["aborted_at_exit"] == [1]
    assert '<td>exit</td><td class="known">known fault</td>' in page.page(found, "train.py", [])


def test_a_rank_that_aborts_in_the_middle_fails(tmp_path: Path) -> None:
    middle = changed(MIGRATED, ("    scheduler.step()\n", "    if rank and epoch == 1:\n        __import__('os').abort()\n"))
    found = proved(tmp_path, ORIGINAL, middle)
    assert found.fails and show.exit_code(found) == 1 and not found.aborted
    assert found.failure.startswith("the migrated program fails, the original does not: ")


def test_the_other_rank_is_ended_too_early(tmp_path: Path) -> None:
    script = tmp_path / "user" / "train.py"
    script.parent.mkdir()
    script.write_text(CUTS_SHORT)
    copy = scratch.place(script, tmp_path).copied_to((tmp_path / "copy").resolve())
    config = Config(str(tmp_path / "out"), str(copy.root), str(script.parent), str(copy.script), str(copy.folder), 2)
    ran = run((), config, timeout=300)
    # the launcher may count the rank that it ended itself among the failures
    assert (1, -6) in ran.exits and failures.cut_short(ran, 2)
    assert [record["rank"] for record in ran.records] == [1]


@pytest.mark.parametrize("short", [0, 1, 2, 3])
def test_it_is_run_again(short: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders: list[Path] = []
    lost, good = Proof(failure="rank 1 aborted", cut_short=True), Proof((Line("x", Verdict.EQUAL, "", needed=True),))

    def attempt(*given: Any) -> Proof:
        folders.append(given[-1])
        return lost if len(folders) <= short else good

    monkeypatch.setattr(proof, "_attempt", attempt)
    found = proof.prove(tmp_path, tmp_path, Wish(), listener=Listener(), keep=tmp_path)
    assert len(set(folders)) == len(folders) == min(short + 1, 3)
    if short == 3:
        assert found.failure == "rank 1 aborted; so it was in 3 runs"
        assert not found.fails and show.exit_code(found) == 2
    else:
        notes = (f"the result is that of run {short + 1}: in each of the others a rank aborted at its exit before all had finished",)
        assert found == (replace(good, notes=notes) if short else good)


def test_a_run_that_was_cut_short_is_not_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "train.py"
    script.write_text("")
    ran = Ran(tmp_path, 1, 0.0, (), "", ({"rank": 1, "ended": True},), exits=((1, -6),))
    monkeypatch.setattr(proof, "run", lambda *_, **__: ran)
    found = proof.prove(script, script, Wish())
    assert found.cut_short and not found.fails and "so it was in 3 runs" in found.failure
    assert "The launcher ended the other ranks before they had finished" in found.failure
