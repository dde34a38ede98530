"""The form of a path, with holes for values."""

from __future__ import annotations

import pytest

from dpmigrate.facts.paths import path_form
from tests.facts.probe import all_probed, probed

_HEAD = "import os\nfrom pathlib import Path\nfolder = 'out'\nroot = Path('out')\nname = ask()\nagain = 'a'\nagain = 'b'\n"


@pytest.mark.parametrize("expression", ["ask()", "3", "None"])
def test_what_is_not_known_is_a_hole(expression: str) -> None:
    found, node = probed(f"{_HEAD}probe({expression})")
    assert path_form(found, node) == "{}"


def test_a_variable_that_is_not_known_has_a_form_of_its_own() -> None:
    found, (one, other, again) = all_probed(f"{_HEAD}probe(name)\nprobe(again)\nprobe(name)")
    assert path_form(found, one) == path_form(found, again) != path_form(found, other)


@pytest.mark.parametrize(
    ("expression", "form"),
    [
        ("'a.pt'", "a.pt"),
        ("folder", "out"),
        ("f'e{epoch}.png'", "e{}.png"),
        ("'e%d.png' % epoch", "e{}.png"),
        ("'e{}.png'.format(epoch)", "e{}.png"),
        ("folder + '/a.pt'", "out/a.pt"),
        ("os.path.join(folder, 'a.pt')", "out/a.pt"),
        ("root / 'a.pt'", "out/a.pt"),
        ("str(root / name)", "out/{}"),
    ],
)
def test_forms(expression: str, form: str) -> None:
    found, node = probed(f"{_HEAD}probe({expression})")
    assert path_form(found, node) == form
