"""The rules: one file each, found by looking into this folder."""

from __future__ import annotations

import ast
import importlib
import pkgutil
from collections.abc import Sequence
from functools import cache

from dpmigrate.facts import layers
from dpmigrate.facts.script import Script
from dpmigrate.facts.seeds import is_given
from dpmigrate.model import Finding
from dpmigrate.rules._base import Rule, registered

#: the one rule that speaks of programs with a distributed path of their own
HALF_MIGRATED = "DPM910"
#: and those that speak of programs whose training is not seen
UNSEEN = ("DPM146", "DPM911")

__all__ = ["Rule", "all_rules", "check", "notes"]


@cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule, ordered by code."""
    for info in pkgutil.iter_modules(__path__):
        if not info.name.startswith("_"):
            importlib.import_module(f"{__name__}.{info.name}")
    return tuple(sorted(registered().values(), key=lambda r: r.code))


def wanted(rule: Rule, script: Script) -> bool:
    """Whether the settings ask for the rule; core rules and refusals are never left out, or half a migration would remain."""
    s = script.settings
    if rule.core or rule.refusal:
        return True
    return (not s.select or rule.code.startswith(s.select)) and not (s.ignore and rule.code.startswith(s.ignore))


def _suppressed(rule: Rule, finding: Finding, script: Script) -> bool:
    """Whether a comment asks for silence. What every migration needs is done all the same: half of one would be a wrong program."""
    return script.suppressions.covers(finding.span.line, rule.code) and not rule.refusal and not (rule.core and finding.edits)


def _ignored(rule: Rule, finding: Finding, script: Script) -> bool:
    """Whether the project ignores the rule in the file that the finding is about; never a core rule or a refusal."""
    s = script.settings
    if not s.per_file or rule.core or rule.refusal:
        return False
    from dpmigrate.walk import matches

    name = script.program.part(finding.span).source.name
    return any(rule.code.startswith(codes) and matches(name, pattern, s.root) for pattern, codes in s.per_file)


def check(script: Script) -> tuple[Finding, ...]:
    """Everything the rules have to say of the script, in the order of the text; nothing for a program that is exempt."""
    if script.exempt:
        return ()
    alone = (HALF_MIGRATED,) if script.half_migrated else () if script.roles.backwards else UNSEEN
    rules = [r for r in all_rules() if not alone or r.code in alone]
    found = [f for r in rules if wanted(r, script) for f in r.check(script) if not (_suppressed(r, f, script) or _ignored(r, f, script))]
    return tuple(sorted(found, key=lambda f: (f.span, f.code, f.message)))


def notes(script: Script, drawn: str = "", drawn_in_full: str = "") -> tuple[str, ...]:
    """What the migration changes in meaning, for the end of the report; ``drawn`` is the text of a draw of random numbers for the samples of a split
    evaluation, ``drawn_in_full`` of one that every rank makes in full, with other numbers.
    """
    s = script.settings
    out = []
    if s.batch == "global":
        shares = "which the number of ranks has to divide; each rank takes an equal share, so the learning rate stays right"
        padded = "of a data set whose size it does not divide, a few samples may come twice in an epoch, as with torch's DistributedSampler"
        out.append(f"Batch size: the one in the script stays the global batch, {shares}; {padded}.")
    else:
        out.append(
            "Batch size: each rank keeps the script's batch size, so the global batch grows with the number of ranks; "
            "scale the learning rate (linearly, with warm-up)."
        )
    foreign = [v.qual for c in script.train_loader_calls if not script.roles.makes_loader(c) for v in script.values.eval(c.func) if v.kind == "ext"]
    unread = [q for q in foreign if not q.rpartition(".")[2][:1].isupper()]  # a class of loaders is given its data set
    if unread:
        out.append(
            f"The code of {', '.join(dict.fromkeys(unread))}, which makes the training batches, is not read: every rank runs it, with the downloads and "
            "random splits that it may do. If it is part of this program, run dpmigrate in the folder in which the program is started."
        )
    if not script.from_data_parallel and any(True for _ in layers.by_hand(script.modules)):
        out.append("The model computes a statistic over the batch: each rank takes it from its part of the batch, other numbers than on one GPU.")
    evaluated = [e for e in script.evaluations if e.loop.evaluates]
    split = sum(e.split for e in evaluated)
    whole = len(evaluated) - split + sum(script.evaluates_too(b) for b in script.roles.train_loops)
    if split:
        equal = "the numbers equal those of one process"
        if drawn:
            equal = f"{drawn} draws random numbers for the samples, others than on one process, so the results equal those of one process on average only"
        if any(isinstance(v.node, ast.Call) and is_given(script.argument(v.node, "shuffle", 2)) for e in evaluated if e.split for v in e.loop.loaders):
            equal += "; a loader that shuffles goes through its samples in their order, so a mean over its batches is one over other batches"
        out.append(f"Evaluation: {_loops(split, 'is', 'are')} split over the ranks and put together again; {equal}.")
    if whole:
        equal = "not faster, but exact"
        if drawn_in_full:
            equal = f"{drawn_in_full} draws other random numbers on each, so rank 0's results equal those of one process on average only"
        out.append(f"Evaluation: {_loops(whole, 'runs', 'run')} in full on every rank: {equal}.")
    for stmt in script.untrained:
        out.append(
            f"{script.program.where(script.span(stmt))}: this part, which would train or wrap a model, stays as it is: with its settings as they are written "
            "the program never comes there. With others, migrate it again."
        )
    saved = [func.value for _, func in script.methods("state_dict")]
    if script.from_data_parallel and any(v.kind == "wrapped" for e in saved if not _taken_off(script, e, saved) for v in script.roles.model_vals(e)):
        out.append("Checkpoints: the keys have no module. any more. Old files can be loaded; the program as it was, under DataParallel, cannot load new ones.")
    from dpmigrate.rules import fixed_device_index

    chosen = dict.fromkeys(script.text(n) for n in fixed_device_index.choices(script))
    if chosen:
        one = len(chosen) == 1
        out.append(
            f"GPU: {', '.join(chosen)} {'chooses' if one else 'choose'} it no more: each rank has its own, and one process takes the first. "
            "CUDA_VISIBLE_DEVICES says which there are."
        )
        still = [f"{script.text(c)} ({script.program.where(script.span(c))})" for c in fixed_device_index.given_away(script)]
        if still:
            out[-1] += f" {', '.join(still)} {'is' if len(still) == 1 else 'are'} given it all the same: {script.ddp}.local_rank() is that of the rank's own."
    if _fills_up(script):
        out.append(
            "Sums over the training samples count those again, fewer than there are ranks, with which the sampler makes the ranks' shares equal: divided "
            "by the size of the data set they are a little too high, unless the number of ranks divides it."
        )
    stepless = _repeats_what_it_measures(script)
    if stepless:
        out.append(
            f"{', '.join(stepless)}: this loop goes backward and steps no optimizer (an attack, say, on the samples of a test set). The ranks share its "
            "batches all the same, and where their number does not divide the data set, samples are repeated: what it counts or averages holds some twice."
        )
    if s.amp:
        out.append(f"Mixed precision: forward and loss run under autocast ({s.amp_dtype})" + (" with a GradScaler." if s.amp_dtype == "float16" else "."))
    return tuple(out)


def _fills_up(script: Script) -> bool:
    """Whether totals are put together of batches of which a sampler fills the last one up with samples that it repeats."""
    from dpmigrate.facts.ratios import divided_otherwise
    from dpmigrate.facts.totals import totals

    dropped = {c for c in script.train_loader_calls if is_given(script.argument(c, "drop_last", 8))}
    loops = (b for b in script.roles.train_loops if any(v.node in script.train_loader_calls and v.node not in dropped for v in b.loaders))
    return not script.sizes.smaller_left_out and any(divided_otherwise(script, b, totals(script, b).sums) for b in loops)


def _repeats_what_it_measures(script: Script) -> list[str]:
    """The loops that go backward for something else than a step, as far as their loaders may repeat samples."""
    loops = {}
    for b in script.roles.train_loops:
        held = {v.node for v in b.loaders}
        made = [c for c in script.train_loader_calls if c in held]
        whole = all(is_given(script.argument(c, "drop_last", 8)) for c in made)
        if made and not whole and not any(call for call, _ in script.methods("step") if _comes_to(script, b.node, call)):
            loops[b.node] = script.program.where(script.span(b.node))
    return list(loops.values())


def _comes_to(script: Script, loop: ast.AST, node: ast.AST) -> bool:
    """Whether running the loop may run the node."""
    return script.names.is_inside(node, loop) or any(script.names.is_inside(node, f) for f in script.roles.all_entered(loop))


def _loops(count: int, one: str, several: str) -> str:
    return f"1 loop {one}" if count == 1 else f"{count} loops {several}"


def _taken_off(script: Script, saved: ast.expr, others: Sequence[ast.expr]) -> bool:
    """Whether another branch saves what is in the wrapper: ``net.module.state_dict() if parallel else net.state_dict()``."""
    if isinstance(saved, ast.IfExp):
        return any(_taken_off(script, arm, [saved.body, saved.orelse]) for arm in (saved.body, saved.orelse))
    inner = [e for e in others if isinstance(e, ast.Attribute) and e.attr == "module" and script.text(e.value) == script.text(saved)]
    return any(script.values.order.other_branch(e, script.names.statement(saved)) or _chosen(script, e, saved) for e in inner)


def _chosen(script: Script, one: ast.expr, other: ast.expr) -> bool:
    """Whether a conditional expression gives the one or the other."""
    choices = (a for a in script.names.ancestors(one) if isinstance(a, ast.IfExp))
    return any(script.names.is_inside(other, a) and not script.names.is_inside(other, a.test) for a in choices)
