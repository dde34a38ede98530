"""Models: what a module, a wrapper and their methods do
(https://docs.pytorch.org/docs/stable/nn.html).
"""

from __future__ import annotations

from collections.abc import Callable

from dpmigrate.execution import arithmetic, placements
from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.heap import Object
from dpmigrate.execution.machine import Machine
from dpmigrate.execution.names import SOME
from dpmigrate.execution.placements import Kind, Placement
from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    SETTING,
    Atom,
    Bound,
    Data,
    Items,
    Ref,
    Value,
    const,
    items,
    join,
    known,
    value,
)
from dpmigrate.library import streams
from dpmigrate.library.devices import model_placed
from dpmigrate.library.effects import cut, none, same, uniform
from dpmigrate.library.sites import GRAD, Effect, Row, Site, methods

_DOC = "https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html"
#: kinds of objects that hold data and are no part of a model
_HOLDING = ("list", "dict", "set", "instance", "opaque", "output")
#: kinds of objects that hold parameters
MODULES = frozenset({"module", "wrapper", "criterion", "container", "library model"})


def forward(site: Site, made: Object) -> None:
    """A module is called."""
    mode = site.m.heap.read((made.number, "mode training")) or const(True)
    grad = site.m.heap.read(GRAD) or const(True)
    more = {"given": site.flat(site.arguments.joined())} if made.kind == "wrapper" else {}
    site.event("forward", module=value(Ref(made.number)), training=mode, grad=grad, **more)


def own_method(site: Site, made: Object) -> Bound | None:
    """What the program's class of a module runs when it is called; None where the library's own
    is meant.
    """
    if made.kind != "instance" or site.base:
        return None
    return site.m.method_of(made, "forward") or site.m.method_of(made, "__call__")


def parameters(site: Site) -> Value:
    """``model.parameters()``: tensors that are the module's, all of them."""
    made = site.object
    assert made is not None
    inner = site.m.objects(site.m.heap.read((made.number, "module")) or NOTHING)
    whose = frozenset(o.number for o in inner) if made.kind == "wrapper" else frozenset()
    reached = whose or frozenset([made.number])
    each = value(Data("tensor", placements.UNIFORM, "whole", reached=reached))
    listed = items([SETTING, each]) if site.word.startswith("named") else each
    found = site.m.listed([listed], site.node, site.frame, exact=False)
    for o in site.m.objects(found):
        site.m.heap.write((o.number, SOME), const(True))
    return found


def modules(site: Site) -> Value:
    """``model.modules()``, ``children()``: modules in it."""
    made = site.object
    assert made is not None
    inside = [value(Ref(n)) for n in sorted(owned(site.m, made.number))]
    each = join(*inside)
    listed = items([SETTING, each]) if site.word.startswith("named") else each
    return site.m.listed([listed], site.node, site.frame, exact=False)


def is_module(m: Machine, made: Object) -> bool:
    """Whether an object is a model or a part of one, as far as is seen."""
    return "module" in made.marks or not m.kinds(made).isdisjoint(MODULES)


def owned(m: Machine, top: int) -> set[int]:
    """The modules and parameters that a module holds, itself included."""
    heap = m.heap
    seen: set[int] = set()
    todo = [top]
    while todo:
        number = todo.pop()
        if number not in seen:
            seen.add(number)
            for _, held in heap.peek(number):
                todo += _inside(m, held, 3)
    return seen


def _inside(m: Machine, v: Value, depth: int) -> list[int]:
    """The modules and parameters in a value, and in lists and dictionaries."""
    found: list[int] = []
    for a in v:
        if isinstance(a, Ref):
            made = m.heap.objects[a.object]
            if made.kind in ("list", "dict"):
                if depth:
                    for _, held in m.heap.peek(a.object):
                        found += _inside(m, held, depth - 1)
            elif made.kind == "parameter" or is_module(m, made):
                found.append(a.object)
        elif isinstance(a, Items):
            if depth:
                for v2 in a.items:
                    found += _inside(m, v2, depth - 1)
        elif isinstance(a, Data) and a.gradient == "whole":
            found += [n for n in a.reached if m.heap.objects[n].kind == "parameter"]
    return found


