"""What a weighted mean is divided by: the valid targets, their class weights, a mask.

Whether every rank comes to a place, and as often as the others, is left to the execution of the result.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile

from dpmigrate.facts.library import LAYOUTS
from dpmigrate.facts.names import of_self
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.reaching import reaching
from dpmigrate.facts.roles import Roles
from dpmigrate.facts.rows import Rows
from dpmigrate.facts.selections import chosen, listed

_PURE_METHODS = frozenset(
    {"view", "reshape", "long", "int", "squeeze", "flatten", "contiguous", "to", "type_as", "cuda", "size", "float", "sum", "type", "bool", "data", "item"}
)
#: what makes a tensor of the size of another one
_LIKE = re.compile(r"torch\.\w+_like")


@dataclass(frozen=True, eq=False, slots=True)
class Weighted:
    """An expression that is a mean over weights: over ``targets``, with the source of class weights and of the ignored index, or over a ``count``.

    ``elements``: over all elements of the targets. ``guards`` are the numbers that keep the count from 0: ``1`` in ``max(mask.sum(), 1)``.
    """

    value: ast.expr
    targets: ast.expr | None = None
    classes: str = ""
    ignored: str = ""
    elements: bool = False  # every element of the targets counts, whatever it is
    marked: bool = False  # the targets are a mask, of which those elements count that it marks
    count: ast.expr | None = None
    parts: tuple[ast.expr, ...] = ()  # the sum and the count where they are made, where the count is asked for in a test as well
    guards: tuple[ast.expr, ...] = ()
    inner: bool = False  # a mean over all samples, of which a function is taken
    built: bool = False  # the value is a criterion, which puts its own losses together: where it is called its weights cannot be read
    labels: str = ""  # the source of what a model of a library is given as labels, of which -100 does not count
    spelt: ast.expr | None = None  # where the class weights are written in the program


def of_targets(call: ast.Call, made: ast.Call | None) -> Weighted | None:
    """The weights of a cross entropy: ``made`` is the loss object's constructor, None for the functional form. None where they cannot be written down."""
    target = _argument(call, "target", 1)
    if target is None or not pure(target):
        return None
    if made is not None and isinstance(call.func, ast.Name | ast.Attribute):
        name = ast.unparse(call.func)
        return Weighted(call, target, f"{name}.weight", f"{name}.ignore_index")
    if made is not None and call.func is not made:
        return None
    classes, ignored = _argument(call, "weight", 2), _argument(call, "ignore_index", 99)
    if made is not None:  # CrossEntropyLoss(weight=w)(x, y): what the object is made of
        classes, ignored = _argument(made, "weight", 0), _argument(made, "ignore_index", 2)
    if not all(e is None or pure(e) for e in (classes, ignored)):
        return None
    weight, left_out = (ast.unparse(e) if e is not None else "" for e in (classes, ignored))
    return Weighted(call, target, weight, left_out, spelt=classes)


def of_labels(value: ast.expr, call: ast.Call, *, next_ones: bool) -> Weighted | None:
    """The weight of the loss that a model of transformers makes of its labels: of the valid ones, ``next_ones``: from the second place of each sequence on.

    ``value`` is the loss in what the call gives. None where the weight cannot be written down.
    """
    given = next((k.value for k in call.keywords if k.arg == "labels"), None)
    batch = next((k.value for k in call.keywords if k.arg is None and isinstance(k.value, ast.Name)), None)
    if (given is None and batch is None) or (given is not None and not pure(given)):
        return None
    text = ast.unparse(given) if given is not None else f'{ast.unparse(batch)}["labels"]' if batch is not None else ""
    if next_ones:
        text = f"{text}[..., 1:]" if given is None or isinstance(given, ast.Name | ast.Attribute | ast.Subscript | ast.Call) else f"({text})[..., 1:]"
    return Weighted(value, labels=text)


