"""Which random numbers come from the system, so that each rank has others: streams that nothing seeds, or the clock does, and draws that no seed repeats."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import takewhile
from typing import TYPE_CHECKING

from dpmigrate.facts.names import last
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.ranks import leading_to, run_by_all
from dpmigrate.facts.sources import Mark, marks, training_sources

if TYPE_CHECKING:
    from dpmigrate.facts.script import Script

_BITS = tuple(f"numpy.random.{n}" for n in ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"))
#: what makes a stream, or what one is seeded by, and asks the system where it is given no seed
MAKERS = ("numpy.random.default_rng", "numpy.random.RandomState", "numpy.random.SeedSequence", "random.Random", *_BITS)
#: what cannot be seeded
SYSTEM = "random.SystemRandom"
#: numpy's old streams take seeds of 32 bits
SHORT = frozenset({"numpy.random.RandomState"})
_GENERATOR = "torch.Generator"
#: single draws of the system
_DRAWS = (
    *(f"secrets.{n}" for n in ("randbelow", "choice", "randbits", "token_bytes", "token_hex", "token_urlsafe")), "os.urandom", "os.getrandom",
)  # fmt: skip
_LAZY = frozenset({"map", "filter", "enumerate", "zip"})
_SEED_WORDS = frozenset({"seed", "entropy", "x"})


def unseeded(script: Script) -> Iterator[ast.Call]:
    """The calls that make a stream which the system seeds, and from which all ranks must draw the same."""
    for call in script.calls(*MAKERS, SYSTEM):
        given = [*call.args[:1], *(k.value for k in call.keywords if k.arg in _SEED_WORDS)]
        seeded = bool(call.args or call.keywords) and not any(isinstance(g, ast.Constant) and g.value is None for g in given)
        of_system = script.names.dotted(call.func) == SYSTEM
        if (of_system or not seeded) and shared(script, call) and not (of_system and _names_only(script, call)):
            yield call


def _names_only(script: Script, stream: ast.Call) -> bool:
    """Whether what is drawn from the stream is seen to go into names, tokens and the like, and nothing of it into training: it stays random then."""
    drawn = [c for c in script.roles.calls if isinstance(c.func, ast.Attribute) and any(v.node is stream for v in script.values.eval(c.func.value))]
    sources = training_sources(script.roles) if drawn else frozenset()
    return bool(drawn) and not any((marks(script.roles, *c.args) | _left(script, stmt)) & sources for c in drawn for stmt in _handed_on(script, c))


def reseeded(script: Script) -> Iterator[tuple[ast.Call, ast.Attribute, str]]:
    """The calls that seed such a stream anew, without a number from the system, with what made the stream: ``g.seed()`` of a ``torch.Generator()``."""
    for call, func in script.methods("seed"):
        made = {v.qual for v in script.values.eval(func.value) if v.kind == "call"} & {_GENERATOR, *MAKERS}
        if made and not call.args and not call.keywords and shared(script, call):
            yield call, func, min(made)


def seeded_later(script: Script) -> Iterator[ast.Call]:
    """The calls that give a stream of its own a seed: ``g.manual_seed(3)``, ``rng.seed(3)``."""
    for call, func in script.methods("manual_seed", "seed"):
        if any(v.kind == "call" and v.qual in (_GENERATOR, *MAKERS) for v in script.values.eval(func.value)) and shared(script, call):
            yield call


def shared(script: Script, call: ast.Call) -> bool:
    """Whether all ranks must draw the same from a stream that is made or seeded here: a data set's own may differ, that is augmentation."""
    if script.roles.region(call) != "outside" or not (run_by_all(script.roles, call) or in_sampler(script, call)):
        return False
    cls = script.names.cls(call)
    stmt = script.names.statement(call)
    kept = isinstance(stmt, ast.Assign) and any(isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store) for t in stmt.targets for n in walk(t))
    of_object = isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Attribute)  # self.rng.seed()
    return cls is None or is_sampler(script, cls) or not (kept or of_object)


def in_sampler(script: Script, node: ast.AST) -> bool:
    """Whether a sampler of the program comes here: all ranks draw one order from it."""
    classes = (script.names.cls(place) for place in leading_to(script.roles, node))
    return any(is_sampler(script, cls) for cls in classes if cls is not None)


def is_sampler(script: Script, cls: ast.ClassDef) -> bool:
    """Whether the class is a sampler."""
    return any(last(b).endswith("Sampler") for c in script.values.defs.bases(cls) for b in c.bases)


def system_draws(script: Script) -> Iterator[tuple[ast.Call, ast.expr | None]]:
    """The draws of the system, before the batches, that go into training: into its samples, their choice, its loss.

    With each the largest expression that holds no more than draws, to be the same on every rank; None where no expression gives what is drawn.
    """
    found = [c for c in script.calls(*_DRAWS) if script.roles.region(c) == "outside" and run_by_all(script.roles, c)]
    sources = training_sources(script.roles) if found else frozenset()
    for call in found:
        if any(_left(script, stmt) & sources for stmt in _handed_on(script, call)):
            yield call, _whole(script, call)


def _handed_on(script: Script, call: ast.Call) -> Iterator[ast.stmt]:
    """The statement of the draw; where it returns it, those of the calls."""
    todo: list[ast.AST] = [call]
    seen: set[ast.AST] = set()
    while todo:
        stmt = script.names.statement(todo.pop())
        yield stmt
        if isinstance(stmt, ast.Return) and stmt not in seen:
            seen.add(stmt)
            todo += script.values.ways.get(script.names.function(stmt), [])


def _left(script: Script, stmt: ast.stmt) -> set[Mark]:
    """What the statement leaves behind, also in what it decides: variables, and the objects whose methods it calls."""
    found: set[Mark] = set()
    for n in walk(stmt):
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store):
            found |= marks(script.roles, n)
        elif isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store):
            found.add(ast.unparse(n))
        elif isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store):
            found |= marks(script.roles, n.value)
        elif isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and isinstance(script.names.parent[n], ast.Expr):
            found |= marks(script.roles, n.func.value)
    return found


def _whole(script: Script, call: ast.Call) -> ast.expr | None:
    """The draw with the comprehensions round it, and with the call that runs the lambda which draws; None where that gives no value."""
    names = script.names
    found: ast.expr = call
    for a in takewhile(lambda a: not isinstance(a, ast.stmt), names.ancestors(call)):
        if isinstance(a, ast.ListComp | ast.DictComp):
            found = a
        elif isinstance(a, ast.Lambda | ast.GeneratorExp):
            around = names.parent[a]
            around = names.parent[around] if isinstance(around, ast.keyword) else around
            while isinstance(around, ast.Call) and last(around.func) in _LAZY:
                around = names.parent[around]  # list(map(lambda …))
            if not isinstance(around, ast.Call) or isinstance(names.parent[around], ast.Expr):
                return None  # rows.sort(key=lambda …)
            found = around
    return found
