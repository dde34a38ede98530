"""What training steps keep of their batches beside parameters and buffers, from one step to the next: tables by sample or by class, queues, moving values.

Found are stores into what was there before the step and is not made anew in it. Whether training reads it again decides: a table that is only shown holds one
rank's part, one that goes into the loss, or into the choice of samples, makes another training of it.
"""

from __future__ import annotations

import ast
import enum
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dpmigrate.facts.library import CUTS
from dpmigrate.facts.names import FunctionNode, last, of_self, position
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.operations import written_by_operations
from dpmigrate.facts.ranks import leading_to, local_tests
from dpmigrate.facts.reaching import reaching
from dpmigrate.facts.samples import of_batch
from dpmigrate.facts.sources import marks, training_sources
from dpmigrate.facts.stored import Stored, stored
from dpmigrate.facts.values import Key

if TYPE_CHECKING:
    from dpmigrate.facts.script import Script

#: what asks whether something is a number
NOT_NUMBERS = frozenset({"isnan", "isfinite", "isinf"})


class Kind(enum.Enum):
    """How the batch comes into what is kept."""

    TABLE = "table"  # it decides which elements are written
    ROWS = "rows"  # its values are written one after the other: a queue
    MOVING = "moving"  # the whole moves on with each batch: a centre, an average


@dataclass(frozen=True, eq=False, slots=True)
class Kept:
    """A statement that keeps something of the batch in ``name``; ``used``: a later step reads it."""

    node: ast.stmt
    name: str
    kind: Kind
    used: bool
    #: what the steps give the variable, and the tests under which they do
    by: tuple[ast.expr, ...] = ()


def kept(script: Script) -> list[Kept]:
    """What the steps keep, each variable once, in order."""
    return _Keeping(script).found()


def switched(script: Script) -> list[tuple[Stored, bool]]:
    """The stores by which a step sets, as a whole, what later steps go by in their loss or their samples: flags, factors, another loss function.

    With each whether it is given a number of the batch, which brings no gradient and is not kept in another way.
    """
    keeping = _Keeping(script)
    return [(s, keeping.number_in(s)) for s in keeping.all if keeping.sets(s)]


