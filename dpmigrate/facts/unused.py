"""Which parts of a model get no gradient in some training step: layers that no pass uses, or only some.

DDP waits for the gradient of every parameter. A part is named only where the whole file shows it: made without a condition in ``__init__``,
and read nowhere else, or read in ``forward`` only behind a test, or by an index, that changes from step to step.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dpmigrate.facts.definitions import arguments
from dpmigrate.facts.library import INNER_MODULES, MOVES, PARAMETERS, SETTINGS
from dpmigrate.facts.names import FunctionNode, last, position
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.outputs import idle_parts
from dpmigrate.facts.passes import handed
from dpmigrate.facts.roles import Roles
from dpmigrate.facts.values import Vals

_LAYERS = frozenset(
    {
        "Linear",
        "Bilinear",
        "LazyLinear",
        "LayerNorm",
        "GroupNorm",
        "RMSNorm",
        "Embedding",
        "EmbeddingBag",
        "RNN",
        "LSTM",
        "GRU",
        "RNNCell",
        "LSTMCell",
        "GRUCell",
    }
    | {"MultiheadAttention", "PReLU", "Parameter"}
)
_FAMILIES = ("Conv", "LazyConv", "BatchNorm", "Transformer")
_HOLDERS = frozenset({"Sequential", "ModuleList", "ModuleDict"})
_RANDOM = ("torch.rand", "random.", "numpy.random.", "torch.bernoulli", "torch.multinomial")
_OF_DATA = frozenset({"item", "any", "all", "mean", "sum", "max", "min", "norm"})
#: what is asked of a part without a pass through it
_UPKEEP = PARAMETERS | SETTINGS | MOVES | {"state_dict", "load_state_dict", "apply"}
_ALL_PARTS = INNER_MODULES | {"_modules", "__dict__", "get_submodule"}


@dataclass(frozen=True, eq=False, slots=True)
class Unused:
    """A part of a class of the program, made in ``node``. ``test`` is what decides whether a step uses it; None: no step does.

    ``idle``: it is used, but only for outputs of the model that no loss is made of.
    """

    cls: ast.ClassDef
    name: str
    node: ast.stmt
    test: ast.expr | None
    by_data: bool = False  # the test looks at the samples
    idle: bool = False


def partly_used(roles: Roles, models: Vals) -> list[Unused]:
    """The parts of these models, and of the modules they are made of, that not every training step uses."""
    if any(True for _ in handed(roles)):  # another file's function trains with the model: what it uses is not seen
        return []
    whole = {v.cls for v in models}
    found = [u for c in own_classes(roles, models) for u in _of_class(roles, c, idle_parts(roles, c, models) if c in whole else frozenset())]
    return sorted({u.node: u for u in found}.values(), key=lambda u: position(u.node))


def own_classes(roles: Roles, models: Vals) -> list[ast.ClassDef]:
    """The module classes of the program that the models are made of."""
    classes: list[ast.ClassDef] = []
    todo = [c for v in sorted(models, key=lambda v: position(v.node)) for c in ((v.cls,) if v.cls is not None else _contained(roles, v.node))]
    while todo:
        cls = todo.pop(0)
        if cls not in classes and roles.values.defs.is_module_class(cls):
            classes.append(cls)
            todo += [v.cls for b in roles.values.defs.bases(cls) for v in _made_in(roles, b) if v.cls is not None]
    return classes


def _contained(roles: Roles, made: ast.AST) -> list[ast.ClassDef]:
    """The program's classes in a container of torch: ``nn.Sequential(nn.Linear(8, 8), Own(8))``."""
    parts = (a for c in walk(made) if isinstance(c, ast.Call) and roles.names.dotted(c.func).startswith("torch.nn.") for a in c.args)
    found = {v.cls: position(v.cls) for a in parts for v in roles.values.eval(a) if v.kind == "object" and v.cls is not None}
    return sorted(found, key=lambda c: found[c])


def _made_in(roles: Roles, node: ast.AST) -> Vals:
    calls = (n for n in walk(node) if isinstance(n, ast.Call))
    return frozenset(v for c in calls for v in roles.values.eval(c.func) if v.kind == "class")


