"""DPM507: files are changed once."""

from __future__ import annotations

import pytest

from tests.pipeline import migrate
from tests.rules.program import after, found, program, whole


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({"imports": "import shutil", "end": "p = shutil.copy('a', 'b')"}, id="the result is used"),
        pytest.param({"end": "os.listdir('x')"}, id="only read"),
        pytest.param({"end": "print(\"os.remove('x')\")  # os.remove('x')"}, id="in a string and a comment"),
        pytest.param({"imports": "from mylib import shutil", "end": "shutil.rmtree('a')"}, id="another library's"),
        pytest.param({"end": "d = {}\nd.pop('a', None)"}, id="another method"),
        pytest.param({"end": "3"}, id="no call"),
        pytest.param({"imports": "import pandas as pd", "end": "pd.DataFrame().rename(columns={}, inplace=True)"}, id="another rename"),
        pytest.param({"imports": "import lib", "end": "lib.Thing().save('a')"}, id="a save of something unknown"),
        pytest.param(
            {"imports": "import lib", "end": "p = lib.path()\nlib.Thing().save(p)\nlib.Thing().save(p + q)\nlib.Thing().save(P())"}, id="to an unknown path"
        ),
        pytest.param({"imports": "import lib", "end": "lib.Thing().save()\nlib.Thing().save(3)\nlib.Thing().save(f'')"}, id="a save without a path"),
        pytest.param({"defs": "class T:\n    def save(self, p):\n        pass", "end": "T().save('a.png')"}, id="a save of the program's own"),
    ],
)
def test_nothing_to_say(parts: dict[str, str]) -> None:
    assert found("DPM507", **parts) == []


@pytest.mark.parametrize(
    ("imports", "call"),
    [
        pytest.param("import shutil", "shutil.copyfile('a', 'b')", id="shutil"),
        pytest.param("from shutil import rmtree as rm", "rm(path='a')", id="from-import with alias, keyword"),
        pytest.param("", "os.remove('a')", id="os"),
        pytest.param("import numpy as np", "np.save('a', 3)", id="numpy"),
        pytest.param("from matplotlib import pyplot as plt", "plt.savefig('a.png')", id="pyplot"),
        pytest.param("import pandas as pd", "pd.DataFrame().to_csv('a.csv')", id="method"),
        pytest.param("from pathlib import Path", "Path('a').unlink()", id="pathlib"),
        pytest.param("from pathlib import Path", "Path('a').rename('b')", id="a Path is renamed"),
        pytest.param("", "torch.jit.script(nn.Linear(2, 2)).save('a')", id="a script is saved"),
        pytest.param("from safetensors.torch import save_file", "save_file({}, 'a')", id="safetensors"),
        pytest.param("", "torch.onnx.export(nn.Linear(2, 2), torch.ones(2), 'a')", id="export"),
        pytest.param("from PIL import Image", "Image.new('L', (2, 2)).save('a.png')", id="an image"),
        pytest.param("from torchvision.utils import save_image", "save_image(3, 'a.png')", id="torchvision"),
        pytest.param("from lib import tokenizer", "tokenizer.save_vocabulary('b')", id="a vocabulary"),
    ],
)
@pytest.mark.parametrize("module_level", [False, True], ids=["function", "module"])
def test_guarded(imports: str, call: str, module_level: bool) -> None:
    parts: dict[str, str | bool] = {"imports": imports, "end": call, "module_level": module_level}
    assert found("DPM507", **parts) == [call]
    lines = [one.strip() for one in whole(**parts).splitlines()]
    assert lines[lines.index(call) - 1] == "if ddp.is_main():"


@pytest.mark.parametrize(
    ("end", "new"),
    [
        ("api.upload_file('a.pt')", "if ddp.is_main():"),
        ("commit = api.upload_file('a.pt')", "commit = ddp.main_only(api.upload_file, 'a.pt')"),
        ("print(upload_folder(folder_path='a'))", "print(ddp.main_only(upload_folder, folder_path='a'))"),
    ],
)
def test_files_that_are_sent(end: str, new: str) -> None:
    imports = "from huggingface_hub import HfApi, upload_folder"
    assert new in after(imports=imports, end=f"api = HfApi()\n{end}")


def test_a_function_of_the_program_that_has_the_name_of_one_that_sends() -> None:
    defs = "class T:\n    def upload_file(self, p):\n        return 3"
    assert found("DPM507", defs=defs, end="n = T().upload_file('a')") == []


@pytest.mark.parametrize(
    "path",
    ["'a.png'", "'a%d.PNG' % 3", "f'{3}.jpg'", "os.path.join('out', 'a%d.png' % 3)", "'{}.gif'.format(3)", "'out/' + 'a.pdf'", "name"],
)
def test_pictures_that_something_unknown_saves(path: str) -> None:
    """What ``transforms.ToPILImage()`` or a function of another library has made."""
    call = f"restore(3).save({path})"
    lines = [one.strip() for one in whole(imports="from lib import restore", end=f"name = 'a.png'\n{call}").splitlines()]
    assert lines[lines.index(call) - 1] == "if ddp.is_main():"


def test_neighbours_share_a_guard() -> None:
    assert after(end="os.remove('a')\nos.remove('b')") == ["if ddp.is_main():"]


def test_in_a_method() -> None:
    assert found("DPM507", defs="class T:\n    def clean(self, p):\n        os.remove(p)") == ["os.remove(p)"]


