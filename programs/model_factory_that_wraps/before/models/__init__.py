import torch

from .conv import *
from .mlp import *
from .attention import *


def create_model(arch, num_classes, opt):
    if arch == "conv":
        model = SmallConv(num_classes)
    elif arch == "mlp":
        model = MLP(64, num_classes)
    elif arch == "attention":
        model = AttentionPool(num_classes=num_classes)
    else:
        raise ValueError("unknown architecture: %s" % arch)

    print("%s has %d parameters" % (arch, sum(p.numel() for p in model.parameters())))
    if opt.cuda:
        model = model.cuda()
        if torch.cuda.device_count() > 1:
            model = torch.nn.DataParallel(model)
    return model
