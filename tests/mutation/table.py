"""Results as Markdown: kinds of edits by outcomes, and what was not noticed, one by one."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from tests.mutation.outcomes import COLUMNS, DROPPED, Outcome, Result, by_outcome
from tests.mutation.running import CONTROL

#: the outcomes that are listed one by one, with a title and what a reader is to do with them
LISTED = {
    Outcome.UNNOTICED: "Unnoticed: wrong or unneeded, and nothing says so",
    Outcome.HARMLESS: "Harmless, proved equal: see that each reason is true of its program",
    Outcome.ERROR: "Errors of the harness",
}
#: and these by an example of each kind, since nothing more is done about them in this stage
SHOWN = {
    Outcome.PASSED_IDLE: "Not refused and not runnable",
    Outcome.PASSED: "Not refused, to be run",
}


def report(results: Iterable[Result], *, examples: int = 0) -> str:
    """The whole page; of what is not refused and not run ``examples`` of each kind."""
    all_of_them = list(results)
    controls = [r for r in all_of_them if r.mutant.way == CONTROL]
    tried = [r for r in all_of_them if r.mutant.way != CONTROL]
    dropped = Counter(r.outcome for r in by_outcome(tried, *DROPPED))
    real = [r for r in tried if r.outcome not in DROPPED]
    programs = len({(r.mutant.case, r.mutant.script) for r in real})
    left_out = "; ".join(f"{dropped[o]} {o.value}" for o in DROPPED)
    parts = [
        "# Mutation of results\n",
        f"{len(real)} mutants of {programs} programs. Not counted: {left_out}.\n",
        *_controls(controls),
        "## By what the edit brings\n",
        _table(real, lambda r: r.mutant.label),
        "## By what is wrong with it\n",
        _table(real, lambda r: r.mutant.way),
    ]
    for outcome, title in LISTED.items():
        parts += _listed(list(by_outcome(real, outcome)), title, None)
    for outcome, title in SHOWN.items():
        if examples:
            parts += _listed(list(by_outcome(real, outcome)), title, examples)
    return "\n".join(parts)


def _controls(controls: Sequence[Result]) -> Iterable[str]:
    failed = [r for r in controls if r.outcome is not Outcome.HARMLESS]
    if failed:
        yield "**These programs are not proved without any fault: their runs say nothing.**\n"
        for r in failed:
            told = r.why.splitlines()[:1]
            yield f"- {r.mutant.case} ({r.mutant.script}): {r.outcome.value}: {' '.join(told)}"
        yield ""


def _table(results: Sequence[Result], row: object) -> str:
    assert callable(row)
    counts: dict[str, Counter[Outcome]] = defaultdict(Counter)
    for r in results:
        counts[row(r)][r.outcome] += 1
    used = [o for o in COLUMNS if any(c[o] for c in counts.values())]
    heads = ["edit", *(o.value for o in used), "all"]
    lines = ["| " + " | ".join(heads) + " |", "|---|" + "---:|" * (len(used) + 1)]
    ordered = sorted(counts, key=lambda name: (-_open(counts[name]), name))
    total: Counter[Outcome] = sum(counts.values(), Counter())
    for name, count in [*((n, counts[n]) for n in ordered), ("**all**", total)]:
        cells = [str(count[o] or "") for o in used]
        shown = name if name.startswith("**") else f"`{name}`".replace("|", r"\|")
        lines.append(f"| {shown} | " + " | ".join([*cells, str(count.total())]) + " |")
    return "\n".join(lines) + "\n"


def _open(count: Counter[Outcome]) -> int:
    """What is not noticed, or not known to be: the table begins with the most of it."""
    return sum(count[o] for o in (Outcome.UNNOTICED, Outcome.PASSED, Outcome.PASSED_IDLE))


def _listed(results: Sequence[Result], title: str, each: int | None) -> Iterable[str]:
    if not results:
        return
    yield f"## {title}\n"
    kinds: dict[str, list[Result]] = defaultdict(list)
    for r in results:
        kinds[r.mutant.kind].append(r)
    for kind, group in sorted(kinds.items(), key=lambda one: (-len(one[1]), one[0])):
        yield f"### {kind} ({len(group)})\n"
        for r in group[:each]:
            m = r.mutant
            yield f"- **{m.case}**, {m.place}, {m.code}: `{m.edit}`"
            yield f"  ({r.why})" if r.why and r.outcome is not Outcome.UNNOTICED else ""
            yield "\n  ```diff"
            yield from (f"  {line}" for line in r.diff.splitlines())
            yield "  ```\n"
