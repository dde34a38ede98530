"""Layers of libraries that keep something of the batches which they see, beside BatchNorm: observers of quantisation, running statistics, rescaled weights."""

from __future__ import annotations

from dpmigrate.execution.machine import Machine
from dpmigrate.execution.objects import Object
from dpmigrate.execution.values import NONE, Ref, Setting, Value, const, value
from dpmigrate.library.module_tree import is_module
from dpmigrate.library.sites import Site

#: a field of a module: it, or a layer in it, keeps ranges of the values that it sees
OBSERVED = "mode observed"
#: an event: layers are put into a model, or made, that keep something of the batches
OBSERVES = "observes batches"
#: an event: the rows of a weight that are asked for are scaled in place
RESCALED = "rescaled"
#: layers with running statistics if they are told so: the place and name of that argument
_RUNNING = dict.fromkeys((f"InstanceNorm{n}d" for n in (1, 2, 3)), (4, "track_running_stats"))
#: layers that scale the rows which they look up to a greatest norm: the place and name of that argument
_SCALING = {"Embedding": (3, "max_norm"), "EmbeddingBag": (2, "max_norm")}


def observed(site: Site, v: Value) -> None:
    """From now on the modules that a value may be keep something of their batches."""
    made = [o for o in site.m.objects(v) if is_module(site.m, o)]
    for one in made:
        site.m.heap.write((one.number, OBSERVED), const(True))
    site.event(OBSERVES, module=v)


def keeps(m: Machine, made: Object, name: str) -> bool:
    """Whether a module keeps something of its batches, so that its buffers go by a rank's part of them; ``name`` is that of its layer."""
    if m.heap.read((made.number, OBSERVED)):
        return True
    place, word = _RUNNING.get(name.removeprefix("Lazy"), (0, ""))
    return bool(word) and _given(m, made, place, word) == const(True)


def looked_up(site: Site, made: Object, name: str) -> None:
    """A layer looks up rows of its weight; with a greatest norm it scales them in place, in evaluations too."""
    place, word = _SCALING.get(name, (0, ""))
    if word and _set(_given(site.m, made, place, word)):
        site.event(RESCALED, given=site.get(0, "input") or (), weight=value(Ref(made.number)))


def scaled(site: Site) -> None:
    """``F.embedding(x, weight, max_norm=1.0)``: the same of a weight that is given."""
    if _set(site.get(3, "max_norm") or NONE):
        site.event(RESCALED, given=site.get(0, "input") or (), weight=site.get(1, "weight") or ())


def _given(m: Machine, made: Object, place: int, word: str) -> Value:
    return m.heap.read((made.number, f"={word}")) or m.heap.read((made.number, f"={place}")) or NONE


def _set(v: Value) -> bool:
    """Whether an option of a layer is certainly given."""
    return bool(v) and NONE[0] not in v and not any(isinstance(a, Setting) and (a.default is None or (a.default,) == NONE) for a in v)
