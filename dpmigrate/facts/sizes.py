"""Which expressions mean the batch size that a training loader is built with, and where that decides the rows of a tensor.

The setting stays the global batch size, of which a rank's batch is a part. *Counts* are the places where it is taken for the number of samples at hand: shapes,
draws, slices, comparisons with the size of a batch. Where a function is given the setting, each of its calls is judged by itself: one for a training step,
another one for evaluation or for a picture.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from dpmigrate.facts import batch
from dpmigrate.facts.definitions import arguments
from dpmigrate.facts.destinations import Destinations
from dpmigrate.facts.library import MAKES, MAKES_ALIKE, REPEATS
from dpmigrate.facts.loaders import starred
from dpmigrate.facts.names import FunctionNode, last
from dpmigrate.facts.nodes import walk

if TYPE_CHECKING:
    from dpmigrate.facts.script import Script

#: functions and methods whose arguments say how many rows there are
_SHAPES = (
    REPEATS
    | MAKES
    | MAKES_ALIKE
    | {"view", "reshape", "resize", "resize_", "unflatten", "split", "narrow", "broadcast_to", "eye", "arange"}
    | {"rand", "randn", "randint", "randperm", "permutation", "normal", "uniform", "standard_normal", "multinomial", "choice", "sample_n"}
)
#: constructors to which numbers are a shape, and a list is data
_TENSOR = re.compile(r"(Half|Float|Double|Byte|Char|Short|Int|Long|Bool)?Tensor")
_BATCH_SIZE = re.compile(r"(train_?)?(batch_?(size|sz)?|bs|bsz)", re.IGNORECASE)
_DEPTH = 4  # of attributes of one another


@dataclass(frozen=True, eq=False, slots=True)
class Count:
    """A place where the global batch size is taken for the number of samples at hand.

    ``node`` is the setting as it is read there, ``maker`` what it decides (call, slice, comparison), ``where``: train · both · model · position · samples.
    """

    node: ast.expr
    maker: ast.AST
    where: str


class Sizes:
    """The batch size of a program's training loaders."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.roles = script.roles
        self.names = script.names
        self.destinations = Destinations(script.roles)
        self._known: dict[Hashable, frozenset[Hashable]] = {}

    # ------------------------------------------------------------------ what means it
    @cached_property
    def settings(self) -> frozenset[Hashable]:
        """Everything that a size of a training loader comes from."""
        return frozenset(o for call in self.script.train_loader_calls for size in self._of_loader(call) for o in self._origins(size))

    def _of_loader(self, call: ast.Call) -> Iterator[ast.expr]:
        """Where a loader's batch size comes from; for one that code outside of the program makes, whatever is called so and may be given to it."""
        if self.roles.makes_loader(call):
            size = self.script.argument(call, "batch_size", 1)
            yield from [size] if size is not None else starred(self.script, call, "batch_size")
            return
        for node in self.names.nodes:
            if isinstance(node, ast.Attribute) and _BATCH_SIZE.fullmatch(node.attr):
                yield node
        for given in (*call.args, *(k.value for k in call.keywords)):
            if isinstance(given, ast.Name) and _BATCH_SIZE.fullmatch(given.id):
                yield given

    def _origins(self, node: ast.AST) -> frozenset[Hashable]:
        """The variables and settings whose value the expression is, through other names, parameters and attributes."""
        start = self._mark(node, ())
        if start not in self._known:
            found: set[Hashable] = set()
            todo: list[tuple[ast.AST, tuple[str, ...]]] = [(node, ())]
            while todo:
                expr, attributes = todo.pop()
                if isinstance(expr, ast.Call) and self.names.dotted(expr.func) == "?.int" and len(expr.args) == 1:
                    todo.append((expr.args[0], attributes))
                elif isinstance(expr, ast.Name | ast.Attribute) and (mark := self._mark(expr, attributes)) not in found and len(attributes) < _DEPTH:
                    found.add(mark)
                    todo += [(given, attributes) for given in self._given(expr)]
                    if isinstance(expr, ast.Attribute):
                        found |= {".".join((ast.unparse(expr), *attributes))} if _root(expr) not in ("self", "cls", "") else set()
                        todo.append((expr.value, (expr.attr, *attributes)))
            self._known[start] = frozenset(found)
        return self._known[start]

    def _given(self, node: ast.Name | ast.Attribute) -> list[ast.expr]:
        """What a variable is given, also a parameter of a lambda or of a method behind a wrapper."""
        return [*self.roles.given(node), *(e for _, e in self._calls_that_give(node) or () if e is not None)]

    def _mark(self, node: ast.AST, attributes: tuple[str, ...]) -> Hashable:
        """A variable with the attributes that are asked of it; of what no variable is known for, the node."""
        return (frozenset(self.roles.values.keys(node)) or id(node), attributes)

    def means(self, node: ast.expr) -> bool:
        """Whether the expression is the setting, and not the size of a batch at hand."""
        if not isinstance(node, ast.Name | ast.Attribute) or not isinstance(node.ctx, ast.Load):
            return False
        if isinstance(node, ast.Name):
            own = [b for b in self.names.bindings(self.names.scope_of[node], node.id) if b.how != "param"]
            if any(self.roles.region(b.target) != "outside" and not (b.value is not None and self._origins(b.value) & self.settings) for b in own):
                return False
        return bool(self._origins(node) & self.settings)

    # ------------------------------------------------------------------ where it counts samples
    @cached_property
    def counts(self) -> tuple[Count, ...]:
        """Every place where the setting is taken for the number of samples of a training step."""
        found: dict[ast.expr, Count] = {}
        for node in self.names.nodes:
            if isinstance(node, ast.Name | ast.Attribute) and self.means(node) and (maker := self.maker(node)) is not None:
                for count in self._judged(node, maker):
                    found.setdefault(count.node, count)
        return tuple(c for c in found.values() if not self._divided_before(c.node, found))

    def _divided_before(self, node: ast.expr, found: Mapping[ast.expr, Count], seen: frozenset[ast.expr] = frozenset()) -> bool:
        """Whether the size is a rank's already where it is handed on: ``self.batch_size`` of a class whose objects are given that of a rank."""
        given = [g for g in self._given(node) if g not in seen] if isinstance(node, ast.Name | ast.Attribute) else []
        return bool(given) and all(g in found or self._divided_before(g, found, seen | {node}) for g in given)

    @cached_property
    def smaller_left_out(self) -> tuple[Count, ...]:
        """Where a training step leaves a batch out that is smaller than the others: ``if len(x) != batch_size: continue``."""
        return tuple(c for c in self.counts if c.where == "train" and isinstance(c.maker, ast.Compare) and self._leaves_out(c.maker, c.node))

    def _leaves_out(self, test: ast.Compare, size: ast.expr) -> bool:
        above = self.names.parent[test]
        if not isinstance(above, ast.If) or above.test is not test or not isinstance(above.body[-1], ast.Continue | ast.Break):
            return False
        smaller = ast.Lt if test.comparators[0] is size else ast.Gt  # len(x) < size, size > len(x)
        return len(test.ops) == 1 and isinstance(test.ops[0], ast.NotEq | smaller)

    def maker(self, node: ast.expr) -> ast.AST | None:
        """What the setting decides the rows of; None where it counts no samples."""
        inner: ast.AST = node
        for a in itertools.takewhile(lambda a: not isinstance(a, ast.stmt | ast.Lambda), self.names.ancestors(node)):
            if isinstance(a, ast.Slice):
                return self.names.parent[a]
            if isinstance(a, ast.Compare):
                sides = [a.left, *a.comparators]
                return a if inner in sides and any(s is not inner and batch.size(self.roles, s) for s in sides) else None
            if isinstance(a, ast.BinOp) and isinstance(a.op, ast.Mult) and any(isinstance(s, ast.List) for s in (a.left, a.right)):
                return a  # [1] * batch_size
            if isinstance(a, ast.BinOp) and isinstance(a.op, ast.Sub) and any(s is not inner and batch.size(self.roles, s) for s in (a.left, a.right)):
                return a  # batch_size - x.size(0)
            if isinstance(a, ast.Call) and self.names.dotted(a.func) not in ("?.int", "torch.Size", "?.tuple", "?.list"):
                return self._call(a, node, inner)
            inner = a
        return None

    def _call(self, call: ast.Call, node: ast.expr, inner: ast.AST) -> ast.AST | None:
        if call in self.roles.loader_calls:
            return None
        if self._makes_model(call):
            return call if self._kept(call, node) else None
        name = last(call.func) if isinstance(call.func, ast.Name | ast.Attribute) else ""
        listed = isinstance(inner, ast.Tuple | ast.List | ast.Starred | ast.Call) or (isinstance(inner, ast.keyword) and isinstance(inner.value, ast.Tuple))
        if name in ("sample", "rsample"):
            drawn = isinstance(call.func, ast.Attribute) and any(v.qual.startswith("torch.distributions.") for v in self.roles.values.eval(call.func.value))
            return call if drawn or listed else None
        if any(True for _ in self.roles.values.targets(call)):
            return None  # a function of the program: its own shapes count
        if name in _SHAPES:
            return call
        if self.names.dotted(call.func) == "?.range":
            return call if len(call.args) == 1 and inner is node else None
        kinds = {name, *(last_of(v.qual) for v in self.roles.values.eval(call.func) if v.kind == "ext")}
        return call if any(_TENSOR.fullmatch(k) for k in kinds) and not isinstance(inner, ast.List | ast.Tuple) else None

    def _kept(self, call: ast.Call, node: ast.expr, above: frozenset[ast.AST] = frozenset()) -> bool:
        """Whether what the call makes may use the size; not where it is seen to be stored for nobody, or handed on to what does no more with it."""
        targets = list(self.roles.values.targets(call))
        for function, skip in targets:
            names = [name for name, e in arguments(call, function, skip) if any(n is node for n in walk(e))]
            reads = [n for name in names for n in self.names.uses(self.names.opened[function], name)]
            if not names or function in above or any(self._used(n, call, above | {function}) for n in reads):
                return True
        return not targets

    def _used(self, read: ast.expr, made: ast.Call, above: frozenset[ast.AST]) -> bool:
        """Whether a parameter may decide something where it is read."""
        stmt = self.names.parent[read]
        if isinstance(stmt, ast.Assign) and all(isinstance(t, ast.Attribute) for t in stmt.targets):
            return any(self._reads(n, made) for t in stmt.targets if isinstance(t, ast.Attribute) for n in self.names.attributes(t.attr))
        call = self.names.parent[stmt] if isinstance(stmt, ast.keyword) else stmt
        return not isinstance(call, ast.Call) or call.func is read or self._kept(call, read, above)

    def _reads(self, node: ast.Attribute, made: ast.Call) -> bool:
        """Whether an attribute is read, perhaps that of the object which a call makes: not where it is one of another known object, as ``args.batch_size``."""
        if not isinstance(node.ctx, ast.Load):
            return False
        owners = [v.node for v in self.roles.values.eval(node.value)]
        given = [e for n in owners if isinstance(n, ast.Call) and n is not made for e in (*n.args, *(k.value for k in n.keywords))]
        function = self.names.function(node)
        first = [a.arg for a in function.args.args[:1]] if isinstance(function, FunctionNode) else []
        own = any(isinstance(e, ast.Name) and e.id in first for e in (node.value, *given))
        return own or not owners or made in owners or any(v.node is made for e in given for v in self.roles.values.eval(e))

    def _judged(self, node: ast.expr, maker: ast.AST, seen: frozenset[ast.AST] = frozenset()) -> Iterator[Count]:
        if isinstance(maker, ast.Call) and self._makes_model(maker):
            yield Count(node, maker, "model")
            return
        if self._cut(maker):
            return
        where = self._where(maker)
        calls = self._calls_that_give(node)
        if calls is None or (where == "train" and self._for_all(node, calls)):
            if where:
                yield Count(node, maker, self._kind(maker) or where if where == "train" else where)
            return
        function = self.names.scope_of[node].node
        for call, given in calls if function not in seen else ():
            read = self.read_in(given)
            if read is None:
                continue
            if where and self.roles.reaches_backward(function):
                yield Count(node, maker, "both")  # the function trains by itself: its loader has another size
            else:
                yield from self._judged(read, call, seen | {function})

    def _cut(self, maker: ast.AST) -> bool:
        """Whether the rows stand in a variable that nobody reads but as ``rows[: x.size(0)]``: as many as a batch has."""
        stmt = self.names.statement(maker)
        target = stmt.targets[0] if isinstance(stmt, ast.Assign) and len(stmt.targets) == 1 else None
        if not isinstance(target, ast.Name):
            return False
        reads = [self.names.parent[n] for n in self.names.uses(self.names.scope_of[target], target.id)]
        cuts = [r.slice for r in reads if isinstance(r, ast.Subscript) and isinstance(r.slice, ast.Slice)]
        return bool(reads) and len(cuts) == len(reads) and all(
            c.lower is None and c.step is None and c.upper is not None and batch.size(self.roles, c.upper) for c in cuts
        )  # fmt: skip

    def _for_all(self, node: ast.expr, calls: list[tuple[ast.Call, ast.expr | None]]) -> bool:
        """Whether every call gives a parameter the setting for a training step, so that it can be made the rank's where it is used."""
        if self.roles.inside_module(node) or not all(self.read_in(e) for _, e in calls):
            return False
        trains = self.roles.reaches_backward(self.names.scope_of[node].node)
        return trains or all(self.roles.region(c) == "train" for c, _ in calls)

    def _makes_model(self, call: ast.Call) -> bool:
        return any(v.node is call for v in self.roles.models)

    def _where(self, maker: ast.AST) -> str:
        """Whether the rows belong to a training step (``train``), also to an evaluation (``both``), or to none ('')."""
        region = "eval" if (looks := self.destinations.looking.only(maker)) else self.roles.region(maker)
        if region in ("train", "both"):
            return region
        if not isinstance(maker, ast.Call | ast.BinOp):
            return ""
        around = set(self.names.ancestors(maker))
        if region == "eval" and (looks or not any(b.node in around for b in self.roles.train_loops)):
            return ""
        met = self.destinations.meets(maker)
        return "both" if len(met) == 2 else "train" if "train" in met else ""

    def _kind(self, maker: ast.AST) -> str:
        """What a rank's size would not make right: positions in the order of the data, and sums over samples whose divisor is another place."""
        if isinstance(maker, ast.Subscript):  # scores[i * batch_size : (i + 1) * batch_size]
            names = [n for n in walk(maker.slice) if isinstance(n, ast.Name) and not self.means(n)]
            return "position" if any(b.how in ("for", "aug") for n in names for b in self.names.bindings(self.names.scope_of[n], n.id)) else ""
        loop = self.names.parent[maker]
        if isinstance(loop, ast.For) and loop.iter is maker and any(self._adds(n) for s in loop.body for n in walk(s)):
            return "samples"
        return ""

    def _adds(self, node: ast.AST) -> bool:
        """``loss += …``, ``loss = loss + …``, ``losses.append(…)``"""
        if isinstance(node, ast.AugAssign):
            return self.roles.into_loss(node.target)
        if isinstance(node, ast.Assign):
            words = {n.id for t in node.targets for n in walk(t) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
            return self.roles.into_loss(*node.targets) and any(isinstance(n, ast.Name) and n.id in words for n in walk(node.value))
        return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "append" and self.roles.into_loss(node.func.value)

    def _calls_that_give(self, node: ast.expr) -> list[tuple[ast.Call, ast.expr | None]] | None:
        """The calls that give the setting its value here, where it is a parameter, each with what it gives; None where it is none."""
        if not isinstance(node, ast.Name):
            return None
        found = self.names.meant(node)
        bound = list(self.names.bindings(*found)) if found is not None else []
        function = found[0].node if found is not None else None
        if not bound or any(b.how != "param" for b in bound) or not isinstance(function, FunctionNode | ast.Lambda):
            return None
        if isinstance(function, ast.Lambda):
            return [(c, _of_lambda(function, c, node.id)) for c in self.roles.calls if any(v.node is function for v in self.roles.values.eval(c.func))] or None
        if self._builds_loader(function):
            return None
        return [(c, dict(arguments(c, function, skip)).get(node.id)) for c, skip in self._callers.get(function, [])] or None

    @cached_property
    def _callers(self) -> dict[FunctionNode, list[tuple[ast.Call, int]]]:
        """The calls of each function, also of a method of a model that is behind its wrapper in the migrated program."""
        out: dict[FunctionNode, list[tuple[ast.Call, int]]] = {}
        for call in self.roles.calls:
            found = list(self.roles.values.targets(call))
            if not found and isinstance(call.func, ast.Attribute):
                classes = {i.cls for v in self.roles.values.eval(call.func.value) for i in self.roles.values.inner(v) if i.cls is not None}
                methods = [self.roles.values.defs.method(c, call.func.attr) for c in classes]
                found = [(m, 1) for m in methods if m is not None]
            for function, skip in found:
                out.setdefault(function, []).append((call, skip))
        return out

    def _builds_loader(self, function: FunctionNode) -> bool:
        """Whether the function makes the training loader itself, in the size that it is given."""
        return any(self.names.is_inside(c, function) for c in self.script.train_loader_calls)

    def read_in(self, given: ast.expr | None) -> ast.expr | None:
        """Where an expression reads the setting."""
        return next((n for n in walk(given) if isinstance(n, ast.Name | ast.Attribute) and self.means(n)), None) if given is not None else None


def _of_lambda(function: ast.Lambda, call: ast.Call, name: str) -> ast.expr | None:
    """What a call gives to a parameter of a lambda."""
    given = dict(zip((a.arg for a in function.args.args), call.args, strict=False)) | {k.arg: k.value for k in call.keywords if k.arg is not None}
    return given.get(name)


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def last_of(dotted: str) -> str:
    """The last word of a dotted name."""
    return dotted.rsplit(".", 1)[-1]