def itself(site: Site) -> Value:
    """``model.to(device)``: the same module."""
    if site.word in ("to", "cuda", "cpu"):
        whose = value(site.receiver) if site.receiver else NOTHING
        place = const("cpu") if site.word == "cpu" else site.arguments.joined()
        model_placed(site)
        site.event("move", module=whose, place=place)
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
    site.event("requires grad", target=value(Ref(made.number)), flag=flag)
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
    whose = value(site.receiver) if site.receiver else NOTHING
    site.event("state", of=whose)
    return site.ref("state", of=whose)


def state_loaded(site: Site) -> Value:
    """``load_state_dict(d)``."""
    site.event(
        "load state",
        target=value(site.receiver) if site.receiver else NOTHING,
        given=site.get(1) or NOTHING,
    )
    return SETTING


def applied(site: Site) -> Value:
    """``model.apply(f)``: the function is called with every module in it."""
    made = site.object
    assert made is not None
    inside = tuple(Ref(n) for n in sorted(owned(site.m, made.number)))
    site.m.call(site.get(1) or NOTHING, Arguments([inside]), site.node, site.frame)
    return value(Ref(made.number))


def submodule_at(site: Site) -> Value:
    """``module.weight``, ``module.bias``: parameters of a layer."""
    made = site.object
    assert made is not None
    held = site.m.heap.read((made.number, site.word))
    if held:
        return held
    return value(Data("tensor", placements.UNIFORM, "whole", reached=frozenset([made.number])))


def drawn_again(site: Site) -> Value:
    """``layer.reset_parameters()``: weights from torch's stream."""
    made = site.object
    assert made is not None
    weights = value(Data("tensor", placements.UNIFORM, "whole", reached=frozenset([made.number])))
    site.event("in place", target=weights, new=streams.drawn(site, "torch", weights))
    return NONE


def clear(site: Site, numbers: list[int]) -> None:
    """Gradients are set to None."""
    for number in numbers:
        if site.m.heap.read((number, "grad")) is not None:
            site.m.heap.write((number, "grad"), None)


def gradients_cleared(site: Site) -> Value:
    """``model.zero_grad()``."""
    made = site.object
    assert made is not None
    site.event("zero grad", module=value(Ref(made.number)))
    clear(site, sorted(owned(site.m, made.number)))
    return NONE


#: what is kept of a library's module that calls another one, its field ``module``
ROUND = "module round another one"
#: what is kept of a model of a library, whose parts are modules as well
MODEL = "model of a library"


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


def wrapper(site: Site) -> Value:
    """``DataParallel(model)``, ``DistributedDataParallel(model)``."""
    module = site.get(0, "module")
    taken_for_model(site, module or NOTHING)
    made = site.ref(
        "wrapper",
        module=module,
        find_unused=site.arguments.keywords.get("find_unused_parameters"),
        device_ids=site.get(1, "device_ids"),
    )
    if site.word == "DistributedDataParallel":
        site.event("wrap", object=made, module=module or NOTHING)
    return made


def wrapper_called(site: Site) -> Value:
    """A call of a wrapper: its module is called, and what comes out has passed through the
    wrapper.
    """
    made = site.object
    assert made is not None
    forward(site, made)
    inner = site.m.heap.read((made.number, "module")) or NOTHING
    result = site.m.call(inner, site.arguments, site.node, site.frame)
    return through(result, made, site) if site.grad() else result


def through(v: Value, made: Object, site: Site) -> Value:
    """Data that has passed through a wrapper."""
    return each_data(
        site.m, v, lambda d: d if d.gradient == "none" else reaching(d, made.number)
    )


def reaching(d: Data, number: int) -> Data:
    """Data whose gradient comes to one more object."""
    return d._replace(reached=d.reached | {number})


def each_data(
    m: Machine, v: Value, change: Callable[[Data], Data], seen: frozenset[int] = frozenset()
) -> Value:
    """A value with all its data changed, in place where lists, dictionaries and plain objects hold
    them.
    """
    found: list[Atom] = []
    for a in v:
        made = m.object(a)
        if isinstance(a, Data):
            a = change(a)
        elif isinstance(a, Items):
            a = Items(tuple(each_data(m, i, change, seen) for i in a.items))
        elif made is not None and made.number not in seen and _plain(m, made):
            inner = seen | {made.number}
            for name, held in list(m.heap.peek(made.number)):
                if not (isinstance(name, str) and name.startswith("#")):
                    m.heap.write((made.number, name), each_data(m, held, change, inner))
        found.append(a)
    return tuple(found)


