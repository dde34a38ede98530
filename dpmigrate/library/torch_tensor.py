"""torch's functions of tensors and their methods (https://docs.pytorch.org/docs/stable/torch.html)."""

from __future__ import annotations

from collections.abc import Sequence

from dpmigrate.execution import arithmetic, placements
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    SETTING,
    Data,
    Items,
    Ref,
    Value,
    const,
    data,
    gradient_join,
    items,
    join,
    placement_of,
    value,
)
from dpmigrate.library.effects import (
    along,
    cat,
    choose,
    coupled,
    cut,
    detached,
    elements_count,
    elementwise,
    factory,
    flatten,
    host,
    in_place,
    like,
    literal,
    matmul,
    none,
    permute,
    permuted,
    reduce,
    reshape,
    same,
    shape,
    squeeze,
    stack,
    uniform,
)
from dpmigrate.library.sites import Effect, Row, Site, on_axis, rows_of, table, words

_DOC = "https://docs.pytorch.org/docs/stable/torch.html"


def backward(site: Site) -> Value:
    """``loss.backward()``: gradients come to everything that the loss has reached."""
    loss = site.flat(site.get(0) or NOTHING)
    site.event("backward", loss=loss)
    made = site.m.heap.new("backward", "backward", site.node, site.frame.context)
    site.m.heap.write((made.number, "loss"), loss)
    for d in data(loss):
        for number in sorted(d.reached):
            site.m.heap.widen((number, "grad"), value(Ref(made.number)))
    return NONE


def gradient(site: Site) -> Value:
    """``torch.autograd.grad(outputs, inputs)``: not averaged over the ranks by DDP."""
    outputs, inputs = site.get(0, "outputs") or NOTHING, site.get(1, "inputs") or NOTHING
    site.event("gradient", outputs=site.flat(outputs), inputs=site.flat(inputs))
    p = placements.elementwise([placement_of(site.flat(inputs)), placement_of(site.flat(outputs))])
    rows = rows_of(site.flat(inputs))
    placement = rows.placement if rows is not None else p
    made = arithmetic.derived("grad", placement, [site.flat(inputs), site.flat(outputs)], site.node)
    return items([made])


def index(site: Site) -> Value | None:
    """``x[i]``: the rows stay where their axis is taken whole; chosen rows are ragged."""
    owner, key = site.get(0) or NOTHING, site.get(1) or NOTHING
    found = rows_of(owner)
    if found is not None and found.kind == "shape":
        from dpmigrate.library.effects import size_of

        place = site.m.constant(key)
        if place is not None and isinstance(place.value, int):
            return size_of(site, found, place.value)
        return site.m.listed(
            [value(found._replace(kind="number", placement=placements.size())), SETTING],
            site.node,
            site.frame,
            exact=False,
        )
    if found is None:
        operands = [site.flat(owner), site.flat(key)]
        p = placements.elementwise(placement_of(v) for v in operands)
        of_key = rows_of(operands[1])
        if of_key is not None:  # a table looked up by labels
            p = of_key.placement
        return arithmetic.derived("index", p, operands, site.node, keep_axes=False)
    parts = _key(site, key)
    p, axes = found.placement, found.axes
    to, part, removed, added = _walked(site, parts, found)
    if to is None:
        return site.unknown("an index with an ellipsis")
    left = axes - removed + added if axes is not None else None
    if part is None or _part(site, part) == "whole":
        return site.data(p._replace(axis=to), axes=left, keep_axes=False)
    return _chosen(site, owner, found, part)


def _walked(
    site: Site, parts: list[Value], found: Data
) -> tuple[int | None, Value | None, int, int]:
    """The new axis of the rows, the part of the index that is for them, and how many axes go and come.

    The axis is None where an ellipsis hides it.
    """
    kinds = [_part(site, p) for p in parts]
    removed, added = kinds.count("one"), kinds.count("none")
    axis, at, place = found.placement.axis, 0, 0
    for number, (part, kind) in enumerate(zip(parts, kinds, strict=True)):
        if kind == "ellipsis":
            behind = [k for k in kinds[number + 1 :] if k != "none"]
            if found.axes is None:
                # only the first axis is known to lie before what follows the ellipsis
                return (place, None, removed, added) if at == axis == 0 else (None, None, 0, 0)
            skipped = found.axes - len(behind) - at
            if at <= axis < at + skipped:
                return place + axis - at, None, removed, added
            at, place = at + skipped, place + skipped
        elif kind == "none":
            place += 1
        elif at == axis:
            return place, part, removed, added
        else:
            at += 1
            place += 0 if kind == "one" else 1
    return place + axis - at, None, removed, added


