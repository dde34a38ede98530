"""torch's losses (https://docs.pytorch.org/docs/stable/nn.html#loss-functions)."""

from __future__ import annotations

from dpmigrate.execution import arithmetic, broadcasting, derivation, placements
from dpmigrate.execution.joins import join
from dpmigrate.execution.objects import Object
from dpmigrate.execution.placements import Kind, Placement
from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    SETTING,
    Const,
    Data,
    Ref,
    Setting,
    Value,
    const,
    data,
    known,
    origins,
    placement_of,
    unknown,
    value,
)
from dpmigrate.library.axes import rows_of
from dpmigrate.library.forward_pass import forward, own_method
from dpmigrate.library.ignored_labels import NO_LABEL, leaves_labels_out
from dpmigrate.library.natures import DRAW
from dpmigrate.library.runtime_reductions import OVER_RANKS, of_criterion
from dpmigrate.library.signatures import bound
from dpmigrate.library.sites import Row, Site, examples, prefixed

_DOC = "https://docs.pytorch.org/docs/stable/nn.html#loss-functions"
_MODULES = """
CrossEntropyLoss NLLLoss NLLLoss2d MSELoss L1Loss SmoothL1Loss HuberLoss BCELoss
BCEWithLogitsLoss KLDivLoss PoissonNLLLoss GaussianNLLLoss CosineEmbeddingLoss
MarginRankingLoss TripletMarginLoss HingeEmbeddingLoss MultiLabelMarginLoss
MultiLabelSoftMarginLoss MultiMarginLoss SoftMarginLoss CTCLoss TripletMarginWithDistanceLoss
"""
_FUNCTIONS = """
cross_entropy nll_loss mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy
binary_cross_entropy_with_logits kl_div poisson_nll_loss gaussian_nll_loss
cosine_embedding_loss margin_ranking_loss triplet_margin_loss hinge_embedding_loss
multilabel_margin_loss multilabel_soft_margin_loss multi_margin_loss soft_margin_loss
ctc_loss triplet_margin_with_distance_loss
"""
#: losses whose mean is over the weights of the labels
_WEIGHTED = ("CrossEntropyLoss", "NLLLoss", "NLLLoss2d", "cross_entropy", "nll_loss")
#: losses whose operands are no tensors of one shape: a row of one belongs to a row of the other
_BY_ROW = (
    *_WEIGHTED, "CosineEmbeddingLoss", "cosine_embedding_loss", "MultiMarginLoss",
    "multi_margin_loss", "TripletMarginLoss", "triplet_margin_loss", "GaussianNLLLoss",
    "gaussian_nll_loss",
)  # fmt: skip
#: losses of the differences of two tensors, which are broadcast
_OF_DIFFERENCES = (
    "MSELoss", "mse_loss", "L1Loss", "l1_loss", "SmoothL1Loss", "smooth_l1_loss", "HuberLoss",
    "huber_loss",
)  # fmt: skip
#: classes that losses derive from, with what they take by its place
_BASES = {
    "_Loss": ("size_average", "reduce", "reduction"),
    "_WeightedLoss": ("weight", "size_average", "reduce", "reduction"),
}
#: the label that counts for nothing in a loss that is not told one: no label is taken to be it
_NO_LABEL: Value = (Setting("no label", Const("int", NO_LABEL)),)
#: arguments that losses keep, by the values that they have unless they are given
_DEFAULTS: dict[str, Value] = {
    "weight": NONE, "pos_weight": NONE, "ignore_index": _NO_LABEL, "label_smoothing": const(0.0),
}  # fmt: skip
_CTC = ("CTCLoss", "ctc_loss")
#: losses that raise where two operands differ in size (torch.nn.functional.binary_cross_entropy)
_OF_EQUAL_SIZES = ("BCELoss", "BCEWithLogitsLoss", "binary_cross_entropy", "binary_cross_entropy_with_logits")
#: losses with a number for each row
_OF_ROWS = (
    *_BY_ROW, *_CTC, "MultiLabelMarginLoss", "MultiLabelSoftMarginLoss", "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
)  # fmt: skip


def reduction_of(fields: dict[str, Value]) -> Value | None:
    """What a loss is reduced by, given its arguments: flags that torch had before come first
    (torch.nn._reduction.legacy_get_string). None where that is not known.
    """
    if "**" in fields and not fields.get("reduction"):
        return None
    flags = {n: v for n in ("size_average", "reduce") if (v := fields.get(n)) and v != NONE}
    if not flags:
        return fields.get("reduction") or const("mean")
    average, reduce = (known(flags.get(n, const(True))) for n in ("size_average", "reduce"))
    if not isinstance(average, bool) or not isinstance(reduce, bool):
        return None
    return const(("mean" if average else "sum") if reduce else "none")


