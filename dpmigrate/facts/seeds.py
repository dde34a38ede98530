"""From which seed each training loader draws its order: no two that training may use together draw from one."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, TypeGuard

from dpmigrate.facts.names import FunctionNode, Loop, position
from dpmigrate.model import is_main_guard

if TYPE_CHECKING:
    from dpmigrate.facts.script import Script

#: how far the seeds of several loaders lie apart: a sampler adds the epoch to its seed, and neighbours would have one order an epoch later
_BETWEEN = 1000


class Seeds:
    """The seeds of the training loaders, as far as they can be written down."""

    def __init__(self, script: Script) -> None:
        self.script = script

    def of(self, call: ast.Call) -> str | None:
        """The program's own seed, of the second loader and the further ones a thousand more; None where it is known when the program runs only.

        That is where the program does not show it, where one call makes several loaders, and beside loaders of which that is so.
        """
        seed = self._own(call)
        together = [c for c in self.drawing if c is not call and not self._alternatives(c, call)]
        if seed is None or call not in self._numbers or self._makes_several(call) or any(self._at_run_time(c) for c in together):
            return None
        further = self._numbers[call] * _BETWEEN
        if seed.isdecimal():
            return str(int(seed) + further)
        return f"{seed} + {further}" if further else seed

    # ------------------------------------------------------------------ several loaders
    @cached_property
    def _numbers(self) -> dict[ast.Call, int]:
        """The loaders that are not alternatives to each other are counted through."""
        numbers: dict[ast.Call, int] = {}
        for call in self.drawing:
            taken = {n for other, n in numbers.items() if not self._alternatives(other, call)}
            numbers[call] = next(n for n in range(len(numbers) + 1) if n not in taken)
        return numbers

    @cached_property
    def drawing(self) -> tuple[ast.Call, ...]:
        """The calls that make a training loader which draws from the program's seed, in the order of the program."""
        return tuple(c for c in self.script.train_loader_calls if self._divided_at_run_time(c) or self._shuffles(c))

    def _shuffles(self, call: ast.Call) -> bool:
        return is_given(self.script.argument(call, "shuffle", 2)) and not is_given(self.script.argument(call, "generator"))

    def _at_run_time(self, call: ast.Call) -> bool:
        return self._divided_at_run_time(call) or self._own(call) is None or self._makes_several(call)

    def _divided_at_run_time(self, call: ast.Call) -> bool:
        """Whether ``ddp.distribute`` or ``ddp.shard_sampler`` takes the seed."""
        return not self.script.reads_statically(call) or is_given(self.script.argument(call, "sampler", 3))

    def _alternatives(self, one: ast.Call, other: ast.Call) -> bool:
        """Whether a run of the program makes only one of the two loaders."""
        return self.script.values.order.apart(one, other) and not self._makes_several(one) and not self._makes_several(other)

    def _makes_several(self, call: ast.Call) -> bool:
        """Whether training goes through several loaders that come of this one call: of a function that is called for each, of a comprehension."""
        feeds = [b for b in self.script.roles.train_feeds if any(v.node is call for v in b.loaders)]
        held = {k for b in feeds for k, _ in self.script.roles.roots(b.source) if any(v.node is call for v in self.script.values.vars.get(k, ()))}
        return len(held) > 1 or any(not any(self._leads_to(a, b.node) for b in feeds) for a in self._repeating(call))

    def _repeating(self, call: ast.Call) -> Iterator[ast.AST]:
        """The loops and comprehensions round the call, through the functions that lead to it."""
        for node in self.script.leading_to(call):
            for a in self.script.names.ancestors(node):
                if isinstance(a, FunctionNode):
                    break
                if isinstance(a, Loop | ast.ListComp | ast.DictComp):
                    yield a

    def _leads_to(self, around: ast.AST, loop: ast.AST) -> bool:
        """Whether each turn makes the loader and trains with it."""
        return self.script.names.is_inside(loop, around) or self.script.names.function(loop) in self.script.roles.all_entered(around)

    # ------------------------------------------------------------------ the program's own seed
    def _own(self, loader: ast.Call) -> str | None:
        """The seed of the script, where it is set once, without condition, and seen where the loader is built."""
        names = self.script.names
        if len({self.script.text(c) for c in self._before(loader)}) > 1:
            return None  # the last of them counts
        for call in self.script.calls("torch.manual_seed"):
            place, value = self._brought(call, call.args[0] if call.args else None)
            here = names.function(place)
            if here is not names.function(loader) and not isinstance(here, ast.Module):
                continue
            if isinstance(value, ast.Constant) and isinstance(value.value, int) and not self._conditional(place):
                return self.script.text(value) if not self._seeded_elsewhere(place, loader) else None
            base = value.value if isinstance(value, ast.Attribute) else value
            if isinstance(value, ast.Name | ast.Attribute) and isinstance(base, ast.Name) and not self._conditional(place):
                owner, seen = (names.owner(names.scope_of[n], base.id) for n in (base, loader))
                late = here is names.function(loader) and position(place) > position(loader)
                known = owner is not None and not any(
                    late and b.how != "param" and position(b.target) > position(loader) for b in names.bindings(names.scope_of[base], base.id)
                )
                if owner is seen and known:
                    return self.script.text(value)
        return None

    def _before(self, loader: ast.Call) -> Iterator[ast.Call]:
        """The calls that seed torch before the loader is built, or may."""
        order, names = self.script.values.order, self.script.names
        for call in self.script.calls("torch.manual_seed"):
            place, _ = self._brought(call, None)
            if names.function(place) is names.function(loader):
                if position(place) < position(loader):
                    yield call
            elif order.when(loader, names.statement(place)) != "before":
                yield call

    def _seeded_elsewhere(self, place: ast.Call, loader: ast.Call) -> bool:
        """Whether another file has set the seed before the loader is built: its number is not repeated here, where another script may want another one."""
        part = self.script.program.part
        apart = part(self.script.span(place)) is not part(self.script.span(loader))
        return apart and self.script.values.order.when(loader, self.script.names.statement(place)) == "after"

    def _brought(self, call: ast.Call, value: ast.expr | None) -> tuple[ast.Call, ast.expr | None]:
        """The call that brings the seed, and the seed there, where a function of the file only hands its parameter on: ``set_seed(args.seed)``."""
        function = self.script.names.function(call)
        callers = self.script.values.callers.get(function, []) if isinstance(function, FunctionNode) else []
        if len(callers) != 1 or not isinstance(value, ast.Name) or not isinstance(function, FunctionNode) or self._conditional(call):
            return call, value
        bound = list(self.script.names.bindings(self.script.names.scope_of[value], value.id))
        given = self.script.roles.passed(callers[0], function, value.id)
        return (callers[0], given) if [b.how for b in bound] == ["param"] and given is not None else (call, value)

    def _conditional(self, node: ast.AST) -> bool:
        return any(isinstance(a, ast.If | ast.Try | ast.For | ast.While) and not is_main_guard(a) for a in self.script.names.ancestors(node))


def is_given(node: ast.expr | None) -> TypeGuard[ast.expr]:
    """Whether an argument is there and is not ``False``, ``None`` or another constant that means no."""
    return node is not None and not (isinstance(node, ast.Constant) and not node.value)