def _chosen(site: Site, owner: Value, found: Data, part: Value) -> Value:
    """The axis of the samples is indexed itself."""
    chooser = rows_of(site.flat(part))
    if chooser is not None:  # a mask or places of the batch's own
        masks = any(d.kind == "tensor" for d in data(site.flat(part)))
        ragged = found.placement._replace(ragged=masks or found.placement.ragged)
        return arithmetic.derived("index", ragged, [owner, site.flat(part)], site.node)
    p = placement_of(site.flat(part))
    if p.kind in placements.EQUAL and data(site.flat(part)):
        # an order drawn for the batch, places that the program chose
        drawn = arithmetic.derived("index by places", placements.PER_RANK, [owner], site.node)
        return drawn
    return arithmetic.derived("index of single samples", placements.PER_RANK, [owner], site.node)


def _key(site: Site, key: Value) -> list[Value]:
    if len(key) == 1 and isinstance(key[0], Items):
        return list(key[0].items)
    return [key]


def _part(site: Site, part: Value) -> str:
    """What one part of an index is."""
    if part == NONE:
        return "none"
    if part == const(...):
        return "ellipsis"
    made = next((o for o in site.m.objects(part)), None)
    if made is not None and made.kind == "slice":
        bounds = [site.m.heap.read((made.number, n)) for n in ("lower", "upper", "step")]
        plain = [b for b in bounds if b not in (NONE, const(0), None)]
        return "slice" if plain else "whole"
    if data(part):
        return "one" if all(d.kind == "number" for d in data(part)) else "many"
    if made is not None and made.kind == "list":
        return "many"
    return "one"


def size(site: Site) -> Value:
    """``x.size()``."""
    return shape(site)


def chunk(site: Site) -> Value:
    """``split``, ``chunk``, ``unbind``: parts along an axis."""
    found = rows_of(site.get(0) or NOTHING)
    if found is None:
        part = site.data(placement_of(site.flat(site.get(0) or NOTHING)), keep_axes=False)
        return site.m.listed([part], site.node, site.frame, exact=False)
    at = 1 if site.word == "unbind" else 2
    dim = site.constant(at, "dim", 0)
    hit = on_axis(dim, found) if isinstance(dim, int) else None
    if hit is None:
        return site.unknown(f"the axis of {site.word}")
    placement = found.placement
    if hit:
        if (site.word == "chunk" and placement.segments > 1) or (
            site.word == "split" and placement.segments > 1
        ):
            placement = placement._replace(segments=1)
        else:
            placement = placements.PER_RANK
    part = site.data(placement, axes=found.axes)
    count = site.constant(1, "chunks", None)
    if site.word == "chunk" and isinstance(count, int) and count <= 8:
        return site.m.listed([part] * count, site.node, site.frame)
    return site.m.listed([part], site.node, site.frame, exact=False)


def where(site: Site) -> Value:
    """``torch.where(c, x, y)`` chooses by element; with the condition alone it gives places."""
    if len(site.all()) == 1:
        return choose(site)
    return site.each()


def expand(site: Site) -> Value:
    """``expand``, ``repeat``: an axis of one is made longer; of one the samples it becomes rows."""
    given = site.get(0) or NOTHING
    found = rows_of(given)
    if found is not None:
        return site.data(found.placement, keep_axes=False)
    sizes = site.arguments.positional
    if len(sizes) == 1:
        sizes = site.m.known_elements(sizes[0]) or sizes
    for i, s in enumerate(sizes):
        if placement_of(s).kind is Kind.SIZE:
            return site.data(placements.rows(i), axes=len(sizes))
        if rows_of(s) is not None:
            return site.data(placement_of(s), keep_axes=False)
    return site.data(placement_of(site.flat(given)), keep_axes=False)


