"""More of numpy: what has no row among those that torch and numpy share
(https://numpy.org/doc/stable/reference/).
"""

from __future__ import annotations

from dataclasses import replace

from dpmigrate.execution import placements
from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.values import NONE, NOTHING, Data, Value, placement_of
from dpmigrate.library.axes import rows_of
from dpmigrate.library.effects import (
    batched,
    coupled,
    elementwise,
    filled,
    none,
    same,
    scalar,
    unestablished,
    uniform,
)
from dpmigrate.library.factories import counted, factory, like, literal
from dpmigrate.library.numpy import array, chosen
from dpmigrate.library.pure import computed
from dpmigrate.library.reductions import along, binned, reduce
from dpmigrate.library.shapes import permute
from dpmigrate.library.sites import Effect, Row, Site, examples, methods, prefixed
from dpmigrate.library.sizes import shape
from dpmigrate.library.streams import drawing

_DOC = "https://numpy.org/doc/stable/reference/"
#: draws by the number of parameters before their size
_DRAWS = {
    0: "standard_normal standard_exponential standard_cauchy random random_sample ranf sample",
    1: "chisquare dirichlet exponential geometric logseries pareto poisson power rayleigh"
    " standard_gamma standard_t weibull zipf",
    2: "beta binomial f gamma gumbel laplace logistic lognormal multinomial negative_binomial"
    " noncentral_chisquare vonmises wald normal uniform integers randint random_integers"
    " multivariate_normal",
    3: "hypergeometric noncentral_f triangular",
}
_SHOWN = {
    0: ("np.random.standard_normal((3, 2))", "np.random.random(x.shape[0])"),
    1: ("np.random.poisson(2.0, 3)", "np.random.exponential(1.0)"),
    2: ("np.random.normal(0.0, 1.0, (3, 2))", "np.random.beta(0.2, 0.2)"),
    3: ("np.random.triangular(0.0, 0.5, 1.0, 3)",),
}


def sized(before: int) -> Effect:
    """``numpy.random.gamma(a, b, size)``: numbers of a size; without one of the parameters'."""

    def effect(site: Site) -> Value | None:
        at = before + (site.receiver is not None)
        size = site.get(at, "size")
        given = [v for n, v in site.arguments.keywords.items() if n != "size"]
        given += site.arguments.positional[:before]
        moving = [v for v in given if site.m.depends(v).kind not in placements.EQUAL]
        if moving:
            return site.unknown(f"the parameters of {site.word}")
        if not size or size == NONE:
            kind = "number" if all(scalar(v) for v in given) else "array"
            return site.data(placements.UNIFORM, kind=kind, keep_axes=False)
        inner = replace(site, name="numpy.zeros_of", receiver=None, arguments=Arguments([size]))
        return factory(inner)

    return drawing("numpy", effect)


def copied_into(site: Site) -> Value:
    """``numpy.copyto(x, y)``: other elements in the same array."""
    target = next(iter(getattr(site.node, "args", ())), None)
    if target is not None and type(target).__name__ in ("Name", "Attribute"):
        site.m.write_in_place(target, filled(site), site.node, site.frame)
    return NONE


def searched(site: Site) -> Value:
    """``numpy.searchsorted(sorted, v)``: for each of ``v`` its place among what is sorted."""
    table = site.flat(site.get(0) or NOTHING)
    if table and placement_of(table).kind not in placements.EQUAL:
        return coupled(site)
    return site.each()


def at_least(count: int) -> Effect:
    """``numpy.atleast_2d(x)``: the same where it has so many axes."""

    def effect(site: Site) -> Value | None:
        found = rows_of(site.get(0) or NOTHING)
        if found is None or count == 1 or (found.axes or 0) >= count:
            return same(site)
        return site.unknown("how many axes there are")

    return effect


def transposed(site: Site) -> Value:
    """``numpy.matrix_transpose(x)``: the last two axes change places."""
    return permute(replace(site, name="numpy.mT"))


def axes_count(site: Site) -> Value:
    """``numpy.ndim(x)``."""
    return uniform(site)


