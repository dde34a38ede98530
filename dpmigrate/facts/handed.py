"""What hands out the batches of a program that cuts them by itself: slices that lie end to end, parts of an order, lists, generators and objects of these.

Everything here asks for one thing: has an expression an entry for each sample of a batch, in the order of the samples? ``Rows.are`` says so of one batch,
``Rows.each`` of what gives one batch after the other. What is not seen has none.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from dpmigrate.facts.advancing import Counter, apart, beside, counter, written
from dpmigrate.facts.definitions import arguments, gone_through, parameters, through
from dpmigrate.facts.drawn_rows import OF_ROWS, SAME_ROWS, element
from dpmigrate.facts.library import MUTATORS
from dpmigrate.facts.names import FunctionNode, Loop, Names
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.scopes import Binding
from dpmigrate.facts.tiles import Poly, counts, number, plus, poly, product, tile, turn

if TYPE_CHECKING:
    from dpmigrate.facts.roles import Roles

#: whole orders of samples, and what gives the same items in another order
_ORDERS = frozenset({"torch.randperm", "numpy.random.permutation", "torch.arange", "numpy.arange", "?.range"})
_SAME_ITEMS = frozenset({"random.sample", "numpy.random.permutation", "?.sorted", "?.list", "?.tuple", "?.reversed", "?.iter", "torch.tensor", "numpy.array"})
#: functions and methods that cut something into parts along its first axis
_SPLITS = frozenset({"torch.split", "torch.chunk", "torch.tensor_split", "numpy.array_split", "numpy.split"})
_METHODS = frozenset({"split", "chunk", "tensor_split"})
_AXES = frozenset({"dim", "axis"})
_SHAPES = frozenset({"view", "reshape"})


@dataclass(frozen=True, slots=True)
class Turn:
    """What is known where batches are made: ``known`` are whole numbers, by the names of their variables or by their attributes as written (None for what
    is not known), in terms of how often the loop, or the method, has had its turn; ``rows`` are the variables that have an entry for each sample, and
    ``counters`` the numbers that are counted by hand.
    """

    known: Mapping[str, Poly | None] = field(default_factory=dict)
    rows: frozenset[str] = frozenset()
    counters: Mapping[str, Counter] = field(default_factory=dict)

    def at(self, names: Names, node: ast.AST) -> Mapping[str, Poly | None]:
        """The whole numbers as they are at a node."""
        return {**self.known, **{name: c.at(names, node) for name, c in self.counters.items()}} if self.counters else self.known


class Rows:
    """Where the samples of batches are, in expressions of one program."""

    def __init__(self, roles: Roles) -> None:
        self.roles = roles
        self.names = roles.names
        #: the sizes of the batches that were found to be cut, as written
        self.sizes: set[str] = set()
        #: the slices that are what is left for the last batch
        self.rests: set[ast.expr] = set()
        self._open: set[object] = set()

    # ------------------------------------------------------------------ where batches are made
    def within(self, node: ast.AST, begin: Turn | None = None) -> Turn:
        """What is known at a node: of the loops round it, the innermost last, and of the variables of its function."""
        function = self.names.function(node)
        found = self._variables(function, begin or Turn()) if isinstance(function, FunctionNode) else begin or Turn()
        loops = [a for a in self.names.ancestors(node, below=function) if isinstance(a, ast.For | ast.While)]
        for loop in reversed(loops):
            found = self.turn(loop, found)
        return found

    def turn(self, loop: Loop, around: Turn | None = None) -> Turn:
        """What is known in the body of a loop."""
        found = around or Turn()
        if not isinstance(loop, ast.While):
            found = self._over(loop.iter, loop.target, found)
        return self._variables(loop, found)

    def _over(self, over: ast.expr, target: ast.expr, around: Turn) -> Turn:
        known: dict[str, Poly | None] = {**around.known}
        known |= {n.id: None for n in walk(target) if isinstance(n, ast.Name)}
        rows = around.rows
        known |= dict.fromkeys(around.counters)
        while True:
            if isinstance(over, ast.Call) and self.names.dotted(over.func) == "?.enumerate" and over.args and isinstance(target, ast.Tuple):
                if isinstance(first := target.elts[0], ast.Name):
                    known[first.id] = turn()
                over, target = over.args[0], target.elts[-1]
            elif isinstance(over, ast.Call) and not self._own(over) and (inner := through(self.names, over)) is not None:
                over = inner
            else:
                break
        counted = self.steps(over, around.at(self.names, over))
        if counted is not None and isinstance(target, ast.Name):
            known[target.id] = product(counted, turn())
        elif self.each(over, around):
            rows |= {n.id for n in walk(target) if isinstance(n, ast.Name)}
        return Turn(known, rows)

    def _variables(self, body: ast.AST, around: Turn) -> Turn:
        """The whole numbers that are assigned in a loop or a function; what is assigned several times is not known, but for what counts by hand."""
        known = dict(around.known)
        by_name = written(self.names, body)
        known |= dict.fromkeys(by_name)
        plain = {name: v for name, by in by_name.items() if len(by) == 1 and (v := _assigned(by[0], name)) is not None}
        counted = {name: c for name, by in by_name.items() if (c := counter(self.names, body, name, by, known, plain)) is not None}
        kept = {name: c for name, c in around.counters.items() if name not in by_name}
        found = replace(around, known=known, rows=around.rows - set(by_name), counters={**kept, **counted})
        for name, by in sorted(by_name.items(), key=lambda w: w[1][0].lineno):
            if name in counted:
                continue
            given = [_assigned(stmt, name) for stmt in by]
            polys = [poly(v, found.at(self.names, stmt)) if v is not None else None for v, stmt in zip(given, by, strict=True)]
            if len(polys) == 1:
                # what is no whole number of the loop's is told by its name, as before
                known[name] = p if (p := polys[0]) is None or counts(p) else {(name,): 1}
            elif len(ends := [p for p in polys if p is None or counts(p)]) == 1 and polys[0] is ends[0] and self._held_back(by):
                known[name] = ends[0]
        return found

    def _held_back(self, by: list[ast.stmt]) -> bool:
        """Whether an end is held within the data: ``end = i + n`` and ``if end > len(x): end = len(x)``."""
        return all(isinstance(self.names.parent[stmt], ast.If) for stmt in by[1:])

    def steps(self, over: ast.expr, known: Mapping[str, Poly | None], depth: int = 4) -> Poly | None:
        """How much a loop over an expression counts from one item to the next, in whatever order it goes through them."""
        if isinstance(over, ast.Name) and depth:
            values = [b.value for b in self.names.bindings(self.names.scope_of[over], over.id) if b.how == "assign"]
            return self.steps(values[0], known, depth - 1) if len(values) == 1 and isinstance(values[0], ast.expr) else None
        if isinstance(over, ast.Subscript) and isinstance(over.slice, ast.Slice):
            return self.steps(over.value, known, depth)
        if not isinstance(over, ast.Call) or any(isinstance(a, ast.Starred) for a in over.args):
            return None
        dotted = self.names.dotted(over.func)
        if dotted in ("?.range", "numpy.arange", "torch.arange") or dotted.endswith(".trange"):
            return poly(over.args[2], known) if len(over.args) > 2 else number(1)
        if dotted in _SAME_ITEMS and over.args:
            inner = self.steps(over.args[0], known, depth)
            return number(1) if inner is None and dotted == "numpy.random.permutation" else inner
        if dotted == "torch.randperm":
            return number(1)
        inner_one = gone_through(over) if self.names.word(over.func) in ("tqdm", "list") else None
        return self.steps(inner_one, known, depth) if inner_one is not None else None

    # ------------------------------------------------------------------ one batch
    def are(self, node: ast.expr, at: Turn) -> bool:
        """Whether an expression has an entry for each sample of a batch along its first axis, and so has each part of a tuple or a dictionary."""
        match node:
            case ast.Tuple(elts=parts) if parts:
                return all(self.are(p, at) for p in parts)
            case ast.Dict(values=parts) if parts:
                return all(k is not None for k in node.keys) and all(self.are(p, at) for p in parts)
            case ast.IfExp(body=body, orelse=other):
                return self.are(body, at) and self.are(other, at)
            case ast.Name():
                return node.id in at.rows or self._variable(node, at)
            case ast.ListComp(generators=[one]):
                return not one.ifs and not one.is_async and self._gone_through(one.iter, at)
            case ast.Subscript():
                return self.cut(node, at) or self._chosen(node, at)
            case ast.Call():
                return self._called(node, at)
        return False

    def cut(self, node: ast.Subscript, at: Turn) -> bool:
        """Whether it is a batch that is cut by a slice: the next one begins where it ends."""
        part = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) and node.slice.elts else node.slice
        if isinstance(part, ast.Slice) and part.step is None and part.lower is not None and part.upper is not None:
            known = at.at(self.names, node)
            lower, upper = poly(part.lower, known), poly(part.upper, known)
            if tile(lower, upper, number(1)):
                assert lower is not None and upper is not None
                size = plus(upper, lower, -1)
                self.sizes |= {word for key in size for word in key} or {str(size.get((), 0))}
                return True
        return self._rest(node, at)

    def _rest(self, node: ast.Subscript, at: Turn) -> bool:
        """Whether it is the last batch, of what is left: ``x[i:]`` or ``x[i : len(x)]`` where another branch has ``x[i : i + n]``."""
        part = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) and node.slice.elts else node.slice
        if not isinstance(part, ast.Slice) or part.step is not None or part.lower is None or ("rest", node) in self._open:
            return False
        known = at.at(self.names, node)
        begin, end = poly(part.lower, known), poly(part.upper, known) if part.upper is not None else {}
        if begin is None or not counts(begin) or end is None or counts(end):
            return False
        self._open.add(("rest", node))
        try:
            function = self.names.function(node)
            others = [n for n in walk(function) if isinstance(n, ast.Subscript) and n is not node and ast.dump(n.value) == ast.dump(node.value)]
            found = any(apart(self.names, node, n) and self.cut(n, at) and self._begins(n, at) == begin for n in others)
        finally:
            self._open.discard(("rest", node))
        if found:
            self.rests.add(node)
        return found

    def _begins(self, node: ast.Subscript, at: Turn) -> Poly | None:
        part = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) else node.slice
        return poly(part.lower, at.at(self.names, node)) if isinstance(part, ast.Slice) and part.lower is not None else None

    def _chosen(self, node: ast.Subscript, at: Turn) -> bool:
        """``x[order]`` with the batch's part of an order, ``batches[i]``, ``batch[:, 1:]``."""
        if isinstance(node.slice, ast.Tuple):
            first, *others = node.slice.elts or [ast.Constant(0)]
            plain = all(isinstance(o, ast.Slice | ast.Constant) for o in others)
            whole = isinstance(first, ast.Slice) and first.lower is None and first.upper is None and first.step is None
            return plain and (self.are(node.value, at) if whole else not isinstance(first, ast.Slice) and self.are(first, at))
        if isinstance(node.slice, ast.Slice | ast.Constant):
            return isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str) and self.are(node.value, at)
        return self.are(node.slice, at) or self.each(node.value, at)

    def _gone_through(self, node: ast.expr, at: Turn) -> bool:
        if isinstance(node, ast.Call) and self.names.dotted(node.func) in ("?.enumerate", "?.zip") and node.args:
            return all(not isinstance(a, ast.Starred) and self.are(a, at) for a in node.args)
        return self.are(node, at)

    def _called(self, node: ast.Call, at: Turn) -> bool:
        dotted = self.names.dotted(node.func)
        if self.taken(node):
            return True
        if self._own(node):
            return self._made(node, at)
        if isinstance(node.func, ast.Attribute) and not dotted and node.func.attr in SAME_ROWS | {"tolist"}:
            return self.are(node.func.value, at)
        if not node.args:
            return False
        if dotted in OF_ROWS or dotted in ("?.list", "?.tuple"):
            stacked = dotted.endswith(".stack") and len(node.args) > 1
            return not stacked and not any(k.arg in _AXES for k in node.keywords) and self.are(node.args[0], at)
        if dotted == "?.map":
            return len(node.args) > 1 and all(self.are(a, at) for a in node.args[1:])
        if dotted == "torch.nn.utils.rnn.pad_sequence":
            first = next((k.value for k in node.keywords if k.arg == "batch_first"), node.args[1] if len(node.args) > 1 else None)
            return isinstance(first, ast.Constant) and first.value is True and self.are(node.args[0], at)
        return False

    def _own(self, call: ast.Call) -> bool:
        return any(True for _ in self.roles.values.targets(call))

    def _made(self, call: ast.Call, at: Turn) -> bool:
        """What functions of the program make of a batch, or of the numbers by which it is cut."""
        functions = list(self.roles.values.targets(call))
        return bool(functions) and all(self._returned(f, call, bound, at) for f, bound in functions)

    def _returned(self, function: FunctionNode, call: ast.Call, bound: int, at: Turn) -> bool:
        if (function, call) in self._open or self.roles.reaches_backward(function) or self.roles.inside_module(function) or _yields(self.names, function):
            return False
        self._open.add((function, call))
        try:
            inside = self._entered(function, call, bound, at)
            given = [r.value for r in self.names.returns(function)]
            return bool(given) and all(g is not None and self.are(g, inside) for g in given)
        finally:
            self._open.discard((function, call))

    def _entered(self, function: FunctionNode, call: ast.Call, bound: int, at: Turn) -> Turn:
        given = dict(arguments(call, function, bound))
        around = at.at(self.names, call)
        known = {name: poly(a, around) for name, a in given.items()}
        rows = frozenset(name for name, a in given.items() if self.are(a, at))
        return self._variables(function, Turn(known | self._own_numbers(function, call, around), rows))

    def _own_numbers(self, function: FunctionNode, call: ast.Call, around: Mapping[str, Poly | None]) -> dict[str, Poly | None]:
        """What a method of the same object knows of the numbers in its attributes."""
        caller = self.names.function(call)
        mine, others = (next(iter(parameters(f)), "") if isinstance(f, FunctionNode) else "" for f in (caller, function))
        func = call.func
        if not mine or not others or not isinstance(func, ast.Attribute) or not isinstance(func.value, ast.Name) or func.value.id != mine:
            return {}
        return {others + text.removeprefix(mine): p for text, p in around.items() if text.startswith(f"{mine}.")}

    def _variable(self, node: ast.Name, at: Turn) -> bool:
        """Whether all that a variable is given, in its own function, has an entry for each sample."""
        bound = list(self.names.bindings(self.names.scope_of[node], node.id))
        function = self.names.function(node)
        if ("are", *self._who(node)) in self._open:
            return len(bound) > 1  # x = x.to(device): what it was before is looked at by itself
        if not bound or any(b.how != "assign" or self.names.function(b.target) is not function for b in bound):
            return False
        self._open.add(("are", *self._who(node)))
        try:
            return self._filled(node, bound, at) or all(self._given(b, at) for b in bound)
        finally:
            self._open.discard(("are", *self._who(node)))

    def _given(self, b: Binding, at: Turn) -> bool:
        value, path = b.value, b.path
        if len(path) == 1 and isinstance(value, ast.Call) and self.names.dotted(value.func) == "?.zip":  # xs, ys = zip(*batch)
            starred = value.args[0].value if len(value.args) == 1 and isinstance(value.args[0], ast.Starred) else None
            return starred is not None and self.are(starred, at)
        given = element(value, path)
        return isinstance(given, ast.expr) and self.are(given, at)

    def _filled(self, node: ast.Name, bound: list[Binding], at: Turn) -> bool:
        """A list that is empty at first, and that a loop over the samples of the batch gives one more item in each turn."""
        if len(bound) != 1 or not _empty(element(bound[0].value, bound[0].path)):
            return False
        changes = list(_changes(self.names, self.names.uses(self.names.scope_of[node], node.id)))
        if len(changes) != 1 or not isinstance(add := changes[0], ast.Call) or not isinstance(add.func, ast.Attribute) or add.func.attr != "append":
            return False
        stmt = self.names.statement(add)
        loop = self.names.parent[stmt]
        plain = isinstance(loop, ast.For) and stmt in loop.body and not any(isinstance(n, ast.Break | ast.Continue | ast.Return) for n in walk(loop))
        return plain and isinstance(loop, ast.For) and self._gone_through(loop.iter, at)

    # ------------------------------------------------------------------ one batch after the other
    def each(self, node: ast.expr, at: Turn) -> bool:
        """Whether an expression gives one batch after the other."""
        match node:
            case ast.ListComp(elt=elt, generators=[one]) | ast.GeneratorExp(elt=elt, generators=[one]):
                return not one.ifs and self.are(elt, self._over(one.iter, one.target, at))
            case ast.Name() | ast.Attribute():
                return self._held(node, at)
            case ast.Subscript(value=base, slice=ast.Slice()):
                return self.each(base, at)
            case ast.Call():
                return self._handing(node, at)
        return False

    def _handing(self, node: ast.Call, at: Turn) -> bool:
        dotted = self.names.dotted(node.func)
        if self._own(node):
            return self._generated(node, at)
        if not any(k.arg in _AXES for k in node.keywords):
            if dotted in _SPLITS and len(node.args) == 2:
                return True
            if isinstance(node.func, ast.Attribute) and not dotted and len(node.args) == 1 and node.func.attr in _METHODS:
                return not isinstance(node.args[0], ast.Constant) or isinstance(node.args[0].value, int)
        if isinstance(node.func, ast.Attribute) and not dotted and node.func.attr in _SHAPES:
            shape = node.args[0].elts if len(node.args) == 1 and isinstance(node.args[0], ast.Tuple) else node.args
            return len(shape) == 2 and self._order(node.func.value)
        if dotted == "?.zip" and node.args:
            return all(not isinstance(a, ast.Starred) and self.each(a, at) for a in node.args)
        if (dotted in _SAME_ITEMS or through(self.names, node) is not None) and node.args:
            return self.names.word(node.func) != "enumerate" and self.each(node.args[0], at)
        return any(v.kind == "object" and v.node is node for v in self.roles.values.eval(node)) and self._of_objects(node)

    def _order(self, node: ast.expr) -> bool:
        """An order of samples: ``torch.randperm(n)``, the beginning of one, a variable of them."""
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
            return self._order(node.value)
        if isinstance(node, ast.Call):
            return self.names.dotted(node.func) in _ORDERS
        if isinstance(node, ast.Name):
            if ("order", *self._who(node)) in self._open:
                return True
            bound = list(self.names.bindings(self.names.scope_of[node], node.id))
            self._open.add(("order", *self._who(node)))
            try:
                return bool(bound) and all(
                    b.how == "assign" and not b.path and isinstance(b.value, ast.expr) and (self._order(b.value) or self._handing_of_order(b.value))
                    for b in bound
                )
            finally:
                self._open.discard(("order", *self._who(node)))
        return False

    def _handing_of_order(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Call) and not self._own(node) and self._handing(node, Turn())

    def _held(self, node: ast.Name | ast.Attribute, at: Turn) -> bool:
        """What a variable or an attribute holds: a list of batches, an object that hands them out."""
        key = ("each", *self._who(node))
        if key in self._open:
            return True
        self._open.add(key)
        try:
            keys = list(self.roles.values.keys(node))
            written = [v for k in keys for v in self.roles.written(k)]
            if written and all(_empty(v) for v in written):
                return self._listed(node)
            if written and any(self.each(v, self.within(v)) for v in written):
                return all(self.each(v, self.within(v)) or self._order(v) for v in written)
            if isinstance(node, ast.Name) and not written:
                return self._parameter(node)
            return self._of_objects(node)
        finally:
            self._open.discard(key)

    def _who(self, node: ast.Name | ast.Attribute) -> tuple[object, str]:
        """A variable, which another function may have one of the same name beside."""
        return (self.names.owner(self.names.scope_of[node], node.id) if isinstance(node, ast.Name) else None, ast.dump(node))

    def _parameter(self, node: ast.Name) -> bool:
        bound = list(self.names.bindings(self.names.scope_of[node], node.id))
        given = [e for b in bound for e in self.roles.handed(b)] if all(b.how == "param" for b in bound) else []
        return bool(given) and all(e is not None and self.each(e, self.within(e)) for e in given)

    def _listed(self, node: ast.Name | ast.Attribute) -> bool:
        """A list that is empty at first and is given batches."""
        if isinstance(node, ast.Name):
            uses: list[ast.Name | ast.Attribute] = list(self.names.uses(self.names.scope_of[node], node.id))
        else:
            keys = set(self.roles.values.keys(node))
            uses = [u for u in self.names.attributes(node.attr) if keys & set(self.roles.values.keys(u))]
        changes = list(_changes(self.names, uses))
        added = [c.args[0] for c in changes if isinstance(c, ast.Call) and isinstance(c.func, ast.Attribute) and c.func.attr == "append" and len(c.args) == 1]
        return 0 < len(added) == len(changes) and all(self.are(a, self.within(a)) for a in added)

    def _generated(self, call: ast.Call, at: Turn) -> bool:
        """A generator of the program, a function that gives a list of batches, an object that is made in place."""
        if (call, "each") in self._open:
            return False
        self._open.add((call, "each"))
        try:
            if any(v.kind == "object" for v in self.roles.values.eval(call)):
                return self._of_objects(call)
            found = list(self.roles.values.targets(call))
            return bool(found) and all(self._gives(f, self._entered(f, call, bound, at)) for f, bound in found)
        finally:
            self._open.discard((call, "each"))

    def _gives(self, function: FunctionNode, inside: Turn) -> bool:
        """Whether a function gives one batch after the other: it yields them, or returns what hands them out."""
        if self.roles.reaches_backward(function) or self.roles.inside_module(function):
            return False
        yields = _yields(self.names, function)
        if yields:
            plain = all(isinstance(y, ast.Yield) and y.value is not None for y in yields)
            return plain and all(isinstance(y, ast.Yield) and y.value is not None and self.are(y.value, self.within(y, inside)) for y in yields)
        given = [r.value for r in self.names.returns(function)]
        return bool(given) and all(g is not None and self.each(g, inside) for g in given)

    def _of_objects(self, node: ast.expr) -> bool:
        made = self.roles.values.eval(node)
        return bool(made) and all(v.kind == "object" and v.cls is not None and self._hands(v.cls) for v in made)

    def _hands(self, cls: ast.ClassDef) -> bool:
        """Whether a loop over an object of a class has one batch after the other."""
        if (cls, "each") in self._open:
            return False
        self._open.add((cls, "each"))
        try:
            method = self.roles.values.defs.method
            iterates, nexts, item = (method(cls, name) for name in ("__iter__", "__next__", "__getitem__"))
            if iterates is not None and self._is_itself(iterates):
                return nexts is not None and self._one_a_call(nexts, Turn())
            if iterates is not None:
                return self._gives(iterates, self._variables(iterates, Turn()))
            given = parameters(item)[1:] if item is not None else []
            plain = item is not None and len(given) == 1 and not self._is_known_otherwise(cls)
            return plain and item is not None and self._one_a_call(item, Turn({given[0]: turn()}))
        finally:
            self._open.discard((cls, "each"))

    def _is_known_otherwise(self, cls: ast.ClassDef) -> bool:
        """Whether a class has a base of another library, which may go through it in a way of its own."""
        defs = self.roles.values.defs
        foreign = (self.names.dotted(b) for c in defs.bases(cls) for b in c.bases if defs.named(b) is None)
        return any(dotted not in ("?.object", "torch.utils.data.Dataset", "torch.utils.data.dataset.Dataset") for dotted in foreign)

    def _is_itself(self, method: FunctionNode) -> bool:
        """Whether ``__iter__`` gives the object itself."""
        me = next(iter(parameters(method)), "")
        given = [r.value for r in self.names.returns(method)]
        return not _yields(self.names, method) and bool(given) and all(isinstance(g, ast.Name) and g.id == me for g in given)

    def _one_a_call(self, method: FunctionNode, begin: Turn) -> bool:
        """Whether each call of a method gives a batch."""
        if self.roles.reaches_backward(method) or _yields(self.names, method) or (method, "one") in self._open:
            return False
        self._open.add((method, "one"))
        try:
            inside = self._variables(method, begin)
            given = [r.value for r in self.names.returns(method)]
            return bool(given) and all(g is not None and self.are(g, inside) for g in given)
        finally:
            self._open.discard((method, "one"))

    def counting(self, function: FunctionNode) -> bool:
        """Whether a method, or one of the same object that it calls, counts from one call to the next."""
        return bool(self._variables(function, Turn()).counters)

    def taken(self, node: ast.Call) -> bool:
        """``next(batches)``, ``batches.__next__()``: the next one of what hands out batches."""
        if self.names.dotted(node.func) == "?.next" and len(node.args) == 1:
            return self.each(node.args[0], self.within(node))
        func = node.func
        return isinstance(func, ast.Attribute) and func.attr == "__next__" and not node.args and self.each(func.value, self.within(node))