def einsum(site: Site) -> Value:
    """``einsum(rule, …)``: by the letter of the samples' axis."""
    rule = site.constant(0, "equation")
    operands = [site.flat(v) for v in site.arguments.positional[1:]]
    if not isinstance(rule, str) or "->" not in rule:
        return site.unknown("the rule of einsum")
    left, right = rule.replace(" ", "").split("->")
    letters: set[str] = set()
    for word, v in zip(left.split(","), operands, strict=False):
        found = rows_of(v)
        if found is not None:
            if "." in word and found.placement.axis != 0:
                return site.unknown("the rule of einsum")
            letters.add(word[found.placement.axis] if found.placement.axis < len(word) else "?")
    if not letters:
        return site.data(placements.elementwise(placement_of(v) for v in operands), keep_axes=False)
    if len(letters) > 1:
        return site.data(placements.PER_RANK, keep_axes=False)
    (letter,) = letters
    if letter in right:
        return site.data(placements.rows(right.index(letter)), axes=len(right))
    return site.data(placements.SUM, axes=len(right))


def drawn(effect: Effect) -> Effect:
    """A draw from torch's stream."""

    def draw(site: Site) -> Value | None:
        own = "generator" in site.arguments.keywords
        site.event("draw", stream=const("a generator" if own else "torch"))
        return effect(site)

    return draw


def counted(site: Site) -> Value:
    """``arange(n)``, ``linspace``, ``eye``: numbers by their places."""
    for v in site.arguments.positional:
        p = placement_of(v)
        if p.kind is Kind.SIZE:
            # the place in the rank's share, not in the batch
            return arithmetic.derived(
                "places in the batch", placements.PER_RANK, [v], site.node, kind="tensor"
            )
        if p.kind not in placements.EQUAL:
            return arithmetic.derived(site.word, p, [v], site.node, kind="tensor")
    return value(Data("tensor", placements.UNIFORM, axes=2 if site.word == "eye" else 1))


def function_applied(site: Site) -> Value | None:
    """``Function.apply(x)`` of a class of the program: its ``forward`` with a context."""
    cls = site.object
    forward = site.m.in_class(cls, "forward") if cls is not None else None
    if not forward:
        return None
    result = site.m.call(forward, site.arguments.after(SETTING), site.node, site.frame)
    given = site.operands()
    return tuple(
        a._replace(
            gradient=gradient_join(*(d.gradient for v in given for d in data(v))),
            reached=a.reached.union(*(d.reached for v in given for d in data(v))),
        )
        if isinstance(a, Data)
        else a
        for a in result
    )


def stored(site: Site) -> Value | None:
    """``x[i] = y``: what holds the tensor holds another one afterwards."""
    owner, key, new = (site.get(i) or NOTHING for i in range(3))
    target = getattr(site.node, "value", None)
    if not data(owner) or type(target).__name__ not in ("Name", "Attribute"):
        return None
    held, given = placement_of(owner), placement_of(site.flat(new))
    at = placement_of(site.flat(key))
    if held.kind is Kind.ROWS and given.kind in (Kind.ROWS, *placements.EQUAL):
        placement = held
    elif at.kind in placements.EQUAL:
        placement = placements.join(held, given) if given.kind is not Kind.ROWS else placements.PER_RANK
    else:
        placement = placements.PER_RANK
    flows = gradient_join(*(d.gradient for v in (owner, new) for d in data(v)))
    made = arithmetic.derived("stored", placement, [owner, site.flat(new)], site.node, gradient=flows)
    site.m.assign(target, made, site.node, site.frame)  # type: ignore[arg-type]
    return NONE


def clip_norm(site: Site) -> Value:
    """``clip_grad_norm_``: the norm of synchronised gradients."""
    site.event("clip", parameters=site.flat(site.get(0) or NOTHING))
    return value(Data("tensor", placements.UNIFORM))


def saved(site: Site) -> Value:
    """``torch.save(obj, path)``."""
    site.event("save", what=site.get(0, "obj") or NOTHING, path=site.get(1, "f") or NOTHING)
    return NONE


def loaded(site: Site) -> Value:
    """``torch.load(path)``."""
    site.event("load", path=site.get(0, "f") or NOTHING)
    return site.ref("opaque")


def parameter(site: Site) -> Value:
    """``nn.Parameter(x)``: a parameter of the model it is put into."""
    made = site.made("parameter")
    found = data(site.flat(site.get(0, "data") or NOTHING))
    axes = found[0].axes if found else None
    return value(
        Data("tensor", placements.UNIFORM, "whole", reached=frozenset([made.number]), axes=axes)
    )


