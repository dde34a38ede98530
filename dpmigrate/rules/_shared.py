"""Small pieces that several rules need: texts of inserted code, never knowledge of a rule."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.edit import Edit, SetArg, Wrap
from dpmigrate.facts import steps
from dpmigrate.facts.losses import Norm
from dpmigrate.facts.script import Script

#: DataLoader's parameters in order (torch.utils.data.DataLoader)
LOADER_PARAMETERS = (
    "dataset", "batch_size", "shuffle", "sampler", "batch_sampler", "num_workers", "collate_fn", "pin_memory", "drop_last", "timeout", "worker_init_fn",
)  # fmt: skip


def wrap_arguments(script: Script, call: ast.Call) -> Iterator[Edit]:
    if script.settings.sync_bn:
        yield SetArg(script.span(call), "sync_bn", "True")


def wrap_code(script: Script, target: str) -> str:
    """``ddp.wrap(target)`` with the options of the settings."""
    return f"{script.ddp}.wrap({target}{', sync_bn=True' if script.settings.sync_bn else ''})"


def downloads(script: Script, node: ast.AST) -> bool:
    """Whether running the node may fetch files: a data set with ``download=``, pretrained weights, a hub."""
    for c in ast.walk(node):
        if not isinstance(c, ast.Call):
            continue
        for k in c.keywords:
            off = isinstance(k.value, ast.Constant) and not k.value.value
            if k.arg in ("download", "pretrained") and not off:
                return True
            if k.arg == "weights" and not off and script.names.dotted(c.func).startswith("torchvision."):
                return True
        name = c.func.attr if isinstance(c.func, ast.Attribute) else c.func.id if isinstance(c.func, ast.Name) else ""
        dotted = script.names.dotted(c.func)
        if name == "from_pretrained" or dotted.startswith(("torch.hub.load", "torch.hub.download", "nltk.download", "gdown.", "torch.utils.model_zoo.")):
            return True
        if dotted.endswith((".urlretrieve", ".download_url", "datasets.load_dataset", ".snapshot_download", ".hf_hub_download")):
            return True
    return False


def scaler_name(script: Script) -> str:
    """The expression for the GradScaler of ``--amp`` in the training step."""
    found = steps.steps(script.roles)
    receiver = found[-1].receiver if found else None
    if isinstance(receiver, ast.Attribute) and isinstance(receiver.value, ast.Name) and receiver.value.id == "self":
        return "self.scaler"
    return script.fresh("scaler")


def scales(script: Script) -> bool:
    """Whether ``--amp`` brings a GradScaler into this program."""
    return script.settings.amp and script.settings.amp_dtype == "float16" and not script.has_autocast


def scaled_backward(script: Script, backward: ast.Call) -> Edit:
    """What goes round the loss of a backward: times the world size where it is a sum, in the scaler where there is one."""
    assert isinstance(backward.func, ast.Attribute)
    node = backward.func.value
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "scale" and node.args:
        node = node.args[0]  # a scaler of the script's own
    template = f"{script.ddp}.sum_loss({{}})" if script.losses.of_backward(backward).norm is Norm.SUM else "{}"
    return Wrap(script.span(node), f"{scaler_name(script)}.scale({template})" if scales(script) else template)
