"""Which objects an expression may mean: a small points-to analysis of one module.

An object is the place that makes it (a call, a display, a ``def``). Assignments, attributes of self, parameters, returns,
tuples and dicts with literal keys are followed, whatever the order of the file; the rest is the empty set, which means
*unknown*. Re-binding a name to its own DataParallel wrap (``net = DataParallel(net)``) is the one case where order counts:
there the bare model is meant before that statement and the wrapper after it; and below a statement that takes it off again, the bare model.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

from dpmigrate.facts.definitions import SAME, Definitions, arguments, default, is_class_method, is_static, parameters, through
from dpmigrate.facts.flows import flows
from dpmigrate.facts.lookups import Lookups
from dpmigrate.facts.names import FunctionNode, Names
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.objects import NONE, Key, Path, Val, Vals, WrapSite, beginning, leaves, wrap_argument
from dpmigrate.facts.order import Order
from dpmigrate.facts.parts import Parts
from dpmigrate.facts.reaching import reaching
from dpmigrate.facts.returned import Returned
from dpmigrate.facts.scopes import Binding, Scope
from dpmigrate.facts.unwraps import Unwraps

__all__ = ["DATA_PARALLEL", "NONE", "Key", "Val", "Vals", "Values", "WrapSite", "wrap_argument"]

#: methods that say how DataParallel makes its copies of the model
_OF_COPIES = frozenset({"replicate"})
DATA_PARALLEL = frozenset({"torch.nn.DataParallel", "torch.nn.parallel.DataParallel", "torch.nn.parallel.data_parallel.DataParallel"})
#: functions that find a class or a function by its name
_FOUND = frozenset({"?.getattr", "?.eval", "?.__import__", "operator.attrgetter"})
#: functions that change a model in place and hand it back, or give one that works on its parameters
_SAME_MODEL = frozenset({"torch.nn.SyncBatchNorm.convert_sync_batchnorm", "torch.nn.modules.batchnorm.SyncBatchNorm.convert_sync_batchnorm", "torch.compile"})
PASS_LIMIT = 30
#: of the results of libraries, literals and containers that a variable may be: beyond it that is unknown; a table of models may have more
SIZE_LIMIT = 24
_OTHERS = frozenset({"call", "const", "display"})
DEPTH_LIMIT = 60  # of nested expressions; what lies deeper is unknown


class Values:
    """The fixpoint of the module's assignments, calls and returns."""

    def __init__(
        self,
        names: Names,
        new_wraps: Iterable[WrapSite] = (),
        plain: frozenset[ast.Call] = frozenset(),
        in_place: frozenset[ast.expr] = frozenset(),
        seen_as: Mapping[ast.expr, Val] | None = None,
    ) -> None:
        self.names = names
        self.defs = Definitions(names)
        self.plain = plain  # DataParallel calls that the migration takes away: they mean their argument
        self.in_place = in_place  # expressions that the migration wraps where they stand
        self.seen_as = seen_as or {}  # reads of ``self`` in whose place the migration puts a wrapper
        self.vars: dict[Key, set[Val]] = {}
        self.returns: dict[ast.AST, set[Val]] = {}
        self.items: dict[ast.AST, dict[object, set[Val]]] = {}
        self.new_wraps = tuple(new_wraps)
        self.wraps: list[WrapSite] = []
        self.callers: dict[ast.AST, list[ast.Call]] = {}
        #: the calls of functions that make an object of a class which they look up; their arguments are not those of its ``__init__``
        self.makers: dict[ast.AST, list[ast.Call]] = {}
        #: what attributes are given by calls that make objects of data classes and the like, each an expression
        self.fields: dict[Key, dict[ast.expr, None]] = {}
        #: where each function is entered: its calls and, of a property, the places that read it
        self.ways: dict[ast.AST, list[ast.expr]] = {}
        #: the functions that an attribute's read runs
        self.asks: dict[ast.AST, list[FunctionNode]] = {}
        self.order = Order(names, self.ways)
        self.unwraps = Unwraps(names)
        self._callers_seen: set[tuple[int, int]] = set()
        self.returned = Returned(self)
        self._changed = True
        self._busy: dict[int, int] = {}  # id of a node under evaluation -> its depth
        self._cut = 0  # the least depth at which the evaluation in progress met itself
        self._any: set[int] = set()  # ids of the sets that would hold too much
        self._parts = Parts(self)
        self.lookups = Lookups(self)
        self._reaching: dict[ast.Name, tuple[Binding | None, bool]] = {}
        self._known: dict[ast.AST, Vals] = {}  # what holds until a variable is given more
        self._flows = flows(names, self.returned.handed_back)
        self._settle()
        self._find_wraps()
        if self.wraps:  # now that the wraps are known, again with order
            self.vars, self.returns, self.items, self._any = {}, {}, {}, set()
            self._settle()

    # ------------------------------------------------------------------ building
    def _settle(self) -> None:
        self._grown()
        for g in self._flows.fixed:
            self._put(g.key, self._bound(g.binding, g.scope, g.name))
        for _ in range(PASS_LIMIT):
            if not self._changed:
                break
            self._changed = False
            self._known.clear()
            self._pass()
        self._known.clear()

    def _grown(self) -> None:
        self._changed = True
        self._known.clear()

    def _pass(self) -> None:
        for site in self.new_wraps:
            self._put(site.key, frozenset({site.wrapped}))
        for parameter, vals in self.lookups.decorated():
            self._put(parameter, vals)
        for g in self._flows.given:
            self._put(g.key, self._bound(g.binding, g.scope, g.name))
        for read in self._properties:
            self.eval(read)
        for node in self._flows.steps:
            if isinstance(node, ast.Assign | ast.AnnAssign):
                self._assign(node)
            elif isinstance(node, ast.Call):
                self._call(node)
            elif isinstance(node, ast.Return):
                self._more(self.returns.setdefault(self.names.function(node), set()), self.eval(node.value))
            else:
                assert isinstance(node, ast.Lambda)
                self._more(self.returns.setdefault(node, set()), self.eval(node.body))

    def _more(self, held: set[Val], new: Iterable[Val]) -> None:
        if id(held) in self._any:
            return
        before = frozenset(held)
        held.update(new)
        if held == before:
            return
        made = {v.node for v in held if v.kind != "call" or v.qual}
        held -= {v for v in held if v.kind == "call" and not v.qual and v.node in made}  # of an earlier pass, which did not know what is called
        if len(held) > SIZE_LIMIT and sum(v.kind in _OTHERS for v in held) > SIZE_LIMIT:
            self._any.add(id(held))
            held.clear()
        if held != before:
            self._changed = True

    def _put(self, key: Key, vals: Vals) -> None:
        if vals:
            self._more(self.vars.setdefault(key, set()), vals)

    def store(self, container: ast.AST, item: object, vals: Vals) -> None:
        """Put objects into the container that the node makes, under a key; ``*`` is any."""
        self._more(self.items.setdefault(container, {}).setdefault(item, set()), vals)

    def _bound(self, b: Binding, scope: Scope, name: str) -> Vals:
        if b.how == "import":
            return NONE.union(*(self.vars.get(("v", id(s), n), ()) for s, n in self.names.alternatives(scope, name)))
        if b.how == "def":
            return frozenset({Val("func", b.target)})
        if b.how == "class":
            assert isinstance(b.target, ast.ClassDef)
            return frozenset({Val("class", b.target, cls=b.target)})
        if b.how == "param":
            return self._param(b.target, scope)
        if b.how in ("assign", "for", "with") and b.value is not None:
            return self._parts.bound(b.value, b.path)
        return NONE

    def _param(self, arg: ast.AST, scope: Scope) -> Vals:
        node = scope.node
        assert isinstance(arg, ast.arg)
        if not isinstance(node, FunctionNode):
            return NONE
        a = node.args
        plain = [*a.posonlyargs, *a.args]
        cls = self.defs.method_class(node)
        if cls is not None and plain and plain[0] is arg and not is_static(node):
            if self.defs.drives_itself(node):
                return NONE  # the models whose method is called, which other code has in its variables
            kind = "class" if is_class_method(node) else "object"
            return frozenset(Val(kind, c, cls=c) for c in self.defs.family(cls))
        if arg in (a.vararg, a.kwarg):
            return frozenset({Val("display", arg, "args" if arg is a.vararg else "kwargs")})
        return self.eval(default(a, arg))

    def given(self, stmt: ast.stmt, key: Key) -> Vals:
        """The objects that an assignment gives the variable."""
        targets = stmt.targets if isinstance(stmt, ast.Assign) else [stmt.target] if isinstance(stmt, ast.AnnAssign) else []
        parts = [(t, path) for target in targets for t, path in leaves(target, ()) if key in self.keys(t)]
        value = self.eval(stmt.value) if isinstance(stmt, ast.Assign | ast.AnnAssign) else NONE
        return NONE.union(*(self.pick(value, path) for _, path in parts))

    def _assign(self, node: ast.Assign | ast.AnnAssign) -> None:
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            for t, path in leaves(target, ()):
                if isinstance(t, ast.Attribute):
                    for key in self.attribute_keys(t):
                        self._put(key, self.pick(self.eval(node.value), path))
                elif isinstance(t, ast.Subscript):
                    item = t.slice.value if isinstance(t.slice, ast.Constant) else "*"
                    for v in self.eval(t.value):
                        self.store(v.node, item, self.eval(node.value))

    def _call(self, node: ast.Call) -> None:
        self._parts.fill(node)
        for function, skip in self.targets(node):
            self._called_from(function, node)
            for name, vals in self._parts.given(node, function, skip):
                self._put(("v", id(self.names.opened[function]), name), vals)
            if self.defs.drives_itself(function) and isinstance(node.func, ast.Attribute):
                models = frozenset(v for v in self.eval(node.func.value) if v.kind == "object" and v.cls is not None)
                for me in parameters(function)[:1]:
                    self._put(("v", id(self.names.opened[function]), me), models)
        for cls in (v.cls for v in self.eval(node.func) if v.kind == "class" and v.cls is not None):
            self._fill_in(node, cls)
        for short in (v.node for v in self.eval(node.func) if isinstance(v.node, ast.Lambda)):
            self._called_from(short, node)
            for name, value in arguments(node, short, 0):
                self._put(("v", id(self.names.opened[short]), name), self.eval(value))

    def _fill_in(self, call: ast.Call, cls: ast.ClassDef) -> None:
        """What an object of a data class and the like is given becomes its attributes."""
        fields = self.defs.fields(cls)
        for i, e in enumerate(call.args[: len(fields)]):
            if isinstance(e, ast.Starred):
                break
            self._put_field(self.field_key(cls, fields[i]), e)
        for k in call.keywords if fields else ():
            named = [k.arg] if k.arg is not None else fields
            for name in (n for n in named if n in fields):
                if k.arg is not None:
                    self._put_field(self.field_key(cls, name), k.value)
                else:
                    self._put(self.field_key(cls, name), self.pick(self.eval(k.value), (name,), subscript=True))

    def _put_field(self, key: Key, given: ast.expr) -> None:
        self.fields.setdefault(key, {})[given] = None
        self._put(key, self.eval(given))

    def field_key(self, cls: ast.ClassDef, name: str) -> Key:
        """The attribute of every object of a class."""
        return ("a", id(self.defs.bases(cls)[-1]), name)

    def makes(self, call: ast.Call, cls: ast.ClassDef) -> None:
        """Note that a function which looks classes up makes an object of one of them, and so runs its ``__init__``."""
        init = self.defs.method(cls, "__init__")
        if init is not None and call not in self.makers.setdefault(init, []):
            self.makers[init].append(call)

    def _called_from(self, function: FunctionNode | ast.Lambda, call: ast.Call) -> None:
        if (id(function), id(call)) not in self._callers_seen:
            self._callers_seen.add((id(function), id(call)))
            self.callers.setdefault(function, []).append(call)
            self.ways.setdefault(function, []).append(call)
            self._grown()

    @cached_property
    def _properties(self) -> list[ast.Attribute]:
        """The places that may read a property of the program."""
        functions = [n for n in self.names.nodes if isinstance(n, FunctionNode) and n.decorator_list and self.defs.is_property(n)]
        return [n for name in sorted({f.name for f in functions}) for n in self.names.attributes(name) if isinstance(n.ctx, ast.Load)]

    def _asked_for(self, function: FunctionNode, read: ast.Attribute) -> Vals:
        """What a property gives the place that reads it."""
        if function not in self.asks.setdefault(read, []):
            self.asks[read].append(function)
            self.ways.setdefault(function, []).append(read)
            if self.defs.computes(function):
                self.names.computed.add(read)
            self._grown()
        return frozenset(self.returns.get(function, ()))

    def targets(self, call: ast.Call) -> Iterator[tuple[FunctionNode, int]]:
        """The functions of this module that the call may enter, with the number of parameters that are bound already."""
        for v in self.eval(call.func):
            if v.kind == "func" and isinstance(v.node, FunctionNode):
                bound = isinstance(call.func, ast.Attribute | ast.Call) and self.defs.method_class(v.node) is not None
                yield v.node, int(bound and not is_static(v.node) and (is_class_method(v.node) or not self._on_class(call.func)))
            elif v.kind == "class" and v.cls is not None:
                init = self.defs.method(v.cls, "__init__")
                if init is not None:
                    yield init, 1
                elif (after := self.defs.method(v.cls, "__post_init__")) is not None and self.defs.fields(v.cls) and len(after.args.args) == 1:
                    yield after, 1
            elif v.kind == "object" and v.cls is not None:
                for name in ("__call__", "forward"):
                    run = self.defs.method(v.cls, name)
                    if run is not None:
                        yield run, 1
                        break

    def _on_class(self, func: ast.expr) -> bool:
        return isinstance(func, ast.Attribute) and any(v.kind == "class" for v in self.eval(func.value))

    def is_container(self, node: ast.expr) -> bool:
        """Whether the expression means a list or a dict of the program, and no module that holds others."""
        vals = self.eval(node)
        return bool(vals) and vals == self._parts.containers(node)

    # ------------------------------------------------------------------ wraps
    def _find_wraps(self) -> None:
        self.wraps = list(self.new_wraps)
        for node in self.names.nodes:
            if isinstance(node, ast.Call) and node not in self.plain and self.is_wrap(node):
                stmt = self.names.statement(node)
                if isinstance(stmt, ast.Assign) and len(stmt.targets) == 1:
                    keys = list(self.keys(stmt.targets[0]))
                    inner = frozenset(v for v in self.eval(wrap_argument(node)) if v.kind != "wrapped")
                    self.wraps += [WrapSite(node, stmt, k, Val("wrapped", node), inner) for k in keys]

    def is_wrap(self, call: ast.Call) -> bool:
        if self.names.dotted(call.func) in DATA_PARALLEL:
            return True
        called = self.eval(call.func)
        return any(v.qual in DATA_PARALLEL if v.kind == "ext" else v.kind == "class" and self._only_copies(v.cls) for v in called)

    def _only_copies(self, cls: ast.ClassDef | None) -> bool:
        """Whether a class is DataParallel with another way to make the copies of the model, which DDP does not make."""
        bases = self.defs.bases(cls) if cls is not None else []
        outside = {self.names.dotted(b) for c in bases for b in c.bases if self.defs.named(b) is None}
        defined = {n.name for c in bases for n in c.body if isinstance(n, FunctionNode)}
        return bool(outside) and outside <= DATA_PARALLEL and defined <= _OF_COPIES

    def inner(self, v: Val) -> Vals:
        """The models inside a wrapper; the object itself if it is none."""
        if v.kind != "wrapped":
            return frozenset({v})
        if v.node in self.in_place:
            vals = self._eval(v.node)
        elif isinstance(v.node, ast.Call):
            vals = self.eval(wrap_argument(v.node))
        else:
            vals = frozenset().union(*(w.inner for w in self.new_wraps if w.wrapped == v))
        return frozenset(x for x in vals if x.kind != "wrapped")

    def _ordered(self, node: ast.expr, key: Key, vals: Vals) -> Vals:
        """Before a self-wrap of the variable: without the wrapper; after it, in the same function: only the wrapper. Where it is taken off: without it."""
        for w in self.wraps:
            if w.key != key:
                continue
            when = self.order.when(node, w.stmt, attribute=w.key[0] == "a", new=w in self.new_wraps)
            if w.first is not None:
                if not self.order.amid(node, w.first, w.stmt):
                    vals -= w.inner
                elif self.names.function(node) is self.names.function(w.stmt):
                    return vals & w.inner
            if w.precedes and self.names.is_inside(node, w.stmt):
                when = "after"
            for stmt, given in w.later:
                if self.order.when(node, stmt) == "before":
                    vals -= given
                elif not given:
                    return NONE  # what the variable holds then is not known
            if when == "before":
                vals -= {w.wrapped}
            elif when == "after":
                vals = vals & {w.wrapped} if self._given_last(node, w.stmt) else vals - w.inner
        return self.unwraps.narrowed(node, vals)

    def _given_last(self, node: ast.expr, stmt: ast.stmt) -> bool:
        """Whether a read of a variable sees what a statement has given it, and nothing that it held before: ``net = DataParallel(Both(net))``."""
        b = reaching(self.names, node) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) else None
        return b is not None and b.how == "assign" and self.names.is_inside(b.target, stmt)

    def _reached(self, node: ast.Name) -> tuple[Binding | None, bool]:
        """The binding that a read sees, where it gives a value, and whether that is made of the variable itself."""
        b = reaching(self.names, node) if isinstance(node.ctx, ast.Load) else None
        if b is None or b.value is None or b.how not in ("assign", "for", "with"):
            return None, False
        return b, any(isinstance(n, ast.Name) and n.id == node.id for n in walk(b.value))

    # ------------------------------------------------------------------ evaluation
    def keys(self, node: ast.AST) -> Iterator[Key]:
        """The variables that a Name or Attribute means."""
        found = self.names.meant(node)
        if found is not None:
            yield ("v", id(found[0]), found[1])
        elif isinstance(node, ast.Attribute):
            yield from self.attribute_keys(node)

    def attribute_keys(self, node: ast.Attribute) -> Iterator[Key]:
        found = self.names.meant(node)
        if found is not None:
            yield ("v", id(found[0]), found[1])
            return
        classes = {v.cls for v in self.eval(node.value) if v.kind in ("object", "class") and v.cls is not None}
        if classes:
            for c in classes:
                yield self.field_key(c, node.attr)
        elif isinstance(node.value, ast.Name):
            owner, name = self.names.meant(node.value) or (None, node.value.id)
            yield ("t", id(owner), f"{name}.{node.attr}")

    def eval(self, node: ast.AST | None) -> Vals:
        """The objects that the expression may mean; empty if unknown."""
        if node is None:
            return NONE
        if node in self._known:
            return self._known[node]
        here, outer = len(self._busy), self._cut
        if here >= DEPTH_LIMIT:
            return NONE
        if id(node) in self._busy:
            self._cut = min(outer, self._busy[id(node)])
            return NONE
        self._busy[id(node)] = self._cut = here
        try:
            vals = frozenset({Val("wrapped", node)}) if node in self.in_place else self._eval(node)
            if isinstance(node, ast.Name) and node in self.seen_as:
                vals = frozenset({self.seen_as[node]})
        finally:
            del self._busy[id(node)]
        if self._cut >= here:  # else the answer was cut short by a cycle through what is evaluated round it
            self._known[node] = vals
        self._cut = min(outer, self._cut)
        return vals

    def _eval(self, node: ast.AST) -> Vals:
        if isinstance(node, ast.Name):
            return self._name(node)
        if isinstance(node, ast.Attribute):
            return self._attribute(node) or self.lookups.found(node)
        if isinstance(node, ast.Call):
            return self.lookups.found(node) or self.lookups.made(node) or self.lookups.narrowed(node, self._call_value(node))
        if isinstance(node, ast.IfExp):
            return self.eval(node.body) | self.eval(node.orelse)
        if isinstance(node, ast.BoolOp):
            return NONE.union(*(self.eval(v) for v in node.values))
        if isinstance(node, ast.NamedExpr | ast.Starred | ast.Await):
            return self.eval(node.value)
        if isinstance(node, ast.Tuple | ast.List | ast.Set | ast.Dict | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            return frozenset({Val("display", node)})
        if isinstance(node, ast.Subscript):
            item: int | str = "*"
            if isinstance(node.slice, ast.Slice):
                held = self.eval(node.value)
                lists = frozenset(v for v in held if v.kind == "display")
                whole = frozenset({Val("display", node)}) if lists else NONE
                return whole | self.pick(held - lists, ("*",), subscript=True)
            if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, int | str):
                item = node.slice.value
            return self.pick(self.eval(node.value), (item,), subscript=True) or self.lookups.found(node)
        if isinstance(node, ast.Constant):
            return frozenset({Val("const", node)})
        if isinstance(node, ast.Lambda):
            return frozenset({Val("func", node)})
        return NONE

    def _name(self, node: ast.Name) -> Vals:
        dotted = self.names.dotted(node)
        if dotted and not dotted.startswith("?."):
            return frozenset({Val("ext", _EXT, dotted)})
        vals = self._last_bound(node)
        for key in self.keys(node) if not vals and not self._of_a_loop(node) else ():
            vals |= self._ordered(node, key, frozenset(self.vars.get(key, ())))
        return vals or (frozenset({Val("ext", _EXT, dotted)}) if dotted else NONE)

    def _last_bound(self, node: ast.Name) -> Vals:
        """What a variable was given last before this read of it, where the order of statements tells; a wrapped one is ``_ordered``."""
        if node not in self._reaching:
            self._reaching[node] = self._reached(node)
        b, of_itself = self._reaching[node]
        keys = frozenset(self.keys(node))
        sites = [w for w in (*self.wraps, *self.new_wraps) if w.key in keys]
        if b is None or b.value is None or not all(self._gone(w, b) for w in sites):
            return NONE
        vals = self._parts.bound(b.value, b.path)
        if of_itself and any(v.kind == "call" and not v.qual.startswith("torch.") for v in vals):
            return NONE  # net = prepare(net), of a function that is not seen, may be the same
        return self.unwraps.narrowed(node, vals)

    def _of_a_loop(self, node: ast.Name) -> bool:
        """Whether the read sees what a loop takes of something, also where it is not known what that holds: no other loop's, then."""
        b, _ = self._reaching.get(node, (None, False))
        keys = frozenset(self.keys(node))
        return b is not None and b.how == "for" and not any(w.key in keys for w in (*self.wraps, *self.new_wraps))

    def _gone(self, site: WrapSite, binding: Binding) -> bool:
        """Whether what a binding gives a variable takes the place of the model that was wrapped before, and has trained."""
        return any(self.names.is_inside(binding.target, stmt) or self.order.when(binding.target, stmt) == "after" for stmt, _ in site.later)

    def _attribute(self, node: ast.Attribute) -> Vals:
        dotted = self.names.dotted(node)
        if dotted and not dotted.startswith("?."):
            return frozenset({Val("ext", _EXT, dotted)})
        base, vals = self.eval(node.value), NONE
        for key in self.attribute_keys(node):
            vals |= self._ordered(node, key, frozenset(self.vars.get(key, ())))
        for v in base:
            if v.kind == "wrapped" and node.attr == "module":
                vals |= self.inner(v)
            elif v.kind == "ext":
                vals |= {Val("ext", _EXT, f"{v.qual}.{node.attr}")}
            elif v.kind in ("object", "class") and v.cls is not None:
                method = self.defs.method(v.cls, node.attr)
                if method is not None:
                    asked = v.kind == "object" and isinstance(node.ctx, ast.Load) and self.defs.is_property(method)
                    vals |= self._asked_for(method, node) if asked else {Val("func", method)}
        return vals

    def _call_value(self, node: ast.Call) -> Vals:
        func = node.func
        if self.is_wrap(node):
            return self.eval(wrap_argument(node)) if node in self.plain else frozenset({Val("wrapped", node)})
        if isinstance(func, ast.Attribute):
            if func.attr in SAME and not any(isinstance(v.node, FunctionNode) and self.defs.gives_another(v.node) for v in self.eval(func)):
                return self.eval(func.value)
            if func.attr in ("values", "items", "keys", "copy") and not node.args:
                return frozenset({Val("display", node, func.attr)}) if self.eval(func.value) else NONE
            if func.attr in ("get", "pop") and (held := self._parts.containers(func.value)):
                return self._parts.taken(node, held)
        if isinstance(func, ast.Name) and func.id == "super":
            return self._super(node)
        callees = self.eval(func)
        if (inner := through(self.names, node)) is not None and not any(v.kind in ("func", "class") for v in callees):
            return self.eval(inner)
        if any(v.qual in _SAME_MODEL for v in callees) and (same := wrap_argument(node)) is not None:
            return self.eval(same)
        out: set[Val] = set()
        for v in callees:
            if v.kind == "func":
                out |= self._given(node, v.node)
            elif v.kind == "object" and v.cls is not None and (run := self.defs.method(v.cls, "__call__")) is not None:
                # what goes through something that it is given is known by that, as a bar round a loader
                handed = {g for a in (*node.args, *(k.value for k in node.keywords)) for g in self.eval(a)}
                out |= frozenset() if any(g.qual.startswith("torch.utils.data.") for g in handed) else self._given(node, run)
            elif v.kind == "class" and v.cls is not None:
                out.add(Val("object", node, cls=v.cls))
            elif v.kind == "ext":
                out |= self._parts.made(node, v.qual) | (self._named(node) if v.qual == "?.getattr" else NONE)
            elif v.kind == "call" and v.qual in _FOUND:
                out.add(Val("call", node, ""))
            elif v.kind == "call" and v.qual == "functools.partial" and isinstance(v.node, ast.Call) and v.node.args:
                out |= self._made_by_partial(node, v.node.args[0])
        if not out and not callees:
            out.add(Val("call", node, ""))
        return frozenset(out)

    def _made_by_partial(self, node: ast.Call, made: ast.expr) -> Vals:
        """What a call of ``partial(made, …)`` makes, where that is a class or of a library."""
        found = self.eval(made)
        objects = frozenset(Val("object", node, cls=v.cls) for v in found if v.kind == "class" and v.cls is not None)
        return objects.union(*(self._parts.made(node, v.qual) for v in found if v.kind == "ext"))

    def _given(self, call: ast.Call, function: ast.AST) -> Vals:
        """What a call of a function of this module gives."""
        return frozenset(self.returns.get(function, set())) | self.returned.given_back(call, function) | self.returned.generated(call, function)

    def _named(self, call: ast.Call) -> Vals:
        """``getattr(self, "net_" + name)``: whatever attribute of an object of the program has a name that begins so."""
        owners = {id(self.defs.bases(v.cls)[-1]) for v in self.eval(call.args[0]) if v.kind == "object" and v.cls is not None} if len(call.args) > 1 else set()
        begins, whole = beginning(call.args[1]) if owners else ("", True)
        found = [k for k in self.vars if k[0] == "a" and k[1] in owners and (k[2] == begins if whole else k[2].startswith(begins))]
        return NONE.union(*(self._ordered(call, k, frozenset(self.vars[k])) for k in found))

    def _super(self, node: ast.Call) -> Vals:
        """``super()``: the object, seen as one of the next class up in this module."""
        cls = next((a for a in self.names.ancestors(node) if isinstance(a, ast.ClassDef)), None)
        above = self.defs.bases(cls)[1:2] if cls is not None else []
        return frozenset(Val("object", node, cls=c) for c in above)

    def pick(self, vals: Vals, path: Path, subscript: bool = False) -> Vals:
        """The part of the objects that ``path`` names: elements of displays and dicts, whatever was stored under a key."""
        return self._parts.pick(vals, path, subscript)

    def cut_short(self) -> None:
        """The answer in progress rests on one that is not finished: it is not kept."""
        self._cut = -1


#: where things of other libraries are made
_EXT = ast.Constant(value="external", lineno=0, col_offset=0, end_lineno=0, end_col_offset=0)
