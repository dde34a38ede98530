"""``match``: patterns tried one after the other (PEP 634, https://peps.python.org/pep-0634/)."""

from __future__ import annotations

import ast
from collections.abc import Callable

from dpmigrate.execution.branches import BranchParts
from dpmigrate.execution.machine import Frame
from dpmigrate.execution.values import (
    NOTHING,
    SETTING,
    Const,
    Data,
    Foreign,
    Items,
    Ref,
    Setting,
    Value,
    const,
    join,
)

_LITERALS = {"int": "int", "str": "str", "float": "float", "bool": "bool", "bytes": "bytes"}


class MatchParts(BranchParts):
    """``match`` and its patterns."""

    def _match(self, node: ast.Match, frame: Frame) -> bool:
        subject = self.evaluate(node.subject, frame)
        return self._cases(node, 0, subject, frame) if subject else False

    def _cases(self, node: ast.Match, index: int, subject: Value, frame: Frame) -> bool:
        """The cases from one on; the next ones are tried where this one does not match."""
        if index == len(node.cases):
            return True
        case = node.cases[index]
        # the form of data is the same on all ranks, what they are is not
        values = any(isinstance(n, ast.MatchValue) for n in ast.walk(case.pattern))
        formed: Value = tuple(a for a in subject if not isinstance(a, Data))
        doubtful: list[Value] = [subject if values else formed]
        answer = self.fits(case.pattern, subject, frame)
        if answer is False:
            return self._cases(node, index + 1, subject, frame)
        if answer is True and case.guard is None:
            return self.block(case.body, frame)
        if case.guard is not None:
            tested = self.condition(self.evaluate(case.guard, frame), case.guard, frame)
            truth = self.truth(tested)
            if answer is True and truth is True:
                return self.block(case.body, frame)
            if truth is False:
                return self._cases(node, index + 1, subject, frame)
            doubtful.append(tested)
        parted = next((p for v in doubtful if (p := self.parting(v, case.pattern))), None)
        self.event("branch", case.pattern, frame, test=subject)
        arms: list[Callable[[], bool]] = [
            lambda: self.block(case.body, frame),
            lambda: self._cases(node, index + 1, subject, frame),
        ]
        return self.parted_arms(arms, parted, frame)

    def fits(self, pattern: ast.pattern, subject: Value, frame: Frame) -> bool | None:
        """Whether a value matches, None where it may; names in the pattern are bound."""
        match pattern:
            case ast.MatchValue():
                return self._equal(subject, self.evaluate(pattern.value, frame))
            case ast.MatchSingleton():
                return self._equal(subject, const(pattern.value))
            case ast.MatchAs():
                inner = pattern.pattern
                answer = self.fits(inner, subject, frame) if inner is not None else True
                if pattern.name is not None:
                    self.bind(pattern.name, subject, frame)
                return answer
            case ast.MatchOr():
                answers = [self.fits(p, subject, frame) for p in pattern.patterns]
                return True if True in answers else None if None in answers else False
            case ast.MatchSequence():
                return self._sequence(pattern, subject, frame)
            case ast.MatchMapping():
                return self._mapping(pattern, subject, frame)
            case ast.MatchClass():
                return self._class_fits(pattern, subject, frame)
        return None

    def _equal(self, subject: Value, wanted: Value) -> bool | None:
        if self.constants(subject) and self.constants(wanted) and len(wanted) == 1:
            answers = {a == wanted[0] for a in subject}
            return answers.pop() if len(answers) == 1 else None
        if all(isinstance(a, Const | Items | Ref) for a in (*subject, *wanted)):
            if {type(a) for a in subject}.isdisjoint(type(a) for a in wanted):
                return False if not any(isinstance(a, Ref) for a in subject) else None
        return None

    def _sequence(self, pattern: ast.MatchSequence, subject: Value, frame: Frame) -> bool | None:
        stars = [i for i, p in enumerate(pattern.patterns) if isinstance(p, ast.MatchStar)]
        if self._certainly_no(subject, ("list",)):
            return False
        known = self.known_elements(subject)
        if known is not None and not any(isinstance(a, Const) for a in subject):
            need = len(pattern.patterns) - len(stars)
            if len(known) < need or (not stars and len(known) > need):
                return False
            after = len(pattern.patterns) - stars[0] - 1 if stars else 0
            parts = list(known)
            if stars:
                end = len(known) - after
                rest = self.listed(known[stars[0] : end], pattern.patterns[stars[0]], frame)
                parts = [*known[: stars[0]], rest, *known[end:]]
            return _all(
                self._part_fits(p, v, frame) for p, v in zip(pattern.patterns, parts, strict=True)
            )
        element = self.elements(subject, pattern, frame) or SETTING
        for p in pattern.patterns:
            given = element
            if isinstance(p, ast.MatchStar):
                given = self.listed([element], p, frame, exact=False, by=[subject])
            self._part_fits(p, given, frame)
        return None

    def _part_fits(self, pattern: ast.pattern, v: Value, frame: Frame) -> bool | None:
        if isinstance(pattern, ast.MatchStar):
            if pattern.name is not None:
                self.bind(pattern.name, v, frame)
            return True
        return self.fits(pattern, v, frame)

    def _mapping(self, pattern: ast.MatchMapping, subject: Value, frame: Frame) -> bool | None:
        if self._certainly_no(subject, ("dict",)):
            return False
        answers: list[bool | None] = []
        for key, inner in zip(pattern.keys, pattern.patterns, strict=True):
            wanted = self.evaluate(key, frame)
            found = join(*[self._entry(a, wanted) for a in subject])
            if not found and all(isinstance(a, Ref) for a in subject):
                return False
            answers += [None, self.fits(inner, found or SETTING, frame)]
        if pattern.rest is not None:
            self.bind(pattern.rest, subject, frame)
        if len(subject) == 1 and self.known_elements(subject) is not None:
            answers = [a for a in answers if a is not None] or [True]
        return _all(answers)

    def _entry(self, atom: object, key: Value) -> Value:
        made = self.object(atom) if isinstance(atom, Ref) else None
        constant = key[0] if len(key) == 1 and isinstance(key[0], Const) else None
        if made is None or made.kind != "dict":
            return NOTHING
        held = self.heap.read((made.number, constant)) if constant is not None else None
        return join(self.bound(held or NOTHING), self.heap.read((made.number, "*")) or NOTHING)

    def _class_fits(self, pattern: ast.MatchClass, subject: Value, frame: Frame) -> bool | None:
        cls = self.evaluate(pattern.cls, frame)
        for p in pattern.patterns:
            self.fits(p, subject if len(pattern.patterns) == 1 else SETTING, frame)
        answers: list[bool | None] = [_instance(self, subject, cls)]
        for name, p in zip(pattern.kwd_attrs, pattern.kwd_patterns, strict=True):
            held = NOTHING if answers[0] is False else self.attribute(subject, name, p, frame)
            answers.append(self.fits(p, held or SETTING, frame))
        if pattern.patterns and answers[0] is True:
            answers[0] = None if not all(_captures(p) for p in pattern.patterns) else True
        return _all(answers)

    def _certainly_no(self, subject: Value, kinds: tuple[str, ...]) -> bool:
        """Whether a value is of Python's own types, and of none of these."""
        for atom in subject:
            if isinstance(atom, Items) and "list" in kinds:
                return False
            if isinstance(atom, Const | Items):
                continue
            made = self.object(atom)
            if made is None or made.kind not in ("list", "dict", "set") or made.kind in kinds:
                return False
        return True


