"""What a name means that only a star import can have brought: by what stands in the module of torch, and by what is read from the name."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Set

_NAMED = {
    "torch.nn": {"DataParallel", "Module", "CrossEntropyLoss", "MSELoss", "NLLLoss", "BCELoss", "BCEWithLogitsLoss", "Linear", "Conv2d"},
    "torch.utils.data": {"DataLoader", "Dataset", "TensorDataset", "random_split", "Subset"},
    "torch.optim": {"SGD", "Adam", "AdamW", "RMSprop", "Adadelta", "Adagrad", "LBFGS"},
}

#: modules that other files hand on with their own names (``from model import *`` brings ``nn`` and ``t``), with what only they have
_TELLING = {
    "torch": {
        "no_grad",
        "from_numpy",
        "manual_seed",
        "is_tensor",
        "inference_mode",
        "FloatTensor",
        "LongTensor",
        "optim",
        "nn",
        "backends",
        "set_grad_enabled",
    },
    "torch.nn": {
        "Module",
        "DataParallel",
        "Linear",
        "Conv2d",
        "Parameter",
        "Sequential",
        "CrossEntropyLoss",
        "MSELoss",
        "L1Loss",
        "BCELoss",
        "BCEWithLogitsLoss",
    },
    "torch.nn.functional": {"cross_entropy", "log_softmax", "mse_loss", "nll_loss", "l1_loss", "binary_cross_entropy", "smooth_l1_loss", "interpolate"},
    "torch.optim": {"SGD", "Adam", "AdamW", "RMSprop", "Adadelta", "Adagrad", "lr_scheduler"},
}


def meaning(name: str, modules: Iterable[str], read: Set[str]) -> str:
    """The dotted name for a name that nothing binds, in a file with star imports of ``modules``; '' where it cannot be told.

    ``read`` are the attributes that the file reads from the name.
    """
    star = next((m for m in modules if name in _NAMED.get(m, ())), None)
    if star is not None:
        return f"{star}.{name}"
    if not modules or hasattr(builtins, name):
        return ""
    return next((module for module, telling in _TELLING.items() if telling & read), "")
