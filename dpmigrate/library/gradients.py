"""Gradients: backward, ``autograd.grad``, ``.grad`` and parameters."""

from __future__ import annotations

from dpmigrate.execution import arithmetic, derivation, placements
from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.joins import gradient_join, join
from dpmigrate.execution.machine import PROCESS
from dpmigrate.execution.objects import ELEMENTS
from dpmigrate.execution.placements import Kind, Placement
from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    SETTING,
    Data,
    Origin,
    Ref,
    Value,
    const,
    data,
    items,
    origins,
    placement_of,
    value,
)
from dpmigrate.library.axes import rows_of
from dpmigrate.library.effects import cut, none
from dpmigrate.library.module_tree import owned
from dpmigrate.library.sites import GRAD, Row, Site, prefixed

_DOC = "https://docs.pytorch.org/docs/stable/autograd.html"
#: a field of the process: the functions that each backward pass calls with a gradient
_HOOKS = (PROCESS, "hooks of gradients")
#: since when a value is what a backward pass has left in a tensor of the samples
_OF_ANOTHER = "the gradient of the samples"


def backward(site: Site) -> Value:
    """``loss.backward()``: gradients come to everything that the loss has reached. What is differentiated is the sum of
    its elements, each times the one of ``gradient``, where that is given.
    """
    loss = site.flat(site.get(0) or NOTHING)
    factor = site.get(1, "grad_tensors" if site.receiver is None else "gradient") or NONE
    if factor != NONE:
        loss = _weighed(site, loss, site.flat(factor) or factor)
    site.event("backward", loss=loss)
    made = site.m.heap.new("backward", "backward", site.node, site.frame.context)
    site.m.heap.write((made.number, "loss"), loss)
    for d in data(loss):
        for number in sorted(d.reached):
            site.m.heap.widen((number, "grad"), value(Ref(made.number)))
    for hook in site.m.heap.read(_HOOKS) or NOTHING:
        sources = frozenset().union(*(d.sources for d in data(loss)))
        given = value(Data("tensor", placements.MEAN, sources=sources, origin=Origin(site.node, "gradient")))
        made_by = site.m.call(value(hook), Arguments([given]), site.node, site.frame)
        site.event("hooked gradient", by=site.flat(made_by))
    return NONE


def _weighed(site: Site, loss: Value, factor: Value) -> Value:
    """The sum of a loss's elements, each times another number."""
    if any(o.word == _OF_ANOTHER for d in data(factor) for o in origins(d.origin)):
        # of a mean it is as many times larger as there are ranks: the sum over the samples is right then, and else it is not
        return site.unknown("a backward pass that goes on from the gradient of another one")
    made = arithmetic.binary("mul", loss, factor, site.node)
    return tuple(a._replace(placement=placements.SUM, axes=0) if isinstance(a, Data) and a.placement.kind is Kind.ROWS else a for a in made)


def hooked(site: Site) -> Value:
    """``weight.register_hook(hook)``: each backward pass calls it with the gradient of the rank's part of the
    batch, before DDP averages it over the ranks.
    """
    hook = site.get(1, "hook") or NOTHING
    if any(d.reached for d in data(site.get(0) or NOTHING)):
        site.m.heap.widen(_HOOKS, hook)
    return NONE


def gradient(site: Site) -> Value:
    """``torch.autograd.grad(outputs, inputs)``: not averaged over the ranks by DDP."""
    outputs, inputs = site.get(0, "outputs") or NOTHING, site.get(1, "inputs") or NOTHING
    site.event("gradient", outputs=site.flat(outputs), inputs=site.flat(inputs))
    p = placements.elementwise([placement_of(site.flat(inputs)), placement_of(site.flat(outputs))])
    rows = rows_of(site.flat(inputs))
    placement = rows.placement if rows is not None else p
    made = derivation.derived(_OF_ANOTHER if rows is not None else "grad", placement, [site.flat(inputs), site.flat(outputs)], site.node)
    return items([made])


