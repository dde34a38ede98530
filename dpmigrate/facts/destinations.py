"""Where a value goes that has a row for each sample of a batch: into training steps, into evaluations, or past both.

The value is followed through assignments, attributes, arguments, results and containers, with what is made of it. Variables are followed by the flow of
statements, so that ``fake = net(fixed)`` for a picture is not taken for the ``fake`` of the step. What writes, shows or counts it ends the search.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property

from dpmigrate.facts.carried import later
from dpmigrate.facts.definitions import arguments
from dpmigrate.facts.library import FORM, GROWS
from dpmigrate.facts.looking import Looking
from dpmigrate.facts.names import last
from dpmigrate.facts.nodes import children, walk
from dpmigrate.facts.roles import Roles
from dpmigrate.facts.scopes import Variable

#: what is asked of a tensor that is nothing of its rows
_ABOUT = FORM | {"item", "is_cuda", "ndimension", "stride", "nelement"}
#: calls that show or write what they are given
_SHOWS = frozenset(
    {
        "print",
        "len",
        "save",
        "save_image",
        "make_grid",
        "add_image",
        "add_images",
        "imshow",
        "imsave",
        "log",
        "info",
        "debug",
        "add_graph",
        "isinstance",
        "type",
    }
)
_COLLECTS = GROWS | {"register_buffer", "setattr"}


class Destinations:
    """Where values of one program go."""

    def __init__(self, roles: Roles) -> None:
        self.roles = roles
        self.names = roles.names
        self.looking = Looking(roles, self._of_batch)

    def meets(self, made: ast.AST) -> set[str]:
        """Where the rows of a value meet those of a batch, or are differentiated: ``train``, ``eval``, both or neither."""
        found: set[str] = set()
        todo: list[tuple[ast.AST, bool]] = [(made, False)]
        seen: set[tuple[ast.AST, bool]] = set()
        while todo:
            node, looked_at = todo.pop()
            if (node, looked_at) in seen:
                continue
            seen.add((node, looked_at))
            # what a function that only looks hands on is for the looking, also where others call the same functions
            looked_at = looked_at or self.looking.only(node)
            if (region := self._met(node)) is not None:
                found |= {"eval"} if looked_at else {"train", "eval"} if region == "both" else {region}
            todo += [(n, looked_at and not isinstance(n, ast.Attribute)) for n in self._next(node)]
        return found

    # ------------------------------------------------------------------ does it meet a batch here?
    def _met(self, node: ast.AST) -> str | None:
        """The region, where this use of the value is a ``backward()`` or puts it together with a batch."""
        above = self.names.parent[node]
        if isinstance(above, ast.Attribute) and any(above is b.func for b in self.roles.backwards):
            return "train"
        others: list[ast.expr] = []
        if isinstance(above, ast.BinOp):
            others = [above.left, above.right]
        elif isinstance(above, ast.Compare):
            others = [above.left, *above.comparators]
        elif isinstance(call := self._call(above), ast.Call) and (above is not call or self._of_tensors(call)):
            others = [call.func, *call.args, *(k.value for k in call.keywords)]
        if not any(n is not node and self._of_batch(n) for n in others):
            return None
        region = self._region(above)
        return region if region != "outside" else None

    def _call(self, above: ast.AST) -> ast.AST:
        """The call of a method of the value, or that the value is given to."""
        if isinstance(above, ast.Attribute | ast.keyword):
            return self.names.parent[above]
        return above

    def _of_tensors(self, call: ast.Call) -> bool:
        """Whether the call computes: a function of torch's, a model, a loss; what others do with what they are given is not known."""
        if last(call.func) in _SHOWS:
            return False
        computed = {v.qual if v.kind in ("ext", "call") else "" for v in self.roles.values.eval(call.func)} | {self.names.dotted(call.func)}
        if any(q.startswith("torch.") for q in computed) or self.roles.model_vals(call.func):
            return True
        return any(self.roles.inside_module(f) for f, _ in self.roles.values.targets(call))

    def _region(self, node: ast.AST) -> str:
        """The region, where ``no_grad`` inside a training loop does not make an evaluation."""
        around = set(self.names.ancestors(node))
        if any(b.node in around for b in self.roles.train_loops):
            return "train"
        return self.roles.region(node)

    def _of_batch(self, node: ast.AST) -> bool:
        """Whether what a loader gives goes into the expression; its size alone does not count."""
        if isinstance(node, ast.Attribute) and node.attr in _ABOUT:
            return False
        if isinstance(node, ast.Name):
            return (self.names.meant(node) or node.id) in self._batches
        if isinstance(node, ast.Call) and last(node.func) == "len":
            return False
        return any(self._of_batch(n) for n in children(node))

    @cached_property
    def _batches(self) -> set[Variable | str]:
        """The variables that hold a batch or what is made of one."""
        loops = {b.node for b in self.roles.batch_loops}
        found: set[Variable | str] = set()
        assigned: list[tuple[set[Variable | str], ast.expr]] = []
        for n in self.names.nodes:
            if isinstance(n, ast.Assign):
                assigned.append((self._variables(*n.targets), n.value))
            elif isinstance(n, ast.For | ast.AsyncFor) and n in loops:
                counted = isinstance(n.iter, ast.Call) and last(n.iter.func) == "enumerate" and isinstance(n.target, ast.Tuple)
                found |= self._variables(*(n.target.elts[1:] if counted and isinstance(n.target, ast.Tuple) else [n.target]))
            elif isinstance(n, ast.Call):
                for function, skip in self.roles.values.targets(n):
                    scope = self.names.opened[function]
                    assigned += [({(scope, name)}, e) for name, e in arguments(n, function, skip)]
        self.__dict__["_batches"] = found  # asked while it grows
        grown = True
        while grown:
            new = [targets for targets, value in assigned if not targets <= found and self._of_batch(value)]
            found.update(*new)
            grown = bool(new)
        return found

    def _variables(self, *nodes: ast.AST) -> set[Variable | str]:
        return {self.names.meant(n) or n.id for node in nodes for n in walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}

    # ------------------------------------------------------------------ where does it go from here?
    def _next(self, node: ast.AST) -> Iterator[ast.AST]:
        above = self.names.parent[node]
        if isinstance(above, ast.Attribute):
            if above.attr not in _ABOUT:
                yield above
        elif isinstance(above, ast.keyword):
            yield from self._given(self.names.parent[above], node)
        elif isinstance(above, ast.Call):
            if above.func is node:
                yield above
            else:
                yield from self._given(above, node)
        elif isinstance(above, ast.Return | ast.Yield):
            function = self.names.function(above)
            yield from self.roles.values.callers.get(function, [])
        elif isinstance(above, ast.Assign | ast.AnnAssign | ast.AugAssign):
            targets = above.targets if isinstance(above, ast.Assign) else [above.target]
            for target in targets:
                yield from self._stored(target, above)
        elif isinstance(above, ast.For | ast.AsyncFor):
            yield from self._stored(above.target, above) if node is above.iter else ()
        elif isinstance(above, ast.expr):
            yield above

    def _given(self, call: ast.AST, node: ast.AST) -> Iterator[ast.AST]:
        """What a call makes of an argument: its result, the parameter, the list that it is put into."""
        assert isinstance(call, ast.Call)
        if last(call.func) in _SHOWS:
            return
        for function, skip in self.roles.values.targets(call):
            scope = self.names.opened[function]
            for name in (name for name, e in arguments(call, function, skip) if e is node):
                yield from self.names.uses(scope, name)
        if isinstance(call.func, ast.Attribute) and call.func.attr in _COLLECTS:
            yield from self._stored(call.func.value, self.names.statement(call))
        yield call

    def _stored(self, target: ast.expr, stmt: ast.stmt) -> Iterator[ast.AST]:
        for leaf in walk(target) if isinstance(target, ast.Tuple | ast.List) else [target]:
            while isinstance(leaf, ast.Subscript | ast.Starred):
                leaf = leaf.value
            if isinstance(leaf, ast.Name | ast.Attribute):
                yield from self._reads(leaf, stmt)

    def _reads(self, target: ast.expr, stmt: ast.stmt) -> Iterator[ast.AST]:
        """The reads that may see what the statement has stored."""
        if isinstance(target, ast.Name):
            after, function = later(self.names, stmt), self.names.function(stmt)
            inside = {n for n in walk(stmt) if isinstance(n, ast.Name)} if isinstance(stmt, ast.For | ast.AsyncFor) else set()
            for use in self.names.uses(self.names.scope_of[target], target.id):
                if use in after or use in inside or self.names.function(use) is not function:
                    yield use
        else:
            assert isinstance(target, ast.Attribute)
            keys = set(self.roles.values.keys(target))
            for use in self.names.attributes(target.attr):
                if isinstance(use.ctx, ast.Load) and keys & set(self.roles.values.keys(use)):
                    yield use
