"""torch's layers and their functions (https://docs.pytorch.org/docs/stable/nn.html).

BatchNorm in training takes statistics of the rank's samples. Its result is said to be rows all
the same: that is a difference which migrated programs are told of, and which ``--sync-bn``
takes away.
"""

from __future__ import annotations

from dpmigrate.execution import arithmetic, placements
from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.heap import Object
from dpmigrate.execution.machine import Machine
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    Data,
    Ref,
    Value,
    const,
    items,
    known,
    value,
)
from dpmigrate.library.effects import cut
from dpmigrate.library.joining import parts_of
from dpmigrate.library.modules import MODEL, ROUND, forward, owned
from dpmigrate.library.reductions import along, compared_rows
from dpmigrate.library.sites import Site, rows_of, words

_DOC = "https://docs.pytorch.org/docs/stable/nn.html"
_FUNCTIONAL = "https://docs.pytorch.org/docs/stable/nn.functional.html"
#: layers without parameters
BARE = frozenset(
    words(
        """
ReLU ReLU6 LeakyReLU ELU SELU GELU SiLU Mish Tanh Sigmoid Softplus Hardtanh Hardswish
Hardsigmoid Softsign Tanhshrink LogSigmoid Threshold Dropout Dropout2d Dropout3d Dropout1d
AlphaDropout Identity MaxPool1d MaxPool2d MaxPool3d AvgPool1d AvgPool2d AvgPool3d
AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d
AdaptiveMaxPool3d Upsample UpsamplingBilinear2d UpsamplingNearest2d PixelShuffle
PixelUnshuffle ZeroPad2d ReflectionPad2d ReplicationPad2d ConstantPad2d Flatten Unflatten
Softmax LogSoftmax Softmax2d Softmin GLU MaxUnpool1d MaxUnpool2d MaxUnpool3d Fold Unfold
ChannelShuffle LPPool2d CELU ReflectionPad1d ConstantPad1d CosineSimilarity PairwiseDistance
Hardshrink Softshrink
"""
    )
)
#: layers that attend to, or go along, an axis of a sequence
_RECURRENT = (
    "LSTM", "GRU", "RNN", "Transformer", "TransformerEncoder", "TransformerDecoder",
    "TransformerEncoderLayer", "TransformerDecoderLayer", "MultiheadAttention",
)  # fmt: skip
_SOFTMAX = ("Softmax", "LogSoftmax", "Softmin")


def layer(site: Site) -> Value:
    """A layer of torch's: its arguments are kept."""
    made = site.made("module")
    for name, held in site.arguments.keywords.items():
        site.m.heap.write((made.number, f"={name}"), held)
    for i, held in enumerate(site.arguments.positional):
        site.m.heap.write((made.number, f"={i}"), held)
    return value(Ref(made.number))


def module_called(site: Site) -> Value | None:
    """A call of a module: of the program's class its ``forward`` runs, of a layer its table row."""
    made = site.object
    assert made is not None
    forward(site, made)
    if made.kind == "instance":
        method = site.m.method_of(made, "forward") or site.m.method_of(made, "__call__")
        if method is None:
            return None
        return site.m.call(value(method), site.arguments, site.node, site.frame)
    if made.extra == ROUND:
        inner = site.m.heap.read((made.number, "module")) or NOTHING
        return site.m.call(inner, site.arguments, site.node, site.frame)
    return layer_called(site, made)


def layer_called(site: Site, made: Object) -> Value:
    """What a layer of torch's does to its input."""
    name = made.name
    operands = [v for v in (site.flat(a) for a in site.arguments.all()) if v]
    if name in (*_SOFTMAX, "GLU", "CosineSimilarity"):
        return _of_axis(site, made)
    if name == "PairwiseDistance":
        return compared_rows(True)(_plainly(site, name, [])) or NOTHING
    p = placements.elementwise(arithmetic.aligned(operands))
    found = next((r for v in operands if (r := rows_of(v)) is not None), None)
    axes = found.axes if found is not None else None
    if name in _RECURRENT and p.kind is Kind.ROWS:
        first = known(site.m.heap.read((made.number, "=batch_first")) or const(False))
        if p.axis != (0 if first else 1):
            p = placements.PER_RANK
    if name in ("Linear", "LayerNorm", "Bilinear") and axes is not None and p.axis == axes - 1:
        if p.kind is Kind.ROWS:
            return site.unknown(f"whether samples meet in {name}")
    axes = _axes_after(site, made, axes)
    result = reach(
        arithmetic.derived(name, p, operands, site.node, kind="tensor", axes=axes, keep_axes=False),
        made, site,
    )  # fmt: skip
    return _several(site, made, result)


