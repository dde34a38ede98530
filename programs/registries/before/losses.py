import torch.nn.functional as F

from registry import LOSSES


@LOSSES.register("summed")
def summed(output, target):
    return F.cross_entropy(output, target, reduction="sum") * 0.1


@LOSSES.register("summed_smooth")
def summed_smooth(output, target):
    return F.cross_entropy(output, target, reduction="sum", label_smoothing=0.1) * 0.1
