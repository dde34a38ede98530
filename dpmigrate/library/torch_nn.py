"""torch.nn: modules, functions and losses (https://docs.pytorch.org/docs/stable/nn.html)."""

from __future__ import annotations

from dpmigrate.execution import arithmetic, placements
from dpmigrate.execution.foreign import Arguments
from dpmigrate.execution.heap import Object
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    SETTING,
    Atom,
    Const,
    Data,
    Items,
    Ref,
    Value,
    const,
    data,
    items,
    join,
    known,
    placement_of,
    value,
)
from dpmigrate.library.effects import (
    along,
    cut,
    elementwise,
    none,
    same,
    uniform,
)
from dpmigrate.library.sites import GRAD, Row, Site, table, words

_DOC = "https://docs.pytorch.org/docs/stable/nn.html"
#: kinds of objects that hold parameters
MODULES = frozenset({"module", "wrapper", "criterion", "container"})
#: what is kept of a model of a library, whose parts are modules as well
MODEL = "model of a library"
#: layers without parameters
BARE = frozenset(
    words(
        """
ReLU ReLU6 LeakyReLU ELU SELU GELU SiLU Mish Tanh Sigmoid Softplus Hardtanh Hardswish
Hardsigmoid Softsign Tanhshrink LogSigmoid Threshold Dropout Dropout2d Dropout3d Dropout1d
AlphaDropout Identity MaxPool1d MaxPool2d MaxPool3d AvgPool1d AvgPool2d AvgPool3d
AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d
Upsample UpsamplingBilinear2d UpsamplingNearest2d PixelShuffle PixelUnshuffle ZeroPad2d
ReflectionPad2d ReplicationPad2d ConstantPad2d Flatten Unflatten Softmax LogSoftmax
Softmax2d Softmin GLU MaxUnpool2d Fold Unfold ChannelShuffle LPPool2d CELU ReflectionPad1d
ConstantPad1d
"""
    )
)
_CONTAINERS = ("Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict")
_LOSSES = words(
    """
CrossEntropyLoss NLLLoss NLLLoss2d MSELoss L1Loss SmoothL1Loss HuberLoss BCELoss
BCEWithLogitsLoss KLDivLoss PoissonNLLLoss GaussianNLLLoss CosineEmbeddingLoss
MarginRankingLoss TripletMarginLoss HingeEmbeddingLoss MultiLabelMarginLoss
MultiLabelSoftMarginLoss MultiMarginLoss SoftMarginLoss CTCLoss
TripletMarginWithDistanceLoss
"""
)
_LOSS_FUNCTIONS = words(
    """
cross_entropy nll_loss mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy
binary_cross_entropy_with_logits kl_div poisson_nll_loss gaussian_nll_loss
cosine_embedding_loss margin_ranking_loss triplet_margin_loss hinge_embedding_loss
multilabel_margin_loss multilabel_soft_margin_loss multi_margin_loss soft_margin_loss
ctc_loss
"""
)
_WEIGHTED = ("CrossEntropyLoss", "NLLLoss", "NLLLoss2d", "cross_entropy", "nll_loss")
_RECURRENT = ("LSTM", "GRU", "RNN", "Transformer", "TransformerEncoder", "TransformerDecoder",
              "TransformerEncoderLayer", "TransformerDecoderLayer", "MultiheadAttention")  # fmt: skip


# ---------------------------------------------------------------- losses


def lossy(site: Site, fields: dict[str, Value | None], operands: list[Value], name: str) -> Value:
    """A loss by its reduction: the mean over the batch is the mean of the ranks' means."""
    reduction = known(fields.get("reduction") or const("mean"))
    for flag in ("size_average", "reduce"):
        if fields.get(flag) and known(fields[flag] or NOTHING) is False:
            reduction = "sum" if flag == "size_average" else "none"
    p = placements.elementwise(placement_of(v) for v in operands)
    weight = fields.get("weight")
    skewed = name in _WEIGHTED and weight is not None and weight != NONE
    ignoring = fields.get("ignore_index") is not None
    if p.kind is Kind.ROWS:
        if reduction == "mean":
            p = placements.RATIO if p.ragged or skewed or ignoring else placements.MEAN
        elif reduction == "sum":
            p = placements.SUM
        elif reduction == "batchmean":
            p = placements.RATIO if p.ragged else placements.MEAN
        elif reduction != "none":
            return site.unknown("the reduction of a loss")
    return arithmetic.derived(
        name, p, operands, site.node, kind="tensor", axes=0 if reduction != "none" else None
    )


