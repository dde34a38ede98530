"""Patterns of ``match``: whether a value fits, what decides that, and what is bound then."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from dpmigrate.execution import divergence
from dpmigrate.execution.branches import BranchParts
from dpmigrate.execution.joins import join
from dpmigrate.execution.machine import Frame
from dpmigrate.execution.objects import Object
from dpmigrate.execution.values import (
    NOTHING,
    SETTING,
    Const,
    Data,
    Differs,
    Foreign,
    Items,
    Ref,
    Setting,
    Value,
    const,
    unknown,
)

_LITERALS = {"int": "int", "str": "str", "float": "float", "bool": "bool", "bytes": "bytes"}
#: classes of which a pattern with one place takes the whole value
_WHOLE = (
    "bool", "bytearray", "bytes", "dict", "float", "frozenset", "int", "list", "set", "str", "tuple",
)  # fmt: skip


@dataclass(slots=True)
class Capture:
    """What a pattern binds where it fits, and the values that decide whether it does."""

    names: dict[str, Value] = field(default_factory=dict)
    asked: list[Value] = field(default_factory=list)


class PatternParts(BranchParts):
    """One method for each kind of pattern; None where a value may fit."""

    def fits(self, pattern: ast.pattern, subject: Value, into: Capture, frame: Frame) -> bool | None:
        """Whether a value matches, None where it may."""
        answer = self._fits(pattern, subject, into, frame)
        if answer is None and isinstance(pattern, ast.MatchValue | ast.MatchSingleton):
            into.asked.append(subject)
        elif any(isinstance(a, Differs) for a in subject):
            into.asked.append(tuple(a for a in subject if isinstance(a, Differs)))
        return answer

    def _fits(self, pattern: ast.pattern, subject: Value, into: Capture, frame: Frame) -> bool | None:
        match pattern:
            case ast.MatchValue():
                return self._equal(subject, self.evaluate(pattern.value, frame))
            case ast.MatchSingleton():
                return self._equal(subject, const(pattern.value))
            case ast.MatchAs():
                inner = pattern.pattern
                answer = self.fits(inner, subject, into, frame) if inner is not None else True
                if pattern.name is not None:
                    into.names[pattern.name] = subject
                return answer
            case ast.MatchOr():
                return self._either_fits(pattern, subject, into, frame)
            case ast.MatchSequence():
                return self._sequence(pattern, subject, into, frame)
            case ast.MatchMapping():
                return self._mapping(pattern, subject, into, frame)
            case ast.MatchClass():
                return self._class_fits(pattern, subject, into, frame)
        return None

    def _either_fits(
        self, pattern: ast.MatchOr, subject: Value, into: Capture, frame: Frame
    ) -> bool | None:
        """``a | b``: names are bound by the first that fits."""
        answer: bool | None = False
        possible: list[Capture] = []
        for part in pattern.patterns:
            own = Capture()
            found = self.fits(part, subject, own, frame)
            into.asked += own.asked
            if found is False:
                continue
            possible.append(own)
            answer = found
            if found:
                break
        some = next((p for v in into.asked if (p := self.parting(v, pattern))), None)
        for name in dict.fromkeys(n for c in possible for n in c.names):
            bound = join(*(c.names[name] for c in possible if name in c.names))
            apart = some is not None and len(possible) > 1
            into.names[name] = divergence.differing(bound, some) if apart and some else bound
        return answer

    def _equal(self, subject: Value, wanted: Value) -> bool | None:
        if self.constants(subject) and self.constants(wanted) and len(wanted) == 1:
            answers = {_same_number(a, wanted[0]) for a in subject}
            return answers.pop() if len(answers) == 1 else None
        if all(isinstance(a, Const | Items | Ref) for a in (*subject, *wanted)):
            if {type(a) for a in subject}.isdisjoint(type(a) for a in wanted):
                return False if not any(isinstance(a, Ref) for a in subject) else None
        return None

    def _sequence(
        self, pattern: ast.MatchSequence, subject: Value, into: Capture, frame: Frame
    ) -> bool | None:
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
            pairs = zip(pattern.patterns, parts, strict=True)
            return _all(self._part_fits(p, v, into, frame) for p, v in pairs)
        into.asked.append(self.counts([subject]))
        element = self.elements(subject, pattern, frame) or SETTING
        for p in pattern.patterns:
            given = element
            if isinstance(p, ast.MatchStar):
                given = self.listed([element], p, frame, exact=False, by=[subject])
            self._part_fits(p, given, into, frame)
        return None

    def _part_fits(self, pattern: ast.pattern, v: Value, into: Capture, frame: Frame) -> bool | None:
        if isinstance(pattern, ast.MatchStar):
            if pattern.name is not None:
                into.names[pattern.name] = v
            return True
        return self.fits(pattern, v, into, frame)

    def _mapping(
        self, pattern: ast.MatchMapping, subject: Value, into: Capture, frame: Frame
    ) -> bool | None:
        if self._certainly_no(subject, ("dict",)):
            return False
        answers: list[bool | None] = []
        whole = len(subject) == 1 and self.known_elements(subject) is not None
        for key, inner in zip(pattern.keys, pattern.patterns, strict=True):
            wanted = self.evaluate(key, frame)
            found = join(*[self._entry(a, wanted) for a in subject])
            if not found and all(isinstance(a, Ref) for a in subject):
                return False
            if not whole:
                into.asked += [self._keys_of(a, wanted, key, frame) for a in subject]
                answers.append(None)
            answers.append(self.fits(inner, found or SETTING, into, frame))
        if pattern.rest is not None:
            into.names[pattern.rest] = subject
        return _all(answers or [True if whole else None])

    def _entry(self, atom: object, key: Value) -> Value:
        made = self.object(atom) if isinstance(atom, Ref) else None
        constant = key[0] if len(key) == 1 and isinstance(key[0], Const) else None
        if made is None or made.kind != "dict":
            return NOTHING
        held = self.heap.read((made.number, constant)) if constant is not None else None
        return join(self.bound(held or NOTHING), self.heap.read((made.number, "*")) or NOTHING)

    def _class_fits(
        self, pattern: ast.MatchClass, subject: Value, into: Capture, frame: Frame
    ) -> bool | None:
        cls = self.evaluate(pattern.cls, frame)
        answers: list[bool | None] = [self._instance(subject, cls)]
        if answers[0] is False:
            return False
        names = self._places(cls)
        for i, p in enumerate(pattern.patterns):
            if i < len(names):
                held = self.attribute(subject, names[i], p, frame)
            else:
                held = subject if _whole(cls) else unknown("a place of a class pattern", p)
            answers.append(self.fits(p, held or SETTING, into, frame))
        for name, p in zip(pattern.kwd_attrs, pattern.kwd_patterns, strict=True):
            held = self.attribute(subject, name, p, frame)
            answers.append(self.fits(p, held or SETTING, into, frame))
        return _all(answers)

    def _places(self, cls: Value) -> list[str]:
        """The attributes that the places of a class pattern ask for."""
        for made in self.objects(cls):
            if made.kind != "class":
                continue
            held = self.in_class(made, "__match_args__")
            if held:
                known = self.known_elements(held) or []
                return [str(v[0].value) for v in known if len(v) == 1 and isinstance(v[0], Const)]
            if "dataclass" in made.marks:
                fields = (f for n in reversed(made.extra.order) for f in self._fields(n))
                return list(dict.fromkeys(fields))
        return []

    def _fields(self, number: int) -> list[str]:
        made: Object = self.heap.objects[number]
        return list(made.extra.fields)

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

    def _instance(self, subject: Value, cls: Value) -> bool | None:
        """Whether a value is of a class: known for literals and for classes of the program."""
        found = {self._is(atom, wanted) for atom in subject for wanted in cls}
        return found.pop() if len(found) == 1 else None

    def _is(self, atom: object, wanted: object) -> bool | None:
        if isinstance(atom, Const) and isinstance(wanted, Foreign):
            name = wanted.name.removeprefix("builtins.")
            if name in _LITERALS:
                return atom.type == name or (atom.type == "bool" and name == "int")
        if isinstance(atom, Data) and isinstance(wanted, Ref):
            return False
        if isinstance(atom, Const | Items | Setting) and isinstance(wanted, Ref):
            return None if isinstance(atom, Setting) else False
        if isinstance(atom, Ref) and isinstance(wanted, Ref):
            own = self.class_of(self.heap.objects[atom.object])
            return own is not None and wanted.object in own.extra.order
        made = self.object(atom) if isinstance(atom, Ref) else None
        if made is not None and made.kind in ("list", "dict", "set") and isinstance(wanted, Foreign):
            return wanted.name == f"builtins.{made.kind}"
        return None


def _same_number(a: object, b: object) -> bool:
    """Whether two constants are equal: 1 is True and 1.0 as well."""
    if not isinstance(a, Const) or not isinstance(b, Const):
        return a == b
    if b.value is None or isinstance(b.value, bool):
        return a == b if a.value is None or b.value is None else bool(a.value == b.value)
    return bool(a.value == b.value)


def _whole(cls: Value) -> bool:
    return any(isinstance(a, Foreign) and a.name.removeprefix("builtins.") in _WHOLE for a in cls)


def _all(answers: object) -> bool | None:
    """Whether all parts match."""
    found = list(answers)  # type: ignore[call-overload]
    if False in found:
        return False
    return None if None in found else True
