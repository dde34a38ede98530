"""numpy: arrays of the host (https://numpy.org/doc/stable/reference/).

What numpy calls as torch does has torch's rows; the rest is written here.
"""

from __future__ import annotations

from dataclasses import replace

from dpmigrate.execution import derivation, divergence, placements
from dpmigrate.execution.joins import join
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    Const,
    Data,
    Value,
    cast_kind,
    const,
    placement_of,
    value,
)
from dpmigrate.library import streams, torch_linalg, torch_math, torch_products, torch_shapes
from dpmigrate.library.axes import rows_of
from dpmigrate.library.collating import filled_out, filled_up
from dpmigrate.library.effects import (
    coupled,
    elementwise,
    filled,
    none,
    same,
    unestablished,
    uniform,
)
from dpmigrate.library.factories import counted, factory, literal, permuted
from dpmigrate.library.joining import behind, cat, stack
from dpmigrate.library.products import matmul
from dpmigrate.library.reductions import along, quantile, reduce
from dpmigrate.library.sites import Effect, Row, Site, examples, prefixed, table
from dpmigrate.library.sizes import elements_count, repeat, repeat_interleave
from dpmigrate.library.slices import grid_of
from dpmigrate.library.stdlib import loaded
from dpmigrate.library.streams import drawing

_CHANGED = unestablished("which axis of an array is changed")
_DOC = "https://numpy.org/doc/stable/reference/"
#: functions that have another name in torch, with torch's meaning
_TORCH = {
    "power": "pow", "concatenate": "cat", "amax": "max", "amin": "min", "expand_dims": "unsqueeze",
    "array_split": "split", "rint": "round", "invert": "logical_not", "bitwise_and": "logical_and",
    "negative": "neg", "subtract": "sub", "multiply": "mul", "divide": "div",
    "around": "round", "array_equal": "equal", "array_equiv": "equal",
    "round_": "round", "fabs": "abs", "degrees": "rad2deg", "radians": "deg2rad",
}  # fmt: skip
_SHARED = {
    **{n: r for n, r in table(torch_math.ROWS).items() if n.startswith("torch.")},
    **{n: r for n, r in table(torch_linalg.ROWS).items() if n.startswith("torch.")},
    **{n: r for n, r in table(torch_products.ROWS).items() if n.startswith("torch.")},
    **{n: r for n, r in table(torch_shapes.ROWS).items() if n.startswith("torch.")},
}


def array(effect: Effect) -> Effect:
    """An effect whose result is an array."""

    def made(site: Site) -> Value | None:
        if _laid_out(site) and any(rows_of(v) for v in site.operands()):
            return site.unknown(f"the order of what {site.word} gives")
        v = effect(site)
        return cast_kind(v, "tensor", "array") if v else v

    return made


#: functions that make one axis of all where they are given ``axis=None``
_OF_ALL_AXES = ("sort", "argsort", "partition", "argpartition", "concatenate")


def _laid_out(site: Site) -> bool:
    """Whether elements leave the order of their axes: ``ravel(x, "F")``, ``sort(x, axis=None)``."""
    by_columns = site.get(-1, "order") not in (None, NONE, const("C"))
    ordered = site.word in ("ravel", "flatten", "reshape") and by_columns
    return ordered or (site.word in _OF_ALL_AXES and site.get(-1, "axis") == NONE)


def function(effect: Effect) -> Effect:
    """A method that does what a function of the same arguments does."""
    return lambda site: effect(replace(site, name=f"numpy.{site.word}", receiver=None))


def chosen(site: Site) -> Value:
    """``numpy.random.choice(xs)``: without a size one of them."""
    size = site.get(1, "size") or NONE
    listed = site.m.known_elements(size)
    known = 0 if size == NONE else 1 if isinstance(size[0], Const) else None
    axes = len(listed) if listed is not None else known
    lying = [site.m.depends(v).kind for v in site.arguments.all()]
    if any(k not in placements.EQUAL for k in lying):
        unknown = Kind.UNKNOWN in lying
        p = placements.UNKNOWN if unknown else placements.PER_RANK
        return site.data(p, kind="array", axes=axes, keep_axes=False)
    return value(Data("array", placements.UNIFORM, axes=axes))


def added_at(site: Site) -> Value:
    """``numpy.add.at(a, places, v)``: each rank adds what its own samples give."""
    table, places, new = (site.flat(site.get(i) or NOTHING) for i in range(3))
    held = placement_of(table)
    moving = [v for v in (places, new) if placement_of(v).kind not in placements.EQUAL]
    target = next(iter(getattr(site.node, "args", ())), None)
    if type(target).__name__ not in ("Name", "Attribute"):
        return NONE
    assert target is not None
    if not moving and held.kind is Kind.ZERO:
        made = value(Data("array", placements.UNIFORM))
        site.m.write_in_place(target, made, site.node, site.frame)
    elif moving:
        rows = all(placement_of(v).kind is Kind.ROWS for v in moving)
        sums = rows and (held.kind is Kind.ZERO or held == placements.SUM)
        lying = placements.SUM if sums else placements.UNKNOWN
        made = derivation.derived("added", lying, [table, *moving], site.node, gradient="none")
        site.m.write_in_place(target, made, site.node, site.frame)
    return NONE


