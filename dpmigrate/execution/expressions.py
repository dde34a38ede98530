"""Expressions."""

from __future__ import annotations

import ast
from collections.abc import Callable

from dpmigrate.execution import arithmetic, placements
from dpmigrate.execution.containers import KEYS, ContainerParts
from dpmigrate.execution.foreign import Arguments
from dpmigrate.execution.machine import Frame
from dpmigrate.execution.names import LENGTH, LISTED
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.scopes import Comprehension, Function
from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    SETTING,
    Const,
    Data,
    Differs,
    Items,
    Method,
    Ref,
    Setting,
    Super,
    Unknown,
    Value,
    const,
    data,
    items,
    join,
    known,
    only,
    placement_of,
    value,
)

_DUNDER = {"truediv": "div"}


class ExpressionParts(ContainerParts):
    """One method for each kind of expression."""

    def evaluate(self, node: ast.expr, frame: Frame) -> Value:
        self.step()
        return _EVALUATE[type(node)](self, node, frame)

    # ------------------------------------------------------------ literals

    def _constant(self, node: ast.Constant, frame: Frame) -> Value:
        return const(node.value)

    def _text(self, node: ast.JoinedStr, frame: Frame) -> Value:
        parts: list[Value] = []
        for part in node.values:
            inner = part.value if isinstance(part, ast.FormattedValue) else part
            parts.append(self.evaluate(inner, frame))
            if isinstance(part, ast.FormattedValue) and part.format_spec is not None:
                self.evaluate(part.format_spec, frame)
        return self.text(parts, node)

    def text(self, parts: list[Value], node: ast.AST) -> Value:
        """A text made of values: constant, a setting, or as divided as what is in it."""
        soft, words = False, ""
        try:
            for v in parts:
                words += str(only(v))
            return const(words)
        except LookupError:
            soft = True
        if soft and all(placement_of(v).kind in _EQUAL for v in parts):
            guesses = [known(v) for v in parts]
            if all(g is not None for g in guesses):
                guess = Const("str", "".join(str(g) for g in guesses))
                return value(Setting("", guess))
            return SETTING
        moving = [v for v in parts if placement_of(v).kind not in _EQUAL]
        if len(moving) == 1:
            return arithmetic.derived("text", placement_of(moving[0]), moving, node, kind="text")
        return arithmetic.elementwise("text", moving, node, kind="text")

    def _tuple(self, node: ast.Tuple, frame: Frame) -> Value:
        if any(isinstance(e, ast.Starred) for e in node.elts):
            parts = self._starred(node.elts, frame)
            if parts is not None:
                return items(parts)
            return self._list_of(node, frame, "list")
        return items([self.evaluate(e, frame) for e in node.elts])

    def _starred(self, elements: list[ast.expr], frame: Frame) -> list[Value] | None:
        """The elements with ``*x`` laid out, where all of them are known."""
        found: list[Value] = []
        for e in elements:
            if not isinstance(e, ast.Starred):
                found.append(self.evaluate(e, frame))
                continue
            inner = self.known_elements(self.evaluate(e.value, frame))
            if inner is None:
                return None
            found += inner
        return found

    def _list(self, node: ast.List, frame: Frame) -> Value:
        return self._list_of(node, frame, "list")

    def _set(self, node: ast.Set, frame: Frame) -> Value:
        return self._list_of(node, frame, "set")

    def _list_of(self, node: ast.List | ast.Set | ast.Tuple, frame: Frame, kind: str) -> Value:
        if any(isinstance(e, ast.Starred) for e in node.elts):
            parts = self._starred(node.elts, frame)
            if parts is not None:
                return self.listed(parts, node, frame, kind=kind)
            loose = [
                self.elements(self.evaluate(e.value, frame), e, frame)
                if isinstance(e, ast.Starred)
                else self.evaluate(e, frame)
                for e in node.elts
            ]
            return self.listed(loose, node, frame, exact=False, kind=kind)
        found = [self.evaluate(e, frame) for e in node.elts]
        return self.listed(found, node, frame, exact=len(found) <= LISTED, kind=kind)

    def _dict(self, node: ast.Dict, frame: Frame) -> Value:
        made = self.heap.new("dict", "dict", node, frame.context)
        target = value(Ref(made.number))
        for key, item in zip(node.keys, node.values, strict=True):
            held = self.evaluate(item, frame)
            if key is None:
                self.merge(made, held, node, frame)
            else:
                self.set_item(target, self.evaluate(key, frame), held, node, frame)
        return target

    def _slice_literal(self, node: ast.Slice, frame: Frame) -> Value:
        made = self.heap.new("slice", "slice", node, frame.context)
        for name in ("lower", "upper", "step"):
            bound = getattr(node, name)
            held = self.evaluate(bound, frame) if bound is not None else NONE
            self.heap.write((made.number, name), held)
        return value(Ref(made.number))

    # ------------------------------------------------------------ names and access

    def _name(self, node: ast.Name, frame: Frame) -> Value:
        return self.name(node, frame)

    def _attribute(self, node: ast.Attribute, frame: Frame) -> Value:
        return self.attribute(self.evaluate(node.value, frame), node.attr, node, frame)

    def _subscript(self, node: ast.Subscript, frame: Frame) -> Value:
        owner = self.evaluate(node.value, frame)
        return self.item(owner, self.evaluate(node.slice, frame), node, frame)

    def _star(self, node: ast.Starred, frame: Frame) -> Value:
        return self.evaluate(node.value, frame)

    def _walrus(self, node: ast.NamedExpr, frame: Frame) -> Value:
        found = self.evaluate(node.value, frame)
        self.assign(node.target, found, node, frame)
        return found

    # ------------------------------------------------------------ choices

    def _either(self, node: ast.IfExp, frame: Frame) -> Value:
        test = self.evaluate(node.test, frame)
        truth = self.truth(test)
        if truth is not None:
            return self.evaluate(node.body if truth else node.orelse, frame)
        parted = self.parting(test, node.test)
        self.event("choice", node, frame, test=test)
        found: list[Value] = []

        def arm(side: ast.expr, yes: bool) -> Callable[[], bool]:
            def run() -> bool:
                self.refine(node.test, yes, frame)
                found.append(self.evaluate(side, frame))
                return bool(found[-1])

            return run

        self.branch([arm(node.body, True), arm(node.orelse, False)], parted)
        out = join(*found)
        if parted is not None and len(found) == 2 and found[0] != found[1]:
            return arithmetic.differing(out, parted.origin)
        return out

    def _both(self, node: ast.BoolOp, frame: Frame) -> Value:
        found: list[Value] = []
        parted = None
        for i, part in enumerate(node.values):
            v = self.evaluate(part, frame)
            truth = self.truth(v)
            ends = truth is False if isinstance(node.op, ast.And) else truth is True
            last = i == len(node.values) - 1
            if ends or last:
                found.append(v)
                break
            if truth is None:
                parted = parted or self.parting(v, part)
                found.append(self._side(v, isinstance(node.op, ast.Or)))
        out = join(*found)
        if parted is not None and len(set(found)) > 1:
            plain = [v for v in found if self.depends(v).kind not in _EQUAL]
            if len(plain) == len(found):
                return arithmetic.elementwise("and/or", found, node)
            return arithmetic.differing(out, parted.origin)
        return out

    @staticmethod
    def _side(v: Value, yes: bool) -> Value:
        """What of a value is true, or false."""
        return tuple(a for a in v if not isinstance(a, Const) or bool(a.value) == yes)

    def _unary(self, node: ast.UnaryOp, frame: Frame) -> Value:
        v = self.evaluate(node.operand, frame)
        if isinstance(node.op, ast.Not):
            truth = self.truth(v)
            if truth is not None:
                return const(not truth)
            if data(v):
                return arithmetic.elementwise("not", [v], node, kind="number")
            return self.plain([v], "not", node, frame)
        try:
            operand = only(v)
            return const(-operand if isinstance(node.op, ast.USub) else +operand)
        except (LookupError, TypeError):
            pass
        if data(v):
            if isinstance(node.op, ast.Invert):
                return arithmetic.elementwise("~", [v], node)
            return arithmetic.binary("mul", v, const(-1), node)
        return self.plain([v], "-", node, frame)

    def _compare(self, node: ast.Compare, frame: Frame) -> Value:
        left = self.evaluate(node.left, frame)
        rights = [self.evaluate(c, frame) for c in node.comparators]
        if len(rights) == 1:
            answer = self._comparison(node.ops[0], left, rights[0], node, frame)
            if answer is not None:
                return answer
        operands = [left, *rights]
        if any(data(v) for v in operands):
            if all(_size(d) for v in operands for d in data(v)):
                return SETTING  # ranks have batches of one size
            return arithmetic.elementwise("comparison", operands, node)
        return self.plain(operands, "comparison", node, frame)

    def _comparison(
        self, op: ast.cmpop, left: Value, right: Value, node: ast.AST, frame: Frame
    ) -> Value | None:
        known = arithmetic.compared(op, left, right)
        if known is not None:
            return const(known)
        same = isinstance(op, ast.Is | ast.Eq)
        if isinstance(op, ast.Is | ast.IsNot | ast.Eq | ast.NotEq) and NONE in (left, right):
            other = left if right == NONE else right
            if other and not any(isinstance(a, Setting | Unknown | Method) for a in other):
                if all(not (isinstance(a, Const) and a.value is None) for a in other):
                    return const(not same)
            differs = tuple(a for a in other if isinstance(a, Differs))
            return differs or SETTING
        if isinstance(op, ast.In | ast.NotIn):
            keys = self.known_elements(right)
            if keys is not None:
                try:
                    return const((only(left) in [only(k) for k in keys]) == isinstance(op, ast.In))
                except LookupError:
                    return None
        return None

    def plain(self, operands: list[Value], word: str, node: ast.AST, frame: Frame) -> Value:
        """A plain result of operands that are no data: uniform, unless one of them is not."""
        found = next((v for v in operands if self.depends(v).kind not in _EQUAL), None)
        if found is None:
            return SETTING
        parted = self.parting(found, node)
        if parted is not None and parted.certain:
            return arithmetic.differing(SETTING, parted.origin)
        return self.opaque_result(operands, word, node, frame)

    # ------------------------------------------------------------ operators

    def _binary(self, node: ast.BinOp, frame: Frame) -> Value:
        left = self.evaluate(node.left, frame)
        right = self.evaluate(node.right, frame)
        return self.operate(node.op, left, right, node, frame)

    def operate(
        self, op: ast.operator, left: Value, right: Value, node: ast.AST, frame: Frame
    ) -> Value:
        """``left op right``."""
        folded = arithmetic.folded(op, left, right)
        if folded is not None:
            return folded
        word = arithmetic.word_of(op)
        own = self._containers(op, left, right, node, frame)
        if own is not None:
            return own
        if word == "mod" and all(isinstance(a, Const | Setting) for a in left) and _texts(left):
            known = self.known_elements(right)
            return self.text([left, *(known if known is not None else [right])], node)
        if data(left) or data(right):
            given = self.library.operator(self, word, [left, right], node, frame)
            return given if given is not None else arithmetic.binary(word, left, right, node)
        for v, dunder in ((left, f"__{word}__"), (right, f"__r{word}__")):
            for made in self.instances_of(v):
                method = self.method_of(made, dunder)
                if method is not None:
                    other = right if v is left else left
                    return self.call(value(method), Arguments([other]), node, frame)
        given = self.library.operator(self, word, [left, right], node, frame)
        if given is not None:
            return given
        return self.plain([left, right], word, node, frame)

    def _containers(
        self, op: ast.operator, left: Value, right: Value, node: ast.AST, frame: Frame
    ) -> Value | None:
        """Lists and tuples added and repeated, dictionaries and sets merged."""
        if not isinstance(op, ast.Add | ast.Mult | ast.BitOr):
            return None
        sequences = [
            a
            for a in (*left, *right)
            if isinstance(a, Items)
            or (isinstance(a, Ref) and self.heap.objects[a.object].kind in ("list", "dict", "set"))
        ]
        if not sequences:
            return None
        if isinstance(op, ast.Mult):
            other = right if sequences[0] in left else left
            held = left if sequences[0] in left else right
            known = self.known_elements(held)
            try:
                times = only(other)
            except LookupError:
                times = None
            if known is not None and isinstance(times, int) and len(known) * times <= LISTED:
                return self.listed(known * times, node, frame)
            return self.listed([self.elements(held, node, frame)], node, frame, exact=False)
        a, b = self.known_elements(left), self.known_elements(right)
        if isinstance(op, ast.Add) and a is not None and b is not None:
            both = [*a, *b]
            if all(isinstance(x, Items) for x in (*left, *right)):
                return items(both)
            return self.listed(both, node, frame)
        first = self.object(sequences[0])
        if first is not None and first.kind == "dict":
            made = self.heap.new("dict", "dict", node, frame.context)
            self.merge(made, left, node, frame)
            self.merge(made, right, node, frame)
            return value(Ref(made.number))
        both_of = [self.elements(v, node, frame) for v in (left, right)]
        return self.listed(both_of, node, frame, exact=False)

    # ------------------------------------------------------------ comprehensions

    def _comprehension(self, node: Comprehension, frame: Frame) -> Value:
        inner = self._inner(node, frame)
        if isinstance(node, ast.DictComp):
            made = self.heap.new("dict", "dict", node, frame.context)
            target = value(Ref(made.number))

            def pair() -> Value:
                key = self.evaluate(node.key, inner)
                self.set_item(target, key, self.evaluate(node.value, inner), node, inner)
                return NOTHING

            self._generate(node.generators, 0, inner, pair, [])
            return target
        found: list[Value] = []
        exact = self._generate(
            node.generators, 0, inner, lambda: self.evaluate(node.elt, inner), found
        )
        kind = "set" if isinstance(node, ast.SetComp) else "list"
        return self.listed(found, node, frame, exact=exact, kind=kind)

    def _inner(self, node: Comprehension, frame: Frame) -> Frame:
        number = self.heap.number(("comprehension", id(node), frame.number))
        names = self.names_of(node)
        inner = Frame(
            number, names, tuple(self.scopes(frame)), frame.module, frame.context,
            level=frame.level, slot=frame.slot, function=frame.function, cls=frame.cls,
            receiver=frame.receiver,
        )  # fmt: skip
        inner.yields, inner.consumer = frame.yields, frame.consumer
        if frame.in_class:
            inner.outer = ((frame.number, frame.names), *frame.outer)
        return inner

    def _generate(
        self, generators: list[ast.comprehension], index: int, frame: Frame,
        element: Callable[[], Value], found: list[Value],
    ) -> bool:  # fmt: skip
        """Run the loops of a comprehension; whether ``found`` are its elements one by one."""
        if index == len(generators):
            found.append(element())
            return True
        generator = generators[index]
        iterable = self.evaluate(generator.iter, frame)
        known = self.known_elements(iterable, LISTED)
        if known is not None:
            exact = True
            for v in known:
                self.assign(generator.target, v, generator.target, frame)
                exact = self._kept(generator, generators, index, frame, element, found) and exact
            return exact
        for _ in range(2):  # what an element leaves behind may change the next one
            self.assign(
                generator.target, self.elements(iterable, generator.iter, frame), generator.target,
                frame,
            )  # fmt: skip
            self._kept(generator, generators, index, frame, element, found)
        return False

    def _kept(
        self, generator: ast.comprehension, generators: list[ast.comprehension], index: int,
        frame: Frame, element: Callable[[], Value], found: list[Value],
    ) -> bool:  # fmt: skip
        sure = True
        for test in generator.ifs:
            truth = self.truth(self.evaluate(test, frame))
            if truth is False:
                return True
            sure = sure and truth is True
            self.refine(test, True, frame)
        return self._generate(generators, index + 1, frame, element, found) and sure

    # ------------------------------------------------------------ functions, calls, generators

    def _call(self, node: ast.Call, frame: Frame) -> Value:
        if isinstance(node.func, ast.Name) and node.func.id == "super" and frame.cls is not None:
            given = [self.evaluate(a, frame) for a in node.args]
            cls, receiver = frame.cls, frame.receiver
            if len(given) == 2:
                classes = [o.number for o in self.objects(given[0]) if o.kind == "class"]
                cls = classes[0] if classes else cls
                receiver = next((a for a in given[1] if isinstance(a, Ref)), receiver)
            if receiver is not None:
                return value(Super(cls, receiver))
        callee = self.evaluate(node.func, frame)
        if not callee:
            return NOTHING
        return self.call(callee, self.arguments(node, frame), node, frame)

    def arguments(self, node: ast.Call, frame: Frame) -> Arguments:
        """What a call gives."""
        given = Arguments()
        for arg in node.args:
            if not isinstance(arg, ast.Starred):
                v = self.evaluate(arg, frame)
                if given.star:
                    given.star = join(given.star, v)
                else:
                    given.positional.append(v)
                continue
            v = self.evaluate(arg.value, frame)
            known = self.known_elements(v)
            if known is not None and not given.star:
                given.positional += known
            else:
                given.star = join(given.star, self.elements(v, arg, frame)) or SETTING
        for keyword in node.keywords:
            v = self.evaluate(keyword.value, frame)
            if keyword.arg is not None:
                given.keywords[keyword.arg] = v
            else:
                self._spread(v, given)
        return given

    def _spread(self, v: Value, given: Arguments) -> None:
        """``**v``."""
        for atom in v:
            made = self.object(atom)
            if made is None or made.kind not in ("dict", "instance", "namespace"):
                given.stars = join(given.stars, value(atom))
                continue
            for k, held in self.heap.names(made.number):
                if isinstance(k, Const) and isinstance(k.value, str):
                    given.keywords[k.value] = self.bound(held)
                elif k not in (LENGTH, KEYS):
                    given.stars = join(given.stars, self.bound(held))

    def _lambda(self, node: ast.Lambda, frame: Frame) -> Value:
        return self.function(node, frame)

    def _await(self, node: ast.Await, frame: Frame) -> Value:
        return self.evaluate(node.value, frame)

    def _yield(self, node: ast.Yield, frame: Frame) -> Value:
        given = self.evaluate(node.value, frame) if node.value is not None else NONE
        return SETTING if self.yields(given, node, frame) else NOTHING

    def _yield_from(self, node: ast.YieldFrom, frame: Frame) -> Value:
        given = self.elements(self.evaluate(node.value, frame), node, frame)
        return SETTING if self.yields(given, node, frame) else NOTHING

    # ------------------------------------------------------------ defined by later parts

    def function(self, node: Function, frame: Frame) -> Value:
        """A function object."""
        raise NotImplementedError

    def branch(self, arms: list[Callable[[], bool]], parted: object) -> bool:
        """Run alternatives and join what they leave."""
        raise NotImplementedError

    def refine(self, test: ast.expr, yes: bool, frame: Frame) -> None:
        """What a test says of the names in it."""
        raise NotImplementedError

    def yields(self, given: Value, node: ast.AST, frame: Frame) -> bool:
        """A generator gives a value; whether it goes on."""
        raise NotImplementedError


