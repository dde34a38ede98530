"""What each rank would do by itself in a result, and what a state or a scaler is given."""

from __future__ import annotations

import pytest

from dpmigrate.judge import before, devices, files, judged, replicas, scaling, wrapped
from tests.judge.test_decided import said
from tests.judge.test_invariants import RIGHT
from tests.judge.test_invariants import judged as of_text
from tests.judge.trained import result


def _told(invariant: str, **parts: str) -> list[str]:
    return [f.words for f in judged(result(**parts)).faults if f.invariant == invariant]


@pytest.mark.parametrize(
    ("last", "words"),
    [
        ("from torch.utils.tensorboard import SummaryWriter\nw = SummaryWriter('runs')", "every rank begins a run"),
        ("import os\nos.rename('a', 'b')", "every rank changes these files"),
        ("import os\nos.remove('a')", "every rank changes these files"),
        ("breakpoint()", "every rank waits for a line"),
        ("import sqlite3\nsqlite3.connect('a.db').cursor().execute('INSERT INTO t VALUES (1)')", "every rank writes this file"),
        ("import sqlite3\nwith sqlite3.connect('a.db') as c: c.commit()", "every rank writes this file"),
        ("import shelve\nshelve.open('a')['n'] = 1", "every rank writes this file"),
        ("import dbm\ndbm.open('a', flag='n')", "every rank writes this file"),
        ("import os\nos.write(os.open('a', os.O_WRONLY | os.O_CREAT), b'3')", "every rank writes this file"),
        ("torch.save([1, 2], 'a.pt')", "every rank writes this file"),
        ("import threading\nthreading.Thread(target=torch.save, args=([1, 2], input())).start()", "every rank writes this file"),
        ("import shutil, concurrent.futures as c\nc.ThreadPoolExecutor(1).submit(shutil.copy, 'a', 'b')", "every rank changes these files"),
        ("import multiprocessing as m\nm.Pool(2).apply_async(torch.save, ([1, 2], 'a.pt'))", "every rank writes this file"),
        ("import asyncio, shutil\nasyncio.run(asyncio.to_thread(shutil.copy, 'a', 'b'))", "every rank changes these files"),
        ("import asyncio, shutil\nasyncio.get_running_loop().run_in_executor(None, shutil.copy, 'a', 'b')", "every rank changes these files"),
        ("ddp.save(model, 'model.pt')", "the wrapper is saved here"),
        ("import os, time\nos.makedirs(f'run{time.time()}')", "by its clock"),
    ],
)
def test_each_rank_by_itself(last: str, words: str) -> None:
    assert any(words in w for w in _told(files.ALONE, last=last) + _told(files.NAME, last=last))
    alone = last.replace("\n", "\nif ddp.is_main():\n    ", 1) if "\n" in last else f"if ddp.is_main():\n    {last}"
    if not last.startswith("ddp.save"):
        assert not _told(files.ALONE, last=alone)


@pytest.mark.parametrize(
    "last",
    [
        "import sqlite3\nsqlite3.connect('a.db').execute('select n from t').fetchall()",
        "import sqlite3\nc = sqlite3.connect(':memory:')\nc.execute('create table t (n int)')\nc.commit()",
        "import sqlite3\nc = ddp.main_only(sqlite3.connect, 'a.db')\nc.cursor().execute('insert into t values (1)')\nc.commit()",
        "import shelve\nshelve.open('a', 'r')",
        "import dbm\ndbm.open('a')",
        "import os\nos.open('a', os.O_RDONLY)",
        "import concurrent.futures as c\nn = c.ThreadPoolExecutor(1).submit(max, 1, 2).result()\nopen(ddp.main_path('a'), 'w').write(str(n))",
        "import io\ntorch.save([1, 2], io.BytesIO())",
        "import threading\nthreading.Thread(target=ddp.save, args=([1, 2], 'a.pt')).start()",
    ],
)
def test_files_that_not_every_rank_writes(last: str) -> None:
    assert not _told(files.ALONE, last=last) + _told(files.NAME, last=last)


