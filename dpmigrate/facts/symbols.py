"""The symbol table of a program's modules: parents, scopes and bindings, by one walk over each ``ast``. What a name means is ``names``'s question."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from dpmigrate.facts.imported import Imported
from dpmigrate.facts.nodes import children, walk
from dpmigrate.facts.scopes import Binding, Links, Scope

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef

_EXPRESSION = "<expression>"


class Symbols:
    """Parents, scopes and import aliases of a program: the module ``tree`` that is started, and the modules that it imports, in the order in which they run."""

    def __init__(self, tree: ast.Module, imported: Sequence[ast.Module] = (), links: Links | None = None) -> None:
        self.tree = tree
        self.trees = (*imported, tree)
        self.parent: dict[ast.AST, ast.AST] = {}
        self._made_up: set[ast.AST] = set()
        self.scope_of: dict[ast.AST, Scope] = {}
        self.opened: dict[ast.AST, Scope] = {}  # the scope that a def, class or module opens
        self.imports: dict[tuple[int, str], str] = {}  # (id of scope, name) -> dotted name
        self.stars: list[str] = []  # of modules that are not the program's
        self.nodes: list[ast.AST] = []
        self._indexed: dict[tuple[str, str], list[ast.AST]] = {}  # (call | attribute | read, name) -> nodes
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
            for child in reversed(children(node)):
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
            for n in walk(node):
                if isinstance(n, ast.Global | ast.Nonlocal) and self._owner(n, node):
                    inner.outer.update(n.names)
                    inner.shared.update(n.names if isinstance(n, ast.Global) else ())
        return inner

    def _owner(self, statement: ast.AST, function: ast.AST) -> bool:
        """Whether the statement stands in the function itself, not in a function inside it."""
        for n in children(function):
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

    # ------------------------------------------------------------------ what is called so
    def calls(self, name: str) -> list[ast.Call]:
        """The calls ``name(…)`` and ``x.name(…)``, whatever the name means there."""
        return self._indexed.get(("call", name), [])  # type: ignore[return-value]

    def attributes(self, name: str) -> list[ast.Attribute]:
        """Every ``x.name``."""
        return self._indexed.get(("attribute", name), [])  # type: ignore[return-value]

    def reads(self, name: str) -> list[ast.Name]:
        """Every place that reads a variable of this name, in any scope."""
        return self._indexed.get(("read", name), [])  # type: ignore[return-value]

    # ------------------------------------------------------------------ where a node stands
    def function(self, node: ast.AST) -> FunctionNode | ast.Module:
        """The innermost ``def`` round the node, or its module."""
        s = self.scope_of[node]
        while not isinstance(s.node, FunctionNode | ast.Module):
            assert s.parent is not None
            s = s.parent
        return s.node

    def placed(self, made: ast.expr, at: ast.expr) -> ast.expr:
        """An expression that is not in the program, made in the place of one that is: what asks where it stands is told where that one does."""
        self.scope_of[made] = self.scope_of[at]
        self.parent[made] = self.parent[at]
        self._made_up.add(made)
        return ast.copy_location(made, at)

    def is_made_up(self, node: ast.AST) -> bool:
        """Whether an expression is none of the program's text, but has been made up."""
        return node in self._made_up or not hasattr(node, "lineno")

    def module_of(self, node: ast.AST) -> Scope:
        """The scope of the module that the node stands in."""
        return self.scope_of[node].module

    def returns(self, function: FunctionNode) -> list[ast.Return]:
        """The ``return`` statements of the function itself, not of those inside it."""
        return [n for n in walk(function) if isinstance(n, ast.Return) and self.function(n) is function]

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

    def ancestors(self, node: ast.AST, below: ast.AST | None = None) -> Iterator[ast.AST]:
        """The nodes round ``node``, innermost first, up to the module, or those inside ``below``."""
        while node in self.parent and self.parent[node] is not below:
            node = self.parent[node]
            yield node

    def block(self, statement: ast.stmt) -> list[ast.stmt]:
        """The list of siblings that holds the statement."""
        blocks = (getattr(self.parent[statement], name, None) for name in ("body", "orelse", "finalbody"))
        return next(block for block in blocks if isinstance(block, list) and statement in block)

    def is_inside(self, node: ast.AST, outer: ast.AST) -> bool:
        return node is outer or any(a is outer for a in self.ancestors(node))


def last(func: ast.expr) -> str:
    """The last part of a called name."""
    return func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""