def _of_class(roles: Roles, cls: ast.ClassDef, idle: frozenset[str]) -> Iterator[Unused]:
    defs, names = roles.values.defs, roles.names
    family = defs.bases(cls)
    outside = [b for c in family for b in c.bases if names.dotted(b) not in ("torch.nn.Module", "torch.nn.modules.Module")]
    if any(not any(isinstance(b, ast.Name) and b.id == c.name for c in family) for b in outside) or defs.method(cls, "forward") is None:
        return
    if any(_means_all_parts(roles, c) for c in family):
        return
    for stmt, name, value in _parts(family):
        named = [n for n in names.attributes(name) if not _of_another(roles, cls, n)]
        if not _trainable(roles, value) or _stored_again(roles, named, stmt) or _frozen(roles, named):
            continue
        # under no_grad a layer works, but gets no gradient; args.aux is not self.aux
        loads = [n for n in named if isinstance(n.ctx, ast.Load) and (_of_self(n) or not _of_setting(roles, n))]
        reads = [n for n in loads if not _upkeep(roles, n) and not roles.quiet(n)]
        if not reads:
            yield Unused(cls, name, stmt, None)
        elif name in idle and all(_of_self(n) for n in reads):
            yield Unused(cls, name, stmt, None, idle=True)
        else:
            used = [n for n in reads if not _asked_for(roles, n)] or reads
            tests = [_decides(roles, n) or _by_setting(roles, n) for n in used]
            if all(t is not None for t in tests) and not any(_made_so(roles, stmt, t) for t in tests if t is not None):
                test = tests[0]
                assert test is not None
                yield Unused(cls, name, stmt, test, any(_varies(roles, t, 4) == "data" for t in tests if t is not None))


def _parts(family: list[ast.ClassDef]) -> Iterator[tuple[ast.stmt, str, ast.expr]]:
    """What ``__init__`` gives to self once, also under a test."""
    for cls in family:
        init = next((n for n in cls.body if isinstance(n, FunctionNode) and n.name == "__init__"), None)
        for stmt in _statements(init.body if init is not None else []):
            if isinstance(stmt, ast.Assign) and len(stmt.targets) == 1 and _of_self(stmt.targets[0]):
                assert isinstance(stmt.targets[0], ast.Attribute)
                yield stmt, stmt.targets[0].attr, stmt.value


