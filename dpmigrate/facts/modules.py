"""Which module classes of the program training runs: the models, and modules beside them whose value goes into the loss; which functions their passes enter."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property

from dpmigrate.facts.loops import BatchLoop
from dpmigrate.facts.names import FunctionNode, Names
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.passes import goes_into_loss, methods_of_model
from dpmigrate.facts.roles import Roles
from dpmigrate.facts.unused import own_classes
from dpmigrate.facts.values import Vals


class Modules:
    """The modules of training, and what runs in a training step."""

    def __init__(self, roles: Roles) -> None:
        self.roles = roles
        self.names: Names = roles.names
        self._registered: dict[tuple[ast.ClassDef, str], set[str]] = {}

    @cached_property
    def of_models(self) -> list[ast.ClassDef]:
        """The classes that the models are made of."""
        return own_classes(self.roles, self.roles.models)

    @cached_property
    def classes(self) -> list[ast.ClassDef]:
        """The same with the modules beside the models: losses, memories."""
        return list(dict.fromkeys((*self.of_models, *own_classes(self.roles, self._beside))))

    @cached_property
    def _beside(self) -> Vals:
        found: Vals = frozenset()
        for call in self.roles.calls:
            made = frozenset(v for v in self.roles.values.eval(call.func) if v.kind == "object") - self.roles.models
            if made and self.roles.region(call) in ("train", "both") and self._counts(call):
                found |= made
        return found

    def _counts(self, call: ast.Call) -> bool:
        return isinstance(self.names.statement(call), ast.Return) or goes_into_loss(self.roles, call) or any(
            self.names.is_inside(call, b) for b in self.roles.backwards
        )  # fmt: skip

    def registered(self, cls: ast.ClassDef, how: str) -> set[str]:
        """The names that the class and its bases register, by ``register_buffer`` or ``register_parameter``; no parameter that is None."""
        if (cls, how) not in self._registered:
            calls = [n for c in self.roles.values.defs.bases(cls) for n in walk(c) if isinstance(n, ast.Call)]
            empty = [n for n in calls if how == "register_parameter" and any(map(_is_none, n.args[1:]))]
            made = [n for n in calls if isinstance(n.func, ast.Attribute) and n.func.attr == how and n not in empty]
            first = (next((k.value for k in n.keywords if k.arg == "name"), n.args[0] if n.args else None) for n in made)
            self._registered[cls, how] = {e.value for e in first if isinstance(e, ast.Constant) and isinstance(e.value, str)}
        return self._registered[cls, how]

    @cached_property
    def entered(self) -> set[FunctionNode]:
        """The functions that the forward passes of these modules enter, ``forward`` included."""
        forwards = {f for c in self.classes if (f := self.roles.values.defs.method(c, "forward")) is not None}
        return forwards.union(*(self.roles.all_entered(f) for f in forwards))

    def in_step(self, node: ast.AST) -> bool:
        """Whether the node runs in training steps, with or without gradients."""
        loop = self._loop(node)
        return loop.trains if loop is not None else self.names.function(node) in self._of_steps

    def _loop(self, node: ast.AST) -> BatchLoop | None:
        """The innermost loop round the node, in its function, that trains or evaluates."""
        for a in self.names.ancestors(node):
            if a in self._loops:
                return self._loops[a]
            if isinstance(a, FunctionNode):
                break
        return None

    @cached_property
    def _loops(self) -> dict[ast.AST, BatchLoop]:
        return {b.node: b for b in self.roles.batch_loops if b.trains or b.evaluates}

    @cached_property
    def _of_steps(self) -> set[FunctionNode]:
        """The functions that training steps enter, as far as no evaluation lies between."""
        found = set(self.entered)
        todo: list[ast.AST] = [b.node for b in self.roles.train_loops]
        while todo:
            part = todo.pop()
            for call in (n for n in walk(part) if isinstance(n, ast.Call)):
                loop = self._loop(call)
                targets = {f for f, _ in self.roles.values.targets(call)} | {*methods_of_model(self.roles, call)}
                new = targets - found if loop is None or loop.trains else set()
                found |= new
                todo += new
        return found

    def evaluating(self, node: ast.AST) -> bool:
        """Whether the node runs only while the module does not train: ``else`` of ``if self.training``, and what follows where that returns."""
        return False in self._modes(node)

    def training_alone(self, node: ast.AST) -> bool:
        """Whether the node runs only while the module trains."""
        return True in self._modes(node)

    def _modes(self, node: ast.AST) -> Iterator[bool]:
        """What the tests round the node want of ``self.training``."""
        inner = node
        for a in self.names.ancestors(node):
            if isinstance(a, ast.If | ast.IfExp) and inner is not a.test and (trains := _about_training(a.test)) is not None:
                first = inner in a.body if isinstance(a, ast.If) else inner is a.body
                yield trains is first
            if isinstance(inner, ast.stmt) and self._left_before(inner):
                yield False
            if isinstance(a, FunctionNode):
                return
            inner = a

    def _left_before(self, stmt: ast.stmt) -> bool:
        """``if self.training: …; return x`` above the statement."""
        above = self.names.parent[stmt]
        block = getattr(above, "body", None)
        before = block[: block.index(stmt)] if isinstance(block, list) and stmt in block else []
        return any(isinstance(s, ast.If) and _about_training(s.test) is True and isinstance(s.body[-1], ast.Return) for s in before)


def _about_training(test: ast.expr) -> bool | None:
    """True for ``self.training``, False for ``not self.training``, None for other tests."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = _about_training(test.operand)
        return None if inner is None else not inner
    return True if isinstance(test, ast.Attribute) and test.attr == "training" else None


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
