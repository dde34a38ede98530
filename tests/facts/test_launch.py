"""Who starts the processes of a program: what shows that it runs on several already, and how it is started then."""

from __future__ import annotations

import pytest

from tests.pipeline import script

_TOP = """
import argparse, os
import torch
import torch.nn as nn
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.utils.data import DataLoader
"""
_TRAIN = """
model = nn.Linear(3, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in DataLoader(data):
    model(x).sum().backward()
    optimizer.step()
"""
_GROUP = "dist.init_process_group('nccl')\n"


def _distributed(text: str) -> str:
    return script(_TOP + text + _TRAIN).distributed


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="torch.distributed imported and not used"),
        pytest.param("def init():\n    dist.init_process_group('nccl')", id="in a function that nothing calls"),
        pytest.param("def reduced(x):\n    dist.all_reduce(x)\n    return x", id="sums in a function that nothing calls"),
        pytest.param("def init():\n    import deepspeed\n    deepspeed.initialize()", id="a framework in a function that nothing calls"),
        pytest.param("from torch.nn.parallel import DistributedDataParallel as DDP", id="an import that nothing uses"),
        pytest.param("import deepspeed\nimport horovod.torch as hvd", id="frameworks that nothing uses"),
        pytest.param("from torch.utils.data.distributed import DistributedSampler", id="a sampler that nothing uses"),
        pytest.param("from .deepspeed import go\ngo()", id="a module of the program's own"),
        pytest.param("from deepspeed import *", id="a star import of which nothing is used"),
        pytest.param("from deepspeed import *\ninit = 3\nprint(init)", id="a name of the program's own beside a star import"),
        pytest.param("from pytorch_lightning.metrics import Accuracy\nm = Accuracy()", id="a metric of Lightning"),
        pytest.param("import pytorch_lightning as pl\npl.seed_everything(1)", id="a seed by Lightning"),
        pytest.param("import lightning.pytorch as pl\nclass Data(pl.LightningDataModule):\n    pass\nd = Data()", id="data of Lightning"),
        pytest.param("from ignite.metrics import PSNR\nm = PSNR(data_range=1.0)", id="a metric of Ignite"),
        pytest.param("import ignite.metrics\nm = ignite.metrics.SSIM(1.0)", id="a metric of Ignite, by attribute"),
        pytest.param("from transformers import AutoModel, TrainingArguments\nm = AutoModel.from_pretrained('a')", id="a model of Hugging Face"),
        pytest.param("from accelerate.utils import set_seed\nset_seed(1)", id="a seed by Accelerate"),
        pytest.param("import accelerate\nprint(accelerate.__version__)", id="a version"),
        pytest.param("from deepspeed.ops.adam import FusedAdam\no = FusedAdam([])", id="an optimizer of DeepSpeed"),
        pytest.param("from fastai.vision.all import *\nf = untar_data('a')", id="data of fastai, by star"),
        pytest.param("from catalyst import metrics\nm = metrics.accuracy(1, 2)", id="a metric of Catalyst"),
        pytest.param("import pytorch_lightning as pl\ndef fit(t: pl.Trainer) -> pl.Trainer:\n    return t\nt: pl.Trainer = fit(1)", id="a type"),
        pytest.param("import pytorch_lightning as pl\nif isinstance(n, (int, pl.LightningModule)):\n    print(1)", id="a question for the class"),
        pytest.param("from torch.nn.parallel import DistributedDataParallel as DDP\nif isinstance(n, DDP):\n    n = n.module", id="a question for the wrapper"),
        pytest.param("from torch.nn.parallel import DistributedDataParallel as DDP\nif type(n) in (list, DDP):\n    n = n.module", id="a question for its type"),
        pytest.param("import accelerate\ntry:\n    run()\nexcept accelerate.state.PartialState:\n    pass", id="what is caught"),
        pytest.param("def main_rank():\n    return not dist.is_initialized() or dist.get_rank() == 0", id="a helper that asks whether there is a group"),
        pytest.param("def wait():\n    if dist.is_available() and dist.is_initialized():\n        dist.barrier()", id="another"),
        pytest.param("from transformers import *\nt = TaggingTrainer(model)", id="a trainer of a name that Hugging Face does not have"),
    ],
)
def test_runs_on_one_process(text: str) -> None:
    assert _distributed(text) == ""


