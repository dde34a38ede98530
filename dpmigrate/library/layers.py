"""torch's layers and their functions (https://docs.pytorch.org/docs/stable/nn.html).

BatchNorm in training takes statistics of the rank's samples. Its result is said to be rows all
the same: that is a difference which migrated programs are told of, and which ``--sync-bn``
takes away.
"""

from __future__ import annotations

from dpmigrate.execution import broadcasting, placements, samples
from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.engine import Execution
from dpmigrate.execution.objects import Object
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    RESULTS,
    Data,
    Ref,
    Value,
    const,
    data,
    known,
    placement_of,
    value,
)
from dpmigrate.library import auxiliary, batch_state, detection, sequence_models
from dpmigrate.library.axes import on_axis, rows_of
from dpmigrate.library.collating import assembled, filled_out, filled_up, filling
from dpmigrate.library.copies import copy_of
from dpmigrate.library.effects import cut
from dpmigrate.library.forward_pass import each_data, forward, methods_run
from dpmigrate.library.joining import parts_of
from dpmigrate.library.layer_table import BARE, LAYERS, implicit
from dpmigrate.library.module_tree import owned
from dpmigrate.library.modules import GIVES_LOSS, MODEL, ROUND
from dpmigrate.library.reductions import along
from dpmigrate.library.sequences import ATTENDING, CELLS, RECURRENT, TRANSFORMER, attending, cell, recurrent, said_first
from dpmigrate.library.sites import Site
from dpmigrate.library.vision_parts import axes_given


def layer(site: Site) -> Value:
    """A layer of torch's: its arguments are kept."""
    made = site.made("module")
    keep(site, made.number)
    return value(Ref(made.number))


#: layers that are made of copies of a layer that they are given
_OF_COPIES = ("TransformerEncoder", "TransformerDecoder")
#: the places among the arguments of ``nn.Transformer`` of parts that take the place of its own
_CUSTOM = {"encoder": 7, "decoder": 8}


def keep(site: Site, number: int) -> None:
    """The arguments of a layer."""
    name_of_layer = foreign_name(site.m, site.m.heap.objects[number])
    named = [*site.arguments.by_name().items(), *enumerate(site.arguments.positional)]
    named += [("**", v) for v in (site.arguments.star, site.arguments.stars) if v]
    for name, held in named:
        own = copy_of(site, held) if name_of_layer in _OF_COPIES else held
        site.m.heap.write((number, f"={name}"), own)
    if name_of_layer == TRANSFORMER:
        _keep_halves(site, number)


def _keep_halves(site: Site, number: int) -> None:
    """The parts of ``nn.Transformer``, which may be called by themselves: all of its parameters are theirs."""
    heap = site.m.heap
    first = said_first(site, number, TRANSFORMER)
    for word in _CUSTOM:
        given = heap.read((number, f"=custom_{word}")) or heap.read((number, f"={_CUSTOM[word]}")) or NONE
        if given == NONE:
            half = site.m.heap.new("module", f"Transformer{word.capitalize()}", site.node, site.frame.context, key=(number, word))
            heap.write((half.number, "=batch_first"), first)
            given = value(Ref(half.number))
        heap.write((number, word), given)


def module_called(site: Site) -> Value | None:
    """A call of a module: of the program's class its ``forward`` runs, of a layer its table row."""
    made = site.object
    assert made is not None
    if not site.base:
        forward(site, made)
    if made.kind == "instance":
        run = methods_run(site, made)
        if run:
            return site.m.call(run, site.arguments, site.node, site.frame)
        return layer_called(site, made) if foreign_name(site.m, made) in LAYERS else None
    if made.extra == ROUND:
        inner = site.m.heap.read((made.number, "module")) or NOTHING
        return site.m.call(inner, site.arguments, site.node, site.frame)
    return layer_called(site, made)


def constructed(site: Site) -> Value:
    """``super().__init__(…)`` of a class of the program that derives from a layer."""
    made = site.object
    if made is not None and made.kind == "instance" and foreign_name(site.m, made) in LAYERS:
        keep(site, made.number)
    return NONE


def foreign_name(m: Execution, made: Object) -> str:
    """The name of a layer, or of the layer that an object's class derives from."""
    cls = m.class_of(made) if made.kind == "instance" else None
    if cls is None:
        return made.name
    bases = [n for number in cls.extra.order for n in m.heap.objects[number].extra.foreign]
    words_of = [n.rpartition(".")[2] for n in bases if n.startswith("torch.nn.")]
    return next((w for w in words_of if w in LAYERS), made.name)


def layer_called(site: Site, made: Object) -> Value:
    """What a layer of torch's does to its input."""
    name = foreign_name(site.m, made).removeprefix("Lazy")
    plain = Site(site.m, name, site.arguments, site.node, site.frame)
    batch_state.looked_up(plain, made, name)
    if made.extra == MODEL:
        result = sequence_models.called(plain, made) or detection.called(plain, made)
        result = result or auxiliary.outputs(plain, made, _model(plain, made))
    elif name in RECURRENT:
        result = recurrent(site, made, name)
    elif name in CELLS:
        result = cell(site, name)
    elif name in ATTENDING:
        result = attending(site, made, name)
    else:
        effect = LAYERS.get(name)
        if effect is None:
            return site.unknown(f"what the layer {name} does")
        result = effect(plain, made) or NOTHING
    return reached(result, made, site)


