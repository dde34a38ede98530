"""Where a model is moved: as the program said, and never when it is wrapped already."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.contract import MODULE
from dpmigrate.facts.names import FunctionNode
from dpmigrate.facts.objects import wrap_argument
from dpmigrate.model import is_main_guard
from dpmigrate.result.migrated import Fault, Migrated

_WRAPS = frozenset({f"{MODULE}.wrap", "torch.nn.parallel.DistributedDataParallel"})
_ASKS = frozenset({"torch.cuda.is_available", "torch.accelerator.is_available"})


def moves(m: Migrated) -> Iterator[Fault]:
    """Moves that the wrap would make though the program makes them under a test, and moves that
    come after the wrap.
    """
    found = [c for c in m.after.roles.calls if _is_move(m, c)]
    for wrap in (c for c in m.after.roles.calls if m.after.names.dotted(c.func) in _WRAPS):
        own = [c for c in found if m.after.names.is_inside(c, wrap)]
        model = wrap_argument(wrap)
        given = m.inner(m.objects(model)) if model is not None else frozenset()
        models = frozenset(v for v in given if v.node is not wrap)
        rest = [(c, m.inner(m.objects(_receiver(c)))) for c in found if c not in own]
        before = [c for c, held in rest if held & models and m.after.starts(c)]
        after = [c for c, held in rest if any(v.node is wrap for v in held)]
        moved = frozenset(v for c, held in rest if c in before for v in held)
        for move in own:
            if _to_any(m, move) and m.is_new(move):
                yield from _made_unconditional(
                    m, move, [c for c in (*before, *after) if c is not move]
                )
        if not own and not models <= moved and m.is_new(wrap):
            yield from (_too_late(m, c, wrap) for c in after[:1])


def _is_move(m: Migrated, call: ast.Call) -> bool:
    """``x.cuda()``, ``x.to(device)``, and not ``x.to(torch.float16)``."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in ("to", "cuda"):
        return False
    place = _place(call)
    if call.func.attr == "cuda":
        return True
    return place is not None and not m.after.names.dotted(place).startswith("torch.")


def _place(call: ast.Call) -> ast.expr | None:
    given = (k.value for k in call.keywords if k.arg == "device")
    return call.args[0] if call.args else next(given, None)


def _receiver(call: ast.Call) -> ast.expr:
    assert isinstance(call.func, ast.Attribute)
    return call.func.value


def _to_any(m: Migrated, move: ast.Call) -> bool:
    """``.to(ddp.device())``: the rank's GPU, where there is one."""
    place = _place(move)
    return isinstance(place, ast.Call) and m.after.names.dotted(place.func) == f"{MODULE}.device"


def _made_unconditional(m: Migrated, move: ast.Call, others: list[ast.Call]) -> Iterator[Fault]:
    """The program's own moves of the model, where none of them is made in any case."""
    tests = [(c, test) for c in others for test in [_test(m, c, move)]]
    for call, test in tests[:1] if all(t is not None for _, t in tests) else ():
        assert test is not None
        words = (
            "the model would be moved at its wrap in any case, but the program does it under the"
        )
        yield Fault(m.place(move), f"{words} test {ast.unparse(test)} ({m.place(call)})")


def _test(m: Migrated, call: ast.Call, wrap: ast.Call) -> ast.expr | None:
    """The test under which a move stands and a wrap does not, other than whether there is a GPU."""
    for a in m.after.names.ancestors(call):
        if isinstance(a, FunctionNode) or m.after.names.is_inside(wrap, a):
            return None
        if (
            isinstance(a, ast.If | ast.IfExp)
            and not is_main_guard(a)
            and not _asks_for_gpu(m, a.test)
        ):
            return a.test
    return None


def _asks_for_gpu(m: Migrated, test: ast.expr) -> bool:
    vals = m.objects(test)
    return bool(vals) and all(v.qual in _ASKS for v in vals)


def _too_late(m: Migrated, move: ast.Call, wrap: ast.Call) -> Fault:
    words = f"{ast.unparse(_receiver(move))} would be moved here when it is wrapped already"
    why = "DistributedDataParallel looks at the parameters once"
    return m.fault(move, f"{words} ({m.place(wrap)}): {why}")