@pytest.mark.parametrize(
    ("text", "word"),
    [
        pytest.param(_GROUP, "torch.distributed", id="a process group"),
        pytest.param("from torch.nn.parallel import DistributedDataParallel as DDP\nm = DDP(n)", "DistributedDataParallel", id="the wrapper, by alias"),
        pytest.param("m = nn.parallel.DistributedDataParallel(n)", "DistributedDataParallel", id="the wrapper, by attribute"),
        pytest.param("import horovod.torch as hvd\nhvd.init()", "Horovod", id="a framework"),
        pytest.param("from deepspeed import *\nengine = initialize(model)", "DeepSpeed", id="a framework by star"),
        pytest.param("import pytorch_lightning as pl\nt = pl.Trainer()", "Lightning", id="its trainer"),
        pytest.param("import pytorch_lightning as pl\nt = pl.Trainer.from_argparse_args(args)", "Lightning", id="its trainer, by a class method"),
        pytest.param("import lightning\nclass Net(lightning.LightningModule):\n    pass", "Lightning", id="a class that derives from its module"),
        pytest.param("from lightning.fabric import Fabric\nf = Fabric(devices=2)", "Lightning", id="Fabric"),
        pytest.param("from pytorch_lightning.metrics import Accuracy\nfrom pytorch_lightning import Trainer\nt = Trainer", "Lightning", id="handed on"),
        pytest.param("from ignite.engine import Engine, Events\ne = Engine(step)", "Ignite", id="an engine"),
        pytest.param("import ignite.distributed as idist\nidist.initialize('nccl')", "Ignite", id="processes of Ignite"),
        pytest.param("from accelerate import Accelerator\na = Accelerator()", "Accelerate", id="an accelerator"),
        pytest.param("from accelerate.state import PartialState\nif isinstance(1, int) and PartialState().num_processes > 1:\n    pass", "Accelerate", id="a state"),
        pytest.param("from transformers import *\nt = Trainer(model)", "the Hugging Face Trainer", id="a trainer of Hugging Face, by star"),
        pytest.param("from transformers import Seq2SeqTrainer\nt = Seq2SeqTrainer(model)", "the Hugging Face Trainer", id="a trainer of Hugging Face"),
        pytest.param("from fastai.vision.all import *\nl = vision_learner(d, resnet18)", "fastai", id="a learner, by star"),
        pytest.param("from catalyst import dl\nclass R(dl.Runner):\n    pass", "Catalyst", id="a runner"),
        pytest.param("import horovod.torch as hvd\nprint(isinstance(hvd.rank(), int))", "Horovod", id="an argument of isinstance"),
        pytest.param(
            "from lib import init\ninit()\nif dist.get_rank() == 0:\n    print(1)",
            "a process group that code outside of this program sets up",
            id="the rank is asked",
        ),
        pytest.param(
            "from torch.utils.data import DistributedSampler\ns = DistributedSampler(data)",
            "a process group that code outside of this program sets up",
            id="a sampler",
        ),
        pytest.param(
            "def mean(x):\n    if dist.is_initialized():\n        dist.all_reduce(x)\nmean(1)",
            "a process group that code outside of this program sets up",
            id="numbers that are summed",
        ),
    ],
)
def test_runs_on_several(text: str, word: str) -> None:
    assert _distributed(text).startswith(f"already uses {word} (line ")


@pytest.mark.parametrize(
    ("text", "start"),
    [
        pytest.param("", "", id="nothing special"),
        pytest.param("mp.spawn(main, nprocs=2)", "start it with python, not torchrun: it starts its processes itself (line 9)", id="spawn"),
        pytest.param(
            "if __name__ == '__main__':\n    mp.spawn(main, nprocs=2)",
            "start it with python, not torchrun: it starts its processes itself (line 10)",
            id="guard",
        ),
        pytest.param(
            "if args.many:\n    mp.spawn(main)\nelse:\n    main(0)",
            "start it with python, not torchrun: it starts its processes itself (line 10 where args.many)",
            id="under a test",
        ),
        pytest.param(
            "if args.one:\n    main(0)\nelse:\n    mp.spawn(main)",
            "start it with python, not torchrun: it starts its processes itself (line 12)",
            id="in the other branch",
        ),
        pytest.param(
            "p = argparse.ArgumentParser()\np.add_argument('--local_rank', type=int, default=-1)",
            "torchrun gives no --local_rank (line 10), so every process would take it for -1: "
            'let the option have default=int(os.environ.get("LOCAL_RANK", -1))',
            id="an option",
        ),
        pytest.param(
            "import click\n@click.command()\n@click.option('--local-rank', type=int)\ndef main(local_rank):\n    pass",
            'torchrun gives no --local-rank (line 11), so every process would take it for 0: let the option have default=int(os.environ.get("LOCAL_RANK", 0))',
            id="an option of click",
        ),
        pytest.param(
            "p = argparse.ArgumentParser()\np.add_argument('--local_rank', default=int(os.environ.get('LOCAL_RANK', 0)))",
            "",
            id="that reads what torchrun says",
        ),
        pytest.param(
            "def prepare(n):\n    open(str(n))\nif args.fast:\n    for n in range(3):\n        mp.Process(target=prepare, args=(n,)).start()",
            "",
            id="processes that prepare files",
        ),
        pytest.param("def prepare(n):\n    open(str(n))\nmp.Process(None, prepare).start()", "", id="positional"),
        pytest.param(
            "def work(n):\n    join()\ndef join():\n    dist.init_process_group('gloo')\nmp.Process(target=work).start()",
            "start it with python, not torchrun: it starts its processes itself (line 13)",
            id="processes that join a group",
        ),
        pytest.param(
            "def work(n):\n    loss.backward()\nmp.Process(target=work).start()",
            "start it with python, not torchrun: it starts its processes itself (line 11)",
            id="processes that train",
        ),
        pytest.param("p = argparse.ArgumentParser()\np.add_argument('--lr')\np.add_argument(*names)\np.add_argument(name)", "", id="other options"),
    ],
)
def test_how_it_is_started(text: str, start: str) -> None:
    found = script(_TOP + _GROUP + text + _TRAIN)
    assert found.own_start == start
    assert found.exempt == "already uses torch.distributed (line 8)" + (f"; {start}" if start else "")
