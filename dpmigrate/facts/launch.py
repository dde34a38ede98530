"""Who starts the processes of a program, and what they are told: itself, a launcher, a tuner; environment variables; command-line options."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from dpmigrate.facts.dormant import dormant, is_dormant
from dpmigrate.facts.frameworks import RUNTIME, distributes, used
from dpmigrate.facts.names import FunctionNode, Names, position
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.roles import Roles
from dpmigrate.facts.told import PLACE, Told
from dpmigrate.model import is_main_guard

#: what makes processes, whatever they run
PROCESSES = frozenset({"torch.multiprocessing.spawn", "torch.multiprocessing.Process", "torch.multiprocessing.start_processes", "multiprocessing.Process"})
#: methods of pools, executors and contexts that run a function they are given
_POOL_METHODS = frozenset({"Process", "map", "map_async", "starmap", "starmap_async", "imap", "imap_unordered", "apply", "apply_async", "submit"})
#: tuners choose the settings of each run anew, in every process for itself
_TUNERS = ("wandb.agent", "hyperopt.fmin", "ray.", "skopt.", "nevergrad.")
#: what torchrun tells each process
LAUNCH_VARIABLES = frozenset({"MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK"})


@dataclass(frozen=True, eq=False, slots=True)
class Starter:
    """A call or decorator that runs functions of this program elsewhere or again; ``by``: process, pool, thread or tuner."""

    node: ast.expr
    by: str


def starters(roles: Roles) -> Iterator[Starter]:
    """What runs the training outside the program's own flow; processes count whatever they run."""
    for call in roles.calls:
        dotted = roles.names.dotted(call.func)
        if dotted in PROCESSES:
            yield Starter(call, "process")
        elif by := _runner(call, dotted):
            if any(_trains(roles, a) for a in [*call.args, *(k.value for k in call.keywords)]):
                yield Starter(call, by)
    for node in roles.names.opened:
        if isinstance(node, FunctionNode) and roles.reaches_backward(node):
            for d in node.decorator_list:
                if roles.names.dotted(d.func if isinstance(d, ast.Call) else d) == "ray.remote":
                    yield Starter(d, "process")


def _runner(call: ast.Call, dotted: str) -> str:
    last = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if dotted.startswith(_TUNERS) or (last == "optimize" and not dotted):
        return "tuner"
    if dotted == "threading.Thread":
        return "thread"
    if dotted == "joblib.delayed" or (last in _POOL_METHODS and not dotted):
        return "process" if last == "Process" else "pool"
    return ""


def _runs_something_else(roles: Roles, call: ast.Call) -> bool:
    """Whether the processes run a function of the program that neither trains nor sets up a process group: they prepare files."""
    given = [*call.args, *(k.value for k in call.keywords)]
    functions = {v.node for a in given for v in roles.values.eval(a) if v.kind == "func"}
    group = [c for c in roles.calls if roles.names.dotted(c.func) == "torch.distributed.init_process_group"]
    entered = functions | {f for g in functions for f in roles.all_entered(g)}
    return bool(functions) and not any(_trains(roles, a) for a in given) and not any(roles.names.function(c) in entered for c in group)


def _trains(roles: Roles, given: ast.expr) -> bool:
    """Whether the argument is a function of the program that trains: by name, as a method, through ``partial`` or a lambda."""
    if roles.reaches_backward(given):
        return True  # a lambda
    for n in walk(given):
        name = n.id if isinstance(n, ast.Name) else n.attr if isinstance(n, ast.Attribute) else ""
        if name and any(isinstance(f, FunctionNode) and f.name == name and roles.reaches_backward(f) for f in roles.names.opened):
            return True
    return False


# ---------------------------------------------------------------------- environment variables
@dataclass(frozen=True, eq=False, slots=True)
class EnvironmentWrite:
    """An environment variable that the script sets; ``node`` is its statement, or the dict or call that gives ``os.environ.update`` several.

    ``value`` is what it has then; None where it may have another one already.
    """

    name: str
    node: ast.stmt | ast.Dict | ast.Call
    value: ast.expr | None = None


def environment_writes(names: Names) -> Iterator[EnvironmentWrite]:
    """``os.environ["X"] = …``, ``os.environ.setdefault("X", …)``, ``os.putenv``, ``os.environ.update({"X": …})``, as statements."""
    for node in names.nodes:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(target := node.targets[0], ast.Subscript):
            if names.dotted(target.value) == "os.environ" and (name := _string(target.slice)):
                yield EnvironmentWrite(name, node, node.value)
        elif isinstance(node, ast.Expr) and isinstance(call := node.value, ast.Call):
            dotted = names.dotted(call.func)
            if dotted in ("os.environ.setdefault", "os.putenv") and call.args and (name := _string(call.args[0])):
                yield EnvironmentWrite(name, node)
            elif dotted == "os.environ.update":
                given = (d for d in call.args if isinstance(d, ast.Dict))
                yield from (EnvironmentWrite(name, d, v) for d in given for k, v in zip(d.keys, d.values, strict=True) if (name := _string(k)))
                yield from (EnvironmentWrite(k.arg, call, k.value) for k in call.keywords if k.arg)


