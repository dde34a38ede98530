"""torch's arithmetic and reductions (https://docs.pytorch.org/docs/stable/torch.html)."""

from __future__ import annotations

from dpmigrate.library.effects import (
    bounded,
    coupled,
    elementwise,
    in_place,
    mask,
    negated,
    operator,
)
from dpmigrate.library.reductions import (
    along,
    binned,
    compared_rows,
    norm,
    quantile,
    reduce,
    renormed,
    reordered,
    several,
    turned,
)
from dpmigrate.library.sites import Effect, Row, examples
from dpmigrate.library.slices import grid_of
from dpmigrate.library.streams import drawing

_DOC = "https://docs.pytorch.org/docs/stable/torch.html"


def both(names: str) -> str:
    """Names of functions of torch that are methods of tensors as well."""
    return " ".join(f"torch.{w} .{w}" for w in names.split())


_ELEMENT = """
abs absolute exp exp2 expm1 log log2 log10 log1p sqrt rsqrt square pow float_power
reciprocal sin cos tan asin acos atan atan2 arcsin arccos arctan arctan2 sinh cosh tanh
asinh acosh atanh sigmoid logit sign sgn ceil floor round trunc fix frac erf erfc erfinv
lgamma digamma relu floor_divide
remainder fmod lerp addcmul addcdiv nan_to_num masked_fill rad2deg deg2rad hypot copysign
heaviside sinc xlogy logaddexp logaddexp2 angle expit softplus log_ndtr ldexp frexp_ gcd
bitwise_left_shift bitwise_right_shift conj_physical conj real imag positive signbit_ hardshrink
nextafter i0 bessel_j0 bessel_j1
"""
_BOUND = "clamp clip clamp_min clamp_max maximum minimum fmax fmin"
_MASK = """
eq ne lt le gt ge greater less greater_equal less_equal not_equal isnan isinf isfinite
isclose isneginf isposinf logical_not logical_and logical_or logical_xor bitwise_and
bitwise_or bitwise_not bitwise_xor signbit isreal isin
"""
_COUPLED = """
pdist cov corrcoef unique unique_consecutive histc histogram allclose equal
combinations cartesian_prod outer ger kron trace
"""

