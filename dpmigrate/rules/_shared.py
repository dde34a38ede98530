"""Small pieces that several rules need: texts of inserted code, never knowledge of a rule."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from itertools import takewhile

from dpmigrate.edit import After, Before, Delete, DropArg, DropItem, Edit, Enclose, MainOnly
from dpmigrate.edit import Wrap as Wrapped
from dpmigrate.facts import steps
from dpmigrate.facts.control import uniform
from dpmigrate.facts.filled import beginning, is_rows
from dpmigrate.facts.launch import EnvironmentWrite
from dpmigrate.facts.loops import BatchLoop
from dpmigrate.facts.losses import Norm
from dpmigrate.facts.names import FunctionNode, position
from dpmigrate.facts.outside import TRACKERS, changes_files, waits_for_somebody
from dpmigrate.facts.script import Script
from dpmigrate.facts.wraps import Wrap

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


def raise_on_ranks(script: Script, handler: ast.ExceptHandler) -> Edit:
    """The exception is raised again where there are several ranks: one cannot go on alone."""
    return Before(script.span(handler.body[0]), f"if {script.ddp}.world_size() > 1:\n    raise")


def unset(script: Script, write: EnvironmentWrite) -> Edit:
    """An environment variable is not set any more."""
    if isinstance(write.node, ast.Dict):
        return DropItem(script.span(write.node), write.name)
    return DropArg(script.span(write.node), write.name) if isinstance(write.node, ast.Call) else Delete(script.span(write.node))


def wrap_edit(script: Script, w: Wrap) -> Edit:
    """The edit that makes a wrap which no DataParallel call makes."""
    if w.how == "value" and isinstance(w.stmt, ast.Assign) and not downloads(script, w.stmt):
        return Wrapped(script.span(w.stmt.value), wrap_code(script, "{}", w))
    code = f"{w.target} = {wrap_code(script, w.target, w)}"
    return Before(script.span(w.stmt), code) if w.how == "before" else After(script.span(w.stmt), code)


def wrap_options(script: Script, w: Wrap) -> list[str]:
    """The options of ``ddp.wrap`` that this model needs."""
    return ["sync_bn"] * script.settings.sync_bn + ["find_unused"] * bool(script.unused(w))


def wrap_code(script: Script, target: str, w: Wrap) -> str:
    """``ddp.wrap(target)`` with its options."""
    return f"{script.ddp}.wrap({', '.join([target, *(f'{name}=True' for name in wrap_options(script, w))])})"


def downloads(script: Script, node: ast.AST) -> bool:
    """Whether running the node may fetch files: a data set with ``download=``, pretrained weights, a hub."""
    for c in ast.walk(node):
        if not isinstance(c, ast.Call):
            continue
        for k in c.keywords:
            off = isinstance(k.value, ast.Constant) and not k.value.value
            if k.arg in ("download", "pretrained") and not off:
                return True
            if k.arg == "weights" and not off and script.names.dotted(c.func).startswith("torchvision."):
                return True
        name = c.func.attr if isinstance(c.func, ast.Attribute) else c.func.id if isinstance(c.func, ast.Name) else ""
        dotted = script.names.dotted(c.func)
        if name == "from_pretrained" or dotted.startswith(("torch.hub.load", "torch.hub.download", "nltk.download", "gdown.", "torch.utils.model_zoo.")):
            return True
        if dotted.endswith((".urlretrieve", ".download_url", "datasets.load_dataset", ".snapshot_download", ".hf_hub_download")):
            return True
    return False


_DRAWS = ("random.", "numpy.random.", "torch.rand", "torch.multinomial", "torch.bernoulli", "torch.normal", "torch.nn.init.", "torch.nn.utils.prune.random")
_DRAWING = frozenset(
    {"shuffle", "choice", "choices", "sample", "permutation", "randint", "integers", "normal_", "uniform_", "random_", "bernoulli_", "reset_parameters"}
)


def draws(script: Script, node: ast.AST, seen: frozenset[ast.AST] = frozenset()) -> bool:
    """Whether the node, or a function of this file that it calls, draws random numbers."""
    for call in (n for n in ast.walk(node) if isinstance(n, ast.Call)):
        if script.names.dotted(call.func).startswith(_DRAWS) or (isinstance(call.func, ast.Attribute) and call.func.attr in _DRAWING):
            return True
        if any(f not in seen and draws(script, f, seen | {f}) for f, _ in script.values.targets(call)):
            return True
    return False


def methods_of_model(script: Script, call: ast.Call) -> list[FunctionNode]:
    """The methods of this file that a call of a model's method runs, also through the wrapper."""
    if not isinstance(call.func, ast.Attribute):
        return []
    models = [m for v in script.roles.model_vals(call.func.value) for m in script.values.inner(v)]
    found = (script.values.defs.method(m.cls, call.func.attr) for m in models if m.cls is not None)
    return [f for f in found if f is not None]


