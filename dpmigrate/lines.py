"""Which lines of a new text were there before, and what stood in the place of the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

#: up to how many lines that differ the fewest are looked for
_MOST = 2000


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
        i = j = 0
        # behind the last line of both stands an end, which is the same
        for i2, j2, length in _same([s.strip() for s in old], [s.strip() for s in new]):
            for n in range(j, j2):
                self._place[n + 1] = min(i + (n - j), max(i2 - 1, i)) + 1
                self._changed[n + 1] = range(i + 1, i2 + 1)
            for n in range(length):
                self._place[j2 + n + 1] = self._same[j2 + n + 1] = i2 + n + 1
            i, j = i2 + length, j2 + length

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


def _same(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[int, int, int]]:
    """Where runs of equal lines begin in both texts, and how long each is, so that as few lines as
    can be are left; at the end one of no lines.

    Programs repeat themselves. ``difflib`` looks for the longest run first, and takes that of
    another function for it where the right one is interrupted by more edits.
    """
    ways = _ways(old, new)
    if ways is None:
        yield from SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()
        return
    runs = [(len(old), len(new), 0)]
    i, j = len(old), len(new)
    for steps in range(len(ways) - 1, 0, -1):
        k, far = i - j, ways[steps - 1]
        put_in = k == -steps or (k != steps and far[k - 1] < far[k + 1])
        begin = far[k + 1] if put_in else far[k - 1] + 1
        if i > begin:
            runs.append((begin, begin - k, i - begin))
        i, j = (begin, begin - k - 1) if put_in else (begin - 1, begin - k)
    if i:
        runs.append((0, 0, i))
    yield from reversed(runs)


def _ways(old: Sequence[str], new: Sequence[str]) -> list[dict[int, int]] | None:
    """For each number of lines that were taken out or put in, how far in the old text the best way
    along each diagonal has come (E. Myers, An O(ND) Difference Algorithm); None where too many differ.
    """
    far: dict[int, int] = {}
    ways: list[dict[int, int]] = []
    for steps in range(min(len(old) + len(new), _MOST) + 1):
        reached: dict[int, int] = {}
        for k in range(-steps, steps + 1, 2):
            if not steps:
                i = 0
            elif k == -steps or (k != steps and far[k - 1] < far[k + 1]):
                i = far[k + 1]
            else:
                i = far[k - 1] + 1
            j = i - k
            while i < len(old) and j < len(new) and old[i] == new[j]:
                i, j = i + 1, j + 1
            reached[k] = i
            if i >= len(old) and j >= len(new):
                return [*ways, reached]
        far = reached
        ways.append(reached)
    return None
