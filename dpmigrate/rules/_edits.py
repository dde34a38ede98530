"""Edits, and texts of inserted code, that several rules build alike; what they know of a program they ask the facts."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from textwrap import shorten

from dpmigrate.edit import AddImport, After, Before, Delete, DropArg, DropItem, Edit, Enclose, MainOnly, SetArg
from dpmigrate.edit import Wrap as Wrapped
from dpmigrate.facts import steps
from dpmigrate.facts.decisions import By, decided, too_large
from dpmigrate.facts.launch import EnvironmentWrite
from dpmigrate.facts.losses import Loss, differentiated
from dpmigrate.facts.moves import moved_later
from dpmigrate.facts.moving import Part
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.objects import wrap_argument
from dpmigrate.facts.outside import downloads
from dpmigrate.facts.parameters import thawing
from dpmigrate.facts.script import Script
from dpmigrate.facts.unmoved import calls_wrapper, moved_by_wrapper
from dpmigrate.facts.wraps import Wrap
from dpmigrate.model import Severity
from dpmigrate.rules._base import Hit

#: DataLoader's parameters in order (torch.utils.data.DataLoader)
LOADER_PARAMETERS = (
    "dataset", "batch_size", "shuffle", "sampler", "batch_sampler", "num_workers", "collate_fn", "pin_memory", "drop_last", "timeout", "worker_init_fn",
)  # fmt: skip
#: the functional form of DataParallel, by the names under which torch has it
DATA_PARALLEL_FUNCTION = ("torch.nn.parallel.data_parallel", "torch.nn.parallel.data_parallel.data_parallel")


def driven_directly(script: Script, call: ast.Call) -> str | None:
    """The plain call of the module that is driven, where the call stands in a model's method; None elsewhere."""
    module, inputs = script.argument(call, "module", 0), script.argument(call, "inputs", 1)
    if module is None or inputs is None or not script.roles.inside_module(call) or not isinstance(module, ast.Name | ast.Attribute | ast.Subscript):
        return None
    given = [script.text(e) for e in inputs.elts] if isinstance(inputs, ast.Tuple) else [script.text(inputs)]
    named = script.argument(call, "module_kwargs", 5)
    if named is not None and not (isinstance(named, ast.Constant) and named.value is None):
        given.append(f"**{script.text(named)}")
    return f"{script.text(module)}({', '.join(given)})"


def raise_on_ranks(script: Script, handler: ast.ExceptHandler, *, at_end: bool = False) -> Edit:
    """The exception is raised again where there are several ranks: one cannot go on alone. ``at_end``: when the handler has done the rest."""
    code = f"if {script.ddp}.world_size() > 1:\n    raise"
    final = handler.body[-1]
    if at_end and not any(isinstance(n, ast.Return | ast.Break | ast.Continue) for s in handler.body for n in walk(s)):
        return After(script.span(final), code)
    return Before(script.span(final if at_end and isinstance(final, ast.Return) else handler.body[0]), code)


def unset(script: Script, write: EnvironmentWrite) -> Edit:
    """An environment variable is not set any more."""
    if isinstance(write.node, ast.Dict):
        return DropItem(script.span(write.node), write.name)
    return DropArg(script.span(write.node), write.name) if isinstance(write.node, ast.Call) else Delete(script.span(write.node))


def wrap_edit(script: Script, w: Wrap) -> Edit:
    """The edit that makes a wrap which no DataParallel call makes."""
    if w.how == "part":
        return Wrapped(script.span(w.node), wrap_code(script, "{}", w))
    if w.how == "value" and isinstance(w.stmt, ast.Assign) and not downloads(script.names, w.stmt):
        return Wrapped(script.span(w.stmt.value), wrap_code(script, "{}", w))
    code = f"{w.name or w.target} = {wrap_code(script, w.target, w)}"
    return Before(script.span(w.stmt), code) if w.how in ("before", "own") else After(script.span(w.stmt), code)


def option_edit(script: Script, w: Wrap, name: str) -> Edit:
    """The edit that gives a wrap an option: the one that makes the wrap, where that is an expression or a statement of its own."""
    if w.how != "call" or not isinstance(w.node, ast.Call):
        return wrap_edit(script, w)
    moved = moved_after(script, w.node)
    return SetArg(script.span(w.node), name, "True") if moved is None else Wrapped(script.span(moved), wrap_code(script, "{}", w))


