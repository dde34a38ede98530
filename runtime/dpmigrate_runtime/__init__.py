"""What a migrated training script calls: process group, data shards, checkpoints, sums and rank-0 output.

Rewritten code reads ``import dpmigrate_runtime as ddp``. Every function does the obvious single-process thing when the script is
started by plain ``python``, so the same file also runs without ``torchrun``. Needs torch >= 2.4 and the standard library only.
"""

from __future__ import annotations

from ._checkpoint import save
from ._data import distribute, local_batch, local_rows, next_epoch, shard, whole
from ._exchange import any_rank, barrier, from_main, main_folder, main_settings
from ._gather import gather_all
from ._hash import same_hash
from ._losses import batch_mean, batch_rows, batch_sum, mean_count, sum_loss, sum_term, weight_of, weighted_loss, weighted_mean
from ._model import accumulate, clean_keys, method, sync_buffers, unwrap, wrap
from ._process_group import cleanup, setup
from ._rank0 import main_first, main_only, main_path
from ._reduce import mean_all, sum_all
from ._samplers import DistributedSampler, shard_sampler
from ._seeds import common_seed, own_streams, rank_generator, same_stream, seed_ranks, worker_number
from ._state import device, is_main, local_rank, rank, world_size

__version__ = "0.1.0"

__all__ = [
    "DistributedSampler",
    "accumulate",
    "any_rank",
    "barrier",
    "batch_mean",
    "batch_rows",
    "batch_sum",
    "clean_keys",
    "cleanup",
    "common_seed",
    "device",
    "distribute",
    "from_main",
    "gather_all",
    "is_main",
    "local_batch",
    "local_rank",
    "local_rows",
    "main_first",
    "main_folder",
    "main_only",
    "main_path",
    "main_settings",
    "mean_all",
    "mean_count",
    "method",
    "next_epoch",
    "own_streams",
    "rank",
    "rank_generator",
    "same_hash",
    "same_stream",
    "save",
    "seed_ranks",
    "setup",
    "shard",
    "shard_sampler",
    "sum_all",
    "sum_loss",
    "sum_term",
    "sync_buffers",
    "unwrap",
    "weight_of",
    "weighted_loss",
    "weighted_mean",
    "whole",
    "worker_number",
    "world_size",
    "wrap",
]
