"""What each layer of torch.nn does (https://docs.pytorch.org/docs/stable/nn.html).

A layer is a function of the site of its call, whose first argument is the input, and of the
object, which keeps the arguments that the layer was made with under ``=name`` and ``=place``.
Layers without a row here are not known.
"""

from __future__ import annotations

from collections.abc import Callable

from dpmigrate.execution import placements
from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.objects import Object
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    SETTING,
    Const,
    Data,
    Value,
    const,
    items,
    known,
    placement_of,
    value,
)
from dpmigrate.library.axes import rows_of
from dpmigrate.library.effects import cut, elementwise
from dpmigrate.library.grids import beside_first, grid
from dpmigrate.library.reductions import along, compared_rows
from dpmigrate.library.sequences import ATTENDING, CELLS, RECURRENT
from dpmigrate.library.shapes import axes_of, flatten, with_lengths
from dpmigrate.library.sites import PADDING, Effect, Site, words
from dpmigrate.library.streams import drawing
from dpmigrate.library.views import unflatten

Layer = Callable[[Site, Object], "Value | None"]


def argument(site: Site, made: Object, place: int, name: str) -> Value | None:
    """An argument that a layer was made with."""
    held = site.m.heap.read((made.number, f"={name}"))
    held = held or site.m.heap.read((made.number, f"={place}"))
    return site.m.bound(held) if held else None  # layers of one place are made by one call


def plainly(effect: Effect) -> Layer:
    """A layer that is a function of its input alone."""

    def called(site: Site, made: Object) -> Value | None:
        return effect(site)

    return called


def dropping(effect: Effect) -> Layer:
    """A layer that draws random numbers while it trains."""

    def called(site: Site, made: Object) -> Value | None:
        whole = site.m.heap.read((made.number, "mode training")) == const(False)
        return effect(site) if whole else drawing("torch", effect)(site)

    return called


def _with(site: Site, *more: Value | None) -> Site:
    """The call of a layer as the function with arguments of the layer behind its own."""
    given = [v for v in more if v is not None]
    arguments = Arguments([*site.arguments.all(), *given])
    return Site(site.m, site.name, arguments, site.node, site.frame)


def _pooled(count: int) -> Layer:
    def called(site: Site, made: Object) -> Value | None:
        result = grid(count)(site) or NOTHING
        asked = site.m.heap.read((made.number, "=return_indices")) or const(False)
        if known(asked) is True:
            return items([result, cut(result)])
        return result

    return called


def _last_axis(site: Site, made: Object) -> Value | None:
    """``Linear``, ``LayerNorm``: a function of the last axes."""
    found = rows_of(site.flat(site.get(0, "input") or NOTHING))
    count = 1
    if made.name in ("LayerNorm", "RMSNorm"):
        shape = argument(site, made, 0, "normalized_shape") or NOTHING
        listed = site.m.known_elements(shape)
        count = len(listed) if listed is not None else 1
    if found is not None and found.axes is not None and found.placement.axis >= found.axes - count:
        return site.unknown(f"whether samples meet in {site.word}")
    result = beside_first(site) or NOTHING
    turns = any(parting is not None and parting.padding for parting in site.m.control)
    reduced = found is not None and found.axes == count + 1 and found.placement.times == 1
    if found is not None and found.placement.padded and reduced and not turns:
        # the other axes have the layer's sizes: the one that was padded is gone, and what it was reduced to goes on;
        # in a loop over its places it is one of them, and where samples have several rows it may be among these
        site.event(PADDING, given=value(found))
        result = tuple(a._replace(placement=a.placement._replace(padded=False)) if isinstance(a, Data) else a for a in result)
    out = _width(argument(site, made, 1, "out_features")) if made.name == "Linear" else None
    axes = axes_of(result)
    return with_lengths(result, [*[None] * (axes - 1), out]) if axes and out is not None else result


def _width(given: Value | None) -> int | None:
    """The number of features that a layer gives: for certain, or by an option whose default is more
    than one.
    """
    found = known(given or NOTHING)
    certain = given is not None and len(given) == 1 and isinstance(given[0], Const)
    return found if type(found) is int and (certain or found > 1) else None


def _bilinear(site: Site, made: Object) -> Value | None:
    operands = [r for v in site.operands() if (r := rows_of(v))]
    if any(r.axes is not None and r.placement.axis == r.axes - 1 for r in operands):
        return site.unknown(f"whether samples meet in {site.word}")
    return elementwise(site)


def _softmax(site: Site, made: Object) -> Value | None:
    dim = argument(site, made, 0, "dim")
    return along(1, None)(_with(site, implicit(site, dim)))


