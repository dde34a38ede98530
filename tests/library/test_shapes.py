"""Shapes in small programs: what is said of each name is held against runs of the whole batch and of shares of 2 and 3 ranks."""

from __future__ import annotations

from textwrap import indent
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from dpmigrate.execution.placements import Kind
from dpmigrate.execution.values import UNBOUND, Data, placement_of
from tests.execution.paper import executed, held
from tests.library.sharded import SAMPLES, Broken, dealt, hold

_HEAD = "from torch import nn\nimport torch.nn.functional as F\nfrom torch.utils.data import DataLoader, Dataset, TensorDataset\n"
_KNOWN = "loader = DataLoader(TensorDataset(torch.ones(8, 3, 4, 4), torch.ones(8).long()), batch_size=4)\n"
#: nobody sees how many axes the samples have
_UNKNOWN = """
from elsewhere import load

class Samples(Dataset):
    def __getitem__(self, i):
        return load(i), 1

loader = DataLoader(Samples(), batch_size=4)
"""
PROGRAMS = {
    "sizes": "b, c, h, w = x.shape\ny = x.view(b, c, h * w)\nout = y.mean(-1)\nloss = out.mean()",
    "an axis squeezed that is longer": "v = nn.Linear(16, 5)(x.flatten(2))\na = v.mean(-1, keepdim=True).transpose(1, 2)\np = torch.bmm(a, v).squeeze(2)\nout = p.mean(1) + v.mean(1)\nloss = out.mean()",
    "a column squeezed": "p = nn.Linear(48, 1)(x.flatten(1)).sigmoid().squeeze()\nout = (p - t) ** 2\nloss = out.mean()",
    "no sizes": "one = torch.ones(1).view([]) + torch.ones(1).reshape(())\nout = x.mean((1, 2, 3)) * one\nloss = out.mean()",
    "sizes by size": "b, c, h, w = x.size()\ny = x.view(b * c, 1, h, w)\nz = y.view(b, c, h, w)\nout = z.sum(dim=(1, 2, 3))\nloss = out.mean()",
    "told by sizes": "b, c, h, w = x.shape\nout = x.mean(dim=(-2, -1))\nloss = out.pow(2).mean()",
    "told by size": "n, c, h, w = x.size()\nout = x.flatten(2).transpose(-2, -1).softmax(-2)\nloss = out[:, 0].mean()",
    "the rest": "b, *rest = x.shape\ny = x.reshape(b, -1)\nout = y.view(b, *rest)\nz = torch.zeros(b, *rest) + x\nloss = out.flatten(1).sum(-1).mean()",
    "leading sizes": "s = x.flatten(2).transpose(1, 2)\nh = s.view(*s.shape[:-1], 1, 3)\nraw = s.size()\ng = s.reshape(*raw, 1)\nout = h.sum((-1, -2)) + g.sum((-1, -2)) + torch.zeros(*s.shape[:2])\nloss = out.mean()",
    "sizes and more": "s = x.flatten(2)\nout = s.view(s.shape[:-1] + (1, s.size(2))).sum((1, 2, 3))\nz = s.reshape([*s.shape[:2], -1]).amax((1, 2))\nloss = (out * z).mean()",
    "a list of sizes": "c = torch.ones(x.size(0), 5).view(-1, 5, 1, 1)\nsizes = list(x.shape)\nsizes[1] = 5\nc = c.expand(sizes)\nout = torch.cat([x, c], 1).mean((1, 2, 3))\nloss = out.mean()",
    "axes swapped in place": "s = (x.flatten(2) * 1).transpose_(1, 2)\nu = (x.flatten(2) * 1).transpose(0, 1).transpose_(1, 0)\nout = s.sum((1, 2)) + u.sum((1, 2))\nloss = out.mean()",
    "the smaller of two batches": "n = min(x.size(0), t.size(0))\nout = x[:n].flatten(1).sum(-1)\nloss = out.mean()",
    "a rest between": "b, *_, w = x.shape\ny = x.reshape(b, -1, w)\nout = y.mean(1)\nloss = out.mean()",
    "other axes": "out = ((x - 1) ** 2).mean(dim=list(range(1, len(x.shape))))\nloss = out.mean()",
    "other axes by ndim": "out = x.sum(dim=tuple(range(1, x.ndim)))\nloss = out.pow(2).mean()",
    "ones behind": "b = x.shape[0]\na = torch.linspace(0, 1, 2)[t]\na = a.reshape(b, *((1,) * (len(x.shape) - 1)))\nout = a * x\nloss = F.mse_loss(out, x)",
    "merged and back": "s = x.flatten(2).permute(0, 2, 1)\nb, n, d = s.shape\nh = s.reshape(b * n, d) * 2\nout = h.reshape(b, n, -1)\nloss = out.mean(dim=1).pow(2).sum(-1).mean()",
    "merged labels": "s = x.flatten(2).transpose(1, 2)\nb, n = s.size(0), s.size(1)\nout = s.contiguous().view(-1, s.size(2))\nloss = F.cross_entropy(out, torch.zeros(b * n).long())",
    "expanded": "m = nn.Parameter(torch.ones(1, 1, 1, 1)).expand(x.size(0), -1, -1, -1)\nout = x * m\nloss = out.mean()",
    "repeated": "q = torch.ones(5, 3)\nq = q.unsqueeze(0).repeat(x.shape[0], 1, 1)\nout = torch.bmm(q, x.flatten(2))\nloss = out.mean()",
    "windows": "p = x.reshape(x.shape[0], 3, 2, 2, 2, 2)\np = torch.einsum('nchpwq->nhwpqc', p)\nout = p.reshape(x.shape[0], 4, 12)\nN, L, D = out.shape\nloss = ((out - 1) ** 2).mean(dim=-1).sum(1).mean()",
    "gathered": "s = x.flatten(2)\nids = s.argsort(dim=-1)\nout = torch.gather(s, dim=-1, index=ids[..., :2])\nloss = out.mean()",
    "heads": "s = x.flatten(2).transpose(1, 2)\nB, T, C = s.shape\nk = s.view(B, T, 1, C).transpose(1, 2)\natt = (k @ k.transpose(-2, -1)).softmax(dim=-1)\nout = (att @ k).transpose(1, 2).contiguous().view(B, T, C)\nloss = out.mean()",
    "masked heads": "s = x.flatten(2).transpose(1, 2)\nB, T, C = s.shape\nm = torch.tril(torch.ones(T, T)).view(1, 1, T, T)\nk = s.view(B, T, 1, C).transpose(1, 2)\natt = (k @ k.transpose(-2, -1)).masked_fill(m[:, :, :T, :T] == 0, -1e9)\nout = att.softmax(-1) @ k\nloss = out.mean()",
    "layers of a grid": "d = nn.Conv2d(3, 4, 3, padding=1)(x)\np = F.max_pool2d(d, 2)\nu = F.interpolate(p, scale_factor=2, mode='bilinear')\nout = nn.Conv2d(8, 2, 1)(torch.cat([d, u], dim=1))\nloss = F.cross_entropy(out, torch.zeros(x.size(0), 4, 4).long())\nz = F.softmax(out, dim=1)[:, 1].sum(dim=(1, 2))",
    "padded to another": "d = nn.Conv2d(3, 4, 3, padding=1)(x)\nu = d[:, :, :2, :3]\nh, w = d.size()[2] - u.size()[2], d.size()[3] - u.size()[3]\nout = F.pad(u, [w // 2, w - w // 2, h // 2, h - h // 2])\nloss = out.mean()",
    "rows behind a layer": "def each(p, x):\n    total = 0.0\n    for i in range(len(x)):\n        total = total + (p[i, 0, 0] - x[i, 0]) ** 2\n    return total / len(x)\nf = x.flatten(1)\np = nn.Linear(48, 12)(f).reshape(-1, 6, 2)\nout = p.mean((1, 2))\nloss = each(p, f)",
    "samples normalised by channels": "b, c, h, w = x.size()\nm, v = torch.zeros(3).repeat(b), torch.ones(3).repeat(b)\ns = nn.Linear(3, 6)(x.mean((2, 3)))\ny = x.contiguous().view(1, b * c, h, w)\ny = F.batch_norm(y, m, v, s[:, :3].contiguous().view(-1), s[:, 3:].contiguous().view(-1), True)\nout = y.view(b, c, h, w).mean((1, 2, 3))\nloss = (y * 1.5).view(b, c, h, w).square().mean()",
    "squeezed and excited": "b, c, _, _ = x.size()\ny = F.adaptive_avg_pool2d(x, 1).view(b, c)\ny = nn.Linear(3, 3)(y).sigmoid().view(b, c, 1, 1)\nout = x * y.expand_as(x)\nloss = out.mean()",
    "gram": "f = nn.Conv2d(3, 4, 3)(x)\nb, c, h, w = f.size()\nf = f.view(b, c, h * w)\nout = f.bmm(f.transpose(1, 2)) / (c * h * w)\nloss = F.mse_loss(out, out.detach() * 2)",
    "cells": "h = torch.zeros(x.size(0), 5)\nc = torch.zeros(x.size(0), 5)\ncell = nn.LSTMCell(3, 5)\ns = x.flatten(2).permute(2, 0, 1)\nall_ = []\nfor i in range(s.size(0)):\n    h, c = cell(s[i], (h, c))\n    all_.append(h)\nout = torch.stack(all_, dim=1)\nloss = out.mean()",
    "states": "s = x.flatten(2).transpose(1, 2)\no, (h, c) = nn.LSTM(3, 5, batch_first=True, bidirectional=True)(s)\nout = torch.cat((h[-2], h[-1]), dim=1)\nz = o[:, -1, :]\nloss = (out + z).mean()",
    "times a table": "table = torch.fft.rfft(torch.arange(4.0)).abs()[:1]\nout = F.pad(x.flatten(2) * table, (0, 0, 1, 0))\nloss = out.mean()",
    "flattened up to the last": "out = torch.flatten(x, end_dim=-2)\nloss = out.square().mean()",
    "flattened up to the last but one": "out = x.flatten(0, -3)\nloss = out.square().mean()",
    "flattened behind the samples": "out = x.flatten(1, -2)\nloss = out.square().mean()",
    "fields": "l = x.flatten(1)\nq = l.gather(1, t.unsqueeze(-1)).squeeze(-1)\nout = l.max(1).values - q\nloss = out.mean()",
    "divided by targets": "l = F.log_softmax(x.flatten(1), dim=-1)\nm = torch.zeros_like(l)\nm.fill_(0.1)\nm.scatter_(1, t.data.unsqueeze(1), 0.9)\nout = torch.sum(-m * l, dim=-1)\nloss = torch.mean(out)",
    "quantised": "z = x.permute(0, 2, 3, 1).contiguous()\nf = z.view(-1, 3)\ne = nn.Embedding(7, 3)\nd = torch.sum(f ** 2, dim=1, keepdim=True) + torch.sum(e.weight ** 2, dim=1) - 2 * torch.matmul(f, e.weight.t())\nidx = torch.argmin(d, dim=1)\nq = e(idx).view(z.shape)\nout = q - z\nloss = torch.mean(out ** 2)",
    "unpooled": "s = x.size()\np, i = F.max_pool2d(nn.Conv2d(3, 3, 1)(x), 2, return_indices=True)\nout = F.max_unpool2d(p, i, 2, 2, output_size=s)\nloss = out.mean()",
    "windows put together": "def parts(y, n):\n    B, H, W, C = y.shape\n    y = y.view(B, H // n, n, W // n, n, C)\n    return y.permute(0, 1, 3, 2, 4, 5).contiguous().view(-1, n, n, C)\ny = parts(x.permute(0, 2, 3, 1), 2).view(-1, 4, 3) * 2\nw = y.view(-1, 2, 2, 3)\nB = int(w.shape[0] / (4 * 4 / 2 / 2))\nout = w.view(B, 2, 2, 2, 2, -1).permute(0, 1, 3, 2, 4, 5).contiguous().view(B, 4, 4, -1)\nloss = out.pow(2).mean()",
    "windows beside each other": "b, c, h, w = x.shape\nv = x.view(b, c, h // 2, 2, w // 2, 2).permute(0, 2, 4, 3, 5, 1).reshape(-1, 4, c)\nn, k, d = v.shape\nmask = torch.zeros(4, k, k)\nm = mask.shape[0]\na = v @ v.transpose(1, 2)\na = (a.view(n // m, m, k, k) + mask.unsqueeze(0)).view(-1, k, k).softmax(-1)\nout = (a @ v).view(b, -1).sum(1)\nloss = out.mean()",
    "channels shuffled in pairs": "x4 = nn.Conv2d(3, 4, 1)(x)\nb, c, h, w = x4.data.size()\ns = x4.reshape(b * c // 2, 2, h * w).permute(1, 0, 2).reshape(2, -1, c // 2, h, w)\nl, r = s[0], s[1]\nout = torch.cat([l.reshape(b * 2 // 2, -1), r.flatten(1)], 1).sum(1)\nz = r.reshape(b * 2 // 2, 2, h * w)\nloss = (out + z.sum((1, 2))).mean()",
    "channels shuffled in groups": "y = nn.Conv2d(3, 4, 1)(x)\nb, c, h, w = y.size()\ng = c // 2\ny = y.view(b, 2, g, h, w)\ny = torch.transpose(y, 1, 2).contiguous()\nout = y.view(b, -1, h, w)\nloss = out.mean()",
    "heads beside the samples": "s = x.flatten(2).permute(2, 0, 1)\nT, B, C = s.shape\nq = nn.Linear(3, 4)(s).contiguous().view(T, B * 2, 2).transpose(0, 1)\na = torch.bmm(q, q.transpose(1, 2)).softmax(-1)\nout = torch.bmm(a, q).transpose(0, 1).contiguous().view(T, B, 4).mean(0)\nloss = out.mean()",
    "states by layer and direction": "s = x.flatten(2).transpose(1, 2)\no, (h, c) = nn.LSTM(3, 5, 2, batch_first=True, bidirectional=True)(s)\nlast = h.view(2, 2, x.size(0), 5)[-1]\nz = c.view(2, 2, -1, 5)[1].permute(1, 0, 2).reshape(-1, 10)\nout = torch.cat([last[0], last[1]], 1) + z\nloss = out.mean()",
    "states of layers of an option": "import sys\nn = len(sys.argv[:1]) + 1\ns = x.flatten(2).transpose(1, 2)\no, h = nn.GRU(3, 5, num_layers=n, bidirectional=True, batch_first=True)(s)\nh = h.view(n, 2, s.size(0), 5)\nout = (h[-1, 0] + h[-1, 1])\nloss = out.mean()",
    "states one behind the other": "o, h = nn.GRU(3, 5, 2, batch_first=True)(x.flatten(2).transpose(1, 2))\nout = h.view(-1, 5)\nloss = out.mean()",
    "elements of a sample": "n = x.numel() // x.size(0)\nout = x.view(x.size(0), n).sum(1)\nloss = out.mean()",
    "chosen by places": "u = x.flatten(1)\ni, j = torch.where(u > 0)\nout = u[i, j]\nk = u[i]\nw = torch.arange(48)[j]\nn = out.numel()\nloss = out.sum() + j.sum()",
    "selected": "out = x.select(1, 0).narrow(1, 0, 2)\nloss = out.mean()",
    "unbound": "a, b, c = nn.Linear(4, 6)(x).reshape(x.size(0), 3, 4, 2, 3).permute(3, 0, 1, 2, 4).unbind(0)[0].chunk(3, dim=-1)\nout = (a * b + c).mean((1, 2, 3))\nloss = out.mean()",
    "distributions": "d = torch.distributions.Categorical(logits=x.flatten(1))\nout = d.log_prob(t)\nloss = -out.mean() - 0.01 * d.entropy().mean()",
}  # fmt: skip


