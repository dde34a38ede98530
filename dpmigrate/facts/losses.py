"""What the loss that goes into ``backward()`` is normalised by: the batch (a mean), nothing (a sum), or something else.

DDP averages gradients over the ranks. A mean over the batch comes out right, a sum comes out W times too small, a mean over
anything that is not the batch (valid tokens, class weights) comes out slightly wrong.
"""

from __future__ import annotations

import ast
import enum
import sys
from dataclasses import dataclass
from functools import cached_property
from typing import TypeGuard

from dpmigrate.facts import batch, copies, criteria, local, passes, selections, weights
from dpmigrate.facts.library import FLOATS, MOVES
from dpmigrate.facts.names import FunctionNode, position
from dpmigrate.facts.neighbours import first_axis_is_time
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.numbers import Numbers
from dpmigrate.facts.reductions import mean_of_samples, over_batch
from dpmigrate.facts.roles import Roles
from dpmigrate.facts.rows import Rows
from dpmigrate.facts.samples import of_batch
from dpmigrate.facts.weights import Weighted


class Norm(enum.Enum):
    """How a loss depends on the size of the batch."""

    MEAN = "mean"
    SUM = "sum"
    CONST = "const"  # does not depend on the batch: a regulariser, a number
    WEIGHTED = "weighted"  # mean over weights or valid targets
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Loss:
    """A norm with the node that decides it."""

    norm: Norm
    node: ast.AST
    why: str = ""


_FUNCTIONAL = "torch.nn.functional."
#: losses that are a mean over the elements of their targets
_BY_ELEMENT = frozenset({
    "MSELoss", "L1Loss", "SmoothL1Loss", "HuberLoss", "BCELoss", "BCEWithLogitsLoss", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss",
    "binary_cross_entropy", "binary_cross_entropy_with_logits",
})  # fmt: skip
#: losses with class weights and an ignored index
_CROSS = frozenset({"CrossEntropyLoss", "NLLLoss", "NLLLoss2d", "cross_entropy", "nll_loss"})
#: functions of which the mean of two values is not the value of their mean
_CURVED = frozenset({"sqrt", "rsqrt", "square", "pow", "log", "log2", "log10", "log1p", "exp", "exp2", "expm1", "reciprocal", "tanh", "sigmoid"})
_SELECTED = "over what is selected of the batch, of which every rank has another number"
_CHOICE = "the loss is a mean or a sum, by which function the program chooses"
_FIXED = frozenset({"torch.tensor", "torch.as_tensor", "torch.zeros", "torch.ones", "torch.Tensor", "torch.FloatTensor"})
_KEEP = MOVES | FLOATS | {"contiguous", "squeeze", "unsqueeze", "view", "reshape", "clone", "scale", "requires_grad_"}


#: expressions that are being classified one inside another
BUSY_LIMIT = 80
_UNCUT = sys.maxsize


@dataclass(frozen=True, slots=True)
class _Found:
    """What is known of an expression: its norm, and the means that it is made of."""

    loss: Loss
    weighted: dict[int, Weighted]
    means: dict[int, ast.Call]
    sums: dict[int, ast.expr]


def differentiated(backward: ast.Call) -> ast.expr:
    """The loss of a ``x.backward()`` call, without a scaler of the program's own round it."""
    assert isinstance(backward.func, ast.Attribute)
    node = backward.func.value
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "scale" and node.args:
        node = node.args[0]
    return node