def lossy(site: Site, fields: dict[str, Value], operands: list[Value], name: str, *, told: bool = True) -> Value:
    """A loss by its reduction: the mean over the batch is the mean of the ranks' means.

    Weights of classes, and labels that are left out, make it a quotient of sums over the batch.
    """
    reduction = known(reduction_of(fields) or NOTHING)
    if reduction is None:
        return site.unknown("the reduction of a loss")
    scores = rows_of(operands[0]) if operands else None
    if name in _OF_EQUAL_SIZES and scores is not None and scores.axes is not None:
        operands = [operands[0], *[_of_axes(v, scores.axes) for v in operands[1:2]], *operands[2:]]
    if name in _WEIGHTED and scores is not None and scores.bare:
        return site.unknown("whether the classes are those of a sample after squeeze()")
    if _of_other_sizes(operands[:2], name):
        return site.unknown("a loss of the rank's samples and of as many rows as are written or drawn on each rank")
    if "dpmigrate_runtime.local_rows" in site.m.trace.foreign and _of_other_widths(operands[:2]):
        return site.unknown("a loss of rows as long as the rank's longest sample and of others as long as the batch's (pad_packed_sequence takes total_length)")
    if name in _OF_DIFFERENCES and _of_unknown_axes(operands):
        site.event("axes taken for equal", given=join(*operands))
    p = _over_rows(operands, name)
    weight = fields.get("weight")
    skewed = name in _WEIGHTED and weight is not None and weight != NONE
    ignoring = name in _WEIGHTED and (
        fields.get("ignore_index") not in (None, _NO_LABEL)
        or leaves_labels_out(tuple(p.tree for p in site.m.program.parts))
    )
    some = p.ragged  # of the samples some elements alone: each rank has another number of them
    if (skewed or ignoring or some) and reduction == "mean" and p.kind is Kind.ROWS and site.grad() and told:
        chosen = fields.get("ignore_index") or _NO_LABEL
        site.event("mean over weights", weight=weight or NONE, ignored=NONE if chosen in (_NO_LABEL, const(NO_LABEL)) else chosen)
    elements = _elements(operands, name)
    filled_up = p.kind is Kind.ROWS and p.padded and reduction != "none"
    if p.kind is Kind.ROWS:
        match reduction:
            case "mean":
                p = placements.RATIO if ignoring else placements.mean_over(p)
                p = placements.RATIO if skewed and p == placements.MEAN else p
            case "sum":
                p = placements.SUM
            case "batchmean":
                whole = placements.MEAN if p.axis == 0 else placements.SUM
                p = placements.RATIO if p.ragged else whole
            case "none":
                pass
            case _:
                return site.unknown("the reduction of a loss")
    axes = 0 if reduction != "none" else elements
    each = name not in (*_BY_ROW, *_CTC)
    met = each and broadcasting.crossed(operands, broadcasting.aligned(operands))
    word = arithmetic.CROSSED if met else arithmetic.FILLED_UP if filled_up else name
    made = derivation.derived(
        word, p, operands, site.node, kind="tensor", axes=axes, keep_axes=False
    )
    # scores and targets of each sample: whatever it is by which they seem to meet, it compares none
    alone = all(d.placement.kind in (Kind.ROWS, *placements.EQUAL) and d.kind not in ("order", "places") for v in operands for d in data(v))
    return tuple(a._replace(bent=a.bent - {site.node}) if alone and isinstance(a, Data) else a for a in made)


def _of_axes(v: Value, axes: int) -> Value:
    """The targets of a loss that raises where they have another size than the scores: a loss that is chosen
    by an option may seem to be given those of another one.
    """
    return tuple(a._replace(axes=axes) if isinstance(a, Data) and a.placement.kind is Kind.ROWS else a for a in v)


def _of_other_sizes(operands: list[Value], name: str) -> bool:
    """Whether a rank's samples meet rows that were as many as all samples, and are not divided: those of
    noise of a written size, or labels of one. Most losses raise then, others broadcast rows of length 1 alone.
    """
    if not any(placement_of(v).kind is Kind.ROWS for v in operands):
        return False
    others = [d for v in operands for d in data(v) if d.kind in ("tensor", "mask") and d.axes != 0 and not d.sources]
    whole = name not in _OF_DIFFERENCES and name in (*_OF_EQUAL_SIZES, *_BY_ROW)
    return any(
        (whole and d.placement.kind in placements.EQUAL and d.axes is not None)
        or (d.placement == placements.PER_RANK and any(o.word == DRAW for o in origins(d.origin)))
        for d in others
    )


