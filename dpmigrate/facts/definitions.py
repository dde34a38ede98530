"""What the module's own functions and classes say about themselves: bases, methods, parameters, and what a function hands back as it got it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from dpmigrate.facts.library import CALLED_BARS, FLOATS, MOVES, PROGRESS
from dpmigrate.facts.names import FunctionNode, Names
from dpmigrate.facts.nodes import walk

#: methods of a module that return the module
SAME = MOVES | FLOATS | {"train", "eval", "apply", "requires_grad_", "xpu", "share_memory"}

#: methods that every module has, and that run none of its layers
_OF_MODULES = SAME | {"parameters", "named_parameters", "buffers", "named_buffers", "modules", "children", "state_dict", "load_state_dict", "register_buffer"}

#: decorators and base classes that write ``__init__`` for a class, with a parameter for each attribute that its body annotates
_RECORDS = frozenset(
    {
        *("dataclasses.dataclass", "pydantic.dataclasses.dataclass", "attr.s", "attr.attrs", "attr.dataclass", "attr.define", "attr.frozen", "attr.mutable"),
        *("attrs.define", "attrs.frozen", "attrs.mutable", "typing.NamedTuple", "typing_extensions.NamedTuple", "pydantic.BaseModel", "msgspec.Struct"),
    }
)
_TUPLES = frozenset({"typing.NamedTuple", "typing_extensions.NamedTuple"})
#: decorators of methods that are called where their name is read
_PROPERTIES = frozenset({"?.property", "functools.cached_property", "abc.abstractproperty"})

#: calls that hand their first argument on, for iteration
TRANSPARENT = PROGRESS | {"enumerate", "list", "tuple", "iter", "islice", "cycle", "sorted", "prefetch"}


def gone_through(call: ast.Call) -> ast.expr | None:
    """What a call of :data:`TRANSPARENT` goes through, by place or by name: ``tqdm(loader)``, ``tqdm(iterable=loader)``, ``track(sequence=loader)``."""
    return call.args[0] if call.args else next((k.value for k in call.keywords if k.arg in ("iterable", "sequence")), None)


def through(names: Names, node: ast.AST, words: frozenset[str] = TRANSPARENT) -> ast.expr | None:
    """What a call hands on for iteration, also one that is named on the way (``(bar := tqdm(loader))``); None for any other expression."""
    if isinstance(node, ast.NamedExpr):
        return node.value
    if not isinstance(node, ast.Call):
        return None
    return gone_through(node) if names.word(node.func) in words or _is_called_bar(names, node.func) else None


def _is_called_bar(names: Names, func: ast.expr) -> bool:
    """Whether what is called is a bar that was made before, and shows what it is called with: ``bar(loader)``, ``ProgressBar(max_value=9)(loader)``."""
    made: list[ast.AST | None] = [func]
    if isinstance(func, ast.Name) and func in names.scope_of:
        made = [b.value if b.how == "assign" and not b.path else None for b in names.bindings(names.scope_of[func], func.id)]
    return bool(made) and all(isinstance(m, ast.Call) and names.dotted(m.func) in CALLED_BARS for m in made)


class Definitions:
    """The functions and classes of one module."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self._classes = [n for n in names.nodes if isinstance(n, ast.ClassDef)]
        self._bases: dict[ast.ClassDef, list[ast.ClassDef]] = {}
        self._families: dict[ast.ClassDef, list[ast.ClassDef]] = {}
        self._holders: dict[ast.ClassDef, bool] = {}
        self._fields: dict[ast.ClassDef, list[str]] = {}
        self._drivers: dict[FunctionNode, bool] = {}
        self._yields = {n for n in names.nodes if isinstance(n, ast.Yield | ast.YieldFrom)}

    def method_class(self, node: ast.AST) -> ast.ClassDef | None:
        """The class whose method the function is."""
        parent = self.names.parent.get(node)
        return parent if isinstance(parent, ast.ClassDef) else None

    def bases(self, cls: ast.ClassDef) -> list[ast.ClassDef]:
        """The class and its bases in this program, nearest first."""
        if cls not in self._bases:
            out, todo = [], [cls]
            while todo:
                c = todo.pop(0)
                if c not in out:
                    out.append(c)
                    todo += [base for b in c.bases if (base := self.named(b)) is not None]
            self._bases[cls] = out
        return self._bases[cls]

    def named(self, node: ast.expr) -> ast.ClassDef | None:
        """The class of this program that the expression names."""
        found = self.names.meant(node)
        bound = found[0].bindings.get(found[1], ()) if found is not None else ()
        return next((b.value for b in bound if isinstance(b.value, ast.ClassDef)), None)

    def family(self, cls: ast.ClassDef) -> list[ast.ClassDef]:
        """The class and every class of this program that derives from it: what ``self`` may be in its methods."""
        if cls not in self._families:
            self._families[cls] = [cls, *(c for c in self._classes if c is not cls and cls in self.bases(c))]
        return self._families[cls]

    def method(self, cls: ast.ClassDef, name: str) -> FunctionNode | None:
        """The method that a call of ``name`` on an object of the class enters, if it stands in this module."""
        for c in self.bases(cls):
            for n in c.body:
                if isinstance(n, FunctionNode) and n.name == name:
                    return n
        return None

    def is_property(self, function: FunctionNode) -> bool:
        """Whether a method is called where its name is read."""
        return any(self.names.dotted(d) in _PROPERTIES for d in function.decorator_list)

    def computes(self, function: FunctionNode) -> bool:
        """Whether a property calls something: another read may make another object, and the first one may draw random numbers."""
        return any(isinstance(n, ast.Call) for s in function.body for n in walk(s))

    def fields(self, cls: ast.ClassDef) -> list[str]:
        """The parameters of the ``__init__`` that a data class, a named tuple and the like get from what their bodies annotate; none where one is written."""
        if cls not in self._fields:
            kinds = [self._records(c) for c in self.bases(cls)]
            found: dict[str, None] = {}
            for c in reversed(self.bases(cls)) if any(kinds) and self.method(cls, "__init__") is None else ():
                found |= dict.fromkeys(_annotated(c))
            self._fields[cls] = list(found)
        return self._fields[cls]

    def is_tuple(self, cls: ast.ClassDef) -> bool:
        """Whether the objects of a class are tuples of its fields."""
        return any(self._records(c) & _TUPLES for c in self.bases(cls))

    def _records(self, cls: ast.ClassDef) -> set[str]:
        above = [d.func if isinstance(d, ast.Call) else d for d in cls.decorator_list]
        return {self.names.dotted(n) for n in (*above, *cls.bases)} & _RECORDS

    def is_module_class(self, cls: ast.ClassDef) -> bool:
        """Whether the class derives from ``torch.nn.Module`` (or from a class of another file that may)."""
        quals = [self.names.dotted(b) for c in self.bases(cls) for b in c.bases]
        quals = [q for q in quals if q not in _RECORDS]
        return any(q.startswith(("torch.nn.", "pytorch_lightning.", "lightning.")) or q.endswith(("Module", "Net", "Model")) for q in quals)

    def holds_models(self, cls: ast.ClassDef) -> bool:
        """Whether a class of modules only holds models, and trains them or averages their weights: it has no ``forward``, of its own or inherited, and calls
        ``backward()``, or copies a model that it is given (``self.ema = copy.deepcopy(model)``).
        """
        if cls not in self._holders:
            self._holders[cls] = self._holds_models(cls)
        return self._holders[cls]

    def _holds_models(self, cls: ast.ClassDef) -> bool:
        family = self.family(cls)
        plain = all(self.names.dotted(b) == "torch.nn.Module" or self.named(b) is not None for c in family for b in c.bases)
        if not plain or any(self.method(c, name) is not None for c in family for name in ("forward", "__call__")):
            return False
        own = {*family, *self.bases(cls)}
        return any(self.names.cls(n) in own for n in self.names.attributes("backward")) or any(map(self._keeps_a_copy, own))

    def drives_itself(self, function: ast.AST) -> bool:
        """Whether the function is a method in which a model trains itself (``model.fit(loader)``, ``model.train_step(batch)``, with ``backward()`` in it, of
        a class that has a ``forward`` as well), one that starts such a method, or a loop in which such a model calls itself, as for an evaluation.

        What stands in it is none of what ``forward`` runs.
        """
        if not isinstance(function, FunctionNode):
            return False
        if function not in self._drivers:
            cls = self.method_class(function)
            self._drivers[function] = cls is not None and self._of_one_that_trains_itself(function, cls)
        return self._drivers[function]

    def _of_one_that_trains_itself(self, function: FunctionNode, cls: ast.ClassDef) -> bool:
        if not self.is_module_class(cls) or self.holds_models(cls) or is_static(function) or is_class_method(function):
            return False
        if self._trains(function):
            return any(self.method(c, "forward") is not None for c in self.family(cls)) and not self._run_by_forward(function, cls)
        if self._run_by_forward(function, cls) or not any(self.drives_itself(m) for m in self._related(cls) if self._trains(m)):
            return False
        me = parameters(function)[:1]
        own = [n for n in walk(function) if isinstance(n, ast.Name) and n.id in me]
        return self._loops_over(function, [n for n in own if _is_called(self.names, n)]) or any(self._starts_training(n, cls) for n in own)

    def _related(self, cls: ast.ClassDef) -> Iterator[ast.AST]:
        """What stands in the class, its bases and what derives from it."""
        return (m for c in dict.fromkeys((*self.bases(cls), *self.family(cls))) for m in c.body)

    def _starts_training(self, me: ast.Name, cls: ast.ClassDef) -> bool:
        """``self.train_epoch(loader)``, of a method that trains"""
        method = self.names.parent[me]
        call = self.names.parent[method]
        named = isinstance(method, ast.Attribute) and isinstance(call, ast.Call) and call.func is method
        return named and any(isinstance(m, FunctionNode) and m.name == method.attr and self._trains(m) for m in self._related(cls))  # type: ignore[attr-defined]

    def _trains(self, method: ast.AST) -> bool:
        return isinstance(method, FunctionNode) and any(self.names.function(n) is method for n in self.names.attributes("backward"))

    def _loops_over(self, function: FunctionNode, nodes: Iterable[ast.AST]) -> bool:
        """Whether one of the nodes stands in a loop of the function's own."""
        own = (n for n in nodes if self.names.function(n) is function)
        return any(isinstance(a, ast.For | ast.While) for n in own for a in self.names.ancestors(n, below=function))

    def _run_by_forward(self, function: FunctionNode, cls: ast.ClassDef) -> bool:
        """Whether ``forward`` of the class names the method, or another one that it names does."""
        seen: set[str] = set()
        todo = ["forward"]
        while todo:
            name = todo.pop()
            if name in seen:
                continue
            seen.add(name)
            methods = (m for m in self._related(cls) if isinstance(m, FunctionNode) and m.name == name)
            todo += [n.attr for m in methods for n in walk(m) if isinstance(n, ast.Attribute)]
        return function.name in seen

    def within_own_loop(self, node: ast.AST) -> FunctionNode | None:
        """The method round the node that ``drives_itself``; also round the functions that it makes."""
        around = (a for a in (node, *self.names.ancestors(node)) if isinstance(a, FunctionNode))
        return next((f for f in around if self.drives_itself(f)), None)

    def _keeps_a_copy(self, cls: ast.ClassDef) -> bool:
        """Whether a class makes a copy of a parameter of its ``__init__``, and calls nothing that it keeps: methods alone."""
        made = next((n for n in cls.body if isinstance(n, FunctionNode) and n.name == "__init__"), None)
        if made is None:
            return False
        me, *given = parameters(made) or [""]
        calls = [n for n in walk(cls) if isinstance(n, ast.Call)]
        copied = [a for c in calls if self.names.dotted(c.func) == "copy.deepcopy" for a in c.args if self.names.function(c) is made]
        if not any(isinstance(a, ast.Name) and a.id in given for a in copied):
            return False
        kept = [f.attr for c in calls if isinstance(f := c.func, ast.Attribute) and isinstance(f.value, ast.Name) and f.value.id == me]
        return all(self.method(cls, name) is not None or name in _OF_MODULES for name in kept)

    def gives_another(self, method: FunctionNode) -> bool:
        """Whether a method of the name of one of :data:`SAME` hands something else back than its object: ``train()`` of a trainer, the model."""
        me = next(iter(parameters(method)), "")
        values = [r.value for r in self.names.returns(method) if r.value is not None]
        return any(not _of_the_object(value, me) for value in values)

    def handed_back(self, function: FunctionNode, value: ast.expr) -> str | None:
        """The parameter that the returned expression is, unchanged: a call then means what it was given, not what other calls gave."""
        while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in SAME:
            value = value.func.value
        if isinstance(value, ast.IfExp):  # x.cuda() if cuda else x
            one, other = (self.handed_back(function, side) for side in (value.body, value.orelse))
            return one if one == other else None
        if not isinstance(value, ast.Name) or value.id not in parameters(function):
            return None
        scope = self.names.opened[function]
        bindings = scope.bindings.get(value.id, ())
        kept = all(b.how == "param" or (b.how == "assign" and not b.path and _itself(b.value, value.id)) for b in bindings)
        return value.id if kept and value.id not in scope.outer else None

    def shown(self, function: FunctionNode) -> list[str | None]:
        """The parameter that a function hands back in a progress bar and the like: ``return tqdm(loader)``; other returns may give it as it is."""
        values = [r.value for r in self.names.returns(function)]
        found = {self._within(function, v) if v is not None else None for v in values}
        bare = {self.handed_back(function, v) if v is not None else None for v in values}
        return list(found) if len(found) == 1 and found != bare else []

    def _within(self, function: FunctionNode, value: ast.expr) -> str | None:
        while (inner := through(self.names, value)) is not None:
            value = inner
        return self.handed_back(function, value)

    def returns_of_parameters(self) -> set[ast.Return]:
        """The returns that hand a parameter back: what they give depends on the call (``net_a = train(net_a); net_b = train(net_b)``)."""
        out = set()
        for node in self.names.nodes:
            function = self.names.function(node) if isinstance(node, ast.Return) else None
            if isinstance(node, ast.Return) and node.value is not None and isinstance(function, FunctionNode):
                parts = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
                if any(self.handed_back(function, part) for part in parts):
                    out.add(node)
        return out

    def generates(self, function: ast.AST) -> list[ast.expr]:
        """What a generator goes through while it yields, without ``enumerate`` and the like: ``loader`` in ``for batch in loader: yield batch``.

        Also what it takes with ``next()``: ``it = iter(loader)``, then ``yield next(it)``.
        """
        out = []
        for y in self._yields:
            if self.names.function(y) is function:
                loops = [a for a in self.names.ancestors(y) if isinstance(a, ast.For) and self.names.is_inside(a, function)]
                value = y.value if isinstance(y, ast.YieldFrom) else loops[0].iter if loops else self._taken(function)
                while value is not None and (inner := through(self.names, value)) is not None:
                    value = inner
                if value is not None:
                    out.append(value)
        return out

    def _taken(self, function: ast.AST) -> ast.expr | None:
        """The one iterable of which the function takes items with ``next()``, from an iterator of its own."""
        calls = [n for n in walk(function) if isinstance(n, ast.Call)]
        taken = [n.args[0] for n in calls if self.names.dotted(n.func) == "?.next" and n.args]
        taken += [n.func.value for n in calls if isinstance(n.func, ast.Attribute) and n.func.attr in ("next", "__next__")]
        bound = [b for n in taken if isinstance(n, ast.Name) for b in self.names.bindings(self.names.scope_of[n], n.id)]
        begun = [b.value.args[0] for b in bound if isinstance(b.value, ast.Call) and self.names.dotted(b.value.func) == "?.iter" and b.value.args]
        return begun[0] if begun and len(begun) == len(bound) and len({ast.dump(e) for e in begun}) == 1 else None

    def keys(self, node: ast.AST | None, depth: int = 8) -> tuple[object, ...]:
        """The literal keys of a dict or elements of a list, also where it is a comprehension over such; empty if unknown."""
        if isinstance(node, ast.List | ast.Tuple | ast.Dict):
            elements = node.keys if isinstance(node, ast.Dict) else node.elts
            return tuple(e.value for e in elements if isinstance(e, ast.Constant)) if all(isinstance(e, ast.Constant) for e in elements) else ()
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("items", "keys"):
            return self.keys(node.func.value, depth)
        if isinstance(node, ast.Name):
            bound = list(self.names.bindings(self.names.scope_of[node], node.id))
            return self.keys(bound[0].value, depth - 1) if depth and len(bound) == 1 and bound[0].how == "assign" and not bound[0].path else ()
        if isinstance(node, ast.DictComp) and len(node.generators) == 1 and not node.generators[0].ifs:
            target = node.generators[0].target
            first = target.elts[0] if isinstance(target, ast.Tuple) else target
            if isinstance(node.key, ast.Name) and isinstance(first, ast.Name) and first.id == node.key.id:
                return self.keys(node.generators[0].iter, depth)
        return ()