def filled_or_one(site: Site) -> Value | None:
    """``numpy.random.rand(3, 4)``: an array of a size; without one a number."""
    if site.arguments.all():
        return factory(site)
    return site.data(placements.UNIFORM, kind="number", keep_axes=False)


def appended(site: Site) -> Value | None:
    """``numpy.append(x, y)``: y behind x, along an axis that may be none."""
    behind(site, site.flat(site.get(0, "arr") or NOTHING))
    return unestablished("which axis of an array is changed")(site)


def padded(site: Site) -> Value:
    """``np.pad(x, widths)``."""
    if filled_up(site.m, site.flat(site.get(1, "pad_width") or NOTHING)):
        return filled_out(site, site.get(0) or NOTHING, "a sample filled up to the longest")
    return _CHANGED(site) or NOTHING


def array_saved(site: Site) -> Value:
    """``numpy.save(path, x)``, ``x.tofile(path)``: a file is written."""
    arguments = site.arguments.all()
    if site.receiver is not None:
        what, path = value(site.receiver), join(*arguments)
    else:
        path, what = join(*arguments[:1]), join(*arguments[1:])
    site.event("save", what=what, path=path)
    return NONE


def generator(site: Site) -> Value:
    """``numpy.random.default_rng(seed)``: without a seed one that the system gives."""
    given = site.get(0, "seed") or site.get(0, "bit_generator") or NONE
    if any(o.kind == "random_stream" for o in site.m.objects(given)):
        return given
    return streams.generator(site, "random_stream", given)


def as_sets(site: Site) -> Value | None:
    """``np.setdiff1d(a, b)``: of the values, which come out sorted, whatever their order was."""
    held = [divergence.in_no_order(v) for v in site.operands()]
    if all(placement_of(v).kind in placements.EQUAL for v in held):
        return value(Data("array", placements.UNIFORM, axes=1))
    return coupled(site)