def _size(d: Data) -> bool:
    """Whether it is a number of samples, or a shape."""
    kind = d.placement.kind
    if d.kind not in ("number", "shape", "text"):
        return False
    return kind in (*_EQUAL, Kind.SIZE) or (d.kind == "shape" and not d.placement.ragged)


def _texts(v: Value) -> bool:
    return any(isinstance(known((a,)), str) for a in v)


_EQUAL = placements.EQUAL
_EVALUATE: dict[type[ast.AST], Callable[..., Value]] = {
    ast.Constant: ExpressionParts._constant,
    ast.JoinedStr: ExpressionParts._text,
    ast.Tuple: ExpressionParts._tuple,
    ast.List: ExpressionParts._list,
    ast.Set: ExpressionParts._set,
    ast.Dict: ExpressionParts._dict,
    ast.Slice: ExpressionParts._slice_literal,
    ast.Name: ExpressionParts._name,
    ast.Attribute: ExpressionParts._attribute,
    ast.Subscript: ExpressionParts._subscript,
    ast.Starred: ExpressionParts._star,
    ast.NamedExpr: ExpressionParts._walrus,
    ast.IfExp: ExpressionParts._either,
    ast.BoolOp: ExpressionParts._both,
    ast.UnaryOp: ExpressionParts._unary,
    ast.Compare: ExpressionParts._compare,
    ast.BinOp: ExpressionParts._binary,
    ast.ListComp: ExpressionParts._comprehension,
    ast.SetComp: ExpressionParts._comprehension,
    ast.GeneratorExp: ExpressionParts._comprehension,
    ast.DictComp: ExpressionParts._comprehension,
    ast.Call: ExpressionParts._call,
    ast.Lambda: ExpressionParts._lambda,
    ast.Await: ExpressionParts._await,
    ast.Yield: ExpressionParts._yield,
    ast.YieldFrom: ExpressionParts._yield_from,
}