def grad_of(site: Site) -> Value:
    """``x.grad``: of parameters what backward left."""
    found: list[Value] = []
    for d in data(site.get(0) or NOTHING):
        for number in sorted(d.reached):
            if any(site.m.heap.read((n, "grad")) for n in sorted(owned(site.m, number))):
                found.append(value(Data("tensor", placements.UNIFORM, origin=Origin(site.node, "gradient"), axes=d.axes)))
        if not d.reached:
            since = Origin(site.node, _OF_ANOTHER, d.origin) if d.placement.kind is Kind.ROWS else d.origin
            found.append(value(d._replace(gradient="none", origin=since)))
    return join(*found) or NONE


def wants_grad(site: Site) -> Value:
    """``requires_grad_(True)``."""
    flag = site.constant(1, "requires_grad", True)
    given = site.get(0) or NOTHING
    told = site.flat(site.get(1, "requires_grad") or NOTHING)
    site.event("requires grad", target=given, flag=const(bool(flag)), told=told)
    if flag is False:
        return cut(given)
    return tuple(
        a._replace(gradient="whole") if isinstance(a, Data) and a.gradient == "none" else a
        for a in given
    )


def parameter(site: Site) -> Value:
    """``nn.Parameter(x)``: a parameter of the model it is put into. One that is not trained and has a row
    for each sample of a batch keeps them: ``nn.Parameter(torch.ones(batch_size, 1), requires_grad=False)``.
    """
    found = data(site.flat(site.get(0, "data") or NOTHING))
    untrained = site.constant(1, "requires_grad", True) is False
    if untrained and found and all(d.placement.kind is Kind.ROWS and not d.sources for d in found):
        return cut(tuple(found))
    made = site.made("parameter")
    axes = found[0].axes if found else None
    return value(
        Data("tensor", placements.UNIFORM, "whole", reached=frozenset([made.number]), axes=axes)
    )


def function_applied(site: Site) -> Value | None:
    """``Function.apply(x)`` of a class of the program, or of an object of it: its ``forward`` with a
    context, and its ``backward`` with the same one where autograd records.
    """
    cls = site.object
    if cls is not None and cls.kind == "instance":
        cls = site.m.class_of(cls)
    forward = site.m.in_class(cls, "forward") if cls is not None else None
    if cls is None or not forward:
        return None
    ways = {way: site.m.in_class(cls, way) or NOTHING for way in ("backward", "setup_context")}
    for found in ways.values():
        for function in site.m.objects(found):
            site.m.handed.setdefault(Ref(function.number), site.node)
    context = site.ref("autograd context", needs_input_grad=SETTING)
    apart = ways["setup_context"]  # forward has no context then
    arguments = site.arguments.after() if apart else site.arguments.after(context)
    result = site.m.call(forward, arguments, site.node, site.frame)
    if apart:
        told = Arguments([context, items(site.arguments.positional), result])
        site.m.call(apart, told, site.node, site.frame)
    given = site.operands()
    made = tuple(
        a._replace(
            gradient=gradient_join(*(d.gradient for v in given for d in data(v))),
            reached=a.reached.union(*(d.reached for v in given for d in data(v))),
        )
        if isinstance(a, Data)
        else a
        for a in result
    )
    if ways["backward"] and site.m.heap.read(GRAD) != const(False):
        _differentiated(site, ways["backward"], context, made)
    return made


def _differentiated(site: Site, way: Value, context: Value, made: Value) -> None:
    """What ``backward`` gives for the gradient of what ``forward`` has given; what else it does, it
    may do later.
    """
    site.m.heap.mark()
    given = tuple(a._replace(gradient="none", placement=_gradient_of(a.placement)) for a in data(made))
    found = site.m.call(way, Arguments([context, given or SETTING]), site.node, site.frame)
    site.m.heap.apply([site.m.heap.rollback(), {}])
    site.event("differentiated", by=found)