def loss_function(site: Site) -> Value:
    """``F.cross_entropy(x, t)``."""
    operands = [v for v in (site.flat(a) for a in site.arguments.positional[:3]) if data(v)]
    for name in ("input", "target", "anchor", "positive", "negative"):
        given = site.arguments.keywords.get(name)
        if given:
            operands.append(site.flat(given))
    fields = dict(site.arguments.keywords)
    return lossy(site, fields, operands, site.word)  # type: ignore[arg-type]


def criterion(site: Site) -> Value:
    """``nn.CrossEntropyLoss()``."""
    made = site.ref("criterion", **site.arguments.keywords)
    if site.arguments.positional:
        first = (
            "weight"
            if site.word in ("CrossEntropyLoss", "NLLLoss", "BCELoss", "BCEWithLogitsLoss")
            else "size_average"
        )
        number = site.m.objects(made)[0].number
        site.m.heap.write((number, first), site.arguments.positional[0])
    return made


def criterion_called(site: Site) -> Value:
    """A call of a loss module."""
    made = site.object
    assert made is not None
    fields = {str(k): v for k, v in site.m.heap.names(made.number)}
    operands = [v for v in (site.flat(a) for a in site.arguments.all()) if data(v)]
    return lossy(site, fields, operands, made.name)  # type: ignore[arg-type]


# ---------------------------------------------------------------- modules


def layer(site: Site) -> Value:
    """A layer of torch's."""
    made = site.made("module")
    for name, held in site.arguments.keywords.items():
        site.m.heap.write((made.number, f"={name}"), held)
    for i, held in enumerate(site.arguments.positional):
        site.m.heap.write((made.number, f"={i}"), held)
    if site.word in _RECURRENT or site.word.startswith("Transformer"):
        return value(Ref(made.number))
    return value(Ref(made.number))


def container(site: Site) -> Value:
    """``nn.Sequential(a, b)``, ``nn.ModuleList([…])``, ``nn.ModuleDict({…})``."""
    made = site.made("container")
    given = site.arguments.positional
    listed: list[Value] | None = list(given)
    if site.arguments.star:
        listed = None
    if len(given) == 1 and site.word in (
        "ModuleList",
        "ParameterList",
        "Sequential",
        "ModuleDict",
        "ParameterDict",
    ):
        inner = site.m.known_elements(given[0])
        owner = next(iter(site.m.objects(given[0])), None)
        if owner is not None and owner.kind == "dict":
            for k, v in site.m.heap.names(owner.number):
                site.m.heap.write((made.number, k.value if isinstance(k, Const) else "*"), v)
            return value(Ref(made.number))
        if owner is not None and owner.kind == "list":
            listed = inner
            if inner is None:
                site.m.heap.write((made.number, "*"), site.m.contents(owner))
                return value(Ref(made.number))
        elif owner is None and inner is not None:
            listed = inner
    if listed is None:
        site.m.heap.write((made.number, "*"), site.arguments.star)
    for i, v in enumerate(listed or []):
        site.m.heap.write((made.number, str(i)), v)
    return value(Ref(made.number))


def children(site: Site, made: Object) -> list[Value]:
    """The layers of a container, in order."""
    return [
        site.m.bound(v)
        for k, v in site.m.heap.names(made.number)
        if isinstance(k, str) and not k.startswith(("=", "mode ", "grad", "training"))
    ]


def container_called(site: Site) -> Value:
    """``Sequential`` calls one layer after the other."""
    made = site.object
    assert made is not None
    forward(site, made)
    out = site.get(1, "input") or NOTHING
    layers = [
        (k, v)
        for k, v in site.m.heap.names(made.number)
        if isinstance(k, str)
        and (k == "*" or k.isdigit() or not k.startswith(("=", "mode", "grad", "training")))
    ]
    for name, each in layers:
        if name == "*":
            for _ in range(2):
                result = site.m.call(each, Arguments([out]), site.node, site.frame)
                out = join(out, result) if out != result else out
                out = result or out
            continue
        out = site.m.call(each, Arguments([out]), site.node, site.frame)
        if not out:
            return NOTHING
    return out


