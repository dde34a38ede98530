"""DPM703: training that the program starts in other processes or threads, or lets a tuner start."""

from __future__ import annotations

import pytest

from dpmigrate.model import Severity
from tests.rules.program import of, pointed, program, refused

#: a function that trains, beside the usual program
_WORK = """\
def work(trial=None):
    net = Net()
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for x, y in DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,))), batch_size=16):
        F.cross_entropy(net(x), y).backward()
        opt.step()


class Runner:
    def run(self):
        work()


def look():
    return 3
"""


def _refused(imports: str, call: str, *, module_level: bool = False, defs: str = "") -> list[str]:
    return refused("DPM703", imports=imports, defs=_WORK + defs, before=call, module_level=module_level)


@pytest.mark.parametrize(
    ("imports", "line"),
    [
        pytest.param("", "work()", id="called"),
        pytest.param("import lib", "lib.spawn(work)\nlib.Process(target=work)", id="another library's"),
        pytest.param("from absl import app", "app.run(work)", id="a framework that starts the program"),
        pytest.param("import threading", "threading.Thread(target=look).start()", id="a thread that does not train"),
        pytest.param("import multiprocessing", "multiprocessing.Pool(2).map(look, [1, 2])", id="a pool that does not train"),
        pytest.param("import wandb", "wandb.agent('a', function=look)", id="a tuner that does not train"),
        pytest.param("", "list(map(work, [1]))", id="the builtin map"),
        pytest.param("", "model.apply(lambda m: None)", id="apply of a model"),
        pytest.param("import functools", "print('mp.spawn(work)')  # mp.spawn(work)", id="in a string and a comment"),
        pytest.param("import ray", "@ray.remote\ndef fetch():\n    return 3", id="a remote function that does not train"),
        pytest.param("import functools", "@functools.cache\ndef more():\n    work()", id="another decorator"),
    ],
)
def test_nothing_to_say(imports: str, line: str) -> None:
    assert of("DPM703", program(imports=imports, defs=_WORK, before=line)) == []


@pytest.mark.parametrize(
    ("imports", "call"),
    [
        pytest.param("import torch.multiprocessing as mp", "mp.spawn(work, nprocs=2)", id="spawn"),
        pytest.param("import torch.multiprocessing as mp", "mp.spawn(fn=look, nprocs=2)", id="spawn of whatever"),
        pytest.param("from torch.multiprocessing import start_processes as go", "go(work, nprocs=2)", id="from-import with alias"),
        pytest.param("from multiprocessing import Process", "Process(target=print)", id="Process"),
        pytest.param("import multiprocessing as mp\nctx = mp.get_context('spawn')", "ctx.Process(target=work)", id="Process of a context"),
        pytest.param("import multiprocessing as mp", "mp.Pool(2).map(work, [1, 2])", id="a pool"),
        pytest.param("from concurrent.futures import ProcessPoolExecutor", "ProcessPoolExecutor(2).submit(Runner().run)", id="an executor, a method"),
        pytest.param("import joblib", "joblib.delayed(work)", id="joblib"),
        pytest.param("import threading", "threading.Thread(target=work, daemon=True)", id="a thread"),
        pytest.param("import optuna\nstudy = optuna.create_study()", "study.optimize(work, n_trials=3)", id="optuna"),
        pytest.param("import optuna\nstudy = optuna.create_study()", "study.optimize(lambda t: work(t), n_trials=3)", id="a lambda"),
        pytest.param("import wandb", "wandb.agent('a', function=work)", id="a sweep"),
        pytest.param("import hyperopt, functools", "hyperopt.fmin(functools.partial(work, 3), {})", id="hyperopt, partial"),
        pytest.param("from ray import tune", "tune.run(work)", id="ray"),
    ],
)
@pytest.mark.parametrize("module_level", [False, True], ids=["function", "module"])
def test_refused(imports: str, call: str, module_level: bool) -> None:
    assert _refused(imports, f"z = {call}", module_level=module_level) == [call]


@pytest.mark.parametrize("decorator", ["ray.remote", "ray.remote(num_gpus=1)"])
def test_remote_functions(decorator: str) -> None:
    assert _refused("import ray", "more.remote()", defs=f"\n\n@{decorator}\ndef more():\n    work()") == [decorator]


def test_the_reason_names_what_starts_it() -> None:
    text = program(imports="import wandb, threading", defs=_WORK, before="wandb.agent('a', work)\nthreading.Thread(target=work)")
    tuner, thread = of("DPM703", text)
    assert pointed(text, tuner).startswith("wandb.agent") and "different settings" in tuner.message and "for each trial" in tuner.advice
    assert "thread" in thread.message and thread.severity is Severity.BLOCKER