def _gradient_of(p: Placement) -> Placement:
    """How the gradient of something lies: of samples each has one, of a part of a mean or sum all
    ranks have the same.
    """
    return p if p.kind in (Kind.ROWS, Kind.UNKNOWN) else placements.UNIFORM


def saved(site: Site) -> Value:
    """``ctx.save_for_backward(x, y)``. What is divided by the number of a rank's samples is the gradient of
    a mean over them, which DDP's average makes right: every rank has as many.
    """
    made = site.object
    kept = [
        tuple(a._replace(placement=placements.UNIFORM) if isinstance(a, Data) and a.placement.kind is Kind.SIZE else a for a in v)
        for v in site.arguments.positional
    ]  # fmt: skip
    if made is not None:
        for name in ("saved_tensors", "saved_variables"):
            site.m.heap.write((made.number, name), items(kept))
    return NONE


def all_written(site: Site) -> Value:
    """What writes into all tensors of a list: ``torch._foreach_mul_(gradients, by)``, and
    ``vector_to_parameters(vector, parameters)``.
    """
    which = 1 if site.word == "vector_to_parameters" else 0
    given = [site.flat(v) for i, v in enumerate(site.all()) if i != which]
    target = site.get(which) or NOTHING
    site.event("in place", target=site.flat(target), new=join(*given))
    written = arithmetic.elementwise(site.word, [site.flat(target), *given], site.node)
    for made in site.m.objects(target):
        if made.kind == "list":
            site.m.collapse(made)  # what each gets is not told apart
            site.m.heap.widen((made.number, ELEMENTS), written)
    return NONE


def clip_norm(site: Site) -> Value:
    """``clip_grad_norm_``: the norm of synchronised gradients."""
    bound = site.get(1, "max_norm") or site.get(1, "clip_value") or NOTHING
    site.event("clip", parameters=site.flat(site.get(0) or NOTHING), by=site.flat(bound))
    return value(Data("tensor", placements.UNIFORM))


ROWS = (
    Row(".backward torch.autograd.backward", backward, source=_DOC),
    Row("torch.autograd.grad", gradient, source=_DOC),
    Row("<class>.apply <autograd_function>.apply", function_applied, source=_DOC),
    Row(prefixed("torch._foreach_", """
add_ sub_ mul_ div_ copy_ zero_ neg_ abs_ sqrt_ reciprocal_ lerp_ pow_ addcmul_ addcdiv_ clamp_min_ clamp_max_ maximum_ minimum_
"""), all_written, ("(torch._foreach_mul_(l := [x * 1], 2.0), l[0])[1]",), _DOC),
    Row("torch.nn.utils.vector_to_parameters", all_written, ("(torch.nn.utils.vector_to_parameters(x.mean(0), l := [w[0] * 1]), l[0])[1]",), _DOC),
    Row("<autograd_context>.save_for_backward", saved, source=_DOC),
    Row("""
<autograd_context>.mark_non_differentiable <autograd_context>.mark_dirty <autograd_context>.set_materialize_grads
""", none, source=_DOC),
    Row(".requires_grad_", wants_grad, source=_DOC),
    Row("torch.nn.Parameter torch.nn.UninitializedParameter", parameter, source=_DOC),
    Row("""
torch.nn.utils.clip_grad_norm_ torch.nn.utils.clip_grad_norm torch.nn.utils.clip_grad_value_
""", clip_norm, source=_DOC),
    Row("torch.autograd.set_detect_anomaly .retain_grad", none, source=_DOC),
    Row(".register_hook", hooked, source=_DOC),
)  # fmt: skip
ATTRIBUTES = (Row("<data>.grad", grad_of, source=_DOC),)
KINDS = {
    "torch.autograd.Function": frozenset({"autograd function"}),
    "torch.autograd.function.Function": frozenset({"autograd function"}),
}