ROWS = (
    *(
        Row(prefixed("numpy.random.", names), array(sized(n)), _SHOWN[n], _DOC)
        for n, names in _DRAWS.items()
    ),
    *(
        Row(methods("random_stream", names), array(sized(n)), (), _DOC)
        for n, names in _DRAWS.items()
    ),
    Row(methods("random_stream", "permuted multivariate_hypergeometric bytes"),
        array(drawing("numpy", chosen)), source=_DOC),
    Row(methods("random_stream", "spawn get_state bit_generator"), computed, source=_DOC),
    Row("<random_stream>.set_state", none, source=_DOC),
    Row("numpy.random.SeedSequence numpy.random.get_bit_generator", computed, source=_DOC),
    Row(prefixed("numpy.", "zeros_like ones_like empty_like full_like"), array(like), examples("""
np.zeros_like(x.numpy())
np.ones_like(x.numpy()[:, 0])
np.full_like(x.numpy(), 3.0)
"""), _DOC),
    Row(prefixed("numpy.", """
arccosh arcsinh arctanh left_shift right_shift lcm mod bitwise_invert bitwise_count iscomplex
isreal isnat real_if_close fix remainder floor_divide
"""), array(elementwise), examples("""
np.mod(x.numpy(), 2)
np.arcsinh(x.numpy())
"""), _DOC),
    Row("numpy.select", array(elementwise), examples("""
np.select([x.numpy() > 0, x.numpy() < -1], [x.numpy(), -x.numpy()], 0.0)
"""), _DOC),
    Row(prefixed("numpy.", """
uint16 uint32 uint64 complex64 complex128 double single half longlong intp bool byte ubyte short
ushort intc uintc long ulong longdouble matrix asmatrix asarray_chkfinite ma.array
ma.masked_array ma.asarray
"""), array(literal), examples("""
np.uint16(3)
np.double(x.mean())
"""), _DOC),
    Row("numpy.require .byteswap <array>.to_device", array(same),
        ("np.require(x.numpy())",), _DOC),
    Row("numpy.atleast_1d", array(at_least(1)), ("np.atleast_1d(x.numpy())",), _DOC),
    Row("numpy.atleast_2d", array(at_least(2)), ("np.atleast_2d(x.numpy())",), _DOC),
    Row("numpy.atleast_3d", array(at_least(3)), ("np.atleast_3d(np.ones(3))",), _DOC),
    Row("numpy.searchsorted", array(searched), examples("""
np.searchsorted(np.arange(5), x.numpy())
np.searchsorted(np.sort(x.numpy()[:, 0]), 0.5)
"""), _DOC),
    Row("numpy.copyto", copied_into, source=_DOC),
    Row(prefixed("numpy.linalg.", "pinv cond matrix_power matrix_norm"), array(batched(2)),
        ("np.linalg.pinv(x.numpy().T @ x.numpy())",), _DOC),
    Row("numpy.matrix_transpose numpy.linalg.matrix_transpose", array(transposed),
        ("np.matrix_transpose(x.numpy())",), _DOC),
    Row("numpy.shape", shape, ("np.shape(x.numpy())[1]",), _DOC),
    Row("numpy.ndim numpy.iterable numpy.isfortran numpy.can_cast numpy.may_share_memory",
        axes_count, ("np.ndim(x.numpy())",), _DOC),
    Row(prefixed("numpy.", """
hamming hanning blackman bartlett kaiser geomspace fft.fftfreq fft.rfftfreq
"""), array(counted), ("np.hanning(4)",), _DOC),
    Row("numpy.nanprod", array(reduce("")), ("np.nanprod(x.numpy(), 1)",), _DOC),
    Row("numpy.nancumprod", array(along(default=None)), ("np.nancumprod(x.numpy(), 1)",), _DOC),
    Row(prefixed("numpy.", """
histogramdd histogram_bin_edges trapezoid roots trim_zeros sort_complex polyfit
poly polyadd polysub polymul polydiv polyder polyint unique_all unique_counts unique_inverse
unique_values corrcoef cov ediff1d unwrap trapz
"""), array(coupled), examples("""
np.corrcoef(x.numpy())
np.unwrap(x.numpy())
"""), _DOC),
    Row("numpy.bincount", array(binned(coupled)), examples("""
np.bincount(t.numpy())
np.bincount(t.numpy(), minlength=8)
"""), _DOC),
    Row("<array>.argpartition <array>.partition", array(coupled), source=_DOC),
    Row(prefixed("numpy.", """
dstack hsplit vsplit dsplit extract compress place putmask put_along_axis resize rollaxis
block bmat broadcast_arrays apply_over_axes diagflat vander vecdot matvec vecmat piecewise
tril_indices triu_indices tril_indices_from triu_indices_from diag_indices diag_indices_from
mask_indices ix_ ravel_multi_index unravel_index flatnonzero packbits unpackbits modf frexp
divmod linalg.multi_dot linalg.tensorinv linalg.tensorsolve linalg.vecdot
lib.stride_tricks.as_strided
lib.stride_tricks.sliding_window_view unstack fft.rfftn fft.irfftn fft.ihfft nditer ndenumerate
broadcast permute_dims fromfunction busday_count
"""), array(unestablished("which axis of an array runs over the samples")), examples("""
np.tril_indices(3)
np.dstack([np.ones(3), np.ones(3)])
"""), _DOC),
    Row(methods("array", "choose compress resize"),
        array(unestablished("which axis of an array runs over the samples")), source=_DOC),
    Row(prefixed("numpy.", """
array2string array_repr array_str base_repr binary_repr format_float_positional
format_float_scientific isdtype iscomplexobj isrealobj min_scalar_type promote_types typename
common_type poly1d datetime64 timedelta64 str_ bytes_ object_ dtype recarray
get_printoptions geterr show_config fromregex fromstring from_dlpack einsum_path
"""), computed, source=_DOC),
    Row("<array>.setflags numpy.setbufsize numpy.seterrcall numpy.printoptions", none,
        source=_DOC),
)  # fmt: skip
ATTRIBUTES = (
    Row(methods("array", "flat"), array(lambda site: _flat(site)), source=_DOC),
    Row(methods("array", "flags base ctypes"), uniform, source=_DOC),
)


def _flat(site: Site) -> Value:
    """``x.flat``: the elements one after the other."""
    moving = any(
        d.placement.kind not in placements.EQUAL
        for d in (site.get(0) or NOTHING)
        if isinstance(d, Data)
    )
    return site.data(placements.PER_RANK if moving else placements.UNIFORM, keep_axes=False)


def pattern(name: str) -> Row | None:
    """Assertions of numpy give nothing."""
    return Row(name, none, source=_DOC) if name.startswith("numpy.testing.") else None
