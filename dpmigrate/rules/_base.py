"""What a rule is: a function over a Script, its code, and its module's docstring as the page.

A rule file holds one function, named as the file; ``@rule`` says code, severity and what ``apply`` does. Files are discovered.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from dpmigrate.edit import Edit
from dpmigrate.facts.script import Script
from dpmigrate.literals import TRAINING
from dpmigrate.model import Finding, Fix, Severity


@dataclass(frozen=True, slots=True)
class Hit:
    """What a rule yields: the place, the words, the edits; ``severity`` where it differs from the rule's; ``of_means`` as in ``Finding``."""

    node: ast.AST
    message: str
    edits: tuple[Edit, ...] = ()
    advice: str = ""
    severity: Severity | None = None
    of_means: bool = False


Check = Callable[[Script], Iterator[Hit]]


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule as the registry knows it.

    ``core`` edits belong to every migration and cannot be left out; ``literals`` are the byte strings of which a file must hold
    one for the rule to have anything to say.
    """

    code: str
    severity: Severity
    fix: Fix
    core: bool
    literals: tuple[bytes, ...]
    run: Check

    @property
    def name(self) -> str:
        return self.run.__name__.replace("_", "-")

    @property
    def page(self) -> str:
        return (sys.modules[self.run.__module__].__doc__ or "").strip()

    @property
    def summary(self) -> str:
        return self.page.splitlines()[0]

    @property
    def refusal(self) -> bool:
        """Whether it says that a program cannot be migrated (9xx), which nobody can wish away; of other blockers the user may know better."""
        return self.code.startswith("DPM9")

    def check(self, script: Script) -> Iterator[Finding]:
        for hit in self.run(script):
            fix = Fix.SAFE if hit.edits else Fix.NONE
            yield Finding(self.code, script.span(hit.node), hit.message, hit.severity or self.severity, hit.edits, fix, hit.advice, hit.of_means)


_RULES: dict[str, Rule] = {}


def rule(code: str, *, severity: Severity, fix: Fix = Fix.NONE, core: bool = False, literals: tuple[bytes, ...] = TRAINING) -> Callable[[Check], Check]:
    """Register the function as the rule ``code``."""

    def register(run: Check) -> Check:
        if code in _RULES and _RULES[code].run.__module__ != run.__module__:
            raise ValueError(f"{code} is taken by {_RULES[code].name}")
        _RULES[code] = Rule(code, severity, fix, core, literals, run)
        return run

    return register


def registered() -> dict[str, Rule]:
    return _RULES
