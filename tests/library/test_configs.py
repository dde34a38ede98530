"""Configurations are settings, and what starts a function starts it."""

from __future__ import annotations

import pytest

from dpmigrate.execution.values import Const, Setting
from tests.execution.paper import executed, held, lines, placed

BEFORE = """\
import hydra, click, typer, fire, time
from absl import app, flags
from yacs.config import CfgNode as CN
from easydict import EasyDict
from omegaconf import OmegaConf
from transformers import HfArgumentParser
import dataclasses
import wandb, mlflow
import dpmigrate_runtime as ddp
k = time.time()
"""
AT = BEFORE.count("\n")


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("@hydra.main(config_path='a')\ndef f(cfg):\n    print(cfg.lr)\nf()", 3),
        ("@hydra.main\ndef f(cfg):\n    print(cfg.lr)\nf()", 3),
        ("@click.command()\n@click.option('--lr')\ndef f(lr):\n    print(lr)\nf()", 4),
        ("@click.command\ndef f(lr):\n    print(lr)\nf()", 3),
        ("t = typer.Typer()\n@t.command()\ndef f(lr: float = 0.1):\n    print(lr)\nt()", 4),
        ("t = typer.Typer()\n@t.command\ndef f(lr):\n    print(lr)\nt()", 4),
        ("def f(lr=1):\n    print(lr)\ntyper.run(f)", 2),
        ("def f(lr=1):\n    if lr == 2:\n        print(lr)\nfire.Fire(f)", 3),
        ("def f(lr=1):\n    print(lr)\nfire.Fire({'train': f})", 2),
        ("def f(argv):\n    print(argv)\napp.run(f)", 2),
    ],
)
def test_the_function_is_called_with_settings(text: str, at: int) -> None:
    ex = executed(BEFORE + text)
    assert lines(ex, "print") == [AT + at]
    assert not ex.trace.missed


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("flags.DEFINE_integer('batch', 32, 'h')\nx = flags.FLAGS.batch", 32),
        ("c = CN()\nc.A = CN()\nc.A.LR = 0.1\nc.merge_from_file('a')\nx = c.A.LR", 0.1),
    ],
)
def test_what_the_user_may_choose_is_a_default(text: str, wanted: object) -> None:
    found = held(executed(BEFORE + text), "x")
    assert [a.default.value for a in found if isinstance(a, Setting) and a.default] == [wanted]
    assert not any(isinstance(a, Const) for a in found)


def test_both_arms_of_a_flag_are_taken() -> None:
    flag = "flags.DEFINE_bool('debug', False, 'h')\nif flags.FLAGS.debug:\n    print(1)"
    assert lines(executed(BEFORE + flag), "print") == [AT + 3]
    node = "c = CN()\nc.A = False\nc.merge_from_list([])\nif c.A:\n    print(1)"
    assert lines(executed(BEFORE + node), "print") == [AT + 5]
    run = "wandb.init()\nif wandb.config.debug:\n    print(1)\nelse:\n    print(2)"
    assert len(lines(executed(BEFORE + run), "print")) == 2


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("x = EasyDict({'lr': 0.1}).lr", "uniform"),
        ("c = CN()\nc.LR = k\nx = c.LR", "per rank"),
        ("c = CN()\nc.A = CN()\nc.A.B = k\nc.merge_from_file('a')\nx = c.A.B", "per rank"),
        ("x = OmegaConf.to_container(OmegaConf.create({'a': 1}))['a']", "uniform"),
        ("x = OmegaConf.create({'a': k}).a", "per rank"),
        ("r = wandb.init()\nx = r.id", "per rank"),
        ("wandb.init()\nx = wandb.run.name", "per rank"),
        ("wandb.init(config={'lr': 0.1})\nx = wandb.config.lr", "uniform"),
        ("wandb.init(config={'lr': k})\nx = wandb.config.lr", "per rank"),
        ("r = ddp.main_only(wandb.init, config={'lr': 0.1})\nx = r.config.lr", "per rank"),
        ("if ddp.is_main():\n    wandb.init()\nx = wandb.config.lr", "per rank"),
        ("with ddp.main_only(wandb.init) as r:\n    x = ddp.main_settings(r.config).lr", "uniform"),
        ("with mlflow.start_run() as r:\n    x = r.info.run_id", "per rank"),
        ("r = wandb.init()\nx = r.summary", "uniform"),
    ],
)
def test_where_a_setting_comes_from_says_how_it_lies(text: str, wanted: str) -> None:
    assert placed(executed(BEFORE + text), "x") == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("wandb.init(config={'lr': 0.1})\nx = wandb.config.lr", [0.1]),
        ("d = {'lr': 0.1}\nd['n'] = 3\nwith wandb.init(config=d) as r:\n    x = r.config.n", [3]),
        ("x = ddp.main_settings(wandb.init(config={'lr': 0.1}).config).lr", [0.1]),
        ("import argparse\np = argparse.ArgumentParser()\np.add_argument('--n', default=4)\nwandb.init(config=vars(p.parse_args()))\nx = wandb.config.n", [4]),
        # not known to be what it is given
        ("d = {'lr': 0.1}\nd.update(OmegaConf.load('a'))\nwandb.init(config=d)\nx = wandb.config.lr", []),
        ("wandb.init(config={'lr': 0.1})\nx = wandb.config.other", []),
        ("wandb.init()\nx = wandb.config.lr", []),
    ],
)
def test_the_settings_of_a_run_are_those_that_it_is_given_unless_a_sweep_chooses(text: str, wanted: list[object]) -> None:
    found = held(executed(BEFORE + text), "x")
    assert [a.default.value for a in found if isinstance(a, Setting) and a.default] == wanted
    assert not any(isinstance(a, Const) for a in found)


def test_a_parser_of_data_classes_makes_them() -> None:
    text = """\
@dataclasses.dataclass
class A:
    lr: float = 0.1
    def show(self):
        print(self.lr)
"""
    for more in ("a, = HfArgumentParser((A,)).parse_args_into_dataclasses()",
                 "a, = HfArgumentParser(A).parse_args_into_dataclasses()"):  # fmt: skip
        ex = executed(BEFORE + text + more + "\na.show()\nx = a.lr")
        assert lines(ex, "print") == [AT + 5]
        assert held(ex, "x") == (Setting(),)


def test_what_a_run_is_told_is_written() -> None:
    ex = executed(BEFORE + "r = wandb.init()\nr.log({'a': k})\nr['b'] = 1\nwandb.log({})")
    assert lines(ex, "write") == [AT + 2, AT + 3, AT + 4]


def test_a_configuration_does_not_hold_where_it_is_saved() -> None:
    text = "import time\nfrom omegaconf import OmegaConf\ncfg = OmegaConf.load('a.yaml')\nwith open(f'{time.time()}', 'w') as f:\n    OmegaConf.save(config=cfg, f=f)\nx = cfg.a\n"
    assert placed(executed(text), "x") == "uniform"


def test_a_command_sets_the_function_that_runs() -> None:
    text = (
        "import argparse\ndef fit(args):\n    print(args.lr)\ndef score(args):\n    print(2)\np = argparse.ArgumentParser()\ns = p.add_subparsers()\n"
        "a = s.add_parser('fit')\na.add_argument('--lr', default=0.1)\na.set_defaults(run=fit)\nb = s.add_parser('score')\nb.set_defaults(run=score)\n"
        "args = p.parse_args()\nargs.run(args)\n"
    )
    assert len(list(executed(text).trace.of("print"))) == 2
