"""Models: what a module, a wrapper and their methods do
(https://docs.pytorch.org/docs/stable/nn.html).
"""

from __future__ import annotations

from dpmigrate.execution import placements
from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.joins import join
from dpmigrate.execution.names import SOME
from dpmigrate.execution.objects import ELEMENTS, KEYS, Object
from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    SETTING,
    Data,
    Ref,
    Value,
    const,
    items,
    known,
    value,
)
from dpmigrate.library import streams
from dpmigrate.library.devices import model_placed
from dpmigrate.library.effects import none, same, uniform
from dpmigrate.library.module_tree import is_module, owned
from dpmigrate.library.sites import Row, Site, methods

DOC = "https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html"
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
    site.event("requires grad", target=value(Ref(made.number)), flag=flag, told=site.flat(flag))
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
#: a field of a model of a library that gives its loss: the parts that a gradient comes to
GIVES_LOSS = "#gives"
#: what is kept of a model of a library, whose parts are modules as well
MODEL = "model of a library"


def library_network(site: Site) -> Value:
    """A network of a library, or a part of one."""
    return value(Ref(site.made("module", extra=MODEL).number))


def part(site: Site) -> Value:
    """A part of a library's module, by its name or place: a module as well."""
    made = site.object
    assert made is not None
    key = site.m.constant(site.get(1) or NOTHING)
    return _part(site, made, site.word if key is None else f"[{key.value}]")


def children(site: Site) -> Value:
    """``model.children()``; of a library's model they are not seen: parts of it, and not the whole."""
    made = site.object
    if made is None or made.extra != MODEL:
        return modules(site)
    each = _of_library(site, made)
    listed = items([SETTING, each]) if site.word.startswith("named") else each
    return site.m.listed([listed], site.node, site.frame, exact=False)


def children_by_name(site: Site) -> Value:
    """``model._modules`` of a library's model."""
    made = site.object
    assert made is not None
    new = site.m.heap.new("dict", "", site.node, site.frame.context, key=(made.number, "_modules"))
    site.m.heap.widen((new.number, ELEMENTS), _of_library(site, made))
    site.m.heap.widen((new.number, KEYS), SETTING)
    return value(Ref(new.number))


#: the field of the parts of a library's model that are gone through: no name that a program can ask for, as ``model.children`` is
CHILD = "a child"


def _of_library(site: Site, made: Object) -> Value:
    """Any of the parts of a library's model, in the modes that this has."""
    new = not site.m.heap.read((made.number, CHILD))
    each = _part(site, made, CHILD)
    if new:
        modes = [(n, v) for n, v in site.m.heap.peek(made.number) if str(n).startswith("mode ")]
        for o in site.m.objects(each):
            for name, held in modes:
                site.m.heap.write((o.number, name), held)
    return each


#: how far down parts are told apart
_DEEP = 16


def _part(site: Site, made: Object, word: str) -> Value:
    held = site.m.bound(site.m.heap.read((made.number, word)) or NOTHING)
    if held:
        return held
    if made.name.endswith(f".{word}.{word}") or made.name.count(".") >= _DEEP:
        # a function that calls itself goes down for ever: from here on one part stands for all
        made.many = True
        return value(Ref(made.number))
    inner = site.m.heap.new(
        "module", f"{made.name}.{word}", made.node, made.context, key=(made.number, word)
    )
    inner.many, inner.extra, inner.owner = False, MODEL, made.number
    found = value(Ref(inner.number))
    site.m.heap.write((made.number, word), found)
    return found


def training(site: Site) -> Value:
    """``model.training``: modules are made to train."""
    made = site.object
    held = site.m.heap.read((made.number, "mode training")) if made is not None else None
    return held or (const(True) if made is not None and is_module(site.m, made) else SETTING)


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
ROWS = (
    Row(methods(_ANY, """
to cuda cpu float double half type share_memory compile bfloat16 to_empty
"""), itself, source=DOC),
    Row(methods(_ANY, "train eval"), mode, source=DOC),
    Row(methods(_ANY, "parameters named_parameters get_parameter"), parameters, source=DOC),
    Row(methods(_ANY, """
modules named_modules get_submodule
"""), modules, source=DOC),
    Row(methods(_ANY, "children named_children"), children, source=DOC),
    Row(methods(_ANY, "state_dict"), state, source=DOC),
    Row(methods(_ANY, "load_state_dict"), state_loaded, source=DOC),
    Row(methods(_ANY, "zero_grad"), gradients_cleared, source=DOC),
    Row(methods(_ANY, "flatten_parameters"), none, source=DOC),
    Row(methods(_ANY, "reset_parameters"), drawn_again, source=DOC),
    Row(methods("wrapper|library_model", "__init__"), none, source=DOC),
    Row(methods(_ANY, "requires_grad_"), frozen, source=DOC),
    Row(methods(_ANY, " ".join(n for n in REGISTERING if n != "register_buffer")), registered, source=DOC),
    Row(methods(_ANY, "apply"), applied, source=DOC),
    Row(methods(_ANY, """
register_full_backward_hook register_forward_pre_hook register_backward_hook extra_repr __repr__ register_load_state_dict_post_hook
"""), uniform, source=DOC),
    Row("<module>.__getitem__ <module>.__iter__", part, source=DOC),
    Row(methods(_ANY, "__getattr__"), named, source=DOC),
    Row("<state>.keys <state>.__len__ <state>.__iter__", uniform, source=DOC),
    Row("<state>.copy", same, source=DOC),
    Row("<state>.update <state>.__setitem__", none, source=DOC),
)  # fmt: skip
ATTRIBUTES = (
    Row(methods("module|opaque|container", """
weight bias weight_ih_l0 weight_hh_l0 bias_ih_l0 bias_hh_l0 in_proj_weight in_proj_bias
weight_orig weight_g weight_v
"""), submodule_at, source=DOC),
    Row(methods("module|wrapper|container", "training"), training, source=DOC),
    Row(methods("module", """
in_features out_features in_channels out_channels num_features kernel_size stride padding
hidden_size num_layers device embedding_dim num_embeddings input_size momentum eps dtype
"""), uniform, source=DOC),
)  # fmt: skip
KINDS = {
    "torch.nn.Module": frozenset({"module"}),
    "torch.jit.ScriptModule": frozenset({"module"}),
    "torch.nn._Loss": frozenset({"criterion"}),
    "torch.nn._WeightedLoss": frozenset({"criterion"}),
}