def _run(text: str, x: torch.Tensor, t: torch.Tensor) -> dict[str, Any]:
    torch.manual_seed(0)
    scope: dict[str, Any] = {"torch": torch, "nn": nn, "F": F, "x": x, "t": t}
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        exec(text, scope)
    finally:
        torch.set_default_dtype(before)
    return scope


@pytest.mark.parametrize("known", [True, False], ids=["axes known", "axes unknown"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_shapes(name: str, known: bool) -> None:
    text = PROGRAMS[name]
    head = _KNOWN if known else _UNKNOWN
    ex = executed(f"{_HEAD}{head}for x, t in loader:\n{indent(text, '    ')}\n")
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(SAMPLES, 3, 4, 4, generator=generator, dtype=torch.float64)
    t = torch.randint(0, 2, (SAMPLES,), generator=generator)
    whole = _run(text, x, t)
    for world, strided in ((2, True), (3, False)):
        dealing = dealt(world, strided)
        parts = [_run(text, x[own], t[own]) for own in dealing]
        for n, total in whole.items():
            found = tuple(a for a in held(ex, n) if a != UNBOUND)
            if not isinstance(total, torch.Tensor | int) or n in ("x", "t") or not found:
                continue
            hold(placement_of(found), total, [p[n] for p in parts], dealing)
            for atom in found:
                if isinstance(atom, Data) and atom.axes is not None and isinstance(total, torch.Tensor) and atom.axes != total.dim():
                    raise Broken(f"{n}: {atom.axes} axes are said, {total.dim()} are there")
    assert placement_of(tuple(a for a in held(ex, "loss") if a != UNBOUND)).kind is Kind.PARTIAL
    assert placement_of(tuple(a for a in held(ex, "out") if a != UNBOUND)).kind is Kind.ROWS


@pytest.mark.parametrize("view", [
    "x.view(x.size(0) // 2, 2, -1)",  # pairs of samples
    "x.view(2, -1, 3)",
    "torch.cat([x, x]).view(x.size(0) * 2 // 2, -1)",
    "x.reshape(x.size(0) * x.size(1) // 2, 2, -1).permute(1, 0, 2).reshape(4, -1)",  # 2 axes of the first length were 1
    "x.view(x.size(0), 6, 8).transpose(0, 1).reshape(3, x.size(0), 16)",
    "x.view(x.size(0), 6, 8).transpose(0, 1).reshape(x.size(0), -1)",
    "torch.cat([x.flatten(1), x.flatten(1)]).view(-1, 12).view(x.size(0) * 3 // 2, -1)",
    "x.unflatten(0, (2, -1))",
    "x.flatten(2).permute(2, 0, 1).reshape(4, 4, x.size(0), *__import__('elsewhere').rest)",
    "x.flatten(2).permute(2, 0, 1).reshape(-1, x.size(0) * 2, 3)",
    "x.flatten(2).permute(2, 0, 1).reshape(4, 4, 3, x.size(0))",
    "nn.GRU(3, 5, 2, batch_first=True)(x.flatten(2).transpose(1, 2))[1].view(-1, 2, 5)",
    "nn.GRU(3, 5, bidirectional=True, batch_first=True)(x.flatten(2).transpose(1, 2))[1].view(-1, 10)",  # two samples
    "nn.GRU(3, 5, 2, True, True, 0.0, True)(x.flatten(2).transpose(1, 2))[1].view(2, -1, 5)",
])  # fmt: skip
def test_views_that_part_the_samples_elsewhere(view: str) -> None:
    ex = executed(f"{_HEAD}import torch\n{_KNOWN}for x, t in loader:\n    out = {view}\n")
    assert placement_of(held(ex, "out")).kind is Kind.UNKNOWN


def test_a_list_of_axes_to_which_more_is_added() -> None:
    text = "axes = list(range(1, x.ndim))\naxes.append(0)\nout = x.mean(dim=axes)"
    ex = executed(f"{_HEAD}{_UNKNOWN}for x, t in loader:\n{indent(text, '    ')}\n")
    assert placement_of(held(ex, "out")).kind is Kind.UNKNOWN


@pytest.mark.parametrize(("reduction", "kind"), [("none", Kind.ROWS), ("sum", Kind.PARTIAL)])
def test_a_criterion_that_an_option_chooses(reduction: str, kind: Kind) -> None:
    """Each is made on one way alone: what it was given holds there."""
    text = f"if input():\n    loss = nn.L1Loss(reduction='{reduction}')\nelse:\n    loss = nn.MSELoss(reduction='{reduction}')\n"
    ex = executed(f"{_HEAD}{_UNKNOWN}{text}for x, t in loader:\n    out = loss(x, t)\n")
    assert placement_of(tuple(a for a in held(ex, "out") if a != UNBOUND)).kind is kind


def test_what_padding_says_of_an_unknown_number_of_axes() -> None:
    """What is reflected has an axis before those that are padded."""
    ex = executed(f"{_HEAD}{_UNKNOWN}for x, t in loader:\n    out = F.pad(x, (0, 1, 0, int(input())), mode='reflect')\n    one = F.pad(x, (0, 1, 0, 1))\n")
    assert placement_of(held(ex, "out")).kind is Kind.ROWS
    assert placement_of(held(ex, "one")).kind is Kind.UNKNOWN


@pytest.mark.parametrize(
    ("line", "kind", "axis"),
    [
        ("out = x.repeat(1, 5, 1)", Kind.ROWS, 0),  # of each sample, as ``expand``
        ("out = x.unsqueeze(0).repeat(n, 1, 1)", Kind.ROWS, 1),  # the states of n layers
        ("out = x.repeat(5, 1, 1)", Kind.UNKNOWN, 0),  # the samples, or a new axis
        ("out = x.unsqueeze(0).repeat(1, 5, 1)", Kind.UNKNOWN, 0),
    ],
)
def test_repeats_of_an_unknown_number_of_axes(line: str, kind: Kind, axis: int) -> None:
    ex = executed(f"{_HEAD}{_UNKNOWN}n = int(input())\nfor x, t in loader:\n    {line}\n")
    found = placement_of(held(ex, "out"))
    assert (found.kind, found.axis) == (kind, axis)


def test_buffers_that_a_loop_registers_by_name() -> None:
    names = "".join(f"'b{i}': torch.arange(9.0) * {i}, " for i in range(9))
    net = (
        "class Net(nn.Module):\n    def __init__(self, given):\n        super().__init__()\n"
        "        for name, held in given.items():\n            self.register_buffer(name, held)\n"
        "    def forward(self, x):\n        t = torch.randint(0, 9, (x.shape[0],))\n        return self.b7[t, None, None, None] * x\n"
    )
    ex = executed(f"{_HEAD}{_KNOWN}{net}net = Net({{{names}}})\nfor x, t in loader:\n    out = net(x)\n")
    assert placement_of(held(ex, "out")).kind is Kind.ROWS


def test_a_word_is_no_place_of_a_sample() -> None:
    """What a transform of other code makes of a sample may be a dictionary."""
    samples = "class Samples(Dataset):\n    def __getitem__(self, i):\n        return transforms.Compose([])({'a': torch.ones(3)})\n"
    ex = executed(f"{_HEAD}from torchvision import transforms\n{samples}for x in DataLoader(Samples()):\n    field = x['a']\n    first = x[0]\n")
    assert placement_of(held(ex, "field")).kind is Kind.ROWS
    assert placement_of(held(ex, "first")).kind is Kind.PER_RANK


@pytest.mark.parametrize(
    ("order", "kind"),
    [
        pytest.param("torch.randperm(x.size(0))", Kind.ROWS, id="a partner for each sample"),
        pytest.param("torch.randperm(x.size(0)).to('cpu')", Kind.ROWS, id="moved"),
        pytest.param("torch.randperm(x.size(0))[:4]", Kind.PER_RANK, id="some of them"),
        pytest.param("torch.randperm(x.size(0)) // 2", Kind.PER_RANK, id="computed"),
        pytest.param("torch.randperm(4)", Kind.PER_RANK, id="of another number"),
    ],
)
def test_an_order_of_the_batch_gives_each_sample_a_partner(order: str, kind: Kind) -> None:
    ex = executed(f"{_HEAD}{_UNKNOWN}for x, t in loader:\n    out = x[{order}, :]\n    field = x['image']\n")
    assert placement_of(held(ex, "out")).kind is kind
    assert bool(list(ex.trace.of("partners"))) is (kind is Kind.ROWS)
    assert placement_of(held(ex, "field")).kind is Kind.ROWS
    ex = executed(f"{_HEAD}{_UNKNOWN}for x, t in loader:\n    out = x.index_select(0, {order})\n")
    assert placement_of(held(ex, "out")).kind is kind


@pytest.mark.parametrize(
    ("sizes", "kind"),
    [("b, *rest", Kind.ROWS), ("*[b, 2]", Kind.ROWS), ("*rest", Kind.UNIFORM), ("*rest, b", Kind.UNKNOWN)],
)
def test_sizes_of_which_only_some_are_known(sizes: str, kind: Kind) -> None:
    text = f"b, *rest = x.shape\nout = torch.randn({sizes})"
    ex = executed(f"{_HEAD}{_UNKNOWN}for x, t in loader:\n{indent(text, '    ')}\n")
    assert placement_of(tuple(a for a in held(ex, "out") if a != UNBOUND)).kind is kind


@pytest.mark.parametrize(
    ("expression", "kind"),
    [
        ("torch.zeros(x.shape[:2])", Kind.ROWS),
        ("torch.zeros(list(x.shape))", Kind.ROWS),
        ("torch.randn((x.shape[0],) + x.shape[1:])", Kind.ROWS),
        ("torch.rand((len(x),) + (1,) * (x.dim() - 1))", Kind.ROWS),
        ("torch.rand((1, 2 * len(x)) + (1,) * (x.dim() - 2))", Kind.ROWS),
        ("torch.rand((len(x), len(x)) + (1,) * (x.dim() - 2))", Kind.UNKNOWN),
        ("torch.rand((1,) * (x.dim() - 1) + (len(x),))", Kind.UNKNOWN),
        ("torch.rand((len(x),) + (1,) * int(x.sum()))", Kind.UNKNOWN),
        ("torch.rand((int(x.sum()),) + (1,) * (x.dim() - 1))", Kind.UNKNOWN),
        ("torch.ones([x.shape[0], *x.shape[1:]])", Kind.UNKNOWN),
        ("torch.ones(x.shape)", Kind.ROWS),
        ("torch.ones(json.loads(input()))", Kind.UNIFORM),
        ("torch.ones(2, 3).expand(x.shape[0], *x.shape[1:])", Kind.ROWS),
        ("x.mean().expand(x.shape[0], *x.shape[1:])", Kind.PER_RANK),
        ("x[:, None].expand(-1, 4, *x.shape[1:])", Kind.UNKNOWN),
    ],
)
def test_sizes_of_a_shape_that_is_not_known(expression: str, kind: Kind) -> None:
    ex = executed(f"{_HEAD}{_UNKNOWN}import json\nfor x, t in loader:\n    out = {expression}\n")
    assert placement_of(tuple(a for a in held(ex, "out") if a != UNBOUND)).kind is kind


@pytest.mark.parametrize(("transform", "axes"), [("transforms.ToTensor()", 4), ("transforms.Compose([transforms.ToTensor()])", None), ("transforms.ToPILImage()", None)])
def test_an_image_has_other_axes_than_its_path(transform: str, axes: int | None) -> None:
    text = f"""
from PIL import Image
from torchvision import transforms

class Samples(Dataset):
    def __init__(self, files):
        self.files, self.transform = files, {transform}

    def __getitem__(self, i):
        return self.transform(Image.open(self.files[i]))

import glob
for x in DataLoader(Samples(glob.glob("*")), batch_size=4):
    out = nn.Conv2d(3, 4, 3)(x)
"""
    ex = executed(_HEAD + text)
    (x,) = (a for a in held(ex, "x") if isinstance(a, Data))
    assert x.axes == axes
    assert placement_of(tuple(a for a in held(ex, "out") if a != UNBOUND)).kind is Kind.ROWS


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        pytest.param("out = z.log_softmax(-1)", Kind.UNKNOWN, id="over the samples, perhaps"),
        pytest.param("out = F.softmax(z / 2, dim=-1)", Kind.UNKNOWN, id="after an operation by element"),
        pytest.param("out = nn.LogSoftmax(dim=-1)(z.relu())", Kind.UNKNOWN, id="a layer"),
        pytest.param("out = F.cross_entropy(z.relu(), t)", Kind.UNKNOWN, id="a loss of classes"),
        pytest.param("out = z.mean(-1)", Kind.UNKNOWN, id="a mean"),
        pytest.param("out = (z - t).mean()", Kind.PARTIAL, id="all of it"),
        pytest.param("out = z.log_softmax(1)", Kind.ROWS, id="the second"),
        pytest.param("out = z.unsqueeze(1).log_softmax(-1)", Kind.ROWS, id="with another axis"),
        pytest.param("out = nn.Linear(4, 2)(z).log_softmax(-1)", Kind.ROWS, id="behind a layer that has features"),
        pytest.param("out = F.linear(z, w).log_softmax(-1)", Kind.ROWS, id="behind a product with weights"),
        pytest.param("out = (z * torch.ones(1, 4)).log_softmax(-1)", Kind.ROWS, id="beside a table"),
    ],
)
def test_an_axis_that_squeeze_may_have_left_alone(text: str, kind: Kind) -> None:
    """``z`` has one number a sample, perhaps: then its last axis is that of the samples."""
    ex = executed(f"{_HEAD}{_UNKNOWN}w = torch.ones(2, 4)\nfor x, t in loader:\n    z = x.squeeze()\n    {text}\n")
    assert placement_of(tuple(a for a in held(ex, "out") if a != UNBOUND)).kind is kind


