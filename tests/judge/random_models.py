"""Random models and training steps: what is said of them on paper, against autograd.

``python -m tests.judge.random_models --count 2000`` prints the programs of which the judge says that
every parameter is used and one is not, or of which a value does not lie across the ranks as the
execution says. Each program is run whole and once for each of two ranks, with one batch.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from dataclasses import dataclass, field
from textwrap import indent
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch

from dpmigrate.judge import unused
from dpmigrate.judge.trial import Trial, executed
from dpmigrate.program import Program
from dpmigrate.source import Source, parse
from tests.execution.paper import held
from tests.library.sharded import SAMPLES, Broken, dealt, hold

#: what a user may choose
CHOICES: tuple[tuple[str, ...], ...] = (("--depth", "3", "--stop", "2"), ("--depth", "4", "--stop", "1"))
_PROGRAM = """\
import argparse
import copy
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
import dpmigrate_runtime as ddp

parser = argparse.ArgumentParser()
parser.add_argument("--depth", type=int)
parser.add_argument("--stop", type=int)
options = parser.parse_args()


def clones(module, n):
    return nn.ModuleList([copy.deepcopy(module) for _ in range(n)])


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 8)
        self.second = nn.Linear(8, 8)

    def forward(self, x):
        return {block}


class Net(nn.Module):
    def __init__(self, depth, stop):
        super().__init__()
        self.depth, self.stop = depth, stop
{made}
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        h, aux = x, x.mean(1, keepdim=True)
{body}
        return {result}


ddp.setup()
torch.manual_seed(3)
data = TensorDataset(torch.randn(12, 8), torch.randint(0, 2, (12,)))
loader = DataLoader(data, batch_size=ddp.local_batch(12), sampler=ddp.DistributedSampler(data, seed=0))
net = Net(options.depth, options.stop).double()
{frozen}
model = ddp.wrap(net)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
ddp.seed_ranks()
for epoch in range(1):
    loader.sampler.set_epoch(epoch)
    for x, y in loader:
        x = x.double()
        optimizer.zero_grad()
{step}
        optimizer.step()