def _plain(m: Machine, made: Object) -> bool:
    """Whether an object is a container of the program's, and no part of a model."""
    return made.kind in _HOLDING and not is_module(m, made)


def wrapper_attribute(site: Site) -> Value:
    """``wrapped.module``."""
    made = site.object
    assert made is not None
    return site.m.heap.read((made.number, "module")) or SETTING


def training(site: Site) -> Value:
    """``model.training``."""
    made = site.object
    return (site.m.heap.read((made.number, "mode training")) if made else None) or SETTING


def tensor(site: Site) -> Value:
    """A tensor that is the same on every rank: a buffer, an entry of a state."""
    return value(Data("tensor", placements.UNIFORM))


def tensors(site: Site) -> Value:
    """The tensors of a state, with their names where asked for."""
    each = (
        items([SETTING, tensor(site)]) if site.word in ("items", "named_buffers") else tensor(site)
    )
    return site.m.listed([each], site.node, site.frame, exact=False)


def no_sync(site: Site) -> Value:
    """``model.no_sync()``."""
    return site.ref("no_sync", of=site.get(0))


def taken_for_model(site: Site, v: Value) -> None:
    """What is wrapped is a model, also where its code is not seen."""
    for made in site.m.objects(v):
        if made.kind == _MODEL:
            made.marks.add("module")


def unseen(effect: Effect) -> Effect:
    """A method that shows of an object of unseen code that it is a model."""

    def shown(site: Site) -> Value | None:
        if site.object is not None:
            site.object.marks.add("module")
        return effect(site)

    return shown


def unseen_called(site: Site) -> Value | None:
    """A model whose code is not seen is called: a gradient comes to it. It is taken for one that
    treats each sample of a batch by itself, which is noted.
    """
    made = site.object
    if made is None or "module" not in made.marks:
        return None
    forward(site, made)
    placement = _of_samples(site)
    if placement is None:
        found = site.unknown(f"the code of {made.name} is not seen")
    else:
        site.event("taken for samples", module=value(Ref(made.number)))
        word = f"{made.name}, whose code is not seen"
        found = arithmetic.derived(word, placement, site.operands(), site.node, keep_axes=False)
    if not site.grad():
        return cut(found)
    return tuple(
        reaching(a, made.number)._replace(gradient="whole") if isinstance(a, Data) else a
        for a in found
    )


def _of_samples(site: Site) -> Placement | None:
    """How what a model gives lies, that is given samples of a batch, first in each; None where it
    is given something else.
    """
    given = [d for d in site.flat(site.arguments.joined()) if isinstance(d, Data)]
    whole = len(given) == len(site.flat(site.arguments.joined()))
    lying = [d.placement for d in given if d.placement.kind is not Kind.UNIFORM]
    sampled = all(p.kind is Kind.ROWS and p.axis == 0 and not p.ragged for p in lying)
    return placements.joined(lying) if whole and lying and sampled else None


def named(site: Site) -> Value:
    """``model.__getattr__(name)``."""
    made = site.object
    name = site.m.constant(site.get(1) or NOTHING)
    if made is None:
        return SETTING
    if name is not None and isinstance(name.value, str):
        return site.m.attribute(value(Ref(made.number)), name.value, site.node, site.frame)
    held = site.m.heap.read((made.number, "*"))
    if held:
        return held
    inside = owned(site.m, made.number) - {made.number}
    return join(*[value(Ref(n)) for n in sorted(inside)]) or SETTING