def of_elements(roles: Roles, call: ast.Call) -> Weighted | None:
    """The weight of a mean over all elements of the targets, of which every rank has another number. None where it cannot be written down."""
    target = _argument(call, "target", 1)
    while isinstance(target, ast.Call) and _LIKE.fullmatch(roles.names.dotted(target.func)):  # torch.ones_like(x) has as many as x
        target = _argument(target, "input", 0)
    scores = _argument(call, "input", 0)
    if scores is not None and _of_a_variable(scores) and target is not None and _of_batch_object(target):
        target = scores  # data.y of a batch of graphs may have a row for each node, or for each graph: the scores tell
    return Weighted(call, target, elements=True) if target is not None and pure(target) else None


def _of_a_variable(node: ast.expr) -> bool:
    """``out``, ``out.squeeze()``, ``out.view(-1)``: as many elements as the variable has."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in LAYOUTS and pure(node):
        node = node.func.value
    return isinstance(node, ast.Name)


def _of_batch_object(node: ast.expr) -> bool:
    """``data.y``, ``data.y.float()``: a field of an object."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        node = node.func.value
    return isinstance(node, ast.Attribute)


def of_chosen(roles: Roles, mean: ast.Call, what: ast.expr) -> Weighted | None:
    """The weight of ``x[mask].mean()``: the number of elements chosen, or of those that the mask marks. None where it cannot be written down."""
    parts = {ast.unparse(n): n for n in walk(what) if isinstance(n, ast.Subscript | ast.Name) and pure(n) and chosen(roles, n)}
    inner = {t for t, n in parts.items() if any(m is not n and n in walk(m) for m in parts.values())}
    outer = [n for t, n in parts.items() if t not in inner]
    if not all(_with_its_like(roles, mean, n) for n in outer):
        return None
    if outer and len({_mask_of(roles, n) for n in outer}) == 1 and (len(outer) == 1 or _mask_of(roles, outer[0])):
        written = next((n for n in outer if not listed(roles, n)), None)
        return Weighted(mean, written, elements=True) if written is not None else None
    asked = [n.slice for n in walk(what) if isinstance(n, ast.Subscript) and _marks(roles, n.slice)]
    if not outer and len({ast.dump(m) for m in asked}) == 1 and pure(asked[0]):
        return Weighted(mean, asked[0], marked=True)
    return None


def _with_its_like(roles: Roles, mean: ast.Call, part: ast.expr) -> bool:
    """Whether the elements that a mean is over are those of a part of it, or a multiple: not where it is put together with others, ``torch.cat([x[mask], x])``,
    or is a number by then, ``torch.stack([x[mask].mean(), x.mean()])``.
    """
    mask = _mask_of(roles, part)
    for above in takewhile(lambda a: a is not mean, roles.names.ancestors(part)):
        if not isinstance(above, ast.List | ast.Tuple):
            continue
        holder = roles.names.parent[above]
        if isinstance(holder, ast.BinOp):  # torch.cat([x[mask]] + others)
            return False
        if isinstance(holder, ast.Call | ast.keyword) and not all(_has_mask(roles, e, mask) for e in above.elts):
            return False
    return True


def _has_mask(roles: Roles, node: ast.expr, mask: str) -> bool:
    """Whether something in the expression is chosen by the mask of that text."""
    return bool(mask) and any(isinstance(n, ast.Subscript | ast.Name) and _mask_of(roles, n) == mask for n in walk(node))


def _mask_of(roles: Roles, node: ast.expr) -> str:
    """The text of the mask by which ``x[mask]`` is chosen, also of a variable that is given it; '' for what is chosen otherwise."""
    made = _made(roles, node) if isinstance(node, ast.Name) else node
    return ast.dump(made.slice) if isinstance(made, ast.Subscript) and _marks(roles, made.slice) else ""


