"""Each thing that a run does, in the ways that people write it: small pieces of programs, all in one run, and those at two ranks in another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from textwrap import indent

import pytest

from tests.trace import beside
from tests.trace.beside import Happened

ONE_PROCESS = """\
import collections, contextlib, copy, csv, functools, io, itertools, json, logging, os, pathlib
import pickle, pprint, random, shutil, sys, threading, traceback
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset, TensorDataset, random_split

data = TensorDataset(torch.ones(8, 3), torch.zeros(8, 1))
loader = DataLoader(data, batch_size=4)
other = DataLoader(data, batch_size=2)
model = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x, y = torch.ones(2, 3), torch.zeros(2, 1)

def loss_of(x, y):
    return F.mse_loss(model(x), y)
"""
#: kind of event -> pieces of programs in which it happens
ALONE: Mapping[str, tuple[str, ...]] = {
    "pass batch": (
        "for x, y in loader:\n    pass",
        "for i, (x, y) in enumerate(loader):\n    pass",
        "for (x, _), (y, _) in zip(loader, other):\n    pass",
        "sizes = [len(x) for x, _ in loader]",
        "n = sum(len(x) for x, _ in loader)",
        "sizes = {i: len(b[0]) for i, b in enumerate(loader)}",
        "it = iter(loader)\nx, y = next(it)",
        "x, y = next(iter(loader))",
        "it = loader.__iter__()\nx, y = it.__next__()",
        "batches = list(loader)",
        "batches = tuple(loader)",
        "first, *rest = loader",
        "first, second = loader",
        "batches = [*loader]",
        "print(*loader)",
        "for x, _ in itertools.islice(loader, 1):\n    pass",
        "turns = itertools.cycle(loader)\nfor _ in range(3):\n    x, y = next(turns)",
        "both = itertools.chain(loader, other)\nfor x, _ in both:\n    pass",
        "for x, _ in itertools.chain.from_iterable([loader, other]):\n    pass",
        "moved = map(lambda b: b[0] * 2, loader)\nfor x in moved:\n    pass",
        "for x, _ in filter(lambda b: len(b[0]) > 1, loader):\n    pass",
        "for i, x in itertools.zip_longest(range(3), loader):\n    pass",
        "n = functools.reduce(lambda n, b: n + len(b[0]), loader, 0)",
        "last = collections.deque(loader, maxlen=1)",
        "byplace = dict(enumerate(loader))",
        "most = max(loader, key=len)",
        "some = any(len(b) > 9 for b in loader)",
        "def batches():\n    yield from loader\nfor x, _ in batches():\n    pass",
        "def batches():\n    while True:\n        for b in loader:\n            yield b\ngiven = batches()\nx, y = next(given)",
        "class Round:\n    def __iter__(self):\n        return iter(loader)\nfor x, _ in Round():\n    pass",
        "class Round:\n    def __iter__(self):\n        self.it = iter(loader)\n        return self\n    def __next__(self):\n        return next(self.it)\nfor x, _ in Round():\n    pass",
        "class Round:\n    def __iter__(self):\n        for b in loader:\n            yield b\nfor x, _ in Round():\n    pass",
        "it = iter(loader)\nwhile True:\n    try:\n        x, y = next(it)\n    except StopIteration:\n        break",
        "it = iter(loader)\nb = next(it, None)\nwhile b is not None:\n    b = next(it, None)",
        "loaders = {'train': loader, 'val': other}\nfor phase in loaders:\n    for x, _ in loaders[phase]:\n        pass",
        "for each in (loader, other):\n    for x, _ in each:\n        pass",
        "copied = copy.copy(loader)\nfor x, _ in copied:\n    pass",
        "import tqdm\nfor x, _ in tqdm.tqdm(loader, disable=True):\n    pass",
        "import tqdm\nwith tqdm.tqdm(loader, disable=True) as bar:\n    for x, _ in bar:\n        pass",
        "import tqdm\nbar = tqdm.tqdm(enumerate(loader), total=2, disable=True)\nfor i, (x, _) in bar:\n    pass",
        "for x, _ in DataLoader(data, 4):\n    pass",
        "x = np.stack([x.numpy() for x, _ in loader])",
        "x = torch.cat([x for x, _ in loader])",
        "x = torch.cat(list(map(lambda b: b[0], loader)))",
    ),
    "forward": (
        "z = model(x)",
        "z = model.forward(x)",
        "z = model[0](x)",
        "z = model.__call__(x)",
        "for layer in model:\n    x_ = layer(torch.ones(2, 3)) if isinstance(layer, nn.Linear) and layer.out_features == 3 else 0",
        "layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(2)])\nz = x\nfor layer in layers:\n    z = layer(z)",
        "heads = nn.ModuleDict({'a': nn.Linear(3, 1), 'b': nn.Linear(3, 2)})\nz = [heads[k](x) for k in heads]",
        "z = functools.partial(model, x)()",
        "z = list(map(model, [x, x]))",
        "z = getattr(model, 'forward')(x)",
        "f = model\nz = f(x)",
        "from torch.utils.checkpoint import checkpoint\nz = checkpoint(model, x, use_reentrant=False)",
        "z = torch.func.functional_call(model, dict(model.named_parameters()), (x,))",
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        for i in range(2):\n            setattr(self, f'fc{i}', nn.Linear(3, 3))\n    def forward(self, x):\n        for i in range(2):\n            x = getattr(self, f'fc{i}')(x)\n        return x\nz = Net()(x)",
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.fc = nn.utils.parametrizations.weight_norm(nn.Linear(3, 3))\n    def forward(self, x):\n        return self.fc(x)\nz = Net()(x)",
        "net = nn.DataParallel(model)\nz = net(x)",
        "z = copy.deepcopy(model)(x)",
        "z = (model if len(x) else nn.Linear(3, 1))(x)",
        "z = {'net': model}['net'](x)",
        "gru = nn.GRU(3, 3, batch_first=True)\nz, h = gru(x[None])",
        "with torch.no_grad():\n    z = model.eval()(x)\nmodel.train()",
    ),
    "backward": (
        "loss_of(x, y).backward()",
        "loss = loss_of(x, y)\nloss.backward(retain_graph=True)",
        "torch.autograd.backward(loss_of(x, y))",
        "torch.autograd.backward([loss_of(x, y), loss_of(x, y)])",
        "sum([loss_of(x, y), loss_of(x, y)]).backward()",
        "(0.5 * loss_of(x, y)).backward()",
        "scaler = torch.amp.GradScaler('cpu', enabled=False)\nscaler.scale(loss_of(x, y)).backward()",
        "for loss in (loss_of(x, y), loss_of(x, y)):\n    loss.backward()",
        "losses = {'a': loss_of(x, y)}\nlosses['a'].backward()",
        "loss_of(x, y).backward(torch.tensor(1.0))",
        "model(x).backward(torch.ones(2, 1))",
    ),
    "gradient": (
        "g = torch.autograd.grad(loss_of(x, y), list(model.parameters()))",
        "from torch.autograd import grad\ng, = grad(model(x).sum(), model[0].weight)",
    ),
    "step": (
        "loss_of(x, y).backward()\noptimizer.step()",
        "def closure():\n    optimizer.zero_grad()\n    loss = loss_of(x, y)\n    loss.backward()\n    return loss\noptimizer.step(closure)",
        "lbfgs = torch.optim.LBFGS(model.parameters(), max_iter=2)\ndef closure():\n    lbfgs.zero_grad()\n    loss = loss_of(x, y)\n    loss.backward()\n    return loss\nlbfgs.step(closure)",
        "scaler = torch.amp.GradScaler('cpu', enabled=False)\nscaler.scale(loss_of(x, y)).backward()\nscaler.step(optimizer)\nscaler.update()",
        "opts = [torch.optim.Adam(p.parameters()) for p in (model[0], model[2])]\nloss_of(x, y).backward()\nfor o in opts:\n    o.step()",
        "opts = {'a': torch.optim.Adam(model.parameters())}\nloss_of(x, y).backward()\nopts['a'].step()\n[o.step() for o in opts.values()]",
        "loss_of(x, y).backward()\nlist(map(lambda o: o.step(), [optimizer]))",
        "loss_of(x, y).backward()\ngetattr(optimizer, 'step')()",
        "adam = getattr(torch.optim, 'Adam')(model.parameters(), lr=0.1)\nloss_of(x, y).backward()\nadam.step()",
        "class Mine(torch.optim.Optimizer):\n    def __init__(self, params, lr):\n        super().__init__(params, dict(lr=lr))\n    def step(self, closure=None):\n        for g in self.param_groups:\n            for p in g['params']:\n                p.data -= g['lr'] * p.grad\nmine = Mine(model.parameters(), 0.1)\nloss_of(x, y).backward()\nmine.step()",
        "class Mine(torch.optim.SGD):\n    pass\nmine = Mine(model.parameters(), 0.1)\nloss_of(x, y).backward()\nmine.step()",
    ),
    "optimizer": (
        "o = torch.optim.AdamW(model.parameters())",
        "from torch import optim\no = optim.SGD([{'params': model[0].parameters()}, {'params': model[2].parameters(), 'lr': 1.0}], lr=0.1)",
        "o = {'sgd': torch.optim.SGD, 'adam': torch.optim.Adam}[os.environ.get('O', 'sgd')](model.parameters(), lr=0.1)",
        "o = getattr(torch.optim, json.loads('[\"Adam\"]')[0])(model.parameters(), lr=0.1)",
        "make = functools.partial(torch.optim.SGD, lr=0.1)\no = make(model.parameters())",
        "o = torch.optim.SGD(itertools.chain(model[0].parameters(), model[2].parameters()), lr=0.1)",
        "o = torch.optim.SGD(filter(lambda p: p.requires_grad, model.parameters()), lr=0.1)",
    ),
    "schedule": (
        "s = torch.optim.lr_scheduler.StepLR(optimizer, 1)\ns.step()",
        "s = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)\ns.step(0.5)",
        "s = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda e: 1.0)\ns.step()",
        "s = getattr(torch.optim.lr_scheduler, json.loads('[\"StepLR\"]')[0])(optimizer, 1)\ns.step()",
    ),
    "zero grad": (
        "optimizer.zero_grad()",
        "model.zero_grad()",
        "optimizer.zero_grad(set_to_none=True)",
        "nn.DataParallel(model).zero_grad()",
        "for o in (optimizer,):\n    o.zero_grad()",
    ),
    "clip": (
        "loss_of(x, y).backward()\nnn.utils.clip_grad_norm_(model.parameters(), 1.0)",
        "loss_of(x, y).backward()\ntorch.nn.utils.clip_grad_value_(model.parameters(), 1.0)",
        "from torch.nn.utils import clip_grad_norm_\nloss_of(x, y).backward()\nclip_grad_norm_(model.parameters(), 1.0)",
    ),
    "save": (
        "torch.save(model.state_dict(), 'a.pt')",
        "torch.save({'model': model.state_dict(), 'epoch': 1}, os.path.join('.', 'b.pt'))",
        "with open('c.pt', 'wb') as f:\n    torch.save(model.state_dict(), f)",
        "save = functools.partial(torch.save, model.state_dict())\nsave('d.pt')",
        "torch.save(model, pathlib.Path('.') / 'e.pt')",
    ),
    "write": (
        "with open('a.txt', 'w') as f:\n    f.write('x')",
        "f = open('b.txt', mode='a')\nf.close()",
        "with pathlib.Path('c.txt').open('w') as f:\n    print('x', file=f)",
        "(pathlib.Path('.') / 'd.txt').write_text('x')",
        "pathlib.Path('e.txt').write_bytes(b'x')",
        "np.save('a.npy', np.ones(2))",
        "np.savetxt('b.txt', np.ones(2))",
        "np.savez('c.npz', a=np.ones(2))",
        "with open('d.csv', 'w', newline='') as f:\n    csv.writer(f).writerow([1])",
        "with open('e.json', 'w') as f:\n    json.dump({}, f)",
        "pickle.dump([1], open('f.pkl', 'wb'))",
        "open('g.txt', 'w').close()\nshutil.copy('g.txt', 'h.txt')\nos.replace('h.txt', 'i.txt')\nos.rename('i.txt', 'j.txt')",
        "handler = logging.FileHandler('k.log')\nhandler.close()",
        "import gzip\nwith gzip.open('l.gz', 'wt') as f:\n    f.write('x')",
        "import zipfile\nwith zipfile.ZipFile('m.zip', 'w') as f:\n    f.writestr('a', 'x')",
        "with io.open('n.txt', 'w') as f:\n    pass",
        "import tempfile\nwith tempfile.NamedTemporaryFile('w', dir='.') as f:\n    pass",
        "np.ones(2).tofile('o.bin')",
        "with contextlib.ExitStack() as stack:\n    f = stack.enter_context(open('p.txt', 'w'))",
    ),
    "print": (
        "print('x')",
        "print('a', 'b', sep='-', file=sys.stderr)",
        "sys.stdout.write('x\\n')",
        "sys.stderr.write('x\\n')",
        "out = sys.stdout\nout.write('x\\n')",
        "say = functools.partial(print, flush=True)\nsay('x')",
        "say = print\nsay('x')",
        "logging.warning('x')",
        "log = logging.getLogger('a')\nlog.warning('x')",
        "log = logging.getLogger(__name__)\nlog.setLevel(logging.INFO)\nlog.addHandler(logging.StreamHandler())\nlog.info('x')",
        "pprint.pprint({'a': 1})",
        "try:\n    1 / 0\nexcept ZeroDivisionError:\n    traceback.print_exc()",
        "print(*['a', 'b'])",
        "[print(i) for i in range(2)]",
        "list(map(print, [1, 2]))",
        "import tqdm\ntqdm.tqdm.write('x')",
        "sys.stdout.writelines(['x\\n'])",
        "class Both:\n    def __init__(self, out):\n        self.out = out\n    def write(self, text):\n        self.out.write(text)\n    def flush(self):\n        pass\nbefore = sys.stdout\nsys.stdout = Both(before)\nprint('x')\nsys.stdout = before",
    ),
    "draw": (
        "z = torch.rand(3)",
        "z = torch.randn(3, 2)",
        "z = torch.randn_like(x)",
        "z = torch.empty(3).normal_()",
        "z = torch.empty(3).uniform_(0, 1)",
        "z = torch.bernoulli(torch.full((3,), 0.5))",
        "z = torch.multinomial(torch.ones(3), 1)",
        "z = torch.randperm(3)",
        "z = torch.randint(0, 3, (2,))",
        "z = torch.normal(0.0, 1.0, (2,))",
        "nn.init.xavier_uniform_(model[0].weight)",
        "nn.init.kaiming_normal_(model[0].weight)",
        "z = F.dropout(x, 0.5)",
        "z = np.random.rand(3)",
        "z = np.random.permutation(3)",
        "a = np.arange(3)\nnp.random.shuffle(a)",
        "a = [1, 2]\nrandom.shuffle(a)",
        "z = random.random()",
        "z = random.choice([1, 2])",
        "from random import random as roll\nz = roll()",
        "z = random.sample(range(9), 2)",
    ),
    "seed": (
        "torch.manual_seed(1)",
        "random.seed(1)\nnp.random.seed(1)",
        "for f in (random.seed, np.random.seed, torch.manual_seed):\n    f(1)",
    ),
    "load": (
        "torch.save(model.state_dict(), 'l.pt')\nstate = torch.load('l.pt')",
        "torch.save(model.state_dict(), 'm.pt')\nwith open('m.pt', 'rb') as f:\n    state = torch.load(f, map_location='cpu')",
    ),
    "load state": (
        "model.load_state_dict(model.state_dict())",
        "optimizer.load_state_dict(optimizer.state_dict())",
        "nn.DataParallel(model).load_state_dict(nn.DataParallel(model).state_dict())",
    ),
    "loader": (
        "l = DataLoader(data, 2)",
        "l = torch.utils.data.DataLoader(data, **{'batch_size': 2})",
        "l = [DataLoader(part, 2) for part in random_split(data, [4, 4])]",
        "make = functools.partial(DataLoader, batch_size=2)\nl = make(data)",
        "class Loader(DataLoader):\n    def __init__(self, data):\n        super().__init__(data, batch_size=2)\nl = Loader(data)",
    ),
    "requires grad": ("z = torch.ones(2).requires_grad_()", "z = torch.ones(2).requires_grad_(True)"),
    "process": (
        "t = threading.Thread(target=print, args=('x',))\nt.start()\nt.join()",
        "class Worker(threading.Thread):\n    def run(self):\n        print('x')\nw = Worker()\nw.start()\nw.join()",
    ),
    "exit": ("try:\n    sys.exit(0)\nexcept SystemExit:\n    pass",),
}  # fmt: skip
#: code that a library or Python calls: each piece prints in it
CALLED_BACK = (
    "handle = model.register_forward_hook(lambda m, i, o: print('x'))\nmodel(x)\nhandle.remove()",
    "handle = model.register_forward_pre_hook(lambda m, i: print('x'))\nmodel(x)\nhandle.remove()",
    "class Words(Dataset):\n    def __len__(self):\n        return 2\n    def __getitem__(self, i):\n        print('x')\n        return i\nfor i in DataLoader(Words()):\n    pass",
    "class Words(Dataset):\n    def __len__(self):\n        print('x')\n        return 2\n    def __getitem__(self, i):\n        return i\nn = len(Words())",
    "class Words(torch.utils.data.IterableDataset):\n    def __iter__(self):\n        print('x')\n        yield 1\nfor i in DataLoader(Words()):\n    pass",
    "def put(batch):\n    print('x')\n    return batch\nfor b in DataLoader(data, 2, collate_fn=put):\n    pass",
    "class Order(torch.utils.data.Sampler):\n    def __init__(self):\n        pass\n    def __iter__(self):\n        print('x')\n        return iter(range(8))\n    def __len__(self):\n        return 8\nfor b in DataLoader(data, 2, sampler=Order()):\n    pass",
    "class Order(torch.utils.data.Sampler):\n    def __init__(self):\n        pass\n    def __iter__(self):\n        print('x')\n        yield [0, 1]\n    def __len__(self):\n        return 1\nfor b in DataLoader(data, batch_sampler=Order()):\n    pass",
    "s = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda e: print('x') or 1.0)\ns.step()",
    "class Twice(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n        print('x')\n        return x * 2\n    @staticmethod\n    def backward(ctx, g):\n        print('y')\n        return g * 2\nTwice.apply(torch.ones(1, requires_grad=True)).sum().backward()",
    "z = torch.ones(1, requires_grad=True)\nz.register_hook(lambda g: print('x'))\nz.sum().backward()",
    "handle = optimizer.register_step_post_hook(lambda *a: print('x'))\nloss_of(x, y).backward()\noptimizer.step()\nhandle.remove()",
    "model.apply(lambda m: print('x'))",
    "from torch.utils.checkpoint import checkpoint\ndef f(x):\n    print('x')\n    return model(x)\ncheckpoint(f, x, use_reentrant=False).sum().backward()",
    "n = sorted([2, 1], key=lambda v: print('x') or v)",
    "n = max([2, 1], key=lambda v: print('x') or v)",
    "n = [2, 1]\nn.sort(key=lambda v: print('x') or v)",
    "n = list(filter(lambda v: print('x'), [1]))",
    "n = any(map(lambda v: print('x'), [1]))",
    "n = functools.reduce(lambda a, b: print('x') or 1, [1, 2])",
    "@functools.lru_cache(None)\ndef f():\n    print('x')\nf()",
    "def loud(f):\n    @functools.wraps(f)\n    def inner(*a):\n        print('x')\n        return f(*a)\n    return inner\n@loud\ndef f():\n    pass\nf()",
    "@contextlib.contextmanager\ndef timed():\n    print('x')\n    yield\n    print('y')\nwith timed():\n    pass",
    "class Timed:\n    def __enter__(self):\n        print('x')\n    def __exit__(self, *a):\n        print('y')\nwith Timed():\n    pass",
    "class Timed(contextlib.ContextDecorator):\n    def __enter__(self):\n        print('x')\n    def __exit__(self, *a):\n        print('y')\n@Timed()\ndef f():\n    pass\nf()",
    "with contextlib.ExitStack() as stack:\n    stack.callback(print, 'x')",
    "def f():\n    print('x')\nwith contextlib.ExitStack() as stack:\n    stack.callback(f)",
    "class A:\n    @property\n    def b(self):\n        print('x')\nA().b",
    "class A:\n    @functools.cached_property\n    def b(self):\n        print('x')\nA().b",
    "class A:\n    def __str__(self):\n        print('x')\n        return ''\nz = str(A())",
    "class A:\n    def __repr__(self):\n        print('x')\n        return ''\nz = f'{A()}'",
    "class A:\n    def __str__(self):\n        print('x')\n        return ''\nprint(A())",
    "class A:\n    def __add__(self, o):\n        print('x')\n        return self\nz = A() + 1",
    "class A:\n    def __eq__(self, o):\n        print('x')\n        return True\nz = A() == A()",
    "class A:\n    def __lt__(self, o):\n        print('x')\n        return True\nz = A() < A()",
    "class A:\n    def __contains__(self, o):\n        print('x')\n        return True\nz = 1 in A()",
    "class A:\n    def __bool__(self):\n        print('x')\n        return True\nif A():\n    pass",
    "class A:\n    def __getitem__(self, i):\n        print('x')\nz = A()[0]",
    "class A:\n    def __setitem__(self, i, v):\n        print('x')\nA()[0] = 1",
    "class A:\n    def __setattr__(self, i, v):\n        print('x')\nA().b = 1",
    "class A:\n    def __getattr__(self, i):\n        print('x')\nA().b",
    "class A:\n    def __call__(self):\n        print('x')\nA()()",
    "class A:\n    def __new__(cls):\n        print('x')\n        return super().__new__(cls)\nA()",
    "class A:\n    def __init_subclass__(cls):\n        print('x')\nclass B(A):\n    pass",
    "class A:\n    def __neg__(self):\n        print('x')\nz = -A()",
    "class A:\n    def __iadd__(self, o):\n        print('x')\n        return self\nz = A()\nz += 1",
    "class A:\n    def __del__(self):\n        print('x')\nz = A()\ndel z",
    "import dataclasses\n@dataclasses.dataclass\nclass A:\n    a: int = 1\n    def __post_init__(self):\n        print('x')\nA()",
    "import dataclasses\ndef f():\n    print('x')\n@dataclasses.dataclass\nclass A:\n    a: int = dataclasses.field(default_factory=f)\nA()",
    "import re\nz = re.sub('a', lambda m: print('x') or '', 'a')",
    "z = json.dumps([model], default=lambda o: print('x'))",
    "import argparse\ndef f(v):\n    print('x')\np = argparse.ArgumentParser()\np.add_argument('--a', type=f)\np.parse_args(['--a', '1'])",
    "from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(1) as pool:\n    z = list(pool.map(lambda v: print('x'), [1]))",
    "from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(1) as pool:\n    z = pool.submit(lambda: print('x')).result()",
    "t = threading.Timer(0, lambda: print('x'))\nt.start()\nt.join()",
    "import atexit\ndef f():\n    print('x')\natexit.register(f)",
    "import signal\nbefore = signal.signal(signal.SIGUSR2, lambda *a: print('x'))\nsignal.raise_signal(signal.SIGUSR2)",
    "z = collections.defaultdict(lambda: print('x'))['a']",
    "f = functools.partial(lambda a: print('x'), 1)\nf()",
    "@functools.singledispatch\ndef f(a):\n    print('x')\nf(1)",
    "import operator\nclass A:\n    def b(self):\n        print('x')\noperator.methodcaller('b')(A())",
    "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.reset()\n    def reset(self):\n        print('x')\nM()",
    "class M(nn.Module):\n    def train(self, mode=True):\n        print('x')\n        return super().train(mode)\nM().eval()",
    "class M(nn.Sequential):\n    def state_dict(self, *a, **k):\n        print('x')\n        return super().state_dict(*a, **k)\nM().state_dict()",
    "class M(nn.Module):\n    def train(self, mode=True):\n        print('x')\n        return super().train(mode)\nnn.Sequential(M()).train()",
    "class M(nn.Module):\n    def _load_from_state_dict(self, *a):\n        print('x')\nM().load_state_dict({})",
    "def f(i):\n    print('x')\n[f(i) for i in range(2)]",
    "def f():\n    print('x')\n    yield 1\nfor _ in f():\n    pass",
    "def f():\n    try:\n        yield 1\n    finally:\n        print('x')\nfor _ in f():\n    break",
    "g = (print(i) for i in range(1))\nnext(g)",
    "def f():\n    x = yield\n    print('x')\ng = f()\nnext(g)\ntry:\n    g.send(1)\nexcept StopIteration:\n    pass",
    "try:\n    raise ValueError\nexcept Exception:\n    print('x')\nfinally:\n    print('y')",
    "z = np.vectorize(lambda v: print('x') or 1)(np.ones(2))",
    "z = np.apply_along_axis(lambda v: print('x') or v, 0, np.ones((1, 1)))",
    "z = torch.ones(2).apply_(lambda v: print('x') or v)",
    "z = torch.ones(2).map_(torch.ones(2), lambda a, b: print('x') or a)",
    "z = torch.vmap(lambda v: print('x') or v)(torch.ones(2))",
    "z = torch.func.grad(lambda v: print('x') or v.sum())(torch.ones(2))",
    "match model:\n    case nn.Sequential():\n        print('x')",
    "import enum\nclass E(enum.Enum):\n    A = 1\n    def f(self):\n        print('x')\nE.A.f()\nE(1).f()\nE['A'].f()",
    "exec(\"print('x')\")",
    "eval('f()', {'f': lambda: print('x')})",
)  # fmt: skip
#: what the engine does not follow yet; the list may only shrink
NOT_YET = {
    "class A:\n    def __init_subclass__(cls):\n        print('x')\nclass B(A):\n    pass": "classes are made without hooks",
    "class M(nn.Module):\n    def train(self, mode=True):\n        print('x')\n        return super().train(mode)\nM().eval()": "eval() does not call the program's train()",
    "class M(nn.Module):\n    def train(self, mode=True):\n        print('x')\n        return super().train(mode)\nnn.Sequential(M()).train()": "train() of a container does not call that of its parts",
    "class M(nn.Module):\n    def _load_from_state_dict(self, *a):\n        print('x')\nM().load_state_dict({})": "methods of nn.Module that others of its methods call",
    "exec(\"print('x')\")": "text that is executed",
    "eval('f()', {'f': lambda: print('x')})": "text that is evaluated",
    "with contextlib.ExitStack() as stack:\n    stack.callback(print, 'x')": "functions of a library, called when a stack ends",
    "import operator\nclass A:\n    def b(self):\n        print('x')\noperator.methodcaller('b')(A())": "methods by their names",
}

#: what is put before and behind the pieces at two ranks
TWO_RANKS = f"""\
import torch.distributed as dist
import dpmigrate_runtime as ddp
{ONE_PROCESS}
ddp.setup()
rank = ddp.rank()
wrapped = ddp.wrap(nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Linear(3, 1)))
"""
#: the same at two ranks: what all ranks do together
TOGETHER: Mapping[str, tuple[str, ...]] = {
    "collective inside": (
        "c = ddp.weighted_loss(nn.CrossEntropyLoss(ignore_index=0))\nl = c(torch.randn(4, 3, requires_grad=True), torch.tensor([0, 1, 2, 1]))",
    ),
    "collective": (
        "ddp.barrier()",
        "n = ddp.sum_all(1)",
        "n, m = ddp.sum_all(1, 2.0)",
        "n = ddp.mean_all(torch.ones(1))",
        "n = ddp.gather_all(torch.ones(2, 3))",
        "n = ddp.gather_all([1, 2])",
        "n = ddp.any_rank(rank == 1)",
        "if ddp.any_rank(rank == 1):\n    n = ddp.sum_all(1)",
        "n = ddp.from_main('x')",
        "ddp.sync_buffers(wrapped)",
        "with ddp.same_stream():\n    n = torch.rand(1)",
        "ddp.seed_ranks()",
        "l = ddp.weighted_mean(model(x).mean(), len(x))",
        "n = ddp.mean_count(len(x))",
        "net = ddp.wrap(nn.Linear(3, 1))",
        "from dpmigrate_runtime import sum_all as total\nn = total(1)",
        "n = list(map(ddp.sum_all, [1, 2]))",
        "totals = {'a': 1.0}\ntotals = {k: ddp.mean_all(v) for k, v in totals.items()}",
        "t = torch.ones(1)\ndist.all_reduce(t)",
        "t = torch.ones(1)\ndist.all_reduce(t, op=dist.ReduceOp.MAX)",
        "t = torch.ones(1)\ndist.broadcast(t, 0)",
        "t = torch.ones(1)\ndist.reduce(t, 0)",
        "t = [torch.ones(1) for _ in range(2)]\ndist.all_gather(t, torch.ones(1))",
        "t = torch.ones(2)\ndist.all_gather_into_tensor(t, torch.ones(1))",
        "t = [None, None]\ndist.all_gather_object(t, 'x')",
        "t = ['x']\ndist.broadcast_object_list(t, 0)",
        "t = torch.ones(1)\ndist.scatter(t, [torch.ones(1), torch.ones(1)] if rank == 0 else None)",
        "t = [None]\ndist.scatter_object_list(t, ['a', 'b'])",
        "t = [torch.ones(1) for _ in range(2)] if rank == 0 else None\ndist.gather(torch.ones(1), t)",
        "t = [torch.ones(1) for _ in range(2)]\ndist.all_to_all(t, [torch.ones(1), torch.ones(1)])",
        "t = torch.ones(1)\ndist.reduce_scatter(t, [torch.ones(1), torch.ones(1)])",
        "dist.barrier()",
        "from torch.distributed import all_reduce, ReduceOp\nt = torch.ones(1)\nall_reduce(t, ReduceOp.SUM)",
        "t = torch.ones(1)\nwork = dist.all_reduce(t, async_op=True)\nwork.wait()",
        "if dist.is_initialized() and dist.get_world_size() > 1:\n    dist.barrier()",
    ),
    "wrap": ("net = ddp.wrap(nn.Linear(3, 1))", "net = nn.parallel.DistributedDataParallel(nn.Linear(3, 1))"),
    "forward backward": (
        "wrapped(x).mean().backward()",
        "with ddp.accumulate(wrapped, sync=False):\n    wrapped(x).mean().backward()",
        "ddp.sum_loss(wrapped(x).sum()).backward()",
    ),
    "pass batch": (
        "for x, y in ddp.shard(loader):\n    pass",
        "for x, y in ddp.shard(loader, blocks=True):\n    pass",
        "for x, y in ddp.whole(ddp.distribute(loader)):\n    pass",
        "train = ddp.distribute(DataLoader(data, 2, shuffle=True))\nfor x, y in ddp.next_epoch(train):\n    pass",
        "for i, (x, y) in enumerate(ddp.shard(loader)):\n    pass",
        "train = DataLoader(data, ddp.local_batch(4), sampler=ddp.DistributedSampler(data))\nfor x, y in train:\n    pass",
    ),
    "save write": ("ddp.save(ddp.unwrap(wrapped).state_dict(), 'a.pt')", "if ddp.is_main():\n    torch.save({}, 'b.pt')"),
    "write": ("f = ddp.main_only(open, 'a.txt', 'w')",),
    "print": ("print(ddp.sum_all(1))", "if ddp.is_main():\n    print('x')"),
}  # fmt: skip
CLEANUP = "    ddp.cleanup()\n"


@dataclass(frozen=True)
class Sheet:
    """Pieces of programs, made into functions of one program."""

    before: str
    pieces: Mapping[str, tuple[str, ...]]
    after: str
    ranks: int

    @cached_property
    def listed(self) -> list[tuple[str, str]]:
        return [(kind, text) for kind, texts in self.pieces.items() for text in texts]

    @cached_property
    def program(self) -> tuple[str, list[range]]:
        """All pieces as functions of one program, and the lines of each."""
        text, lines = self.before, []
        for i, (_, piece) in enumerate(self.listed):
            first = text.count("\n") + 1
            text += f"\ndef piece_{i}(x=x, y=y):\n{indent(piece, '    ')}\n"
            lines.append(range(first, text.count("\n") + 1))
        calls = "".join(f"    piece_{i}()\n" for i in range(len(self.listed)))
        return f"{text}\nif __name__ == '__main__':\n{calls}{self.after}", lines


SHEETS = {
    "one process": Sheet(ONE_PROCESS, ALONE, "", 0),
    "called back": Sheet(ONE_PROCESS, {"print": CALLED_BACK}, "", 0),
    "two ranks": Sheet(TWO_RANKS, TOGETHER, CLEANUP, 2),
}



def _case(name: str, number: int) -> object:
    kind, text = SHEETS[name].listed[number]
    marks = [pytest.mark.xfail(strict=True, reason=NOT_YET[text])] if text in NOT_YET else []
    return pytest.param(name, number, marks=marks, id=f"{name}, {kind}: {text}")


PIECES = [_case(name, i) for name, sheet in SHEETS.items() for i in range(len(sheet.listed))]


@dataclass(frozen=True)
class Laid:
    """What happened in the run of a sheet, and what of it the trace does not have."""

    events: list[Happened]
    holes: list[Happened]
    script: Path


@pytest.fixture(scope="module")
def laid_beside(_forked_python: Path | None, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Laid]:
    @cache
    def laid(name: str) -> Laid:
        folder = tmp_path_factory.mktemp("sheet") / "program"
        folder.mkdir()
        script = folder / "train.py"
        script.write_text(SHEETS[name].program[0])
        with pytest.MonkeyPatch.context() as patch:
            if _forked_python is not None:
                patch.setattr("sys.executable", str(_forked_python))
            ran = beside.recorded(script, folder, SHEETS[name].ranks)
        assert ran.code == 0 and ran.records, ran.stderr
        events = beside.happened(ran.records[0])
        return Laid(events, beside.holes(events, beside.noted(beside.traced(script), script)), script)

    return laid


@pytest.mark.parametrize(("name", "number"), PIECES)
def test_what_happens_is_in_the_trace(name: str, number: int, laid_beside: Callable[[str], Laid]) -> None:
    kinds, _ = SHEETS[name].listed[number]
    lines, found = SHEETS[name].program[1][number], laid_beside(name)
    seen = {e.kind for e in found.events if e.line in lines}
    assert seen >= ({kinds} if kinds in beside.SPOKEN else set(kinds.split())), seen
    assert list(beside.told((h for h in found.holes if h.line in lines), found.script)) == []


@pytest.mark.parametrize("name", SHEETS)
def test_nothing_else_is_missing(name: str, laid_beside: Callable[[str], Laid]) -> None:
    of_pieces = {n for lines in SHEETS[name].program[1] for n in lines}
    found = laid_beside(name)
    assert list(beside.told((h for h in found.holes if h.line not in of_pieces), found.script)) == []
