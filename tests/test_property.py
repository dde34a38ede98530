"""Whatever the program: nothing raises, nothing calls itself an error of the tool, and each file is migrated or as it was."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests import properties
from tests.grammar import pieces, program
from tests.properties import broken, smaller

ROOT = Path(__file__).resolve().parent.parent
#: more of them are tried by benchmarks/fuzz.py
PROGRAMS, GROUP = 100, 25


@pytest.mark.parametrize("first", range(0, PROGRAMS, GROUP))
def test_programs_at_random(first: int) -> None:
    told = {seed: found for seed in range(first, first + GROUP) if (found := broken(program(seed), seed))}
    assert told == {}


def test_programs_that_train_nothing() -> None:
    for seed in range(5):
        text = "\n".join(["import os, sys", *pieces(seed)]) + "\nloss.backward\nimport torch\n"
        assert broken({"train.py": text.encode()}, seed) == ""


def test_a_number_makes_the_same_program_every_time() -> None:
    code = "import hashlib; from tests.grammar import program; print(hashlib.sha256(repr([program(i) for i in range(20)]).encode()).hexdigest())"
    seen = {subprocess.run([sys.executable, "-c", code], cwd=ROOT, env={"PYTHONHASHSEED": h}, capture_output=True, check=True).stdout for h in "01"}
    assert len(seen) == 1
    assert len({repr(program(i)) for i in range(200)}) == 200


def test_every_program_compiles_and_much_is_migrated() -> None:
    """What the properties are asked of must not all be refused, or they say little."""
    for seed in range(200):
        for name, data in program(seed).items():
            compile(data, name, "exec")
    migrated = sum(_migrated(seed) for seed in range(20))
    assert 4 <= migrated < 20


def _migrated(seed: int) -> bool:
    from dpmigrate import engine
    from dpmigrate.settings import Settings

    (outcome,) = engine.apply([("train.py", program(seed)["train.py"])], Settings(follow=False, unproven=True), engine.Writing(write=False))
    return outcome.status.value == "changed"


# ------------------------------------------------------------------ the properties see what they are about
@pytest.mark.parametrize(
    ("room", "name", "wrong", "said"),
    [
        pytest.param("dpmigrate.rules", "check", lambda script: 1 / 0, "internal error", id="a fault in a rule"),
        pytest.param("dpmigrate.migration", "_recheck", lambda *_: "wrong", "self-check", id="a self-check"),
        pytest.param("dpmigrate.migration", "encoded", lambda texts: [(p.source, b"def") for p in texts], "does not compile", id="a result that does not compile"),
        pytest.param("dpmigrate.migration", "encoded", lambda texts: [(p.source, p.source.data + b"\n") for p in texts], "second run", id="a second run"),
        pytest.param("dpmigrate.engine", "check", lambda targets, settings: (t.write_bytes(b"") for t in targets), "raised AttributeError", id="an exception"),
    ],
)  # fmt: skip
def test_a_fault_is_seen(room: str, name: str, wrong: object, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seed = next(seed for seed in range(0, 60, 6) if _migrated(seed) and len(program(seed)) == 1)
    monkeypatch.setattr(f"{room}.{name}", wrong)
    assert said in broken(program(seed), seed)


def test_a_failing_program_is_cut_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(properties, "broken", lambda files, seed=0: "fault of line 7" if b"here" in files["train.py"] else "")
    files = {"train.py": b"a = 1\nif a:\n    b = 2\nhere = 3\nc = 4\n", "models.py": b"x = 1\n"}
    assert smaller(files, 0, "fault of line 9") == {"train.py": b"here = 3\n"}


def test_the_script_tells_failures_as_json(tmp_path: Path) -> None:
    script = [sys.executable, "benchmarks/fuzz.py", "--count", "4", "--shard", "1/2", "--out", str(tmp_path / "out.jsonl")]
    done = subprocess.run(script, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("2 programs, 0 failures") and (tmp_path / "out.jsonl").read_text() == ""
    done = subprocess.run([*script[:-4], "--programs", str(tmp_path / "programs")], cwd=ROOT, capture_output=True, text=True, check=True)
    assert (tmp_path / "programs" / "3" / "train.py").read_bytes() == program(3)["train.py"]
    assert json.dumps(done.stdout) == '""'
