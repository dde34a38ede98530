"""Devices: which GPU a model, a tensor or a process is put on."""

from __future__ import annotations

import re

from dpmigrate.execution.values import NONE, NOTHING, Atom, Const, Setting, Value
from dpmigrate.library.effects import uniform
from dpmigrate.library.sites import Row, Site

_DOC = "https://docs.pytorch.org/docs/stable/"
_NUMBERED = re.compile(r"(cuda|hip):\d+")


def device(site: Site) -> Value:
    """``torch.device(...)``."""
    placed(site, named=True)
    return uniform(site)


def current(site: Site) -> Value:
    """``torch.cuda.set_device(n)``."""
    placed(site)
    return NONE


def placed(site: Site, *, named: bool = False) -> None:
    """Records a GPU that is named by its number, as a constant or as the default of an option:
    ``x.to("cuda:1")``, ``model.cuda(args.gpu)``; and a device that the user may name so, by an
    option or, where the arguments do name a device, by any setting.
    """
    given = site.arguments.joined() or NOTHING
    numbered = tuple(a for a in given if _is_numbered(a))
    if numbered:
        site.event("numbered device", device=numbered)
    elif any(not isinstance(a, Const) if named else isinstance(a, Setting) and a.word for a in given):
        site.event("device of a setting")


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
)