def wants_grad(site: Site) -> Value:
    """``requires_grad_(True)``."""
    flag = site.constant(1, "requires_grad", True)
    given = site.get(0) or NOTHING
    site.event("requires grad", target=given, flag=const(bool(flag)))
    if flag is False:
        return cut(given)
    return tuple(
        a._replace(gradient="whole") if isinstance(a, Data) and a.gradient == "none" else a
        for a in given
    )


def converted(site: Site) -> Value | None:
    """``torch.from_numpy``, ``torch.as_tensor``: the same data as a tensor."""
    given = site.get(0) or NOTHING
    if data(given):
        return tuple(a._replace(kind="tensor") if isinstance(a, Data) else a for a in given)
    return literal(site)


def grad_of(site: Site) -> Value:
    """``x.grad``: of parameters what backward left."""
    found: list[Value] = []
    for d in data(site.get(0) or NOTHING):
        for number in sorted(d.reached):
            held = site.m.heap.read((number, "grad"))
            if held:
                found.append(value(Data("tensor", placements.UNIFORM, origin=None, axes=d.axes)))
        if not d.reached:
            found.append(value(d._replace(gradient="none")))
    return join(*found) or NONE


def list_of(site: Site) -> Value:
    """``x.tolist()``: a list of the rows."""
    given = site.get(0) or NOTHING
    found = rows_of(given)
    if found is None:
        return cut(given)
    return cut(host("array")(site) or given)


def rows_iterated(site: Site) -> Value:
    """A loop over a tensor: its slices along the first axis."""
    given = site.get(0) or NOTHING
    found = rows_of(given)
    if found is None:
        return site.data(placement_of(site.flat(given)), keep_axes=False)
    if found.placement.axis == 0:
        kind = found.kind
        made = arithmetic.derived(
            "one sample", placements.PER_RANK, [given], site.node, kind=kind, keep_axes=False
        )
        return made
    return site.data(found.placement._replace(axis=found.placement.axis - 1), keep_axes=False)


def one_number(site: Site) -> Value | None:
    """``x.item()``."""
    return host("number")(site)


_ELEMENT = words(
    """
abs absolute neg negative exp exp2 expm1 log log2 log10 log1p sqrt rsqrt square pow
float_power reciprocal sin cos tan asin acos atan atan2 sinh cosh tanh sigmoid logit sign
sgn ceil floor round trunc frac erf erfc erfinv lgamma digamma clamp clip clamp_min
clamp_max relu maximum minimum fmax fmin add sub subtract mul multiply div divide
true_divide floor_divide remainder fmod lerp addcmul addcdiv eq ne lt le gt ge greater less
logical_and logical_or logical_not logical_xor bitwise_and bitwise_or bitwise_not isnan
isinf isfinite isclose nan_to_num masked_fill type_as rad2deg deg2rad hypot copysign
heaviside where_ softplus sinc xlogy polygamma bitwise_xor special.expit real imag angle
"""
)
_SAME = words(
    """
to cuda cpu float double half bfloat16 int long short byte bool contiguous clone type
pin_memory requires_grad_ char detach_ share_memory_ coalesce to_dense resolve_conj rename
refine_names refresh xpu mps npu retain_grad data_ptr_
"""
)
_REDUCED = {"sum": "sum nansum", "mean": "mean nanmean", "max": "max amax", "min": "min amin", "": (
    "prod std var norm logsumexp median mode argmax argmin all any count_nonzero quantile kthvalue std_mean var_mean "
    "vector_norm matrix_norm nanmedian aminmax dist"
)}  # fmt: skip
_ALONG = """
softmax log_softmax cumsum cumprod logcumsumexp cummax cummin argsort sort flip normalize
renorm roll
"""
_COUPLED = words(
    """
cdist pdist cov corrcoef unique unique_consecutive bincount histc svd eig eigh qr inverse
det logdet pinverse cholesky allclose equal combinations cartesian_prod outer ger trace tril
triu diag diagonal kron solve lstsq pca_lowrank svdvals matrix_rank slogdet multinomial
"""
)
_METHOD_ONLY = "view reshape view_as reshape_as"


def _both(names: str | Sequence[str], effect: Effect, *examples: str) -> Row:
    """A function of torch that is a method of tensors as well."""
    words = names.split() if isinstance(names, str) else names
    words = [
        w
        for w in words
        if not w.endswith("_") or w in ("requires_grad_", "detach_", "share_memory_")
    ]
    return Row(" ".join(f"torch.{w} .{w}" for w in words), effect, tuple(examples), _DOC)