def container_item(site: Site) -> Value:
    """``layers[i]``, ``layers["a"]``."""
    made = site.object
    assert made is not None
    key = site.m.constant(site.get(1) or NOTHING)
    if key is not None:
        word = str(key.value)
        held = site.m.heap.read((made.number, word))
        if held:
            return held
        if isinstance(key.value, int) and key.value < 0:
            every = children(site, made)
            if -len(every) <= key.value:
                return every[key.value]
    return join(*children(site, made)) or SETTING


def container_elements(site: Site) -> Value:
    """A loop over a ModuleList."""
    made = site.object
    assert made is not None
    if made.name in ("ModuleDict", "ParameterDict"):
        return SETTING
    return join(*children(site, made)) or NOTHING


def container_append(site: Site) -> Value:
    """``layers.append(x)``, ``add_module(name, x)``."""
    made = site.object
    assert made is not None
    if site.word in ("add_module", "register_module", "update", "__setitem__"):
        name = known(site.get(1) or NOTHING)
        held = site.get(2) or NOTHING
        if isinstance(name, str | int):
            site.m.heap.write((made.number, str(name)), held)
        else:
            site.m.heap.widen((made.number, "*"), held)
        return NONE
    site.m.heap.widen((made.number, "*"), site.get(1) or NOTHING)
    return value(Ref(made.number))


def container_pairs(site: Site) -> Value:
    """``items()`` and ``values()`` of a ModuleDict."""
    made = site.object
    assert made is not None
    every = join(*children(site, made)) or NOTHING
    each = items([SETTING, every]) if site.word in ("items", "named_children") else every
    return site.m.listed([each], site.node, site.frame, exact=False)


def module_called(site: Site) -> Value | None:
    """A call of a module: of the program's class its ``forward`` runs, of a layer its table row."""
    made = site.object
    assert made is not None
    if made.kind == "instance":
        method = site.m.method_of(made, "forward") or site.m.method_of(made, "__call__")
        forward(site, made)
        if method is None:
            return None
        return site.m.call(value(method), site.arguments, site.node, site.frame)
    forward(site, made)
    return layer_called(site, made)


def layer_called(site: Site, made: Object) -> Value:
    """What a layer of torch's does to its input."""
    name = made.name
    operands = [site.flat(v) for v in site.arguments.all()]
    p = placements.elementwise(placement_of(v) for v in operands)
    found = next((d for v in operands for d in data(v) if d.placement.kind is Kind.ROWS), None)
    axes = found.axes if found is not None else None
    if name in ("Softmax", "LogSoftmax", "Softmin"):
        dim = site.m.heap.read((made.number, "=dim")) or site.m.heap.read((made.number, "=0"))
        given = [dim] if dim else []
        inner = Site(
            site.m, name, Arguments([*site.arguments.positional, *given]), site.node, site.frame
        )
        return along()(inner) or NOTHING
    if name in _RECURRENT and found is not None:
        first = known(site.m.heap.read((made.number, "=batch_first")) or const(False))
        batch_axis = 0 if first else 1
        if (
            name.endswith("Cell")
            or p.axis == batch_axis
            or (found.axes is None and p.axis != batch_axis and name == "?")
        ):
            pass
        elif p.kind is Kind.ROWS:
            p = placements.PER_RANK
    if name == "Flatten":
        axes = 2
    if name in ("Linear", "LayerNorm", "Identity", "Dropout"):
        pass
    elif name in ("Embedding", "EmbeddingBag") and axes is not None:
        axes += 1
    result = reach(
        arithmetic.derived(name, p, operands, site.node, kind="tensor", axes=axes), made, site
    )
    if name in ("LSTM", "GRU", "RNN", "MultiheadAttention"):
        state = tuple(
            a._replace(placement=placements.rows(1), axes=3)
            if isinstance(a, Data) and p.kind is Kind.ROWS
            else a
            for a in result
        )
        hidden = items([state, state]) if name == "LSTM" else state
        return items([result, hidden])
    if name == "LSTMCell":
        return items([result, result])
    if name.startswith(("MaxPool", "AdaptiveMaxPool")):
        given = known(site.m.heap.read((made.number, "=return_indices")) or const(False))
        return items([result, cut(result)]) if given else result
    return result


def reach(v: Value, made: Object, site: Site) -> Value:
    """The data that a module makes: a gradient comes to its parameters."""
    if made.name in BARE or made.kind == "criterion":
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