ROWS = (
    Row(both(_BOUND), bounded, examples("""
x.clamp(0, 1)
torch.maximum(x, y)
x.mean().clamp(min=1)
x.sum() / torch.tensor(x.size(0)).clamp(min=1)
"""), _DOC),
    Row(both(_ELEMENT), elementwise, examples("""
torch.exp(x)
x.pow(2)
x.masked_fill(x > 0, 0.0)
torch.exp(x.mean())
x.sum(1).sigmoid()
torch.exp(w)
(x[:, :1] - x[:, 0]).abs()
"""), _DOC),
    Row(both("add"), operator("add"), examples("""
torch.add(x, y)
x.mean().add(y.mean())
x.sum().add(w.sum())
torch.add(x.sum(1), y.sum(1, keepdim=True))
"""), _DOC),
    Row(both("sub subtract"), operator("sub"), examples("""
torch.sub(x, y, alpha=2)
x.max().sub(y.max())
torch.sub(w.sum(), x.max())
"""), _DOC),
    Row(both("mul multiply"), operator("mul"), examples("""
x.mul(2)
x.mean().mul(3)
torch.mul(x, x.mean(0))
"""), _DOC),
    Row(both("div divide true_divide"), operator("truediv"), examples("""
x.sum().div(x.size(0))
x.div(2.0)
x.div(x.size(0))
torch.div(x.sum(), (x > 0).sum())
"""), _DOC),
    Row(both("neg negative"), negated, examples("""
torch.neg(x)
x.max().neg()
-x.mean()
-x.min()
"""), _DOC),
    Row(both(_MASK), mask, examples("""
x.eq(y)
torch.isnan(x)
x[x[:, 0].gt(0)]
x[torch.logical_and(x[:, 0] > 0, y[:, 0] > 0)]
"""), _DOC),
    Row(both("sum nansum"), reduce("sum"), examples("""
x.sum()
x.sum(0)
x.sum(1)
x.sum(-1, keepdim=True)
x.sum((0, 1))
x.unsqueeze(0).sum(1)
x.t().sum(0)
x.sum(0).sum()
x[x[:, 0] > 0].sum()
torch.cat([x, y]).sum(0)
w.sum(0)
"""), _DOC),
    Row(both("count_nonzero"), reduce("sum"), examples("""
torch.count_nonzero(x > 0)
(x > 0).count_nonzero(0)
(x > 0).count_nonzero(dim=1)
"""), _DOC),
    Row(both("mean nanmean"), reduce("mean"), examples("""
x.mean()
x.mean(0)
x.mean(1)
x.mean(dim=(0, 1))
x.mean(0, keepdim=True)
x[x[:, 0] > 0].mean()
torch.cat([x, y]).mean()
x.sum(0).mean()
x.max(0)[0].mean()
x.view(-1, 2, 2).mean([1, 2])
"""), _DOC),
    Row(both("max amax"), reduce("max"), examples("""
x.max()
x.max(1)[0]
x.max(1)[1]
x.max(1).values
x.max(1).indices
x.max(dim=0)[0]
x.max(dim=0)[1]
x.amax(0)
x.amax(-1)
torch.max(x, y)
x.amax(1).sum()
x.max(0)[0].max()
x.max().max()
x.max().min()
w.max(1)[0]
"""), _DOC),
    Row(both("min amin"), reduce("min"), examples("""
x.min()
x.min(1, True)[0]
torch.min(x, 0)[0]
torch.min(x, y)
"""), _DOC),
    Row(both("any"), reduce("max"), examples("""
(x > 1).any()
(x > 1).any(1)
(x > 1).any(0)
"""), _DOC),
    Row(both("all"), reduce("min"), examples("""
(x > -1).all()
(x > -1).all(dim=1)
"""), _DOC),
    Row(both("prod std var logsumexp median nanmedian argmax argmin"), reduce(""), examples("""
x.std()
x.std(0)
x.std(1)
x.var(dim=1)
x.var(False)
x.std(unbiased=False)
x.logsumexp(1)
x.median()
x.median(1)[0]
x.median(dim=0)[1]
x.argmax(1)
x.argmax(0)
x.argmax(dim=1, keepdim=True)
x.prod(1)
"""), _DOC),
    Row(both("mode"), reduce("", default=-1), examples("""
x.mode(1)[0]
x.mode()[0]
"""), _DOC),
    Row(both("kthvalue"), reduce("", at=2, keep=3, default=-1), examples("""
x.kthvalue(1, 1)[0]
x.kthvalue(2)[1]
x.kthvalue(1, 0)[0]
"""), _DOC),
    Row(both("aminmax"), several(reduce("min", at=9), reduce("max", at=9)), examples("""
x.aminmax()[0]
x.aminmax().max
x.aminmax(dim=1)[1]
"""), _DOC),
    Row(both("std_mean var_mean"), several(reduce(""), reduce("mean")), examples("""
torch.std_mean(x, 1)[0]
torch.var_mean(x, 0)[1]
torch.var_mean(x, 0)[0]
"""), _DOC),
    Row(both("norm vector_norm"), norm, examples("""
x.norm()
x.norm(2, 1)
x.norm(2, 0)
x.norm(dim=1, keepdim=True)
x.norm(p=2, dim=-1)
torch.linalg.vector_norm(x, dim=1)
"""), _DOC),
    Row(both("quantile nanquantile"), quantile, examples("""
x.quantile(0.5)
x.quantile(0.5, 1)
x.quantile(0.5, dim=0)
"""), _DOC),
    Row(both("dist"), coupled, ("torch.dist(x, y)",), _DOC),
    Row(both("""
softmax log_softmax cumsum cumprod logcumsumexp cummax cummin
"""), along(), examples("""
x.softmax(1)
x.softmax(0)
torch.log_softmax(x, -1)
torch.cumsum(x, 1)
torch.cumsum(x, 0)
x.cummax(1)[0]
x.cummax(1)[1]
torch.softmax(x.mean(0), 0)
x.t().softmax(0)
"""), _DOC),
    Row(both("renorm"), renormed, examples("""
x.renorm(2, 0, 1.0)
x.renorm(2, 1, 1.0)
torch.renorm(x, p=2, dim=0, maxnorm=1.0)
"""), _DOC),
    Row(both("msort"), along(default=0), ("x.msort()", "torch.msort(x.t())"), _DOC),
    Row(both("argsort sort"), along(), examples("""
x.sort(1)[0]
x.sort()[1]
x.sort(0)[0]
x.argsort(1)
x.argsort(dim=0)
"""), _DOC),
    Row(both("topk"), along(2), examples("""
x.topk(2, 1)[0]
x.topk(2)[1]
x.topk(2).values
x.topk(2, dim=0)[0]
"""), _DOC),
    Row(both("flip"), reordered(), examples("""
x.flip(1)
x.flip([0])
x.flip((0, 1))
torch.flip(x, dims=[1])
"""), _DOC),
    Row(both("fliplr"), along(9, 1), ("torch.fliplr(x)",), _DOC),
    Row(both("flipud"), reordered(9, 0), ("torch.flipud(x)",), _DOC),
    Row(both("roll"), reordered(2), examples("""
x.roll(1, 1)
x.roll(1, 0)
x.roll(1)
torch.roll(x, shifts=1, dims=1)
"""), _DOC),
    Row(both("rot90"), turned, examples("""
torch.rot90(w)
torch.rot90(x)
x[:, None].rot90(1, (1, 2))
x[:, None].rot90(2, dims=(2, 1))
x.view(-1, 2, 2).rot90(3, [-2, -1])
x[:, None].rot90(t.size(0), (1, 2))
x.view(-1, 2, 2).rot90(int(x.sum()), (1, 2))
x.mean(0)[None].rot90(1, [0, 1])
x.sum(0)[None].rot90(k=2)
w.rot90(t.size(0) % 3)
"""), _DOC),
    Row(both("diff"), along(2), ("torch.diff(x, dim=1)", "torch.diff(x, dim=0)"), _DOC),
    Row(both("cosine_similarity"), compared_rows(False), examples("""
torch.cosine_similarity(x, y)
torch.cosine_similarity(x, y, dim=0)
torch.cosine_similarity(x, y, dim=-1)
torch.cosine_similarity(x[:, None], y[None], dim=2)
"""), _DOC),
    Row(both("multinomial"), drawing("torch", coupled), examples("""
torch.multinomial(x.softmax(1), 2)
torch.multinomial(torch.ones(4), 2)
"""), _DOC),
    Row(both("bincount"), binned(coupled), examples("""
torch.bincount(t)
t.bincount(minlength=8)
torch.bincount(t, None, 8)
"""), _DOC),
    Row("torch.meshgrid", grid_of, examples("""
torch.meshgrid(x[:, 0], x[:, 1], indexing="ij")[0]
torch.meshgrid(w[0], w[1], indexing="ij")[1] + x.sum()
torch.meshgrid([w[0], w[1], w[2]], indexing="ij")[2]
"""), _DOC),
    Row(both(_COUPLED), coupled, examples("""
x.unique()
torch.cov(x)
torch.outer(x[:, 0], x[:, 0])
"""), _DOC),
)  # fmt: skip


def changing() -> tuple[Row, ...]:
    """The methods that store their result in their receiver, and functions in their first argument:
    ``x.add_(y)``, ``torch.clamp_(x, 0, 1)``.
    """
    names = f"{_ELEMENT} {_BOUND} {_MASK} add sub mul div neg cumsum renorm".replace("where", "").split()
    effects: dict[str, Effect] = {}
    for row in ROWS:
        effects |= dict.fromkeys(row.names.split(), row.effect)
    return tuple(
        Row(f".{n}_ torch.{n}_", in_place(effects[f".{n}"]), source=_DOC)
        for n in dict.fromkeys(names)
        if not n.endswith("_")
    )


CHANGING = changing()
