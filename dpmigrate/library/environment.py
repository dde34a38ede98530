"""Variables of the environment, read and set
(https://docs.python.org/3/library/os.html#os.environ).
"""

from __future__ import annotations

from dpmigrate.execution.joins import join
from dpmigrate.execution.values import NONE, NOTHING, Const, Setting, Value, known, value
from dpmigrate.library.sites import Row, Site
from dpmigrate.library.stdlib import per_rank

_DOC = "https://docs.python.org/3/library/os.html#os.environ"
#: the event of variables that are set: what each is given, by its name (``$CUDA_VISIBLE_DEVICES``)
SET = "environment set"


def variable(site: Site) -> Value:
    """``os.environ.get(name)``: the same on every rank but for what torchrun sets."""
    name = known(site.get(0) or NOTHING)
    if name in ("RANK", "LOCAL_RANK", "GROUP_RANK"):
        return per_rank(name)(site) or NOTHING
    default = site.get(1)
    return join(value(Setting(str(name or ""))), default or NOTHING)


def variable_set(site: Site) -> Value:
    """``os.environ[name] = text``, ``os.putenv(name, text)``."""
    given = site.get(1, "value") or NOTHING
    _told(site, {str(known(site.get(0, "key") or NOTHING)): given})
    return given if site.word == "setdefault" else NONE


def variables_set(site: Site) -> Value:
    """``os.environ.update({name: text}, name=text)``."""
    for made in site.m.objects(site.get(0) or NOTHING):
        entries = site.m.heap.names(made.number)
        _told(site, {str(n.value): given for n, given in entries if isinstance(n, Const)})
    _told(site, site.arguments.keywords)
    return NONE


def _told(site: Site, variables: dict[str, Value]) -> None:
    site.event(SET, **{f"${name}": given for name, given in variables.items()})


ROWS = (
    Row("os.environ.get os.getenv os.environ.__getitem__", variable, source=_DOC),
    Row("os.environ.__setitem__ os.environ.setdefault os.putenv", variable_set, source=_DOC),
    Row("os.environ.update", variables_set, source=_DOC),
)
