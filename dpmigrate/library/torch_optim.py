"""torch.optim and torch.amp (https://docs.pytorch.org/docs/stable/optim.html)."""

from __future__ import annotations

from dpmigrate.execution.foreign import Arguments
from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    SETTING,
    Data,
    Ref,
    Value,
    data,
    join,
    value,
)
from dpmigrate.library import torch_nn
from dpmigrate.library.effects import none, same, uniform
from dpmigrate.library.sites import Row, Site, table, words

_DOC = "https://docs.pytorch.org/docs/stable/optim.html"


def optimizer(site: Site) -> Value:
    """``SGD(params, lr)``."""
    made = site.made("optimizer")
    given(site, made.number, site.get(0, "params") or NOTHING)
    return value(Ref(made.number))


def constructed(site: Site) -> Value:
    """``super().__init__(params, defaults)`` of an optimizer of the program."""
    if site.object is not None:
        given(site, site.object.number, site.get(1, "params") or NOTHING)
    return NONE


def given(site: Site, number: int, parameters: Value) -> None:
    """The parameters that an optimizer gets, in groups as well."""
    found = tuple(a for a in site.deep(parameters) if isinstance(a, Data))
    listed = join(*[(a,) for a in found])
    site.m.heap.write((number, "parameters"), listed)
    site.event("optimizer", object=value(Ref(number)), parameters=listed)


def step(site: Site) -> Value:
    """``optimizer.step()``: what has a gradient is changed by it."""
    owner = site.object
    assert owner is not None
    closure = site.get(1, "closure")
    if closure and closure != NONE:
        site.m.call(closure, Arguments(), site.node, site.frame)
    parameters = site.m.heap.read((owner.number, "parameters")) or NOTHING
    gradients = [
        held for number in stepped(site, parameters) if (held := site.m.heap.read((number, "grad")))
    ]
    site.event(
        "step",
        optimizer=value(Ref(owner.number)),
        parameters=parameters,
        gradients=join(*gradients),
    )
    return NONE


def cleared(site: Site) -> Value:
    """``optimizer.zero_grad()``."""
    owner = site.object
    assert owner is not None
    site.event("zero grad", optimizer=value(Ref(owner.number)))
    parameters = site.m.heap.read((owner.number, "parameters")) or NOTHING
    torch_nn.clear(site, stepped(site, parameters))
    return NONE


def stepped(site: Site, parameters: Value) -> list[int]:
    """The modules and parameters behind what an optimizer got, with all that they hold."""
    found: set[int] = set()
    for d in data(parameters):
        for number in d.reached:
            found |= torch_nn.owned(site.m, number)
    return sorted(found)


def scheduler(site: Site) -> Value:
    """A scheduler of learning rates."""
    return site.ref("scheduler", optimizer=site.get(0, "optimizer"))


def scheduled(site: Site) -> Value:
    """``scheduler.step(metric)``: a number that steers training."""
    site.event("schedule", metric=site.get(1, "metrics") or NONE)
    return NONE


def scaler(site: Site) -> Value:
    """``GradScaler()``."""
    return site.ref("scaler")


def scaled(site: Site) -> Value:
    """``scaler.scale(loss)``."""
    found = site.get(1) or NOTHING
    return found


def scaler_step(site: Site) -> Value:
    """``scaler.step(optimizer)``: the optimizer's step, unless a gradient overflowed."""
    for o in site.m.objects(site.get(1) or NOTHING):
        method = site.m.method_of(o, "step")
        site.event("scaler step", optimizer=value(Ref(o.number)))
        if method is not None:
            site.m.call(value(method), Arguments(), site.node, site.frame)
        else:
            step(Site(site.m, ".step", Arguments(), site.node, site.frame, Ref(o.number)))
    return NONE


def loaded(site: Site) -> Value:
    """``optimizer.load_state_dict(d)``."""
    site.event("load state", target=site.get(0) or NOTHING, given=site.get(1) or NOTHING)
    return NONE


