"""What of the imported files a program may run, by the words that its running code uses.

A library that lies beside a script holds much that the script never calls; what stands there must neither be rewritten nor stand in the way. A definition
is left out only where its name occurs nowhere in code that may run: neither as a name, nor as an attribute, nor as a string. What is decorated is kept, and
so is what a look-up by a computed name may find. Of a class that is used, methods that save and load states are kept: whoever loads later what the migrated
program has saved does it by them.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Sequence

from dpmigrate.facts.names import last
from dpmigrate.program import Program

_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_LOOKS_UP = frozenset({"globals", "locals", "eval", "exec", "vars", "dir"})  # as builtins: model.eval() is none of them
#: what Python itself calls of an object that stands in the place of stdout: for print, and when the program ends
_OF_STREAMS = frozenset({"write", "writelines", "flush", "close"})
_BY_NAME = frozenset({"getattr", "hasattr", "import_module", "__import__", "attrgetter", "methodcaller"})


def only_alive(program: Program) -> Program:
    """The program, out of whose imported files the definitions that nothing can run have been taken."""
    without_dead(program.parts[-1].tree, [(p.word, p.tree) for p in program.parts[:-1]], program.computed)
    return program


def without_dead(script: ast.Module, imported: Sequence[tuple[str, ast.Module]], computed: Collection[str] = ()) -> None:
    """Take out of the imported modules, each with its last word (``utils`` of ``lib/utils.py``), the definitions that nothing can run.

    ``computed`` are the words of modules that are imported by a computed name: anything of theirs may be looked up.
    """
    alive = _Alive(imported)
    alive.note_names(script, "")
    for word, tree in imported:
        alive.note_names(tree, word)
    alive.open_up(computed)
    alive.run(script, whole=True)
    for _, tree in imported:
        alive.run(tree, whole=False)
    alive.settle()
    for _, tree in imported:
        _strip(tree, alive)


class _Alive:
    """The words of the code that may run, growing with each definition that one of them names."""

    def __init__(self, imported: Sequence[tuple[str, ast.Module]]) -> None:
        self.words: set[str] = set()
        self.definitions: set[ast.AST] = set()
        self._any_method = False
        self._open: set[str] = set()  # last words of the modules of which everything may be found by a computed name
        self._waiting: list[tuple[_Definition, bool, str]] = []  # definition, whether it stands in a class, its module
        self._modules = {id(tree): word for word, tree in imported}
        self._own = _own_classes(n for _, tree in imported for n in ast.walk(tree) if isinstance(n, ast.ClassDef))
        self._called: dict[tuple[str, str], str] = {}  # (module, a name there) -> last word of the module that it means
        self._stars: dict[str, set[str]] = {}  # module -> last words of the modules of which it imports all
        self._imports: dict[str, set[str]] = {}  # module -> the names that it imports from others

    def note_names(self, tree: ast.Module, module: str) -> None:
        """Note what the module calls other modules."""
        words = set(self._modules.values())
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and any(a.name == "*" for a in node.names):
                self._stars.setdefault(module, set()).add((node.module or "").rpartition(".")[2])
            if isinstance(node, ast.ImportFrom):
                self._imports.setdefault(module, set()).update(a.name for a in node.names)
            for alias in node.names if isinstance(node, ast.Import | ast.ImportFrom) else ():
                if (word := alias.name.rpartition(".")[2]) in words:
                    self._called[module, alias.asname or word] = word

    def run(self, tree: ast.Module, *, whole: bool) -> None:
        """Note what runs when a module is imported, or all of the script."""
        self._enter(tree.body, self._modules.get(id(tree), ""), inside=False, whole=whole)

    def open_up(self, modules: Collection[str]) -> None:
        """Keep all definitions of the modules."""
        self._open.update(modules)

    def settle(self) -> None:
        """Let definitions live whose names are used, until no more do."""
        while True:
            self._open = {m for word in self._open for m in self._seen_from(word)}
            self.words.update(name for m in self._open for name in self._imports.get(m, ()))
            now = [w for w in self._waiting if self._lives(*w)]
            if not now:
                return
            self._waiting = [w for w in self._waiting if w not in now]
            for definition, _, module in now:
                self._let_live(definition, module)

    def _lives(self, definition: _Definition, in_class: bool, module: str) -> bool:
        name = definition.name
        if name in self.words or definition.decorator_list or module in self._open:
            return True
        return in_class and (self._any_method or name in _OF_STREAMS or (name.startswith("__") and name.endswith("__")) or _handles_states(definition))

    def _let_live(self, definition: _Definition, module: str) -> None:
        self.definitions.add(definition)
        if isinstance(definition, ast.ClassDef):
            for part in (*definition.bases, *definition.keywords, *definition.decorator_list):
                self._use(part, module)
            # a library calls what it likes of the classes that derive from its own (forward, collate_fn, get_lr), over any number of classes between
            self._enter(definition.body, module, inside=True, whole=not module or not all(last(b) in self._own for b in definition.bases))
        else:
            self._use(definition, module)

    def _enter(self, body: Sequence[ast.stmt], module: str, *, inside: bool, whole: bool) -> None:
        for statement in body:
            if isinstance(statement, _Definition) and not whole:
                self._waiting.append((statement, inside, module))
            elif isinstance(statement, _Definition):
                self._let_live(statement, module)
            elif isinstance(statement, ast.Import | ast.ImportFrom):
                self.words.update(a.name.rpartition(".")[2] for a in statement.names if a.asname not in (None, a.name))
            elif not _lists_names(statement):
                self._use(statement, module)

    def _use(self, node: ast.AST, module: str) -> None:
        for n in _nodes(node):
            if isinstance(n, ast.Name):
                self.words.add(n.id)
            elif isinstance(n, ast.Attribute):
                self.words.add(n.attr)
                if n.attr == "__dict__":
                    self._open_up(n.value, module)
            elif isinstance(n, ast.Constant) and isinstance(n.value, str):
                self.words.update(n.value.split(".") if n.value.replace(".", "").isidentifier() else ())
            elif isinstance(n, ast.alias):
                self.words.add(n.name.rpartition(".")[2])
            if isinstance(n, ast.Call):
                self._looked_up(n, module)

    def _open_up(self, node: ast.expr, module: str) -> None:
        """Keep all of the module that an expression means there, if it means one."""
        if isinstance(node, ast.Name | ast.Attribute):
            self._open.add(self._called.get((module, last(node)), last(node)))

    def _looked_up(self, call: ast.Call, module: str) -> None:
        called = last(call.func)
        for given in (*call.args, *(k.value for k in call.keywords)):
            if (module, last(given)) in self._called:
                self._open_up(given, module)  # whoever is given a module looks into it
        if called in _LOOKS_UP and isinstance(call.func, ast.Name):
            if called in ("vars", "dir") and call.args:
                self._open.add(last(call.args[0]))
            else:
                self._open |= self._seen_from(module)
        elif called in _BY_NAME and not all(isinstance(a, ast.Constant) for a in call.args[1 if called in ("getattr", "hasattr") else 0 :]):
            self._any_method = True
            self._open.add(module if not call.args else last(call.args[0]))

    def _seen_from(self, module: str) -> set[str]:
        """A module, and those of which it imports all: ``eval(name)`` finds what stands there."""
        found, waiting = set[str](), [module]
        while waiting:
            word = waiting.pop()
            if word not in found:
                found.add(word)
                waiting += self._stars.get(word, ())
        return found


def _handles_states(method: ast.AST) -> bool:
    return any(isinstance(n, ast.Attribute) and n.attr in ("state_dict", "load_state_dict") for n in ast.walk(method))


def _own_classes(classes: Iterable[ast.ClassDef]) -> set[str]:
    """The names of the classes that derive from none of a library's."""
    bases: dict[str, set[str]] = {"object": set()}
    for c in classes:
        bases.setdefault(c.name, set()).update(last(b) for b in c.bases)
    own = set(bases)
    while foreign := {name for name in own if not bases[name] <= own}:
        own -= foreign
    return own


def _strip(holder: ast.Module | ast.ClassDef, alive: _Alive) -> None:
    holder.body = _kept(holder.body, alive)
    for inner in holder.body:
        if isinstance(inner, ast.ClassDef):
            _strip(inner, alive)


def _kept(body: list[ast.stmt], alive: _Alive) -> list[ast.stmt]:
    kept = [s for s in body if not isinstance(s, _Definition) or s in alive.definitions]
    return kept if kept or not body else [ast.copy_location(ast.Pass(), body[0])]


def _nodes(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of running code, docstrings left out."""
    stack = [node]
    while stack:
        n = stack.pop()
        yield n
        if isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant):
            continue
        stack += ast.iter_child_nodes(n)


def _lists_names(statement: ast.stmt) -> bool:
    """``__all__ = [...]``"""
    return isinstance(statement, ast.Assign | ast.AugAssign) and any(
        isinstance(t, ast.Name) and t.id == "__all__" for t in (statement.targets if isinstance(statement, ast.Assign) else [statement.target])
    )
