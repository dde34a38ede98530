"""What is called as right as the right result is shown by a rule; what shows on a GPU alone is not."""

from __future__ import annotations

import pytest

from tests.mutation import static
from tests.mutation.outcomes import Outcome, Result
from tests.mutation.subjects import Key, opened


def _judged(id: str) -> Result:
    case, script = id.split(":")[0].split("/", 1)
    with opened(Key(case, script)) as subject:
        (found,) = static.judged(subject, {id})
        return found


@pytest.mark.parametrize(
    "id",
    [
        "grad_accumulation/train.py:DPM210:ddp.seed_ranks:missing:1",  # nothing is drawn
        "dp_moves_the_batch/train.py:DPM221:.to():missing:1",  # into the wrapper
        "dp_if_device_count/train.py:DPM101:ddp.wrap:other side:1",
        "model_read_by_a_method/train.py:DPM601:ddp.sync_buffers:missing:1",  # no BatchNorm
        "evaluation_in_another_file/train.py:DPM610:ddp.from_main:missing:1",
        "amp_existing_cuda_amp/train.py:DPM316:Replace:missing:1",
        "gan_functional/train.py:DPM210:ddp.seed_ranks:one level in:1",  # other streams in each epoch
        "loader_inline_dataset/train.py:DPM210:ddp.seed_ranks:missing:1",  # samples have seeds of their own
        "sum_loss/train.py:DPM613:ddp.world_size:one level in:1",
        "loss_class_weights/train.py:DPM302:ddp.weighted_mean:part missing:2",
        "seed_from_clock/train.py:DPM209:ddp.from_main:one level in:1",
        "gan_of_several_files/train.py:DPM102:ddp.wrap:too late:1",
        "moved_by_the_helper/train.py:DPM402:ddp.barrier:missing:1",  # the ranks meet in between
        "amp_existing_clip/train.py:DPM313:.unscale_():missing:1",
        "eval_best_and_early_stop/train.py:DPM602:ddp.sum_all:missing:1",  # its total is not read
        "evaluation_by_next/train.py:DPM210:ddp.seed_ranks:missing:1",  # rank 0 tells of an evaluation in full
        "evaluation_of_training_set/train.py:DPM221:.to():missing:1",  # moved before
        "last_batch_left/train.py:DPM210:ddp.seed_ranks:too early:1",  # seeded after it, and nothing is drawn
        "task_of_each_step/train.py:DPM210:ddp.seed_ranks:missing:1",  # one task for all ranks
        "method_without_parameters/train.py:DPM205:.set_epoch():missing:1",  # nothing is shuffled
        "main_in_a_try/train.py:DPM322:raise:too early:1",
        "losses_of_pairs/train.py:DPM302:ddp.batch_rows:one level in:4",
        "model_returns_loss/train.py:DPM202:ddp.local_batch:one level in:1",
        "amp_in_another_file/train.py:DPM321:.autocast():a statement more:1",
        "masked_patches/train.py:DPM602:ddp.mean_all:too late:1",  # the loss is that of all ranks already
        "cache_built_when_missing/train.py:DPM516:ddp.main_first:a statement more:1",
    ],
)
def test_right_all_the_same(id: str) -> None:
    found = _judged(id)
    assert (found.outcome, bool(found.why)) == (Outcome.EQUIVALENT, True)


@pytest.mark.parametrize(
    "id",
    [
        "cast_after_wrap/train.py:DPM102:ddp.wrap:other side:1",  # cast after its wrap
        "dp_copies_counted/train.py:DPM134:Replace:missing:2",  # another loss on several GPUs
    ],
)
def test_wrong_and_not_seen(id: str) -> None:
    assert _judged(id).outcome is Outcome.PASSED


@pytest.mark.parametrize(
    "id",
    [
        "options_and_factories/train.py:DPM205:.set_epoch():too late:1",  # one of several samplers, after its first pass
        "accumulation_by_counter/train.py:DPM308:ddp.accumulate:one level out:1",
        "split_by_hash/train.py:DPM223:ddp.same_hash:missing:3",  # in an evaluation
        "split_by_system/train.py:DPM209:Replace:missing:1",
        "losses_of_sums/train.py:DPM302:ddp.batch_sum:missing:1",  # beside a loss whose scale is told
        "eval_tables_by_class/train.py:DPM601:ddp.sum_all:part missing:7",  # a count of samples
        "next_free_folder/train.py:DPM506:ddp.from_main:missing:1",  # the ranks race
        "next_free_folder/train.py:DPM506:ddp.from_main:one level in:1",  # each rank asks for itself
    ],
)
def test_seen_by_the_judge(id: str) -> None:
    assert _judged(id).outcome is Outcome.REFUSED
