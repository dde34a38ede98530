"""Scopes, bindings and parents of a program's modules: one walk over each ``ast``.

A name is resolved as Python does (local, enclosing, global), and through the imports of the program's own modules to where it is bound; what a
star import of another library may bring in stays unknown unless ``stars`` can tell.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import cached_property

from dpmigrate.facts.imported import Imported
from dpmigrate.facts.scopes import Binding, Links, Scope, Variable
from dpmigrate.facts.stars import meaning

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
Loop = ast.For | ast.AsyncFor | ast.While

_EXPRESSION = "<expression>"


class Names:
    """Parents, scopes and import aliases of a program: the module ``tree`` that is started, and the modules that it imports, in the order in which they run."""

    def __init__(self, tree: ast.Module, imported: Sequence[ast.Module] = (), links: Links | None = None) -> None:
        self.tree = tree
        self.trees = (*imported, tree)
        self.parent: dict[ast.AST, ast.AST] = {}
        self.scope_of: dict[ast.AST, Scope] = {}
        self.opened: dict[ast.AST, Scope] = {}  # the scope that a def, class or module opens
        self.imports: dict[tuple[int, str], str] = {}  # (id of scope, name) -> dotted name
        self.stars: list[str] = []  # of modules that are not the program's
        self.nodes: list[ast.AST] = []
        self._indexed: dict[tuple[str, str], list[ast.AST]] = {}  # (call | attribute | read, name) -> nodes
        self._dotted: dict[ast.AST, str] = {}
        self._meant: dict[ast.AST, Variable | None] = {}
        self._modules = [Scope(t, None, "") for t in self.trees]
        self.module = self._modules[-1]
        self.imported = Imported(self._modules, links or {})
        self.opened |= {scope.node: scope for scope in self._modules}
        for scope in self._modules:
            self._walk(scope.node, scope)

    # ------------------------------------------------------------------ the walk
    def _walk(self, node: ast.AST, scope: Scope) -> None:
        stack: list[tuple[ast.AST, Scope]] = [(node, scope)]
        while stack:
            node, scope = stack.pop()
            self.scope_of[node] = scope
            self.nodes.append(node)
            self._index(node)
            inner = self._open(node, scope)
            self._bind(node, scope)
            children = list(ast.iter_child_nodes(node))
            for child in reversed(children):
                self.parent[child] = node
                stack.append((child, self._around(node, scope) if self._outside(node, child) else inner))

    def _outside(self, node: ast.AST, child: ast.AST) -> bool:
        """Decorators, defaults, bases and a comprehension's first iterable are evaluated in the enclosing scope."""
        if isinstance(node, FunctionNode):
            return child in node.decorator_list or child is node.returns
        if isinstance(node, ast.arguments):
            return not isinstance(child, ast.arg)
        if isinstance(node, ast.comprehension):  # the first iterable of a comprehension does not see its variables
            return child is node.iter and self.parent[node].generators[0] is node  # type: ignore[attr-defined]
        return isinstance(node, ast.ClassDef) and child not in node.body

    @staticmethod
    def _around(node: ast.AST, scope: Scope) -> Scope:
        """Where a part of the node is evaluated that does not see the node's own names."""
        return scope.parent or scope if isinstance(node, ast.arguments | ast.comprehension) else scope

    def _open(self, node: ast.AST, scope: Scope) -> Scope:
        if isinstance(node, FunctionNode | ast.ClassDef):
            self._add(scope, node.name, Binding(node, "class" if isinstance(node, ast.ClassDef) else "def", node))
            inner = Scope(node, scope, node.name)
        elif isinstance(node, ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            inner = Scope(node, scope, _EXPRESSION)
        else:
            return scope
        self.opened[node] = inner
        if isinstance(node, FunctionNode | ast.Lambda):
            a = node.args
            for arg in [*a.posonlyargs, *a.args, *a.kwonlyargs, *filter(None, (a.vararg, a.kwarg))]:
                self._add(inner, arg.arg, Binding(arg, "param"))
            for n in ast.walk(node):
                if isinstance(n, ast.Global | ast.Nonlocal) and self._owner(n, node):
                    inner.outer.update(n.names)
                    inner.shared.update(n.names if isinstance(n, ast.Global) else ())
        return inner

    def _owner(self, statement: ast.AST, function: ast.AST) -> bool:
        """Whether the statement stands in the function itself, not in a function inside it."""
        for n in ast.iter_child_nodes(function):
            if n is statement:
                return True
            if not isinstance(n, FunctionNode | ast.Lambda) and self._owner(statement, n):
                return True
        return False

    def _bind(self, node: ast.AST, scope: Scope) -> None:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self._target(scope, target, node.value, (), "assign")
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            self._target(scope, node.target, node.value, (), "assign")
        elif isinstance(node, ast.NamedExpr):
            while scope.name == _EXPRESSION and not isinstance(scope.node, ast.Lambda) and scope.parent is not None:
                scope = scope.parent  # x := … in a comprehension binds x round it
            self._target(scope, node.target, node.value, (), "assign")
        elif isinstance(node, ast.AugAssign):
            self._target(scope, node.target, node, (), "aug")
        elif isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
            self._target(scope, node.target, node.iter, ("*",), "for")
        elif isinstance(node, ast.With | ast.AsyncWith):
            for item in node.items:
                if item.optional_vars is not None:
                    self._target(scope, item.optional_vars, item.context_expr, (), "with")
        elif isinstance(node, ast.MatchAs | ast.MatchStar) and node.name:
            self._add(scope, node.name, Binding(node, "match"))
        elif isinstance(node, ast.MatchMapping) and node.rest:
            self._add(scope, node.rest, Binding(node, "match"))
        elif isinstance(node, ast.ExceptHandler) and node.name:
            self._add(scope, node.name, Binding(node, "except"))
        elif isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.asname or alias.name.split(".")[0]
                self.imports[id(scope), name] = alias.name if alias.asname else name
                self._add(scope, name, Binding(node, "import"))
                self.imported.note(scope, name, alias.name if alias.asname else name, "")
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            for alias in node.names:
                if alias.name == "*":
                    if not self.imported.note_star(scope, base):
                        self.stars.append(base)
                    continue
                name = alias.asname or alias.name
                self.imports[id(scope), name] = f"{base}.{alias.name}"
                self._add(scope, name, Binding(node, "import"))
                self.imported.note(scope, name, base, alias.name)

    def _target(self, scope: Scope, target: ast.AST, value: ast.AST, path: tuple[int | str, ...], how: str) -> None:
        if isinstance(target, ast.Tuple | ast.List):
            starred = any(isinstance(t, ast.Starred) for t in target.elts)
            for i, t in enumerate(target.elts):
                inner = t.value if isinstance(t, ast.Starred) else t
                self._target(scope, inner, value, (*path, "*" if starred else i), how)
        elif isinstance(target, ast.Name):
            self._add(scope, target.id, Binding(target, how, value, path))

    def _add(self, scope: Scope, name: str, binding: Binding) -> None:
        scope.bindings.setdefault(name, []).append(binding)

    def _index(self, node: ast.AST) -> None:
        kind, name = "", ""
        if isinstance(node, ast.Call):
            kind, name = "call", last(node.func)
        elif isinstance(node, ast.Attribute):
            kind, name = "attribute", node.attr
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            kind, name = "read", node.id
        if name:
            self._indexed.setdefault((kind, name), []).append(node)

    # ------------------------------------------------------------------ questions
    def calls(self, name: str) -> list[ast.Call]:
        """The calls ``name(…)`` and ``x.name(…)``, whatever the name means there."""
        return self._indexed.get(("call", name), [])  # type: ignore[return-value]

    def attributes(self, name: str) -> list[ast.Attribute]:
        """Every ``x.name``."""
        return self._indexed.get(("attribute", name), [])  # type: ignore[return-value]

    def reads(self, name: str) -> list[ast.Name]:
        """Every place that reads a variable of this name, in any scope."""
        return self._indexed.get(("read", name), [])  # type: ignore[return-value]

    def owner(self, scope: Scope, name: str) -> Scope | None:
        """The scope in which ``name``, read in ``scope``, is bound, be it by an import; None for builtins and star imports."""
        first = True
        s: Scope | None = scope
        while s is not None:
            if name in s.shared:
                break
            if name in s.outer:
                s, first = s.parent, False
                continue
            if name in s.bindings and (first or not s.is_class):
                return s
            s, first = s.parent, False
        module = scope.module
        # a name that only functions bind, by ``global name``, lives in the module
        return module if name in module.bindings or any(s.module is module for s in self._declared.get(name, ())) else None

    @cached_property
    def _declared(self) -> dict[str, list[Scope]]:
        """The scopes that bind a name which they declare global or nonlocal."""
        found: dict[str, list[Scope]] = {}
        for s in self.opened.values():
            for name in s.outer & s.bindings.keys():
                found.setdefault(name, []).append(s)
        return found

    def variable(self, scope: Scope, name: str) -> Variable | None:
        """The variable that ``name`` means in ``scope``, through imports of the program's own modules; a module itself has the name ``''``."""
        seen: set[tuple[int, str]] = set()
        while True:
            owner = self.owner(scope, name)
            if owner is None:
                return self._from_star(scope.module, name, frozenset())
            linked = self.imported.targets(owner, name)
            if len(linked) != 1 or (id(owner), name) in seen or self._given_anew(owner, name):
                return owner, name
            seen.add((id(owner), name))
            scope, name = linked[0]
            if not name:
                return linked[0]

    def _from_star(self, module: Scope, name: str, seen: frozenset[int]) -> Variable | None:
        """What the star imports of the program's own modules bring in; the last one holds."""
        for source in reversed(self.imported.stars(module)):
            if id(source) not in seen and not name.startswith("_"):
                found = self.variable(source, name) if name in source.bindings else self._from_star(source, name, seen | {id(module)})
                if found is not None:
                    return found
        return None

    def run_by(self, statement: ast.Import | ast.ImportFrom) -> list[ast.Module]:
        """The program's modules that an import statement runs, where nothing has imported them before."""
        return self.imported.run_by(statement, self.scope_of[statement].module)

    def meant(self, node: ast.AST) -> Variable | None:
        """The variable that a Name means, or an Attribute of one of the program's own modules (``utils.save``)."""
        if node not in self._meant:
            self._meant[node] = self._means(node)
        return self._meant[node]

    def _means(self, node: ast.AST) -> Variable | None:
        if isinstance(node, ast.Name):
            owner = self.owner(self.scope_of[node], node.id)
            linked = self.imported.targets(owner, node.id) if owner is not None else []
            if owner is None or len(linked) != 1 or not self._given_anew(owner, node.id):
                return self.variable(self.scope_of[node], node.id)
            if self._rebound(owner, node.id, node):
                return owner, node.id
            return self.variable(*linked[0]) if linked[0][1] else linked[0]  # model = model.Net(), of ``import model``
        if isinstance(node, ast.Attribute):
            base = self.meant(node.value)
            if base is not None and not base[1]:
                return self._member(base[0], node.attr)
        return None

    def _member(self, module: Scope, name: str) -> Variable | None:
        """What a module holds under a name: a variable, or a module inside it."""
        found = self.variable(module, name)
        inside = self.imported.inside(module, name) if found is None else None
        return (inside, "") if inside is not None else found

    def alternatives(self, scope: Scope, name: str) -> list[Variable]:
        """What several import statements of one name bring, of which one runs: ``try: from fast import Net``, ``except ImportError: from slow import Net``."""
        linked = self.imported.targets(scope, name)
        return [v for target in linked if target[1] and (v := self.variable(*target)) is not None] if len(linked) > 1 else []

    def uses(self, scope: Scope, name: str) -> list[ast.Name | ast.Attribute]:
        """Every place that reads the variable that ``name`` means in ``scope``: by its name, by that of an import, or as an attribute of its module."""
        variable = self.variable(scope, name)
        if variable is None:
            return [n for n in self.reads(name) if self.variable(self.scope_of[n], n.id) is None]
        owner, own = variable
        found: list[ast.Name | ast.Attribute] = [n for w in self.imported.words(owner, own) for n in self.reads(w) if self.meant(n) == variable]
        if owner.is_module and len(self.trees) > 1:
            found += [a for a in self.attributes(own) if isinstance(a.ctx, ast.Load) and self.meant(a) == variable]
        return found

    def calls_of(self, definition: FunctionNode | ast.ClassDef) -> list[ast.Call]:
        """The calls by the name of a function or class, or by one under which it is imported; of a method, those of anything's method of that name."""
        scope = self.scope_of[definition]
        found = [c for w in self.imported.words(scope, definition.name) for c in self.calls(w)]
        if scope.is_class:
            return [c for c in found if isinstance(c.func, ast.Attribute) and self.meant(c.func) is None]
        return [c for c in found if self.meant(c.func) == (scope, definition.name)]

    def bindings(self, scope: Scope, name: str) -> Iterator[Binding]:
        """Every binding of the variable that ``name`` means in ``scope``, those by ``global`` statements included."""
        found = self.variable(scope, name)
        if found is None:
            return
        owner, name = found
        yield from owner.bindings.get(name, ())
        yield from (b for s in self._declared.get(name, ()) if self.owner(s, name) is owner for b in s.bindings[name])

    def dotted(self, node: ast.AST) -> str:
        """The dotted name that an expression means through imports: ``nn.DataParallel`` → ``torch.nn.DataParallel``; '' if it is none."""
        if node not in self._dotted:
            self._dotted[node] = self._resolve(node)
        return self._dotted[node]

    def _resolve(self, node: ast.AST) -> str:
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ""
        found = self.variable(self.scope_of[node], node.id)
        if found is None:
            base = meaning(node.id, self.stars, self._read_from.get(node.id, set())) or f"?.{node.id}"
        else:
            while found is not None and not found[1] and parts:  # utils.nn.Linear: what a module of the program has imported
                found = self._member(found[0], parts.pop())
            base = self.imports.get((id(found[0]), found[1]), "") if found is not None else ""
            if found is None or not base or self.imported.targets(*found) or self._rebound(*found, node):
                return ""
        return ".".join([base, *reversed(parts)])

    @cached_property
    def _read_from(self) -> dict[str, set[str]]:
        """The attributes that are read from each name, whatever it means there."""
        found: dict[str, set[str]] = {}
        for n in self.nodes:
            if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name):
                found.setdefault(n.value.id, set()).add(n.attr)
        return found

    def _rebound(self, owner: Scope, name: str, node: ast.Name) -> bool:
        """Whether an imported name has been given another value before: ``import model`` … ``model = model.Net()``."""
        others = self._given_anew(owner, name)
        if not others or not isinstance(node.ctx, ast.Load) or self.scope_of[node].module is not owner.module:
            return bool(others)
        first = min(others, key=lambda b: position(b.target))
        return position(node) > position(first.target) and not (first.value is not None and self.is_inside(node, first.value))

    def _given_anew(self, owner: Scope, name: str) -> list[Binding]:
        """The bindings by which an imported name gets another value."""
        return [b for b in owner.bindings[name] if b.how in ("assign", "for", "with") and not self._stand_in(b)]

    def _stand_in(self, b: Binding) -> bool:
        """``except ImportError: Writer = None``: what takes the place of a missing import does not hide it."""
        nothing = isinstance(b.value, ast.Constant) and b.value.value is None
        return nothing or any(isinstance(a, ast.ExceptHandler) for a in self.ancestors(b.target))

    def function(self, node: ast.AST) -> FunctionNode | ast.Module:
        """The innermost ``def`` round the node, or its module."""
        s = self.scope_of[node]
        while not isinstance(s.node, FunctionNode | ast.Module):
            assert s.parent is not None
            s = s.parent
        return s.node

    def module_of(self, node: ast.AST) -> Scope:
        """The scope of the module that the node stands in."""
        return self.scope_of[node].module

    def returns(self, function: FunctionNode) -> list[ast.Return]:
        """The ``return`` statements of the function itself, not of those inside it."""
        return [n for n in ast.walk(function) if isinstance(n, ast.Return) and self.function(n) is function]

    def cls(self, node: ast.AST) -> ast.ClassDef | None:
        """The class whose method holds the node, if any."""
        s: Scope | None = self.scope_of[node]
        while s is not None:
            if isinstance(s.node, ast.ClassDef):
                return s.node
            s = s.parent
        return None

    def statement(self, node: ast.AST) -> ast.stmt:
        """The innermost statement that holds the node."""
        while not isinstance(node, ast.stmt):
            node = self.parent[node]
        return node

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes round ``node``, innermost first, up to the module."""
        while node in self.parent:
            node = self.parent[node]
            yield node

    def block(self, statement: ast.stmt) -> list[ast.stmt]:
        """The list of siblings that holds the statement."""
        blocks = (getattr(self.parent[statement], name, None) for name in ("body", "orelse", "finalbody"))
        return next(block for block in blocks if isinstance(block, list) and statement in block)

    def is_inside(self, node: ast.AST, outer: ast.AST) -> bool:
        return node is outer or any(a is outer for a in self.ancestors(node))


def position(node: ast.AST) -> tuple[int, int]:
    """Where the node begins, for comparing what stands first."""
    return (node.lineno, node.col_offset)  # type: ignore[attr-defined]


def last(func: ast.expr) -> str:
    """The last part of a called name."""
    return func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""


def of_self(node: ast.Attribute) -> bool:
    """Whether it is an attribute of the object, or of the class, whose method it stands in."""
    return isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
