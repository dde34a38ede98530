"""The process group is set up by what is started, and files are written by one rank."""

from __future__ import annotations

import pytest

from dpmigrate.result.started import not_set_up, set_up_at_import, trained_apart, unguarded_saves
from tests.result.checked import AFTER, BEFORE, Check, Edits, edited, migrated, mutated

_SAVE = '        ddp.save(net.module.state_dict(), "net.pt")\n'
_PLAIN = '        torch.save(net.module.state_dict(), "net.pt")\n'
_ENTRY = 'if __name__ == "__main__":\n    ddp.setup()\n    main()\n    ddp.cleanup()\n'


@pytest.mark.parametrize("check", [set_up_at_import, not_set_up, unguarded_saves])
def test_a_right_result(check: Check) -> None:
    assert mutated(check, []) == []


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param("ddp.setup()\nmain()\nddp.cleanup()\n", id="without a guard"),
        pytest.param('ddp.setup()\nif __name__ == "__main__":\n    main()\n', id="before the guard"),
        pytest.param("def run():\n    ddp.setup()\n    main()\n\n\nrun()\n", id="in a function"),
        pytest.param("import shop\n\nddp.setup()\nshop.run(main)\n", id="handed on"),
    ],
)
def test_what_is_started(entry: str) -> None:
    assert mutated(set_up_at_import, [(_ENTRY, entry)]) == []


def test_a_file_that_starts_nothing() -> None:
    both: Edits = [('if __name__ == "__main__":', "if True:")]
    told = "train.py:28: setup() would run whenever this file is imported: nothing in it starts the training; give the script that does"
    edits: Edits = [("if True:\n    ddp.setup()\n    main()\n    ddp.cleanup()\n", "ddp.setup()\nprint('ready')\nddp.cleanup()\n")]
    assert mutated(set_up_at_import, edits, both) == [told]


def test_a_module_of_the_program() -> None:
    before = {"lib": edited(BEFORE, [('if __name__ == "__main__":\n    main()\n', "")]), "train": "import lib\nlib.main()\n"}
    library = edited(AFTER, [(_ENTRY, "")])
    right = {"lib": library, "train": "import lib\nimport dpmigrate_runtime as ddp\nddp.setup()\nlib.main()\nddp.cleanup()\n"}
    assert [*set_up_at_import(migrated(before, right))] == []
    wrong = {"lib": library + "ddp.setup()\n", "train": "import lib\nimport dpmigrate_runtime as ddp\nlib.main()\nddp.cleanup()\n"}
    (fault,) = set_up_at_import(migrated(before, wrong))
    assert (fault.place, fault.words) == ("lib.py:27", "setup() would run when this file is imported, and not in train.py, which is started")


@pytest.mark.parametrize(("word", "line"), [("setup", "    ddp.setup()\n"), ("cleanup", "    ddp.cleanup()\n")])
def test_no_set_up_or_no_end(word: str, line: str) -> None:
    assert mutated(not_set_up, [(line, "")]) == [f"train.py:16: the model would be wrapped here, but nothing calls {word}()"]


@pytest.mark.parametrize(
    ("edits", "both"),
    [
        pytest.param([(_SAVE, f"        if ddp.is_main():\n    {_PLAIN}")], [], id="guarded"),
        pytest.param([(_SAVE, f"        if epoch and ddp.rank() == 0:\n    {_PLAIN}")], [], id="by the rank"),
        pytest.param([(_SAVE, '        ddp.is_main() and torch.save(net, "net.pt")\n')], [], id="and"),
        pytest.param([(_SAVE, '        torch.save(net, ddp.main_path("net.pt"))\n')], [], id="another path"),
        pytest.param([("def main", "def keep(net):\n    torch.save(net, 'net.pt')\n\n\ndef main"), (_SAVE, "        if ddp.is_main():\n            keep(net)\n")], [], id="called under a guard"),
        pytest.param([("def main", "def keep(net):\n    torch.save(net, 'net.pt')\n\n\ndef main")], [], id="called by nobody"),
    ],
)  # fmt: skip
def test_one_rank_writes(edits: Edits, both: Edits) -> None:
    assert mutated(unguarded_saves, edits, both) == []


@pytest.mark.parametrize(
    ("edits", "words"),
    [
        pytest.param([(_SAVE, _PLAIN)], "train.py:25: every rank would write the file: torch.save(net.module.state_dict(), 'net.pt')", id="no guard"),
        pytest.param([(_SAVE, f"        if epoch:\n    {_PLAIN}")], "train.py:25: every rank would write the file: torch.save(net.module.state_dict(), 'net.pt')", id="another test"),
    ],
)  # fmt: skip
def test_every_rank_writes(edits: Edits, words: str) -> None:
    assert mutated(unguarded_saves, edits) == [words]


_RUNS = """
class Training(Thread):
    def run(self):
        main()
"""


@pytest.mark.parametrize(
    ("start", "told"),
    [
        pytest.param("Thread(target=main).start()", "the training is started in a thread of its own", id="target"),
        pytest.param("training = Training()\n    training.start()", "Training.run trains in a thread of its own", id="run"),
        pytest.param("main()\n    Thread(target=print).start()", "", id="another thread"),
    ],
)
def test_training_in_a_thread(start: str, told: str) -> None:
    """The GPU that setup() has chosen is the main thread's."""
    runs = _RUNS if "Training" in start else ""
    both: Edits = [("    main()\n", f"    {start}\n"), ('if __name__ == "__main__":', f'from threading import Thread\n{runs}\nif __name__ == "__main__":')]
    found = mutated(trained_apart, [], both)
    assert [told in words for words in found] == ([True] if told else [])