def _of_other_widths(operands: list[Value]) -> bool:
    """Whether rows that are padded to the rank's own longest sample meet, element by element, rows that are not: where ``local_rows`` divides a batch, these
    are as long as the whole batch's longest. One number for each sample has no such axis.
    """
    rows = [r for v in operands if (r := rows_of(v)) is not None]
    if len(rows) < 2 or rows[0].placement.padded == rows[1].placement.padded:
        return False
    other = rows[0] if rows[1].placement.padded else rows[1]
    return other.placement.times == 0 or other.axes != 1


def _of_unknown_axes(operands: list[Value]) -> bool:
    """Whether rows of a batch meet of which it is not known whether they are columns or vectors."""
    rows = [r for v in operands[:2] if (r := rows_of(v)) is not None]
    known_axes = [r.axes for r in rows if r.axes is not None]
    return len(rows) > max(1, len(known_axes)) and all(n < 3 for n in known_axes)


def _over_rows(operands: list[Value], name: str) -> Placement:
    """How the losses of the elements lie."""
    lying = [placement_of(v) for v in operands]
    scores = rows_of(operands[0]) if operands else None
    if name in _WEIGHTED and scores is not None and scores.axes == 1:
        return placements.PER_RANK  # the samples are taken for the classes
    if name in _CTC:
        # targets that are put end to end have another length for each sample, whose loss is divided by it
        ragged = lying[0].ragged
        lying = [p._replace(axis=0, ragged=ragged) if p.kind is Kind.ROWS else p for p in lying]
    elif name not in _BY_ROW:
        lying = broadcasting.aligned(operands)
    return placements.elementwise(lying)


def _elements(operands: list[Value], name: str) -> int | None:
    """The number of axes of the losses of the elements."""
    if name not in _OF_ROWS:
        return broadcasting.axes_of(operands)
    targets = rows_of(operands[1]) if len(operands) > 1 else None
    return targets.axes if targets is not None and name in _WEIGHTED else None


def loss_function(site: Site) -> Value:
    """``F.cross_entropy(x, t)``."""
    if site.arguments.stars or site.arguments.star:
        return site.unknown("the reduction of a loss")
    operands = [v for v in (site.flat(a) for a in site.arguments.positional[:2]) if v]
    for v in (*site.arguments.positional[2:], *site.arguments.keywords.values()):
        if data(site.flat(v)):
            operands.append(site.flat(v))
    return lossy(site, site.arguments.by_name(), operands, site.word)


def criterion(site: Site) -> Value:
    """``nn.CrossEntropyLoss()``."""
    made = site.made("criterion")
    keep(site, made, site.word)
    return value(Ref(made.number))


def constructed(site: Site) -> Value:
    """``super().__init__(…)`` of a class of the program that derives from a loss."""
    made = site.object
    if made is not None:
        keep(site, made, loss_name(site, made))
    return NONE


def keep(site: Site, made: Object, name: str) -> None:
    """The arguments of a loss; what ``**`` brings may hold any of them."""
    names = _BASES.get(name)
    given = bound(f"torch.nn.{name}", site.arguments)
    fields = (given.named(names) if names is not None else given).by_name()
    if site.arguments.stars or site.arguments.star:
        fields["**"] = SETTING
    fields["reduction"] = reduction_of(fields) or unknown("the reduction of a loss", site.node)
    for word, held in fields.items():
        site.m.heap.write((made.number, word), held)


def loss_name(site: Site, made: Object) -> str:
    """The name of a loss, or of the loss that an object's class derives from."""
    cls = site.m.class_of(made) if made.kind == "instance" else None
    classes = [site.m.heap.objects[n] for n in cls.extra.order] if cls is not None else []
    bases = [n for c in classes for n in c.extra.foreign]
    words = [n.rpartition(".")[2] for n in bases if n.startswith("torch.nn.")]
    return next((w for w in words if w in (*_MODULES.split(), *_BASES)), made.name)


def told(site: Site) -> Value:
    """What a loss was not given: the default of an argument."""
    made = site.object
    if made is None or site.m.heap.read((made.number, "**")):
        return site.unknown(f"the argument {site.word} of a loss")
    return _DEFAULTS[site.word]


def criterion_called(site: Site) -> Value:
    """A call of a loss module."""
    made = site.object
    assert made is not None
    method = own_method(site, made)
    if method is not None:
        forward(site, made)
        return site.m.call(value(method), site.arguments, site.node, site.frame)
    fields = {str(k): site.m.bound(v) for k, v in site.m.heap.names(made.number)}
    operands = [v for v in (site.flat(a) for a in site.arguments.all()) if v]
    operands += [
        site.flat(fields[n]) for n in ("weight", "pos_weight") if data(fields.get(n, NOTHING))
    ]
    # a hook of the module is called by the module alone
    together = OVER_RANKS in fields and site.grad() and site.word == "__call__" and loss_name(site, made) in _WEIGHTED
    loss = lossy(site, fields, operands, loss_name(site, made), told=not together)
    return of_criterion(site, loss) if together and known(reduction_of(fields) or NOTHING) == "mean" else loss


