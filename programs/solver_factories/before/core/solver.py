import torch
from torch.optim.lr_scheduler import LambdaLR


def make_optimizer(cfg, model):
    params = []
    for key, value in model.named_parameters():
        if not value.requires_grad:
            continue
        lr, weight_decay = cfg["BASE_LR"], cfg["WEIGHT_DECAY"]
        if "bias" in key:
            lr, weight_decay = lr * cfg["BIAS_FACTOR"], 0.0
        params += [{"params": [value], "lr": lr, "weight_decay": weight_decay}]
    return torch.optim.SGD(params, momentum=0.9)


def make_lr_scheduler(cfg, optimizer, steps_per_epoch):
    warmup = cfg["WARMUP_EPOCHS"] * steps_per_epoch
    total = cfg["EPOCHS"] * steps_per_epoch

    def factor(step):
        if step < warmup:
            return (step + 1) / warmup
        return 1 - (step - warmup) / (total - warmup + 1)

    return LambdaLR(optimizer, factor)
