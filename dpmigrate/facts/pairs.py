"""Where the samples of a batch meet each other: products and distances of every sample with every sample, and labels that number the samples."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from dpmigrate.facts.asked_sizes import counted
from dpmigrate.facts.library import FLOATS, MOVES, REPEATS
from dpmigrate.facts.names import last
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.passes import written_names
from dpmigrate.facts.reductions import REDUCTIONS, axes, literals
from dpmigrate.facts.roles import Roles
from dpmigrate.facts.samples import of_batch, of_one

_TRANSPOSES = frozenset({"t", "transpose", "permute", "swapaxes"})
#: methods that leave every element in its place
_KEEPS_PLACES = MOVES | FLOATS | {"detach", "clone", "numpy", "abs", "neg", "contiguous"}
#: functions that pair the elements of their arguments
_ALL_PAIRS = frozenset(
    {"torch.combinations", "torch.cartesian_prod", "torch.meshgrid", "itertools.combinations", "itertools.permutations", "itertools.product"}
)
#: of a matrix: what depends on all of its rows
_DECOMPOSITIONS = frozenset(
    {"torch.svd", "torch.qr", "torch.pca_lowrank", "torch.svd_lowrank"}
    | {f"torch.linalg.{n}" for n in ("svd", "svdvals", "qr", "pinv", "matrix_rank", "lstsq", "cond")}
)
#: of a variable that the walk is in the middle of
_OPEN = -1
_BATCH_SIZE = re.compile(r"(n|num)?_?(batch|bs|bsz)_?(size|sz)?", re.IGNORECASE)
_ENTROPY = ("torch.nn.functional.cross_entropy", "torch.nn.CrossEntropyLoss")


@dataclass(frozen=True, eq=False, slots=True)
class Product:
    """A product or distance of the rows of two operands. ``flat``: both have rows and columns only, so that no row is compared within its own sample."""

    node: ast.expr
    operands: tuple[ast.expr, ...]
    flat: bool


def products(roles: Roles) -> Iterator[Product]:
    """The products of rows with rows that a program writes."""
    for node in roles.names.nodes:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            yield from _of_rows(roles, node, [node.left, node.right])
        elif isinstance(node, ast.BinOp):
            if _each_with_each(roles, node.left, node.right) and not (_one_given(roles, node.left) or _one_given(roles, node.right)):
                yield Product(node, (node.left, node.right), flat=True)
        elif isinstance(node, ast.Call):
            yield from _call(roles, node)


def _each_with_each(roles: Roles, left: ast.expr, right: ast.expr) -> bool:
    """Whether an operation by element meets every row with every row: new axes on both sides, ``s[:, None] - s`` of one number each, ``s - s.t()``."""
    axis = _new_axis(roles, left)
    new = {axis, _new_axis(roles, right)}
    if new == {0, 1}:
        return True
    if new == {1, None}:
        return one_number_each(roles, left if axis is None else right)
    for turned, plain in ((left, right), (right, left)):
        method = turned.func if isinstance(turned, ast.Call) else turned  # s.t(), s.T
        if isinstance(method, ast.Attribute) and ast.dump(method.value) == ast.dump(plain) and _transposed(roles, turned):
            return True
    return False


def _call(roles: Roles, node: ast.Call) -> Iterator[Product]:
    dotted = roles.names.dotted(node.func)
    if dotted in ("torch.mm", "torch.matmul"):
        yield from _of_rows(roles, node, node.args)
    elif dotted in ("torch.nn.functional.linear", "torch.inner", "torch.outer", "torch.ger"):  # rows with rows, as they are given
        named = {k.arg: k.value for k in node.keywords}
        operands = (*node.args[:2], *(named[n] for n in ("input", "weight", "other", "vec2") if n in named))
        yield Product(node, operands, flat=True)
    elif dotted in ("torch.cdist", "torch.nn.functional.pdist", "torch.pdist"):
        yield Product(node, tuple(node.args), flat=False)
    elif dotted.endswith(".cosine_similarity"):
        places = [_new_axis(roles, a) for a in node.args]
        if sum(p is not None for p in places) == 2:
            yield Product(node, tuple(node.args), flat=0 in places)
    elif dotted == "torch.einsum" and node.args and isinstance(node.args[0], ast.Constant):
        if _outer(str(node.args[0].value)):
            listed = node.args[1] if len(node.args) == 2 else None
            yield Product(node, tuple(listed.elts if isinstance(listed, ast.List | ast.Tuple) else node.args[1:]), flat=True)
    elif last(node.func) in REPEATS:
        tensor, times = (node.args[0], node.args[1:]) if dotted and node.args else (getattr(node.func, "value", node), node.args)
        if _repeated(roles, node, tensor, [*times, *(k.value for k in node.keywords if k.arg == "repeats")]):
            yield Product(node, (tensor,), flat=True)
    elif dotted in _ALL_PAIRS and node.args and all(_counts_samples(roles, a) for a in node.args[:2] if not _is_number(a)):
        yield Product(node, (node.args[0],), flat=True)
    elif last(node.func) in ("addmm", "addmm_"):
        yield from _of_rows(roles, node, [a for a in node.args if not _is_number(a)][-2:])
    elif isinstance(node.func, ast.Attribute) and node.func.attr in ("inner", "outer", "ger") and not dotted:
        yield Product(node, (node.func.value, *node.args), flat=True)
    elif isinstance(node.func, ast.Attribute) and node.func.attr in ("mm", "matmul"):
        yield from _of_rows(roles, node, [node.func.value, *node.args])


def _of_rows(roles: Roles, node: ast.expr, operands: list[ast.expr]) -> Iterator[Product]:
    turned = [t for e in operands if (t := _transposed(roles, e)) is not None]
    if turned:
        yield Product(node, tuple(operands), flat=any(turned))


def _transposed(roles: Roles, node: ast.expr, seen: frozenset[ast.expr] = frozenset()) -> bool | None:
    """Whether a transposed tensor has rows and columns only; None where nothing is transposed, or where each sample is by itself."""
    if isinstance(node, ast.Name):
        given = roles.given(node)
        if len(given) != 1 or isinstance(given[0], ast.Name) or given[0] in seen:
            return None
        return _transposed(roles, given[0], seen | {given[0]})  # y = y.to(device) gives itself
    if isinstance(node, ast.Attribute):
        return node.attr == "T" if node.attr in ("T", "mT") else None
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
        return None
    if node.func.attr in _KEEPS_PLACES:
        return _transposed(roles, node.func.value, seen)
    if node.func.attr not in _TRANSPOSES:
        return None
    method = not roles.names.dotted(node.func).startswith("torch.")
    axes = [a.value for a in node.args[0 if method else 1 :] if isinstance(a, ast.Constant)]
    if any(isinstance(i, int) and i >= 2 for i in axes) or (node.func.attr == "permute" and len(axes) != 2):
        return None  # of three dimensions or more: a product for each sample by itself
    return node.func.attr == "t" or sorted(axes, key=str) == [0, 1]


def _repeated(roles: Roles, call: ast.Call, tensor: ast.expr, times: list[ast.expr]) -> bool:
    """Whether the samples are repeated as many times as there are samples: each then meets each.

    ``x.unsqueeze(1).expand(len(x), k, d)`` repeats each sample within its own row, and so does the size of the batch in the place of its axis.
    """
    flat = [e for t in times for e in (t.elts if isinstance(t, ast.Tuple | ast.List) else [t])]
    counts = [k for k, e in enumerate(flat) if sample_count(roles, e, tensor)]
    if _one_given(roles, tensor):
        return False
    if last(call.func) != "expand":
        return bool(counts)
    axis = _new_axis(roles, tensor)  # the one along which it is repeated
    return any(k > 0 for k in counts) if axis is None else axis in counts


def _unseen(roles: Roles, node: ast.Name | ast.Attribute, seen: set[ast.expr]) -> list[ast.expr]:
    """What the variable is given, as far as the walk has not been there: ways that part and meet again would otherwise be gone each time."""
    new = [v for v in roles.given(node) if v not in seen]
    seen.update(new)
    return new


def _one_given(roles: Roles, tensor: ast.expr, seen: set[ast.expr] | None = None) -> bool:
    """Whether the function is given parts of one sample, as the boxes of a picture: it compares within that sample."""
    named = [n for n in walk(tensor) if isinstance(n, ast.Name)]
    if any(b.how == "param" for n in named for b in roles.names.bindings(roles.names.scope_of[n], n.id)):
        return of_one(roles, tensor)
    seen = set() if seen is None else seen
    return any(_one_given(roles, v, seen) for n in named for v in _unseen(roles, n, seen))


def sample_count(roles: Roles, node: ast.expr, tensor: ast.expr, seen: set[ast.expr] | None = None) -> bool:
    """Whether the number is that of the samples, or a multiple: ``x.size(0)``, ``n * x.shape[0]``, the length of the tensor itself."""
    seen = set() if seen is None else seen
    if isinstance(node, ast.Name):
        return any(sample_count(roles, v, tensor, seen) for v in _unseen(roles, node, seen))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return any(sample_count(roles, n, tensor, seen) for n in (node.left, node.right))
    if isinstance(node, ast.Call) and roles.names.dotted(node.func) == "?.len" and len(node.args) == 1:
        return ast.dump(node.args[0]) in {ast.dump(n) for n in walk(tensor)} and of_batch(roles, node.args[0])
    sized = counted(node)
    return sized is not None and of_batch(roles, sized) and not of_one(roles, sized)


def _new_axis(roles: Roles, node: ast.expr, seen: set[ast.expr] | None = None) -> int | None:
    """Where an operand is given an axis of its own: 0 before the samples, 1 behind them; None for none. Of a parameter any call may give it."""
    seen = set() if seen is None else seen
    if isinstance(node, ast.Name):
        bound = list(roles.names.bindings(roles.names.scope_of[node], node.id))
        given = _unseen(roles, node, seen)
        if not given:
            return _OPEN if roles.given(node) else None
        found = {_new_axis(roles, v, seen) for v in given} - {_OPEN}
        if any(b.how == "param" for b in bound):
            found.discard(None)
        return found.pop() if len(found) == 1 else None
    if isinstance(node, ast.Subscript):
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        new = [isinstance(p, ast.Constant) and p.value is None for p in parts]
        return int(not new[0]) if any(new) else _new_axis(roles, node.value, seen)
    if isinstance(node, ast.Attribute):
        return _new_axis(roles, node.value, seen)
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
        return None
    function = roles.names.dotted(node.func).startswith("torch.")
    given = [*node.args[int(function) :], *(k.value for k in node.keywords if k.arg == "dim")]
    numbers = [ast.unparse(a) for a in given]
    if node.func.attr == "unsqueeze" and numbers:
        return int(numbers[0] != "0")
    if node.func.attr in ("view", "reshape"):
        numbers = [ast.unparse(a) for a in given[0].elts] if len(given) == 1 and isinstance(given[0], ast.Tuple | ast.List) else numbers
        if "1" in numbers[:2] and len(numbers) > 1:
            return numbers.index("1")
    inner = node.args[0] if function and node.args else node.func.value
    return _new_axis(roles, inner, seen)


def _is_number(node: ast.expr) -> bool:
    return isinstance(node.operand if isinstance(node, ast.UnaryOp) else node, ast.Constant)


def _outer(equation: str) -> bool:
    """``id,jd->ij``: two operands that keep a letter each."""
    left, _, right = equation.replace(" ", "").partition("->")
    parts = left.split(",")
    return len(parts) == 2 and len(right) == 2 and right[0] in parts[0] and right[1] in parts[1] and right[0] not in parts[1] and right[1] not in parts[0]


def of_samples(roles: Roles, product: Product) -> bool:
    """Whether all operands are made of samples: no parameter, no table."""
    return all(of_batch(roles, e) for e in product.operands)


def of_one_sample(roles: Roles, product: Product) -> bool:
    """Whether the product stands in a loop over samples, or over parts of one, whose element it takes."""
    names = {n for e in product.operands for n in walk(e) if isinstance(n, ast.Name)}
    read = {n.id for n in names} | written_names(*(v for n in names for v in roles.given(n)))
    for a in roles.names.ancestors(product.node, below=roles.names.function(product.node)):
        targets = [g.target for g in a.generators] if isinstance(a, ast.ListComp | ast.GeneratorExp) else [a.target] if isinstance(a, ast.For) else []
        if written_names(*targets) & read:
            return True
    return False


# ---------------------------------------------------------------------- order and scale
#: functions along an axis, with the place of that axis behind the tensor
_SORTS = {"sort": 0, "argsort": 0, "msort": 9, "topk": 1, "kthvalue": 1, "median": 0, "nanmedian": 0, "quantile": 1}
_ALONG = {"softmax": 0, "log_softmax": 0, "softmin": 0, "logsumexp": 0, "normalize": 1, "cumsum": 0, "cumprod": 0, "logcumsumexp": 0}
_WHOLE = frozenset({"median", "nanmedian", "quantile"})  # over everything, where no axis is named


def along_batch(roles: Roles, call: ast.Call) -> bool:
    """Whether the samples of the batch are put in order, summed up in their order, or scaled by each other: ``losses.topk(k)``, ``z.softmax(0)``."""
    dotted, word = roles.names.dotted(call.func), last(call.func)
    place = _SORTS.get(word, _ALONG.get(word))
    if place is None or not isinstance(call.func, ast.Attribute) or (dotted and not dotted.startswith(("torch.", "numpy."))):
        return False
    tensor, given = (call.args[0], call.args[1:]) if dotted and call.args else (call.func.value, call.args)
    axis = next((k.value for k in call.keywords if k.arg in ("dim", "axis")), given[place] if place < len(given) else None)
    if not of_batch(roles, tensor):
        return False
    known = literals(roles.names, axis) if axis is not None else [-1]
    if known != [-1]:
        return 0 in known
    return word in _SORTS and (word in _WHOLE or one_number_each(roles, tensor))


def one_number_each(roles: Roles, node: ast.expr, seen: set[ast.expr] | None = None) -> bool:
    """Whether the tensor has one axis, along which the samples lie: losses that are not reduced, and what is made flat."""
    seen = set() if seen is None else seen
    if isinstance(node, ast.Name):
        return any(one_number_each(roles, v, seen) for v in _unseen(roles, node, seen))
    if isinstance(node, ast.UnaryOp):
        return one_number_each(roles, node.operand, seen)
    if isinstance(node, ast.BinOp):
        return one_number_each(roles, node.left, seen) or one_number_each(roles, node.right, seen)
    if isinstance(node, ast.Attribute):
        return node.attr == "data" and one_number_each(roles, node.value, seen)
    if not isinstance(node, ast.Call):
        return False
    made = [node, *(v.node for v in roles.values.eval(node.func) if isinstance(v.node, ast.Call))]
    if any(k.arg == "reduction" and isinstance(k.value, ast.Constant) and k.value.value == "none" for c in made for k in c.keywords):
        return True
    if not isinstance(node.func, ast.Attribute):
        return False
    if node.func.attr in ("view", "reshape", "flatten", "ravel"):
        return [ast.unparse(a) for a in node.args] in ([], ["-1"])
    if node.func.attr in REDUCTIONS:
        gone = axes(roles.names, node)  # of rows: what a sample's row comes to
        kept = any(k.arg == "keepdim" for k in node.keywords) or any(isinstance(a, ast.Constant) and a.value is True for a in node.args)
        return bool(gone) and 0 not in gone and not kept
    return node.func.attr in _KEEPS_PLACES and one_number_each(roles, node.func.value, seen)


def decomposed(roles: Roles, call: ast.Call) -> bool:
    """Whether the call looks at a matrix as a whole, of which the rows are the samples where it has two axes: its singular values, a nuclear norm."""
    dotted = roles.names.dotted(call.func)
    known = dotted in _DECOMPOSITIONS or (isinstance(call.func, ast.Attribute) and not dotted and call.func.attr in ("svd", "qr"))
    nuclear = last(call.func) in ("norm", "matrix_norm") and any(isinstance(a, ast.Constant) and a.value == "nuc" for a in walk(call))
    tensor = call.args[0] if dotted and call.args else getattr(call.func, "value", None)
    return (known or nuclear) and isinstance(tensor, ast.expr) and of_batch(roles, tensor)


# ---------------------------------------------------------------------- labels
def numbered(roles: Roles) -> Iterator[ast.Call]:
    """Cross entropies whose classes are the samples of the batch: ``F.cross_entropy(z, torch.arange(len(z)))``."""
    for call in roles.calls:
        if roles.names.dotted(call.func) in _ENTROPY or any(v.qual in _ENTROPY for v in roles.values.eval(call.func)):
            labels = next((k.value for k in call.keywords if k.arg == "target"), call.args[1] if len(call.args) > 1 else None)
            if labels is not None and _counts_samples(roles, labels):
                yield call


def _counts_samples(roles: Roles, node: ast.expr, seen: set[ast.expr] | None = None) -> bool:
    """``torch.arange(len(x))``, ``range(x.size(0))``, moved, or by a name."""
    seen = set() if seen is None else seen
    if isinstance(node, ast.Name | ast.Attribute):
        return any(_counts_samples(roles, v, seen) for v in _unseen(roles, node, seen))
    if not isinstance(node, ast.Call):
        return False
    if roles.names.dotted(node.func) not in ("torch.arange", "?.range"):
        return isinstance(node.func, ast.Attribute) and _counts_samples(roles, node.func.value, seen)  # .to(device), .long()
    last_one = next((k.value for k in node.keywords if k.arg == "end"), node.args[-1] if node.args else None)
    return last_one is not None and (
        of_batch(roles, last_one) or (isinstance(last_one, ast.Name | ast.Attribute) and bool(_BATCH_SIZE.fullmatch(last(last_one))))
    )


# ---------------------------------------------------------------------- places
def placed(roles: Roles) -> Iterator[ast.Subscript]:
    """Samples that are taken by their place in the batch: ``x[:8]``, ``x[::2]``. What is unpacked are outputs, and a text or list has other elements."""
    for node in roles.names.nodes:
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice) and isinstance(node.ctx, ast.Load):
            stmt = roles.names.statement(node)
            unpacked = isinstance(stmt, ast.Assign) and stmt.value is node and any(isinstance(t, ast.Tuple | ast.List) for t in stmt.targets)
            first = node.slice.lower is None and isinstance(n := node.slice.upper, ast.Constant) and isinstance(n.value, int) and n.value > 1
            strided = isinstance(s := node.slice.step, ast.Constant) and isinstance(s.value, int) and s.value > 1
            if (first or strided) and not unpacked and isinstance(node.value, ast.Name | ast.Attribute) and of_batch(roles, node.value):
                yield node