ROWS = (
    Row(prefixed("torch.nn.", _MODULES), criterion, examples("""
nn.CrossEntropyLoss()(x @ w, t)
nn.CrossEntropyLoss(reduction='sum')(x @ w, t)
nn.CrossEntropyLoss(w[0].detach().abs() + 0.1)(x @ w, t)
nn.CrossEntropyLoss(label_smoothing=0.1)(x @ w, t)
nn.MSELoss()(x @ w, y)
nn.MSELoss(size_average=False)(x @ w, y)
nn.MSELoss(None, None, 'sum')(x @ w, y)
nn.L1Loss(None, None, 'none')(x @ w, y)
nn.CrossEntropyLoss(None, None, 1)(x @ w, t)
nn.NLLLoss(w[0].detach().abs() + 0.1, None, -100, None, 'sum')((x @ w).log_softmax(1), t)
nn.BCEWithLogitsLoss(pos_weight=torch.tensor(2.0))(x @ w, y.sigmoid())
nn.L1Loss(reduction='none')(x, y)
nn.KLDivLoss(reduction='batchmean')((x @ w).log_softmax(1), y.softmax(1))
nn.TripletMarginLoss()(x @ w, y, x.flip(1))
"""), _DOC),
    Row("<criterion>.__init__", constructed, source=_DOC),
    Row("<criterion>.__call__ <criterion>.forward", criterion_called, examples("""
nn.MSELoss()(x, y)
"""), _DOC),
    Row(prefixed("torch.nn.functional.", _FUNCTIONS), loss_function, examples("""
F.cross_entropy(x @ w, t)
F.cross_entropy(x[:, 0], y[:, 0].softmax(0))
F.cross_entropy(x @ w, t, reduction='sum')
F.cross_entropy(x @ w, t, reduction='none')
F.cross_entropy(x @ w, t, ignore_index=1)
F.cross_entropy(x @ w, t, label_smoothing=0.2)
F.cross_entropy(x @ w, y.softmax(1))
F.cross_entropy(x @ w, t, weight=w[0].detach().abs() + 0.1)
F.nll_loss((x @ w).log_softmax(1), t)
F.mse_loss(x @ w, y)
F.mse_loss(x @ w, y, reduction='sum')
F.mse_loss(x @ w, y, None, None, 'sum')
F.mse_loss(x @ w, y, False)
F.mse_loss(target=y, input=x @ w)
F.huber_loss(x @ w, y, 'sum')
F.cross_entropy(x @ w, t, None, None, 1)
F.mse_loss((x @ w)[:, :1], y[:, :1], reduction='none')
F.mse_loss(x[:, 0], y[:, :1])
F.mse_loss(x.mean(0), y.mean(0))
F.l1_loss(x @ w, y, reduction='none')
F.smooth_l1_loss(x @ w, y)
F.huber_loss(x @ w, y)
F.binary_cross_entropy(x.sigmoid(), y.sigmoid())
F.binary_cross_entropy((x @ w).sigmoid(), y.sigmoid(), weight=y.abs())
F.binary_cross_entropy_with_logits(x @ w, y.sigmoid())
F.binary_cross_entropy_with_logits(x @ w, y.sigmoid(), weight=x.detach().abs().mean(0))
F.kl_div((x @ w).log_softmax(1), y.softmax(1))
F.kl_div((x @ w).log_softmax(1), y.softmax(1), reduction='batchmean')
F.kl_div((x @ w).log_softmax(1), y.softmax(1), reduction='sum')
F.cosine_embedding_loss(x @ w, y, t * 2 - 1)
F.margin_ranking_loss(x @ w, y, x.sign())
F.triplet_margin_loss(x @ w, y, x)
F.multi_margin_loss(x @ w, t)
F.poisson_nll_loss(x @ w, y.abs())
F.gaussian_nll_loss(x @ w, y, y.abs() + 1)
F.soft_margin_loss(x @ w, x.sign())
F.hinge_embedding_loss(x @ w, x.sign())
F.mse_loss(torch.cat([x, y]) @ w, torch.cat([y, x]))
F.cross_entropy((x @ w)[x[:, 0] > 0], t[x[:, 0] > 0])
"""), _DOC),
)  # fmt: skip


ATTRIBUTES = (Row(" ".join(f"<criterion>.{n}" for n in _DEFAULTS), told, source=_DOC),)


def classes(name: str) -> str | None:
    """What the instances of a class are."""
    head, _, word = name.rpartition(".")
    return "criterion" if head == "torch.nn" and word in _MODULES.split() else None