def chosen_gpus(names: Names) -> int | None:
    """How many GPUs the program chooses by CUDA_VISIBLE_DEVICES; None where it does not, where that depends on something, or is no list of numbers."""
    numbers: set[int] = set()
    for write in environment_writes(names):
        if write.name != "CUDA_VISIBLE_DEVICES":
            continue
        ids = write.value.value if isinstance(write.value, ast.Constant) else None
        tests = (a for a in names.ancestors(write.node) if isinstance(a, ast.If) and not is_main_guard(a))
        if not isinstance(ids, str) or any(True for _ in tests) or not all(one.strip().isdecimal() for one in ids.split(",")):
            return None
        numbers.add(len(ids.split(",")))
    return numbers.pop() if len(numbers) == 1 else None


def _string(node: ast.AST | None) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


# ---------------------------------------------------------------------- programs with a distributed mode of their own
#: what works with a process group only
_EXCHANGES = frozenset(
    {"torch.utils.data.DistributedSampler", "torch.utils.data.distributed.DistributedSampler"}
    | {f"torch.distributed.{n}" for n in ("all_reduce", "all_gather", "all_gather_object", "broadcast", "broadcast_object_list", "reduce", "gather", "scatter")}
)
_QUESTIONS = frozenset(f"torch.distributed.{n}" for n in ("get_rank", "get_world_size", "barrier"))


def distributed(roles: Roles) -> Told | None:
    """What shows that the program runs on several processes already; None if nothing does."""
    unused = dormant(roles.names)
    framework = min(used(roles.names, unused), key=lambda found: (found[1] != RUNTIME, position(found[0])), default=None)
    if framework is not None:
        return Told(f"already uses {framework[1]} ({PLACE})", framework[0])
    group = _group_use(roles, unused)
    return Told(f"already uses a process group that code outside of this program sets up ({PLACE})", group) if group is not None else None


def uses_own_mode(names: Names, node: ast.AST) -> bool:
    """Whether the node works with torch's process group, or with a wrapper or sampler for one."""
    dotted = names.dotted(node) if isinstance(node, ast.Attribute | ast.Name) else ""
    return dotted in _EXCHANGES | _QUESTIONS or distributes(dotted)


def _group_use(roles: Roles, unused: frozenset[ast.AST]) -> ast.Call | None:
    """What fails without a process group, in a file that sets up none; questions for the rank may be asked where there is a group only."""
    calls = {n: roles.names.dotted(n.func) for n in roles.calls if not is_dormant(roles.names, n, unused)}
    asks = any(d in ("torch.distributed.is_initialized", "torch.distributed.is_available") for d in calls.values())
    wanted = _EXCHANGES if asks else _EXCHANGES | _QUESTIONS
    return next((n for n, d in calls.items() if d in wanted and not _switched_off(roles, n)), None)


def _switched_off(roles: Roles, node: ast.AST) -> bool:
    """Whether the node stands under a test of a constant that is false: ``USE_TPU = False``, and ``if USE_TPU:``."""
    inner = node
    for above in roles.names.ancestors(node):
        if isinstance(above, ast.If) and inner in above.body and isinstance(above.test, ast.Name | ast.Attribute):
            given = roles.given(above.test)
            if given and all(isinstance(g, ast.Constant) and not g.value for g in given):
                return True
        inner = above
    return False


def own_start(roles: Roles) -> Told | None:
    """How a program that sets up its own process group has to be started, where that is not as torchrun does it; None where it is.

    It starts the processes that train itself, or takes its number from an option that torchrun does not give.
    """
    names = roles.names
    unused = dormant(names)
    started = (c for c in roles.calls if names.dotted(c.func) in PROCESSES and not _runs_something_else(roles, c))
    spawn = next((c for c in started if not is_dormant(names, c, unused)), None)
    if spawn is not None:
        test = next((a.test for a in names.ancestors(spawn) if isinstance(a, ast.If) and not is_main_guard(a) and _in_body(names, spawn, a)), None)
        where = f" where {ast.unparse(test)}" if test is not None else ""
        return Told(f"start it with python, not torchrun: it starts its processes itself ({PLACE}{where})", spawn)
    if any(_string(n) == "LOCAL_RANK" for n in names.nodes if isinstance(n, ast.Constant)):
        return None
    option = next((c for word in ("add_argument", "option") for c in names.calls(word) if _is_local_rank(c)), None)
    if option is None:
        return None
    default = next((ast.unparse(k.value) for k in option.keywords if k.arg == "default"), "0")
    return Told(
        f"torchrun gives no {_string(option.args[0])} ({PLACE}), so every process would take it for {default}: "
        f'let the option have default=int(os.environ.get("LOCAL_RANK", {default}))',
        option,
    )


def _is_local_rank(call: ast.Call) -> bool:
    return bool(call.args) and _string(call.args[0]).lstrip("-").replace("-", "_") == "local_rank"


def _in_body(names: Names, node: ast.AST, test: ast.If) -> bool:
    return any(names.is_inside(node, s) for s in test.body)
