"""The file system: one for all ranks, which come to it at different times."""

from __future__ import annotations

from dpmigrate.execution import placements
from dpmigrate.execution.machine import PROCESS
from dpmigrate.execution.trace import Parting
from dpmigrate.execution.values import NONE, SETTING, Data, Origin, Value, const, value
from dpmigrate.library import streams
from dpmigrate.library.effects import plain, switched, uniform
from dpmigrate.library.natures import FOLDER
from dpmigrate.library.sites import Row, Site, methods

_DOC = "https://docs.python.org/3/library/os.html"
_RUNTIME = "README.md#the-runtime"
#: a field of the process: whether rank 0 was here before the other ranks come
FIRST = (PROCESS, "rank 0 first")
#: why the ranks find other files inside ``with ddp.main_first():``
MADE_BEFORE = "what rank 0 has made before"


def asked(site: Site) -> Value:
    """``os.path.exists(p)``: what rank 0 has just made the others find. Elsewhere ranks are taken
    to find the same.
    """
    if any(site.m.depends(v).kind not in placements.EQUAL for v in site.all()):
        return plain(site)
    held = site.m.heap.read(FIRST)
    if not held or const(True)[0] not in held:
        return SETTING
    origin = Origin(site.node, MADE_BEFORE)
    return value(Data("number", placements.PER_RANK, origin=origin))


def folder_made(site: Site) -> Value:
    """``os.mkdir(p)``: who comes first makes it, and for the others it fails."""
    anew = site.constant(-1, "exist_ok") is not True
    handled = site.m.heap.watching  # what it raises where the folder is there
    where = value(site.receiver) if site.receiver is not None else site.get(0) or NONE
    site.event("files", paths=where, anew=const(anew and not handled))
    if anew:
        site.m.control.append(Parting(Origin(site.node, FOLDER), False))
        site.m.raises()
        site.m.control.pop()
    return NONE


def main_folder(site: Site) -> Value:
    """``ddp.main_folder(TemporaryDirectory())``: the path of rank 0's, on every rank; all wait at
    the end.
    """
    site.event("collective", name=const(site.word))
    return site.ref("main folder")


def main_folder_left(site: Site) -> Value:
    """The end of ``with ddp.main_folder(…):``."""
    site.event("collective", name=const("barrier"))
    return NONE


first, entered, _left = switched("main first", (FIRST,), const(True))


def begun(site: Site) -> Value | None:
    """``with ddp.main_first():`` begins."""
    assert site.object is not None
    for at in streams.OWN.values():
        outside = site.m.heap.read(at) or const(False)
        site.m.heap.write((site.object.number, ("before", at)), outside)
    return entered(site)


def left(site: Site) -> Value | None:
    """It ends: where the ranks had one stream, the others go on with what rank 0 has made of it."""
    assert site.object is not None
    for at in streams.OWN.values():
        if site.m.heap.read((site.object.number, ("before", at))) == const(False):
            site.m.heap.write(at, const(False))
    return _left(site)


ROWS = (
    Row("""
os.path.exists os.path.isfile os.path.isdir os.path.islink os.path.lexists os.path.getsize
os.path.getmtime os.listdir os.scandir os.walk os.access os.stat glob.glob glob.iglob
""", asked, source=_DOC),
    Row(methods("str|text|setting", """
exists is_file is_dir glob rglob iterdir stat
"""), asked, source="https://docs.python.org/3/library/pathlib.html"),
    Row("os.makedirs os.mkdir", folder_made, source=_DOC),
    Row(methods("str|text|setting", "mkdir"), folder_made, source=_DOC),
    Row("dpmigrate_runtime.main_first", first, source=_RUNTIME),
    Row("<main_first>.__enter__", begun, source=_RUNTIME),
    Row("<main_first>.__exit__", left, source=_RUNTIME),
    Row("dpmigrate_runtime.main_folder", main_folder, source=_RUNTIME),
    Row("<main_folder>.__enter__", uniform, source=_RUNTIME),
    Row("<main_folder>.__exit__", main_folder_left, source=_RUNTIME),
)  # fmt: skip
