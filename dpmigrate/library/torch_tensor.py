"""Tensors as objects: casts, the host's numbers and arrays, files
(https://docs.pytorch.org/docs/stable/tensors.html).
"""

from __future__ import annotations

from dataclasses import replace

from dpmigrate.execution import derivation, placements
from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    ONE_SAMPLE,
    SETTING,
    Data,
    Value,
    const,
    data,
    placement_of,
)
from dpmigrate.library.axes import rows_of
from dpmigrate.library.devices import chosen, placed
from dpmigrate.library.effects import (
    RESIZED,
    as_mask,
    coupled,
    cut,
    detached,
    elementwise,
    filled,
    host,
    in_place,
    none,
    plain,
    rounded,
    same,
    uniform,
)
from dpmigrate.library.factories import factory, like
from dpmigrate.library.sites import Effect, Row, Site, examples
from dpmigrate.library.sizes import axes_count, elements_count
from dpmigrate.library.streams import drawing
from dpmigrate.library.torch_math import both

_DOC = "https://docs.pytorch.org/docs/stable/tensors.html"


def saved(site: Site) -> Value:
    """``torch.save(obj, path)``."""
    what, path = site.get(0, "obj") or NOTHING, site.get(1, "f") or NOTHING
    site.event("save", what=what, path=path, loadable=const(True))
    return NONE


def loaded(site: Site) -> Value:
    """``torch.load(path)``: of another file for each sample another value."""
    path = site.get(0, "f") or NOTHING
    given = site.arguments
    where = given.get(1, "map_location") or NONE
    placed(site, (*where, *given.keywords.get("device", NOTHING)))
    hidden = site.word != "load" or "jit" in site.name or given.star or given.stars
    site.event("load", path=path, where=SETTING if hidden else where)
    return site.ref("opaque") if site.m.depends(path).kind in placements.EQUAL else plain(site)


def moved(site: Site) -> Value | None:
    """``x.to(device)``: the same."""
    placed(site)
    return same(site)


def place_among(values: int) -> Effect:
    """``searchsorted(edges, x)``, ``bucketize(x, edges)``: for each element of one argument, by its
    place, its place among the other's: as many axes as that one has.
    """

    def effect(site: Site) -> Value:
        found = data(site.flat(site.get(values) or NOTHING))
        axes = found[0].axes if len(found) == 1 else None
        return tuple(a._replace(axes=axes) if isinstance(a, Data) else a for a in elementwise(site))

    return effect


def resized(site: Site) -> Value:
    """``x.resize_as_(y)``: another shape. What it holds then is not known, and is left out."""
    return like(replace(site, receiver=None, arguments=Arguments([site.get(1, "the_template") or NOTHING])))


def sized_anew(site: Site) -> Value:
    """``x.resize_(n, 3)``: another shape, as that of ``torch.empty(n, 3)``. What a batch has left there is not known then,
    but for what lies in the same rows as before, until other elements are put in.
    """
    held = site.flat(site.get(0) or NOTHING)
    given = Arguments(site.arguments.positional, {"size": v} if (v := site.arguments.keywords.get("sizes")) else {}, site.arguments.star)
    made = factory(replace(site, name="torch.empty", receiver=None, arguments=given))
    lying = placement_of(made)
    before = [d.placement for d in data(held) if d.placement.kind not in placements.EQUAL]
    if all(p.kind is Kind.ROWS and lying.kind is Kind.ROWS and (p.axis, lying.axis) == (0, 0) for p in before):
        return made
    unknown = site.data(placements.UNKNOWN, keep_axes=False)
    return derivation.since(unknown, RESIZED, site.node) if lying == placements.rows(0) else unknown


def diagonal_filled(site: Site) -> Value:
    """``x.fill_diagonal_(0)``: a place of each sample by its number, where an axis runs over them; the
    rest stays.
    """
    p = placement_of(site.flat(site.get(0) or NOTHING))
    keeps = p.kind in (*placements.EQUAL, Kind.PER_RANK, Kind.UNKNOWN) or p == placements.MEAN
    return site.data(p if keeps else placements.PER_RANK)


def list_of(site: Site) -> Value:
    """``x.tolist()``: a list of the rows."""
    given = site.get(0) or NOTHING
    found = rows_of(given)
    if found is None:
        return cut(given)
    return cut(host("array")(site) or given)


def rows_iterated(site: Site) -> Value:
    """A loop over a tensor: its slices along the first axis."""
    given = site.flat(site.get(0) or NOTHING)
    found = rows_of(given)
    if found is None:
        return derivation.derived(
            "elements", placement_of(given), [given], site.node, keep_axes=False
        )
    axes = found.axes - 1 if found.axes is not None else None
    if found.placement.axis == 0:
        return derivation.derived(
            ONE_SAMPLE, placements.PER_RANK, [given], site.node, kind=found.kind, axes=axes,
            keep_axes=False,
        )  # fmt: skip
    return site.data(
        found.placement._replace(axis=found.placement.axis - 1), axes=axes, keep_axes=False
    )


def typed(site: Site) -> Value | None:
    """``x.type(dtype)`` is a cast; ``x.type()`` is the name of the type, the same on all ranks."""
    return same(site) if site.get(1, "dtype") else SETTING


def sizes_iterated(site: Site) -> Value:
    """A loop over a shape: the sizes, one of which is the number of samples."""
    return site.unknown("which of the sizes it is")


