"""Devices: which GPU a model, a tensor or a process is put on."""

from __future__ import annotations

import re

from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    SETTING,
    Atom,
    Const,
    Method,
    Setting,
    Unknown,
    Value,
    const,
    value,
)
from dpmigrate.library.effects import uniform
from dpmigrate.library.sites import Row, Site

_DOC = "https://docs.pytorch.org/docs/stable/"
#: ``torch.device("mps")``
_MPS = Setting("the device mps", Const("str", "mps"))
#: a device that is chosen already: ``x.device``, ``ddp.device()``
DEVICE: Value = (Setting("a device"),)
#: what the program is given from outside, or code that is not seen gives it
_OUTSIDE = (Setting, Method, Unknown)
_NUMBERED = re.compile(r"(cuda|hip):\d+")


def device(site: Site) -> Value:
    """``torch.device(...)``."""
    placed(site)
    given = site.arguments.joined()
    if any(not isinstance(a, Const) for a in given):
        site.event("device of a setting")
    if given == const("mps"):
        return value(_MPS)
    found = uniform(site)
    return DEVICE if found == SETTING else found


def chosen(site: Site) -> Value:
    """``x.device``, ``ddp.device()``, ``torch.cuda.current_device()``: after ``ddp.setup()`` that of the rank."""
    return DEVICE


def current(site: Site) -> Value:
    """``torch.cuda.set_device(n)``."""
    placed(site)
    return NONE


def placed(site: Site, given: Value | None = None) -> None:
    """Records a GPU that is named by its number, as a constant or as the default of an option:
    ``x.to("cuda:1")``, ``model.cuda(args.gpu)``. ``given``: what names the device, if not any
    argument may.
    """
    given = site.arguments.joined() if given is None else given
    numbered = tuple(a for a in given or NOTHING if _is_numbered(a))
    if numbered:
        site.event("numbered device", device=numbered)


def model_placed(site: Site) -> None:
    """``model.to(device)``: a numbered GPU, or one that the user may name so, by an option or in
    a file of settings.
    """
    placed(site)
    given = site.arguments.joined() or NOTHING
    if any(isinstance(a, _OUTSIDE) and a not in (_MPS, *DEVICE) for a in given):
        site.event("device of a setting")
    if given and all(a in (_MPS, *const("mps")) for a in given):
        site.event("unsupported device", device=const("mps"))


def _is_numbered(atom: Atom) -> bool:
    held = atom.default if isinstance(atom, Setting) else atom
    if not isinstance(held, Const):
        return False
    if held.type == "str":
        return _NUMBERED.fullmatch(held.value) is not None
    return held.type == "int" and held.value >= 0


ROWS = (
    Row("torch.device", device, source=_DOC + "tensor_attributes.html#torch.device"),
    Row("torch.cuda.set_device", current, source=_DOC + "cuda.html"),
    Row("""
torch.cuda.current_device torch.xpu.current_device torch.cpu.current_device
torch.accelerator.current_device_index torch.accelerator.current_device_idx
""", chosen, source=_DOC + "cuda.html"),
)