def scaler_name(script: Script) -> str:
    """The expression for the GradScaler of ``--amp`` in the training step: an attribute where steps and backwards are methods of one class."""
    found = steps.steps(script.roles)
    owners = {script.names.cls(n) for n in (*(s.call for s in found), *script.roles.backwards)}
    if len(owners) == 1 and all(script.text(s.receiver).startswith("self.") for s in found):
        return "self.grad_scaler" if script.names.attributes("scaler") else "self.scaler"
    return script.fresh("scaler")


def scales(script: Script) -> bool:
    """Whether ``--amp`` brings a GradScaler into this program."""
    return script.settings.amp and script.settings.amp_dtype == "float16" and script.own_amp is None


def scaled_backward(script: Script, backward: ast.Call) -> Edit:
    """What goes round the loss of a backward: times the world size where it is a sum, in the scaler where there is one."""
    assert isinstance(backward.func, ast.Attribute)
    node = backward.func.value
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "scale" and node.args:
        node = node.args[0]  # a scaler of the script's own
    template = f"{script.ddp}.sum_loss({{}})" if script.losses.of_backward(backward).norm is Norm.SUM else "{}"
    return Wrapped(script.span(node), f"{scaler_name(script)}.scale({template})" if scales(script) else template)


# ---------------------------------------------------------------------- where the ranks go together, and where they may part
def in_step(script: Script, node: ast.AST) -> bool:
    """Whether all ranks run the node together: its function is called from the module's own code, not by a worker process or a library."""
    todo, seen = [script.names.function(node)], set()
    while todo:
        function = todo.pop()
        if not isinstance(function, FunctionNode) or script.roles.reaches_backward(function):
            return True  # also a main() that app.run(main) calls: it trains
        if function not in seen:
            seen.add(function)
            todo += [script.names.function(c) for c in script.values.callers.get(function, [])]
    return False


def local_tests(script: Script, node: ast.AST) -> Iterator[ast.expr]:
    """The tests round a node, through the functions that lead to it, that may fall out differently on different ranks."""
    for place in script.leading_to(node):
        for a in script.names.ancestors(place):
            if isinstance(a, FunctionNode):
                break
            if isinstance(a, ast.If | ast.IfExp) and not script.names.is_inside(place, a.test) and not uniform(script.names, a.test):
                yield a.test


def ends_before(script: Script, place: ast.AST) -> Iterator[ast.expr]:
    """The tests of a ``return`` that would end a function before it comes to the place."""
    for node in script.leading_to(place):
        function = script.names.function(node)
        for r in ast.walk(function):
            if isinstance(r, ast.Return) and script.names.function(r) is function and position(r) < position(node):
                around = [a for a in script.names.ancestors(r) if isinstance(a, ast.If) and not script.names.is_inside(node, a)]
                yield from (a.test for a in around if script.names.function(a) is function and not uniform(script.names, a.test))