@pytest.mark.parametrize(
    "loop",
    [
        pytest.param("for kept in seen:", id="the list"),
        pytest.param("for _, kept in zip([1, 2], seen):", id="zip"),
        pytest.param("for kept in reversed(seen[:-1]):", id="reversed"),
        pytest.param("for _, kept in enumerate(list(reversed(seen))):", id="nested"),
        pytest.param("for kept in [k for k in reversed(seen)]:", id="a comprehension"),
        pytest.param("seen = reversed(seen[:-1])\n    for _, kept in zip([1, 2], seen):", id="under its name"),
    ],
)
def test_a_list_that_a_loop_goes_through_is_another_one_in_the_next_call(loop: str) -> None:
    """A U-Net keeps what it has made in a list: that of the batches of training is not in those of other batches."""
    text = (
        f"def net(v, k):\n    seen = []\n    for n in range(k):\n        v = v + 1\n        seen.append(v)\n    {loop}\n        v = v + kept\n    return v\n"
        f"{_UNKNOWN}for x, t in loader:\n    first = net(x, int(input()))\nsecond = net(torch.ones(3), int(input()))\n"
    )
    ex = executed(f"{_HEAD}{text}")
    assert placement_of(tuple(a for a in held(ex, "first") if a != UNBOUND)).kind is Kind.ROWS
    assert not any(a.sources for a in held(ex, "second") if isinstance(a, Data))