ROWS = (
    Row(both("to cuda"), moved, ("x.mean().to(torch.float32)",), _DOC),
    Row(both("""
cpu float double half bfloat16 contiguous clone pin_memory type_as detach_ share_memory_
coalesce to_dense resolve_conj resolve_neg rename refine_names xpu mps npu requires_grad_
to_sparse squeeze_copy detach_copy cfloat cdouble
"""), same, examples("""
x.double()
x.clone()
x.contiguous()
(x @ w).float()
w.type_as(x)
x.mean().type_as(x)
"""), _DOC),
    Row(".type", typed, ("x.type(torch.float64)", "x.mean().type(torch.float32)"), _DOC),
    Row(both("int long short byte char"), rounded, examples("""
x.long()
(x * 9).sum().long()
(x @ w).int()
"""), _DOC),
    Row(both("bool"), as_mask, ("x.bool()", "x[(x[:, 0] > 0).bool()]"), _DOC),
    Row(f"{both('detach')} .__array__", detached, ("x.detach()", "(x @ w).detach()"), _DOC),
    Row("""
.fill_ .copy_ .zero_ .set_
""", in_place(filled), ("x.clone().fill_(1.0)", "torch.zeros_like(x).copy_(y)", "x.clone().zero_()"), _DOC),
    Row(".resize_as_", in_place(resized), examples("""
x.new().resize_as_(x).fill_(1)
x.new().resize_as_(x.sum(1)).fill_(1)
x.new().resize_as_(w).fill_(1)
"""), _DOC),
    Row(".resize_", in_place(sized_anew), examples("""
x.new().resize_(x.size(0), 2).fill_(1)
x.new().resize_(x.size()).copy_(x)
x.new().resize_(2, 3).fill_(1)
"""), _DOC),
    Row(".fill_diagonal_", in_place(diagonal_filled), examples("""
x.clone().fill_diagonal_(0.0)
(x @ w).mean(0).expand(4, 4).clone().fill_diagonal_(0.5)
(x.T @ x).fill_diagonal_(0.5)
(w @ w).fill_diagonal_(0.0)
"""), _DOC),
    Row(".masked_scatter_", in_place(coupled), ("x.clone().masked_scatter_(x > 0, y)",), _DOC),
    Row("""
.normal_ .uniform_ .random_ .bernoulli_ .exponential_ .cauchy_ .log_normal_ .geometric_
""", in_place(drawing("torch", filled)), ("x.clone().normal_()", "torch.empty_like(w).uniform_(0, 1)"), _DOC),
    Row(".item", host("number"), ("x.mean().item()", "x.sum().item()", "x.max().item()"), _DOC),
    Row(".numpy", host("array"), ("x.numpy()", "x.mean(0).numpy()"), _DOC),
    Row(".tolist", list_of, ("x.mean(0).tolist()",), _DOC),
    Row("torch.save", saved, source=_DOC),
    Row("torch.load torch.jit.load", loaded, source=_DOC),
    Row("""
torch.set_printoptions torch.set_default_dtype torch.set_default_tensor_type
torch.use_deterministic_algorithms torch.set_num_threads torch.set_float32_matmul_precision
torch.set_default_device torch.multiprocessing.set_sharing_strategy
torch.multiprocessing.set_start_method torch.set_num_interop_threads
torch.set_deterministic torch.set_flush_denormal torch.jit.save
""", none),
    Row("""
torch.is_tensor torch.get_default_dtype torch.finfo
torch.iinfo torch.typename torch.is_floating_point torch.dtype torch.get_num_threads
torch.broadcast_shapes torch.Size torch.is_complex torch.result_type torch.is_inference
""", uniform),
    Row(".dim .ndimension", axes_count, examples("""
x.dim()
x.view(-1, 2, 2).sum(dim=list(range(1, x.dim() + 1)))
"""), _DOC),
    Row("""
.is_floating_point .get_device .stride .storage .data_ptr .element_size
.is_contiguous .is_complex .untyped_storage .is_pinned .is_shared .storage_offset
""", uniform, ("x.is_floating_point()",), _DOC),
    Row("<tensor|array>.__iter__", rows_iterated, source=_DOC),
    Row("<mask|places|order>.__iter__", rows_iterated, source=_DOC),
    Row("<shape>.__iter__", sizes_iterated, source=_DOC),
    Row("<shape>.numel", elements_count, ("x.shape.numel()",), _DOC),
    Row(".searchsorted torch.searchsorted", place_among(1), examples("""
torch.searchsorted(w[0].sort()[0], x)
torch.searchsorted(w[0].sort()[0], 0.5)
"""), _DOC),
    Row(".bucketize torch.bucketize", place_among(0), examples("""
torch.bucketize(x, w[0].sort()[0])
torch.bucketize(x[:, 0], w[0].sort()[0])
"""), _DOC),
)  # fmt: skip
ATTRIBUTES = (
    Row("<data>.device", chosen, ("x.device == w.device",), _DOC),
    Row("<data>.data", detached, ("x.data",), _DOC),
    Row(
        """
<data>.dtype <data>.requires_grad <data>.is_cuda <data>.layout
<data>.grad_fn <data>.is_leaf <data>.itemsize <data>.nbytes <data>.is_sparse <data>.names
""",
        uniform,
        ("x.requires_grad",),
        _DOC,
    ),
    Row("<data>.ndim", axes_count, examples("""
x.ndim
x.sum(dim=tuple(range(1, x.ndim)))
x.sum(dim=tuple(range(x.ndim)))
"""), _DOC),
    Row("<data>.real <data>.imag", elementwise, source=_DOC),
)  # fmt: skip