def together(script: Script, test: ast.expr) -> Edit:
    """The test as all ranks decide it.

    Between the epochs numbers are compared, and files looked at, as rank 0 sees them: any rank's would say yes more often than one process would.
    In the batch loop, and for flags, one rank's yes is enough: it may be the only one whose batch is bad, or that was told to stop.
    """
    numbers = asks_files(script, test) or (any(isinstance(n, ast.Compare) for n in ast.walk(test)) and script.roles.region(test) != "train")
    return Wrapped(script.span(test), f"{script.ddp}.{'from_main' if numbers else 'any_rank'}({{}})")


#: columns of a line that reduces several totals at once
_LINE = 120


def reduced(script: Script, function: str, names: Sequence[str], more: str = "") -> list[str]:
    """The statements that put reduced totals in the place of the local ones, in lines that can be read."""
    groups: list[list[str]] = []
    for name in names:
        size = len(f"{', '.join([*groups[-1], name])}") if groups else 0
        if groups and 2 * size + len(function + more) < _LINE - 20:
            groups[-1].append(name)
        else:
            groups.append([name])
    return [f"{', '.join(g)} = {script.ddp}.{function}({', '.join(g)}{more})" for g in groups]


def reached_together(script: Script, node: ast.AST) -> bool:
    """Whether all ranks come to the node when one does, as far as can be seen: then they may do something together there."""
    if any(True for _ in local_tests(script, node)) or any(True for _ in ends_before(script, node)):
        return False
    for place in script.leading_to(node):
        inner = place
        for a in takewhile(lambda a: not isinstance(a, FunctionNode), script.names.ancestors(place)):
            # what is written or told to a tracker is made by rank 0 alone; a finally is reached by the rank that failed
            if isinstance(a, ast.BoolOp | ast.ExceptHandler | ast.Call | ast.withitem) or (isinstance(a, ast.Try) and inner in a.finalbody):
                return False
            inner = a
    return True


def asks_files(script: Script, test: ast.expr) -> bool:
    """Whether the test looks at files, which another rank may be writing: ``os.path.exists(p)``, ``p.is_file()``."""
    called = [n.func for n in ast.walk(test) if isinstance(n, ast.Call)]
    return any(script.names.dotted(f).startswith(("os.path.", "os.listdir")) or (isinstance(f, ast.Attribute) and f.attr in _FILE_TESTS) for f in called)


_FILE_TESTS = frozenset({"exists", "is_file", "is_dir", "isfile", "isdir", "glob", "iterdir", "is_downloaded"})


def before_file_tests(script: Script, stmt: ast.stmt) -> ast.stmt:
    """The statement, or the outermost ``if`` round it that looks at files: what ranks do together must come before such a test."""
    found = stmt
    for a in script.names.ancestors(stmt):
        if isinstance(a, FunctionNode):
            break
        if isinstance(a, ast.If) and asks_files(script, a.test):
            found = a
    return found


def meets(script: Script, node: ast.AST) -> bool:
    """Whether running the node leads to a place at which every rank waits for the others."""
    functions = script.roles.all_entered(node)
    return any(script.names.is_inside(m, node) or script.names.function(m) in functions for m in script.meetings)


def plateau_metrics(script: Script) -> Iterator[ast.expr]:
    """What ReduceLROnPlateau schedulers are stepped on."""
    for call, func in script.methods("step"):
        metric = script.argument(call, "metrics", 0)
        if metric is not None and any(v.kind == "call" and v.qual.endswith(".ReduceLROnPlateau") for v in script.values.eval(func.value)):
            yield metric


def answers(script: Script) -> Iterator[ast.Call]:
    """The questions to somebody at the keyboard whose answer is used, and which all ranks come to."""
    yield from (c for c in script.roles.calls if waits_for_somebody(script.names, c) and script.is_statement(c) is None and in_step(script, c))


def late_loads(script: Script) -> Iterator[ast.Call]:
    """The ``torch.load`` calls that may read a file which this program has just written."""
    if any(True for _ in script.calls("torch.save")):
        yield from (c for c in script.calls("torch.load") if _after_training(script, c, frozenset()))