ROWS = (
    Row("numpy.load numpy.loadtxt numpy.genfromtxt numpy.fromfile numpy.memmap"
        " numpy.lib.format.open_memmap", loaded, source=_DOC),
    Row("""
numpy.save numpy.savez numpy.savetxt numpy.savez_compressed .tofile .dump
""", array_saved, source=_DOC),
    Row("""
numpy.set_printoptions numpy.seterr numpy.random.set_state
numpy.testing.assert_allclose numpy.testing.assert_array_equal numpy.fill_diagonal
""", none, source=_DOC),
    Row("numpy.add.at", added_at, source=_DOC),
    Row("numpy.random.choice", drawing("numpy", chosen), ("np.random.choice(4, 2)",), _DOC),
    Row(prefixed("numpy.random.", """
RandomState default_rng Generator PCG64 PCG64DXSM MT19937 Philox SFC64
"""), generator, source=_DOC),
    Row(prefixed("numpy.random.", """
rand randn
"""), array(drawing("numpy", filled_or_one)), ("np.random.rand(3)",), _DOC),
    Row("numpy.random.permutation", array(drawing("numpy", permuted)), ("np.random.permutation(4)",), _DOC),
    Row("<random_stream>.rand <random_stream>.randn", array(drawing("numpy", filled_or_one)),
        source=_DOC),
    Row("<random_stream>.permutation", array(drawing("numpy", function(permuted))), source=_DOC),
    Row("<random_stream>.choice", array(drawing("numpy", function(chosen))), source=_DOC),
    Row("""
numpy.iinfo numpy.finfo numpy.dtype numpy.random.get_state numpy.frombuffer numpy.isscalar
numpy.version numpy.shares_memory numpy.result_type numpy.ndindex numpy.errstate numpy.issubdtype
""", uniform, source=_DOC),
    Row(prefixed("numpy.", """
arange linspace eye identity logspace tri mgrid ogrid indices
"""), array(counted), ("np.arange(4)", "np.arange(x.shape[0])"), _DOC),
    Row("numpy.zeros numpy.ones numpy.empty numpy.full", array(factory), examples("""
np.zeros((x.shape[0], 2))
np.zeros(x.shape)
np.ones((2, 3))
np.full((x.shape[0],), 3.0)
"""), _DOC),
    Row(prefixed("numpy.", """
array asarray float32 float64 int64 int32 uint8 int8 int16 bool_ float16 asanyarray
float_ int_ fromiter
"""), array(literal), examples("""
np.array(x.numpy())
np.asarray([1.0, 2.0])
np.float32(x.mean())
np.array([x.sum().item(), y.sum().item()])
"""), _DOC),
    Row("""
numpy.copy numpy.ascontiguousarray numpy.asfortranarray .astype .copy
""", array(same), examples("""
x.numpy().astype(np.float32)
x.numpy().copy()
"""), _DOC),
    Row(prefixed("numpy.", """
vectorize frompyfunc interp digitize cbrt exp sinh nan_to_num clip rint sqrt
polyval convolve_ deg2rad true_divide_ modf_ conjugate spacing trapz_
"""), array(elementwise), ("np.clip(x.numpy(), 0, 1)", "np.exp(x.numpy())"), _DOC),
    Row("numpy.average", array(reduce("mean")), examples("""
np.average(x.numpy())
np.average(x.numpy(), axis=1)
"""), _DOC),
    Row("numpy.ptp .ptp", array(reduce("")), ("np.ptp(x.numpy(), axis=1)",), _DOC),
    Row("numpy.percentile numpy.nanpercentile numpy.nanquantile", array(quantile), examples("""
np.percentile(x.numpy(), 50)
np.percentile(x.numpy(), 50, axis=1)
"""), _DOC),
    Row("""
numpy.nanstd numpy.nanvar numpy.nanmedian_ numpy.nanargmax numpy.nanargmin
""", array(reduce("")), examples("""
np.nanstd(x.numpy(), 1)
"""), _DOC),
    Row("numpy.nanmax", array(reduce("max")), ("np.nanmax(x.numpy())",), _DOC),
    Row("numpy.nanmin", array(reduce("min")), ("np.nanmin(x.numpy(), 0)",), _DOC),
    Row("""
numpy.cumsum numpy.cumprod numpy.nancumsum <array>.cumsum <array>.cumprod
""", array(along(default=None)), examples("""
np.cumsum(x.numpy(), 1)
np.cumsum(x.numpy())
x.numpy().cumsum(axis=0)
"""), _DOC),
    Row("numpy.hstack", array(cat(-1, 1)), ("np.hstack([x.numpy(), y.numpy()])",), _DOC),
    Row("numpy.vstack numpy.row_stack", array(cat(-1, 0)), examples("""
np.vstack([x.numpy(), y.numpy()])
"""), _DOC),
    Row(
        "numpy.column_stack numpy.c_",
        array(cat(-1, 1)),
        ("np.column_stack([x.numpy(), y.numpy()])",),
        _DOC,
    ),
    Row("numpy.stack", array(stack), ("np.stack([x.numpy(), y.numpy()], 1)",), _DOC),
    Row("numpy.append", array(appended), ("np.append(np.empty(0), np.ones(3))",), _DOC),
    Row("""
numpy.insert numpy.delete numpy.gradient numpy.apply_along_axis numpy.put numpy.choose
""", array(_CHANGED), examples("""
np.insert(np.ones(3), 1, 2.0)
np.delete(np.ones(3), 1)
"""), _DOC),
    Row("numpy.pad", array(padded), examples("""
np.pad(np.ones(3), 1)
"""), _DOC),
    Row("""
numpy.rot90 numpy.histogram numpy.histogram2d numpy.in1d numpy.polyfit numpy.lexsort numpy.partition
numpy.argpartition numpy.convolve numpy.correlate
""", array(coupled), examples("""
np.histogram(x.numpy())[0]
np.rot90(x.numpy())
"""), _DOC),
    Row("numpy.meshgrid", grid_of, ("np.meshgrid(np.ones(3), np.arange(4))[1]",), _DOC),
    Row("numpy.intersect1d numpy.setdiff1d numpy.union1d numpy.setxor1d", array(as_sets), examples("""
np.setdiff1d(x.numpy(), y.numpy())
np.union1d(np.ones(3), np.zeros(3))
"""), _DOC),
    Row("numpy.tile", array(repeat), examples("""
np.tile(x.numpy(), (1, 2))
np.tile(x.numpy(), (2, 1))
"""), _DOC),
    Row("numpy.repeat <array>.repeat", array(repeat_interleave), examples("""
np.repeat(x.numpy(), 2, axis=0)
x.numpy().repeat(2, 1)
x.numpy().repeat(2)
"""), _DOC),
    Row("numpy.dot numpy.matmul numpy.inner numpy.vdot", array(matmul), examples("""
np.dot(x.numpy(), w.detach().numpy())
np.dot(x.numpy(), y.numpy().T)
"""), _DOC),
    Row("numpy.size <array>.__len__", elements_count, ("np.size(x.numpy())",), _DOC),
    Row(".fill .put", filled, source=_DOC),
    Row(".tobytes .dumps", uniform, source=_DOC),
)  # fmt: skip


def pattern(name: str) -> Row | None:
    """What numpy calls as torch does."""
    if not name.startswith("numpy."):
        return None
    word = name[len("numpy.") :].removeprefix("linalg.").removeprefix("ma.")
    row = _SHARED.get(f"torch.{_TORCH.get(word, word)}")
    if row is None:
        return None
    return Row(name, array(row.effect), source=_DOC)