def implicit(site: Site, dim: Value | None) -> Value:
    """The axis of a softmax that is not told one: the second, but of one or three axes the
    first. A setting where the number of axes is not known.
    """
    if dim and dim != NONE:
        return dim
    found = rows_of(site.flat(site.arguments.get(0, "input") or NOTHING))
    if found is not None and found.axes is None:
        return SETTING
    return const(0 if found is not None and found.axes in (1, 3) else 1)


def _glu(site: Site, made: Object) -> Value | None:
    return along()(_with(site, argument(site, made, 0, "dim")))


def _cosine(site: Site, made: Object) -> Value | None:
    return compared_rows(False)(_with(site, argument(site, made, 0, "dim") or const(1)))


def _distance(site: Site, made: Object) -> Value | None:
    inner = _with(site)
    inner.arguments.keywords["keepdim"] = argument(site, made, 2, "keepdim") or const(False)
    return compared_rows(True)(inner)


def _flat(site: Site, made: Object) -> Value | None:
    first = argument(site, made, 0, "start_dim") or const(1)
    return flatten(_with(site, first, argument(site, made, 1, "end_dim") or const(-1)))


def _unflat(site: Site, made: Object) -> Value | None:
    sizes = argument(site, made, 1, "unflattened_size")
    return unflatten(_with(site, argument(site, made, 0, "dim"), sizes))


def _embedding(site: Site, made: Object) -> Value | None:
    found = rows_of(site.flat(site.get(0, "input") or NOTHING))
    if found is None:
        return site.data(placements.elementwise(placement_of(v) for v in site.operands()),
                         kind="tensor", keep_axes=False)  # fmt: skip
    axes = found.axes + 1 if found.axes is not None else None
    return site.data(found.placement, kind="tensor", axes=axes, keep_axes=False)


def _bags(site: Site, made: Object) -> Value | None:
    """``EmbeddingBag(x, offsets)``: a row for each row of x, or for each offset."""
    found = rows_of(site.flat(site.get(0, "input") or NOTHING))
    offsets = site.get(1, "offsets")
    if offsets and offsets != NONE:
        p = placement_of(site.flat(offsets))
        if found is None or p.kind is not Kind.ROWS or p.axis:
            return site.unknown("which samples the bags belong to")
        return site.data(placements.rows(), kind="tensor", axes=2, keep_axes=False)
    if found is not None and (found.axes not in (2, None) or found.placement.axis):
        return site.unknown("which samples the bags belong to")
    p = placements.elementwise(placement_of(v) for v in site.operands())
    return site.data(p, kind="tensor", axes=2, keep_axes=False)


def _adaptive_softmax(site: Site, made: Object) -> Value | None:
    """``AdaptiveLogSoftmaxWithLoss(x, t)``: a number for each sample, and their mean, negated."""
    p = placements.elementwise(placement_of(v) for v in site.operands())
    each = site.data(p, kind="tensor", axes=1, keep_axes=False)
    if p.kind is Kind.ROWS:
        p = placements.mean_over(p)
    return items([each, site.data(p, kind="tensor", axes=0, keep_axes=False)])


#: layers without parameters, by element
_ELEMENTS = """
ReLU ReLU6 LeakyReLU ELU SELU GELU SiLU Mish Tanh Sigmoid Softplus Hardtanh Hardswish Hardsigmoid
Softsign Tanhshrink LogSigmoid Threshold Hardshrink Softshrink CELU Identity
"""
_DRAWN = "Dropout Dropout1d Dropout2d Dropout3d AlphaDropout FeatureAlphaDropout RReLU"
#: layers without parameters, on a grid; {} is the number of its axes
_GRIDS = """
AvgPool{} AdaptiveAvgPool{} LPPool{} MaxUnpool{} ReflectionPad{} ReplicationPad{} ZeroPad{}
ConstantPad{} CircularPad{}
"""
_POOLS = "MaxPool{} AdaptiveMaxPool{} FractionalMaxPool{}"
_MIXING = "Conv{} ConvTranspose{} BatchNorm{} InstanceNorm{}"
LAYERS: dict[str, Layer] = dict.fromkeys(words(_ELEMENTS), plainly(elementwise))
LAYERS |= dict.fromkeys(words(_DRAWN), dropping(elementwise))
BARE = {*words(_ELEMENTS), *words(_DRAWN)}
for _count in (1, 2, 3):
    _size = f"{_count}d"
    LAYERS |= dict.fromkeys(words(_GRIDS.format(*[_size] * 9)), plainly(grid(_count)))
    LAYERS |= dict.fromkeys(words(_POOLS.format(*[_size] * 3)), _pooled(_count))
    LAYERS |= dict.fromkeys(
        words(_MIXING.format(*[_size] * 4)), plainly(grid(_count, mixes=True))
    )
    BARE |= {*words(_GRIDS.format(*[_size] * 9)), *words(_POOLS.format(*[_size] * 3))}