def groups(site: Site) -> Value:
    """``optimizer.param_groups``: a list of dictionaries."""
    owner = site.object
    assert owner is not None
    held = site.m.heap.read((owner.number, "groups"))
    if held:
        return held
    made = site.m.heap.new("dict", "group", site.node, site.frame.context, key=owner.number)
    from dpmigrate.execution.values import Const

    for name in ("lr", "weight_decay", "momentum", "betas", "eps", "initial_lr"):
        site.m.heap.write((made.number, Const("str", name)), SETTING)
    parameters = site.m.heap.read((owner.number, "parameters")) or NOTHING
    listed = site.m.heap.new("list", "params", site.node, site.frame.context, key=owner.number)
    site.m.heap.write((listed.number, "*"), parameters)
    site.m.heap.write((made.number, Const("str", "params")), value(Ref(listed.number)))
    outer = site.m.heap.new(
        "list", "groups", site.node, site.frame.context, key=("groups", owner.number)
    )
    site.m.heap.write((outer.number, "*"), value(Ref(made.number)))
    found = value(Ref(outer.number))
    site.m.heap.write((owner.number, "groups"), found)
    return found


def precision(site: Site) -> Value:
    """``autocast(...)``."""
    return site.ref("context")


ROWS = (
    Row("torch.amp.GradScaler torch.GradScaler", scaler, (), "https://docs.pytorch.org/docs/stable/amp.html"),
    Row("torch.amp.autocast torch.autocast", precision, (), "https://docs.pytorch.org/docs/stable/amp.html"),
    Row("torch.amp.custom_fwd torch.amp.custom_bwd", same),
)  # fmt: skip
FUNCTIONS = table(ROWS)
_NAMES = frozenset(
    words(
        """
Adam AdamW SGD RMSprop Adagrad Adadelta Adamax ASGD LBFGS NAdam RAdam Rprop SparseAdam
Adafactor Muon
"""
    )
)


def pattern(name: str) -> Row | None:
    """Schedulers, and optimizers of torch."""
    head, _, word = name.rpartition(".")
    if head == "torch.optim.lr_scheduler":
        return Row(name, scheduler, (), _DOC)
    if head.startswith("torch.optim") and word[:1].isupper():
        return Row(name, optimizer, (), _DOC)
    return None


def classes(name: str) -> str | None:
    """What a class of torch.optim makes."""
    head, _, word = name.rpartition(".")
    if head == "torch.optim.lr_scheduler" and word[:1].isupper():
        return "scheduler"
    if head.startswith("torch.optim") and word[:1].isupper():
        return "optimizer"
    return None


OF_KIND: dict[tuple[str, str], Row] = {
    ("optimizer", "__init__"): Row("", constructed),
    ("optimizer", "step"): Row("", step),
    ("optimizer", "zero_grad"): Row("", cleared),
    ("optimizer", "state_dict"): Row("", lambda s: s.ref("state", of=s.get(0))),
    ("optimizer", "load_state_dict"): Row("", loaded),
    ("optimizer", "add_param_group"): Row("", none),
    ("scheduler", "step"): Row("", scheduled),
    ("scheduler", "state_dict"): Row("", lambda s: s.ref("state", of=s.get(0))),
    ("scheduler", "load_state_dict"): Row("", none),
    ("scheduler", "get_last_lr"): Row("", lambda s: s.m.listed([SETTING], s.node, s.frame, exact=False)),
    ("scheduler", "get_lr"): Row("", lambda s: s.m.listed([SETTING], s.node, s.frame, exact=False)),
    ("scheduler", "__init__"): Row("", none),
    ("scaler", "scale"): Row("", scaled),
    ("scaler", "step"): Row("", scaler_step),
    ("scaler", "update"): Row("", none),
    ("scaler", "unscale_"): Row("", none),
    ("scaler", "get_scale"): Row("", uniform),
    ("scaler", "state_dict"): Row("", lambda s: s.ref("state", of=s.get(0))),
    ("scaler", "load_state_dict"): Row("", none),
}  # fmt: skip
ATTRIBUTES = {
    ("optimizer", "param_groups"): Row("", groups),
    ("optimizer", "state"): Row("", lambda s: SETTING),
    ("optimizer", "defaults"): Row("", lambda s: SETTING),
}