def _marks(roles: Roles, node: ast.expr) -> bool:
    """Whether the expression is a mask, with a truth for each element: a comparison, or what is made of one."""
    match node:
        case ast.Compare():
            return True
        case ast.UnaryOp(op=ast.Invert(), operand=inner):
            return _marks(roles, inner)
        case ast.BinOp(op=ast.BitAnd() | ast.BitOr(), left=left, right=right):
            return _marks(roles, left) and _marks(roles, right)
        case ast.Call(func=ast.Attribute(attr="bool"), args=[]):
            return True
        case ast.Name():
            made = _made(roles, node)
            return made is not None and _marks(roles, made)
    return False


def of_samples(roles: Roles, mean: ast.Call) -> Weighted | None:
    """The weight of a mean over all samples, of which a function is taken: how many elements there are of what it is made of. None where nothing
    of it has a row for each sample.
    """
    rows = Rows(roles)
    named = [n for n in walk(mean) if isinstance(n, ast.Name) and rows.samples(n)]
    # model(x) may have another number of elements for each sample than x
    plain = [n for n in named if not any(isinstance(a, ast.Call) for a in takewhile(lambda a: a is not mean, roles.names.ancestors(n)))]
    made = next(iter([*plain, *named]), None)
    return Weighted(mean, made, elements=True, inner=True) if made is not None else None


def of_count(roles: Roles, node: ast.BinOp) -> Weighted | None:
    """The weight of ``x.sum() / mask.sum()``: the divisor, without the guard against 0, if no model has made it."""
    count, guards = _unguarded(roles, node.right)
    if not pure(count) or _from_model(roles, count, set()):
        return None
    tested = _tested(roles, count)
    if tested:
        sums = (_made(roles, n.left) or n.left for n in (node, *_divided_alike(roles, node)))
        return Weighted(node, parts=(*dict.fromkeys(sums), *tested))
    return Weighted(node, count=count, guards=guards)


def _tested(roles: Roles, count: ast.expr) -> list[ast.expr]:
    """Where a count is made that a test of its function asks for as well: ``n = mask.sum()``, ``if n == 0: return …``. With the count of all ranks in it they
    answer alike. Nothing where no test does.
    """
    asked = [n for a in walk(roles.names.function(count)) if isinstance(a, ast.If | ast.IfExp | ast.While) for n in walk(a.test)]
    if not isinstance(count, ast.Name):
        again = [n for n in asked if isinstance(n, ast.expr) and ast.dump(n) == ast.dump(count)]
        if again:
            return [count, *again]
    made = [(n, m) for n in walk(count) if isinstance(n, ast.Name) and (m := _made(roles, n)) is not None]
    made = [(n, _unguarded(roles, m)[0]) for n, m in made if n is count or _is_sum(m)]
    return [m for n, m in made if any(isinstance(a, ast.Name) and a.id == n.id for a in asked)]


def _is_sum(made: ast.expr) -> bool:
    """Whether a sum over all elements goes into it, ``mask.sum()``: else a name inside of a count is the mask itself, of which a test may ask as well."""
    return any(isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr == "sum" and not n.args and not n.keywords for n in walk(made))


def _divided_alike(roles: Roles, node: ast.BinOp) -> Iterator[ast.BinOp]:
    """The other sums of the function that are divided by the same: a number that is shown beside the loss."""
    for other in walk(roles.names.function(node)):
        if isinstance(other, ast.BinOp) and isinstance(other.op, ast.Div) and other is not node and ast.dump(other.right) == ast.dump(node.right):
            made = _made(roles, other.left) or other.left
            if isinstance(made, ast.Call) and isinstance(made.func, ast.Attribute) and made.func.attr == "sum":
                yield other


def _made(roles: Roles, node: ast.expr) -> ast.expr | None:
    """What a variable of the function is given; None where that may be one thing or another."""
    found = reaching(roles.names, node) if isinstance(node, ast.Name) else None
    plain = found is not None and found.how == "assign" and not found.path
    return found.value if plain and found is not None and isinstance(found.value, ast.expr) else None


def _argument(call: ast.Call, name: str, index: int) -> ast.expr | None:
    if any(isinstance(a, ast.Starred) for a in call.args):
        return None
    return next((k.value for k in call.keywords if k.arg == name), call.args[index] if index < len(call.args) else None)