def _diagonal(site: Site) -> Value:
    found = rows_of(site.get(0) or NOTHING)
    if found is not None and (found.axes or 0) >= 3 and found.placement.axis == 0:
        return site.data(found.placement, keep_axes=False)
    return coupled(site)


ROWS = (
    _both(_ELEMENT, elementwise, "torch.exp(x)", "x.clamp(0, 1)", "torch.add(x, y)", "x.pow(2)", "x.eq(y)"),
    _both(_SAME, same, "x.double()", "x.clone()", "x.contiguous()"),
    _both("detach", detached, "x.detach()"),
    *[_both(names, reduce(how)) for how, names in _REDUCED.items()],
    _both(_ALONG, along(), "x.softmax(1)", "torch.cumsum(x, 1)", "x.sort(1)"),
    _both("topk", along(2, -1), "x.topk(2, 1)"),
    _both("kthvalue", along(2, -1)),
    _both(" ".join(w for w in _COUPLED if w not in ("diagonal", "diag")), coupled),
    _both("diagonal diag diag_embed", _diagonal),
    _both("reshape view", reshape, "x.view(x.size(0), -1)", "x.reshape(-1, 4)", "x.reshape(x.shape[0], 2, 2)"),
    _both("flatten", flatten, "x.flatten(1)"),
    _both("permute transpose swapaxes swapdims t movedim", permute, "x.t()", "x.transpose(0, 1)"),
    _both("unsqueeze", squeeze(1), "x.unsqueeze(1)", "x.unsqueeze(0)"),
    _both("squeeze", squeeze(-1), "x.unsqueeze(1).squeeze(1)"),
    Row("torch.cat torch.concat torch.concatenate torch.hstack", cat, ("torch.cat([x, y], 1)",), _DOC),
    Row("torch.stack torch.vstack torch.dstack", stack, ("torch.stack([x, y], 1)", "torch.stack([x, y])"), _DOC),
    _both("matmul mm bmm addmm baddbmm mv dot inner tensordot", matmul, "x @ w", "torch.mm(x, w)"),
    Row(".__matmul__", matmul, ("x @ w", "x.t() @ y"), _DOC),
    Row(".__getitem__", index, ("x[:, 0]", "x[:, 1:3]", "x[:, None]", "x[None]", "x[x[:, 0] > 0]"), _DOC),
    Row(".__setitem__", stored),
    Row("torch.einsum", einsum, ("torch.einsum('nf,nf->n', x, y)", "torch.einsum('nf,fg->ng', x, w)"), _DOC),
    _both("gather take_along_dim scatter scatter_add index_add index_fill index_copy", elementwise, "x.gather(1, t[:, None])"),
    _both("index_select take", choose),
    _both("masked_select nonzero argwhere", choose),
    Row("torch.where", where, ("torch.where(x > 0, x, y)",), _DOC),
    _both("split chunk unbind tensor_split", chunk, "x.chunk(2, 1)[0]"),
    Row(".expand .repeat .expand_as .broadcast_to .tile torch.tile torch.broadcast_to", expand),
    _both("repeat_interleave", lambda s: s.data(p._replace(times=0), keep_axes=False) if (p := placement_of(s.flat(s.get(0) or NOTHING))).kind is Kind.ROWS else s.each()),
    Row("""
torch.zeros torch.ones torch.empty torch.full .new_zeros .new_ones .new_empty .new_full
.new_tensor
""", factory, ("torch.zeros(x.size(0), 3)",), _DOC),
    Row("torch.rand torch.randn torch.randint torch.normal .new_rand", drawn(factory), ("torch.randn(x.size(0), 3)[:, :0]",), _DOC),
    Row("torch.randperm", drawn(permuted)),
    Row("""
torch.arange torch.linspace torch.logspace torch.eye torch.range torch.hann_window
torch.hamming_window
""", counted),
    _both("zeros_like ones_like empty_like full_like", like, "torch.ones_like(x)"),
    _both("rand_like randn_like randint_like bernoulli", drawn(like)),
    _both("poisson", drawn(elementwise)),
    Row("""
torch.tensor torch.Tensor torch.FloatTensor torch.LongTensor torch.DoubleTensor
torch.IntTensor torch.BoolTensor torch.ByteTensor torch.cuda.FloatTensor
torch.cuda.LongTensor
""", lambda s: factory(s) if all(not data(v) and not s.m.objects(v) for v in s.arguments.positional) and s.word != "tensor" and s.arguments.positional else literal(s)),
    Row("torch.from_numpy torch.as_tensor torch.asarray torch.Variable torch.frombuffer", converted),
    Row("""
torch.is_tensor torch.is_grad_enabled torch.get_default_dtype torch.device torch.finfo
torch.iinfo torch.typename torch.is_floating_point torch.dtype
""", uniform),
    Row(".size", shape, ("x.size(0)",), _DOC),
    Row("torch.numel .numel .nelement", elements_count, (), _DOC),
    Row("""
.dim .ndimension .is_floating_point .get_device .stride .storage .data_ptr .element_size
.is_contiguous .register_hook .retain_grad
""", uniform),
    Row(".item", one_number, ("x.mean().item()",), _DOC),
    Row(".numpy .__array__", lambda s: host("array")(s), (), _DOC),
    Row(".tolist", list_of, (), _DOC),
    Row(".backward", backward, (), "https://docs.pytorch.org/docs/stable/generated/torch.Tensor.backward.html"),
    Row("torch.autograd.backward", backward),
    Row("torch.autograd.grad", gradient),
    Row(".requires_grad_", wants_grad),
    Row(".view_as .reshape_as", lambda s: s.data(placement_of(s.flat(s.get(1) or NOTHING)), keep_axes=False)),
    Row("torch.nn.utils.clip_grad_norm_ torch.nn.utils.clip_grad_norm torch.nn.utils.clip_grad_value_", clip_norm),
    Row("torch.save", saved),
    Row("torch.load", loaded),
    Row("torch.nn.Parameter torch.nn.parameter.Parameter", parameter),
    Row("""
torch.set_printoptions torch.set_default_dtype torch.set_default_tensor_type
torch.use_deterministic_algorithms torch.set_num_threads torch.set_float32_matmul_precision
torch.autograd.set_detect_anomaly torch.set_default_device
torch.multiprocessing.set_sharing_strategy torch.multiprocessing.set_start_method
""", none),
    Row(".zero_ .fill_ .normal_ .uniform_ .copy_ .random_ .bernoulli_ .exponential_ .set_", same),
    Row("torch.meshgrid torch.combinations", coupled),
    Row("""
torch.stft torch.istft torch.fft.fft torch.fft.rfft torch.fft.irfft torch.fft.ifft
torch.fft.fft2 torch.fft.ifft2 torch.fft.fftn torch.fft.ifftn torch.fft.fftshift
""", elementwise),
    Row("""
torch.cross torch.cosine_similarity torch.clone torch.squeeze_copy torch.numel_copy
torch.diff torch.bucketize torch.searchsorted
""", elementwise),
)  # fmt: skip