def forward(site: Site, made: Object) -> None:
    """A module is called."""
    mode = site.m.heap.read((made.number, "mode training")) or const(True)
    grad = site.m.heap.read(GRAD) or const(True)
    given = join(*[site.flat(v) for v in site.arguments.all()])
    site.event("forward", module=value(Ref(made.number)), given=given, training=mode, grad=grad)


def wrapper(site: Site) -> Value:
    """``DataParallel(model)``, ``DistributedDataParallel(model)``."""
    return site.ref(
        "wrapper",
        module=site.get(0, "module"),
        find_unused=site.arguments.keywords.get("find_unused_parameters"),
    )


def wrapper_called(site: Site) -> Value:
    """A call of a wrapper: its module is called, and what comes out has passed through the wrapper."""
    made = site.object
    assert made is not None
    forward(site, made)
    inner = site.m.heap.read((made.number, "module")) or NOTHING
    result = site.m.call(inner, site.arguments, site.node, site.frame)
    return through(result, made, site) if site.grad() else result


def through(v: Value, made: Object, site: Site) -> Value:
    """Data that has passed through a wrapper."""
    found: list[Atom] = []
    for a in v:
        if isinstance(a, Data) and a.gradient != "none":
            a = a._replace(reached=a.reached | {made.number})
        elif isinstance(a, Items):
            a = Items(tuple(through(i, made, site) for i in a.items))
        found.append(a)
    return tuple(found)


def parameters(site: Site) -> Value:
    """``model.parameters()``: tensors that are the module's, all of them."""
    made = site.object
    assert made is not None
    each = value(Data("tensor", placements.UNIFORM, "whole", reached=frozenset([made.number])))
    listed = items([SETTING, each]) if site.word.startswith("named") else each
    return site.m.listed([listed], site.node, site.frame, exact=False)


def modules(site: Site) -> Value:
    """``model.modules()``, ``children()``: modules in it."""
    made = site.object
    assert made is not None
    inside = [value(Ref(n)) for n in sorted(owned(site.m, made.number))]
    each = join(*inside)
    listed = items([SETTING, each]) if site.word.startswith("named") else each
    return site.m.listed([listed], site.node, site.frame, exact=False)


def owned(m: object, top: int) -> set[int]:
    """The modules and parameters that a module holds, itself included."""
    heap = m.heap  # type: ignore[attr-defined]
    seen: set[int] = set()
    todo = [top]
    while todo:
        number = todo.pop()
        if number in seen:
            continue
        seen.add(number)
        for name in heap.fields.get(number, ()):
            held = heap._store.get((number, name)) or NOTHING
            todo += _inside(m, held, 3)
    return seen


def _inside(m: object, v: Value, depth: int) -> list[int]:
    found: list[int] = []
    heap = m.heap  # type: ignore[attr-defined]
    for a in v:
        if isinstance(a, Ref):
            made = heap.objects[a.object]
            if m.kinds(made) & (MODULES | {"parameter"}):  # type: ignore[attr-defined]
                found.append(a.object)
            elif made.kind in ("list", "dict") and depth:
                for name in heap.fields.get(a.object, ()):
                    found += _inside(m, heap._store.get((a.object, name)) or NOTHING, depth - 1)
        elif isinstance(a, Items) and depth:
            for v2 in a.items:
                found += _inside(m, v2, depth - 1)
        elif isinstance(a, Data) and a.gradient == "whole":
            found += [n for n in a.reached if heap.objects[n].kind == "parameter"]
    return found


def clear(site: Site, numbers: list[int]) -> None:
    """Gradients are set to None."""
    for number in numbers:
        if site.m.heap.read((number, "grad")) is not None:
            site.m.heap.write((number, "grad"), None)


def gradients_cleared(site: Site) -> Value:
    """``model.zero_grad()``."""
    made = site.object
    assert made is not None
    clear(site, sorted(owned(site.m, made.number)))
    return NONE


def itself(site: Site) -> Value:
    """``model.to(device)``: the same module."""
    if site.word in ("to", "cuda", "cpu"):
        site.event("move", module=value(site.receiver) if site.receiver else NOTHING)
    return value(site.receiver) if site.receiver is not None else NOTHING


def mode(site: Site) -> Value:
    """``model.train()``, ``model.eval()``."""
    made = site.object
    assert made is not None
    flag = site.get(1, "mode") or const(True) if site.word == "train" else const(False)
    for number in sorted(owned(site.m, made.number)):
        site.m.heap.write((number, "mode training"), flag)
    return value(Ref(made.number))