_MAKE = "def make(v):\n    seen = []\n    for n in range(int(input())):\n        seen.append(v)\n    return zip(seen, seen)\n"


@pytest.mark.parametrize(
    "keeps",
    [
        pytest.param("made = []\nfor v in [x0, torch.ones(3)]:\n    made.append(make(v))\nfor pair in made:\n    for out, _ in pair:\n        pass\n", id="in a list"),
        pytest.param("for v in [x0, torch.ones(3)]:\n    before = pair if v is not x0 else []\n    pair = make(v)\nfor out, _ in before:\n    pass\n", id="in a variable"),
    ],
)
def test_an_iterator_that_is_held_has_what_it_goes_over(keeps: str) -> None:
    ex = executed(f"{_HEAD}{_MAKE}{_UNKNOWN}for x0, t in loader:\n{indent(keeps, '    ')}")
    assert any(a.sources for a in held(ex, "out") if isinstance(a, Data))


_COMPOSED = """
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms
class Both:
    def __call__(self, sample):
        image, label = sample
        return torch.from_numpy(image), label
class Samples(Dataset):
    def __init__(self, transform):
        self.transform = transform
    def __getitem__(self, i):
        return self.transform((np.load(names[i]), i))
import numpy as np
names = open('names').read().split()
for batch in DataLoader(Samples({transform}), 4):
    x, y = batch
"""