_TABLE = table(ROWS)
for _word in [
    *_ELEMENT,
    "masked_scatter",
    "scatter",
    "scatter_add",
    "squeeze",
    "unsqueeze",
    "t",
    "transpose",
    "index_add",
    "index_fill",
    "index_copy",
]:
    _row = _TABLE.get(f".{_word}")
    if _row is not None and f".{_word}_" not in _TABLE:
        _TABLE[f".{_word}_"] = Row(f".{_word}_", in_place(_row.effect))
FUNCTIONS = {n: r for n, r in _TABLE.items() if not n.startswith(".")}
METHODS = {n: r for n, r in _TABLE.items() if n.startswith(".")}
ATTRIBUTES = {
    ("data", "shape"): Row("", shape),
    ("data", "data"): Row("", detached),
    ("data", "T"): Row("", permute),
    ("data", "mT"): Row("", permute),
    ("data", "grad"): Row("", grad_of),
    **{("data", n): Row("", uniform) for n in ("device", "dtype", "ndim", "requires_grad", "is_cuda", "layout", "grad_fn", "is_leaf", "itemsize", "nbytes")},
    ("data", "real"): Row("", elementwise),
    ("data", "imag"): Row("", elementwise),
    ("array", "size"): Row("", elements_count),
}  # fmt: skip
OF_KIND = {
    ("class", "apply"): Row("", function_applied),
    ("tensor", "__iter__"): Row("", rows_iterated),
    ("array", "__iter__"): Row("", rows_iterated),
    ("shape", "__iter__"): Row("", lambda s: SETTING),
    ("shape", "numel"): Row("", elements_count),
}
