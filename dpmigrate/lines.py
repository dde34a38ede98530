"""Which lines of a new text were there before, and what stood in the place of the others."""

from __future__ import annotations

from difflib import SequenceMatcher


class Lines:
    """The lines of a text, by their numbers, with those of the text that it was made of;
    indentation and blanks at the end do not count.
    """

    def __init__(self, before: str, after: str) -> None:
        old, new = before.splitlines(), after.splitlines()
        self._last = max(len(old), 1)
        self._same: dict[int, int] = {}
        self._changed: dict[int, range] = {}
        self._place: dict[int, int] = {}
        for tag, i1, i2, j1, j2 in SequenceMatcher(
            None, [s.strip() for s in old], [s.strip() for s in new]
        ).get_opcodes():
            for j in range(j1, j2):
                self._place[j + 1] = min(i1 + (j - j1), max(i2 - 1, i1)) + 1
                if tag == "equal":
                    self._same[j + 1] = i1 + (j - j1) + 1
                else:
                    self._changed[j + 1] = range(i1 + 1, i2 + 1)

    def old(self, line: int) -> range:
        """The lines that stood where the line of the new text stands: itself, those that were
        rewritten, or none.
        """
        same = self._same.get(line)
        return range(same, same + 1) if same is not None else self._changed.get(line, range(1, 1))

    def stays(self, line: int) -> bool:
        """Whether the line of the new text was there before."""
        return line in self._same

    def place(self, line: int) -> int:
        """The line of the old text at which the line of the new one would stand."""
        return min(self._place.get(line, 1), self._last)