def pure(node: ast.expr) -> bool:
    """Whether the expression may be written a second time: names, items, shapes, sums and comparisons of them."""
    for n in walk(node):
        if isinstance(n, ast.Call) and not (isinstance(n.func, ast.Attribute) and n.func.attr in _PURE_METHODS):
            return False
        if isinstance(n, ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom | ast.Lambda | ast.ListComp | ast.GeneratorExp):
            return False
    return True


def _unguarded(roles: Roles, node: ast.expr) -> tuple[ast.expr, tuple[ast.expr, ...]]:
    """``mask.sum()`` and the guard for ``mask.sum().clamp(min=1)``, ``max(mask.sum(), 1)`` and ``mask.sum() + 1e-8``."""
    inner, guards = node, [node]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("clamp", "clamp_min") and not roles.names.dotted(node.func):
        inner, guards = node.func.value, [*node.args, *_least(node)]
    elif isinstance(node, ast.Call) and roles.names.dotted(node.func) in ("?.max", "torch.clamp") and node.args:
        inner = next((a for a in node.args if not isinstance(a, ast.Constant)), node)
        guards = [*(a for a in node.args if a is not inner), *_least(node)]
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        inner = node.right if isinstance(node.left, ast.Constant) else node.left
        guards = [node.left if inner is node.right else node.right]
    if inner is node or len(guards) != 1 or not isinstance(guards[0], ast.Constant):
        return node, ()
    return inner, (guards[0],)


def _least(call: ast.Call) -> list[ast.expr]:
    """The values of ``min=``; of anything else (``max=``) too many to be one guard."""
    return [k.value for k in call.keywords for _ in range(1 if k.arg == "min" else 2)]


def _from_model(roles: Roles, node: ast.AST, seen: set[ast.AST]) -> bool:
    """Whether a model's outputs may go into the value: its gradient would go through the divisor. ``seen``: what has been looked at."""
    parts = list(_with_numbers(node))
    own = {n.value for n in parts if isinstance(n, ast.Attribute) and of_self(n)}
    for n in parts:
        if isinstance(n, ast.Call) and (roles.model_vals(n.func) or any(roles.calls_model(f) for f, _ in roles.values.targets(n))):
            return True
        if isinstance(n, ast.Attribute) and n.value in own and n not in seen:
            seen.add(n)
            if _may_learn(roles, n) or any(_from_model(roles, g, seen) for g in roles.given(n)):
                return True
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and n not in own:
            for b in roles.names.bindings(roles.names.scope_of[n], n.id):
                if b.target in seen:
                    continue  # target = target.to(device)
                seen.add(b.target)
                given = roles.bound_to(b) if roles.handed(b) else []
                if b.how == "param" and any(p is None or _from_model(roles, p, seen) for p in given):
                    return True
                if b.how in ("assign", "aug") and b.value is not None and _from_model(roles, b.value, seen):
                    return True
    return False


#: methods that are given another tensor for its type, device or form alone
_LIKE_ANOTHER = frozenset({"to", "type", "type_as", "view_as", "expand_as", "reshape_as"})


def _with_numbers(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of an expression whose numbers go into it: not ``loss`` of ``mask.to(loss.dtype)``, ``mask.type_as(loss)``."""
    todo = [node]
    while todo:
        n = todo.pop()
        if isinstance(n, ast.Attribute) and n.attr in ("dtype", "device"):
            continue
        yield n
        like = isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr in _LIKE_ANOTHER
        todo += [n.func] if like and isinstance(n, ast.Call) else ast.iter_child_nodes(n)


def _may_learn(roles: Roles, attribute: ast.Attribute) -> bool:
    """Whether what an object holds may be a parameter, or is not seen: ``self.pad`` is given a number."""
    given = roles.given(attribute)
    return not given or any(isinstance(n, ast.Call) and not roles.names.dotted(n.func).startswith("?.") for g in given for n in walk(g))
