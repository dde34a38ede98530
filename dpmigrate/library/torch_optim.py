"""torch.optim (https://docs.pytorch.org/docs/stable/optim.html)."""

from __future__ import annotations

from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.joins import join
from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    SETTING,
    Atom,
    Bound,
    Const,
    Data,
    Items,
    Ref,
    Value,
    const,
    data,
    value,
)
from dpmigrate.library import module_tree, modules
from dpmigrate.library.copies import copied
from dpmigrate.library.effects import none, uniform
from dpmigrate.library.sites import GRAD, Row, Site

#: a field of an optimizer: what it was set to when it was made
MADE_WITH = "#made with"
_DOC = "https://docs.pytorch.org/docs/stable/optim.html"


def optimizer(site: Site) -> Value:
    """``SGD(params, lr)``."""
    made = site.made("optimizer")
    given(site, made.number, site.get(0, "params") or NOTHING)
    settings = (v for n, v in site.arguments.keywords.items() if n != "params")
    site.m.heap.write((made.number, MADE_WITH), join(*site.arguments.positional[1:], *settings))
    return value(Ref(made.number))


def constructed(site: Site) -> Value:
    """``super().__init__(params, defaults)`` of an optimizer of the program, whose own method
    ``step`` becomes one with hooks (torch.optim.Optimizer._patch_step_function).
    """
    made = site.object
    if made is None:
        return NONE
    given(site, made.number, site.get(1, "params") or NOTHING)
    method = site.m.method_of(made, "step")
    if method is not None:
        hooked = site.ref("step", optimizer=value(Ref(made.number)), method=value(method))
        site.m.heap.write((made.number, "step"), hooked)
    return NONE


def own_step(site: Site) -> Value:
    """``optimizer.step()`` of an optimizer class of the program."""
    held = site.object
    assert held is not None
    for owner in site.m.objects(site.m.heap.read((held.number, "optimizer")) or NOTHING):
        _stepped(site, owner.number)
    method = site.m.heap.read((held.number, "method")) or NOTHING
    return site.m.call(method, site.arguments, site.node, site.frame)


def given(site: Site, number: int, parameters: Value) -> None:
    """The parameters that an optimizer gets, in groups as well."""
    held = site.deep(parameters)
    for a in held:  # a generator of the program gives its parameters here
        made = site.m.object(a)
        if made is not None and made.kind == "generator":
            held += site.deep(site.m.elements(value(a), site.node, site.frame))
    found = tuple(a for a in held if isinstance(a, Data))
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
    _stepped(site, owner.number)
    return NONE


def _stepped(site: Site, number: int) -> None:
    parameters = site.m.heap.read((number, "parameters")) or NOTHING
    gradients = [
        held for n in stepped(site, parameters) if (held := site.m.heap.read((n, "grad")))
    ]
    site.event(
        "step",
        optimizer=value(Ref(number)),
        parameters=parameters,
        gradients=join(*gradients),
    )


def cleared(site: Site) -> Value:
    """``optimizer.zero_grad()``."""
    owner = site.object
    assert owner is not None
    site.event("zero grad", optimizer=value(Ref(owner.number)))
    parameters = site.m.heap.read((owner.number, "parameters")) or NOTHING
    modules.clear(site, stepped(site, parameters))
    return NONE


def stepped(site: Site, parameters: Value) -> list[int]:
    """The modules and parameters behind what an optimizer got, with all that they hold."""
    found: set[int] = set()
    for d in data(parameters):
        for number in d.reached:
            found |= module_tree.owned(site.m, number)
    return sorted(found)


def scheduler(site: Site) -> Value:
    """A scheduler of learning rates; a function that it is given is called with a number of
    steps.
    """
    for given in (site.get(1, "lr_lambda"), site.arguments.keywords.get("scale_fn")):
        functions = tuple(a for a in site.deep(given or NOTHING) if _runs(site, a))
        if functions:
            site.m.call(functions, Arguments([SETTING]), site.node, site.frame)
    return site.ref("scheduler", optimizer=site.get(0, "optimizer"))


def _runs(site: Site, atom: Atom) -> bool:
    """Whether an atom is code of the program."""
    made = site.m.object(atom)
    return isinstance(atom, Bound) or (made is not None and made.kind == "function")


def scheduled(site: Site) -> Value:
    """``scheduler.step(metric)``: a number that steers training."""
    site.event("schedule", metric=site.get(1, "metrics") or NONE)
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
    with site.m.heap.outside():  # it has been there since the optimizer was made, whoever asks for it first
        made = site.m.heap.new("dict", "group", site.node, site.frame.context, key=owner.number)
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


def state(site: Site) -> Value:
    """``state_dict()``."""
    return site.ref("state", of=site.get(0))


