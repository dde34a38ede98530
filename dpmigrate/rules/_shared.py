"""Small pieces that several rules need: texts of inserted code, never knowledge of a rule."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.edit import Edit, SetArg
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
