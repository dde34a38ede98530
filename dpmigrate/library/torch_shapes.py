"""torch's shapes, indices and new tensors (https://docs.pytorch.org/docs/stable/torch.html)."""

from __future__ import annotations

from dpmigrate.library.effects import in_place, unestablished
from dpmigrate.library.indexing import index
from dpmigrate.library.joining import cat, chunk, stack, unbind, views
from dpmigrate.library.selections import (
    gather,
    index_select,
    masked_select,
    nonzero,
    scatter,
    where,
)
from dpmigrate.library.shapes import (
    flatten,
    kept,
    moved,
    permute,
    squeeze,
    unsqueeze,
    windows,
)
from dpmigrate.library.sites import Row, examples
from dpmigrate.library.sizes import (
    elements_count,
    expand,
    expand_as,
    repeat,
    repeat_interleave,
    shape,
)
from dpmigrate.library.storing import stored
from dpmigrate.library.torch_math import both
from dpmigrate.library.views import like_another, reshape, unflatten

_DOC = "https://docs.pytorch.org/docs/stable/torch.html"

ROWS = (
    Row(both("reshape view"), kept(reshape), examples("""
x.view(x.size(0), -1)
x.reshape(-1, 4)
x.reshape(x.shape[0], 2, 2)
x.view(-1, 2)
x.view(-1)
x.view(1, -1, 4)
x.view(-1, 2, 2).view(-1, *x.view(-1, 2, 2).shape[-2:])
x.view(-1, 2, 2).view(-1, *x.view(-1, 2, 2).shape[1:])
x.view(-1, 1, 2, 2).view(-1, *x.view(-1, 1, 2, 2).shape[-2:])
x.view(x.size(0) * 2, 2)
x.t().reshape(-1)
torch.cat([x, y]).view(2, x.size(0), 4)
torch.stack([x, y]).reshape(-1, 4).reshape(2, x.size(0), 4)
torch.cat([x, y]).view(-1, 4)
x[:, :, None].view(x.size(0), 4)
x[:, 0].view(-1)
x[:, 0].view(-1, 1)
x.t().reshape(4, x.size(0), 1)
x.view(-1, 2, 2).view(x.size(0), -1)
x.view(-1, 2).view(x.view(-1, 2).size(0) // 2, 4)
x.view(x.size(0) * 4 // 2, 2)
x.view(int(x.numel() / 4), 2, 2)
x.view(x.size(0), 2, 2).transpose(0, 1).reshape(2, x.size(0) * 2).reshape(2, x.size(0), 2)
x.reshape(x.size(0) * x.size(1) // 2, 2).permute(1, 0).reshape(2, -1, 2)
x.reshape(x.size(0) * x.size(1) // 2, 2).t().contiguous().view(1, 2, -1, 2, 1)
x.view(x.size(0), 2, 2).transpose(0, 1).reshape(2, x.size(0) * 2)
x.view(x.size(0), 2, 2).permute(1, 2, 0).reshape(2, 2, -1)
x.view(x.size(0), 2, 2).transpose(1, 2).reshape(x.size(0), 4)
torch.cat([x, y]).view(2, -1, 4)
w.view(-1)
x.sum(0).view(2, 2)
x.view(y.shape)
x[x[:, 0] > 0].view(-1, 4)
"""), _DOC),
    Row(".unfold", windows, ("x.unfold(1, 2, 1)", "x.unfold(0, 2, 2)"), _DOC),
    Row(".view_as .reshape_as", kept(like_another), ("x.view_as(y)",), _DOC),
    Row(both("flatten ravel"), kept(flatten), examples("""
x.flatten(1)
x.flatten()
x.view(-1, 2, 2).flatten(1)
x.view(-1, 2, 2).flatten(0, 1)
x.t().flatten()
x[None].flatten(0, 1)
x.view(-1, 2, 2).transpose(0, 2).flatten(0, 1)
torch.flatten(x, start_dim=1)
"""), _DOC),
    Row(both("unflatten"), unflatten, examples("""
x.unflatten(1, (2, 2))
x.unflatten(0, (-1, 1))
x.unflatten(0, (x.size(0), 1))
x.t().unflatten(0, (2, 2))
x.t().unflatten(1, (1, -1))
torch.cat([x, y]).unflatten(0, (2, -1))
x.view(-1, 2).unflatten(0, (x.size(0), 2))
"""), _DOC),
    Row(both("permute transpose swapaxes swapdims t adjoint"), kept(permute), examples("""
x.t()
x.transpose(0, 1)
x.transpose(-1, -2)
x.view(-1, 2, 2).permute(1, 0, 2)
x.view(-1, 2, 2).permute(2, 1, 0)
x.view(-1, 2, 2).transpose(1, 2)
x.permute(-1, 0)
torch.permute(x, (1, 0))
"""), _DOC),
    Row(both("movedim moveaxis"), moved, ("x.movedim(0, 1)", "x[None].movedim(1, 0)"), _DOC),
    Row(both("unsqueeze"), kept(unsqueeze), examples("""
x.unsqueeze(1)
x.unsqueeze(0)
x.unsqueeze(-1)
x.unsqueeze(-2)
x[:, 0].unsqueeze(-2)
"""), _DOC),
    Row(both("squeeze"), kept(squeeze), examples("""
x.unsqueeze(1).squeeze(1)
x[:, :1].squeeze()
x[:, :1].squeeze(-1)
x[None].squeeze(0)
"""), _DOC),
    Row("torch.cat torch.concat torch.concatenate", cat(), examples("""
torch.cat([x, y], 1)
torch.cat([x, y])
torch.cat([x, y], dim=-1)
torch.cat([x, w])
torch.cat([x, y, x]).mean(0)
torch.cat([w, w])
torch.cat([x[x[:, 0] > 0], y])
torch.cat([x.sum(0), y.sum(0)])
torch.cat([torch.cat([x, y]), x])
torch.cat([x.t(), y.t()], 1)
torch.cat([x.view(-1, 2), y.view(-1, 2)])
"""), _DOC),
    Row("torch.hstack", cat(-1, 1), examples("""
torch.hstack([x, y])
torch.hstack([x[:, 0], y[:, 0]])
"""), _DOC),
    Row("torch.vstack torch.row_stack", cat(-1, 0), examples("""
torch.vstack([x, y])
torch.vstack([x[:, 0], y[:, 0]])
"""), _DOC),
    Row("torch.column_stack", cat(-1, 1), examples("""
torch.column_stack([x[:, 0], y])
torch.column_stack([x, y])
"""), _DOC),
    Row("torch.stack", stack, examples("""
torch.stack([x, y], 1)
torch.stack([x, y])
torch.stack([x, y], -1)
torch.stack([x.mean(), y.mean()])
torch.stack([x[:, 0], y[:, 0]], dim=-2)
torch.stack([x.sum(), w.sum()])
"""), _DOC),
    Row(".__setitem__", stored, source=_DOC),
    Row(".__getitem__", index, examples("""
x[:, 0]
x[:, 1:3]
x[:, None]
x[None]
x[0]
x[:2]
x[::2]
x[..., 0]
x[..., None]
x[:, [0, 1]]
x[[0, 1]]
x[x[:, 0] > 0]
x[x > 0]
x[x > 0].sum()
x[:, w[0] > 0]
x[torch.arange(x.size(0)), t]
x[torch.arange(0, x.size(0)), t]
x[torch.arange(start=0, end=x.size(0), step=1), t]
x[torch.arange(0, x.size(0), 2)]
x[range(x.size(0)), t]
x.view(-1, 2, 2)[range(len(x)), t % 2, :]
x[torch.arange(x.size(0))[:, None], x.argsort(1)]
x[torch.arange(x.size(0)).view(-1, 1), x.argsort(1)[:, :2]]
x[torch.arange(x.size(0)).unsqueeze(1), torch.arange(4)[None]]
x[torch.arange(x.size(0))[:, None]]
x[torch.arange(x.size(0))[:, None], t]
x[torch.arange(x.size(0))[:, None, None], x.view(-1, 2, 2).argsort(-1)]
x.view(-1, 1, 2, 2)[torch.arange(x.size(0))[:, None, None], torch.arange(1)[None, :, None], x.view(-1, 1, 2, 2).sum(-1).topk(1)[1], :]
x.t()[torch.arange(4)[:, None], torch.arange(x.size(0))[None]]
x[torch.arange(x.size(0))]
x[range(x.size(0)), t]
x[:, t]
x[t]
w[t]
w[:, t]
w[t, 0]
w[t, t]
w[0, t]
x[torch.randperm(x.size(0))]
torch.cat([x, y])[:x.size(0)]
torch.cat([x, y])[x.size(0):]
x.t()[0]
x.t()[:, 0]
x[(x[:, 0] > 0).nonzero().squeeze(1)]
x[torch.where(x[:, 0] > 0)[0]]
x[torch.where(x > 0)]
x[torch.where(x > 0)[0]]
x.sum(0)[0]
x.view(-1, 2, 2)[:, 0]
x.view(-1, 2, 2)[:, :, 0]
x.view(-1, 2, 2)[..., 0]
x.view(-1, 2, 2)[:, [0, 1], [0, 1]]
x.shape[0]
x.shape[1]
x.shape[-1]
x[x[:, 0] > 0].shape[0]
"""), _DOC),
    Row(both("gather take_along_dim"), gather, examples("""
x.gather(1, t[:, None])
x.gather(0, t[:, None])
w.gather(0, t[:, None])
x.gather(1, x.argsort(1))
"""), _DOC),
    Row(both("""
scatter scatter_add scatter_reduce index_add index_fill index_copy
"""), scatter, examples("""
torch.zeros(x.size(0), 4).scatter(1, t[:, None], 1.0)
torch.zeros_like(x).scatter_add(1, t[:, None], x)
torch.zeros(4, 4, dtype=x.dtype).index_add(0, t, x)
torch.ones(4, 4, dtype=x.dtype).index_add(0, t, x)
x.index_fill(1, torch.tensor([0]), 0.0)
x.index_fill(0, torch.nonzero(t == 1).squeeze(1), 0.0)
"""), _DOC),
    Row(both("index_select"), index_select, examples("""
x.index_select(1, torch.tensor([0, 2]))
x.index_select(0, torch.tensor([0, 2]))
w.index_select(0, t)
w.index_select(1, t)
"""), _DOC),
    Row(both("take put"), unestablished("which elements are taken"), examples("""
w.take(torch.tensor([0]))
"""), _DOC),
    Row(both("masked_select"), masked_select, examples("""
x.masked_select(x > 0)
x.masked_select(x > 0).sum()
"""), _DOC),
    Row(both("nonzero argwhere"), nonzero, examples("""
(x > 0).nonzero()
(x[:, 0] > 0).nonzero()
x[(x[:, 0] > 0).nonzero()[:, 0]]
"""), _DOC),
    Row("torch.where .where", where, examples("""
torch.where(x > 0, x, y)
torch.where(x > 0, x, 0.0)
torch.where(x > 0)[0]
"""), _DOC),
    Row(both("split chunk tensor_split"), views(chunk), examples("""
x.chunk(2, 1)[0]
x.chunk(2)[0]
x.split(2, 1)[0]
x.split([1, 3], dim=1)[1]
torch.cat([x, y]).chunk(2)[1]
torch.cat([x, y]).split(x.size(0))[0]
torch.cat([x, y]).split(3)[0]
torch.cat([x, y]).split([x.size(0), x.size(0)])[1]
torch.cat([x, y, x]).chunk(2)[1]
"""), _DOC),
    Row(both("unbind"), views(unbind), ("x.unbind(1)[0]", "x.unbind()[0]", "x[None].unbind(0)[0]"), _DOC),
    Row(".expand .broadcast_to torch.broadcast_to", expand, examples("""
x[:, :1].expand(x.size(0), 3)
x[:, None].expand(-1, 3, -1)
x[None].expand(3, -1, -1)
x.expand(3, x.size(0), 4)
w[0].expand(x.size(0), -1)
w[None].expand(x.size(0), 4, 4)
x[None].expand(x.size(0), x.size(0), 4)
"""), _DOC),
    Row(".expand_as", expand_as, examples("""
x.sum(1, keepdim=True).expand_as(x)
x[(x[:, :1] > 0).expand_as(x)].mean()
x[torch.cat([x[:, :2] > 0, y[:, :2] > 0], 1)].sum()
w[0].expand_as(x)
"""), _DOC),
    Row(".repeat .tile torch.tile", repeat, examples("""
x.repeat(1, 2)
x.repeat(2, 1)
x.repeat(2, 1).mean(0)
x.repeat(3, 1, 1)
w.repeat(x.size(0), 1)
w.repeat(x.size(0), 1, 1).sum((1, 2)) * x[:, 0]
x[None].repeat(x.size(0), 1, 1)
x[:, 0].repeat(2)
torch.tile(x, (1, 2))
torch.tile(x, (2, 1))
"""), _DOC),
    Row(both("repeat_interleave"), repeat_interleave, examples("""
x.repeat_interleave(2, 0)
x.repeat_interleave(2, dim=1)
x.repeat_interleave(2)
x.repeat_interleave(t, dim=0)
torch.repeat_interleave(w[:1], x.size(0), 0) + x
w[:1, None].repeat_interleave(x.size(0), dim=0)
torch.repeat_interleave(w[:1], x.size(0))
torch.cat([x, y]).repeat_interleave(2, dim=0)
"""), _DOC),
    Row(".size", shape, examples("""
x.size(0)
x.size(1)
torch.cat([x, y]).size(0)
x.t().size(1)
x.view(-1, 2).size(0)
x[x[:, 0] > 0].size(0)
x.size()[0]
x.size(0) * 2
x.size(0) / 2
x.size(0) - 2 * x.size(0)
x.size(0) + 1
"""), _DOC),
    Row("torch.numel .numel .nelement", elements_count, examples("""
x.numel()
x.mean().numel()
x[x > 0].numel()
"""), _DOC),
)  # fmt: skip
CHANGING = tuple(
    Row(f".{name}_", in_place(effect), source=_DOC)
    for name, effect in {
        "squeeze": squeeze,
        "unsqueeze": unsqueeze,
        "t": permute,
        "transpose": permute,
        "scatter": scatter,
        "scatter_add": scatter,
        "index_add": scatter,
        "index_fill": scatter,
        "index_copy": scatter,
    }.items()
)  # fmt: skip
ATTRIBUTES = (
    Row("<data>.shape", shape, ("x.shape[0]", "x.shape[1]"), _DOC),
    Row("<data>.T <data>.mT <data>.H <data>.mH", permute, ("x.T", "x.mT"), _DOC),
    Row("<array>.size", elements_count, source="https://numpy.org/doc/stable/reference/"),
)  # fmt: skip