@pytest.mark.parametrize("transform", ["Both()", "transforms.Compose([Both()])", "transforms.Compose([Both(), Both()])", "transforms.Compose((lambda s: s, Both()))"])
def test_transforms_of_the_program_take_samples_of_several_parts(transform: str) -> None:
    """What the library's own give is one tensor, and its parts are single samples."""
    ex = executed(_COMPOSED.format(transform=transform))
    assert [str(placement_of(held(ex, name))) for name in "xy"] == ["rows(axis 0)"] * 2


@pytest.mark.parametrize(
    ("out", "kind", "axis", "axes"),
    [
        ("nn.Linear(4, 1)(x).squeeze()", Kind.ROWS, 0, 1),
        ("nn.Linear(4, 3)(x).sigmoid().squeeze()", Kind.ROWS, 0, 2),
        ("(2 - nn.Linear(4, 3)(x)).squeeze().norm(dim=-1)", Kind.ROWS, 0, 1),
        ("nn.Linear(4, 1)(x).transpose(0, 1).squeeze()", Kind.ROWS, 0, 1),
        ("nn.Linear(4, 3)(x).transpose(0, 1).squeeze()", Kind.ROWS, 1, 2),
        ("nn.Linear(4, width)(x).squeeze()", Kind.ROWS, 0, None),
        ("nn.Linear(4, args.wide)(x).squeeze()", Kind.ROWS, 0, 2),
        ("nn.Linear(4, args.one)(x).squeeze()", Kind.ROWS, 0, None),
        ("(nn.Linear(4, 1)(x) * width).squeeze()", Kind.ROWS, 0, None),
        ("(nn.Linear(4, 1)(x) * torch.ones(3)).squeeze()", Kind.ROWS, 0, None),
        ("(x[:, None] @ nn.Linear(1, 1)(x[:, :, None])).squeeze(2)", Kind.ROWS, 0, 2),
        ("(x[:, None] @ nn.Linear(1, 3)(x[:, :, None])).squeeze(2)", Kind.ROWS, 0, 3),
        ("nn.Linear(4, 3)(x).squeeze(1)", Kind.ROWS, 0, 2),
        ("nn.Linear(4, 1)(x).squeeze(-1)", Kind.ROWS, 0, 1),
        ("nn.Linear(4, 1)(x)[:, None].squeeze(1).squeeze(1)", Kind.ROWS, 0, 1),
        ("nn.Linear(4, 3)(x[:, None, :, None].squeeze()).squeeze()", Kind.ROWS, 0, None),
    ],
)  # fmt: skip
def test_axes_that_squeeze_leaves_where_their_lengths_are_known(out: str, kind: Kind, axis: int, axes: int | None) -> None:
    head = f"{_HEAD}import unseen, argparse\nwidth = unseen.width\nparser = argparse.ArgumentParser()\n"
    head += "parser.add_argument('--wide', type=int, default=8)\nparser.add_argument('--one', type=int, default=1)\nargs = parser.parse_args()\n"
    ex = executed(f"{head}for x, t in DataLoader(TensorDataset(torch.ones(8, 4), torch.ones(8)), 4):\n    out = {out}\n")
    (found,) = [a for a in held(ex, "out") if isinstance(a, Data)]
    assert (found.placement.kind, found.placement.axis, found.axes) == (kind, axis, axes)


@pytest.mark.parametrize("more", [
    "torch.zeros(8), torch.ones(8), None, None, True",  # statistics of no sample
    "None, None, torch.ones(8), None, True",
    "None, None, x.flatten(1).t(), None, True",
])  # fmt: skip
def test_samples_normalised_as_channels_have_weights_of_their_own(more: str) -> None:
    ex = executed(f"{_HEAD}{_KNOWN}for x, t in loader:\n    b, c, h, w = x.size()\n    out = F.batch_norm(x.view(1, b * c, h, w), {more})\n")
    assert placement_of(tuple(a for a in held(ex, "out") if a != UNBOUND)).kind is Kind.UNKNOWN


def test_sizes_of_what_is_not_known_are_not_known_for_its_reason() -> None:
    text = "import json\nfor x, t in loader:\n    b, h = list(torch.ones([x.shape[0], *x.shape[1:]]).size())\n    out = torch.ones(h)\n"
    made = [a for a in held(executed(f"{_HEAD}{_UNKNOWN}{text}"), "h") if isinstance(a, Data)]
    assert [a.placement.kind for a in made] == [Kind.UNKNOWN]
