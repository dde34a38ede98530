import torch
import dpmigrate_runtime as ddp


def overlap(pred, truth, whole_batch=False, smooth=1e-6):
    assert pred.size() == truth.size()
    axes = (-1, -2, -3) if whole_batch else (-1, -2)
    both = 2 * (pred * truth).sum(dim=axes)
    each = pred.sum(dim=axes) + truth.sum(dim=axes)
    each = torch.where(ddp.batch_sum(each) == 0, ddp.batch_sum(both), ddp.batch_sum(each))
    return ((ddp.batch_sum(both) + smooth) / (each + smooth)).mean()


def overlap_of_classes(pred, truth, whole_batch=False, smooth=1e-6):
    return overlap(pred.flatten(0, 1), truth.flatten(0, 1), whole_batch, smooth)


def overlap_loss(pred, truth, several=False):
    measure = overlap_of_classes if several else overlap
    return 1 - measure(pred, truth, whole_batch=True)
