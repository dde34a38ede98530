"""Where samples meet those that lie beside them in the batch: ``f[1:] - f[:-1]``, even rows with odd ones, halves with halves, views that put several into one.

A part of the batch has other neighbours than the batch. The rows have to be the samples as a loader gives them: what a step has put together by itself
(``torch.cat([a, b])``), or has taken apart (the crops of a picture), lies beside rows of its own sample, on every rank.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from dpmigrate.facts.names import last, position
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.objects import Val
from dpmigrate.facts.pairs import one_number_each, sample_count
from dpmigrate.facts.reductions import literals
from dpmigrate.facts.roles import Roles, element
from dpmigrate.facts.rows import VIEWS, Rows, receiver, sizes_in
from dpmigrate.facts.scopes import Binding

_CUTS = frozenset({"chunk", "split", "tensor_split"})
_SEQUENCES = ("RNN", "LSTM", "GRU", "Transformer", "TransformerEncoderLayer", "TransformerDecoderLayer", "MultiheadAttention")


@dataclass(frozen=True, eq=False, slots=True)
class Meeting:
    """An expression that compares samples with their neighbours, of the tensors in ``parts``.

    Not ``certain`` where the program has sequences whose first axis may be time, a batch that it puts together by itself, or rows of unknown width.
    """

    node: ast.expr
    parts: tuple[ast.expr, ...]
    certain: bool


@dataclass(frozen=True, slots=True)
class _Part:
    """Some rows of a tensor: ``which`` says which."""

    tensor: Hashable
    which: str


def neighbours(roles: Roles) -> Iterator[Meeting]:
    """The meetings of neighbours, in the order of the program."""
    found = _Finding(roles)
    plain = not first_axis_is_time(roles) and not any(k.arg == "collate_fn" for c in roles.loader_calls for k in c.keywords)
    for node in roles.names.nodes:
        if not isinstance(node, ast.BinOp | ast.Call) or not (roles.region(node) in ("train", "both") or roles.inside_module(node)):
            continue
        if isinstance(node, ast.BinOp):
            if not isinstance(node.op, ast.MatMult) and found.differ([node.left, node.right]):
                yield Meeting(node, (node.left, node.right), plain)
        elif _compares(roles, node) and found.differ(given := [*node.args, *(k.value for k in node.keywords)]):
            yield Meeting(node, tuple(given), plain)
        elif (known := found.several_in_one(node)) is not None:
            yield Meeting(node, (node,), plain and known)


def first_axis_is_time(roles: Roles) -> bool:
    """Whether the program has layers, or puts sequences together, with the batch on the second axis."""
    for c in roles.calls:
        dotted = roles.names.dotted(c.func)
        timed = dotted.startswith("torch.nn.") and last(c.func) in (*_SEQUENCES, "pad_sequence", "pad_packed_sequence")
        if timed and not any(k.arg == "batch_first" and isinstance(k.value, ast.Constant) and k.value.value for k in c.keywords):
            return True
    return False


def _compares(roles: Roles, call: ast.Call) -> bool:
    """A function of torch, a loss or a layer of torch, a model: of what it is given row meets row. Functions of the program are looked into."""
    made = roles.values.eval(call.func)
    return roles.names.dotted(call.func).startswith("torch.") or bool(roles.model_vals(call.func)) or any(v.qual.startswith("torch.nn.") for v in made)


class _Finding:
    def __init__(self, roles: Roles) -> None:
        self.roles = roles
        self.names = roles.names
        self.rows = Rows(roles)
        self._parts: dict[ast.AST, _Part | None] = {}
        self._passes: dict[ast.AST, ast.Call | None] = {}

    def differ(self, given: list[ast.expr]) -> bool:
        """Whether two of the expressions are different rows of one tensor."""
        which: dict[Hashable, set[str]] = {}
        for e in given:
            part = self._part(e)
            if part is not None:
                which.setdefault(part.tensor, set()).add(part.which)
        return any(len(w) > 1 for w in which.values())

    # ------------------------------------------------------------------ which rows are they?
    def _part(self, node: ast.AST) -> _Part | None:
        """The rows that the expression has, if they are some of a tensor's; none of what is made of itself."""
        if node not in self._parts:
            self._parts[node] = None
            self._parts[node] = self._found(node)
        return self._parts[node]

    def _found(self, node: ast.AST) -> _Part | None:
        if isinstance(node, ast.Name):
            bound = [b for b in self.names.bindings(self.names.scope_of[node], node.id) if not any(self.rows.moved(v, node) for v in self.rows.values(b))]
            found = {p for b in bound for p in self._bound(b)}
            return found.pop() if len(found) == 1 else None
        if isinstance(node, ast.Subscript):
            first = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) and node.slice.elts else node.slice
            sliced = isinstance(first, ast.Slice) and not (first.lower is None and first.upper is None and first.step is None)
            if (sliced or self._number_of_sample(first, node.value)) and self.rows.samples(node.value):
                return _Part(self._key(node.value), ast.unparse(first))
            if isinstance(first, ast.Constant) and isinstance(first.value, int):
                for value in self.roles.given(node.value) if isinstance(node.value, ast.Name) else [node.value]:
                    cut = self._cut(value)
                    if cut is not None:
                        return _Part(cut, f"part {first.value}")
        found = {p for e in self.rows.of(node) if (p := self._part(e)) is not None}
        return found.pop() if len(found) == 1 else None

    def _bound(self, b: Binding) -> list[_Part | None]:
        if b.how == "assign" and isinstance(b.value, ast.expr):
            cut = self._cut(b.value) if len(b.path) == 1 else None
            return [_Part(cut, f"part {b.path[0]}") if cut is not None else self._part(element(b.value, b.path))]
        if b.how == "for" and isinstance(b.value, ast.Call) and self.names.dotted(b.value.func) == "?.zip" and len(b.path) == 2 and isinstance(b.path[1], int):
            return [self._part(b.value.args[b.path[1]])] if b.path[1] < len(b.value.args) else [None]
        return [self._part(v) for v in self.rows.values(b)]

    def _cut(self, node: ast.AST) -> Hashable | None:
        """The tensor that the call cuts into parts along its first axis: ``f.chunk(2)``, ``torch.split(f, n)``."""
        if not isinstance(node, ast.Call) or last(node.func) not in _CUTS:
            return None
        tensor, rest = receiver(self.names, node)
        axis = next((k.value for k in node.keywords if k.arg in ("dim", "axis")), rest[1] if len(rest) > 1 else None)
        along = axis is None or literals(self.names, axis) == [0]
        return self._key(tensor) if tensor is not None and along and self.rows.samples(tensor) else None

    def _key(self, node: ast.expr) -> Hashable:
        return self.names.meant(node) or ast.unparse(node)

    def _number_of_sample(self, index: ast.expr, tensor: ast.expr) -> bool:
        """Whether a loop over the numbers of the samples gives the index: ``f[i + 1]`` in ``for i in range(len(f) - 1)``."""
        for n in walk(index):
            if isinstance(n, ast.Name):
                bound = list(self.names.bindings(self.names.scope_of[n], n.id))
                ends = [self._ends(b, tensor) for b in bound]
                if ends and all(ends):
                    return True
        return False

    def _ends(self, b: Binding, tensor: ast.expr) -> bool:
        call = b.value if b.how == "for" and not b.path[1:] else None
        if not isinstance(call, ast.Call) or self.names.dotted(call.func) != "?.range" or not call.args:
            return False
        end = call.args[min(1, len(call.args) - 1)]
        while isinstance(end, ast.BinOp):
            end = end.left
        return sample_count(self.roles, end, tensor)

    # ------------------------------------------------------------------ several samples in one row
    def several_in_one(self, call: ast.Call) -> bool | None:
        """Whether rows are put together, or taken from each other, along the first axis: True, or False where it is not sure; None for no."""
        tensor, rest = receiver(self.names, call)
        if tensor is None or not isinstance(call.func, ast.Attribute):
            return None
        word = last(call.func)
        if word == "diff":
            axis = next((k.value for k in call.keywords if k.arg == "dim"), rest[1] if len(rest) > 1 else None)
            return True if axis is not None and literals(self.names, axis) == [0] and self.rows.samples(tensor) else None
        if word == "unflatten":
            axis, sizes = (rest[0] if rest else None), sizes_in(rest[1:])
            along = axis is not None and literals(self.names, axis) == [0] and len(sizes) > 1 and self.rows.number(sizes[1]) != 1
            return True if along and self.rows.samples(tensor) else None
        sizes = sizes_in(rest) if word in VIEWS else []
        if len(sizes) < 2 or not self.rows.samples(tensor):
            return None
        return self._grouped(tensor, sizes)

    def _grouped(self, tensor: ast.expr, sizes: list[ast.expr]) -> bool | None:
        """``f.view(n // 2, 2, -1)``, ``f.view(-1, 2, f.size(1))``: a first axis of fewer samples than the batch has."""
        head = sizes[0]
        if isinstance(head, ast.Name):
            head = next(iter(self.roles.given(head)), head)
        if isinstance(head, ast.BinOp) and isinstance(head.op, ast.Div | ast.FloorDiv) and sample_count(self.roles, head.left, tensor):
            return True
        group = self.rows.number(sizes[1])
        if ast.unparse(sizes[0]) != "-1" or group is None or group < 2:
            return None
        if len(sizes) == 2:
            return True if one_number_each(self.roles, tensor) else None
        text = ast.unparse(tensor)
        if any(ast.unparse(s) in (f"{text}.size(1)", f"{text}.size(-1)", f"{text}.shape[1]", f"{text}.shape[-1]") for s in sizes[2:]):
            return True
        width = self._width(tensor)
        wide = [self.rows.number(s) for s in sizes[1:]]
        if width is None or None in wide:
            return False if group == 2 and self._of_model(tensor) else None
        whole = 1
        for w in wide:
            whole *= w or 1
        return True if whole == group * width else None

    # ------------------------------------------------------------------ sizes
    def _of_model(self, node: ast.expr) -> bool:
        return self._call_of_model(node) is not None

    def _call_of_model(self, node: ast.AST) -> ast.Call | None:
        """The model's call that gives the rows."""
        if isinstance(node, ast.Call) and self.roles.model_vals(node.func):
            return node
        if node not in self._passes:
            self._passes[node] = None
            inner = self.roles.given(node) if isinstance(node, ast.Name) else self.rows.of(node)
            self._passes[node] = next((c for e in inner if (c := self._call_of_model(e)) is not None), None)
        return self._passes[node]

    def _width(self, node: ast.expr) -> int | None:
        """How many numbers a row has, where a linear layer gives them."""
        call = self._call_of_model(node)
        made = {m for v in self.roles.model_vals(call.func) for m in (v, *self.roles.values.inner(v))} if call is not None else set()
        found = {n for v in made if v.kind != "wrapped" for n in self._given_by(v, frozenset())}
        return found.pop() if len(found) == 1 else None

    def _given_by(self, v: Val, seen: frozenset[Val]) -> list[int | None]:
        forward = self.roles.values.defs.method(v.cls, "forward") if v.kind == "object" and v.cls is not None else None
        if forward is not None and v not in seen:
            returned = [self._returned(r.value) for r in self.names.returns(forward)]
            layers = [self.roles.values.eval(r.func) if isinstance(r, ast.Call) else frozenset() for r in returned]
            return [n for found in layers for x in found for n in self._given_by(x, seen | {v})] if layers and all(layers) else [None]
        if v.kind != "call" or not isinstance(v.node, ast.Call):
            return [None]
        if v.qual == "torch.nn.Sequential" and v.node.args:
            return [n for x in self.roles.values.eval(v.node.args[-1]) for n in self._given_by(x, seen | {v})] or [None]
        named = next((k.value for k in v.node.keywords if k.arg == "out_features"), v.node.args[1] if len(v.node.args) > 1 else None)
        return [self.rows.number(named) if v.qual == "torch.nn.Linear" and named is not None else None]

    def _returned(self, value: ast.expr | None) -> ast.expr | None:
        """What is returned, or what the variable was given last."""
        given = self.roles.given(value) if isinstance(value, ast.Name) else []
        return max(given, key=position) if given else value
