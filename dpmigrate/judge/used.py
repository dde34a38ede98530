"""What functions of the runtime give is used as what it is: not dropped, nor taken for something else."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from dpmigrate.execution.values import known
from dpmigrate.judge.trial import Fault, Trial
from dpmigrate.program import Program

NAME = "what functions of the runtime give is used"

#: functions that give something and do nothing else
_GIVE = frozenset({
    "world_size", "rank", "local_rank", "device", "local_batch", "clean_keys", "unwrap", "main_path", "mean_count", "weight_of", "weighted_mean",
    "weighted_loss", "sum_loss", "sum_term", "sum_all", "mean_all", "gather_all", "any_rank", "distribute", "shard", "whole", "common_seed", "local_rows",
    "rank_generator", "worker_number", "same_hash",
})  # fmt: skip
#: functions that give a number, a state as it is loaded, a path as it is opened: no entry is taken of them
_WHOLE = frozenset({"world_size", "rank", "local_rank", "local_batch", "clean_keys", "main_path", "worker_number"})


def faults(trial: Trial) -> Iterator[Fault]:
    """Calls of the runtime of which nothing, or something else, is used."""
    above = _parents(trial.result.program)
    for event in trial.result.trace.of("judge runtime"):
        word = str(known(event.values["name"]))
        if word in _GIVE and (why := _wrong(word, event.node, above)):
            yield trial.fault(event.node, NAME, f"{word}(): {why}")


def _wrong(word: str, node: ast.AST, above: dict[ast.AST, ast.AST]) -> str:
    """How what a call gives is used wrongly; '' where it is not."""
    outer = above.get(node)
    if isinstance(outer, ast.Subscript) and outer.value is node and word in _WHOLE:
        return "an entry is taken of what it gives"
    if word == "main_path" and isinstance(outer, ast.BinOp):
        return "a path is made of what it gives, which on other ranks is no folder and no text of that form"
    if word == "main_path" and isinstance(outer, ast.Call) and node in outer.args:
        if isinstance(outer.func, ast.Attribute) and outer.func.attr in ("join", "joinpath"):
            return "a path is made of what it gives, which on other ranks is no folder"
    while isinstance(outer, ast.BinOp | ast.UnaryOp):
        outer = above.get(outer)
    return "what it gives is dropped" if isinstance(outer, ast.Expr) else ""


@lru_cache(maxsize=2)
def _parents(program: Program) -> dict[ast.AST, ast.AST]:
    nodes = (n for p in program.parts for n in ast.walk(p.tree))
    return {child: node for node in nodes for child in ast.iter_child_nodes(node)}