def _annotated(cls: ast.ClassDef) -> Iterator[str]:
    """What a class annotates in its body and its objects are given: not what is the class's own, nor what ``field(init=False)`` leaves out."""
    for n in cls.body:
        if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name) and "ClassVar" not in ast.unparse(n.annotation):
            made = n.value.keywords if isinstance(n.value, ast.Call) else []
            if not any(k.arg == "init" and isinstance(k.value, ast.Constant) and k.value.value is False for k in made):
                yield n.target.id


def _itself(node: ast.AST | None, name: str) -> bool:
    """``model.to(device)``, for the name ``model``."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in SAME:
        node = node.func.value
    if isinstance(node, ast.IfExp):
        return _itself(node.body, name) and _itself(node.orelse, name)
    return isinstance(node, ast.Name) and node.id == name


def _is_called(names: Names, me: ast.Name) -> bool:
    """``self(x)``, ``self.forward(x)``"""
    above = names.parent[me]
    called = above if isinstance(above, ast.Attribute) and above.attr == "forward" else me
    call = names.parent[called]
    return isinstance(call, ast.Call) and call.func is called


def parameters(function: FunctionNode) -> list[str]:
    """The names of a function's parameters, without ``*args`` and ``**kwargs``."""
    a = function.args
    return [p.arg for p in (*a.posonlyargs, *a.args, *a.kwonlyargs)]