class Losses:
    """Classifies the expressions that are differentiated."""

    def __init__(self, roles: Roles) -> None:
        self.roles = roles
        self.names = roles.names
        self.numbers = Numbers(roles)
        self._busy: dict[int, int] = {}  # id of a node that is being classified -> its depth
        self._cut = _UNCUT  # the outermost of these that has been met again
        self._known: dict[int, _Found] = {}
        self._weighted: dict[int, Weighted] = {}
        self._means: dict[int, ast.Call] = {}
        self._sums: dict[int, ast.expr] = {}
        self._averaged = frozenset(id(a.total.node) for a in copies.averages(roles))

    def of_backward(self, call: ast.Call) -> Loss:
        """The loss of a ``x.backward()`` call."""
        assert isinstance(call.func, ast.Attribute)
        return self.norm(call.func.value)

    def weighted_in(self, call: ast.Call) -> list[Weighted]:
        """The weighted means that the loss is made of and whose weights are known: with these summed over the ranks they are means like others."""
        self._weighted = {}
        self.of_backward(call)
        return list(self._weighted.values())

    def over_weights(self, call: ast.Call) -> Weighted | None:
        """The weights of a loss of which it is known that it is a mean over them, or over chosen elements. None where they cannot be written down."""
        name = self.names.dotted(call.func)
        if name.startswith(_FUNCTIONAL):
            if name.removeprefix(_FUNCTIONAL) in _BY_ELEMENT:
                return weights.of_elements(self.roles, call)
            return weights.of_targets(call, None)
        if all(v.kind == "call" and v.qual.rpartition(".")[2] in _BY_ELEMENT for v in self.roles.values.eval(call.func)):
            return weights.of_elements(self.roles, call)
        made = next((v.node for v in self.roles.values.eval(call.func) if isinstance(v.node, ast.Call)), None)
        return weights.of_targets(call, made) if made is not None and self._always_crosses(call) else None

    def crossing(self, call: ast.AST) -> list[ast.Call]:
        """Where the cross entropies of torch are built that a call may mean, maybe beside other losses: those with weights or an ignored label; all of
        them where the program leaves out targets without saying so there, or where none says so.
        """
        values = self.roles.values.eval(call.func) if isinstance(call, ast.Call) else ()
        made = {
            v.node for v in values
            if v.kind == "call" and v.qual.startswith("torch.nn.") and v.qual.rpartition(".")[2] in _CROSS and isinstance(v.node, ast.Call)
        }  # fmt: skip
        told = {n for n in made if n.args or {"weight", "ignore_index", None} & {k.arg for k in n.keywords} or criteria.given_later(self.roles, n)}
        return sorted(made if self._leaves_out or not told else told, key=position)

    def means_in(self, call: ast.Call) -> list[ast.Call]:
        """The means over all elements, of torch's losses or by ``mean()``, that the loss is made of."""
        self._means = {}
        self.of_backward(call)
        return list(self._means.values())

    def sums_in(self, call: ast.Call) -> list[ast.expr]:
        """The terms of the loss that are sums over the batch, where others are means or do not depend on it."""
        self._sums = {}
        self.of_backward(call)
        return list(self._sums.values())

    def names_of(self, call: ast.Call) -> set[str]:
        """The names that mean the loss of the backward call: itself and what it is assigned from, one step."""
        assert isinstance(call.func, ast.Attribute)
        return {n.id for n in walk(call.func.value) if isinstance(n, ast.Name)}

    def norm(self, node: ast.expr) -> Loss:
        """How the value depends on the size of the batch. What a value is made of is classified once, unless it is made of itself."""
        if self._met(node):
            return Loss(Norm.CONST, node)  # x = x + …: the other assignments decide
        if len(self._busy) >= BUSY_LIMIT:
            return Loss(Norm.UNKNOWN, node, "the loss is made of more expressions, one inside another, than are followed")
        known = self._known.get(id(node))
        if known is None:
            known = self._classified(node)
        self._weighted |= known.weighted
        self._means |= known.means
        self._sums |= known.sums
        return known.loss

    def _met(self, node: ast.expr) -> bool:
        """Whether the node is being classified already: what is found then counts in there alone."""
        depth = self._busy.get(id(node))
        if depth is not None:
            self._cut = min(self._cut, depth)
        return depth is not None

    def _classified(self, node: ast.expr) -> _Found:
        here, outer = len(self._busy), self._cut
        weighted, means, sums = self._weighted, self._means, self._sums
        self._weighted, self._means, self._sums, self._cut = {}, {}, {}, _UNCUT
        self._busy[id(node)] = here
        try:
            found = _Found(self._norm(node), self._weighted, self._means, self._sums)
        finally:
            del self._busy[id(node)]
            self._weighted, self._means, self._sums = weighted, means, sums
        if self._cut >= here:
            self._known[id(node)] = found
        else:
            outer = min(self._cut, outer)
        self._cut = outer
        return found

    def _norm(self, node: ast.expr) -> Loss:
        if (of_tokens := self._of_tokens(node)) is not None:
            return of_tokens
        if isinstance(node, ast.Constant):
            return Loss(Norm.CONST if node.value is not None else Norm.UNKNOWN, node)
        if isinstance(node, ast.Name):
            return self._name(node)
        if isinstance(node, ast.UnaryOp):
            return self.norm(node.operand)
        if isinstance(node, ast.BinOp):
            return self._binary(node)
        if isinstance(node, ast.IfExp):
            found = _join(node, [self.norm(node.body), self.norm(node.orelse)])
            why = local.by_batch(self.roles, node.test) if found.norm in (Norm.MEAN, Norm.SUM) else ""
            return Loss(Norm.UNKNOWN, node, why) if why else found
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, ast.Subscript):
            return self._part(node.value, (node.slice.value,)) if isinstance(node.slice, ast.Constant) else Loss(Norm.UNKNOWN, node)
        return Loss(Norm.CONST, node) if self.numbers.setting(node) else Loss(Norm.UNKNOWN, node, local.number(self.roles, node, node))

    def _name(self, node: ast.Name) -> Loss:
        found = self._assigned(node)
        if found:
            return self._added_up(node, found)
        bound = list(self.names.bindings(self.names.scope_of[node], node.id))
        if bound and all(b.how == "param" for b in bound):
            given = [self.norm(p) for b in bound for p in self.roles.bound_to(b) if p is not None]
            return _join(node, given) if given else Loss(Norm.UNKNOWN, node)
        return (
            Loss(Norm.CONST, node) if bound and all(b.how in ("assign", "for") for b in bound) and not self.numbers.in_batch(node) else Loss(Norm.UNKNOWN, node)
        )

    def _added_up(self, node: ast.expr, terms: list[tuple[ast.expr | None, Loss]]) -> Loss:
        """The norm of a sum of terms: beside means, and what does not depend on the batch, those that are sums over it are noted, to be scaled by themselves.
        A term is None where what it stands for cannot be written round.
        """
        joined = _join(node, [loss for _, loss in terms])
        sums = [e for e, loss in terms if loss.norm is Norm.SUM]
        if joined.norm is not Norm.UNKNOWN or not sums or any(loss.norm in (Norm.UNKNOWN, Norm.WEIGHTED) for _, loss in terms):
            return joined
        written = [e for e in sums if e is not None]
        if len(written) < len(sums):
            return joined
        self._sums |= {id(e): e for e in written}
        return Loss(Norm.MEAN, node)

    def _assigned(self, node: ast.Name) -> list[tuple[ast.expr | None, Loss]]:
        """The norms of what the name is given, each with the expression: the last plain assignment before the read, with every addition after it. An
        element of what is assigned has no expression.
        """
        here = self.names.scope_of[node]
        owner = self.names.owner(here, node.id)
        plain: list[tuple[tuple[int, int], ast.expr, tuple[int | str, ...]]] = []
        extra: list[tuple[tuple[int, int], ast.expr | ast.AugAssign]] = []
        for b in self.names.bindings(here, node.id):
            if b.how == "assign" and isinstance(b.value, ast.expr):
                plain.append((position(b.target), b.value, b.path))
            elif b.how == "with" and isinstance(b.value, ast.Call) and b.value.args and self.names.dotted(b.value.func) == "apex.amp.scale_loss":
                plain.append((position(b.target), b.value.args[0], ()))
            elif b.how == "aug" and isinstance(b.value, ast.AugAssign):
                kept = isinstance(b.value.op, ast.Div | ast.Mult) and not batch.size(self.roles, b.value.value) and self._factor(b.value.value)
                extra.append((position(b.target), b.value.value if isinstance(b.value.op, ast.Add | ast.Sub) else ast.Constant(0) if kept else b.value))
        if owner is here or here.is_module:
            before = [p for p in plain if p[0] < position(node) and not self.names.is_inside(node, p[1])]  # loss = loss / 2
            straight = [p for p in before if self._same_branch(p[1], node)]
            start = straight[-1][0] if straight else (0, 0)
            plain = [p for p in before if p[0] >= start]
            extra = [e for e in extra if start < e[0] < position(node)]
        found: list[tuple[ast.expr | ast.AugAssign, bool, Loss]] = [(v, not path, self._part(v, path)) for _, v, path in plain]
        found += [(e, True, Loss(Norm.UNKNOWN, e) if isinstance(e, ast.AugAssign) else self.norm(e)) for _, e in extra]
        return [(value if whole and isinstance(value, ast.expr) else None, self._placed(loss, value, node)) for value, whole, loss in found]

    def _placed(self, loss: Loss, value: ast.expr | ast.AugAssign, read: ast.Name) -> Loss:
        """The loss by where it is assigned: under a test on the batch, or in a loop over samples, where means are added up to a sum."""
        why = local.chosen(self.roles, value, read) if loss.norm is not Norm.CONST else ""
        if why or loss.norm is not Norm.MEAN:
            return Loss(Norm.UNKNOWN, loss.node, why) if why else loss
        over = local.repeated(self.roles, value, read)
        return loss if over is None else Loss(Norm.SUM if over.surely else Norm.UNKNOWN, loss.node, over.why)

    def _factor(self, node: ast.expr) -> bool:
        return self.numbers.plain(node) or (isinstance(node, ast.Name) and not self._assigned(node))

    def _part(self, value: ast.expr, path: tuple[object, ...]) -> Loss:
        """An element of what is assigned or returned: ``loss, logits = model(x)``, ``outputs[0]``."""
        if not path or not isinstance(path[0], int):
            return self.norm(value)
        if isinstance(value, ast.Tuple | ast.List):
            inside = path[0] < len(value.elts) and not isinstance(value.elts[path[0]], ast.Starred)
            return self._part(value.elts[path[0]], path[1:]) if inside else Loss(Norm.UNKNOWN, value)
        if isinstance(value, ast.Name):
            if self._met(value):
                return Loss(Norm.CONST, value)  # x, y = x: the other assignments decide
            self._busy[id(value)] = len(self._busy)
            bound = list(self.names.bindings(self.names.scope_of[value], value.id))
            found = [self._part(b.value, (*b.path, *path)) for b in bound if b.how == "assign" and isinstance(b.value, ast.expr)]
            del self._busy[id(value)]
            return _join(value, found) if found and len(found) == len(bound) else Loss(Norm.UNKNOWN, value)
        return self._object(value, path[0]) if isinstance(value, ast.Call) else Loss(Norm.UNKNOWN, value)

    def _same_branch(self, value: ast.AST, node: ast.AST) -> bool:
        """Whether the assignment always runs before the read: every ``if`` round it is round the read as well."""
        stmt = self.names.statement(value)
        outer = {id(a) for a in self.names.ancestors(node)}
        return all(id(a) in outer for a in self.names.ancestors(stmt) if isinstance(a, ast.If | ast.Try | ast.For | ast.While))

    def _binary(self, node: ast.BinOp) -> Loss:
        left, right = self.norm(node.left), self.norm(node.right)
        if isinstance(node.op, ast.Add | ast.Sub):
            return self._added_up(node, [(node.left, left), (node.right, right)])
        if isinstance(node.op, ast.Div):
            if left.norm is Norm.SUM and batch.size(self.roles, node.right) and not selections.chosen(self.roles, node.right):
                return Loss(Norm.MEAN, node)
            if left.norm is Norm.SUM and right.norm is not Norm.CONST and not self.numbers.plain(node.right):
                return self._mean_of(weights.of_count(self.roles, node), Loss(Norm.WEIGHTED, node, "a sum divided by a count of its own"))
            return left if right.norm is Norm.CONST or self.numbers.plain(node.right) else Loss(Norm.UNKNOWN, node, right.why)
        if isinstance(node.op, ast.Mult):
            share, other = (node.left, right) if self._is_share(node.left) else (node.right, left)
            if self._is_share(share):  # (1.0 / n) * total
                return Loss(Norm.MEAN if other.norm is Norm.SUM and not selections.chosen(self.roles, share.right) else Norm.UNKNOWN, node, other.why)
            if batch.size(self.roles, node.left) or batch.size(self.roles, node.right):
                return Loss(Norm.SUM, node) if Norm.MEAN in (left.norm, right.norm) else Loss(Norm.UNKNOWN, node)
            if left.norm is Norm.CONST or self.numbers.plain(node.left):
                return right
            return left if right.norm is Norm.CONST or self.numbers.plain(node.right) else Loss(Norm.UNKNOWN, node, left.why or right.why)
        if isinstance(node.op, ast.Pow) and right.norm is Norm.CONST:
            return self._curved(node, node.left)
        return left if right.norm is Norm.CONST and left.norm is Norm.CONST else Loss(Norm.UNKNOWN, node)

    def _curved(self, node: ast.expr, inner: ast.expr) -> Loss:
        """A function of a mean, such as its root: right of the mean over all ranks, and of it alone."""
        found = self.norm(inner)
        if found.norm is not Norm.MEAN:
            return found if found.norm is Norm.CONST else Loss(Norm.UNKNOWN, node, found.why)
        known = self._known.get(id(inner))
        counted = [weights.of_samples(self.roles, m) for m in known.means.values()] if known is not None else []
        if known is None or known.sums or not (counted or known.weighted) or None in counted:
            return Loss(Norm.WEIGHTED, node, "a function of a mean, which each rank would have of its own mean")
        self._weighted |= {id(part.value): part for part in counted if part is not None}
        return Loss(Norm.MEAN, node)

    def _is_share(self, node: ast.expr) -> TypeGuard[ast.BinOp]:
        """``1.0 / n``: a number over the size of the batch."""
        return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and self.numbers.plain(node.left) and batch.size(self.roles, node.right)

    # ------------------------------------------------------------------ calls
    def _call(self, node: ast.Call) -> Loss:
        func = node.func
        if isinstance(func, ast.Attribute) and not self.names.dotted(func):
            if func.attr == "mean":
                return self._mean(node, func.value)
            if func.attr == "sum":
                return self._summed(node, func.value, bool(node.args or node.keywords))
            if func.attr in _CURVED:
                return self._curved(node, func.value)
            if func.attr in _KEEP:
                return self.norm(node.args[0]) if func.attr == "scale" and node.args else self.norm(func.value)
            if func.attr == "item":
                return self._number(node, func.value)
        dotted = self.names.dotted(func)
        fixed = dotted in _FIXED and all(isinstance(a, ast.Constant | ast.Tuple | ast.List) for a in node.args)  # what losses are added to
        if fixed or dotted.startswith(("numpy.random.", "random.")):
            return Loss(Norm.CONST, node)  # a weight that is drawn, as in mixup
        if dotted.startswith("math."):
            return _join(node, [self.norm(a) for a in node.args])
        if dotted.startswith(_FUNCTIONAL) and dotted.removeprefix(_FUNCTIONAL) in criteria.FUNCTIONS:
            return self._reduction(node, node, dotted.removeprefix(_FUNCTIONAL), call=True)
        if dotted.startswith("torch.") and dotted.removeprefix("torch.") in _CURVED and node.args:
            return self._curved(node, node.args[0])
        if dotted == "torch.mean" and node.args:
            return self._mean(node, node.args[0])
        if dotted == "?.sum" and node.args:
            return self._added(node, node.args[0])
        if dotted == "torch.sum" and node.args:
            return self._summed(node, node.args[0], len(node.args) + len(node.keywords) > 1)
        return self._object(node)

    def _number(self, node: ast.expr, what: ast.expr) -> Loss:
        why = local.number(self.roles, node, what)
        return Loss(Norm.UNKNOWN if why else Norm.CONST, node, why)

    def _summed(self, node: ast.Call, what: ast.expr, axes: bool) -> Loss:
        """``x.sum()``: over the batch, unless x is a loss already, or several stacked."""
        if not self._from_batch(what):
            return Loss(Norm.CONST, node)
        inner = self.norm(what)
        if inner.norm in (Norm.MEAN, Norm.SUM, Norm.WEIGHTED):
            return inner
        if id(node) in self._averaged:
            return Loss(Norm.UNKNOWN, node)  # over the copies of the model, not over the samples
        plain = what
        while isinstance(plain, ast.Call) and isinstance(plain.func, ast.Attribute) and plain.func.attr == "sum":
            plain = plain.func.value  # x.sum(0).sum() is one sum
        averaged = mean_of_samples(self.names, plain)
        if averaged is not None and (first_axis_is_time(self.roles) or not Rows(self.roles).samples(averaged)):
            averaged = None  # the first axis may be another one: then it is a sum
        if over_batch(self.roles, plain if averaged is None else averaged):
            return Loss(Norm.UNKNOWN, node, "the loss is made of a sum over the batch, and no sum of what each sample gives")
        if averaged is not None:
            return Loss(Norm.MEAN, node)
        stacked = any(isinstance(n, ast.Call) and self.names.dotted(n.func) in ("torch.stack", "torch.cat") for n in walk(what))
        return Loss(Norm.UNKNOWN, node) if axes or stacked else Loss(Norm.SUM, node, "summed over the batch")

    def _added(self, node: ast.Call, what: ast.expr) -> Loss:
        """Python's ``sum`` adds losses up; what each is decides."""
        if not self._from_batch(what):
            return Loss(Norm.CONST, node)
        if not isinstance(what, ast.List | ast.Tuple) or not what.elts:
            return Loss(Norm.UNKNOWN, node)
        return self._added_up(node, [(e, self.norm(e)) for e in what.elts])

    def _mean(self, node: ast.Call, what: ast.expr) -> Loss:
        function = self.names.dotted(node.func) == "torch.mean"
        if node.args[function:] or any(k.arg in ("dim", "axis") for k in node.keywords):
            return Loss(Norm.UNKNOWN, node)
        if selections.chosen(self.roles, what):
            return self._mean_of(weights.of_chosen(self.roles, node, what), Loss(Norm.WEIGHTED, node, f"a mean {_SELECTED}"))
        inner = self.norm(what)
        if inner.norm in (Norm.SUM, Norm.WEIGHTED):
            return inner
        if inner.norm is Norm.UNKNOWN and over_batch(self.roles, what):
            return Loss(Norm.UNKNOWN, node, "the loss is made of a sum over the batch, and no mean of what each sample gives")
        self._means[id(node)] = node
        return Loss(Norm.MEAN, node)

    def _from_batch(self, node: ast.expr) -> bool:
        """Whether the value depends on a batch: parameters alone do not."""
        words = {n.attr for n in walk(node) if isinstance(n, ast.Attribute)}
        if words & {"parameters", "named_parameters"}:
            return False
        return not (words & {"weight", "bias"} or any(map(self._goes_over_weights, walk(node)))) or of_batch(self.roles, node)

    def _goes_over_weights(self, node: ast.AST) -> bool:
        """Whether the node is a variable that loops over parameters give: ``p`` of ``for name, p in model.named_parameters()``."""
        bound = list(self.names.bindings(self.names.scope_of[node], node.id)) if isinstance(node, ast.Name) else []
        sources = [n for b in bound if b.how == "for" and b.value is not None for n in walk(b.value)]
        words = {n.attr for n in sources if isinstance(n, ast.Attribute)}
        return bool(words & {"parameters", "named_parameters"}) and all(b.how == "for" for b in bound)

    def _object(self, node: ast.Call, item: int = 0) -> Loss:
        """A call of a loss object, of a function of the program, or of a model that gives its own loss, as element ``item`` of what is returned."""
        values = self.roles.values.eval(node.func)
        found: list[Loss] = []
        for v in values:
            name = v.qual.rsplit(".", 1)[-1]
            if v.kind == "call" and v.qual.startswith("torch.nn.") and name in criteria.MODULES and isinstance(v.node, ast.Call):
                found.append(self._reduction(v.node, node, name, call=False))
            elif v.kind == "ext" and v.qual.startswith(_FUNCTIONAL) and name in criteria.FUNCTIONS:  # criterion = F.cross_entropy
                found.append(self._reduction(node, node, name, call=True))
            elif v.kind == "func" and isinstance(v.node, FunctionNode | ast.Lambda):
                found += self._returns(v.node, node, item)
            elif v.kind == "object" and v.cls is not None:
                forward = self.roles.values.defs.method(v.cls, "forward") or self.roles.values.defs.method(v.cls, "__call__")
                found += self._returns(forward, node, item) if forward is not None else [Loss(Norm.UNKNOWN, node)]
            elif v.kind == "wrapped":
                found += [self._inner(x, node, item) for x in self.roles.values.inner(v)] or [Loss(Norm.UNKNOWN, node)]
            else:
                found.append(Loss(Norm.UNKNOWN, node))
        return _join(node, found or self._of_model(node, item), _CHOICE)

    def _of_model(self, node: ast.Call, item: int) -> list[Loss]:
        """A method of a model behind a wrapper: what each class that it may be of gives."""
        models = [m for v in self.roles.model_vals(node.func.value) for m in self.roles.values.inner(v)] if isinstance(node.func, ast.Attribute) else []
        methods = passes.methods_of_model(self.roles, node)
        if not methods or len(methods) < len(models):
            return [Loss(Norm.UNKNOWN, node)]
        return [loss for method in dict.fromkeys(methods) for loss in self._returns(method, node, item)]

    def _of_tokens(self, node: ast.expr) -> Loss | None:
        """The loss that a model of transformers makes of the labels of tokens: ``out.loss``, ``out[0]`` of ``out = model(…)``; None for anything else."""
        if isinstance(node, ast.Attribute):
            first = node.attr == "loss"
        else:
            first = isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and node.slice.value in (0, "loss")
        if not first or not isinstance(node, ast.Attribute | ast.Subscript):
            return None
        call: ast.AST | None = node.value
        if isinstance(call, ast.Name):
            bound = list(self.names.bindings(self.names.scope_of[call], call.id))
            call = bound[0].value if len(bound) == 1 and bound[0].how == "assign" and not bound[0].path else None
        if not isinstance(call, ast.Call):
            return None
        models = (m for v in self.roles.values.eval(call.func) for m in self.roles.values.inner(v))
        kinds = {criteria.of_labels(m.qual) for m in models}
        if not kinds or None in kinds or len(kinds) > 1:
            return None
        known = weights.of_labels(node, call, next_ones=kinds == {"next"})
        return self._mean_of(known, Loss(Norm.WEIGHTED, node, f"{ast.unparse(node)} is a mean over the valid labels of tokens"))

    def _inner(self, v: object, node: ast.Call, item: int) -> Loss:
        cls = getattr(v, "cls", None)
        forward = self.roles.values.defs.method(cls, "forward") if cls is not None else None
        return _join(node, self._returns(forward, node, item)) if forward is not None else Loss(Norm.UNKNOWN, node)

    def _returns(self, function: FunctionNode | ast.Lambda, call: ast.Call, item: int) -> list[Loss]:
        if isinstance(function, ast.Lambda):
            return [self._returned(function.body, item)]
        values = [n.value for n in walk(function) if isinstance(n, ast.Return) and n.value is not None and self.names.function(n) is function]
        found = [(v, self._returned(v, item)) for v in values]
        known = [loss for _, loss in found if loss.norm in (Norm.MEAN, Norm.SUM, Norm.WEIGHTED)]
        # return loss, logits … return (logits,): what is differentiated is a scalar, so it is not the one that has no loss in it
        kept = [(v, loss) for v, loss in found if not known or loss.norm is not Norm.UNKNOWN or "loss" in ast.unparse(v).lower()]
        joined = self._added_up(call, [(_element(v, item), loss) for v, loss in kept]) if kept else Loss(Norm.UNKNOWN, call)
        return [joined] if joined.norm is Norm.MEAN else [loss for _, loss in kept] or [joined]

    def _returned(self, value: ast.expr, item: int) -> Loss:
        return self._part(value, (item,)) if isinstance(value, ast.Tuple | ast.List) else self.norm(value)

    def _mean_of(self, known: Weighted | None, loss: Loss) -> Loss:
        if known is None:
            return loss
        self._weighted[id(known.value)] = known
        return Loss(Norm.MEAN, loss.node, loss.why)

    def _always_crosses(self, node: ast.Call) -> bool:
        """Whether whatever is called is a cross entropy of torch, which has class weights and an ignored index to be read."""
        made = self.roles.values.eval(node.func)
        return all(v.kind == "call" and v.qual.rpartition(".")[2] in _CROSS for v in made)

    @cached_property
    def _leaves_out(self) -> bool:
        """Whether the program writes -100, which torch's cross entropy ignores where it is not told otherwise."""
        return any(
            isinstance(n, ast.UnaryOp) and isinstance(n.op, ast.USub) and isinstance(n.operand, ast.Constant) and n.operand.value == 100
            for n in self.names.nodes
        )

    def _reduction(self, made: ast.Call, node: ast.Call, name: str, *, call: bool) -> Loss:
        given = {k.arg: k.value for k in made.keywords}
        if None in given:
            return Loss(Norm.UNKNOWN, node, f"{name} is built from ** arguments")
        if any(isinstance(a, ast.Starred) for a in made.args) or "reduce" in given or len(made.args) > criteria.known_arguments(name, call):
            return Loss(Norm.UNKNOWN, node, f"{name} is given more than is known here")
        later = {} if call else criteria.given_later(self.roles, made)
        if "reduction" in later or "size_average" in later:
            return Loss(Norm.UNKNOWN, node, f"the reduction of {name} is set after it is built")
        kind = given.get("reduction")
        if kind is not None and not isinstance(kind, ast.Constant):
            return Loss(Norm.UNKNOWN, kind, "the reduction is not a literal")
        reduction = kind.value if isinstance(kind, ast.Constant) else "mean"
        if isinstance(given.get("size_average"), ast.Constant) and not getattr(given["size_average"], "value", True):
            reduction = "sum"
        if reduction == "sum":
            return Loss(Norm.SUM, kind or node, f"{name} with reduction='sum'")
        if reduction == "none":
            return Loss(Norm.UNKNOWN, node, f"{name} with reduction='none'")
        if name in criteria.UNWEIGHTED:
            return Loss(Norm.MEAN, node)
        attributes = (v for values in later.values() for v in values)
        if any(over_batch(self.roles, e) for e in (*node.args, *(k.value for k in node.keywords), *made.args, *(k.value for k in made.keywords), *attributes)):
            return Loss(Norm.UNKNOWN, node, f"{name} is given what is taken over the batch, of which every rank has its part")
        cross = name in _CROSS
        known = weights.of_targets(node, None if call else made) if cross and (call or self._always_crosses(node)) else None
        built = Weighted(made, built=True) if cross and not call else None
        known = known or built
        if cross and ({"weight", "ignore_index"} & {*given, *later} or (not call and made.args) or (call and len(made.args) > 2)):
            return self._mean_of(known, Loss(Norm.WEIGHTED, made, f"{name} divides by class weights or by the number of valid targets"))
        if cross and self._leaves_out:
            return self._mean_of(known, Loss(Norm.UNKNOWN, node, f"{name} leaves out targets of -100, which this program writes"))
        if selections.selected(self.roles, node):
            known = (weights.of_targets(node, None) or built) if cross else weights.of_elements(self.roles, node)
            return self._mean_of(known, Loss(Norm.WEIGHTED, node, f"{name} is a mean {_SELECTED}"))
        self._means[id(node)] = node
        return Loss(Norm.MEAN, node)