def _assigned(stmt: ast.stmt, name: str) -> ast.expr | None:
    """What an assignment gives a variable or an attribute."""
    match stmt:
        case ast.Assign(targets=[ast.Name() | ast.Attribute() as target], value=value) if ast.unparse(target) == name:
            return value
        case ast.Assign(targets=[ast.Tuple() as target], value=ast.Tuple() as value):
            return beside(target, value, name)
    return None


def _empty(value: ast.AST | None) -> bool:
    return (isinstance(value, ast.List) and not value.elts) or (
        isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "list" and not value.args
    )


def _yields(names: Names, function: FunctionNode) -> list[ast.Yield | ast.YieldFrom]:
    return [n for n in walk(function) if isinstance(n, ast.Yield | ast.YieldFrom) and names.function(n) is function]


def _changes(names: Names, uses: list[ast.Name | ast.Attribute]) -> Iterator[ast.AST]:
    """What changes a list: its methods, items that are written, ``+=``."""
    for use in uses:
        above = names.parent[use]
        if isinstance(above, ast.Attribute) and above.attr in MUTATORS and isinstance(call := names.parent[above], ast.Call):
            yield call
        elif (isinstance(above, ast.Subscript) and above.value is use and not isinstance(above.ctx, ast.Load)) or isinstance(above, ast.AugAssign):
            yield above