def _of_the_object(value: ast.expr, me: str) -> bool:
    """``self``, ``super().train(mode)``, also with methods behind it that hand their object back."""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in SAME:
        value = value.func.value
    above = isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "super"
    return above or (isinstance(value, ast.Name) and value.id == me)


def is_static(function: FunctionNode) -> bool:
    """Whether a method is called without an object."""
    return any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in function.decorator_list)


def is_class_method(function: FunctionNode) -> bool:
    """Whether a method is given the class in place of an object: another constructor."""
    return any(isinstance(d, ast.Name) and d.id == "classmethod" for d in function.decorator_list)


def default(a: ast.arguments, arg: ast.arg) -> ast.expr | None:
    """A parameter's default value."""
    plain = [*a.posonlyargs, *a.args]
    if arg in plain:
        i = plain.index(arg) - (len(plain) - len(a.defaults))
        return a.defaults[i] if i >= 0 else None
    return a.kw_defaults[a.kwonlyargs.index(arg)] if arg in a.kwonlyargs else None


def arguments(call: ast.Call, function: FunctionNode | ast.Lambda, skip: int) -> Iterator[tuple[str, ast.expr]]:
    """The (parameter, expression) pairs of a call of a function of this module, ``skip`` of whose parameters are bound already."""
    a = function.args
    plain = [*a.posonlyargs, *a.args][skip:]
    for parameter, arg in zip(plain, call.args, strict=False):
        if isinstance(arg, ast.Starred):
            break
        yield parameter.arg, arg
    names = {p.arg for p in [*plain, *a.kwonlyargs]}
    for k in call.keywords:
        if k.arg in names:
            yield k.arg, k.value