def frozen(site: Site) -> Value:
    """``module.requires_grad_(False)``."""
    made = site.object
    assert made is not None
    flag = site.get(1, "requires_grad") or const(True)
    if flag in (const(True), const(False)):
        for number in sorted(owned(site.m, made.number)):
            site.m.heap.write((number, "mode frozen"), const(flag == const(False)))
    return value(Ref(made.number))


def registered(site: Site) -> Value:
    """``register_buffer(name, x)``, ``register_parameter``, ``add_module``: a field."""
    made = site.object
    assert made is not None
    name = known(site.get(1, "name") or NOTHING)
    held = site.get(2) or site.arguments.get(1, "tensor") or NONE
    if isinstance(name, str):
        site.m.heap.write((made.number, name), held)
    else:
        site.m.heap.widen((made.number, "*"), held)
    return NONE


def state(site: Site) -> Value:
    """``model.state_dict()``: named tensors, the same on every rank."""
    made = site.ref("state", of=value(site.receiver) if site.receiver else None)
    return made


def state_loaded(site: Site) -> Value:
    """``load_state_dict(d)``."""
    site.event(
        "load state",
        target=value(site.receiver) if site.receiver else NOTHING,
        given=site.get(1) or NOTHING,
    )
    return SETTING


def weights_drawn(site: Site) -> Value:
    """``nn.init.xavier_uniform_(w)``: weights from torch's stream."""
    return site.get(0) or NONE


def applied(site: Site) -> Value:
    """``model.apply(f)``: the function is called with every module in it."""
    made = site.object
    assert made is not None
    inside = tuple(Ref(n) for n in sorted(owned(site.m, made.number)))
    site.m.call(site.get(1) or NOTHING, Arguments([inside]), site.node, site.frame)
    return value(Ref(made.number))


def functional_linear(site: Site) -> Value:
    """``F.linear``, ``F.conv2d``: rows by rows."""
    return site.each()


def submodule_at(site: Site) -> Value:
    """``module.weight``, ``module.bias``: parameters of a layer."""
    made = site.object
    assert made is not None
    held = site.m.heap.read((made.number, site.word))
    if held:
        return held
    return value(Data("tensor", placements.UNIFORM, "whole", reached=frozenset([made.number])))


def part(site: Site) -> Value:
    """A part of a library's module, by its name or place: a module as well."""
    made = site.object
    assert made is not None
    key = site.m.constant(site.get(1) or NOTHING)
    word = site.word if key is None else f"[{key.value}]"
    held = site.m.heap.read((made.number, word))
    if held:
        return held
    inner = site.m.heap.new(
        "module", f"{made.name}.{word}", made.node, made.context, key=(made.number, word)
    )
    inner.many, inner.extra = False, MODEL
    found = value(Ref(inner.number))
    site.m.heap.write((made.number, word), found)
    return found


def wrapper_attribute(site: Site) -> Value:
    """``wrapped.module``."""
    made = site.object
    assert made is not None
    return site.m.heap.read((made.number, "module")) or SETTING


def packed(site: Site) -> Value:
    """``pack_padded_sequence``: rows of a batch, in pieces."""
    return site.data(placement_of(site.flat(site.get(0) or NOTHING)), keep_axes=False)


_F = words(
    """
relu relu6 leaky_relu elu selu gelu silu mish tanh sigmoid softplus hardtanh hardswish
hardsigmoid softsign logsigmoid dropout dropout1d dropout2d dropout3d alpha_dropout
feature_alpha_dropout max_pool1d max_pool2d max_pool3d avg_pool1d avg_pool2d avg_pool3d
adaptive_avg_pool1d adaptive_avg_pool2d adaptive_max_pool1d adaptive_max_pool2d
adaptive_avg_pool3d interpolate upsample pad pixel_shuffle pixel_unshuffle conv1d conv2d
conv3d conv_transpose1d conv_transpose2d conv_transpose3d linear bilinear layer_norm
batch_norm group_norm instance_norm local_response_norm embedding unfold fold grid_sample
affine_grid glu prelu rrelu scaled_dot_product_attention relu_ leaky_relu_ elu_ hardshrink
softshrink threshold lp_pool2d multi_head_attention_forward
"""
)