del LAYERS["FractionalMaxPool1d"]  # there is none
_FLAT: dict[str, Layer] = {
    "Flatten": _flat,
    "Unflatten": _unflat,
    "Softmax": _softmax,
    "LogSoftmax": _softmax,
    "Softmin": _softmax,
    "GLU": _glu,
    "CosineSimilarity": _cosine,
    "PairwiseDistance": _distance,
    "Softmax2d": plainly(grid(2)),
    "Upsample": plainly(grid()),
    "UpsamplingBilinear2d": plainly(grid(2)),
    "UpsamplingNearest2d": plainly(grid(2)),
    "PixelShuffle": plainly(grid(2, mixes=True)),
    "PixelUnshuffle": plainly(grid(2, mixes=True)),
    "ChannelShuffle": plainly(grid(mixes=True)),
    "LocalResponseNorm": plainly(grid(mixes=True)),
    "CrossMapLRN2d": plainly(grid(2, mixes=True)),
    "Unfold": plainly(grid(2, mixes=True, change=-1)),
    "Fold": plainly(grid(1, mixes=True, change=1)),
}
BARE |= _FLAT.keys()
LAYERS |= _FLAT
LAYERS |= {
    "Linear": _last_axis,
    "LayerNorm": _last_axis,
    "RMSNorm": _last_axis,
    "Bilinear": _bilinear,
    "PReLU": plainly(beside_first),
    # of 2 or 3 axes
    "BatchNorm1d": plainly(grid(mixes=True)),
    "SyncBatchNorm": plainly(grid(mixes=True)),
    "GroupNorm": plainly(grid(mixes=True)),
    "Embedding": _embedding,
    "EmbeddingBag": _bags,
    "AdaptiveLogSoftmaxWithLoss": _adaptive_softmax,
}


def _elsewhere(site: Site, made: Object) -> Value | None:
    """A layer along a sequence: ``sequences``."""
    return site.unknown(f"what the layer {site.word} does")


LAYERS |= dict.fromkeys((*RECURRENT, *CELLS, *ATTENDING), _elsewhere)
for _name in ("Linear", *words(_MIXING.format(*["1d"] * 4)), *words(_MIXING.format(*["2d"] * 4)),
              *words(_MIXING.format(*["3d"] * 4))):  # fmt: skip
    LAYERS[f"Lazy{_name}"] = LAYERS[_name]
#: how many axes batches have that layers on a grid are given, by the axes of the grid
_INPUTS = {f"{stem}{n}d": {n + 2} for n in (1, 2, 3) for stem in words(
    "Conv ConvTranspose MaxPool AvgPool AdaptiveAvgPool AdaptiveMaxPool InstanceNorm")}  # fmt: skip
_INPUTS |= {"BatchNorm1d": {2, 3}, "BatchNorm2d": {4}, "BatchNorm3d": {5}}


def layer_takes(made: Object, arguments: Arguments) -> bool:
    """Whether a layer can be called with a batch of so many axes, where they are known: torch raises an
    error otherwise, or takes the samples for channels.
    """
    wanted = _INPUTS.get(made.name) if made.kind == "module" else None
    first = arguments.positional[0] if arguments.positional else NOTHING
    axes = {a.axes if isinstance(a, Data) and a.placement.kind is Kind.ROWS else None for a in first}
    return wanted is None or not first or None in axes or not axes.isdisjoint(wanted)


#: classes that several layers derive from
BASES = frozenset(
    words(
        """
_Loss _WeightedLoss _BatchNorm _NormBase _InstanceNorm _ConvNd _ConvTransposeNd _DropoutNd
_MaxPoolNd _AvgPoolNd _AdaptiveAvgPoolNd _AdaptiveMaxPoolNd _LPPoolNd _ConstantPadNd
_ReflectionPadNd _ReplicationPadNd RNNBase RNNCellBase Container
"""
    )
)
_CONTAINERS = ("Sequential", "ModuleList", "ModuleDict")


def derives(layer: str, asked: str) -> bool | None:
    """Whether a class of layers of torch's is another one or derives from it, by their names; None
    where that is not known.
    """
    layer = layer.removeprefix("Lazy") if layer != asked else layer
    if layer == asked:
        return True
    if asked in ("RNNBase", "RNNCellBase"):
        return layer in (RECURRENT if asked == "RNNBase" else CELLS)
    if asked == "_NormBase":
        return "BatchNorm" in layer or layer.startswith("InstanceNorm")
    if asked in BASES and not asked.endswith("Loss"):
        stem = asked.strip("_").removesuffix("Nd")
        return layer.removeprefix("Sync").startswith(stem) if stem != "Container" else None
    own = (*LAYERS, *_CONTAINERS)
    return False if layer in own and asked in own else None
