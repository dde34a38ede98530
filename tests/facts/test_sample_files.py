"""A data set that keeps its samples in files: each rank makes those that it is asked for (DPM401, DPM507, DPM509)."""

from __future__ import annotations

import pytest

from tests.pipeline import findings
from tests.rules.program import program

_DATA = """\
import os, pickle, shutil
from pathlib import Path
import numpy as np
class Data(torch.utils.data.Dataset):
    root = "cache"
    def __len__(self):
        return 64
    def __getitem__(self, i):
        {lines}
        return torch.zeros(8), 0
{keep}train_set = Data()
val_set = TensorDataset(torch.randn(33, 8), torch.randint(0, 2, (33,)))
"""
_KEEP = """\
    def keep(self, name):
        np.save(os.path.join(self.root, f"{name}.npy"), 3)
"""


@pytest.mark.parametrize(
    ("lines", "codes"),
    [
        pytest.param("torch.save(3, f'{i}.pt')", set(), id="saved"),
        pytest.param("name = os.path.join(self.root, str(i)); torch.save(3, name)", set(), id="through a variable"),
        pytest.param("p = Path(self.root) / f'{i}.npy'; np.save(p, 3)", set(), id="an array"),
        pytest.param("open(f'{i}.pkl', 'wb').write(b'')", set(), id="opened"),
        pytest.param("(Path(self.root) / str(i)).write_bytes(b'')", set(), id="by a path's method"),
        pytest.param("shutil.copyfile('a', f'{i}.a')", set(), id="copied"),
        pytest.param("self.keep(i)", set(), id="by a method that is called here alone"),
        pytest.param("torch.save(i, 'last.pt')", {"DPM401"}, id="one file for all, saved"),
        pytest.param("np.save(self.root, i)", {"DPM507"}, id="one file for all, an array"),
        pytest.param("open('log.txt', 'a').write(str(i))", {"DPM509"}, id="one file for all, opened"),
        pytest.param("self.keep('all')", {"DPM507"}, id="one file for all, by a method"),
    ],
)
def test_whose_files_they_are(lines: str, codes: set[str]) -> None:
    data = _DATA.format(lines="\n        ".join(lines.split("; ")), keep=_KEEP if "self.keep" in lines else "")
    text = program(data=data, module_level=True)
    assert {f.code for f in findings(text)} & {"DPM401", "DPM402", "DPM507", "DPM509", "DPM516"} == codes


def test_a_method_that_all_ranks_call_as_well() -> None:
    text = program(data=_DATA.format(lines="self.keep(i)", keep=_KEEP) + "train_set.keep(0)\n", module_level=True)
    assert "DPM507" in {f.code for f in findings(text)}


def test_a_path_through_many_variables_is_followed_once() -> None:
    """Each variable is made of all others: their number of ways to each other grows by its power."""
    names = [f"n{k}" for k in range(14)]
    lines = [f"{n} = {' + '.join(names[:k] or ['str(i)'])}" for k, n in enumerate(names)]
    both = [f"{n} = {n} + {' + '.join(names)}" for n in names]
    text = program(data=_DATA.format(lines="\n        ".join([*lines, *both, "torch.save(3, n13)"]), keep=""), module_level=True)
    assert "DPM401" not in {f.code for f in findings(text)}
    other = text.replace("str(i)", "str(self.root)")
    assert "DPM401" in {f.code for f in findings(other)}
