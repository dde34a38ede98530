"""Networks of torchvision that give further outputs while they train: Inception and GoogLeNet, with the
classifiers beside their last one.

Source: https://docs.pytorch.org/vision/stable/models/inception.html, and the code of both in
https://github.com/pytorch/vision/tree/main/torchvision/models
"""

from __future__ import annotations

from dpmigrate.execution.joins import join
from dpmigrate.execution.objects import Object
from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    RESULTS,
    Const,
    Data,
    Foreign,
    Items,
    Value,
    const,
    known,
    value,
)
from dpmigrate.library.modules import library_network
from dpmigrate.library.results import GOOGLENET, INCEPTION, fields_of
from dpmigrate.library.sites import Site

#: a field of such a network: the tuple that it gives
_TUPLE = "#outputs"
#: the attribute by which it goes; a program may set it
_ASKED = "aux_logits"
#: the modules that make the further outputs; a program that takes one away has fewer
_HEADS = ("AuxLogits", "aux1", "aux2")


def network(site: Site) -> Value:
    """``inception_v3(aux_logits=True)``, ``GoogLeNet(10)``."""
    inception = "incep" in site.word.lower()
    asked = _asked(site, inception)
    if asked is None:
        return site.unknown(f"how many outputs the network has, which {_ASKED} says")
    made = library_network(site)
    for o in site.m.objects(made):
        site.m.heap.write((o.number, _ASKED), const(asked))
        site.m.heap.write((o.number, _TUPLE), const(INCEPTION if inception else GOOGLENET))
    return made


def _asked(site: Site, inception: bool) -> bool | None:
    """Whether it has further outputs; None where that is not known."""
    classes = site.word[:1].isupper()
    given = site.arguments.keywords.get(_ASKED) or (site.arguments.get(1) if classes else None)
    if given is not None:
        said = known(given) if len(given) == 1 and isinstance(given[0], Const) else None
        return said if isinstance(said, bool) else None
    if site.arguments.star or site.arguments.stars:
        return None
    if inception or classes:
        return True
    weights = site.arguments.get(0, "pretrained") or site.arguments.keywords.get("weights") or NONE
    if weights in (NONE, const(False)):
        return True
    given_all = all(isinstance(a, Const | Foreign) for a in weights) and len(weights) == 1
    return False if given_all else None  # GoogLeNet with weights has none unless it is asked to


def outputs(site: Site, made: Object, rows: Value) -> Value:
    """What a network gives whose last output are these rows: they alone, unless it trains and has
    further outputs.
    """
    named = site.m.heap.read((made.number, _TUPLE))
    name = known(named) if named else None
    if not isinstance(name, str) or not all(isinstance(a, Data) for a in rows):
        return rows
    last = tuple(a._replace(kind="tensor") if isinstance(a, Data) and a.kind == RESULTS else a for a in rows)
    asked = site.m.heap.read((made.number, _ASKED)) or NOTHING
    if any(site.m.heap.read((made.number, head)) == NONE for head in _HEADS) and asked != const(False):
        return site.unknown("how many outputs the network has")
    mode = site.m.heap.read((made.number, "mode training")) or const(True)
    if asked == const(False) or mode == const(False):
        return last
    several = value(Items((last,) * len(fields_of(name)), named=name))
    return several if asked == mode == const(True) else join(several, last)