ROWS = (
    Row(" ".join(f"torch.nn.{w}" for w in _LOSSES), criterion, (), _DOC),
    Row(" ".join(f"torch.nn.functional.{w}" for w in _LOSS_FUNCTIONS), loss_function, (
        "torch.nn.functional.cross_entropy(x, t)", "torch.nn.functional.mse_loss(x, y)",
        "torch.nn.functional.mse_loss(x, y, reduction='sum')", "torch.nn.functional.l1_loss(x, y, reduction='none')",
    ), _DOC),
    Row(" ".join(f"torch.nn.functional.{w}" for w in _F), functional_linear, ("torch.nn.functional.relu(x)",), _DOC),
    Row("""
torch.nn.functional.softmax torch.nn.functional.log_softmax torch.nn.functional.softmin
torch.nn.functional.normalize torch.nn.functional.gumbel_softmax
""", along(1, 1), ("torch.nn.functional.softmax(x, dim=1)", "torch.nn.functional.normalize(x, dim=1)"), _DOC),
    Row("torch.nn.functional.one_hot", elementwise, ("torch.nn.functional.one_hot(t, 4)",), _DOC),
    Row("torch.nn.functional.cosine_similarity torch.nn.functional.pairwise_distance", lambda s: s.each(), ("torch.nn.functional.cosine_similarity(x, y)",), _DOC),
    Row(" ".join(f"torch.nn.{w}" for w in _CONTAINERS), container, (), _DOC),
    Row("""
torch.nn.DataParallel torch.nn.parallel.DataParallel
torch.nn.parallel.DistributedDataParallel torch.nn.DistributedDataParallel
""", wrapper, (), _DOC),
    Row("torch.nn.utils.rnn.pack_padded_sequence torch.nn.utils.rnn.pack_sequence", packed),
    Row("torch.nn.utils.rnn.pad_packed_sequence", lambda s: items([packed(s), SETTING])),
    Row("torch.nn.utils.rnn.pad_sequence", lambda s: s.data(placement_of(s.flat(s.m.elements(s.get(0) or NOTHING, s.node, s.frame))), keep_axes=False)),
    Row("""
torch.nn.utils.spectral_norm torch.nn.utils.weight_norm
torch.nn.utils.parametrizations.spectral_norm torch.nn.utils.parametrizations.weight_norm
torch.compile torch.jit.script torch.jit.trace torch.nn.SyncBatchNorm.convert_sync_batchnorm
torch.nn.utils.remove_weight_norm
""", same),
    Row("torch.utils.checkpoint.checkpoint torch.utils.checkpoint.checkpoint_sequential", lambda s: s.m.call(s.get(0) or NOTHING, Arguments(s.arguments.positional[1:]), s.node, s.frame)),
    Row("torch.nn.utils.parameters_to_vector", lambda s: s.data(placements.UNIFORM)),
)  # fmt: skip
FUNCTIONS = table(ROWS)
_INIT = frozenset(
    words(
        """
xavier_uniform_ xavier_normal_ kaiming_uniform_ kaiming_normal_ normal_ uniform_ constant_
zeros_ ones_ orthogonal_ trunc_normal_ eye_ dirac_ sparse_ xavier_uniform kaiming_normal
normal constant
"""
    )
)


def pattern(name: str) -> Row | None:
    """Any other layer of torch.nn, and its initialisers."""
    if name.startswith("torch.nn.init."):
        return Row(name, weights_drawn)
    head, _, word = name.rpartition(".")
    if head == "torch.nn" and word[:1].isupper():
        return Row(name, layer)
    if head.startswith("torch.nn.") and word in ("from_pretrained", "from_float"):
        return Row(name, layer)
    return None


def classes(name: str) -> str | None:
    """What the instances of a class of torch.nn are."""
    head, _, word = name.rpartition(".")
    if name in (
        "torch.nn.DataParallel",
        "torch.nn.parallel.DistributedDataParallel",
        "torch.nn.parallel.DataParallel",
    ):
        return "wrapper"
    if head == "torch.nn" and word in _CONTAINERS:
        return "container"
    if head == "torch.nn" and (word in _LOSSES):
        return "criterion"
    return "module" if head == "torch.nn" and word[:1].isupper() and word != "Parameter" else None