def _element(value: ast.expr, item: int) -> ast.expr | None:
    """The expression of what a return statement gives as its element ``item``, or of all that it gives."""
    if not isinstance(value, ast.Tuple | ast.List):
        return value
    return None if any(isinstance(e, ast.Starred) for e in value.elts) or item >= len(value.elts) else value.elts[item]


def _join(node: ast.AST, found: list[Loss], mixed: str = "part of the loss is a mean and part a sum") -> Loss:
    """The norm of a sum or a choice: equal parts keep theirs, parts that do not depend on the batch give way."""
    for norm in (Norm.WEIGHTED, Norm.UNKNOWN):
        hits = [x for x in found if x.norm is norm]
        if hits:
            return min(hits, key=_place)
    kinds = {x.norm for x in found} - {Norm.CONST}
    if not kinds:
        return Loss(Norm.CONST, node)
    if len(kinds) > 1:
        return Loss(Norm.UNKNOWN, node, mixed)
    norm = kinds.pop()
    if norm is Norm.SUM and any(x.norm is Norm.CONST and not isinstance(x.node, ast.Constant) for x in found):
        return Loss(Norm.UNKNOWN, node, "a sum over the batch and a term that does not depend on it")
    return min((x for x in found if x.norm is norm), key=_place)


def _place(loss: Loss) -> tuple[int, int]:
    """Values come as sets: the first in the source is named, in every run."""
    return getattr(loss.node, "lineno", 0), getattr(loss.node, "col_offset", 0)