def moved_after(script: Script, call: ast.Call) -> ast.Call | None:
    """``DataParallel(net).cuda()``: the outermost call that moves the wrapper; the model is moved first and wrapped then. None where it is on its device."""
    outer: ast.Call | None = None
    node: ast.AST = call
    arg = wrap_argument(call)
    while arg is not None and "cuda" not in script.text(arg):
        attribute = script.names.parent[node]
        after = script.names.parent.get(attribute)
        if not (isinstance(attribute, ast.Attribute) and attribute.attr in ("cuda", "to") and isinstance(after, ast.Call) and after.func is attribute):
            break
        outer, node = after, after
    return outer


def wrap_options(script: Script, w: Wrap) -> list[str]:
    """The options of ``ddp.wrap`` that this model needs."""
    thaws = thawing(script, w)
    unused = bool(script.unused(w) or w in script.shown_unused)
    moves = script.from_data_parallel and (w.how == "call" or calls_wrapper(script)) and moved_by_wrapper(script)
    return ["sync_bn"] * script.settings.sync_bn + ["find_unused"] * (unused or thaws) + ["thaws"] * thaws + ["move_inputs"] * moves + ["again"] * w.again


def wrap_code(script: Script, target: str, w: Wrap) -> str:
    """``ddp.wrap(target)`` with its options, and the move that the program makes later."""
    return f"{script.ddp}.wrap({', '.join([target + wrap_move(script, w), *(f'{name}=True' for name in wrap_options(script, w))])})"


def bare(script: Script, model: ast.expr) -> Wrapped:
    """The model behind what may be its wrapper: ``model.module`` where it can be nothing else, ``ddp.unwrap(model)`` elsewhere.

    In a file that a script imports which is not rewritten it can be something else.
    """
    known = script.roles.surely_wrapped(model) and not script.shared(model)
    return Wrapped(script.span(model), "{}.module" if known else f"{script.ddp}.unwrap({{}})")


def wrap_move(script: Script, w: Wrap) -> str:
    """The move of a model before its wrap, as a method call, where the program moves the wrapper later; '' where it does not."""
    move = moved_later(script.roles, w)
    return f".to({script.ddp}.device())" if move == "" else move or ""


def scaler_name(script: Script) -> str:
    """The expression for the GradScaler of ``--amp`` in the training step: an attribute where steps and backwards are methods of one class."""
    found = steps.steps(script.roles)
    owners = {script.names.cls(n) for n in (*(s.call for s in found), *script.roles.backwards)}
    if len(owners) == 1 and all(script.text(s.receiver).startswith("self.") and _made_in_class(script, s.receiver) for s in found):
        return "self.grad_scaler" if script.names.attributes("scaler") else "self.scaler"
    return script.fresh("scaler")


def _made_in_class(script: Script, optimizer: ast.expr) -> bool:
    """Whether a method gives the attribute its optimizer, as ``self.…``, and not another object from outside."""
    return all(script.names.cls(w) is not None for key in script.values.keys(optimizer) for w in script.roles.writes(key))


def torch_at(script: Script, node: ast.AST) -> list[Edit]:
    """The import of torch, where the file of the node does not call it ``torch``."""
    return [] if script.names.imports.get((id(script.names.module_of(node)), "torch")) == "torch" else [AddImport("import torch")]


def scales(script: Script) -> bool:
    """Whether ``--amp`` brings a GradScaler into this program."""
    return script.settings.amp and script.settings.amp_dtype == "float16" and script.own_amp is None


def scaled_backward(script: Script, backward: ast.Call) -> Edit:
    """What goes round the loss of a backward: times the world size where it is a sum, in the scaler where there is one."""
    node = differentiated(backward)
    summed = script.sums(backward) and backward not in script.alone
    template = f"{script.ddp}.sum_loss({{}})" if summed else "{}"
    return Wrapped(script.span(node), f"{scaler_name(script)}.scale({template})" if scales(script) else template)