def _captures(pattern: ast.pattern) -> bool:
    return isinstance(pattern, ast.MatchAs) and pattern.pattern is None


def _all(answers: object) -> bool | None:
    """Whether all parts match."""
    found = list(answers)  # type: ignore[call-overload]
    if False in found:
        return False
    return None if None in found else True


def _instance(m: MatchParts, subject: Value, cls: Value) -> bool | None:
    """Whether a value is of a class: known for literals and for classes of the program."""
    found: set[bool | None] = set()
    for atom in subject:
        for wanted in cls:
            found.add(_is(m, atom, wanted))
    return found.pop() if len(found) == 1 else None


def _is(m: MatchParts, atom: object, wanted: object) -> bool | None:
    if isinstance(atom, Const) and isinstance(wanted, Foreign):
        name = wanted.name.removeprefix("builtins.")
        if name in _LITERALS:
            return atom.type == name or (atom.type == "bool" and name == "int")
    if isinstance(atom, Const | Items | Setting) and isinstance(wanted, Ref):
        return None if isinstance(atom, Setting) else False
    if isinstance(atom, Ref) and isinstance(wanted, Ref):
        own = m.class_of(m.heap.objects[atom.object])
        return own is not None and wanted.object in own.extra.order
    made = m.object(atom) if isinstance(atom, Ref) else None
    if made is not None and made.kind in ("list", "dict", "set") and isinstance(wanted, Foreign):
        return wanted.name == f"builtins.{made.kind}"
    return None