KINDS = {
    "torch.nn.Module": frozenset({"module"}),
    "torch.jit.ScriptModule": frozenset({"module"}),
    "torch.nn.modules.loss._Loss": frozenset({"module"}),
    "torch.nn.loss._Loss": frozenset({"module"}),
    "torch.nn._Loss": frozenset({"module"}),
}
_ALL = {
    "to": itself, "cuda": itself, "cpu": itself, "float": itself, "double": itself, "half": itself,
    "type": itself, "share_memory": itself, "compile": itself, "bfloat16": itself,
    "train": mode, "eval": mode, "parameters": parameters, "named_parameters": parameters,
    "modules": modules, "named_modules": modules, "children": modules, "named_children": modules,
    "buffers": uniform, "named_buffers": uniform, "state_dict": state, "load_state_dict": state_loaded,
    "zero_grad": gradients_cleared, "requires_grad_": frozen, "register_buffer": registered,
    "register_parameter": registered, "add_module": registered, "register_module": registered,
    "apply": applied, "register_forward_hook": uniform, "register_full_backward_hook": uniform,
    "extra_repr": uniform, "register_forward_pre_hook": uniform, "__init__": none, "get_submodule": modules,
    "flatten_parameters": none, "__repr__": uniform, "get_parameter": parameters, "register_backward_hook": uniform,
}  # fmt: skip
OF_KIND: dict[tuple[str, str], Row] = {
    **{(k, n): Row(n, e) for k in ("module", "wrapper", "container", "criterion") for n, e in _ALL.items()},
    ("module", "__call__"): Row("", module_called),
    ("container", "__call__"): Row("", container_called),
    ("container", "forward"): Row("", container_called),
    ("container", "__getitem__"): Row("", container_item),
    ("container", "__iter__"): Row("", container_elements),
    ("container", "append"): Row("", container_append),
    ("container", "insert"): Row("", container_append),
    ("container", "extend"): Row("", container_append),
    ("container", "add_module"): Row("", container_append),
    ("container", "__setitem__"): Row("", container_append),
    ("container", "items"): Row("", container_pairs),
    ("container", "values"): Row("", container_pairs),
    ("container", "keys"): Row("", uniform),
    ("container", "__len__"): Row("", lambda s: const(len(children(s, o))) if (o := s.object) is not None and not s.m.heap.read((o.number, "*")) else SETTING),
    ("wrapper", "__call__"): Row("", wrapper_called),
    ("wrapper", "no_sync"): Row("", lambda s: s.ref("no sync", of=s.get(0))),
    ("criterion", "__call__"): Row("", criterion_called),
    ("criterion", "forward"): Row("", criterion_called),
    ("no sync", "__enter__"): Row("", same),
    ("no sync", "__exit__"): Row("", none),
    ("state", "items"): Row("", lambda s: s.m.listed([items([SETTING, value(Data("tensor", placements.UNIFORM))])], s.node, s.frame, exact=False)),
    ("state", "keys"): Row("", uniform),
    ("state", "values"): Row("", lambda s: s.m.listed([value(Data("tensor", placements.UNIFORM))], s.node, s.frame, exact=False)),
    ("state", "__getitem__"): Row("", lambda s: value(Data("tensor", placements.UNIFORM))),
    ("state", "copy"): Row("", same),
    ("state", "update"): Row("", none),
    ("state", "pop"): Row("", lambda s: value(Data("tensor", placements.UNIFORM))),
    ("module", "forward"): Row("", module_called),
    ("module", "__getitem__"): Row("", part),
    ("module", "__iter__"): Row("", part),
}  # fmt: skip
_PARAMETERS = ("weight", "bias", "weight_ih_l0", "weight_hh_l0", "in_proj_weight", "weight_orig")
ATTRIBUTES = {
    **{("module", n): Row("", submodule_at) for n in _PARAMETERS},
    **{(k, "training"): Row("", lambda s: s.m.heap.read((o.number, "mode training")) or SETTING if (o := s.object) is not None else SETTING) for k in ("module", "wrapper", "container")},
    ("wrapper", "module"): Row("", wrapper_attribute),
    **{("module", n): Row("", uniform) for n in ("in_features", "out_features", "in_channels", "out_channels", "num_features", "kernel_size", "stride", "padding", "hidden_size", "num_layers", "device", "embedding_dim", "num_embeddings", "input_size")},
    **{("module", n): Row("", lambda s: value(Data("tensor", placements.UNIFORM))) for n in ("running_mean", "running_var", "num_batches_tracked")},
}  # fmt: skip
