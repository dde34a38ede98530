from torch import nn


def build_criterion(cfg):
    if cfg["SMOOTHING"] > 0:
        return nn.CrossEntropyLoss(label_smoothing=cfg["SMOOTHING"])
    return nn.CrossEntropyLoss()
