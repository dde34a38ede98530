"""What feeds a training step that no loop over a DataLoader feeds: samples cut by hand, a stream of another library, a state that goes on.

Asked only of programs that are refused, and answered in the author's own names; unknown is the last answer.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from dpmigrate.facts.definitions import default, through
from dpmigrate.facts.library import TO_TENSOR
from dpmigrate.facts.loops import chosen, rounds
from dpmigrate.facts.names import FunctionNode, Loop, last, position
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.randomness import DRAWS
from dpmigrate.facts.roles import DATA_LOADER, Roles

#: libraries that make batches of their own, by the beginning of their dotted names
LIBRARIES = {
    "torchtext.": "torchtext",
    "webdataset.": "webdataset",
    "nvidia.dali.": "DALI",
    "tensorflow.": "tf.data",
    "tensorflow_datasets.": "tf.data",
    "ffcv.": "FFCV",
    "petastorm.": "Petastorm",
    "torchdata.": "torchdata",
    "mxnet.": "MXNet",
}
_ENDS = ("itertools.chain", "itertools.chain.from_iterable")
_RANDOM = re.compile(r"perm|shuffle|randint|choice|sample")

#: what a graph's edges are called, for the words of a refusal alone
_EDGES = re.compile(r"adj|edge|graph|laplac", re.IGNORECASE)


@dataclass(frozen=True, eq=False, slots=True)
class Cut:
    """Batches that are cut from tensors: what a DataLoader over them is made of, each as written; '' for what is not known."""

    tensors: tuple[str, ...]
    variables: tuple[str, ...]
    batch_size: str
    shuffled: bool


@dataclass(frozen=True, eq=False, slots=True)
class Feed:
    """``kind``: state · library · misnamed · own · chained · chosen · made · drawn · unassigned · unseen · uncalled · ungiven · elsewhere · gathered · cut ·
    parts · graph · whole · unknown.

    ``node`` shows it, ``what`` is the state, the stream, the class or the call, as written; ``by`` what makes it, where that has a name. ``gathered`` are
    the batches of a loop inside of one step, ``ungiven`` is a parameter that a call does not give; of
    ``parts`` the loss takes ``by`` of a pass over all samples, and with ``graph`` a pass
    is given all of them with their edges, ``by``.
    """

    kind: str
    node: ast.AST
    what: str = ""
    by: str = ""
    cut: Cut | None = None


def feed(roles: Roles, backward: ast.Call) -> Feed:
    """What feeds the step of a ``backward()``; of a loop that repeats it for one batch (``for _ in range(critics)``), what the loop round that takes."""
    search = _Search(roles, backward)
    found = search.answer()
    around = list(itertools.dropwhile(lambda loop: isinstance(loop, ast.For) and counts(roles, loop.iter), search.loops))
    repeated = found.kind == "unknown" and 0 < len(around) < len(search.loops)
    return _Search(roles, backward, around).answer() if repeated else found


class _Search:
    def __init__(self, roles: Roles, backward: ast.Call, loops: Sequence[Loop] = ()) -> None:
        self.roles = roles
        self.names = roles.names
        self.backward = backward
        self.loops = list(loops or dict.fromkeys(rounds(roles, backward)))

    def answer(self) -> Feed:
        for found in (self._state(), *map(self._stream_of, self.loops), self._cut(), self._gathered(), self._made(), self._whole()):
            if found is not None:
                return found
        function = next((a for a in self.names.ancestors(self.backward) if isinstance(a, FunctionNode)), None)
        if function is not None and not self.roles.values.callers.get(function) and not function.decorator_list:
            return Feed("uncalled", function, function.name)
        return Feed("unknown", self.backward)

    def _gathered(self) -> Feed | None:
        """A loop over a loader inside of one step: the loss is made of all the batches that it takes."""
        for body in self._bodies[1:]:
            for loop in (n for n in walk(body) if isinstance(n, ast.For)):
                if self.roles.loaders_of(loop.iter) and not self.roles.quiet(loop) and any(self.names.is_inside(p, loop) for p in self._passes_within(loop)):
                    return Feed("gathered", loop, short(self._source(loop.iter)))
        return None

    def _passes_within(self, loop: Loop) -> list[ast.Call]:
        """The calls in a loop that the loss may be made of: passes of the model, or functions that it is given to."""
        made = {c for p in self._pieces for c in walk(p) if isinstance(c, ast.Call)}
        return [c for c in walk(loop) if isinstance(c, ast.Call) and c in made]

    # ------------------------------------------------------------------ what the step is made of
    @cached_property
    def _bodies(self) -> list[ast.AST]:
        """The innermost loop, or the function where there is none, and the functions that it enters."""
        body: ast.AST = self.loops[0] if self.loops else self.names.function(self.backward)
        return [body, *sorted(self.roles.all_entered(body), key=position)]

    def _inside(self, node: ast.AST) -> bool:
        return any(self.names.is_inside(node, b) for b in self._bodies)

    @cached_property
    def _passes(self) -> list[ast.Call]:
        """The calls of the model that the step may make."""
        return [c for c in self.roles.forward_calls if self._inside(c) and not self.roles.quiet(c)]

    @cached_property
    def _pieces(self) -> list[ast.expr]:
        """The expressions that the loss is made of, back to the edge of the step: through assignments and the results of the file's functions."""
        out: dict[ast.expr, None] = {}
        todo: list[ast.expr] = [self.backward.func, *self._passes]
        while todo:
            node = todo.pop(0)
            if node in out:
                continue
            out[node] = None
            for n in walk(node):
                if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load):
                    bound = list(self.names.bindings(self.names.scope_of[n], n.id))
                    todo += [b.value for b in bound if b.how == "assign" and isinstance(b.value, ast.expr) and self._inside(b.target)]
                    given = [e for b in bound if b.how == "param" for e in self.roles.handed(b)]
                    todo += [e for e in given if e is not None and self._inside(e)]
                elif isinstance(n, ast.Call):
                    for function, _ in self.roles.values.targets(n):
                        if not self.roles.inside_module(function):
                            todo += [r.value for r in self.names.returns(function) if r.value is not None]
        return list(out)

    @cached_property
    def _words(self) -> set[str]:
        """The names that the loss is made of."""
        return {n.id for p in self._pieces for n in walk(p) if isinstance(n, ast.Name)}

    def _from_outside(self, name: ast.Name) -> bool:
        """Whether the variable has its value before the step."""
        bound = list(self.names.bindings(self.names.scope_of[name], name.id))
        return bool(bound) and not any(self._inside(b.target) for b in bound)

    # ------------------------------------------------------------------ the answers
    def _state(self) -> Feed | None:
        """What a pass of the model gives and the next one is given: the hidden state of a recurrent model."""
        for loop in self.loops:
            for call in (c for c in self.roles.forward_calls if self.names.is_inside(c, loop) and not self.roles.quiet(c)):
                stmt = self.names.statement(call)
                if not isinstance(stmt, ast.Assign):
                    continue
                for name in (n for a in call.args for n in walk(a) if isinstance(n, ast.Name)):
                    if name.id in _targets(stmt) and self._goes_on(name, loop):
                        return Feed("state", stmt, name.id)
        return None

    def _goes_on(self, name: ast.Name, loop: Loop) -> bool:
        """Whether the variable comes into a turn of the loop with what the turn before has given it."""
        writes = [n for n in walk(loop) if isinstance(n, ast.Assign) and name.id in _targets(n)]
        first = min(writes, key=position)
        return any(isinstance(n, ast.Name) and n.id == name.id for n in walk(first.value))

    def _stream_of(self, loop: Loop) -> Feed | None:
        """What the loop goes through, or takes with ``next()``, where that goes into the loss."""
        taken: list[tuple[ast.expr, set[str]]] = []
        if isinstance(loop, ast.For | ast.AsyncFor):
            taken.append((self._source(loop.iter), {n.id for n in walk(loop.target) if isinstance(n, ast.Name)}))
        for n in walk(loop):
            if isinstance(n, ast.Assign) and isinstance(n.value, ast.Call) and (drawn := self._next(n.value)) is not None:
                taken.append((self._source(drawn), _targets(n)))
        for expr, targets in taken:
            if targets & self._words and not counts(self.roles, expr) and (found := self._stream(loop, expr)) is not None:
                return found
        return None

    def _source(self, expr: ast.expr) -> ast.expr:
        """The stream inside ``enumerate`` and the like; a function of the file that is called ``cycle`` makes one of its own."""
        while isinstance(expr, ast.Call) and (inner := through(self.names, expr)) is not None and not any(self.roles.values.targets(expr)):
            expr = inner
        return expr

    def _next(self, call: ast.Call) -> ast.expr | None:
        if self.names.dotted(call.func) == "?.next" and call.args:
            return call.args[0]
        return call.func.value if isinstance(call.func, ast.Attribute) and call.func.attr in ("next", "__next__") else None

    def _stream(self, loop: Loop, expr: ast.expr) -> Feed | None:
        what = short(expr)
        roots = (root for n in walk(expr) if isinstance(n, ast.Name | ast.Attribute) for root in self.roles.roots(n))
        made = [expr, *(stmt.value for key, _ in roots for stmt in self.roles.writes(key) if isinstance(stmt, ast.Assign))]
        own = (f for v in list(made) if isinstance(v, ast.Call) for f, _ in self.roles.values.targets(v))
        made += [behind(self.roles, r.value) for f in own for r in self.names.returns(f) if r.value is not None]
        called = (self.names.dotted(v.func) for v in made if isinstance(v, ast.Call))
        if (nowhere := next((d for d in called if d.startswith("torch.") and d.endswith(".DataLoader") and d not in DATA_LOADER), None)) is not None:
            return Feed("misnamed", loop, what, nowhere)
        for value in made:
            for dotted in (self.names.dotted(n) for n in walk(value) if isinstance(n, ast.Name | ast.Attribute)):
                for beginning, library in LIBRARIES.items():
                    if dotted.startswith(beginning):
                        return Feed("library", loop, what, library)
                if dotted in _ENDS:
                    return Feed("chained", loop, what)
        for v in self.roles.values.eval(expr):
            if v.kind == "object" and v.cls is not None:
                return Feed("own", loop, what, v.cls.name)
        for value in made:
            for function, _ in self.roles.values.targets(value) if isinstance(value, ast.Call) else ():
                if any(isinstance(n, ast.Yield) for n in walk(function)):
                    return Feed("made", loop, what, function.name)
        if any(self.roles.loaders_of(part) for part in chosen(self.roles, expr)):
            return Feed("chosen", loop, what)
        return self._from_afar(loop, expr, made)

    def _from_afar(self, loop: Loop, expr: ast.expr, made: list[ast.expr]) -> Feed | None:
        """A stream that the file does not make: by a call of another file's, by nobody, or as the argument of a function that nothing here calls."""
        called = next((v for v in made if isinstance(v, ast.Call)), None)
        if called is not None and not self.names.dotted(called.func).startswith(("?.", "torch.", "numpy.")):
            return Feed("elsewhere", loop, short(expr), short(called.func))
        while isinstance(expr, ast.Subscript):  # loaders[phase]
            expr = expr.value
        if not isinstance(expr, ast.Name):
            return None
        parameters = [b for b in self.names.bindings(self.names.scope_of[expr], expr.id) if b.how == "param"]
        function = self.names.scope_of[expr].node
        if parameters and isinstance(function, FunctionNode):
            given = [g for b in parameters for g in self.roles.handed(b)]
            if not given:
                return Feed("uncalled", function, function.name) if not function.decorator_list else None
            left_out = next((c for c in self.roles.values.callers[function] if self._leaves_out(c, function, expr.id)), None)
            if left_out is not None:
                return Feed("ungiven", left_out, expr.id, function.name)
            lost = next((g for g in given if isinstance(g, ast.Name) and self._missing(g)), None)
            return Feed("unassigned", loop, lost.id) if lost is not None else None
        if self._missing(expr):
            return Feed("unassigned", loop, expr.id)
        begun = next((v.args[0] for v in made if isinstance(v, ast.Call) and self.names.dotted(v.func) == "?.iter" and v.args), None)
        return Feed("unseen", loop, short(begun)) if begun is not None else None

    def _leaves_out(self, call: ast.Call, function: FunctionNode, parameter: str) -> bool:
        """Whether a call does not give a parameter that has no default; not where it spreads a list or a dictionary."""
        spread = any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords)
        arg = next((a for a in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs) if a.arg == parameter), None)
        return not spread and arg is not None and default(function.args, arg) is None and self.roles.passed(call, function, parameter) is None

    def _missing(self, name: ast.Name) -> bool:
        return self.names.owner(self.names.scope_of[name], name.id) is None and not self.names.stars

    def _cut(self) -> Feed | None:
        """Batches that are cut from tensors by an index: ``x[i : i + n]``, ``x[order[i : i + n]]``, ``x[idx]``."""
        cuts = [n for p in self._pieces for n in walk(p) if isinstance(n, ast.Subscript) and self._by_index(n)]
        indices = {n.id for c in cuts for n in walk(c.slice) if isinstance(n, ast.Name)}
        data = [c for c in cuts if not self._is_index(c, indices)]
        if not data:
            return None
        pairs = {tensor: variable for c in reversed(data) for tensor, variable in self._given(c)}
        tensors = tuple(dict.fromkeys(tensor for c in data for tensor, _ in self._given(c)))
        variables = tuple(dict.fromkeys(pairs[t] for t in tensors))
        drawn = [v for name in indices for v in self._values(name)]
        drawn += [v for d in drawn for n in walk(d) if isinstance(n, ast.Name) for v in self._values(n.id)]
        shuffled = any(_RANDOM.search(ast.unparse(v)) for v in drawn)
        size = next((found for c in cuts if (found := self._size(c))), "")
        return Feed("cut", data[0], short(data[0]), "", Cut(self._as_tensors(tensors), variables, size, shuffled))

    def _as_tensors(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """The variables as tensors; the step makes them of arrays where it calls ``torch.from_numpy`` or the like."""
        made = any(isinstance(n, ast.Call) and self.names.dotted(n.func) in TO_TENSOR for p in self._pieces for n in walk(p))
        return tuple(f"torch.as_tensor({name})" if made else name for name in names)

    def _by_index(self, node: ast.Subscript) -> bool:
        """Whether a part of a variable from outside the step is taken, another one in each turn."""
        if not isinstance(node.value, ast.Name | ast.Attribute) or isinstance(node.ctx, ast.Store) or isinstance(node.slice, ast.Constant):
            return False
        base = node.value if isinstance(node.value, ast.Name) else None
        return (base is None or self._from_outside(base) or self._is_parameter(base)) and any(
            isinstance(n, ast.Name) and not self._from_outside(n) for n in walk(node.slice)
        )

    def _is_parameter(self, name: ast.Name) -> bool:
        return any(b.how == "param" for b in self.names.bindings(self.names.scope_of[name], name.id))

    def _is_index(self, cut: ast.Subscript, indices: set[str]) -> bool:
        """``order[i : i + n]``, which itself says what is cut."""
        stmt = self.names.statement(cut)
        nested = any(isinstance(a, ast.Subscript) and self.names.is_inside(cut, a.slice) for a in self.names.ancestors(cut))
        return nested or (isinstance(stmt, ast.Assign) and bool(_targets(stmt)) and _targets(stmt) <= indices)

    def _given(self, cut: ast.Subscript) -> list[tuple[str, str]]:
        """What is cut and the variable for a part of it, as the step writes them: the arguments, where a function of the file is given it."""
        function = self.names.function(cut)
        if isinstance(cut.value, ast.Name) and isinstance(function, FunctionNode) and self._is_parameter(cut.value):
            calls = [c for c in self.roles.values.callers.get(function, []) if self._inside(c)]
            given = [a for c in calls if (a := self.roles.passed(c, function, cut.value.id)) is not None]
            if given:
                return [(ast.unparse(a), f"{last(a)}_batch") for a in given]
        return [(ast.unparse(cut.value), self._variable(cut))]

    def _variable(self, cut: ast.Subscript) -> str:
        stmt = self.names.statement(cut)
        if isinstance(stmt, ast.Assign) and len(stmt.targets) == 1:
            target, value = stmt.targets[0], stmt.value
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
                target, value = next((t, v) for t, v in zip(target.elts, value.elts, strict=True) if self.names.is_inside(cut, v))
            if isinstance(target, ast.Name) and self._converted(value) is cut:
                return target.id
        return f"{last(cut.value)}_batch"

    def _converted(self, value: ast.expr) -> ast.expr:
        """``x[i]`` of ``torch.from_numpy(x[i]).to(device)``."""
        while isinstance(value, ast.Call):
            if isinstance(value.func, ast.Attribute) and not self.names.dotted(value.func):
                value = value.func.value
            elif len(value.args) == 1:
                value = value.args[0]
            else:
                break
        return value

    def _values(self, name: str) -> Iterator[ast.expr]:
        """What variables of this name are given in the step and before it."""
        for n in self.names.nodes:
            if isinstance(n, ast.Assign) and name in _targets(n):
                yield n.value

    def _size(self, cut: ast.Subscript) -> str:
        """How many samples are cut: of the slice itself, or the step of the ``range`` round it."""
        part = cut.slice.elts[0] if isinstance(cut.slice, ast.Tuple) else cut.slice
        if isinstance(part, ast.Slice) and isinstance(part.upper, ast.BinOp) and isinstance(part.upper.op, ast.Add) and part.lower is not None:
            if ast.unparse(part.upper.left) == ast.unparse(part.lower):
                return ast.unparse(part.upper.right)
        if isinstance(part, ast.Slice) and isinstance(part.lower, ast.BinOp) and isinstance(part.lower.op, ast.Mult):
            factors = [f for f in (part.lower.left, part.lower.right) if not (isinstance(f, ast.Name) and not self._from_outside(f))]
            return ast.unparse(factors[0]) if len(factors) == 1 else ""
        return ""

    def _made(self) -> Feed | None:
        """Samples that the step makes at random, or that it gets from code of another file."""
        for piece in self._pieces:
            for n in walk(piece):
                if isinstance(n, ast.Call) and self.names.dotted(n.func).startswith(DRAWS):
                    return Feed("made", n, short(n))
        for piece in self._pieces:
            if isinstance(piece, ast.Call) and piece not in self._passes and not self.roles.inside_module(piece) and self._foreign(piece):
                return Feed("drawn", piece, short(piece))
        return None

    def _foreign(self, call: ast.Call) -> bool:
        dotted = self.names.dotted(call.func)
        return bool(dotted) and not dotted.startswith(("?.", "torch.", "numpy."))

    def _whole(self) -> Feed | None:
        """All samples at once: the model is given what is there before the loop."""
        whole = [c for c in self._passes or self._by_methods if not any(isinstance(a, ast.Name) and not self._from_outside(a) for a in c.args)]
        given = [a for c in whole for a in c.args if self._is_whole(a)]
        if not given:
            return None
        if (taken := self._taken_of_all(whole)) is not None:
            return Feed("parts", given[0], short(given[0]), short(taken))
        if (edges := next((a for a in given if _EDGES.search(ast.unparse(a))), None)) is not None:
            return Feed("graph", given[0], short(given[0]), short(edges))
        others = [a for p in self._pieces for c in walk(p) if isinstance(c, ast.Call) and c not in self._passes for a in c.args]
        with_it = [a for a in others if isinstance(a, ast.Name) and self._is_whole(a)]
        tensors = tuple(dict.fromkeys(a.id for a in (*given, *with_it) if isinstance(a, ast.Name)))
        what = ast.unparse(given[0])
        return Feed("whole", given[0], what, "", Cut(tensors or (what,), tuple(f"{t}_batch" for t in tensors) or ("batch",), f"len({what})", False))

    @cached_property
    def _by_methods(self) -> list[ast.Call]:
        """The calls of methods that the model's class has of its own, which may be passes."""
        calls = (c for b in self._bodies for c in walk(b) if isinstance(c, ast.Call) and isinstance(c.func, ast.Attribute) and not self.roles.quiet(c))
        own = [c for c in calls if any(True for _ in self.roles.values.targets(c))]
        return [c for c in own if isinstance(c.func, ast.Attribute) and self.roles.model_vals(c.func.value)]

    def _is_whole(self, node: ast.expr) -> bool:
        """``x``, ``graph.x``, ``data["x"]`` of what has its value before the step."""
        if isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Constant):
            return False
        while isinstance(node, ast.Attribute | ast.Subscript):
            node = node.value
        return isinstance(node, ast.Name) and self._from_outside(node) and not self._is_parameter(node)

    def _taken_of_all(self, whole: list[ast.Call]) -> ast.Subscript | None:
        """What the loss takes of a pass over all samples: ``out[train_index]`` of ``out = model(features, edges)``."""
        made: set[str] = set()
        for _ in range(3):  # logits = model(x), out = logits.log_softmax(1)
            for stmt in (n for b in self._bodies for n in walk(b) if isinstance(n, ast.Assign)):
                if any(m in whole or (isinstance(m, ast.Name) and m.id in made) for m in walk(stmt.value)):
                    made |= _targets(stmt)
        for n in (n for p in self._pieces for n in walk(p) if isinstance(n, ast.Subscript)):
            names = [m for m in walk(n.slice) if isinstance(m, ast.Name)]
            chosen = bool(names) and not isinstance(n.slice, ast.Slice) and all(self._from_outside(m) or self._is_parameter(m) for m in names)
            if chosen and (n.value in whole or (isinstance(n.value, ast.Name) and n.value.id in made)):
                return n
        return None


