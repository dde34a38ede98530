"""Functions that a module calls after its forward
(https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.register_forward_hook).

A part of a library's model is called where the model is; what it gives lies as what the model gives.
A gradient comes from it to the part alone: where nothing else of the model is in a loss, DDP waits for
the parameters of the rest.
"""

from __future__ import annotations

from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.joins import join
from dpmigrate.execution.objects import Object
from dpmigrate.execution.values import NONE, NOTHING, RESULTS, Const, Data, Ref, Value, items, value
from dpmigrate.library.module_tree import owned
from dpmigrate.library.modules import MODEL
from dpmigrate.library.sites import Row, Site, methods

_DOC = "https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html"
#: a field of a module: what it calls after its forward
_HOOKS = "#forward hooks"
_ANY = "module|wrapper|container|criterion|library_model"


def registered(site: Site) -> Value:
    """``module.register_forward_hook(hook)``: a handle that takes it away again."""
    made, hook = site.object, site.get(1, "hook") or NOTHING
    assert made is not None
    before = site.m.heap.read((made.number, _HOOKS)) or NOTHING
    site.m.heap.write((made.number, _HOOKS), join(before, hook))
    return site.ref("hook handle", module=value(Ref(made.number)), hook=hook)


def removed(site: Site) -> Value:
    """``handle.remove()``."""
    made = site.object
    assert made is not None
    gone = site.m.heap.read((made.number, "hook")) or NOTHING
    for o in site.m.objects(site.m.heap.read((made.number, "module")) or NOTHING):
        held = site.m.heap.read((o.number, _HOOKS)) or NOTHING
        site.m.heap.write((o.number, _HOOKS), tuple(a for a in held if a not in gone))
    return NONE


def after(site: Site, result: Value | None) -> Value | None:
    """What a call of a module gives once its hooks have been called: what they return, if anything."""
    made = site.object
    if made is None or result is None:
        return result
    if made.extra == MODEL:
        result = _through_parts(site, made, result)
    if site.m.heap.read((made.number, _HOOKS)):
        return _called(site, made, items(site.arguments.positional), result)
    return result


def _through_parts(site: Site, made: Object, result: Value) -> Value:
    """What a library's model gives, whose parts have hooks of their own."""
    inside = owned(site.m, made.number)
    hooked = [n for n in sorted(inside - {made.number}) if site.m.heap.read((n, _HOOKS))]
    if not hooked:
        return result
    rest = site.m.heap.new(
        "module", f"{made.name}.rest", made.node, made.context, key=(made.number, "rest")
    )
    rest.many, rest.owner = made.many, made.number
    site.m.heap.write((made.number, "rest"), value(Ref(rest.number)))
    for number in hooked:
        held = _given(result, inside | {rest.number}, owned(site.m, number))
        _called(site, site.m.heap.objects[number], held, held)
    return tuple(
        a._replace(reached=a.reached | {rest.number})
        if isinstance(a, Data) and made.number in a.reached
        else a
        for a in result
    )


def _given(result: Value, whole: set[int], part: set[int]) -> Value:
    """What a part of a model gives that gives ``result``: nothing is known of its shape."""
    return tuple(
        a._replace(
            kind=RESULTS, axes=None, lengths=(),
            reached=(a.reached - whole) | part if a.reached & whole else a.reached,
        )
        if isinstance(a, Data)
        else a
        for a in result
    )  # fmt: skip


def _called(site: Site, made: Object, given: Value, result: Value) -> Value:
    for hook in site.m.heap.read((made.number, _HOOKS)) or NOTHING:
        arguments = Arguments([value(Ref(made.number)), given, result])
        returned = site.m.call(value(hook), arguments, site.node, site.frame)
        new = tuple(a for a in returned if not (isinstance(a, Const) and a.value is None))
        if new:
            result = join(new, result) if len(new) < len(returned) else new
    return result


ROWS = (
    Row(methods(_ANY, "register_forward_hook"), registered, source=_DOC),
    Row("<hook_handle>.remove", removed, source=_DOC),
)