def _several(site: Site, made: Object, result: Value) -> Value:
    """Layers that give more than one tensor: states of recurrent ones, places of pooled ones."""
    name = made.name
    if name in ("LSTM", "GRU", "RNN"):
        state = tuple(
            a._replace(placement=a.placement._replace(axis=1), axes=3)
            if isinstance(a, Data) and a.placement.kind is Kind.ROWS
            else a
            for a in result
        )
        return items([result, items([state, state]) if name == "LSTM" else state])
    if name == "MultiheadAttention":
        weights = tuple(
            a._replace(placement=a.placement._replace(axis=0), axes=3)
            if isinstance(a, Data) and a.placement.kind is Kind.ROWS
            else a
            for a in result
        )
        return items([result, weights])
    if name == "LSTMCell":
        return items([result, result])
    if name.startswith(("MaxPool", "AdaptiveMaxPool")):
        given = known(site.m.heap.read((made.number, "=return_indices")) or const(False))
        return items([result, cut(result)]) if given else result
    return result


def _plainly(site: Site, name: str, more: list[Value]) -> Site:
    """The call of a layer as the function with the layer's arguments."""
    given = Arguments([*site.arguments.positional, *more])
    return Site(site.m, name, given, site.node, site.frame)


def _of_axis(site: Site, made: Object) -> Value:
    """Layers that work along an axis that they are given when they are made."""
    dim = site.m.heap.read((made.number, "=dim")) or site.m.heap.read((made.number, "=0"))
    if made.name == "CosineSimilarity":
        return compared_rows(False)(_plainly(site, made.name, [dim or const(1)])) or NOTHING
    if made.name == "GLU":
        return along()(_plainly(site, made.name, [dim] if dim else [])) or NOTHING
    return along(1, None)(_plainly(site, made.name, [_implicit(site, dim)])) or NOTHING


def _implicit(site: Site, dim: Value | None) -> Value:
    """The axis of a softmax that is not told one: the second, but of one or three axes the
    first.
    """
    if dim and dim != NONE:
        return dim
    found = rows_of(site.flat(site.arguments.get(0, "input") or NOTHING))
    return const(0 if found is not None and found.axes in (1, 3) else 1)


def _axes_after(site: Site, made: Object, axes: int | None) -> int | None:
    """The number of axes of what a layer gives."""
    name = made.name
    if name == "Flatten":
        start = site.m.heap.read((made.number, "=start_dim")) or site.m.heap.read(
            (made.number, "=0")
        )
        return 2 if start in (None, const(1)) else None
    if name == "Embedding":
        return axes + 1 if axes is not None else None
    if name in ("Unflatten", "EmbeddingBag", "Bilinear"):
        return None
    if name.startswith(("Conv", "MaxPool", "AvgPool", "Adaptive", "BatchNorm", "InstanceNorm")):
        size = next((int(c) for c in name if c.isdigit()), 0)
        return size + 2 if size and name != "BatchNorm1d" else axes
    return axes


def has_parameters(m: Machine, made: Object) -> bool:
    """Whether a layer of torch's has parameters: not ``GroupNorm(2, 8, affine=False)``, and not
    ``InstanceNorm2d(8)``.
    """
    given = [m.heap.read((made.number, o)) for o in ("=affine", "=elementwise_affine")]
    if made.name.startswith("InstanceNorm") and not any(given):
        return False
    return made.name not in BARE and const(False) not in given