def _statements(block: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a block, with those under tests."""
    for stmt in block:
        yield stmt
        if isinstance(stmt, ast.If):
            yield from _statements([*stmt.body, *stmt.orelse])


def _asked_for(roles: Roles, node: ast.Attribute) -> bool:
    """Whether a read asks only whether the layer is there: ``self.downsample is not None``."""
    above = roles.names.parent[node]
    return isinstance(above, ast.Compare) and isinstance(above.ops[0], ast.Is | ast.IsNot)


def _made_so(roles: Roles, made: ast.stmt, test: ast.expr) -> bool:
    """Whether the tests under which a layer is made may be the one under which it is used: by the names in both, or in what these are given."""
    above = [a.test for a in roles.names.ancestors(made) if isinstance(a, ast.If)]
    return bool(above) and bool(_words(roles, test, 2) & set().union(*(_words(roles, t, 2) for t in above)))


def _words(roles: Roles, node: ast.AST, depth: int) -> set[str]:
    """The variables in an expression, and in what they are given."""
    names = [n for n in walk(node) if isinstance(n, ast.Name | ast.Attribute) and last(n) != "self"]
    given = [g for n in names for g in roles.given(n)] if depth else []
    return {last(n) for n in names}.union(*(_words(roles, g, depth - 1) for g in given))


def _of_self(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


def _of_another(roles: Roles, cls: ast.ClassDef, node: ast.Attribute) -> bool:
    """Whether the attribute is one of another class, which has parts of the same names: ``self.fc`` in a model that an option chooses in its place."""
    own = roles.names.cls(node) if _of_self(node) else None
    return own is not None and own not in roles.values.defs.bases(cls) and cls not in roles.values.defs.bases(own)


def _of_setting(roles: Roles, node: ast.Attribute) -> bool:
    """Whether the attribute is read in a model from a variable that is none."""
    return isinstance(node.value, ast.Name) and roles.inside_module(node)


def _trainable(roles: Roles, value: ast.expr, seen: frozenset[ast.AST] = frozenset()) -> bool:
    """Whether the expression makes layers with parameters of their own, as far as the program shows."""
    if isinstance(value, ast.ListComp | ast.GeneratorExp):
        return _trainable(roles, value.elt, seen)
    if isinstance(value, ast.List | ast.Tuple):
        return any(_trainable(roles, e, seen) for e in value.elts)
    if isinstance(value, ast.Dict):
        return any(_trainable(roles, e, seen) for e in value.values)
    if not isinstance(value, ast.Call):
        return False
    dotted = roles.names.dotted(value.func)
    if dotted.startswith("torch.nn."):
        word = dotted.rsplit(".", 1)[-1]
        if word in _HOLDERS:
            return any(_trainable(roles, a, seen) for a in value.args)
        plain = any(k.arg in ("requires_grad", "affine", "elementwise_affine") for k in value.keywords)
        return (word in _LAYERS or word.startswith(_FAMILIES)) and not plain
    classes = [v.cls for v in roles.values.eval(value.func) if v.kind == "class" and v.cls is not None and v.cls not in seen]
    return any(_trainable(roles, e, seen | {c}) for c in classes for _, _, e in _parts(roles.values.defs.bases(c)))


def _stored_again(roles: Roles, named: Sequence[ast.Attribute], made: ast.stmt) -> bool:
    """Whether another statement stores the part; ``self.down = None`` before it stores nothing."""
    others = {roles.names.statement(n) for n in named if not isinstance(n.ctx, ast.Load)} - {made}
    empty = {s for s in others if isinstance(s, ast.Assign | ast.AnnAssign) and isinstance(s.value, ast.Constant) and position(s) < position(made)}
    return others != empty


def _frozen(roles: Roles, named: Sequence[ast.Attribute]) -> bool:
    """``for p in self.name.parameters(): p.requires_grad = False`` and the like."""
    for n in named:
        stmt = roles.names.statement(n)
        if any(isinstance(x, ast.Attribute) and x.attr in ("requires_grad", "requires_grad_") for x in walk(stmt)):
            return True
    return False


def _means_all_parts(roles: Roles, cls: ast.ClassDef) -> bool:
    """Whether the class goes through its parts without naming them, in more than a loop that initialises."""
    for n in walk(cls):
        if isinstance(n, ast.Attribute) and n.attr in _ALL_PARTS and not _initialises(roles, n):
            return True
        if isinstance(n, ast.Call) and roles.names.dotted(n.func) in ("?.getattr", "?.vars"):
            return True
    return False


def _initialises(roles: Roles, node: ast.AST) -> bool:
    function = roles.names.function(node)
    return isinstance(function, FunctionNode) and any(w in function.name for w in ("init", "reset")) and isinstance(roles.names.statement(node), ast.For)


def _upkeep(roles: Roles, node: ast.Attribute) -> bool:
    """A read that is no pass: in a statement of ``__init__`` that only initialises, or of ``.parameters()`` and the like."""
    names = roles.names
    above = names.parent[node]
    if isinstance(above, ast.Attribute) and above.attr in _UPKEEP:
        return True
    while isinstance(above, ast.Attribute):  # self.fc.bias.data = …
        if isinstance(above.ctx, ast.Store):
            return True
        above = names.parent[above]
    function = names.function(node)
    if not isinstance(function, FunctionNode) or not roles.inside_module(node) or not any(w in function.name for w in ("init", "reset")):
        return False
    return isinstance(names.statement(node), ast.Expr)


# ---------------------------------------------------------------------- what decides whether a read runs
def _decides(roles: Roles, node: ast.AST) -> ast.expr | None:
    """The test or index, different from step to step, on which it depends whether the read's layer runs; None where it always may."""
    names = roles.names
    above = names.parent[node]
    if isinstance(above, ast.Subscript) and above.value is node and _varies(roles, above.slice, 4):
        return above.slice
    loop = next((a for a in names.ancestors(node) if isinstance(a, ast.For) and names.is_inside(node, a.iter)), None)
    if loop is not None:
        targets = {n.id for n in walk(loop.target) if isinstance(n, ast.Name)}
        called = [n for s in loop.body for n in walk(s) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id in targets]
        tests = [_decides(roles, c.func) for c in called]
        if tests and all(t is not None for t in tests):
            return tests[0]
        left = _leaves(loop)
        if left is not None:
            return left
    text = ast.unparse(node)
    inner = node
    for a in names.ancestors(node):
        if isinstance(a, FunctionNode):
            break
        if isinstance(a, ast.If | ast.IfExp) and inner is not a.test and _varies(roles, a.test, 4) and not _elsewhere(a, inner, text):
            return a.test
        inner = a
    return _left_before(roles, node)


def _leaves(loop: ast.For) -> ast.expr | None:
    """The test by which a loop over layers may end before the last of them, which then have no gradient; ``len(layers)`` in it means the last one."""
    for n in (n for s in loop.body for n in walk(s) if isinstance(n, ast.If)):
        ends = any(isinstance(s, ast.Break | ast.Return) for s in (*n.body, *n.orelse))
        if ends and not any(isinstance(c, ast.Call) and last(c.func) == "len" for c in walk(n.test)):
            return n.test
    return None


def _by_setting(roles: Roles, node: ast.AST) -> ast.expr | None:
    """The test of a setting that may leave the layer out of a whole run: ``if self.use_aux:``; a test of the layer itself, or of the mode, is none."""
    text, inner = ast.unparse(node), node
    for a in roles.names.ancestors(node):
        if isinstance(a, FunctionNode):
            break
        if isinstance(a, ast.If | ast.IfExp) and inner is not a.test and not _elsewhere(a, inner, text):
            asked = [n for n in walk(a.test) if isinstance(n, ast.Attribute)]
            plain = not any(isinstance(n, ast.Call | ast.Is | ast.IsNot) for n in walk(a.test))
            if plain and asked and all(n.attr not in ("training", "shape", "ndim") and ast.unparse(n) != text for n in asked):
                return a.test
        inner = a
    return None


def _elsewhere(branch: ast.If | ast.IfExp, inner: ast.AST, text: str) -> bool:
    """Whether the other side of the test reads the same."""
    sides = (branch.body, branch.orelse) if isinstance(branch, ast.If) else ([branch.body], [branch.orelse])
    other = sides[1] if any(s is inner for s in sides[0]) else sides[0]
    return any(ast.unparse(n) == text for s in other for n in walk(s) if isinstance(n, ast.Attribute | ast.Name))


def _left_before(roles: Roles, node: ast.AST) -> ast.expr | None:
    """The test of an ``if`` before the read, in a block round it, that may leave the block: ``if torch.rand(1) < p: continue``."""
    stmt: ast.AST = roles.names.statement(node)
    while isinstance(stmt, ast.stmt) and not isinstance(stmt, FunctionNode):
        block = roles.names.block(stmt)
        for earlier in block[: block.index(stmt)]:
            if isinstance(earlier, ast.If) and isinstance(earlier.body[-1], ast.Continue | ast.Break | ast.Return) and _varies(roles, earlier.test, 4):
                return earlier.test
        stmt = roles.names.parent[stmt]
    return None


def _varies(roles: Roles, node: ast.AST, depth: int) -> str:
    """Why the expression has another value in another step: 'random', 'data', 'step'; '' where nothing shows that it has."""
    called = [n for n in walk(node) if isinstance(n, ast.Call)]
    if any(roles.names.dotted(c.func).startswith(_RANDOM) for c in called):
        return "random"  # also torch.rand(1).item()
    for n in walk(node):
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr in _OF_DATA:
            dotted = roles.names.dotted(n.func)
            asked = n.func.value if not dotted else n.args[0] if dotted.startswith("torch.") and n.args else None
            if asked is not None and not ast.unparse(asked).startswith("self."):
                return "data"
        if isinstance(n, ast.Name) and depth and (n is node or _by_value(roles, n)):
            for b in roles.names.bindings(roles.names.scope_of[n], n.id):
                why = ""
                if b.how == "param" and isinstance(b.target, ast.arg):
                    why = _given(roles, b.target, n.id, depth - 1)
                elif b.how == "assign" and b.value is not None and not roles.names.is_inside(n, b.value):
                    why = _varies(roles, b.value, depth - 1)
                elif b.how == "aug" or (b.how == "for" and not roles.inside_module(n)):
                    why = "step"
                elif b.how == "for" and isinstance(b.value, ast.Call) and roles.names.dotted(b.value.func) == "?.range":
                    why = next((w for a in b.value.args if (w := _varies(roles, a, depth - 1))), "")
                if why:
                    return why
    return ""


def _by_value(roles: Roles, node: ast.Name) -> bool:
    """Whether the value itself counts: not its shape, its type, or that it is there."""
    above = roles.names.parent[node]
    if isinstance(above, ast.Compare):
        return not any(isinstance(op, ast.Is | ast.IsNot) for op in above.ops)
    if isinstance(above, ast.Call):
        return roles.names.dotted(above.func) in ("?.str", "?.int")
    return isinstance(above, ast.BinOp | ast.BoolOp | ast.UnaryOp | ast.FormattedValue | ast.JoinedStr)


def _given(roles: Roles, parameter: ast.arg, name: str, depth: int) -> str:
    """Why the calls of a function, or training passes of a model, give a parameter another value in another step."""
    function = roles.names.scope_of[parameter].node
    if not isinstance(function, FunctionNode):
        return ""
    given = [roles.passed(c, function, name) for c in roles.values.callers.get(function, [])]
    for p in roles.training_passes:  # through the wrapper
        classes = [v.cls for m in roles.model_vals(p.model) for v in roles.values.inner(m) if v.cls is not None]
        if any(roles.values.defs.method(c, p.path or "forward") is function for c in classes):
            given += [e for n, e in arguments(p.call, function, 1) if n == name]
    return next((why for e in given if e is not None and (why := _varies(roles, e, depth))), "")