ddp.cleanup()
"""


class Maker:
    """Makes one program."""

    def __init__(self, seed: int) -> None:
        self.r = random.Random(seed)
        self.made: list[str] = []
        self.body: list[str] = []
        self.names = 0

    def program(self) -> str:
        """The text of a program."""
        r = self.r
        for _ in range(r.randint(1, 4)):
            self.piece()
        r.shuffle(self.body)
        both = r.random() < 0.4
        block = r.choice(["self.second(self.first(x))"] * 3 + ["self.first(x)", "x + self.second(F.relu(self.first(x)))"])
        frozen = r.choice(["pass"] * 5 + ["net.head.requires_grad_(False)", "for p in net.head.parameters():\n    p.requires_grad = False"])
        return _PROGRAM.format(
            block=block, made=indent("\n".join(self.made), " " * 8), body=indent("\n".join(self.body), " " * 8),
            result="self.head(h), aux" if both else "self.head(h)", frozen=frozen,
            step=indent(self.step(both), " " * 8),
        )  # fmt: skip

    # ------------------------------------------------------------ layers and their use

    def piece(self) -> None:
        """Layers and, as a rule, their use."""
        self.names += 1
        name = f"self.l{self.names}"
        use = self.r.choice([self.listed] * 5 + [self.named, self.single, self.parameter, self.sequence])(name)
        if self.r.random() < 0.95:
            self.body.append(self.round(use))

    def layer(self) -> str:
        return self.r.choice(["nn.Linear(8, 8)"] * 3 + ["Block()", "nn.Sequential(nn.Linear(8, 8), nn.Tanh())"])

    def listed(self, name: str) -> str:
        r, layer = self.r, self.layer()
        n = r.choice(["2", "3", "5", "8", "10", "14", "depth", "self.depth", "2 * depth"])
        self.made.append(
            r.choice(
                [
                    f"{name} = nn.ModuleList([{layer} for _ in range({n})])",
                    f"{name} = clones({layer}, {n})",
                    f"{name} = nn.ModuleList()\nfor i in range({n}):\n    {name}.append({layer})",
                    f"layers = []\nfor i in range({n}):\n    layers.append({layer})\n{name} = nn.ModuleList(layers)",
                    f"{name} = nn.ModuleList([{layer}])\nfor i in range({n}):\n    {name}.append({layer})",
                ]
            )
        )
        fixed = int(n) if n.isdigit() else 3
        k = r.choice([str(r.randint(1, fixed)), "self.stop", f"len({name}) - 1", n.replace("2 * depth", "2 * self.depth").replace("self.depth", "depth").replace("depth", "self.depth")])
        return r.choice(
            [
                f"for layer in {name}:\n    h = layer(h)",
                f"for layer in reversed({name}):\n    h = h + layer(h)",
                f"for i in range(len({name})):\n    h = {name}[i](h)",
                f"for i in range({k}):\n    h = {name}[i](h)",
                f"for i in range({k}):\n    h = h + {name}[-i - 1](h)",
                f"for i in range(1, {k}):\n    h = {name}[i](h)",
                f"for i, layer in enumerate({name}):\n    if i == {k}:\n        break\n    h = layer(h)",
                f"for i, layer in enumerate({name}):\n    h = layer(h)\n    if i + 1 >= {k}:\n        break",
                f"for i, layer in enumerate({name}):\n    if i >= {k}:\n        continue\n    h = layer(h)",
                f"for i, layer in enumerate({name}):\n    if i < {k}:\n        h = layer(h)\n    else:\n        aux = aux + layer(h).mean(1, keepdim=True)",
                f"for i, layer in enumerate({name}):\n    if i == {fixed - 1}:\n        return {self.left()}\n    h = layer(h)",
                f"for layer in {name}[:{k}]:\n    h = layer(h)",
                f"for layer in {name}[{r.choice('01')}:]:\n    h = layer(h)",
                f"h = {name}[0](h)\nfor layer in {name}[1:]:\n    h = h + layer(h)",
                f"for part, layer in zip([h] * {k}, {name}):\n    h = h + layer(part)",
                f"for i, layer in zip(range({k}), {name}):\n    h = h + layer(h)",
                f"parts = []\nfor layer in {name}:\n    parts.append(layer(h))\nh = {r.choice(['sum(parts)', 'parts[-1]', 'torch.stack(parts).mean(0)', 'parts[0] + parts[-1]', 'torch.stack(parts, 1)[:, 0]'])}",
                f"h = sum([layer(h) for layer in {name}])",
                f"h = h + sum({name}[i](h) for i in range({k}))",
                f"h = {name}[{r.choice(['0', '-1', 'self.stop', 'self.depth - 1'])}](h)",
                f"i = 0\nwhile i < {k}:\n    h = {name}[i](h)\n    i += 1",
            ]
        )  # fmt: skip

    def left(self) -> str:
        return "self.head(h), aux" if "self.head(h), aux" in self.body else "self.head(h)"

    def named(self, name: str) -> str:
        r = self.r
        names = r.sample(["a", "b", "c", "d"], r.randint(2, 4))
        self.made.append(
            r.choice(
                [
                    f"{name} = nn.ModuleDict({{n: nn.Linear(8, 8) for n in {names}}})",
                    f"{name} = nn.ModuleDict()\nfor n in {names}:\n    {name}[n] = {self.layer()}",
                    f"{name} = nn.ModuleDict({{{', '.join(f'{n!r}: nn.Linear(8, 8)' for n in names)}}})",
                ]
            )
        )
        some = names[: r.randint(1, len(names))]
        return r.choice(
            [
                f"for n, layer in {name}.items():\n    h = layer(h)",
                f"for layer in {name}.values():\n    h = h + layer(h)",
                f"for n in {name}:\n    h = {name}[n](h)",
                f"for n in {some}:\n    h = {name}[n](h)",
                f"for n in {name}:\n    if n in {some}:\n        h = {name}[n](h)",
                f"for n, layer in {name}.items():\n    if n == {names[0]!r}:\n        continue\n    h = layer(h)",
                f"parts = {{n: layer(h) for n, layer in {name}.items()}}\nh = parts[{names[0]!r}]",
                f"parts = {{n: layer(h) for n, layer in {name}.items()}}\nh = sum(parts.values())",
            ]
        )

    def single(self, name: str) -> str:
        self.made.append(f"{name} = {self.layer()}")
        return self.r.choice(
            [
                f"h = {name}(h)", f"h = h + {name}(h)", f"h = h * torch.sigmoid({name}(h))",
                f"aux = aux + {name}(h).mean(1, keepdim=True)", f"{name}(h)",
                f"h = torch.where(h > 0, {name}(h), h)", f"if self.depth > 1:\n    h = {name}(h)",
            ]
        )  # fmt: skip

    def parameter(self, name: str) -> str:
        self.made.append(f"{name} = nn.Parameter(torch.ones(8))")
        return self.r.choice([f"h = h * {name}", f"h = h + {name}", f"h = F.linear(h, torch.diag({name}))", f"aux = aux * {name}.sum()"])

    def sequence(self, name: str) -> str:
        r = self.r
        self.made.append(f"{name} = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8))")
        k = r.randint(1, 3)
        return r.choice(
            [
                f"h = {name}(h)", f"for layer in {name}:\n    h = layer(h)", f"h = {name}[:{k}](h)",
                f"for i, layer in enumerate({name}):\n    h = layer(h)\n    if i == {k - 1}:\n        break",
                f"h = {name}[0](h) + {name}[{r.choice('02')}](h)",
            ]
        )  # fmt: skip

    def round(self, use: str) -> str:
        """What may stand round a use."""
        inner = indent(use, "    ")
        return self.r.choice(
            [
                use, use, use, use, use, use,
                f"with torch.no_grad():\n{inner}",
                f"before = h\n{use}\nh = before + h.detach()",
                f"before = h\nh = h.detach()\n{use}\nh = h + before",
                f"before = h\n{use}\naux = aux + h.mean(1, keepdim=True)\nh = before",
                f"if self.training:\n{inner}",
                f"if not self.training:\n{inner}",
                f"mask = (h > 0).double()\n{use}\nh = h * mask",
                f"before = h\n{use}\nh = torch.cat([before, h], 1)[:, :8]",
                f"before = h\n{use}\nh = torch.cat([before, h])[len(before):]",
                f"for _ in range(2):\n{inner}",
                f"before = h\n{use}\nh = before if self.stop > 9 else h",
                f"try:\n{inner}\nexcept KeyError:\n    pass",
            ]
        )  # fmt: skip

    # ------------------------------------------------------------ the step

    def step(self, both: bool) -> str:
        r = self.r
        lines = ["out, more = model(x)" if both else "out = model(x)"]
        lines.append(r.choice(["loss = F.cross_entropy(out, y)", "loss = (out ** 2).mean()", "loss = F.mse_loss(out, F.one_hot(y, 2).double())", "each = F.cross_entropy(out, y, reduction='none')\nloss = each.mean()", "loss = out[:, 0].mean()"]))
        if both:
            lines.append(r.choice(["loss = loss + 0.1 * more.mean()", "loss = loss + more.detach().mean()", "pass", "more.mean().backward(retain_graph=True)", "second = (more ** 2).mean()\nloss = loss + second", "weights = torch.softmax(more.detach(), 1)\nloss = (weights * out).mean()"]))
        lines += r.sample(
            [
                "t = out.sum()", "m = out.mean(0)", "mask = out[:, 0] > 0", "some = out[out[:, 0] > 0]", "n = x.size(0)", "best = out.max()",
                "hits = (out.argmax(1) == y).sum().item()", "share = (out.argmax(1) == y).double().mean()", "c = x - x.mean(0)", "g = out.t() @ out",
                "first = out[0]", "order = out[:, 0].argsort()", "u = out / out.norm(dim=1, keepdim=True)", "z = torch.zeros_like(out)", "both = torch.stack([out, out])",
                "w = net.head.weight * 2", "k = out[::2]", "cum = out.cumsum(0)", "norm = out.norm()", "var = out.var(0)", "flat = out.reshape(-1)", "half = len(out) // 2",
            ],
            4,
        )  # fmt: skip
        lines.append("loss.backward()")
        return "\n".join(lines)


def program(seed: int) -> str:
    """The text of a program."""
    return Maker(seed).program()


# ---------------------------------------------------------------- runs


class _Sampler:
    def __init__(self, chosen: list[int]) -> None:
        self.chosen = chosen

    def __iter__(self) -> Any:
        return iter(self.chosen)

    def __len__(self) -> int:
        return len(self.chosen)

    def set_epoch(self, epoch: int) -> None:
        """Nothing: there is one epoch."""


class Wrapped(torch.nn.Module):
    """A wrapper that only calls."""

    def __init__(self, module: torch.nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, *given: Any) -> Any:
        return self.module(*given)


def ran(text: str, chosen: list[int], options: tuple[str, ...]) -> dict[str, Any] | None:
    """The variables of a program that some samples were given to; None where it fails."""
    runtime = SimpleNamespace(
        setup=lambda: None, cleanup=lambda: None, seed_ranks=lambda: None, local_batch=lambda n: n, wrap=Wrapped,
        DistributedSampler=lambda *_, **__: _Sampler(chosen),
    )  # fmt: skip
    scope: dict[str, Any] = {"__name__": "__main__"}
    before = sys.modules.get("dpmigrate_runtime")
    sys.modules["dpmigrate_runtime"] = runtime  # type: ignore[assignment]
    try:
        with mock.patch.object(sys, "argv", ["train.py", *options]):
            exec(compile(text, "<model>", "exec"), scope)
    except Exception:
        return None
    finally:
        del sys.modules["dpmigrate_runtime"]
        if before is not None:
            sys.modules["dpmigrate_runtime"] = before
    return scope


@dataclass(slots=True)
class Verdict:
    """What is said of a program against what it does."""

    wrong: list[str] = field(default_factory=list)
    skipped: bool = False
    #: whether a parameter gets no gradient, and whether that is said
    missing: bool = False
    told: bool = False
    #: claims of placements that were held against the runs
    held: int = 0
    words: str = ""


def judged(text: str) -> Verdict:
    """Whether all that is said of a program holds."""
    out = Verdict()
    dealing = dealt(2, True)
    runs = []
    for options in CHOICES:
        whole = ran(text, list(range(SAMPLES)), options)
        parts = [ran(text, own.tolist(), options) for own in dealing]
        if whole is not None and None not in parts:
            runs.append((whole, parts))
    source = parse(text.encode(), "train.py")
    assert isinstance(source, Source)
    if not runs:
        out.skipped = True
        return out
    paper = executed(Program.of(source))
    faults = list(unused.faults(Trial(paper)))
    out.told, out.words = bool(faults), faults[0].words if faults else ""
    idle: set[str] = set()
    for whole, _ in runs:
        idle |= {n for n, p in whole["net"].named_parameters() if p.requires_grad and p.grad is None}
    out.missing = bool(idle)
    if idle and not faults:
        out.wrong.append(f"no gradient: {sorted(idle)[:3]}")
    for name, a in runs[0][0].items():
        if isinstance(a, torch.Tensor | int | float) and not name.startswith("_"):
            for whole, parts in runs:
                placement = paper_placement(paper, name)
                try:
                    out.held += hold(placement, whole[name], [p[name] for p in parts if p is not None], dealing)
                except Broken as e:
                    out.wrong.append(f"{name} is {placement}: {e}")
                    break
    return out


def paper_placement(paper: Any, name: str) -> Any:
    """How a variable lies on paper."""
    from dpmigrate.execution.values import placement_of

    return placement_of(paper.bound(held(paper, name)))


def main() -> None:
    """Run many programs and print what is wrong."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--show", type=int, default=10)
    parser.add_argument("--alarms", action="store_true", help="programs of which every parameter is used and that is not seen")
    args = parser.parse_args()
    torch.set_num_threads(1)
    counts: Counter[str] = Counter()
    for seed in range(args.first, args.first + args.count):
        text = program(seed)
        found = judged(text)
        counts["skipped"] += found.skipped
        counts["wrong"] += bool(found.wrong)
        counts["unused and told"] += found.missing and found.told
        counts["unused"] += found.missing
        counts["told without need"] += found.told and not found.missing and not found.skipped
        counts["placements held"] += found.held
        if found.wrong or (args.alarms and found.told and not found.missing and not found.skipped):
            if args.show > 0:
                args.show -= 1
                made = text[text.index("class Block") : text.index("ddp.setup")] + text[text.index("net = Net") :]
                print(f"---- {seed}: {found.wrong[:3]} {found.words}\n{made}", flush=True)
    print(dict(counts))


if __name__ == "__main__":
    main()