def _model(site: Site, made: Object) -> Value:
    """A model of a library: a result for each sample, whose axes are not known, or their mean where it
    is a loss. What it is given has the samples first, numbers for each of them (times of a diffusion)
    as well.
    """
    p = placements.elementwise(map(placement_of, site.operands()))
    if p.kind is Kind.ROWS and p.axis:
        return site.unknown("how the model of a library lies across its samples")
    if site.m.heap.read((made.number, GIVES_LOSS)):
        mean = placements.mean_over(p) if p.kind is Kind.ROWS else p
        return site.data(mean, kind="tensor", axes=0, keep_axes=False)
    axes = axes_given(site.m, made)
    return site.data(p, kind=RESULTS if axes is None else "tensor", axes=axes, keep_axes=False)


def has_parameters(m: Execution, made: Object) -> bool:
    """Whether a layer of torch's has parameters: not ``GroupNorm(2, 8, affine=False)``, and not
    ``InstanceNorm2d(8)``.
    """
    name = foreign_name(m, made)
    if name == TRANSFORMER:
        return False  # they are those of its halves
    given = [m.heap.read((made.number, o)) for o in ("=affine", "=elementwise_affine")]
    if name.startswith("InstanceNorm") and not any(given):
        return False
    return name not in BARE and const(False) not in given


def _learns(m: Execution, made: Object) -> bool:
    """Whether a call of a layer of torch's uses parameters, its own or those of its halves."""
    return has_parameters(m, made) or foreign_name(m, made) == TRANSFORMER


def reached(v: Value, made: Object, site: Site) -> Value:
    """What a layer gives, in tuples and dictionaries as well: a gradient comes to its parameters."""
    if made.kind == "criterion" or not _learns(site.m, made):
        return v
    return each_data(site.m, v, lambda d: data(reach(value(d), made, site))[0])


def reach(v: Value, made: Object, site: Site) -> Value:
    """The data that a module makes: a gradient comes to its parameters."""
    if made.kind == "criterion" or not _learns(site.m, made):
        return v
    if not site.grad():
        return cut(v)
    frozen = site.m.heap.read((made.number, "mode frozen")) == const(True)
    parts = {made.number}
    if made.extra == MODEL:
        held = site.m.objects(site.m.heap.read((made.number, GIVES_LOSS)) or value(Ref(made.number)))
        parts = set().union(*(owned(site.m, o.number) for o in held))
    elif foreign_name(site.m, made) == TRANSFORMER:
        halves = [o for word in _CUSTOM for o in site.m.objects(site.m.heap.read((made.number, word)) or NOTHING)]
        parts = set().union(*(owned(site.m, o.number) for o in halves))
    return tuple(
        a._replace(
            gradient="whole" if a.gradient == "none" and not frozen else a.gradient,
            reached=a.reached if frozen else a.reached | parts,
        )
        if isinstance(a, Data)
        else a
        for a in v
    )


#: modes in which a padded tensor has an axis before those that are padded
_BEHIND = ("reflect", "replicate", "circular")


def padded(site: Site) -> Value:
    """``F.pad(x, (left, right, …))``: pads from the last axis on."""
    if filled_up(site.m, site.flat(site.get(1, "pad") or ())):
        return filled_out(site, site.get(0) or NOTHING, "a sample filled up to the longest")
    found = rows_of(site.get(0) or ())
    if found is None:
        return site.each()
    listed = site.m.known_elements(site.get(1, "pad") or ())
    if listed is None:
        return site.unknown("which axes are padded")
    mode = known(site.get(2, "mode") or const("constant"))
    if mode in _BEHIND and found.placement.axis == 0:
        return site.data(found.placement, axes=found.axes, keep_axes=False)
    pairs = [listed[i : i + 2] for i in range(0, len(listed), 2)]
    for i, pair in enumerate(pairs):
        hit = pair != [const(0), const(0)] and on_axis(-1 - i, found)
        if hit is None:
            return site.unknown("which axes are padded")
        if hit:
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
    batch_state.scaled(site)
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
    inner = Arguments([site.get(0) or (), implicit(site, None)])
    return along()(Site(site.m, site.name, inner, site.node, site.frame))


def _of_a_batch(site: Site) -> bool:
    """Whether a list argument holds one item for each sample of a batch."""
    lists = site.m.objects(site.get(0) or NOTHING)
    return bool(lists) and all(samples.all_of_batch(site.m, made, one=True) for made in lists)


def padded_sequence(site: Site) -> Value:
    """``pad_sequence(list)``: the samples side by side, along the second axis by default."""
    parts, exact = parts_of(site)
    found = next((r for v in parts if (r := rows_of(v)) is not None), None)
    if found is None and not exact and _of_a_batch(site):
        first = known(site.get(1, "batch_first") or const(False))
        if not isinstance(first, bool):
            return site.unknown("whether padded sequences have the samples first")
        if assembled(site.m):
            site.m.heap.write(filling(site.m), const(True))
        inner = broadcasting.axes_of(parts)
        lying = placements.rows(0 if first else 1, padded=True)
        return site.data(lying, axes=None if inner is None else inner + 1, keep_axes=False)
    if found is None:
        return site.data(placements.joined(broadcasting.aligned(parts)), keep_axes=False)
    if exact:
        return site.unknown("sequences padded to the longest of the rank's batch")
    return site.data(found.placement._replace(padded=True), keep_axes=False)
