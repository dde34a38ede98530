"""Signs that a program trains although no ``backward()`` stands in its text: what is handed to code that is not read, gradients that are taken otherwise.

"Nothing is trained here" may be said only of a program without any of them. A sign is what such code is *given*: an optimizer together with data, or
data, a model or epochs where its own name says that it trains. A model or an optimizer alone is no sign (summaries, averages, schedules, checkpoints), nor is a
model with a loader (evaluations).
"""

from __future__ import annotations

import ast
import builtins
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from dpmigrate.facts.dormant import dormant, is_dormant
from dpmigrate.facts.names import last, position
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.objects import Val
from dpmigrate.facts.samples import of_batch

if TYPE_CHECKING:
    from dpmigrate.facts.roles import Roles
    from dpmigrate.program import Absent

#: libraries whose code is known not to train a model of torch's, whatever it is given
_KNOWN = frozenset({"torch", "torchvision", "torchaudio", "numpy", "scipy", "sklearn", "pandas"}) | sys.stdlib_module_names
#: what a function that trains is called, and a class whose objects do
_TRAINS = re.compile(r"((pre_?|re)?train|fine_?tune|fit|learn)(_\w+)?|\w*(Trainer|Learner)")
_MEASURES = re.compile(r"(eval|test|valid|predict|infer|score|load|save|log|get|set|state)\w*")
_OPTIMIZER = re.compile(r"(^|_)optim(izer)?s?($|_)", re.IGNORECASE)
_DATA = re.compile(r"loader|(^|_)(data|(train|training)_?(data|set))($|_?(set|module)s?$)", re.IGNORECASE)
_MODEL = re.compile(r"(^|_)(model|net|network)s?$", re.IGNORECASE)
_EPOCHS = re.compile(r"(^|_)epochs?$|max_steps$|(num|max)_iters?$")
#: how a module is found by name, in the words of a look-up
_BY_PATH = "importlib.util.module_from_spec"
_MODULES = frozenset({"import_module()", "__import__()"})
_MODE = re.compile(r"mode|(is_?)?train(ing)?")
_IN_PLACE = frozenset({"sub_", "add_", "copy_", "addcdiv_", "addcmul_", "lerp_", "set_"})
_TAKES_GRADIENTS = frozenset(
    {f"torch.func.{n}" for n in ("grad", "grad_and_value", "vjp", "jacrev", "jacfwd")} | {f"functorch.{n}" for n in ("grad", "grad_and_value", "vjp")}
)


@dataclass(frozen=True, eq=False, slots=True)
class Unseen:
    """A sign of training. ``by``: library · absent · name · gradients · steps · executed · script.

    ``what`` is the code that trains, as written or by its dotted name; ``given`` what it gets; ``absent`` the module that is not there.
    """

    node: ast.AST
    by: str
    what: str
    given: tuple[str, ...] = ()
    absent: Absent | None = None


def unseen(roles: Roles, absent: Sequence[Absent] = ()) -> list[Unseen]:
    """The signs that a program without ``backward()`` trains, in order; ``absent`` are its own modules that could not be read."""
    return sorted(_Search(roles, absent).signs(), key=lambda s: position(s.node))


@dataclass(eq=False, slots=True)
class _Handed:
    """An object or function of code that is not read: the call that makes it, what that is called, and the calls of its methods.

    ``by_name``: it is found by a name that is computed, and ``what`` says by what.
    """

    made: ast.Call
    what: str
    calls: list[ast.Call]
    by_name: bool = False

    @property
    def arguments(self) -> Iterator[tuple[str, ast.expr]]:
        """What all calls give it, each with its keyword."""
        for call in self.calls:
            yield from (("", a.value if isinstance(a, ast.Starred) else a) for a in call.args)
            yield from ((k.arg or "", k.value) for k in call.keywords)


