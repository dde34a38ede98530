"""Functions that keep their results: ``functools.lru_cache``, ``functools.cache``.

The results are a dictionary. So whoever calls such a function with arguments that some ranks have
given it before is not alone responsible for what it does: the others do it, they do not.
"""

from __future__ import annotations

import ast

from dpmigrate.execution import divergence
from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.definitions import CACHE
from dpmigrate.execution.joins import join
from dpmigrate.execution.machine import Frame
from dpmigrate.execution.objects import ELEMENTS, KEYS, Object
from dpmigrate.execution.summaries import SummaryParts
from dpmigrate.execution.trace import Parting
from dpmigrate.execution.values import NOTHING, UNBOUND, Atom, Const, Items, Ref, Value, value


class CacheParts(SummaryParts):
    """Calls that may have been made before."""

    def invoke(
        self, function: Object, receiver: Atom | None, arguments: Arguments, node: ast.AST,
        frame: Frame,
    ) -> Value:  # fmt: skip
        kept = self.heap.read((function.number, CACHE)) if CACHE in function.marks else None
        if not kept:
            return super().invoke(function, receiver, arguments, node, frame)
        (made,) = self.objects(kept)
        given = arguments if receiver is None else arguments.after((receiver,))
        key = self._key_of_call(given)
        held, why = self._result_of(made, key, node)
        found: list[Value] = []

        def again() -> bool:
            new = super(CacheParts, self).invoke(function, receiver, arguments, node, frame)
            if new:
                self.set_item(kept, key, new, node, frame)
            found.append(new)
            return bool(new)

        def before() -> bool:
            found.append(self.bound(held))
            return True

        if held and UNBOUND not in held:
            return held
        if not held:
            again()
            return found[0]
        self.branch([again, before], why)
        out = join(*found)
        return divergence.differing(out, why) if why is not None and out else out

    def _key_of_call(self, given: Arguments) -> Value:
        """The arguments of a call, as one key where they are known."""
        parts: list[object] = []
        for name, v in (*enumerate(given.positional), *given.keywords.items()):
            one = self._part_of_key(v)
            if one is None:
                return given.joined()
            parts.append((name, one))
        return given.joined() if given.star or given.stars else value(Const("arguments", tuple(parts)))

    def _part_of_key(self, v: Value) -> object | None:
        if len(v) != 1:
            return None
        (atom,) = v
        if isinstance(atom, Const):
            return atom
        made = self.object(atom)
        if made is not None and isinstance(atom, Ref):
            return None if made.many else atom
        if isinstance(atom, Items):
            inner = [self._part_of_key(x) for x in atom.items]
            return None if None in inner else tuple(inner)
        return None

    def _result_of(self, made: Object, key: Value, node: ast.AST) -> tuple[Value, Parting | None]:
        """The result that is kept for a key, perhaps with UNBOUND, and why some ranks alone have it."""
        one = self.constant(key)
        keys = self.heap.read((made.number, KEYS)) or NOTHING
        if one is None:
            held = self.contents(made)
            why = self.parting(key, node) or self.keys_apart(made)
            return (*held, UNBOUND) if held else NOTHING, why
        held = self.heap.read((made.number, one)) or NOTHING
        loose = self.heap.read((made.number, ELEMENTS)) or NOTHING
        if held and UNBOUND not in held:
            return held, None
        why = divergence.presence(held) or divergence.presence(keys)
        why = why or self.parting(self.bound(keys), node)
        both = join(self.bound(held), loose)
        return (*both, UNBOUND) if both else NOTHING, why
