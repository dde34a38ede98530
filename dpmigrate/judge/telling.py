"""An execution that keeps the numbers that texts are made of, for those that are told."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.execution import placements
from dpmigrate.execution.machine import Frame
from dpmigrate.execution.values import Data, Ref, Value, data
from dpmigrate.judge.passing import Passing

#: the kind of the mark of a text
TEXT = "text"
#: texts in texts
_DEEP = 4


class Telling(Passing):
    """Of each text it is kept which data are in it."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        #: the data that texts were made of, by the marks of the texts
        self.in_texts: dict[int, dict[Data, None]] = {}
        self._written: dict[tuple[ast.AST, int], int] = {}

    def text(self, parts: list[Value], node: ast.AST, frame: Frame) -> Value:
        """A text with the mark of its place and call: the number that it lies as may be one of several in it."""
        made = super().text(parts, node, frame)
        if not data(made):
            return made
        at = (node, frame.context)
        if at not in self._written:
            self._written[at] = self.heap.new(TEXT, TEXT, None, 0, key=(TEXT, *at)).number
        mark = self._written[at]
        held = self.in_texts.setdefault(mark, {})
        held |= {d: None for v in parts for d in data(self.shown(v, node, frame), deep=True)}
        return tuple(a._replace(marks=a.marks | {mark}) if isinstance(a, Data) else a for a in made)

    def _numbers(self, v: Value, seen: set[int]) -> Iterator[Data]:
        """The data in a value, with those in lists, dictionaries and texts."""
        for d in data(v, deep=True):
            yield from self._in_text(d)
        for made in self.objects(v):
            if made.kind in ("list", "dict") and made.number not in seen:
                seen.add(made.number)
                for held in self.fields(made):  # a time beside a loss is not one number with it
                    yield from self._numbers(held, seen)

    def _left_over(self, v: Value) -> Iterator[Data]:
        """The data of a list in whose place another one may be that the ranks have put together: the
        first may be the empty one of a loop without turns.
        """
        kept = [list(self._numbers((Ref(o.number),), set())) for o in self.objects(v) if o.kind in ("list", "dict")]
        if any(held and all(d.placement.kind in placements.EQUAL for d in held) for held in kept):
            yield from (d for held in kept for d in held)

    def _in_text(self, d: Data) -> Iterator[Data]:
        """The data that a text is made of, each once; what is no text, or in more than so many texts in each other, itself."""
        level, seen = [d], set[int]()
        for _ in range(_DEEP):
            inner: dict[Data, None] = {}
            for one in level:
                marks = [n for n in one.marks if n in self.in_texts] if one.kind == "text" else []
                if not marks:
                    yield one
                for n in sorted(set(marks) - seen):
                    inner.update(self.in_texts[n])
                seen.update(marks)
            level = list(inner)
        yield from level