class _Search:
    def __init__(self, roles: Roles, absent: Sequence[Absent]) -> None:
        self.roles = roles
        self.names = roles.names
        self.absent = absent
        unused = dormant(self.names)
        self.calls = [c for c in roles.calls if not is_dormant(self.names, c, unused)]

    def signs(self) -> Iterator[Unseen]:
        all_handed = self._handed()
        found = [s for handed in all_handed if (s := self._trains(handed)) is not None]
        found += [s for call in self.calls for s in self._gradients(call)]
        found += [s for call in self.calls for s in (*(self._steps(call) if not found else ()), *self._executed(call))]
        yield from found or (s for handed in all_handed if (s := self._may_train(handed)) is not None)

    # ------------------------------------------------------------------ code that is not read
    def _handed(self) -> list[_Handed]:
        lookups = self.roles.values.lookups
        found: dict[ast.AST, _Handed] = {}
        for call in self.calls:
            corner = lookups.corner(call.func) or lookups.corner(call)
            what = corner or self._outside(call.func)
            if what and not (corner and any(True for _ in self.roles.values.targets(call))):
                found[call] = _Handed(call, what, [call], by_name=bool(corner))
        for call in self.calls:
            if not isinstance(call.func, ast.Attribute) or call in found:
                continue
            for v in self.roles.values.eval(call.func.value):
                if v.node in found:
                    found[v.node].calls.append(call)
                elif isinstance(v.node, ast.Call) and (base := self._base(v, call.func.attr)):
                    found[v.node] = _Handed(v.node, f"{base}.{call.func.attr}", [v.node, call])
        return list(found.values())

    def _outside(self, func: ast.expr) -> str:
        """The dotted name of a function or class of code that is not read; '' for what is known."""
        dotted = self.names.dotted(func)
        if not dotted:
            dotted = next((v.qual for v in self.roles.values.eval(func) if v.kind == "ext"), "")
        top = dotted.lstrip(".").partition(".")[0]
        if top == "?":
            name = dotted.split(".")[1]
            star = next((s for s in self.names.stars if s.partition(".")[0] not in _KNOWN), "")
            return f"{star}{dotted[1:]}" if star and not hasattr(builtins, name) else ""
        return dotted if top and top not in _KNOWN else ""

    def _base(self, v: Val, method: str) -> str:
        """What a class of the program derives from, where that is not read and has the method."""
        if v.kind != "object" or v.cls is None or self.roles.values.defs.method(v.cls, method) is not None:
            return ""
        return next((d for c in self.roles.values.defs.bases(v.cls) for b in c.bases if (d := self._outside(b))), "")

    def _absent(self, what: str) -> Absent | None:
        return next((a for a in self.absent if what == a.dotted or what.startswith(f"{a.dotted}.")), None)

    def _trains(self, handed: _Handed) -> Unseen | None:
        """The sign that it trains, with the arguments that show it; None where nothing does."""
        given, absent = list(handed.arguments), self._absent(handed.what)
        optimizer = [e for k, e in given if self._is_optimizer(k, e)]
        data = [e for k, e in given if self._is_data(k, e)]
        if optimizer and data:
            return self._sign(handed, absent, optimizer[0], data[0])
        words = [last(handed.made.func)] if handed.by_name else handed.what.split(".")[-1 if absent is None else -2 :]
        named = [w for w in words if _TRAINS.fullmatch(w)]
        methods = [c for c in handed.calls if c is not handed.made]
        if named and methods and all(_MEASURES.fullmatch(last(c.func)) for c in methods):
            return None
        if named or any(_TRAINS.fullmatch(last(c.func)) and not _sets_mode(c) for c in methods):
            shown = [e for e in data if self._holds_data(e)] or optimizer or [e for k, e in given if self._is_model(k, e)]
            shown += [e for k, e in given if _EPOCHS.search(k)]
            if shown or (named and absent is not None) or handed.what in _MODULES:
                return self._sign(handed, absent, *shown[:2])
        return None

    def _may_train(self, handed: _Handed) -> Unseen | None:
        """The sign where nothing else trains: a model and a loader that shuffles go to a file of the program's own that is not there."""
        given, absent = list(handed.arguments), self._absent(handed.what)
        shuffled = [e for _, e in given if self._shuffles(e)]
        model = [e for k, e in given if self._is_model(k, e)]
        return self._sign(handed, absent, model[0], shuffled[0]) if absent is not None and shuffled and model else None

    def _sign(self, handed: _Handed, absent: Absent | None, *given: ast.expr) -> Unseen:
        by = "name" if handed.by_name else "library" if absent is None else "absent"
        return Unseen(handed.made, by, handed.what, self._written(*given), absent)

    def _written(self, *given: ast.expr) -> tuple[str, ...]:
        """The expressions as the program writes them, of lists and dicts the first element."""
        texts = [ast.unparse(next(iter(self._parts(e)), e)) for e in given]
        return tuple(dict.fromkeys(t if len(t) <= 40 else f"{t[:36]} …" for t in texts))

    # ------------------------------------------------------------------ what it is given
    def _parts(self, node: ast.expr) -> list[ast.expr]:
        """The elements of a list or dict that is written out."""
        if isinstance(node, ast.List | ast.Tuple | ast.Set):
            return [p for e in node.elts for p in self._parts(e)]
        return [p for e in node.values for p in self._parts(e)] if isinstance(node, ast.Dict) else [node]

    def _is_optimizer(self, keyword: str, node: ast.expr) -> bool:
        named = isinstance(node, ast.Name | ast.Attribute) and bool(_OPTIMIZER.search(last(node)) or _OPTIMIZER.search(keyword))
        return named or any(self._optimizer(v) for p in self._parts(node) for v in self.roles.values.eval(p))

    def _optimizer(self, v: Val) -> bool:
        """Whether the value is an optimizer, or the class of one."""
        if v.kind in ("call", "ext"):
            return v.qual.startswith("torch.optim.") and ".lr_scheduler." not in v.qual and ".swa_utils." not in v.qual
        bases = self.roles.values.defs.bases(v.cls) if v.cls is not None else []
        return any(self.names.dotted(b).endswith("optim.Optimizer") for c in bases for b in c.bases)

    def _is_data(self, keyword: str, node: ast.expr) -> bool:
        plain = isinstance(node, ast.Name | ast.Attribute) and bool(_DATA.search(last(node)) or _DATA.search(keyword))
        return plain or any(self._holds_data(p) or self._of_turn(p) for p in self._parts(node))

    def _holds_data(self, node: ast.expr) -> bool:
        """Whether a loader or a data set of torch's is seen, or a name says that it is a loader."""
        if isinstance(node, ast.Name | ast.Attribute) and "loader" in last(node).lower():
            return True
        for p in self._parts(node):
            for v in self.roles.values.eval(p):
                bases = self.roles.values.defs.bases(v.cls) if v.cls is not None else []
                own = any(self.names.dotted(b).startswith("torch.utils.data.") for c in bases for b in c.bases)
                if v.node in self.roles.loader_calls or own or (v.kind == "call" and v.qual.startswith(("torch.utils.data.", "torchvision.datasets."))):
                    return True
        return False

    def _of_turn(self, node: ast.expr) -> bool:
        """Whether it is made of what a loop takes from a loader."""
        read = [n for n in walk(node) if isinstance(n, ast.Name)]
        bound = [b for n in read for b in self.names.bindings(self.names.scope_of[n], n.id) if b.how == "for" and isinstance(b.value, ast.expr)]
        return any(self.roles.loaders_of(b.value) for b in bound if b.value is not None)

    def _is_model(self, keyword: str, node: ast.expr) -> bool:
        if isinstance(node, ast.Name | ast.Attribute) and bool(_MODEL.search(last(node)) or _MODEL.search(keyword)):
            return True
        defs = self.roles.values.defs
        vals = [v for p in self._parts(node) for v in self.roles.values.eval(p)]
        return any(v in self.roles.models or (v.kind == "object" and v.cls is not None and defs.is_module_class(v.cls)) for v in vals)

    def _shuffles(self, node: ast.expr) -> bool:
        calls = [v.node for p in self._parts(node) for v in self.roles.values.eval(p) if isinstance(v.node, ast.Call)]
        return any(k.arg == "shuffle" and not (isinstance(k.value, ast.Constant) and not k.value.value) for c in calls for k in c.keywords)

    # ------------------------------------------------------------------ gradients without backward()
    def _gradients(self, call: ast.Call) -> Iterator[Unseen]:
        """Gradients of parameters that something is changed by; those of samples (attacks, saliency) are none."""
        dotted = self.names.dotted(call.func)
        if dotted == "torch.autograd.grad":
            wanted = call.args[1] if len(call.args) > 1 else next((k.value for k in call.keywords if k.arg == "inputs"), None)
            over_data = any(self.names.is_inside(call, b.node) or self.names.function(call) in self.roles.all_entered(b.node) for b in self.roles.batch_loops)
            if wanted is None or not self._means_parameters(wanted, 4, over_data):
                return
        elif dotted not in _TAKES_GRADIENTS:
            return
        if self._updates:
            yield Unseen(call, "gradients", dotted)

    def _means_parameters(self, node: ast.expr, depth: int, over_data: bool) -> bool:
        """Whether tensors are the parameters of a model or, where the gradients are taken ``over_data``, tensors that the program makes to be trained."""
        for n in walk(node):
            if isinstance(n, ast.Attribute) and n.attr in ("parameters", "named_parameters", "weight", "bias"):
                return True
            if isinstance(n, ast.Name) and depth:
                bound = self.names.bindings(self.names.scope_of[n], n.id)
                given = [b.value for b in bound if b.how in ("assign", "for") and isinstance(b.value, ast.expr) and not self.names.is_inside(n, b.value)]
                if any((over_data and self._leaf(v)) or self._means_parameters(v, depth - 1, over_data) for v in given):
                    return True
        return False

    def _leaf(self, value: ast.expr) -> bool:
        """A tensor that the program makes to be trained, and not of its samples."""
        if not isinstance(value, ast.Call) or of_batch(self.roles, value):
            return False
        asks = any(k.arg == "requires_grad" and not (isinstance(k.value, ast.Constant) and not k.value.value) for k in value.keywords)
        return asks or last(value.func) in ("requires_grad_", "Parameter")

    @cached_property
    def _updates(self) -> bool:
        """Whether tensors are changed as a step changes them: in place, less a product, or by an optimizer."""
        for n in self.names.nodes:
            if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and (n.func.attr in _IN_PLACE or self._stepped(n)):
                return True
            if isinstance(n, ast.AugAssign | ast.BinOp) and isinstance(n.op, ast.Sub):
                taken = n.value if isinstance(n, ast.AugAssign) else n.right
                if isinstance(taken, ast.BinOp) and isinstance(taken.op, ast.Mult):
                    return True
        return False

    def _steps(self, call: ast.Call) -> Iterator[Unseen]:
        """A step of an optimizer over data; without data a schedule is drawn or tried out."""
        if self._stepped(call) and (self.roles.loader_calls or any(not self.roles.quiet(f) for f in self.roles.forward_calls)):
            yield Unseen(call, "steps", ast.unparse(call.func))

    def _stepped(self, call: ast.Call) -> bool:
        return isinstance(call.func, ast.Attribute) and call.func.attr == "step" and self._is_optimizer("", call.func.value)

    # ------------------------------------------------------------------ text that is executed, other scripts
    def _executed(self, call: ast.Call) -> Iterator[Unseen]:
        dotted = self.names.dotted(call.func)
        if self._of_a_file(call):
            yield Unseen(call, "name", f"{_BY_PATH}()", self._written(*call.args[:1]))
        elif dotted in ("runpy.run_path", "runpy.run_module"):
            yield Unseen(call, "script", dotted, self._written(*call.args[:1]))
        elif dotted == "?.exec" and call.args and not isinstance(call.args[0], ast.Constant) and self._something_to_train:
            yield Unseen(call, "executed", "exec")

    def _of_a_file(self, call: ast.Call) -> bool:
        """Whether the call trains, by its name, in a module that is loaded by the path of its file."""
        func = call.func
        if not isinstance(func, ast.Attribute) or not _TRAINS.fullmatch(func.attr) or _sets_mode(call):
            return False
        return any(v.kind == "call" and v.qual == _BY_PATH for v in self.roles.values.eval(func.value))

    @cached_property
    def _something_to_train(self) -> bool:
        """Whether the program makes what only training needs: an optimizer, or a loader that shuffles."""
        vals = [v for c in self.calls for v in self.roles.values.eval(c)]
        return any(v.kind == "call" and self._optimizer(v) for v in vals) or any(self._shuffles(c) for c in self.roles.loader_calls)


def _sets_mode(call: ast.Call) -> bool:
    """``model.train()``, ``model.train(False)``: the mode of a module."""
    if last(call.func) != "train":
        return False
    given = [*call.args, *(k.value for k in call.keywords if k.arg == "mode")]
    return len(given) == len(call.args) + len(call.keywords) and (not given or (len(given) == 1 and _is_mode(given[0])))


def _is_mode(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant | ast.UnaryOp | ast.Compare) or bool(_MODE.fullmatch(last(node)))
