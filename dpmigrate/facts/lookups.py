"""What a name that is computed when the program runs may find: ``getattr(models, args.arch)``, ``MODELS.get(name)``, ``importlib.import_module(…)``.

The answer is every class and function that it may find, where the program shows them all; a training program is then right if it is right for each. What
the program does not show stays unknown, and ``corner`` says in words by what it was found.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from dpmigrate.facts.computed import form, imported
from dpmigrate.facts.definitions import arguments
from dpmigrate.facts.names import FunctionNode, last
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.objects import NONE, Key, Path, Val, Vals
from dpmigrate.facts.scopes import Scope, Variable

if TYPE_CHECKING:
    from dpmigrate.facts.values import Values

_Definition = FunctionNode | ast.ClassDef
_IMPORTS = ("import_module", "__import__")
#: methods of a registry that give what is registered, and that call it
_GETS = re.compile(r"(?:^|_)(?:get|lookup|find|fetch|resolve)")
_BUILDS = re.compile(r"(?:^|_)(?:build|create|make|instantiate)")
#: functions of libraries that build whatever a configuration names
_CONFIGURED = ("hydra.utils.instantiate", "hydra.utils.call", "hydra.utils.get_class", "hydra.utils.get_method", "pydoc.locate")
_DEPTH = 4


class Lookups:
    """Finds by the names of one program, and by the values that are known of it so far."""

    def __init__(self, values: Values) -> None:
        self._values = values
        self._names = values.names

    # ------------------------------------------------------------------ what is found
    def found(self, node: ast.Attribute | ast.Subscript | ast.Call) -> Vals:
        """What the expression may find; empty where it looks nothing up, or nothing of it is known."""
        if isinstance(node, ast.Attribute):
            modules = self._by_name(node.value, _DEPTH)
            return NONE.union(*(self._member(m, node.attr) for m in modules))
        if isinstance(node, ast.Subscript):
            return self._any_of(self._namespaces(node.value), node.slice, node) or self._classes(self._registered(node.value))
        return self._called(node)

    def made(self, call: ast.Call) -> Vals:
        """The objects that a call makes of what it finds by itself: ``MODELS.build(name)``, ``config.init_obj("arch", models)``."""
        if isinstance(call.func, ast.Attribute) and _BUILDS.search(call.func.attr):
            found = self._registered(call.func.value)
        elif _BUILDS.search(last(call.func)):
            found = [d for a in (*call.args, *(k.value for k in call.keywords)) for d in self._registered(a)]
        else:
            found = []
        return self._objects(call, self._classes(found)) or self._of_factory(call)

    def narrowed(self, call: ast.Call, made: Vals) -> Vals:
        """What a call of something looked up gives: of many candidates those that make objects of the program count, not the helpers beside them."""
        if not self.corner(call.func):
            return made
        return frozenset(v for v in made if v.kind == "object") or made or frozenset({Val("call", call, "")})

    def members(self, over: ast.Call, path: Path) -> Vals:
        """What a loop takes that goes through all that a module holds: ``for name, cls in vars(models).items()``, ``inspect.getmembers(models)``."""
        func, dotted = over.func, self._names.dotted(over.func)
        pairs = dotted == "inspect.getmembers" or (isinstance(func, ast.Attribute) and func.attr == "items")
        if path != ((1,) if pairs else ()):
            return NONE
        if dotted == "inspect.getmembers":
            modules = self._modules(over.args[0], _DEPTH) if over.args else []
        elif isinstance(func, ast.Attribute) and func.attr in ("items", "values") and not over.args:
            modules = self._namespaces(func.value)
        else:
            modules = []
        found = [d for m in modules for d in self._public(m, over)]
        wanted = self._asked_for(over)
        return self._classes([d for d in found if not wanted or (isinstance(d, ast.ClassDef) and d in wanted)])

    def _asked_for(self, over: ast.Call) -> set[ast.ClassDef]:
        """The classes that the loop asks for, ``issubclass(cls, Base)``, without ``Base`` itself where there are others; none where it does not ask."""
        loop = self._names.parent[over]
        calls = [n for n in walk(loop) if isinstance(n, ast.Call) and self._names.dotted(n.func) == "?.issubclass" and len(n.args) == 2]
        bases = [self._values.defs.named(c.args[1]) for c in calls]
        if len(bases) != 1 or bases[0] is None:
            return set()
        base, *derived = self._values.defs.family(bases[0])
        return set(derived) or {base}

    def _called(self, node: ast.Call) -> Vals:
        name = last(node.func)
        if self._names.dotted(node.func) in ("?.getattr", "?.eval") and node.args:
            if name == "eval":  # it may be text of any kind; what is called at once is a name
                called = getattr(self._names.parent[node], "func", None) is node
                return self._any_of([self._names.module_of(node)], node.args[0], node) if called else NONE
            return self._any_of(self._modules(node.args[0], _DEPTH), node.args[1], node) if len(node.args) > 1 else NONE
        if isinstance(node.func, ast.Attribute) and node not in self._decorators:
            if name == "get" and node.args:
                found = self._entry(node)
                if found:
                    return found
            if _GETS.search(name):
                return self._classes(self._registered(node.func.value))
        return NONE

    def _entry(self, node: ast.Call) -> Vals:
        """``TABLE.get(name)``, of a dict that is written out."""
        assert isinstance(node.func, ast.Attribute)
        tables = frozenset(v for v in self._values.eval(node.func.value) if v.kind == "display" and isinstance(v.node, ast.Dict))
        key = node.args[0].value if isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str) else "*"
        return self._values.pick(tables, (key,), subscript=True)

    def _any_of(self, modules: list[Scope], key: ast.expr, node: ast.AST) -> Vals:
        """What the modules hold under a name: one, or, where it is computed, any of their classes and functions."""
        if isinstance(key, ast.Constant):
            return NONE.union(*(self._member(m, str(key.value)) for m in modules))
        tree = self._names.module_of(node).node
        like = form(key, tree) if isinstance(tree, ast.Module) else None
        fitting = [d for m in modules for d in self._public(m, node, like)] if like is not None else []
        return self._classes(fitting or [d for m in modules for d in self._public(m, node)]).union(
            *(self._handed_on(m) for m in modules if m is not self._names.module_of(node))
        )

    def _handed_on(self, module: Scope) -> Vals:
        """What a module imports from libraries only to offer it: nothing in the module itself reads it."""
        out = NONE
        for name, bound in module.bindings.items():
            dotted = self._names.imports.get((id(module), name), "")
            offered = all(isinstance(b.target, ast.ImportFrom) for b in bound) and not name.startswith("_") and not self._names.imported.targets(module, name)
            if dotted and offered and not any(self._names.module_of(r) is module for r in self._names.reads(name)):
                out |= {Val("ext", bound[0].target, dotted)}
        return out

    def _member(self, module: Scope, name: str) -> Vals:
        variable = self._names.variable(module, name)
        return frozenset(self._values.vars.get(("v", id(variable[0]), variable[1]), ())) if variable is not None else NONE

    @staticmethod
    def _classes(definitions: list[_Definition]) -> Vals:
        return frozenset(Val("class", d, cls=d) if isinstance(d, ast.ClassDef) else Val("func", d) for d in definitions)

    def _objects(self, call: ast.Call, found: Vals) -> Vals:
        """What calling any of them gives."""
        out = NONE
        for v in found:
            if v.cls is not None:
                self._values.makes(call, v.cls)
            out |= {Val("object", call, cls=v.cls)} if v.cls is not None else frozenset(self._values.returns.get(v.node, ()))
        return out

    def _public(self, module: Scope, node: ast.AST, like: re.Pattern[str] | None = None) -> list[_Definition]:
        """The classes and functions that a module offers, under names of a form; where that is not known, of the node's own module the classes of modules
        alone, since the rest is the program itself.
        """
        names = {*module.bindings, *(n for s in self._names.imported.stars(module) for n in s.bindings)}
        own = self._names.module_of(node) is module and like is None
        out: list[_Definition] = []
        for name in sorted(n for n in names if not n.startswith("_") and (like is None or like.fullmatch(n))):
            variable = self._names.variable(module, name)
            bound = variable[0].bindings.get(variable[1], []) if variable is not None else []
            classes = [b.value for b in bound if isinstance(b.value, ast.ClassDef)]
            out += [c for c in classes if not own or self._values.defs.is_module_class(c)]
            out += [b.value for b in bound if isinstance(b.value, FunctionNode) and not own]
        return out

    # ------------------------------------------------------------------ modules
    def _modules(self, node: ast.expr, depth: int) -> list[Scope]:
        """The modules of the program that an expression means, by an import statement or a computed name."""
        meant = self._names.meant(node)
        if meant is not None and not meant[1]:
            return [meant[0]]
        if isinstance(node, ast.Subscript) and self._names.dotted(node.value) == "sys.modules":
            return [self._names.module_of(node)] if isinstance(node.slice, ast.Name) and node.slice.id == "__name__" else []
        return self._by_name(node, depth)

    def _by_name(self, node: ast.expr, depth: int) -> list[Scope]:
        """The modules that an expression means which a computed name has imported."""
        if isinstance(node, ast.Call):
            module = self._names.module_of(node)
            assert isinstance(module.node, ast.Module)
            return [m for words in imported(node, module.node) for m in self._names.imported.named(module, words)]
        if isinstance(node, ast.Name) and depth:
            bound = list(self._names.bindings(self._names.scope_of[node], node.id))
            values = [b.value for b in bound if b.how == "assign" and not b.path and isinstance(b.value, ast.expr)]
            found = [self._by_name(v, depth - 1) for v in values]
            return [m for modules in found for m in modules] if len(values) == len(bound) and all(found) else []
        return []

    def _namespaces(self, node: ast.expr) -> list[Scope]:
        """The modules whose names an expression holds: ``models.__dict__``, ``vars(models)``, ``globals()``."""
        if isinstance(node, ast.Attribute) and node.attr == "__dict__":
            return self._modules(node.value, _DEPTH)
        dotted = self._names.dotted(node.func) if isinstance(node, ast.Call) else ""
        if isinstance(node, ast.Call) and dotted == "?.vars" and node.args:
            return self._modules(node.args[0], _DEPTH)
        return [self._names.module_of(node)] if dotted in ("?.globals", "?.locals") else []

    # ------------------------------------------------------------------ registries
    @cached_property
    def _decorators(self) -> frozenset[ast.AST]:
        return frozenset(d for n in self._names.nodes if isinstance(n, _Definition) for d in n.decorator_list)

    @cached_property
    def _registries(self) -> dict[Variable, list[_Definition]]:
        """The objects of the program whose method decorates classes and functions, or is given them, each with these."""
        found: dict[Variable, list[_Definition]] = {}
        for n in self._names.nodes:
            if isinstance(n, _Definition):
                for d in n.decorator_list:
                    self._note(found, d.func if isinstance(d, ast.Call) else d, [n])
            elif isinstance(n, ast.Call) and "regist" in last(n.func):
                self._note(found, n.func, [found_one for a in n.args if (found_one := self._definition(a)) is not None])
        return found

    def _note(self, found: dict[Variable, list[_Definition]], method: ast.expr, definitions: list[_Definition]) -> None:
        holder = method.value if isinstance(method, ast.Attribute) else method
        meant = self._names.meant(holder)
        bound = meant[0].bindings.get(meant[1], []) if meant is not None else []
        if meant is not None and bound and all(b.how == "assign" and isinstance(b.value, ast.Call) for b in bound):
            found.setdefault(meant, []).extend(definitions)

    def _definition(self, node: ast.expr) -> _Definition | None:
        meant = self._names.meant(node)
        bound = meant[0].bindings.get(meant[1], []) if meant is not None else []
        return next((b.value for b in bound if isinstance(b.value, _Definition)), None)

    def _registered(self, node: ast.expr) -> list[_Definition]:
        meant = self._names.meant(node)
        return self._registries.get(meant, []) if meant is not None else []

    def decorated(self) -> Iterator[tuple[Key, Vals]]:
        """What functions of the program get as decorators: ``@register("net")`` keeps a class in a table. A function only where it is handed back as it is."""
        for definition in (n for n in self._names.nodes if isinstance(n, _Definition)):
            for decorator in definition.decorator_list:
                for v in self._values.eval(decorator):
                    plain = v.node.args.args if v.kind == "func" and isinstance(v.node, FunctionNode) else []
                    if len(plain) == 1 and (isinstance(definition, ast.ClassDef) or self._hands_back(v.node)):
                        yield ("v", id(self._names.opened[v.node]), plain[0].arg), self._classes([definition])

    def _hands_back(self, decorator: ast.AST) -> bool:
        returns = self._names.returns(decorator) if isinstance(decorator, FunctionNode) else []
        return bool(returns) and all(r.value is not None and self._values.defs.handed_back(self._names.function(r), r.value) for r in returns)  # type: ignore[arg-type]

    # ------------------------------------------------------------------ factories
    def _of_factory(self, call: ast.Call) -> Vals:
        """What a function gives that looks a name up in a module that it is handed: ``return getattr(module, name)(*args)``."""
        out = NONE
        for function, skip in self._values.targets(call) if self._factories else ():
            parameter = self._factories.get(function)
            given = [a for p, a in arguments(call, function, skip) if p == parameter] if parameter else []
            for module in given:
                scopes = self._modules(module, _DEPTH)
                found = self._classes([d for s in scopes for d in self._public(s, call)])
                out |= (self._objects(call, found) or {Val("call", call, "")}) if scopes else {Val("call", call, self._names.dotted(module) + ".?")}
        return out

    @cached_property
    def _factories(self) -> dict[ast.AST, str]:
        """The functions that return a call of what they look up in a parameter, each with that parameter."""
        found: dict[ast.AST, str] = {}
        for n in self._names.nodes:
            function = self._names.function(n) if isinstance(n, ast.Return) else None
            value = n.value if isinstance(n, ast.Return) else None
            if isinstance(function, FunctionNode) and isinstance(value, ast.Call) and isinstance(value.func, ast.Call):
                inner = value.func
                if last(inner.func) == "getattr" and inner.args and isinstance(inner.args[0], ast.Name):
                    if any(inner.args[0].id == a.arg for a in (*function.args.args, *function.args.kwonlyargs)):
                        found[function] = inner.args[0].id
        return found

    # ------------------------------------------------------------------ words
    def behind(self, node: ast.expr) -> str:
        """By what the object was found that an expression means, in words; '' where it was not."""
        made: list[ast.expr] = [node, *self._made(node)]
        made += [m for n in made if isinstance(n, ast.Call) for m in (n.func, *self._made(n.func))]
        return next((words for n in made if (words := self.corner(n))), "")

    def _made(self, node: ast.expr) -> list[ast.Call]:
        return [v.node for v in self._values.eval(node) if v.kind == "call" and isinstance(v.node, ast.Call)]

    def corner(self, node: ast.AST) -> str:
        """By what an expression is looked up when the program runs, in words; '' where it is not."""
        if isinstance(node, ast.Attribute):
            return next((self.corner(c) for c in self._imports_by_name(node.value)), "")
        if isinstance(node, ast.Subscript):
            computed = not isinstance(node.slice, ast.Constant)
            if computed and (self._namespaces(node.value) or last(node.value) == "__dict__" or _is_call_of(node.value, "globals", "locals", "vars")):
                return "a name that is computed"
            if isinstance(node.value, ast.Name) and any(isinstance(a, ast.Name) and a.id == node.value.id for c in self._execs for a in c.args):
                return "exec()"
            return "a registry" if self._registered(node.value) else ""
        if isinstance(node, ast.Name):
            return "exec()" if self._left_by_exec(node) else next(filter(None, map(self.corner, self._members(node))), "")
        if not isinstance(node, ast.Call):
            return ""
        name = last(node.func)
        if name in _IMPORTS:
            return f"{name}()"
        if name == "eval" and self._names.dotted(node.func) == "?.eval":
            return "eval()"
        if name == "getattr" and len(node.args) > 1 and (not isinstance(node.args[1], ast.Constant) or self._imports_by_name(node.args[0])):
            return "getattr() with a name that is computed"
        if self._names.dotted(node.func) in _CONFIGURED:
            return f"{name}()"
        registry = node.func.value if isinstance(node.func, ast.Attribute) else None
        return "a registry" if registry is not None and self._registered(registry) and node not in self._decorators else ""

    @cached_property
    def _execs(self) -> list[ast.Call]:
        return [c for c in self._names.calls("exec") if self._names.dotted(c.func) == "?.exec"]

    def _left_by_exec(self, node: ast.Name) -> bool:
        """Whether nothing but executed text can give the name a value."""
        return bool(self._execs) and self._names.dotted(node) == f"?.{node.id}" and not hasattr(builtins, node.id)

    def _members(self, node: ast.Name) -> list[ast.Attribute]:
        """The members of modules that the name is given: ``Trainer = import_module(args.trainer).Trainer``."""
        bound = self._names.bindings(self._names.scope_of[node], node.id)
        return [b.value for b in bound if b.how == "assign" and not b.path and isinstance(b.value, ast.Attribute)]

    def _imports_by_name(self, node: ast.expr) -> list[ast.expr]:
        """The calls that import the module which an expression means by a computed name."""
        made = [node]
        if isinstance(node, ast.Name):
            made = [b.value for b in self._names.bindings(self._names.scope_of[node], node.id) if isinstance(b.value, ast.expr)]
        return [m for m in made if _is_call_of(m, *_IMPORTS)]


def _is_call_of(node: ast.AST, *names: str) -> bool:
    return isinstance(node, ast.Call) and last(node.func) in names