def reach(v: Value, made: Object, site: Site) -> Value:
    """The data that a module makes: a gradient comes to its parameters."""
    if made.kind == "criterion" or not has_parameters(site.m, made):
        return v
    if not site.grad():
        return cut(v)
    frozen = site.m.heap.read((made.number, "mode frozen")) == const(True)
    whole = owned(site.m, made.number) if made.extra == MODEL else {made.number}
    return tuple(
        a._replace(
            gradient="whole" if a.gradient == "none" and not frozen else a.gradient,
            reached=a.reached if frozen else a.reached | whole,
        )
        if isinstance(a, Data)
        else a
        for a in v
    )


def padded(site: Site) -> Value:
    """``F.pad(x, (left, right, …))``: pads from the last axis on."""
    found = rows_of(site.get(0) or ())
    if found is None:
        return site.each()
    listed = site.m.known_elements(site.get(1, "pad") or ())
    if listed is None or found.axes is None:
        return site.unknown("which axes are padded")
    if found.placement.axis >= found.axes - len(listed) // 2:
        return site.data(placements.PER_RANK)
    return site.data(found.placement, axes=found.axes)


def one_hot(site: Site) -> Value:
    """``F.one_hot(t, classes)``: without their number it depends on the labels of the rank."""
    found = rows_of(site.get(0) or ())
    if found is None:
        return site.each()
    if site.get(1, "num_classes") in (None, const(-1)):
        return site.unknown("the number of classes, which one_hot takes from the rank's labels")
    axes = found.axes + 1 if found.axes is not None else None
    return site.data(found.placement, axes=axes, keep_axes=False)


def embedded(site: Site) -> Value:
    """``F.embedding(t, table)``."""
    found = rows_of(site.get(0) or ())
    if found is None:
        return site.each()
    axes = found.axes + 1 if found.axes is not None else None
    return site.data(found.placement, axes=axes, keep_axes=False)


def attention(site: Site) -> Value:
    """``F.scaled_dot_product_attention(q, k, v)``: over the last axis but one."""
    made = site.each()
    found = rows_of(made)
    if found is not None and found.axes is None:
        return site.unknown("whether attention goes over the samples")
    if found is not None and found.placement.axis >= (found.axes or 0) - 2:
        return site.data(placements.PER_RANK, keep_axes=False)
    return made


def softmax(site: Site) -> Value | None:
    """``F.softmax(x, dim)``, with the implicit axis where none is given."""
    given = site.get(1, "dim")
    if given and given != NONE:
        return along()(site)
    inner = Arguments([site.get(0) or (), _implicit(site, None)])
    return along()(Site(site.m, site.name, inner, site.node, site.frame))


def gridded(site: Site) -> Value:
    """Functions of a tensor and of plain arguments: rows by rows."""
    first = site.flat(site.get(0) or ())
    found = rows_of(first)
    if found is None:
        return site.each()
    made = site.each()
    axes = found.axes
    return tuple(a._replace(axes=axes) if isinstance(a, Data) else a for a in made)


def padded_sequence(site: Site) -> Value:
    """``pad_sequence(list)``: the samples side by side, along the second axis by default."""
    parts, exact = parts_of(site)
    found = next((r for v in parts if (r := rows_of(v)) is not None), None)
    if found is None:
        return site.data(placements.joined(arithmetic.aligned(parts)), keep_axes=False)
    if exact:
        return site.unknown("sequences padded to the longest of the rank's batch")
    return site.data(found.placement, keep_axes=False)


def packed(site: Site) -> Value:
    """``pack_padded_sequence``: rows of a batch, in pieces."""
    first = site.flat(site.get(0) or NOTHING)
    found = rows_of(first)
    p = found.placement._replace(axis=0) if found is not None else placements.UNIFORM
    return site.data(p if found is not None else placements.elementwise(
        arithmetic.aligned([first])), keep_axes=False)  # fmt: skip


def unpacked(site: Site) -> Value:
    """``pad_packed_sequence``: the rows, and the lengths."""
    first = site.get(1, "batch_first")
    axis = 0 if first == const(True) else 1
    found = rows_of(site.flat(site.get(0) or NOTHING))
    if found is None:
        return items([site.each(), site.each()])
    made = site.data(found.placement._replace(axis=axis), axes=3, keep_axes=False)
    return items([made, site.data(found.placement._replace(axis=0), axes=1, gradient="none")])
