"""The runtime names that rewritten code may use, with the parameters it may pass. ``tests/test_contract.py`` holds this against the runtime.

Rewritten code reads ``import dpmigrate_runtime as ddp``; ``COLLECTIVE`` names the calls that every rank must reach.
"""

from __future__ import annotations

from typing import Final

MODULE: Final = "dpmigrate_runtime"
ALIAS: Final = "ddp"

#: name -> parameters in order (``*`` for variadic ones)
NAMES: Final[dict[str, tuple[str, ...]]] = {
    "setup": ("timeout", "unwatched"),
    "cleanup": (),
    "rank": (),
    "local_rank": (),
    "world_size": (),
    "is_main": (),
    "device": (),
    "wrap": ("model", "sync_bn", "find_unused", "compare", "thaws", "move_inputs", "again"),
    "unwrap": ("model",),
    "method": ("model", "name"),
    "accumulate": ("*models", "sync"),
    "clean_keys": ("state_dict",),
    "local_batch": ("size",),
    "local_rows": ("batch", "pad"),
    "DistributedSampler": ("dataset", "num_replicas", "rank", "shuffle", "seed", "drop_last"),
    "distribute": ("loader", "keep_batch_size"),
    "shard": ("loader", "blocks"),
    "shard_sampler": ("sampler", "drop_last"),
    "next_epoch": ("loader",),
    "whole": ("loader",),
    "sum_all": ("*values", "over"),
    "mean_all": ("*values", "over"),
    "gather_all": ("*values", "over", "order"),
    "sum_loss": ("loss",),
    "sum_term": ("value",),
    "weighted_mean": ("loss", "weight"),
    "weighted_loss": ("criterion",),
    "mean_count": ("count",),
    "batch_sum": ("value",),
    "batch_mean": ("value",),
    "batch_rows": ("value", "dim", "segments", "each"),
    "weight_of": ("target", "weight", "ignore_index"),
    "any_rank": ("flag",),
    "from_main": ("value",),
    "barrier": (),
    "sync_buffers": ("*models",),
    "save": ("obj", "f", "*args", "**kwargs"),
    "main_first": (),
    "main_folder": ("folder",),
    "main_only": ("factory", "*args", "**kwargs"),
    "main_path": ("path", "new"),
    "main_settings": ("settings",),
    "common_seed": ("generator",),
    "rank_generator": ("generator",),
    "worker_number": ("worker_id",),
    "seed_ranks": (),
    "own_streams": (),
    "same_stream": (),
    "same_hash": ("value",),
}

#: calls that wait for every rank; none of them may stand under a rank-0 guard
COLLECTIVE: Final = frozenset(
    {
        "setup",
        "cleanup",
        "wrap",
        "sum_all",
        "mean_all",
        "gather_all",
        "weighted_mean",
        "mean_count",
        "batch_sum",
        "batch_mean",
        "batch_rows",
        "any_rank",
        "from_main",
        "main_settings",
        "barrier",
        "sync_buffers",
        "main_first",
        "main_folder",
    }
    | {"seed_ranks", "same_stream", "own_streams"}
)

#: what goes round a loss that each rank makes of the samples of all: nothing, whatever a loss of its form needs otherwise
BARE: Final = "{}"
#: those that exchange nothing where gradients are switched off
OF_GRADIENTS: Final = frozenset({"weighted_mean", "mean_count", "batch_sum", "batch_mean", "batch_rows"})
