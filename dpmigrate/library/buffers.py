"""Buffers of models: tensors that belong to a module and that no optimizer trains
(https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html).
"""

from __future__ import annotations

from collections.abc import Iterator

from dpmigrate.execution import placements
from dpmigrate.execution.identity import is_held
from dpmigrate.execution.joins import join
from dpmigrate.execution.values import NOTHING, SETTING, Data, Ref, Value, const, data, items, known, value
from dpmigrate.library.module_tree import is_module, owned
from dpmigrate.library.modules import DOC, registered
from dpmigrate.library.sites import Row, Site, methods

_ANY = "module|wrapper|container|criterion|library_model"
_STATISTICS = "running_mean running_var num_batches_tracked"


def kept(site: Site) -> Value:
    """``register_buffer(name, x)``: a field, of which it is noted how it comes to differ between the ranks."""
    made, name = site.object, known(site.get(1, "name") or NOTHING)
    if made is not None and isinstance(name, str):
        site.m.heap.noted.setdefault((made.number, name), {})
    return registered(site)


def buffer(site: Site) -> Value:
    """``self.x = nn.Buffer(x)``: the module in which it is stored keeps it like one that is registered."""
    place = site.m.heap.new("buffer", "Buffer", site.node, site.frame.context)
    given = site.get(0, "data") or NOTHING
    site.m.heap.write((place.number, "data"), given if data(given) else _some())
    held = site.m.heap.read((place.number, "data")) or NOTHING
    site.m.heap.to_note |= is_held(held)
    return held


def buffers(site: Site) -> Value:
    """``model.buffers()``, ``named_buffers()``, ``state.items()``: the registered ones, those of layers of libraries, and parameters of a state."""
    named = site.word in ("named_buffers", "items")
    each = [(items([const(name), held]) if named else held) for name, held in _inside(site)]
    return site.m.listed([items([SETTING, _some()]) if named else _some(), *each], site.node, site.frame, exact=False)


def one(site: Site) -> Value:
    """``model.get_buffer("part.name")``, ``state["part.name"]``: the one of that name, whichever part it is of."""
    name = known(site.get(1, "target") or NOTHING)
    last = name.rpartition(".")[2] if isinstance(name, str) else None
    return join(*(held for own, held in _inside(site) if last in (None, own))) or _some()


def by_name(site: Site) -> Value:
    """``model._buffers``: the dictionary of those that are registered in the module itself; what is stored in it becomes an attribute."""
    made = site.object
    assert made is not None
    new = site.m.heap.new("dict", "__dict__", site.node, site.frame.context, extra=made.number, key=made.number)
    for at in [at for at in site.m.heap.noted if at[0] == made.number and isinstance(at[1], str)]:
        if held := site.m.heap.read(at):
            site.m.heap.write((new.number, const(at[1])[0]), held)
    return value(Ref(new.number))


def statistic(site: Site) -> Value:
    """``norm.running_mean``: a buffer that a layer of torch has registered."""
    made = site.object
    assert made is not None
    at = (made.number, site.word)
    site.m.heap.noted.setdefault(at, {})
    held = site.m.heap.read(at)
    if not held:
        site.m.heap.write(at, _some())
        held = site.m.heap.read(at)
    return held or NOTHING


def _some() -> Value:
    return value(Data("tensor", placements.UNIFORM))


def _inside(site: Site) -> Iterator[tuple[str, Value]]:
    """The registered buffers of a module and its parts, or of that of a state, by their own names."""
    made, heap = site.object, site.m.heap
    if made is None:
        return
    tops = site.m.objects(heap.read((made.number, "of")) or NOTHING) if made.kind == "state" else [made]
    numbers = {n for top in tops if is_module(site.m, top) for n in owned(site.m, top.number)}
    for number, name in [at for at in heap.noted if at[0] in numbers]:
        held = heap.read((number, name))
        if held and isinstance(name, str):
            yield name, site.m.bound(held)


ROWS = (
    Row(methods(_ANY, "register_buffer"), kept, source=DOC),
    Row("torch.nn.Buffer torch.nn.parameter.Buffer", buffer, ("torch.nn.Buffer(x)", "torch.nn.Buffer(x.mean(0))"), DOC),
    Row(methods(_ANY, "buffers named_buffers"), buffers, source=DOC),
    Row(methods(_ANY, "get_buffer"), one, source=DOC),
    Row("<state>.items <state>.values", buffers, source=DOC),
    Row("<state>.__getitem__ <state>.pop <state>.get", one, source=DOC),
)
ATTRIBUTES = (
    Row(methods("module", _STATISTICS), statistic, source=DOC),
    Row(methods("module|container", "_buffers"), by_name, source=DOC),
)
