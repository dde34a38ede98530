"""Decisions that may fall out differently on different ranks.

A test is *uniform* when it is made only of settings, loop counters and constants: the same on every rank. Whatever comes from
data, from the model, from the clock or from a call that is not known may differ; a rank that leaves a loop alone makes the
others wait for ever.
"""

from __future__ import annotations

import ast
import builtins
import enum
import re
from collections.abc import Collection
from functools import cached_property

from dpmigrate.facts.definitions import gone_through
from dpmigrate.facts.dependence import ControlDependence, counted_turns
from dpmigrate.facts.held import always_true, class_meant, class_of, held_by_own, latest, stored_values
from dpmigrate.facts.library import EXISTS, MUTATORS, NUMBERS, PROGRESS
from dpmigrate.facts.names import FunctionNode, Loop, Names, last, of_self, position
from dpmigrate.facts.nodes import children, walk
from dpmigrate.facts.outside import waits_for_somebody
from dpmigrate.facts.scopes import Binding, Scope, Variable

_UNIFORM_CALLS = (
    NUMBERS
    | EXISTS
    | {"?.len", "?.range", "?.isinstance", "?.hasattr", "?.getattr", "?.bool", "?.str", "?.repr", "?.pow", "?.divmod", "?.sum", "?.any", "?.all"}
    | {"?.list", "?.tuple", "?.dict", "?.sorted", "?.reversed", "?.enumerate", "?.zip"}
    | {"math.floor", "math.ceil", "math.sqrt", "math.log", "math.log2", "math.log10", "math.exp", "math.pow", "math.cos", "math.prod"}
    | {"os.path.join", "os.environ.get", "os.getenv", "torch.device"}
)
_UNIFORM_METHODS = frozenset({"startswith", "endswith", "lower", "upper", "strip", "split", "items", "keys", "values", "get", "replace", "format"})
_DATA = re.compile(r"data|loader|folder|split|subset", re.IGNORECASE)
_SETTINGS = re.compile(
    r"arg(ument)?s(?!ort)|^parse$|ArgumentParser|config|cfg|^(get_|load_|parse_)?opt(ion)?s?$|settings?|h(yper)?_?param|Namespace|safe_load", re.IGNORECASE
)


#: what torch says of the machine, in whatever part of it: ``torch.backends.mps.is_available()``
_OF_MACHINE = frozenset({"is_available", "is_built", "is_bf16_supported", "device_count"})
#: what calls functions of a program with what the command line says
_COMMAND_LINE = frozenset({"fire.Fire", "typer.run", "tyro.cli", "plac.call", "defopt.run", "jsonargparse.CLI"})
#: where the classes of torch stand whose objects are no values of a batch
_OBJECTS = ("torch.optim.", "torch.utils.data.", "torch.nn.", "torch.utils.tensorboard.", "torch.cuda.amp.", "torch.amp.")
#: what reads a file of settings
_FILES = frozenset({"torch.load", "json.load", "yaml.load", "yaml.full_load", "toml.load", "tomllib.load", "omegaconf.OmegaConf.load"})
_READS = re.compile(r"^((load|read)_(json|yaml|yml|toml)|Params)$", re.IGNORECASE)


class _Asks(enum.Enum):
    """What is asked of a value: all of it, whether it is None, or whether it is true."""

    VALUE = "the value"
    NONE = "whether it is None"
    TRUTH = "whether it is true"


def uniform(names: Names, node: ast.AST, decided: Collection[ast.AST] = ()) -> bool:
    """Whether the expression has the same value on every rank, as far as it can be proved; ``decided`` are tests that they decide together.

    Of the test of an ``if`` or a loop it is asked whether it falls out alike.
    """
    proof, inner = _Proof(names, decided=decided), node
    while isinstance(above := names.parent.get(inner), ast.BoolOp) or (isinstance(above, ast.UnaryOp) and isinstance(above.op, ast.Not)):
        inner = above
    return proof.test(node) if getattr(above, "test", None) is inner else proof.expression(node)


