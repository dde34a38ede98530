"""Rules as text: one page each, and the table of all."""

from __future__ import annotations

from dpmigrate.model import Fix, Severity
from dpmigrate.rules import Rule, all_rules


def page(code: str) -> str | None:
    """The page of a rule, by code (any case) or name; None if there is none."""
    wanted = code.strip().upper()
    found = next((r for r in all_rules() if wanted in (r.code, r.name.upper())), None)
    if found is None:
        return None
    return f"{found.code} {found.name} ({found.severity.value}, {fixed(found)})\n\n{found.page}\n"


def fixed(rule: Rule) -> str:
    """What apply does, in words."""
    if rule.severity is Severity.BLOCKER:
        return "refused"
    return "fixed by apply" if rule.fix is Fix.SAFE else "reported"


def table() -> str:
    """All rules, a line each."""
    rows = [(r.code, r.name, r.severity.value, fixed(r), r.summary) for r in all_rules()]
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    return "".join("  ".join([*(cell.ljust(w) for cell, w in zip(row, widths, strict=False)), row[4]]) + "\n" for row in rows)


def markdown() -> str:
    """The reference: a table, then every page."""
    rows = [f"| [{r.code}](#{r.code.lower()}) | {r.name} | {r.severity.value} | {fixed(r)} | {r.summary} |" for r in all_rules()]
    head = "# Rules\n\nMade from the rules' docstrings by `dpmigrate rules --markdown`.\n\n| code | name | severity | apply | what |\n|---|---|---|---|---|\n"
    pages = [f'\n<a id="{r.code.lower()}"></a>\n\n# {r.code} {r.name}\n\n*{r.severity.value}, {fixed(r)}*\n\n{r.page}\n' for r in all_rules()]
    return head + "\n".join(rows) + "\n" + "".join(pages)