#: methods that set an attribute by its name
REGISTERING = ("register_buffer", "register_parameter", "add_module", "register_module")
_ANY = "module|wrapper|container|criterion|library_model"
_MODEL = "opaque"
ROWS = (
    Row("""
torch.nn.DataParallel torch.nn.parallel.DataParallel
torch.nn.parallel.DistributedDataParallel torch.nn.DistributedDataParallel
""", wrapper, source=_DOC),
    Row(methods(_ANY, """
to cuda cpu float double half type share_memory compile bfloat16 to_empty
"""), itself, source=_DOC),
    Row(methods(_ANY, "train eval"), mode, source=_DOC),
    Row(methods(_ANY, "parameters named_parameters get_parameter"), parameters, source=_DOC),
    Row(methods(_ANY, """
modules named_modules children named_children get_submodule
"""), modules, source=_DOC),
    Row(methods(_ANY, "buffers named_buffers"), tensors, source=_DOC),
    Row(methods(_ANY, "get_buffer"), tensor, source=_DOC),
    Row(methods(_ANY, "state_dict"), state, source=_DOC),
    Row(methods(_ANY, "load_state_dict"), state_loaded, source=_DOC),
    Row(methods(_ANY, "zero_grad"), gradients_cleared, source=_DOC),
    Row(methods(_ANY, "flatten_parameters"), none, source=_DOC),
    Row(methods(_ANY, "reset_parameters"), drawn_again, source=_DOC),
    Row(methods("wrapper|library_model", "__init__"), none, source=_DOC),
    Row(methods(_ANY, "requires_grad_"), frozen, source=_DOC),
    Row(methods(_ANY, " ".join(REGISTERING)), registered, source=_DOC),
    Row(methods(_ANY, "apply"), applied, source=_DOC),
    Row(methods(_ANY, """
register_forward_hook register_full_backward_hook register_forward_pre_hook
register_backward_hook extra_repr __repr__ register_load_state_dict_post_hook
"""), uniform, source=_DOC),
    Row("<module>.__getitem__ <module>.__iter__", part, source=_DOC),
    Row(methods(_ANY, "__getattr__"), named, source=_DOC),
    Row(methods(_MODEL, "to cuda cpu float double half"), itself, source=_DOC),
    Row(methods(_MODEL, "train eval"), unseen(mode), source=_DOC),
    Row(methods(_MODEL, "parameters named_parameters"), unseen(parameters), source=_DOC),
    Row(methods(_MODEL, """
modules named_modules children named_children
"""), unseen(modules), source=_DOC),
    Row(methods(_MODEL, "state_dict"), state, source=_DOC),
    Row(methods(_MODEL, "load_state_dict"), state_loaded, source=_DOC),
    Row(methods(_MODEL, "zero_grad"), none, source=_DOC),
    Row(methods(_MODEL, "requires_grad_"), frozen, source=_DOC),
    Row(methods(_MODEL, "apply"), unseen(applied), source=_DOC),
    Row(methods(_MODEL, "__call__ forward"), unseen_called, source=_DOC),
    Row("<wrapper>.__call__ <wrapper>.forward", wrapper_called, source=_DOC),
    Row("<wrapper>.no_sync", no_sync, source=_DOC),
    Row("<no_sync>.__enter__", same),
    Row("<no_sync>.__exit__", none),
    Row("<state>.items <state>.values", tensors, source=_DOC),
    Row("<state>.keys <state>.__len__ <state>.__iter__", uniform, source=_DOC),
    Row("<state>.__getitem__ <state>.pop <state>.get", tensor, source=_DOC),
    Row("<state>.copy", same, source=_DOC),
    Row("<state>.update <state>.__setitem__", none, source=_DOC),
)  # fmt: skip
ATTRIBUTES = (
    Row(methods("module|opaque|container|wrapper", """
weight bias weight_ih_l0 weight_hh_l0 bias_ih_l0 bias_hh_l0 in_proj_weight in_proj_bias
weight_orig weight_g weight_v
"""), submodule_at, source=_DOC),
    Row(methods("module|wrapper|container", "training"), training, source=_DOC),
    Row("<wrapper>.module", wrapper_attribute, source=_DOC),
    Row(methods("module", """
in_features out_features in_channels out_channels num_features kernel_size stride padding
hidden_size num_layers device embedding_dim num_embeddings input_size momentum eps dtype
"""), uniform, source=_DOC),
    Row(methods("module", "running_mean running_var num_batches_tracked"), tensor, source=_DOC),
)  # fmt: skip
KINDS = {
    "torch.nn.Module": frozenset({"module"}),
    "torch.jit.ScriptModule": frozenset({"module"}),
    "torch.nn._Loss": frozenset({"module"}),
    "torch.nn._WeightedLoss": frozenset({"module"}),
    "torch.nn.DataParallel": frozenset({"wrapper"}),
    "torch.nn.parallel.DataParallel": frozenset({"wrapper"}),
    "torch.nn.parallel.DistributedDataParallel": frozenset({"wrapper"}),
}
