"""torch's functions that make tensors (https://docs.pytorch.org/docs/stable/torch.html#creation-ops)."""

from __future__ import annotations

from dpmigrate.library.effects import elementwise
from dpmigrate.library.factories import (
    converted,
    counted,
    factory,
    like,
    literal,
    literal_or_sizes,
    permuted,
)
from dpmigrate.library.sites import Row, examples
from dpmigrate.library.streams import drawing
from dpmigrate.library.torch_math import both

_DOC = "https://docs.pytorch.org/docs/stable/torch.html#creation-ops"

ROWS = (
    Row("""
torch.zeros torch.ones torch.empty .new_zeros .new_ones .new_empty torch.full .new_full
""", factory, examples("""
torch.zeros(x.size(0), 3)
torch.ones(x.size(0))
torch.zeros(2, 3)
torch.zeros(x.size(0), x.size(0))
torch.ones(x.shape)
torch.full((x.size(0), 2), 7.0)
x.new_zeros(x.size(0), 2)
torch.ones(2 * x.size(0))
torch.zeros(int((x > 0).sum()))
torch.ones(4) + x
torch.ones((x.shape[0],) + (1,) * (x.dim() - 1)) * x
torch.ones((x.shape[0],) + x.shape[1:])
torch.ones((1, 2 * x.size(0)) + (1,) * (w.dim() - 1))
torch.ones((x.size(0), x.size(0)) + (1,) * (x.dim() - 1))
torch.ones((2,) + (1,) * (x.dim() - 1))
torch.zeros((int((x > 0).sum()),) + (1,) * (x.dim() - 1))
"""), _DOC),
    Row("torch.rand torch.randn torch.randint torch.normal", drawing("torch", factory, each=True), examples("""
torch.randn(x.size(0), 3)
torch.randint(0, 5, (x.size(0),))
torch.rand(3)
torch.normal(0.0, 1.0, (x.size(0), 2))
"""), _DOC),
    Row("torch.randperm", drawing("torch", permuted), examples("""
torch.randperm(4)
torch.randperm(x.size(0))
"""), _DOC),
    Row("""
torch.arange torch.linspace torch.logspace torch.eye torch.range torch.hann_window
torch.hamming_window torch.triu_indices torch.tril_indices torch.kaiser_window
torch.blackman_window
""", counted, examples("""
torch.arange(4)
torch.arange(x.size(0))
torch.eye(x.size(0))
torch.eye(4)
torch.arange(0, x.size(0), 2)
"""), _DOC),
    Row(both("zeros_like ones_like empty_like full_like"), like, examples("""
torch.ones_like(x)
torch.zeros_like(w)
torch.full_like(x, 2.0)
torch.ones_like(x @ x.t())
torch.ones_like(x.sum(0))
torch.ones_like(x[0])
torch.full_like(x[0], 2.0)
x + torch.zeros_like(x[-1])
torch.ones_like(x[x[:, 0] > 0])
"""), _DOC),
    Row(both("rand_like randn_like randint_like bernoulli"), drawing("torch", like), examples("""
torch.randn_like(x)
"""), _DOC),
    Row(both("poisson"), drawing("torch", elementwise), ("torch.poisson(x.abs())",), _DOC),
    Row("torch.tensor .new_tensor", literal, examples("""
torch.tensor([1, 2])
torch.tensor([x.mean().item(), y.mean().item()])
torch.tensor([x.size(0)])
torch.tensor([x.mean().item(), 1.0])
torch.tensor([x.sum().item(), 1.0])
"""), _DOC),
    Row("""
torch.Tensor torch.FloatTensor torch.LongTensor torch.DoubleTensor torch.IntTensor
torch.BoolTensor torch.ByteTensor torch.cuda.FloatTensor torch.cuda.LongTensor
torch.cuda.ByteTensor torch.cuda.DoubleTensor torch.cuda.IntTensor torch.cuda.BoolTensor torch.HalfTensor torch.cuda.HalfTensor
torch.ShortTensor torch.CharTensor torch.BFloat16Tensor .new
""", literal_or_sizes, examples("""
x.new(x.size(0), 2).fill_(1)
x.new(x.size()).fill_(1)
x.new([1, 2])
torch.Tensor([1, 2])
torch.Tensor(x.size(0), 2)[:, :0]
"""), _DOC),
    Row("""
torch.from_numpy torch.as_tensor torch.asarray torch.Variable torch.frombuffer
""", converted, examples("""
torch.as_tensor(x)
torch.from_numpy(x.detach().numpy())
"""), _DOC),
)  # fmt: skip