def test_a_model_that_is_found_by_name_is_no_tracker() -> None:
    """What makes a model may be any name of the file, and nobody means a tracker."""
    writer = "import os\nfrom torch.utils.tensorboard import SummaryWriter\nclass Net(nn.Linear):\n    pass\n"
    assert not _told(files.ALONE, last=f"{writer}other = globals()[os.environ['NET']](2, 2)")
    assert _told(files.ALONE, last=f"{writer}w = SummaryWriter('runs')")


def test_a_folder_by_a_clock_is_another_one_in_turn_as_well() -> None:
    last = "import os, time\nwith ddp.main_first():\n    os.makedirs({}, exist_ok=True)"
    assert any("by its clock" in w for w in _told(files.ALONE, last=last.format("f'run{time.time()}'")))
    assert not _told(files.ALONE, last=last.format("f'run{ddp.from_main(time.time())}'"))


def test_a_folder_of_each_process() -> None:
    assert not _told(files.ALONE, last="import os\nos.makedirs(f'scratch{os.getpid()}')")


def test_a_model_of_rank_0_is_saved() -> None:
    assert not _told(files.NAME, last="ddp.save(model.module, 'model.pt')")


_SAVED = "torch.save(net.state_dict(), 'a.pt')\nmodel.load_state_dict(torch.load('a.pt'))"


def test_files_of_the_program_before_keep_their_names() -> None:
    """The original has saved its DataParallel, so that files have names with ``module.``."""
    was = result(last=_SAVED.replace("net.", "model."))
    loads = "model.module.load_state_dict({}torch.load('a.pt', map_location=ddp.device()){})"
    for first, rest, missing in (("", "", True), ("ddp.clean_keys(", ")", False)):
        found = judged(result(epoch=loads.format(first, rest)), before(was)).faults
        assert any("clean_keys() is missing" in f.words for f in found) is missing


@pytest.mark.parametrize(
    ("turn", "words"),
    [
        ("with torch.autocast('cpu'):\n    model(x).mean().backward()", "round the backward"),
        ("with torch.autocast('cpu'):\n    optimizer.step()", "round the step"),
    ],
)
def test_half_precision(turn: str, words: str) -> None:
    assert any(words in w for w in _told(scaling.NAME, turn=turn))
    inside = "with torch.autocast('cpu'):\n    z = model(x).mean()\nz.backward()\noptimizer.step()"
    assert not any("autocast" in w for w in _told(scaling.NAME, turn=inside))


@pytest.mark.parametrize(("before_loop", "anew"), [(True, False), (False, True)])
def test_a_scaler_that_begins_again(before_loop: bool, anew: bool) -> None:
    made = "    scaler = torch.amp.GradScaler()\n"
    line = "    for epoch in range(4):\n"
    text = RIGHT.replace(line, made + line if before_loop else f"{line}    {made}", 1)
    text = text.replace("loss.backward()", "scaler.scale(loss).backward()").replace("optimizer.step()", "scaler.step(optimizer)\n            scaler.update()")
    assert any("made anew between the steps" in words for _, words in of_text(text)) is anew


_SCALED = "scaler.scale(model(x).mean()).backward()\nscaler.unscale_(optimizer)\n{}scaler.step(optimizer)\nscaler.update()"


def test_gradients_with_and_without_the_scale() -> None:
    epoch = "scaler = torch.amp.GradScaler()\n"
    again = _SCALED.format("scaler.scale(model(x).sum() / len(x)).backward()\n")
    assert any("comes after unscale_()" in w for w in _told(scaling.NAME, epoch=epoch, turn=again))
    assert not any("comes after unscale_()" in w for w in _told(scaling.NAME, epoch=epoch, turn=_SCALED.format("")))