def test_an_evaluation_in_the_arguments_runs_on_every_rank() -> None:
    defs = "def evaluate(m, v):\n    n = 0\n    for x, y in v:\n        n += m(x).sum().item()\n    return n"
    end = "v = DataLoader(val_set, batch_size=4)\nnp.save('a', evaluate(model, v))"
    assert after(imports="import numpy as np", defs=defs, end=end)[-1] == "ddp.main_only(np.save, 'a', evaluate(model, v))"


@pytest.mark.parametrize(
    ("setup", "waits"),
    [
        pytest.param("shutil.rmtree('out')", True, id="a statement"),
        pytest.param("if os.path.exists('out'):\n    shutil.rmtree('out')", True, id="under a test"),
        pytest.param("for d in ('a', 'b'):\n    if os.path.exists(d):\n        shutil.rmtree(d)", True, id="in a loop"),
        pytest.param("os.remove('a.txt')", False, id="a file"),
    ],
)
def test_the_ranks_wait_for_folders_that_are_removed(setup: str, waits: bool) -> None:
    new = after(imports="import shutil", setup=setup)
    assert ("ddp.barrier()" in new) is waits
    assert new.count("ddp.barrier()") <= 1


def test_the_ranks_wait_within_the_main_guard() -> None:
    old = program(imports="import shutil").replace("    main()", "    if os.path.exists('out'):\n        shutil.rmtree('out')\n    main()")
    new = migrate(old)
    assert new is not None and "        shutil.rmtree('out')\n    ddp.barrier()\n    main()\n" in new


def test_nobody_waits_in_the_training() -> None:
    assert "ddp.barrier()" not in after(imports="import shutil", epoch_end="shutil.rmtree('old')")


@pytest.mark.parametrize(
    "save",
    [
        pytest.param("lib.Thing().save('a.obj')", id="a class that no table knows"),
        pytest.param("for p in ['a.png']:\n    lib.Thing().save(p)", id="a path that a loop gives"),
        pytest.param("image = Image.fromarray(net(x)).resize(3)\nimage.save(os.path.join(out, 'a'))", id="a picture of a picture"),
        pytest.param("lib.read(x).mesh.export(f'{out}/a.ply')", id="an attribute of something unknown"),
        pytest.param("lib.write_cloud('a.pcd', x)", id="a function that no table knows"),
        pytest.param("x.numpy().tofile('a.bin')", id="an array"),
        pytest.param("out_path = os.environ['OUT']\nlib.Thing().save(lib.name, out_path)", id="a variable of a path's name"),
    ],
)
def test_what_is_named_like_saving(save: str) -> None:
    parts = {"imports": "import argparse, lib, os\nfrom PIL import Image\nfrom lib import out", "end": f"x = torch.rand(3)\nargs = argparse.ArgumentParser().parse_args()\nnet = torch.nn.Linear(3, 3)\n{save}"}
    (one,) = found("DPM507", **parts)
    lines = [line.strip() for line in whole(**parts).splitlines()]
    assert lines[lines.index(one) - 1] == "if ddp.is_main():"


@pytest.mark.parametrize(
    "save",
    [
        pytest.param("buffer = io.BytesIO()\nlib.Thing().save(buffer)", id="into memory"),
        pytest.param("lib.Thing().save(3, x)", id="no path"),
        pytest.param("lib.Thing().save(['a.png'], *x)", id="arguments that are not written one by one"),
        pytest.param("lib.Thing().save(f'{os.getpid()}.obj')", id="each process has a file of its own"),
        pytest.param("lib.Thing().write('a.txt')", id="text, perhaps"),
        pytest.param("ok = lib.Thing().save('a.obj')", id="the result is used"),
    ],
)
def test_no_file_of_all_ranks(save: str) -> None:
    assert found("DPM507", imports="import io, lib, os", end=f"x = torch.rand(3)\n{save}") == []


_FOLDER = """\
def clean(folder, out):
    for path in sorted(glob.glob(os.path.join(folder, '*'))):
        x = np.load(path)
        np.save({path}, x){more}
"""
_SAME = "os.path.join(out, os.path.basename(path))"


@pytest.mark.parametrize(
    ("path", "more", "end", "whole_loop"),
    [
        (_SAME, "", "clean('a', 'a')", True),
        ("path", "", "clean('a', 'b')", True),
        ("f'{out}/{os.path.basename(path)}'", "", "clean('a', 'a')", True),
        (_SAME, "", "clean('a', 'b')", False),
        ("out + '/new.npy'", "", "clean('a', 'a')", False),
        ("path", "\n    print(x)", "clean('a', 'a')", False),
        ("path", "\n        seen.append(x)\n    print(seen)", "seen = []\nclean('a', 'a')", False),
        ("path", "\n        if x is None:\n            return", "clean('a', 'a')", False),
    ],
)
def test_a_folder_whose_files_are_written_anew(path: str, more: str, end: str, whole_loop: bool) -> None:
    parts = {"imports": "import glob, os\nimport numpy as np", "defs": _FOLDER.format(path=path, more=more), "end": end}
    assert any(text.startswith("for path in") for text in found("DPM507", **parts)) is whole_loop


def test_a_folder_is_rank_0s() -> None:
    parts = {"imports": "import glob, os\nimport numpy as np", "defs": _FOLDER.format(path=_SAME, more=""), "end": "clean('a', 'a')"}
    lines = [line.strip() for line in whole(**parts).splitlines()]
    assert lines[next(i for i, line in enumerate(lines) if line.startswith("for path in")) - 1] == "if ddp.is_main():"
    assert lines[next(i for i, line in enumerate(lines) if line.startswith("np.save")) - 1] == "x = np.load(path)"