# ---------------------------------------------------------------------- what ranks do together, and rank 0 alone
#: how a part of a test is decided
_DECIDED = {By.ANY: "{ddp}.any_rank({{}})", By.ALL: "not {ddp}.any_rank(not {{}})", By.MAIN: "{ddp}.from_main({{}})", By.MEAN: "{ddp}.mean_all({{}})"}


def together(script: Script, test: ast.expr, *, number: bool = False) -> list[Edit] | None:
    """The test (or ``number``) as all ranks decide it; None where none of them has what would decide it for the whole batch."""
    parts = decided(script, test, number=number)
    if parts is None:
        return whole(script, script.moving.within(test))
    if number and any(p.by is By.MAIN and too_large(script, p.node) for p in parts):
        return None
    truths = [_DECIDED[p.by].replace("{{}}", "bool({{}})") if p.by is By.MAIN and too_large(script, p.node) else _DECIDED[p.by] for p in parts]
    return [Wrapped(script.span(p.node), truth.format(ddp=script.ddp)) for p, truth in zip(parts, truths, strict=True)]


def whole(script: Script, parts: Sequence[Part] | None) -> list[Edit] | None:
    """Numbers of the batch as those of the global batch; None where they are not known."""
    return [Wrapped(script.span(p.node), f"{script.ddp}.{p.by}({{}})") for p in dict.fromkeys(parts)] if parts is not None else None


def read_as(script: Script, loss: Loss) -> str:
    """Why the loss is no plain mean, with what was taken for that; '' where nothing is known of it."""
    if not loss.why.startswith("a "):
        return loss.why
    return f"{shorten(script.text(loss.node), 60, placeholder=' …')} is taken for {loss.why}"


#: what decides alike without the ranks asking each other
_ADVICE = "decide by what is the same on every rank: counters, settings, or a loss reduced with ddp.mean_all"


def alike(script: Script, node: ast.AST, shared: Sequence[list[Edit] | None], message: str, advice: str = _ADVICE) -> Hit:
    """The node with its parts made ``together``; a refusal where one of them cannot be, or where there is none."""
    if not shared or None in shared:
        return Hit(node, message, severity=Severity.BLOCKER, advice=advice)
    return Hit(node, message, (*(e for edits in shared for e in edits or ()), AddImport(script.import_line)))


#: columns of a line, and what is kept free of them for the indentation of a loop in a method
_LINE = 120
_INDENTATION = 12


def reduced(script: Script, loop: ast.AST, function: str, names: Sequence[str], more: str = "") -> list[str]:
    """The statements after a loop that put reduced totals in the place of the local ones, in lines that can be read."""
    scope = script.names.scope_of[loop]

    def place(name: str) -> str:
        """A list from outside is filled anew: to bind its name would make another variable of it."""
        own = name in scope.outer or any(b.how != "param" for b in scope.bindings.get(name, ()))
        return name if own or not name.isidentifier() else f"{name}[:]"

    def line(group: Sequence[str]) -> str:
        return f"{', '.join(map(place, group))} = {script.ddp}.{function}({', '.join(group)}{more})"

    groups: list[list[str]] = []
    for name in names:
        if groups and len(line([*groups[-1], name])) <= _LINE - _INDENTATION:
            groups[-1].append(name)
        else:
            groups.append([name])
    return [line(g) for g in groups]


#: methods that take something out of what they belong to
_TAKING = frozenset({"pop", "popleft", "popitem", "next"})


def _takes_out(call: ast.Call) -> bool:
    """Whether what a call is given takes something out of a list, or binds a name: all ranks have to do so."""
    given = [n for a in (*call.args, *call.keywords) for n in ast.walk(a)]
    named = (n.func for n in given if isinstance(n, ast.Call))
    return any(isinstance(n, ast.NamedExpr) for n in given) or any(getattr(f, "attr", getattr(f, "id", "")) in _TAKING for f in named)


def by_main(script: Script, call: ast.Call) -> Edit:
    """The call on rank 0 only: its statement under a guard, or the call alone where its value is used or its arguments need all ranks,
    which meet there or take something out of a list."""
    stmt = script.is_statement(call)
    if stmt is None or script.meets(stmt) or _takes_out(call):
        return MainOnly(script.span(call), f"{script.ddp}.main_only")
    return Enclose(script.span(stmt), script.span(stmt), f"if {script.ddp}.is_main():")
