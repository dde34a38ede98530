"""What a call gives by the returns and yields that hand a parameter on: it depends on the call, not on what other calls gave."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dpmigrate.facts.definitions import arguments, parameters
from dpmigrate.facts.names import FunctionNode
from dpmigrate.facts.objects import NONE, Val, Vals

if TYPE_CHECKING:
    from dpmigrate.facts.values import Values


class Returned:
    """Looks at calls of functions that hand back what they are given: ``net_a = train(net_a)``, ``net_b = train(net_b)``."""

    def __init__(self, values: Values) -> None:
        self._values = values
        self.handed_back = values.defs.returns_of_parameters()

    def given_back(self, call: ast.Call, function: ast.AST) -> Vals:
        """What the call gives by the returns that hand a parameter back."""
        vals = NONE
        for node in self.handed_back:
            if self._values.names.function(node) is function:
                vals |= frozenset({Val("display", call, "returned")}) if isinstance(node.value, ast.Tuple) else self._of(call, function, node.value)
        return vals

    def part(self, call: ast.Call, item: int | str) -> Vals:
        """An element of the tuples that the call gives, where a parameter stands among them."""
        vals = NONE
        for function, _ in self._values.targets(call):
            for node in self.handed_back:
                if self._values.names.function(node) is function and isinstance(node.value, ast.Tuple):
                    elements = node.value.elts
                    if isinstance(item, int):
                        elements = elements[item : item + 1]
                    vals = vals.union(*(self._of(call, function, e) for e in elements))
        return vals

    def generated(self, call: ast.Call, function: ast.AST) -> Vals:
        """What a generator function goes through and hands on item by item: ``for batch in loader: yield batch``."""
        sources = self._values.defs.generates(function) if isinstance(function, FunctionNode) else []
        return NONE.union(*(self._of(call, function, source) for source in sources))

    def handed_on(self, call: ast.Call) -> ast.expr | None:
        """The argument whose items a function of this module hands on: ``loader`` for ``cycle(loader)``, ``show(loader)``."""
        for function, skip in self._values.targets(call):
            parameters = [self._values.defs.handed_back(function, value) for value in self._values.defs.generates(function)]
            parameters = parameters or self._values.defs.shown(function)
            for name, argument in arguments(call, function, skip):
                if name in parameters:
                    return argument
        return None

    def _of(self, call: ast.Call, function: ast.AST, value: ast.expr | None) -> Vals:
        assert isinstance(function, FunctionNode) and value is not None
        parameter = self._values.defs.handed_back(function, value)
        for target, skip in self._values.targets(call):
            for name, argument in arguments(call, target, skip):
                if target is function and name == parameter and not self._wrapped_in(function, name):
                    return self._values.unwraps.narrowed(value, self._values.eval(argument))
            if target is function and skip and isinstance(call.func, ast.Attribute) and parameter in parameters(target)[:1]:
                return self._values.eval(call.func.value) or self._values.eval(value)  # ``return self``
        return self._values.eval(value)

    def _wrapped_in(self, function: FunctionNode, parameter: str) -> bool:
        """Whether the function wraps what it is given, and hands the wrapper back."""
        own = ("v", id(self._values.names.opened[function]), parameter)
        return any(w.key == own for w in self._values.new_wraps)