def test_a_scaler_that_a_checkpoint_leaves_out() -> None:
    step = "scaler.scale(model(x).mean()).backward()\nscaler.step(optimizer)\nscaler.update()"
    saved = "ddp.save({{'o': optimizer.state_dict(){}}}, 'c.pt')"
    epoch = "scaler = torch.amp.GradScaler() if epoch == 0 else scaler\n"
    assert said("without its GradScaler", epoch=epoch, turn=step, end=saved.format(""))
    assert not said("without its GradScaler", epoch=epoch, turn=step, end=saved.format(", 's': scaler.state_dict()"))


def test_a_file_that_every_rank_loads_to_gpu_0() -> None:
    assert said("puts on GPU 0 what was saved", last="state = torch.load('a.pt')")
    assert not said("puts on GPU 0 what was saved", last="state = torch.load('a.pt', map_location=ddp.device())")


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("net.load_state_dict(torch.load('a.pt'))", True),
        ("state = torch.load('a.pt')\noptimizer.load_state_dict(state['optimizer'])", True),
        ("net.load_state_dict(ddp.clean_keys(torch.load('a.pt')))", True),
        ("net.load_state_dict(ddp.clean_keys(torch.load('a.pt')['net']))", True),
        ("net.load_state_dict(torch.load('a.pt', map_location='cpu'))", False),
        ("rows = torch.load('rows.pt')\nnet.load_state_dict(torch.load('a.pt', map_location='cpu')['net'])", False),
    ],
)
def test_a_state_that_every_rank_loads_to_gpu_0(text: str, wrong: bool) -> None:
    found = [f for f in judged(result(epoch=text)).faults if f.invariant == devices.NAME]
    assert bool(found) is wrong, found


@pytest.mark.parametrize(("blocks", "told"), [("", True), (", blocks=True", False)])
def test_rows_in_the_order_of_the_data(blocks: str, told: bool) -> None:
    end = f"rows = []\nfor x, y in ddp.shard(val_loader{blocks}):\n    rows.append(model.module(x).detach())\nrows = ddp.gather_all(torch.cat(rows))"
    found = [f for f in judged(result(end=end)).faults if "in the order in which the ranks took turns" in f.words]
    assert bool(found) is told


def test_a_parameter_that_some_ranks_write() -> None:
    write = "{}:\n    with torch.no_grad():\n        net.weight.fill_(0.5)"
    assert any("some ranks write into a parameter" in w for w in _told(replicas.NAME, turn=write.format("if x.mean() > 0")))
    assert not _told(replicas.NAME, turn=write.format("if epoch > 2"))


@pytest.mark.parametrize("read", ["model(x).module", "model[0]", "total.module", "(x, y).module"])
def test_what_is_read_of_what_does_not_have_it(read: str) -> None:
    assert _told(wrapped.NAME, turn=f"z = {read}")
    assert not _told(wrapped.NAME, turn="z = model.module.weight")


def test_a_state_is_no_file() -> None:
    text = "state = torch.load({})\nnet.load_state_dict(state)"
    wrong = result(last=text.format("ddp.clean_keys('net.pt')"))
    assert "a state is loaded here, and no file that holds one" in {f.words for f in judged(wrong).faults}
    right = result(last=text.format("'net.pt'"))
    assert "a state is loaded here, and no file that holds one" not in {f.words for f in judged(right).faults}


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("wandb.log({'loss': 1})", True),
        ("if ddp.is_main():\n    wandb.log({'loss': 1})", False),
        ("ddp.main_only(wandb.log, {'loss': 1})", False),
        ("wandb.init(project='demo')", True),
        ("if ddp.is_main():\n    run = wandb.init(project='demo')", False),
        ("run = wandb.util.generate_id()", False),
        ("torchvision.datasets.MNIST('data', download=True)", True),
        ("with ddp.main_first():\n    torchvision.datasets.MNIST('data', download=True)", False),
        ("torchvision.datasets.MNIST('data', download=False)", False),
    ],
)
def test_trackers_and_downloads(text: str, wrong: bool) -> None:
    found = [f for f in judged(result(epoch=f"import torchvision, wandb\n{text}")).faults if f.invariant == files.ALONE]
    assert bool([f for f in found if "every rank" in f.words]) is wrong, found