class _Proof(ControlDependence):
    """One proof. What is being proved is taken for proved where it is met again: the first value that differs ends the whole proof."""

    def __init__(
        self, names: Names, seen: set[tuple[object, ...]] | None = None, decided: Collection[ast.AST] = (), asks: _Asks = _Asks.VALUE
    ) -> None:
        super().__init__(names, decided)
        self.asks = asks
        self.seen = set() if seen is None else seen

    def first(self, *key: object) -> bool:
        key = (self.asks, *key)
        new = key not in self.seen
        self.seen.add(key)
        return new

    def _asking(self, asks: _Asks) -> _Proof:
        """The same proof with another question."""
        return self if self.asks is asks else _Proof(self.names, self.seen, self.decided, asks)

    def test(self, node: ast.AST) -> bool:
        """Whether a test falls out alike on all ranks: of an object that is there or None, its being there is enough."""
        if isinstance(node, ast.BoolOp):
            return all(self.test(v) for v in node.values)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return self.test(node.operand)
        known = set(self.seen)
        if self._asking(_Asks.VALUE).expression(node):
            return True
        if not isinstance(node, ast.Name | ast.Attribute):
            return False
        self.seen.intersection_update(known)  # what the failed proof took for granted is not
        return self._asking(_Asks.TRUTH).expression(node)

    def expression(self, node: ast.AST) -> bool:
        if self.asks is _Asks.TRUTH:
            if isinstance(node, ast.Call) and self._is_true(node):
                return True
            if not isinstance(node, ast.Name | ast.IfExp) and not (isinstance(node, ast.Attribute) and of_self(node)):
                return self._asking(_Asks.VALUE).expression(node)
        parts = [node]
        while parts:
            n = parts.pop()
            if isinstance(n, ast.IfExp):
                if not self.test(n.test) or not self.expression(n.body) or not self.expression(n.orelse):
                    return False
                continue
            if isinstance(n, ast.Compare) and _asks_none(n):
                if not self._asking(_Asks.NONE).expression(n.left):
                    return False
                continue
            if isinstance(n, ast.Call) and (self._makes(n) if self.asks is _Asks.NONE else self._counts_data(n)):
                continue
            if isinstance(n, ast.Attribute) and n.attr == "training":
                continue  # the mode of a model, which its program sets
            if isinstance(n, ast.Attribute) and held_by_own(self.names, n):
                if not self._attribute(n):
                    return False
                continue  # the object itself is another one on each rank, and may be a model
            if isinstance(n, ast.Call) and waits_for_somebody(self.names, n):
                continue  # rank 0 asks, and tells the others the answer
            parts.extend(children(n))
            if isinstance(n, ast.Await | ast.Yield | ast.YieldFrom | ast.Lambda | ast.SetComp):
                return False
            if isinstance(n, ast.Call) and not self._pure(n):
                return False
            if isinstance(n, ast.Constant) and isinstance(n.value, str) and n.value.endswith("RANK"):
                return False  # os.environ["LOCAL_RANK"]
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and not self._variable(n):
                return False
            if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Load) and not self._attribute(n):
                return False
        return True

    def _pure(self, call: ast.Call) -> bool:
        package, _, name = self.names.dotted(call.func).rpartition(".")
        if name in _OF_MACHINE and package.partition(".")[0] == "torch":
            return True
        if self.names.dotted(call.func) in _UNIFORM_CALLS or (isinstance(call.func, ast.Attribute) and call.func.attr in _UNIFORM_METHODS):
            return True
        return isinstance(call.func, ast.Name | ast.Attribute) and self._own(call.func)

    def _own(self, func: ast.Name | ast.Attribute) -> bool:
        """A function of this file all of whose results are uniform, or a class of this file: what its objects hold is asked of each attribute."""
        node = self._called(func)
        if isinstance(node, ast.ClassDef):
            return not any(last(b) in ("Module", "Dataset") for b in node.bases)
        if not isinstance(node, FunctionNode) or not self.first("f", node):
            return node is not None
        returns = self.names.returns(node)
        return bool(returns) and not _yields(node) and all(self._result(r) for r in returns)

    def _called(self, func: ast.expr) -> ast.AST | None:
        """The one function or class of this program that the name means, or the only method of that name."""
        if isinstance(func, ast.Attribute) and of_self(func):
            return self._own_method(func.attr)
        found = self.names.meant(func)
        bindings = list(self.names.bindings(*found)) if found is not None and found[1] else []
        return bindings[0].target if len(bindings) == 1 and bindings[0].how in ("def", "class") else None

    def _own_method(self, name: str) -> ast.AST | None:
        """The method that ``self.name()`` enters, whatever class ``self`` is of: no other one has its name, and nothing is stored there."""
        made = [b.target for s in self.names.opened.values() if s.is_class for b in s.bindings.get(name, ()) if b.how == "def"]
        stored = any(isinstance(s.ctx, ast.Store) for s in self.names.attributes(name))
        return made[0] if len(made) == 1 and not stored else None

    def _result(self, node: ast.Return) -> bool:
        return (node.value is None or self._settings(node.value) or self.expression(node.value)) and not self.parted(node, node, False)

    def _makes(self, call: ast.Call) -> bool:
        """Whether the call gives an object on every rank: a class, or a function of torch's."""
        return last(call.func).lstrip("_")[:1].isupper() or self.names.dotted(call.func).startswith("torch.")

    def _gives_object(self, call: ast.Call) -> bool:
        """Whether the call answers what is asked, whatever object it gives."""
        return self._makes(call) if self.asks is _Asks.NONE else self.asks is _Asks.TRUTH and self._is_true(call)

    def _is_true(self, call: ast.Call) -> bool:
        """Whether the call gives an object of the program's that is always true, or one of torch's, which is so or as long as the data: no tensor."""
        own = class_meant(self.names, call.func)
        if own is not None:
            return always_true(self.names, own)
        return last(call.func)[:1].isupper() and self.names.dotted(call.func).startswith(_OBJECTS)

    def _counts_data(self, call: ast.Call) -> bool:
        """``len(dataset)``: every rank has the same data, whatever object it is in."""
        if last(call.func) != "len" or len(call.args) != 1 or not isinstance(call.args[0], ast.Name | ast.Attribute):
            return False
        counted: list[ast.expr] = [call.args[0]]
        if isinstance(call.args[0], ast.Attribute) and of_self(call.args[0]):
            counted = stored_values(self.names, call.args[0])
            if any(_DATA.search(_made_by(v)) for v in counted):
                return True
        names = [n for v in counted for n in walk(v) if isinstance(n, ast.Name)]
        bound = [b for n in names for b in self.names.bindings(self.names.scope_of[n], n.id)]
        made = any(self._data(b, frozenset()) for b in bound)
        used = any(isinstance(p := self.names.parent[r], ast.Call) and _DATA.search(last(p.func)) for n in names for r in self.names.reads(n.id))
        return (made or used) and not self.of_batch(call.args[0], frozenset())

    def _data(self, b: Binding, seen: frozenset[ast.AST]) -> bool:
        """Whether what is bound is made as data, or is a parameter that is given such."""
        if b.how == "assign":
            return bool(_DATA.search(_made_by(b.value)))
        function = self.names.function(b.target)
        if b.how != "param" or not isinstance(function, FunctionNode) or b.target in seen:
            return False
        plain = [*function.args.posonlyargs, *function.args.args]
        plain = plain[1:] if isinstance(self.names.parent[function], ast.ClassDef) else plain
        given = [g for c in self._calls_of(function) for g in _passed_to(c, b.target, plain)]
        names = [g for g in given if isinstance(g, ast.Name)]
        return any(self._data(x, seen | {b.target}) for n in names for x in self.names.bindings(self.names.scope_of[n], n.id))

    # ------------------------------------------------------------------ variables
    def _variable(self, node: ast.Name) -> bool:
        found = self.names.meant(node)
        if found is None:  # a builtin, __file__, or what a star import brings: as uniform as what is imported by name
            return hasattr(builtins, node.id) or node.id.startswith("__") or bool(self.names.stars)
        return self._holds(found, node)

    def _holds(self, variable: Variable, reader: ast.AST) -> bool:
        """Whether a variable holds the same on all ranks where it is read."""
        owner, name = variable
        bound = self._of_turn([b for b in self.names.bindings(owner, name) if not self._comes_later(b, reader, owner)], reader)
        if not name or not self.first("v", id(owner), name, *(id(b.target) for b in bound)):
            return True
        if bound and all(b.how == "assign" and not b.path and isinstance(b.value, ast.Call) and self._gives_object(b.value) for b in bound):
            return True  # an object, whichever it is
        return all(self._binding(b, reader, owner) for b in bound) and not self._mutated(owner, name)

    def _of_turn(self, bound: list[Binding], reader: ast.AST) -> list[Binding]:
        """In the body of a loop its variable is what the loop gives it, whatever the name was given before."""
        function = self.names.function(reader)
        for a in self.names.ancestors(reader):
            if isinstance(a, FunctionNode) or any(self.names.function(b.target) is not function for b in bound):
                break
            inside = [b for b in bound if self.names.is_inside(b.target, a)]
            if isinstance(a, ast.For) and inside and all(b.how == "for" and self.names.is_inside(b.target, a.target) for b in inside):
                return inside if any(self.names.is_inside(reader, s) for s in a.body) else bound
        return bound

    def _comes_later(self, b: Binding, reader: ast.AST, owner: Scope) -> bool:
        """Whether the function gives its variable this value only after it is read: ``if name is None: name = time.strftime(…)``."""
        if not isinstance(owner.node, FunctionNode) or not (self.names.function(reader) is owner.node is self.names.function(b.target)):
            return False
        around = [a for a in self.names.ancestors(reader) if isinstance(a, Loop) and self.names.function(a) is owner.node]
        return position(b.target) > position(reader) and not any(self.names.is_inside(b.target, a) for a in around)

    def _binding(self, b: Binding, reader: ast.AST, owner: Scope) -> bool:
        if b.how in ("import", "def", "class"):
            return True
        if b.how == "param":
            assert isinstance(b.target, ast.arg)
            return self._parameter(b.target, owner.node)
        if b.how == "for":
            assert isinstance(b.value, ast.expr)
            return self.element(b.value, b.path)
        shared = self.names.function(b.target) is not owner.node  # by a global or nonlocal statement
        if b.how == "aug":
            assert isinstance(b.value, ast.AugAssign)
            return self.expression(b.value.value) and not self.parted(b.target, reader, shared)
        if b.how == "assign" and b.value is not None:
            return self._given(b.value, b.path) and not self.parted(b.target, reader, shared)
        return False  # a context manager's, an exception, what a pattern catches

    def _given(self, value: ast.AST, path: tuple[int | str, ...]) -> bool:
        """Whether what an assignment gives a target is uniform; where a function hands back tuples, the elements of that place alone."""
        index = path[0] if path else None
        if not isinstance(index, int):
            return self._settings(value) or self._read_once(value) or self.expression(value)
        if isinstance(value, ast.Tuple) and _holds_at(value, index):
            return self._given(value.elts[index], path[1:])
        function = self._called(value.func) if isinstance(value, ast.Call) else None
        returns = self.names.returns(function) if isinstance(function, FunctionNode) and not _yields(function) else []
        if not returns or not all(isinstance(r.value, ast.Tuple) and _holds_at(r.value, index) for r in returns):
            return self._given(value, ())
        return not self.first("f", function, path) or all(self._given(r.value, path) and not self.parted(r, r, False) for r in returns if r.value)

    def _read_once(self, value: ast.AST) -> bool:
        """A file of settings, read before any loop: the same on all ranks, as the file is."""
        if not isinstance(value, ast.Call) or any(isinstance(a, Loop) for a in self.names.ancestors(value)):
            return False
        if self.names.dotted(value.func) in _FILES or _READS.search(last(value.func)):
            return True
        function = self._called(value.func)  # def load(path): return torch.load(path)
        returns = self.names.returns(function) if isinstance(function, FunctionNode) else []
        return bool(returns) and all(isinstance(r.value, ast.Call) and self.names.dotted(r.value.func) in _FILES for r in returns)

    def _settings(self, node: ast.AST) -> bool:
        """A call that reads the command line or builds a configuration, by its own name or by the one that it has in its library."""
        words = (last(node.func), self.names.dotted(node.func).rpartition(".")[2]) if isinstance(node, ast.Call) else ()
        return any(_SETTINGS.search(w) for w in words)

    @cached_property
    def _from_command_line(self) -> bool:
        """Whether a library calls functions of the program with what the command line says."""
        return any(self.names.dotted(c.func) == name for name in _COMMAND_LINE for c in self.names.calls(name.rpartition(".")[2]))

    def _parameter(self, arg: ast.arg, function: ast.AST) -> bool:
        """Whether every call of the function in this file gives the parameter a uniform value."""
        if not isinstance(function, FunctionNode):
            return False
        a = function.args
        plain = [*a.posonlyargs, *a.args]
        cls = self.names.parent[function]
        method = isinstance(cls, ast.ClassDef)
        if method and plain and plain[0] is arg:
            return True  # self
        if arg not in (*plain, *a.kwonlyargs):
            return False  # *args, **kwargs
        calls = self._calls_of(function)
        if not calls:  # main(), which a framework calls with the settings; a function that another file calls with them
            return (
                (bool(function.decorator_list) and not method)
                or bool(_SETTINGS.search(arg.arg))
                or self.asks is _Asks.NONE  # whether it is given is written in the code
                or (not method and self._from_command_line)
            )
        return all(self._passed(c, arg, plain[1:] if method else plain) for c in calls)

    def _calls_of(self, function: FunctionNode) -> list[ast.Call]:
        """The calls by the function's name; of ``__init__``, by that of its class; of methods none of a library's function with that name."""
        cls = self.names.parent[function]
        if not isinstance(cls, ast.ClassDef):
            return self.names.calls_of(function)
        return self.names.calls_of(cls) if function.name == "__init__" else [c for c in self.names.calls_of(function) if not self.names.dotted(c.func)]

    def _passed(self, call: ast.Call, arg: ast.arg, plain: list[ast.arg]) -> bool:
        if any(isinstance(x, ast.Starred) for x in call.args) or any(k.arg is None for k in call.keywords):
            return False
        given = _passed_to(call, arg, plain)  # none: the default, or what a framework gives
        return all(self._settings(g) or self._read_once(g) or self.expression(g) for g in given)

    def element(self, source: ast.expr, path: tuple[int | str, ...]) -> bool:
        """Whether what a loop over ``source`` gives in each turn is uniform."""
        if isinstance(source, ast.Call):
            called = self.names.word(source.func)
            inner = gone_through(source)
            if called in PROGRESS and inner is not None:
                return self.element(inner, path)
            if called == "enumerate" and inner is not None:
                return path[:2] == ("*", 0) or self.element(inner, ())
            if called == "zip":
                return all(self.element(x, ()) for x in source.args)
            if counted_turns(self.names, source):
                return all(self.expression(x) for x in [*source.args, *(k.value for k in source.keywords)])
        if isinstance(source, ast.Name):
            given = latest(self.names, source, list(self.names.bindings(self.names.scope_of[source], source.id)))
            if given is not None and isinstance(given.value, ast.Call) and not given.path and self.names.word(given.value.func) in PROGRESS | {"enumerate"}:
                return self.element(given.value, path)
        return not isinstance(source, ast.Set) and self.expression(source)

    def _attribute(self, node: ast.Attribute) -> bool:
        """What is stored under the attribute, here or under another name of the object, must be uniform."""
        found = self.names.meant(node)
        if found is not None:  # state.stop, of a module of the program
            return self._holds(found, node)
        cls = class_of(self.names, node.value)
        own = cls is not None or of_self(node)
        if not self.first("a", node.attr, own):
            return True
        stores = [s for s in self.names.attributes(node.attr) if isinstance(s.ctx, ast.Store) and (own or not of_self(s))]
        loads = [s for s in self.names.attributes(node.attr) if isinstance(s.ctx, ast.Load) and (own or not of_self(s))]
        if not all(self._stored(s, node) for s in stores) or any(self._changes(x) for x in loads):
            return False
        inside = [b for s in self.names.opened.values() if s.is_class for b in s.bindings.get(node.attr, ())]
        above = self.names.parent[node]
        called = isinstance(above, ast.Call) and above.func is node
        if own and inside:  # of a method that is called its results have been asked
            return all((called and b.how == "def") or (b.how == "assign" and b.value is not None and self.expression(b.value)) for b in inside)
        field = cls is not None and any(isinstance(n, ast.AnnAssign) and ast.unparse(n.target) == node.attr for n in cls.body)
        return not own or bool(stores) or called or field  # else inherited from elsewhere

    def _stored(self, node: ast.Attribute, reader: ast.AST) -> bool:
        stmt = self.names.statement(node)
        if not isinstance(stmt, ast.Assign | ast.AnnAssign | ast.AugAssign):
            return False  # for self.x in …, with … as self.x
        value = stmt.value
        return value is None or ((self._settings(value) or self._read_once(value) or self.expression(value)) and not self.parted(stmt, reader, True))

    # ------------------------------------------------------------------ lists and dicts that are filled
    def _mutated(self, owner: Scope, name: str) -> bool:
        reads = [n for n in self.names.uses(owner, name) if self.names.alteration(n) is not None]
        if name in ("self", "cls") and isinstance(owner.node, FunctionNode):  # what its attributes hold is asked of each attribute
            reads = [n for n in reads if not isinstance(above := self.names.parent[n], ast.Attribute) or above.attr in MUTATORS]
        return any(self._changes(n) for n in reads)

    def _changes(self, node: ast.expr) -> bool:
        """Whether this use of an object changes it to something that may differ: ``d[k] = x``, ``d[k].append(x)``, ``fill(d, x)``."""
        by = self.names.alteration(node)
        if isinstance(by, ast.Subscript):
            stmt = self.names.statement(by)
            value = getattr(stmt, "value", None)
            return not isinstance(value, ast.expr) or not self.expression(value) or self.parted(stmt, stmt, True)
        if by is None:
            return False
        if node in by.args:
            return self._changed_by_call(by, by.args.index(node))
        return not all(self.expression(x) for x in by.args) or self.parted(by, by, True)

    def _changed_by_call(self, call: ast.Call, i: int) -> bool:
        for scope in self.names.functions_by_name[last(call.func)]:
            function = scope.node
            assert isinstance(function, FunctionNode)
            plain = [*function.args.posonlyargs, *function.args.args][int(isinstance(self.names.parent[function], ast.ClassDef)) :]
            if i < len(plain) and self.first("m", function, i) and self._mutated(scope, plain[i].arg):
                return True
        return False


def _asks_none(node: ast.Compare) -> bool:
    return isinstance(node.ops[0], ast.Is | ast.IsNot) and isinstance(node.comparators[0], ast.Constant) and node.comparators[0].value is None


def _passed_to(call: ast.Call, arg: ast.AST, plain: list[ast.arg]) -> list[ast.expr]:
    """What the call gives to the parameter."""
    assert isinstance(arg, ast.arg)
    given = [k.value for k in call.keywords if k.arg == arg.arg]
    if arg in plain and plain.index(arg) < len(call.args):
        given.append(call.args[plain.index(arg)])
    return given


def _holds_at(value: ast.Tuple, index: int) -> bool:
    """Whether the element of that place can be seen."""
    return index < len(value.elts) and not any(isinstance(e, ast.Starred) for e in value.elts)


def _yields(function: FunctionNode) -> bool:
    return any(isinstance(n, ast.Yield | ast.YieldFrom) for n in walk(function))


def _made_by(node: ast.AST | None) -> str:
    return last(node.func) if isinstance(node, ast.Call) else ""
