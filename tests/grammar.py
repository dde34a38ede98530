"""A grammar of training programs: one number makes one program, the same on every machine.

The programs are small and compile; they are not meant to be sensible. What people write is put together at random: wraps, loaders, loops, losses, helpers,
classes, and the odd syntax round them, in one file or two.
"""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from textwrap import indent

_ODD = [
    "def _cached(f):\n    memo = {}\n    def inner(*a, **k):\n        nonlocal memo\n        return memo.setdefault(str((a, k)), f(*a, **k))\n    return inner\n@_cached\ndef _scale(x, /, *, by: float = 1.0) -> float:\n    return x * by",
    "async def _later(*xs):\n    async with _lock() as l:\n        async for x in l:\n            await x\n    return [y async for y in l if (z := y)]",
    "def _kind(b):\n    match b:\n        case {'x': x, **rest} if rest:\n            return x\n        case [x, *_] | (x, _):\n            return x\n        case str() as s:\n            return s\n        case _:\n            return None",
    "class _Meter:\n    __slots__ = ('sum', 'n')\n    def __init__(self): self.sum, self.n = 0., 0\n    def update(self, v, n=1): self.sum += v * n; self.n += n\n    @property\n    def avg(self): return self.sum / max(self.n, 1)",
    "größe = lambda *a, **k: (len(a), *k.values())\nñ: 'int' = größe(1, 2, b=3)[0]",
    "_counter = 0\ndef _count():\n    global _counter\n    _counter += 1; return _counter",
    "try:\n    import fancy_library\nexcept ImportError: fancy_library = None\nelse: pass\nfinally: del sys",
    "if (n := len(sys.argv)) > 99: print(f'{n!r:>{n}} {\"many\" if n else {1: 2}[1]}'); sys.exit(1)",
    "_table = {k: [i for i in range(j) if i % 2] for k, j in zip('abc', (1, 2, 3))} | {**{}}\nassert (not _table or \\\n        len(_table))",
    "def _gen(it):\n    yield from (x for x in it)\n    received = yield\n    return received",
    "from contextlib import contextmanager\n@contextmanager\ndef _timer(name: str = ''):\n    try:\n        yield name\n    finally:\n        print(name, end='')",
    "with open(os.devnull) as _f, open(os.devnull) as _g: _lines = [*_f, *_g]",
    "x = y = z = ...\n(a, *b), c = (1, 2, 3), 4; a, b = b, a\ndel x, (y, z)",
    "print('''a\n  text\\\n over lines''', r'\\d', b'\\xff', u'é', sep=\"\" '')",
    "for _i in range(2):\n    if _i: continue\n    break\nelse:\n    pass",
    "class _Config(dict):\n    lr: float = 0.1; epochs: int = 2\n    def __getattr__(self, k): return self[k] if k in self else None",
    "import functools as ft, operator as op\n_total = ft.reduce(op.add, map(lambda x, y=1: x @ y if 0 else x, [1]), 0)",
    "def _nested():\n    def a():\n        def b(): return lambda: b\n        return b\n    return a()()",
]
_ODD.append(_GENERIC := "type _Pair[T] = tuple[T, T]\ndef _first[T: int](p: _Pair[T]) -> T: return p[0]\nclass _Box[T]:\n    pass")


