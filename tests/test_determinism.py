"""What the tool says and writes is the same in every process, whatever the hashes of strings, the addresses of nodes and the order of sets."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import outputs
from tests.pipeline import FIXTURES, cases, programs

ROOT = FIXTURES.parent
SCRIPTS = [*(c.path / "before.py" for c in cases()), *(p.path / "before" / p.entry for p in programs())]
#: with --all-runs all of them
SAMPLE = [*SCRIPTS[::76], SCRIPTS[-1]]


def digests(seed: int, scripts: list[Path], *words: str) -> dict[str, dict[str, str]]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "runtime"))), "PYTHONHASHSEED": str(seed)}
    command = [sys.executable, "-m", "tests.outputs", *words, *map(str, scripts)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    found = (json.loads(line) for line in done.stdout.splitlines())
    return {one["script"]: {kind: said for kind, said in one.items() if kind != "seconds"} for one in found}


def test_three_processes_say_the_same(request: pytest.FixtureRequest) -> None:
    scripts = SCRIPTS if request.config.getoption("--all-runs") else SAMPLE

    first = digests(0, scripts)
    other = digests(1, scripts)
    shuffled = digests(2, scripts, "--shuffled", "2")

    assert len(first) == len(scripts)
    assert {script: (other[script], shuffled[script]) for script in first} == {script: (said, said) for script, said in first.items()}


def test_the_comparison_sees_an_order(tmp_path: Path) -> None:
    """Sets are shuffled in the code of the tool, so that a difference would be seen."""
    seen = set()
    for seed in range(4):
        program = (
            f"from tests import shuffled\nshuffled.install({seed})\nimport dpmigrate.literals\n"
            "loader = type(dpmigrate.literals.__spec__.loader)\n"
            f"open({str(tmp_path / 'dpmigrate_sample.py')!r}, 'w').write('order = [*{{1, 2, 3, 4, 5}}]; joined = list(x for x in frozenset(order))')\n"
            f"code = loader('dpmigrate_sample', {str(tmp_path / 'dpmigrate_sample.py')!r}).get_code('dpmigrate_sample')\n"
            "space = {}\nexec(code, space)\nprint(space['order'], space['joined'])"
        )
        done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
        seen.add(done.stdout)
    assert len(seen) > 1


def test_all_that_is_printed_is_compared() -> None:
    (case,) = [c for c in cases() if c.name == "single_trainer_class"]
    here = Path.cwd()
    os.chdir(case.path)
    try:
        said = outputs.said(Path("before.py"), outputs.settings_of(case.path / "before.py"))
    finally:
        os.chdir(here)

    assert set(said) == {"check", "apply", "diff", "roles", "json of check", "json of apply"}
    assert "DPM102" in said["check"] and "+++ b/before.py" in said["diff"] and '"status": "changed"' in said["json of apply"]