class _Keeping:
    def __init__(self, script: Script) -> None:
        self.script = script
        self.roles = script.roles
        self.names = script.names
        self.values = script.values
        self.modules = script.modules
        self.all = [s for n in self.names.nodes if isinstance(n, ast.stmt) for s in stored(self.names, n)]
        self.by_key: dict[Key, list[Stored]] = {}
        self.stores: dict[ast.stmt, list[Stored]] = {}
        for s in self.all:
            self.stores.setdefault(s.node, []).append(s)
            for key in self.values.keys(s.holder):
                self.by_key.setdefault(key, []).append(s)
        self._sources = training_sources(self.roles)

    def found(self) -> list[Kept]:
        out: dict[object, Kept] = {}
        by: dict[object, tuple[ast.expr, ...]] = {}
        for s in self.all:
            kind = self._kind(s) if not self._of_module(s) else None
            if kind is not None and self._goes_on(s):
                used = self._used(s) and (self._in_module(s) or not self._total(s, kind) or any(map(self.modules.in_step, self._reads(s))))
                if (used or self._worth_telling(s, kind)) and self.script.executed.runs(s.node):
                    place = frozenset(k for k, _ in self.roles.roots(s.holder)) or ast.unparse(s.holder)
                    by[place] = (*by.get(place, ()), *s.values, *local_tests(self.roles, s.node))
                    if place not in out or (used and not out[place].used):
                        out[place] = Kept(s.node, ast.unparse(s.holder), kind, used)
        for stmt, given in written_by_operations(self.roles):
            keys = frozenset(k for k, _ in self.roles.roots(given))
            if not isinstance(given, ast.Name | ast.Attribute) or self._of_module(s := Stored(stmt, given, (), ())):
                continue
            if self._goes_on(s) and self.script.executed.runs(stmt):
                out.setdefault(keys, Kept(stmt, ast.unparse(given), Kind.TABLE, True))
        found = {k.node: replace(k, by=tuple(dict.fromkeys(by.get(p, ())))) for p, k in out.items()}
        return sorted(found.values(), key=lambda k: position(k.node))

    def sets(self, s: Stored) -> bool:
        """Whether a step, or what stands between the epochs, gives the variable another value that later steps go by."""
        step = self.modules.in_step(s.node)
        repeated = step or any(self.names.is_inside(s.node, a) for a in self.script.repeating_loops)
        whole = repeated and not s.put and all(isinstance(i, ast.Constant) for i in s.index) and not self._of_module(s)
        return whole and self._goes_on(s) and self._used(s) and (not step or any(self._before(r, s) for r in self._reads(s)))

    def _before(self, read: ast.AST, s: Stored) -> bool:
        """Whether a step may read the variable before it comes to the store, or past it: as a step before has left it."""
        either = bool(self._beside(s))
        places = {self.names.function(n): n for n in leading_to(self.roles, s.node)}
        pairs = [(n, places[f]) for n in leading_to(self.roles, read) if (f := self.names.function(n)) in places and places[f] is not n]
        for node, place in pairs:
            stmt = self.names.statement(place)
            if place is s.node and either:
                stmt = next(a for a in self._within(stmt, self.names.function(stmt)) if isinstance(a, ast.If))
            after = position(node) > position(stmt) and any(self.names.is_inside(node, b) for b in self.names.block(stmt))
            if not after or self.names.is_inside(node, stmt):
                return True
        return not pairs

    def _beside(self, s: Stored) -> list[ast.stmt]:
        """The stores of the other branch of the test round the store: one of them is run in each step."""
        above = self.names.parent[s.node]
        if not isinstance(above, ast.If):
            return []
        other = above.orelse if s.node in above.body else above.body
        return [n for n in other if any(self._same(o.holder, s.holder) for o in self.stores.get(n, ()))]

    # ------------------------------------------------------------------ which stores count
    def _of_module(self, s: Stored) -> bool:
        """A buffer, which is looked at as one."""
        cls = self.names.cls(s.holder)
        if cls is None or not isinstance(s.holder, ast.Attribute) or not of_self(s.holder):
            return False
        return s.holder.attr in self.modules.registered(cls, "register_buffer")

    def _kind(self, s: Stored) -> Kind | None:
        if not self.modules.in_step(s.node) or (isinstance(s.holder, ast.Attribute) and s.holder.attr == "grad"):
            return None
        if s.values and all(self.roles.loaders_of(v) and not isinstance(v, ast.Call) for v in s.values):
            return None  # a pass over a loader that begins anew: its = iter(loader)
        if any(self._chosen(i) for i in s.index):
            return Kind.TABLE
        if not any(of_batch(self.roles, v) for v in s.values):
            return Kind.MOVING if not s.index and self._moves(s) and self._tested(s.node) else None
        if all(isinstance(i, ast.Constant | ast.JoinedStr) for i in s.index):  # state["ema"] is a variable of its own
            return Kind.MOVING if self._moves(s) else None
        return Kind.TABLE if self._moves(s) else Kind.ROWS

    def _chosen(self, index: ast.expr) -> bool:
        """Whether the batch decides which elements the index means: not where they lie one after the other."""
        if isinstance(index, ast.Tuple):
            return any(self._chosen(e) for e in index.elts)
        return not isinstance(index, ast.Slice) and of_batch(self.roles, index)

    def _moves(self, s: Stored) -> bool:
        """Whether what was there goes into what comes, as a part of it: ``c = 0.9 * c + …``, ``k += (…).item()``; sums that are differentiated are losses."""
        if isinstance(s.node, ast.Expr):
            return s.grows
        value = s.values[0]
        reads = [n for n in walk(value) if self._same(n, s.holder)]
        factor = any(isinstance(a, ast.BinOp) and isinstance(a.op, ast.Mult | ast.Div) for n in reads for a in self._within(n, value))
        if factor or (isinstance(s.node, ast.AugAssign) and isinstance(s.node.op, ast.Mult | ast.Div)):
            return True
        added = s.grows or any(isinstance(self.names.parent[n], ast.BinOp) for n in reads)
        return added and (self.roles.quiet(s.node) or any(self._number(n) for n in walk(value)))

    def number_in(self, s: Stored) -> bool:
        """Whether the store gives a number that does not move on from what was there: what is added up is a total."""
        return self._kind(s) is None and not self._moves(s) and any(self._number(n) for v in s.values for n in walk(v))

    def _number(self, node: ast.AST) -> bool:
        """Whether the node takes a value without its gradient: ``loss.item()``, or a name that holds one."""
        if isinstance(node, ast.Name):
            given = (v.func for v in self.roles.given(node) if isinstance(v, ast.Call))
            return any(isinstance(f, ast.Attribute) and f.attr in CUTS for f in given)
        return isinstance(node, ast.Attribute) and node.attr in CUTS

    def _tested(self, stmt: ast.stmt) -> bool:
        """Whether the batch decides if the statement runs; tests for NaN are looked at as such."""
        tests = [a.test for a in self._within(stmt, self.names.function(stmt)) if isinstance(a, ast.If)]
        asked = (n for t in tests for n in walk(t) if isinstance(n, ast.Call))
        return any(of_batch(self.roles, t) for t in tests) and not any(last(c.func) in NOT_NUMBERS for c in asked)

    def _within(self, node: ast.AST, outer: ast.AST) -> Iterator[ast.AST]:
        """The nodes round the node, up to the outer one."""
        while node is not outer:
            node = self.names.parent[node]
            yield node

    def _same(self, node: ast.AST, holder: ast.expr) -> bool:
        while isinstance(node, ast.Subscript) or (isinstance(node, ast.Attribute) and node.attr == "data"):
            node = node.value
        return isinstance(node, ast.Name | ast.Attribute) and ast.unparse(node) == ast.unparse(holder)

    # ------------------------------------------------------------------ does it live longer than the step?
    def _goes_on(self, s: Stored) -> bool:
        roots = self.roles.roots(s.holder)
        if not roots and isinstance(s.holder, ast.Attribute):  # of an object that is not seen: loader.dataset.targets
            return not self._new_owner(s.holder)
        return not all(self._anew(key, node, s) for key, node in roots)

    def _new_owner(self, node: ast.AST) -> bool:
        """Whether the variable, or the object that has it, is one of the step itself."""
        while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
            node = node.func if isinstance(node, ast.Call) else node.value
        if not isinstance(node, ast.Name) or node.id in ("self", "cls"):
            return not isinstance(node, ast.Name)
        last_one = reaching(self.names, node)  # an evaluation may use the name as well
        known = [last_one] if last_one is not None else self.names.bindings(self.names.scope_of[node], node.id)
        bound = [b for b in known if b.how in ("assign", "for", "with")]
        return all(self.modules.in_step(b.target) for b in bound)

    def _anew(self, key: Key, node: ast.AST, s: Stored) -> bool:
        """Whether each step makes it anew: the variable, the object that has it, or all of its elements."""
        if self._new_owner(node):
            return True
        others = (o for o in self.by_key.get(key, ()) if o is not s and not o.index and not o.grows and self.modules.in_step(o.node))
        return any(self._each_time(o.node, node) for o in others if not any(self._same(n, o.holder) for v in o.values for n in walk(v)))

    def _each_time(self, stmt: ast.stmt, node: ast.AST) -> bool:
        """Whether the statement runs in every step that evaluates the node; of another function's, whether it stands there under no condition."""
        if self.names.function(stmt) is self.names.function(node):
            return any(self.names.is_inside(node, s) for s in self.names.block(stmt))
        return isinstance(self.names.parent[stmt], FunctionNode)

    # ------------------------------------------------------------------ who reads it?
    def _total(self, s: Stored, kind: Kind) -> bool:
        """Whether it is a total, an average or a list: what is read after the loop alone is put together there."""
        return kind is Kind.MOVING or (s.put and kind is not Kind.TABLE) or (isinstance(s.node, ast.AugAssign) and not any(map(self._chosen, s.index)))

    def _used(self, s: Stored, seen: frozenset[Stored] = frozenset()) -> bool:
        reads = list(self._reads(s))
        if self._in_module(s):
            stores = [o for n in reads for o in self.stores.get(self.names.statement(n), ()) if o not in seen and self._in_module(o)]
            return any(self.modules.in_step(n) and not self.modules.evaluating(n) for n in reads) or any(self._used(o, seen | {s}) for o in stores)
        roots = self.roles.roots(s.holder)
        elsewhere = {ast.unparse(n) for n in reads if isinstance(n, ast.Attribute)}  # memory.rows of self.rows
        return (bool(reads) or not roots) and bool((marks(self.roles, s.holder, *(n for _, n in roots)) | elsewhere) & self._sources)

    def _reads(self, s: Stored) -> Iterator[ast.AST]:
        """The places beside its own stores that read the variable."""
        keys = {k for k, _ in self.roles.roots(s.holder)}
        own = {o.node for k in keys for o in self.by_key.get(k, ())}
        words = {n.attr if isinstance(n, ast.Attribute) else n.id for _, n in self.roles.roots(s.holder) if isinstance(n, ast.Attribute | ast.Name)}
        read: list[ast.Attribute | ast.Name] = []
        for w in sorted(words):
            read += [*self.names.attributes(w), *self.names.reads(w)]
        for n in read:
            if isinstance(n.ctx, ast.Load) and not self._asks_for_nothing(n) and self.names.statement(n) not in own and keys & set(self.values.keys(n)):
                yield n

    def _asks_for_nothing(self, node: ast.AST) -> bool:
        """``if table is None``."""
        above = self.names.parent[node]
        return isinstance(above, ast.Compare) and isinstance(above.ops[0], ast.Is | ast.IsNot)

    def _in_module(self, s: Stored) -> bool:
        """Whether it is an attribute of a module that training runs."""
        owners = {v.cls for v in self.values.eval(s.holder.value)} if isinstance(s.holder, ast.Attribute) else set()
        return any(c in self.modules.classes for c in owners if c is not None)

    def _worth_telling(self, s: Stored, kind: Kind) -> bool:
        """Whether one rank's part is read where the whole is meant; what is added up is told as a total."""
        rows = kind is Kind.ROWS and not s.put and any(isinstance(e, ast.Slice) for i in s.index for e in walk(i))
        added = isinstance(s.node, ast.AugAssign) and not isinstance(s.node.op, ast.BitOr)
        return ((kind is Kind.TABLE and not s.put) or rows) and not added and any(of_batch(self.roles, v) for v in s.values) and any(self._reads(s))