class _Grammar:
    """The random choices of one program."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.net = self.one("net", "model", "netz", "netG")
        self.loader = self.one("loader", "train_loader", "data", "dl")
        self.criterion = self.one("criterion", "loss_fn", "crit")
        self.device = self.one("device", "'cuda'", "'cuda:0'", "0")
        self.size = self.one("8", "args.batch_size", "BATCH", "2 * BATCH")
        self.epochs = self.one("3", "args.epochs", "EPOCHS")
        self.regress = self.may(0.3)
        self.owner = ""  # "self." in a trainer

    def one(self, *of: str) -> str:
        return self.draw.choice(of)

    def may(self, share: float = 0.5) -> bool:
        return self.draw.random() < share

    def some(self, share: float, *of: str) -> str:
        """A choice, or nothing."""
        return self.one(*of) if self.may(share) else ""

    # ------------------------------------------------------------------ parts
    def imports(self) -> str:
        lines = ["import torch", "import os, sys", self.one("import torch.nn as nn", "from torch import nn"), "import torch.nn.functional as F"]
        lines += [self.one("from torch.utils.data import DataLoader, Dataset, TensorDataset", "from torch.utils.data import (\n    DataLoader, Dataset,\n    TensorDataset,\n)")]
        lines += [x for x in ("import numpy as np", "import random", "from tqdm import tqdm", "from torch.nn import DataParallel", "import logging", "import time, math") if self.may(0.7)]
        self.draw.shuffle(lines)
        first = self.some(0.2, '"""Trains."""', "#!/usr/bin/env python\n# -*- coding: utf-8 -*-") + "\n" + self.some(0.2, "from __future__ import annotations")
        return "\n".join([first.strip("\n"), *lines]).strip("\n")

    def settings(self) -> str:
        if self.may():
            bare = "class args: batch_size = 8; epochs = 2; lr = 0.1"
        else:
            bare = (
                "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--batch-size', type=int, default=8)\n"
                "parser.add_argument('--epochs', type=int, default=2)\nparser.add_argument('--lr', default=0.1, type=float)\nargs = parser.parse_args()"
            )
        device = self.one("torch.device('cuda')", "torch.device('cuda' if torch.cuda.is_available() else 'cpu')", "'cuda'")
        return f"{bare}\nBATCH, EPOCHS = 8, 2\ndevice = {device}"

    def network(self) -> str:
        norm = self.one("nn.BatchNorm1d(8)", "nn.ReLU()", "nn.Dropout(0.1)", "nn.LayerNorm(8)")
        out = "1" if self.regress else "2"
        buffer = self.some(0.2, "        self.register_buffer('seen', torch.zeros(1))\n")
        forward = self.one("return self.body(x)", "h = self.body(x); return h", "return self.head(self.body[0](x))" if self.may(0.3) else "return self.body(x)")
        return (
            f"class Net(nn.Module):\n    def __init__(self, width: int = 8):\n        {self.one('super().__init__()', 'super(Net, self).__init__()')}\n"
            f"        self.body = nn.Sequential(nn.Linear(4, width), {norm}, nn.Linear(width, {out}))\n        self.head = nn.Linear(8, {out})\n"
            f"{buffer}    def forward(self, x, *extra):\n        {forward}"
        )

    def dataset(self) -> str:
        target = "torch.randn(64, 1)" if self.regress else "torch.randint(0, 2, (64,))"
        made = f"TensorDataset(torch.randn(64, 4), {target})"
        own = (
            "class Data(Dataset):\n    def __init__(self, n=64): self.x, self.y = torch.randn(n, 4), " + target.replace("64", "n") + "\n"
            "    def __len__(self): return len(self.x)\n    def __getitem__(self, i):\n        return self.x[i], self.y[i]\ndataset = Data()"
        )
        return self.one(f"dataset = {made}", own, f"dataset = torch.utils.data.Subset({made}, range(32))", f"dataset = [(x, y) for x, y in {made}]")

    def loaders(self) -> str:
        extra = self.some(0.5, ", num_workers=2", ", drop_last=True", ", pin_memory=True, num_workers=4", ", collate_fn=lambda b: torch.utils.data.default_collate(b)", ", generator=torch.Generator()")
        shuffle = self.one("shuffle=True", "shuffle=False", "shuffle=not 0", "sampler=torch.utils.data.RandomSampler(dataset)")
        made = f"{self.one('DataLoader', 'torch.utils.data.DataLoader')}(dataset, batch_size={self.size}, {shuffle}{extra})"
        name = self.owner + self.loader
        plain = f"{name} = {made}"
        forms = [
            plain,
            plain,
            f"def get_loader(ds=dataset, **kw):\n    return {made.replace('dataset', 'ds', 1)}\n{name} = get_loader()",
            f"kwargs = {{'num_workers': 1, 'pin_memory': True}} if torch.cuda.is_available() else {{}}\n{name} = DataLoader(dataset, {self.size}, shuffle=True, **kwargs)",
            f"loaders = {{'train': {made}, 'val': DataLoader(dataset, {self.size})}}\n{name} = loaders['train']",
            f"{name}, val_loader = {made}, DataLoader(dataset, batch_size=16)",
            f"{name}, val_loader = [DataLoader(d, batch_size={self.size}, shuffle=s) for d, s in ((dataset, True), (dataset, False))]",
            f"if args.epochs: {name} = {made}\nelse: {name} = None",
            f"{name} = torch.randn(64, 4).split({self.size})" if self.may(0.2) else plain,
        ]
        return self.draw.choice(forms)

    def model(self) -> str:
        name = self.owner + self.net
        bare = self.one("Net()", "Net(width=8)", "nn.Linear(4, 1)" if self.regress else "nn.Linear(4, 2)")
        wrap = self.one("nn.DataParallel", "torch.nn.DataParallel", "nn.parallel.DataParallel")
        forms = [
            f"{name} = {wrap}({bare}).cuda()",
            f"{name} = {bare}.to(device)\n{name} = {wrap}({name})",
            f"{name} = {bare}\nif torch.cuda.device_count() > 1:\n    print('several')\n    {name} = {wrap}({name})\n{name}.to(device)",
            f"{name} = {bare}.cuda()",
            f"{name} = {bare}\n{name}.to(device); {name}.train()",
            f"{name} = {wrap}({bare}, device_ids=[0, 1]).cuda()",
            f"{name} = {wrap}({bare}, list(range(torch.cuda.device_count()))).to({self.device})",
            f"(builder := lambda: {wrap}({bare}))\n{name} = builder().to(device)",
            f"def build(*, parallel: bool = True):\n    m = {bare}.cuda()\n    return {wrap}(m) if parallel else m\n{name} = build()",
            f"{name} = {bare}.cuda() if torch.cuda.is_available() else {bare}",
        ]
        resume = self.some(0.15, f"\nif os.path.exists('a.pt'):\n    {name}.load_state_dict(torch.load('a.pt'))")
        return self.draw.choice(forms) + resume

    def optimizer(self) -> str:
        name = self.owner + self.net
        params = self.one(f"{name}.parameters()", f"{name}.parameters()", f"[p for p in {name}.parameters() if p.requires_grad]", f"filter(lambda p: p.requires_grad, {name}.parameters())", f"[{{'params': {name}.parameters(), 'lr': 0.1}}]")
        made = self.one("torch.optim.SGD({}, lr=0.1, momentum=0.9)", "torch.optim.Adam({}, args.lr)", "torch.optim.AdamW({}, lr=1e-3)", "torch.optim.RMSprop({})").format(params)
        schedule = self.some(0.4, f"\n{self.owner}scheduler = torch.optim.lr_scheduler.StepLR({self.owner}optimizer, 1)", f"\n{self.owner}scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau({self.owner}optimizer)")
        self.schedules = bool(schedule)
        return f"{self.owner}optimizer = {made}{schedule}"

    def loss(self) -> str:
        kind = "nn.MSELoss" if self.regress else "nn.CrossEntropyLoss"
        how = self.one("()", "()", "().cuda()", "(reduction='sum')", "(reduction='mean')")
        function = "F.mse_loss" if self.regress else "F.cross_entropy"
        return self.one(f"{self.owner}{self.criterion} = {kind}{how}", f"{self.owner}{self.criterion} = {kind}()", f"{self.owner}{self.criterion} = lambda o, t: {function}(o, t)", f"{self.owner}{self.criterion} = {function}")

    # ------------------------------------------------------------------ the loop
    def step(self) -> str:
        """The body of the batch loop; the batch is in ``x`` and ``y``."""
        net, opt, crit = (self.owner + n for n in (self.net, "optimizer", self.criterion))
        move = self.one("x, y = x.cuda(), y.cuda()", "x, y = x.to(device), y.to(device)", "x = x.to(device, non_blocking=True); y = y.to(device)", "x, y = map(lambda t: t.to(device), (x, y))", "x, y = [t.cuda() for t in (x, y)]", "pass")
        zero = self.one(f"{opt}.zero_grad()", f"{opt}.zero_grad(set_to_none=True)", f"{net}.zero_grad()", f"for p in {net}.parameters(): p.grad = None")
        out = self.one(f"out = {net}(x)", f"out = {net}(x)", f"out = {net}.forward(x)", f"out = {net}(x, *())", f"if (out := {net}(x)) is None: continue")
        loss = self.one(f"loss = {crit}(out, y)", f"loss = {crit}(out, y)", f"loss = {crit}(out, y) + 0.01 * sum((p ** 2).sum() for p in {net}.parameters())", "loss = (out - y.unsqueeze(-1)).pow(2).mean()", f"loss = {crit}(out, y) / 2", "loss = ((out ** 2).sum(1)).mean()", f"loss: torch.Tensor = {crit}(\n    out,  # what it says\n    y,\n)")
        back = self.one("loss.backward()", "loss.backward()", "loss.mean().backward()", "(loss * 1.0).backward()", "torch.autograd.backward(loss)")
        clip = self.some(0.2, f"torch.nn.utils.clip_grad_norm_({net}.parameters(), 1.0)\n", f"nn.utils.clip_grad_value_({net}.parameters(), 1)\n")
        step = self.one(f"{opt}.step()", f"{opt}.step()", f"{opt}.step()", f"if (i + 1) % 2 == 0:\n    {opt}.step()")
        if self.may(0.1):
            body = f"with torch.cuda.amp.autocast():\n    {out}\n    {loss}\n{back}\n{clip}{step}" if "continue" not in out else f"{out}\n{loss}\n{back}\n{step}"
        elif self.may(0.06):
            return f"{move}\ndef closure():\n    {zero}\n    out = {net}(x)\n    loss = {crit}(out, y)\n    loss.backward()\n    return loss\nloss = {opt}.step(closure)"
        else:
            body = f"{out}\n{loss}\n{back}\n{clip}{step}"
        body = f"{move}\n{zero}\n{body}"
        if self.may(0.08):
            body = f"try:\n{indent(body, '    ')}\nexcept RuntimeError as e:\n    print(e)\n    {self.one('continue', 'raise', 'torch.cuda.empty_cache()')}\nfinally: pass"
        return body + "\n" + self.record()

    def record(self) -> str:
        return self.one(
            "total += loss.item()",
            "total += loss.item() * x.size(0); seen += len(y)",
            "losses.append(float(loss))",
            "if i % 10 == 0: print(f'{epoch} {i:03d} {loss.item():.4f}')",
            "correct += (out.argmax(1) == y).sum().item(); seen += y.size(0)",
            "if loss.item() < 1e-3: break",
            "total = 0.9 * total + 0.1 * loss.detach()",
            "if i > 5:\n    break",
            "pass",
        )

    def batches(self) -> str:
        loader = self.owner + self.loader
        body = indent(self.step(), "    ")
        forms = [
            f"for i, (x, y) in enumerate({loader}):\n{body}",
            f"for i, (x, y) in enumerate({loader}):\n{body}",
            f"i = 0\nfor x, y in {loader}:\n{body}\n    i += 1",
            f"for i, batch in enumerate({loader}, start=1):\n    x, y = batch\n{body}",
            f"for i, (x, *rest) in enumerate({loader}):\n    y = rest[-1]\n{body}",
            f"for i, (x, y) in zip(range(10), {loader}):\n{body}",
            f"for i, (x, y) in enumerate(tqdm({loader}, leave=False)):\n{body}" if self.may() else f"for i, ((x, y)) in enumerate(iter({loader})):\n{body}",
            f"it = iter({loader})\nfor i in range(len({loader})):\n    x, y = next(it)\n{body}",
            f"for i, item in enumerate({loader}):\n    match item:\n        case [x, y]: pass\n        case _: continue\n{body}",
        ]
        return self.draw.choice(forms)

    def epoch(self) -> str:
        net = self.owner + self.net
        start = f"total = correct = 0.; seen = 0; losses = []{self.some(0.6, '; ' + net + '.train()')}"
        after = [
            self.some(0.4, "print(epoch, total / max(seen, 1))", f"print('lr', {self.owner}optimizer.param_groups[0]['lr'], flush=True)", f"logging.info('%s %s', epoch, total / len({self.owner}{self.loader}))", f"total /= len({self.owner}{self.loader}.dataset)"),
            f"{self.owner}scheduler.step({'total' if self.may(0.4) else ''})" if self.schedules else "",
            self.evaluation() if self.may(0.35) else "",
            self.save() if self.may(0.5) else "",
        ]
        header = self.one(f"for epoch in range({self.epochs}):", f"for epoch in range(1, {self.epochs} + 1):", f"for epoch in list(range({self.epochs})):", f"epoch = -1\nwhile (epoch := epoch + 1) < {self.epochs}:")
        return f"{header}\n" + indent("\n".join([start, self.batches(), *filter(None, after)]), "    ")

    def evaluation(self) -> str:
        net, loader = self.owner + self.net, self.owner + self.loader
        body = self.one("right += (o.argmax(1) == y).sum().item()", "right += F.mse_loss(o.float().mean(1), y.float().view(len(y), -1)[:, 0]).item()", "outs.append(o.cpu())")
        return f"{net}.eval(); right, outs = 0, []\nwith torch.no_grad():\n    for x, y in {self.one(loader, 'DataLoader(dataset, 16)')}:\n        o = {net}(x.to(device))\n        {body}\nprint('val', right / len(dataset)); {net}.train()"

    def save(self) -> str:
        net = self.owner + self.net
        state = self.one(f"{net}.state_dict()", f"{{'net': {net}.state_dict(), 'epoch': epoch}}", f"getattr({net}, 'module', {net}).state_dict()")
        return self.one(f"torch.save({state}, 'a.pt')", f"if epoch % 2: torch.save({state}, f'{{epoch}}.pt')", f"os.makedirs('out', exist_ok=True)\ntorch.save({state}, os.path.join('out', 'a.pt'))", "with open('log.txt', 'a') as f:\n    f.write(f'{epoch} {total}\\n')")

    # ------------------------------------------------------------------ programs
    def odd(self, share: float = 0.35) -> list[str]:
        return [piece for piece in _ODD if self.may(share / 4) and (piece is not _GENERIC or sys.version_info >= (3, 12))]

    def program(self) -> dict[str, str]:
        form = self.draw.choice((self.flat, self.function, self.functions, self.trainer))
        head = [self.imports(), *self.odd(), self.settings()]
        if self.may(0.25):
            models = f"import torch\nimport torch.nn as nn\n\n{self.network()}\n"
            head.insert(1, self.one("from models import Net", "from models import *", "import models\nNet = models.Net"))
            files = {"models.py": models}
        else:
            head.append(self.network())
            files = {}
        seeds = self.some(0.4, "torch.manual_seed(0)", "torch.manual_seed(1); np.random.seed(1)", "def seed_all(s):\n    random.seed(s)\n    torch.manual_seed(s)\nseed_all(3)")
        return {"train.py": "\n\n".join(filter(None, [*head, seeds, form()])) + "\n"} | files

    def flat(self) -> str:
        return "\n".join([self.dataset(), self.loaders(), self.model(), self.optimizer(), self.loss(), *self.odd(), self.epoch()])

    def function(self) -> str:
        body = "\n".join([self.dataset(), self.loaders(), self.model(), self.optimizer(), self.loss(), self.epoch()])
        end = self.one("return total", "pass", "return {'loss': total}")
        call = self.one("if __name__ == '__main__':\n    main()", "main()", "if __name__ == '__main__': main()", "if __name__ == '__main__':\n    sys.exit(main())")
        return f"def main(argv=None):\n{indent(body, '    ')}\n    {end}\n\n{call}"

    def functions(self) -> str:
        """The batch loop in a function of its own, with everything handed to it."""
        names = f"{self.net}, {self.loader}, optimizer, {self.criterion}"
        one = f"def train({names}, epoch=0, *args_, **kw):\n    total = correct = 0.; seen = 0; losses = []\n{indent(self.batches(), '    ')}\n    return total"
        setup = "\n".join([self.dataset(), self.loaders(), self.model(), self.optimizer(), self.loss()])
        rest = [f"{'total = ' if self.may() else ''}train({names}, epoch)", self.save().replace("total", "0") if self.may(0.4) else "", "scheduler.step()" if self.schedules and self.may() else ""]
        loop = f"for epoch in range({self.epochs}):\n{indent(chr(10).join(filter(None, rest)), '    ')}"
        if self.may():
            return f"{one}\n\nif __name__ == '__main__':\n{indent(setup + chr(10) + loop, '    ')}"
        return f"{one}\n\n{setup}\n{loop}"

    def trainer(self) -> str:
        self.owner = "self."
        setup = "\n".join([self.dataset(), self.loaders(), self.model(), self.optimizer(), self.loss()])
        setup = re.sub(r"\bdef get_loader\(ds=dataset", "def get_loader(ds=dataset", setup)
        fit = f"dataset = self.{self.loader}.dataset\n{self.epoch()}" if self.may() else self.epoch().replace("len(dataset)", "64").replace("DataLoader(dataset, 16)", f"self.{self.loader}")
        return f"class Trainer(object):\n    def __init__(self, *, name: str = ''):\n{indent(setup, '        ')}\n\n    def fit(self, /):\n{indent(fit, '        ')}\n\nif __name__ == '__main__':\n    {self.one('Trainer().fit()', 't = Trainer(); t.fit()', 'trainer = Trainer(name=str())' + chr(10) + '    trainer.fit()')}"

    # ------------------------------------------------------------------ how it is written
    def dressed(self, text: str) -> bytes:
        """The same program as other hands write it: tabs, blank lines with spaces, semicolons, comments, other ends of lines."""
        ways: list[Callable[[str], str]] = [self.tabs, self.blanks, self.comments, self.joined]
        for way in ways:
            if self.may(0.25):
                changed = way(text)
                text = changed if _compiles(changed) else text
        if self.may(0.1):
            text = text.rstrip("\n")
        if self.may(0.15):
            text = text.replace("\n", "\r\n")
        return (b"\xef\xbb\xbf" if self.may(0.05) else b"") + text.encode()

    def tabs(self, text: str) -> str:
        width = self.one("\t", "  ", "        ")
        return re.sub(r"^(?:    )+", lambda m: width * (len(m[0]) // 4), text, flags=re.MULTILINE)

    def blanks(self, text: str) -> str:
        return "".join(line + (self.one("   \n", "\n", "\t\n") if self.may(0.1) and line.strip() and not line.rstrip().endswith("\\") else "") for line in text.splitlines(keepends=True))

    def comments(self, text: str) -> str:
        return "".join(line.rstrip("\n") + self.one("  # über", "#", " # noqa") + "\n" if self.may(0.1) and line.strip() else line for line in text.splitlines(keepends=True))

    def joined(self, text: str) -> str:
        lines = text.split("\n")
        i = self.draw.randrange(len(lines) - 1)
        return "\n".join([*lines[:i], f"{lines[i]}; {lines[i + 1].lstrip()}", *lines[i + 2 :]])


def _compiles(text: str) -> bool:
    try:
        compile(text, "train.py", "exec")
    except SyntaxError:
        return False
    return True


def program(seed: int) -> Mapping[str, bytes]:
    """The files of the program that this number makes, by their names; the script is ``train.py``."""
    grammar = _Grammar(seed)
    return {name: grammar.dressed(text) for name, text in grammar.program().items()}


def pieces(seed: int) -> Sequence[str]:
    """The odd pieces alone, for programs that train nothing."""
    return _Grammar(seed).odd(1.0)