def _targets(stmt: ast.Assign) -> set[str]:
    """The variables that the assignment writes, or writes into."""
    return {n.id for t in stmt.targets for n in walk(t) if isinstance(n, ast.Name) and not _in_slice(t, n)}


def _in_slice(target: ast.expr, name: ast.Name) -> bool:
    return any(isinstance(n, ast.Subscript) and any(x is name for x in walk(n.slice)) for n in walk(target))


def behind(roles: Roles, node: ast.expr, depth: int = 6) -> ast.expr:
    """What a variable or a parameter is made of, where it is given one value: ``load()[:100]`` for ``data``, of ``data = load()[:100]``, ``train(data)``."""
    while depth and isinstance(node, ast.Name):
        bound = list(roles.names.bindings(roles.names.scope_of[node], node.id))
        given = [e for b in bound for e in roles.bound_to(b)] if all(b.how in ("assign", "param") for b in bound) else []
        if len(given) != 1 or given[0] is None:
            break
        node, depth = given[0], depth - 1
    return node


def counts(roles: Roles, expr: ast.expr) -> bool:
    """Whether a loop over the expression counts its turns: ``range(steps)``, ``bar`` of ``bar = tqdm(range(steps))``."""
    expr = behind(roles, expr)
    while (inner := through(roles.names, expr)) is not None:
        expr = behind(roles, inner)
    return isinstance(expr, ast.Call) and last(expr.func) in ("range", "trange", "count")


def short(node: ast.AST, most: int = 60) -> str:
    """The expression as code, its middle left out where it is long."""
    text = ast.unparse(node)
    return text if len(text) <= most else f"{text[: most - 4]} …"