def _after_training(script: Script, node: ast.AST, seen: frozenset[ast.AST]) -> bool:
    """Whether training may have run before the node: an earlier statement of its function, or of a caller, reaches backward."""
    function = script.names.function(node)
    for stmt in (n for s in function.body for n in ast.walk(s) if isinstance(n, ast.stmt)):
        if isinstance(stmt, FunctionNode | ast.ClassDef) or script.names.function(stmt) is not function:
            continue
        if position(stmt) < position(node) and not script.names.is_inside(node, stmt) and script.roles.reaches_backward(stmt):
            if not script.values.order.other_branch(node, stmt):
                return True
    for a in script.names.ancestors(node):
        if isinstance(a, ast.For | ast.While) and script.names.function(a) is function and script.roles.reaches_backward(a):
            return True
    if not isinstance(function, FunctionNode) or function in seen:
        return False
    return any(_after_training(script, c, seen | {function}) for c in script.values.callers.get(function, []))


# ---------------------------------------------------------------------- what only rank 0 does
def left_to_main(script: Script, node: ast.AST) -> bool:
    """Whether the node stands in a statement that only rank 0 will run."""
    stmt = script.names.statement(node)
    if not (isinstance(stmt, ast.Expr) and isinstance(stmt.value, ast.Call)):
        return False
    call = stmt.value
    return changes_files(script.values, call) or waits_for_somebody(script.names, call) or script.names.dotted(call.func).startswith(TRACKERS)


def by_main(script: Script, call: ast.Call) -> Edit:
    """The call on rank 0 only: its statement under a guard, or the call alone where its value is used or its arguments need all ranks."""
    stmt = script.is_statement(call)
    if stmt is None or meets(script, stmt):
        return MainOnly(script.span(call), f"{script.ddp}.main_only")
    return Enclose(script.span(stmt), script.span(stmt), f"if {script.ddp}.is_main():")


# ---------------------------------------------------------------------- counters
_ZEROS = frozenset({"torch.zeros", "numpy.zeros"})


def gathered_rows(script: Script, loop: BatchLoop) -> list[str]:
    """The lists that a training loop fills with rows, one a sample, and that are read after it."""
    return [f.name for f in script.counting(loop).filled if not f.obstacle and f.read_after and is_rows(script.names, loop, f)]


def from_zero(script: Script, loop: BatchLoop, name: str) -> bool:
    """Whether the counter is 0 (or a list empty) whenever the loop begins, so that its end is the sum over the batches and nothing else."""
    value = beginning(script.names, loop, name)
    return value is not None and _zero(script, value)


def why_whole(script: Script, loop: BatchLoop) -> str:
    """Why an evaluation loop is not split: what it does, counters that bring something along, batches that are kept for another loop; '' if it is."""
    count = script.counting(loop)
    if count.obstacle:
        return count.obstacle
    for c in count.counters:
        if not from_zero(script, loop, c.name):
            return f"{c.name} is not 0 when the loop begins"
    for m in count.meters:
        if not m.meter.from_zero:
            return f"{m.meter.name} is not reset when the loop begins"
    if not script.names.is_inside(loop.source, loop.node):
        kept = {ast.unparse(n) for n in ast.walk(loop.over) if isinstance(n, ast.Name)}
        for other in script.roles.batch_loops:
            if other is not loop and kept & {ast.unparse(n) for n in ast.walk(other.over) if isinstance(n, ast.Name)}:
                return f"the batches in {' and '.join(sorted(kept))} are used by another loop"
    return ""


def _zero(script: Script, node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return node.value == 0
    if isinstance(node, ast.List):
        return not node.elts
    if isinstance(node, ast.Call) and script.names.dotted(node.func) == "torch.tensor":
        return bool(node.args) and all(isinstance(n, ast.List | ast.Load) or (isinstance(n, ast.Constant) and n.value == 0) for n in ast.walk(node.args[0]))
    return isinstance(node, ast.Call) and script.names.dotted(node.func) in _ZEROS
