"""What reaches beyond the process."""

from __future__ import annotations

import ast

import pytest

from dpmigrate.facts.outside import changes_files, downloads, fetches, waits_for_somebody
from tests.facts.probe import probed

_HEAD = """
import os, shutil, json
import cv2
import numpy as np
import torch, torchvision
import matplotlib.pyplot as plt
from pathlib import Path
path = Path("a")
"""


def _ask(expression: str) -> tuple[object, ast.Call]:
    found, node = probed(f"{_HEAD}probe({expression})")
    assert isinstance(node, ast.Call)
    return found, node


@pytest.mark.parametrize(
    "expression", ["np.load('a')", "text.replace('a', 'b')", "torch.load('a')", "os.listdir('a')", "path.exists()", "print(x)", "json.dump(x, f)"]
)
def test_files_stay_as_they_are(expression: str) -> None:
    found, call = _ask(expression)
    assert not changes_files(found.roles, call)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "expression",
    ["np.save('a', x)", "plt.savefig('a')", "path.write_text('a')", "path.rename('b')", "cv2.imwrite('a.png', x)", "os.mknod('a')", "os.chmod('a', 0o755)", "path.chmod(0o755)", "shutil.copymode(a, b)", "os.truncate('a', 3)"],
)
def test_files_change(expression: str) -> None:
    found, call = _ask(expression)
    assert changes_files(found.roles, call)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("given", "picture"),
    [
        ("def f(x, path): probe(x.save(path))\nf(y, 'a.png')", True),
        ("def f(x, *, path='a.png'): probe(x.save(path))\nf(y)", True),
        ("def f(x, path='a.png'): probe(x.save(path))\nf(y)\nf(y, path=d + '/b.jpg')", True),
        ("def f(x, path): probe(x.save(path))\nf(y, 'a.png')\nf(y, name)", False),
        ("def f(x, path): probe(x.save(path))", False),
        ("def f(x, path='a.npz'): probe(x.save(path))\nf(y)", False),
        ("for path in paths: probe(x.save(path))", False),
    ],
)
def test_a_picture_whose_path_is_handed_in(given: str, picture: bool) -> None:
    found, call = probed(given)
    assert isinstance(call, ast.Call)
    assert changes_files(found.roles, call) is picture


@pytest.mark.parametrize(
    ("expression", "waits"), [("print(x)", False), ("plt.plot(x)", False), ("input('?')", True), ("plt.show()", True), ("cv2.waitKey(0)", True)]
)
def test_somebody_is_waited_for(expression: str, waits: bool) -> None:
    found, call = _ask(expression)
    assert waits_for_somebody(found.names, call) is waits  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("expression", "fetched", "alone"),
    [
        ("torchvision.datasets.MNIST('a')", False, False),
        ("torchvision.datasets.MNIST('a', download=False)", False, False),
        ("torchvision.datasets.MNIST('a', download=True)", True, False),
        ("torch.hub.load('a', 'b')", True, False),
        ("timm.create_model(n, pretrained=True)", True, False),
        ("n in timm.list_models(pretrained=True)", False, False),
        ("torch.hub.download_url_to_file('a', 'b')", True, True),
    ],
)
def test_files_are_fetched(expression: str, fetched: bool, alone: bool) -> None:
    found, node = probed(f"{_HEAD}import timm\nprobe({expression})")
    call = next(n for n in ast.walk(node) if isinstance(n, ast.Call))
    assert (downloads(found.names, call), fetches(found.names, call)) == (fetched, alone)
