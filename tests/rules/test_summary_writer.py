"""DPM503: one writer for all ranks."""

from __future__ import annotations

import pytest

from tests.rules.program import after, found, hits, whole


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({"end": "print('SummaryWriter()')  # SummaryWriter()"}, id="in a string and a comment"),
        pytest.param({"defs": "class SummaryWriter:\n    pass", "before": "w = SummaryWriter()"}, id="a class of this file"),
        pytest.param(
            {"defs": "class Own:\n    pass\nclass Tools:\n    pass", "before": "t = Tools()\nt.SummaryWriter = Own\nw = t.SummaryWriter()"},
            id="a class of this file, kept by an object",
        ),
        pytest.param({"imports": "import logging", "before": "w = logging.getLogger('a')"}, id="logging"),
        pytest.param({"imports": "import logging", "before": "w = logging.Logger('a')"}, id="a logger of the library"),
        pytest.param({"imports": "import csv", "before": "w = csv.DictWriter(None, [])"}, id="csv writes into an open file"),
        pytest.param({"imports": "from lib import make_logger", "before": "w = make_logger()"}, id="a function"),
        pytest.param({"imports": "from lib import Writers", "before": "w = Writers()"}, id="another name"),
        pytest.param({"imports": "from lib import setupLogger", "before": "w = setupLogger()"}, id="a function in mixed case"),
        pytest.param({"before": "w = Logger('a')"}, id="a name that comes from nowhere"),
    ],
)
def test_nothing_to_say(parts: dict[str, str]) -> None:
    assert found("DPM503", **parts) == []


@pytest.mark.parametrize(
    ("imports", "line", "new"),
    [
        pytest.param(
            "from torch.utils.tensorboard import SummaryWriter", "w = SummaryWriter('runs')", "w = ddp.main_only(SummaryWriter, 'runs')", id="positional"
        ),
        pytest.param("from torch.utils.tensorboard import SummaryWriter as S", "w = S(log_dir='r')", "w = ddp.main_only(S, log_dir='r')", id="alias, keyword"),
        pytest.param("import tensorboardX as tb", "w = tb.SummaryWriter()", "w = ddp.main_only(tb.SummaryWriter)", id="tensorboardX"),
        pytest.param(
            "import torch.utils.tensorboard",
            "w = torch.utils.tensorboard.SummaryWriter()",
            "w = ddp.main_only(torch.utils.tensorboard.SummaryWriter)",
            id="full name",
        ),
        pytest.param("import visdom", "w = visdom.Visdom()", "w = ddp.main_only(visdom.Visdom)", id="visdom"),
        pytest.param("from lib import Logger", "w = Logger('a')", "w = ddp.main_only(Logger, 'a')", id="a logger of another file"),
        pytest.param("import lib", "w = lib.ResultWriter('a')", "w = ddp.main_only(lib.ResultWriter, 'a')", id="a writer of another file"),
        pytest.param(
            "import importlib",
            "w = importlib.import_module('tensorboardX').SummaryWriter('r')",
            "w = ddp.main_only(importlib.import_module('tensorboardX').SummaryWriter, 'r')",
            id="a module imported by its name",
        ),
        pytest.param("from lib import *", "w = Logger('a')", "w = ddp.main_only(Logger, 'a')", id="star import"),
    ],
)
@pytest.mark.parametrize("module_level", [False, True], ids=["function", "module"])
def test_found_and_fixed(imports: str, line: str, new: str, module_level: bool) -> None:
    parts: dict[str, str | bool] = {"imports": imports, "before": line, "module_level": module_level}
    assert found("DPM503", **parts) == [line.removeprefix("w = ")]
    assert after(**parts) == [new]


def test_in_a_method() -> None:
    defs = "class T:\n    def __init__(self, d):\n        self.w = SummaryWriter(d)"
    assert after(imports="from torch.utils.tensorboard import SummaryWriter", defs=defs) == ["self.w = ddp.main_only(SummaryWriter, d)"]


def test_a_stream_of_the_process_is_replaced_on_rank_0() -> None:
    """Libraries ask sys.stdout for its encoding, which an object without effect does not have."""
    text = whole(imports="import sys\nfrom lib import Logger", before="sys.stdout = Logger('train.log')\nlog = sys.stderr = Logger('errors.log')")
    assert "    if ddp.is_main():\n        sys.stdout = Logger('train.log')\n" in text
    assert "log = sys.stderr = ddp.main_only(Logger, 'errors.log')" in text


_OWN = "class Curves(S):\n    def __init__(self, d):\n        super().__init__(d)\n        self.step = 0\n    def more(self):\n        self.step += 1\n        return self.step\n"
_S = "from tensorboardX import SummaryWriter as S"


@pytest.mark.parametrize(
    ("imports", "defs", "line", "new"),
    [
        pytest.param(_S, _OWN, "w = Curves('runs')", "w = ddp.main_only(Curves, 'runs')", id="a class of its own"),
        pytest.param(_S, _OWN + "class Mine(Curves):\n    pass", "w = Mine(d='r')", "w = ddp.main_only(Mine, d='r')", id="a class of that class, keyword"),
        pytest.param(
            "import torch.utils.tensorboard as tb",
            _OWN.replace("(S)", "(tb.SummaryWriter)"),
            "w = Curves('r')\nw.more()",
            "w = ddp.main_only(Curves, 'r')",
            id="full name",
        ),
    ],
)
@pytest.mark.parametrize("module_level", [False, True], ids=["function", "module"])
def test_a_writer_of_the_program(imports: str, defs: str, line: str, new: str, module_level: bool) -> None:
    assert after(imports=imports, defs=defs, before=line, module_level=module_level) == [new]


@pytest.mark.parametrize(
    ("defs", "line", "why"),
    [
        pytest.param(_OWN, "w = Curves('r')\nif w.step % 2 == 0:\n    pass", "its step (line", id="asked for a number"),
        pytest.param(
            _OWN.replace("(d)\n", "(d + str(len(os.listdir(os.path.join(d, str(len(os.listdir(d))))))))\n"),
            "w = Curves('r')",
            "make its path together",
            id="its path",
        ),
    ],
)
def test_a_writer_that_all_ranks_need(defs: str, line: str, why: str) -> None:
    told = hits("DPM503", imports=_S, defs=defs, before=line)
    assert [bool(f.edits) for f in told] == [False]
    assert why in told[0].message