def rates(site: Site) -> Value:
    """``get_last_lr()``: a list of learning rates."""
    return site.m.listed([SETTING], site.node, site.frame, exact=False)


def averaged(site: Site) -> Value:
    """``AveragedModel(model)``: a module round a copy of the model."""
    made = site.made("module", extra=modules.ROUND)
    site.m.heap.write((made.number, "module"), copied(site))
    return value(Ref(made.number))


def statistics_updated(site: Site) -> Value:
    """``update_bn(loader, model)``: a pass over the loader, through the model, without gradients
    (https://docs.pytorch.org/docs/stable/optim.html#taking-care-of-batch-normalization).
    """
    loader, model = site.get(0, "loader") or NOTHING, site.get(1, "model") or NOTHING
    before = site.m.heap.read(GRAD)
    site.m.heap.write(GRAD, const(False))
    site.m.library.begun(site.m, loader, site.node, site.frame)
    batch = site.m.elements(loader, site.node, site.frame)
    first = [site.m.item((a,), const(0), site.node, site.frame) for a in batch if _several(site, a)]
    whole = tuple(a for a in batch if not _several(site, a))
    site.m.call(model, Arguments([join(*first, whole)]), site.node, site.frame)
    site.m.heap.write(GRAD, before)
    return NONE


def _several(site: Site, atom: Atom) -> bool:
    """Whether a batch is a tuple or list, of which the first part goes into the model."""
    made = site.m.object(atom)
    return isinstance(atom, Items) or (made is not None and made.kind == "list")


ROWS = (
    Row("torch.optim.swa_utils.AveragedModel", averaged, source=_DOC),
    Row("<module>.update_parameters", none, source=_DOC),
    Row("torch.optim.swa_utils.update_bn", statistics_updated, source=_DOC),
    Row("<optimizer>.__init__", constructed, source=_DOC),
    Row("<optimizer>.step", step, source=_DOC),
    Row("<step>.__call__", own_step, source=_DOC),
    Row("<optimizer>.zero_grad", cleared, source=_DOC),
    Row("<optimizer>.state_dict <scheduler>.state_dict <scaler>.state_dict", state, source=_DOC),
    Row("<optimizer>.load_state_dict <scaler>.load_state_dict", loaded, source=_DOC),
    Row("<optimizer>.add_param_group <optimizer>.train <optimizer>.eval", none, source=_DOC),
    Row("<scheduler>.step <scheduler>.step_update", scheduled, source=_DOC),
    Row("<scheduler>.load_state_dict <scheduler>.__init__ <scheduler>.print_lr", none, source=_DOC),
    Row("<scheduler>.get_last_lr <scheduler>.get_lr", rates, source=_DOC),
)  # fmt: skip
ATTRIBUTES = (
    Row("<optimizer>.param_groups", groups, source=_DOC),
    Row("<optimizer>.state <optimizer>.defaults", uniform, source=_DOC),
    Row("<scheduler>.last_epoch <scheduler>.base_lrs <scheduler>.best", uniform, source=_DOC),
)  # fmt: skip


def _last(name: str) -> tuple[str, str]:
    head, _, word = name.rpartition(".")
    return head, word


def pattern(name: str) -> Row | None:
    """Schedulers and optimizers, of torch and of libraries that follow it."""
    kind = classes(name)
    if kind == "scheduler":
        return Row(name, scheduler, source=_DOC)
    return Row(name, optimizer, source=_DOC) if kind == "optimizer" else None


#: libraries of optimizers and schedulers with the interface of torch's
_LIKE_TORCH = (
    "torch_optimizer", "adabelief_pytorch", "bitsandbytes.optim", "apex.optimizers", "timm.optim",
    "transformers.optimization", "lion_pytorch", "ranger", "adamp", "madgrad", "radam", "lamb",
    "pytorch_optimizer",
)  # fmt: skip


def classes(name: str) -> str | None:
    """What a class of torch.optim, or of a library of the same interface, makes."""
    head, word = _last(name)
    computed = word == "*" and head == "torch.optim.lr_scheduler"
    if computed or (
        head in ("torch.optim.lr_scheduler", "torch.optim.swa_utils")
        and word.lstrip("_")[:1].isupper()
    ):
        return "scheduler" if word != "AveragedModel" else "module"
    if head.startswith("torch.optim") and (word[:1].isupper() or word == "*"):
        return "optimizer"  # also by a name that is computed: getattr(torch.optim, name)
    if any(head == p or head.startswith(f"{p}.") for p in _LIKE_TORCH) and word[:1].isupper():
        return (
            "scheduler" if word.endswith(("LR", "Scheduler", "Restarts", "Warmup")) else "optimizer"
        )
    if head == "warmup_scheduler" or (
        head == "transformers"
        and word.startswith("get_")
        and (word.endswith(("schedule", "warmup", "scheduler")))
    ):
        return "scheduler"
    return None
