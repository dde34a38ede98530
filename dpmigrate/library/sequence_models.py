"""Layers of libraries beside torch that go along a sequence: fields that tag it, state spaces.

What stands here is made by a class of a library, and called as one of torch's layers.
"""

from __future__ import annotations

from dpmigrate.execution import placements
from dpmigrate.execution.objects import Object
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.values import NONE, NOTHING, Ref, Value, const, known, placement_of, value
from dpmigrate.library.axes import rows_of
from dpmigrate.library.modules import MODEL
from dpmigrate.library.pure import computed
from dpmigrate.library.sites import Effect, Row, Site

_TORCHCRF = "https://pytorch-crf.readthedocs.io/en/stable/"
_ALLENNLP = "https://docs.allennlp.org/main/api/modules/conditional_random_field/"
_MAMBA = "https://github.com/state-spaces/mamba"
#: what a module of such a class does, a field of it
_DOES = "#does"


def made_of(word: str) -> Effect:
    """A module that does what ``CALLED`` says under a word."""

    def effect(site: Site) -> Value:
        made = site.made("module", extra=MODEL)
        site.m.heap.write((made.number, _DOES), const(word))
        first = site.get(1, "batch_first") if word == "field" else const(True)
        site.m.heap.write((made.number, "=batch_first"), first or const(False))
        return value(Ref(made.number))

    return effect


def called(site: Site, made: Object) -> Value | None:
    """What a module of such a class gives; None where it is another one."""
    held = site.m.heap.read((made.number, _DOES))
    does = known(held) if held else None
    if does in ("field", "sum", "none"):
        return _tagged(site, made, "sum" if does == "field" else does)
    return _along(site) if does == "along" else None


def _along(site: Site) -> Value:
    """``Mamba(x)``: each sequence by itself, from its first place on."""
    found = rows_of(site.get(0) or NOTHING)
    if found is None:
        return site.each()
    p = found.placement if found.placement.axis == 0 else placements.PER_RANK
    return site.data(p, axes=3, keep_axes=False)


def _tagged(site: Site, made: Object, default: str) -> Value:
    """``crf(emissions, tags, mask, reduction)``: how likely the tags of each sequence are."""
    first = known(site.m.bound(site.m.heap.read((made.number, "=batch_first")) or NOTHING))
    axis = 0 if first else 1
    mask = site.get(2, "mask") or NONE
    given = [site.get(0, "emissions") or NOTHING, site.get(1, "tags") or NOTHING, mask]
    lying = [placement_of(site.flat(v)) for v in given if v != NONE]
    rows = [p for p in lying if p.kind is Kind.ROWS]
    p = placements.elementwise(q._replace(axis=0) if q in rows else q for q in lying)
    reduction = known(site.get(3, "reduction") or site.get(-1, "reduce") or const(default))
    reduction = {True: "sum", False: "none"}.get(reduction, reduction)
    if p.kind is Kind.ROWS:
        if not isinstance(first, bool):
            return site.unknown(f"whether {site.word} takes the samples first")
        if any(q.axis != axis for q in rows) or (p.padded and mask == NONE):
            p = placements.PER_RANK  # every place counts, those that are filled up as well
        else:
            match reduction:
                case "none":
                    p = placements.rows(ragged=p.ragged, times=p.times, segments=p.segments)
                case "sum":
                    p = placements.SUM
                case "mean":
                    p = placements.mean_over(p._replace(padded=False))
                case "token_mean":
                    p = placements.MEAN if mask == NONE and not p.ragged else placements.RATIO
                case _:
                    return site.unknown("the reduction of a loss")
    axes = 1 if reduction == "none" else 0
    return site.data(p, kind="tensor", axes=axes, keep_axes=False)


ROWS = (
    Row("torchcrf.CRF", made_of("field"), source=_TORCHCRF),
    Row("allennlp.modules.ConditionalRandomField"
        " allennlp.modules.conditional_random_field.ConditionalRandomField"
        " allennlp.modules.conditional_random_field.conditional_random_field.ConditionalRandomField",
        made_of("sum"), source=_ALLENNLP),
    Row("allennlp.modules.conditional_random_field.allowed_transitions"
        " allennlp.modules.conditional_random_field.conditional_random_field.allowed_transitions",
        computed, source=_ALLENNLP),
    Row("TorchCRF.CRF", made_of("none"), source="https://github.com/rikeda71/TorchCRF"),
    Row("mamba_ssm.Mamba mamba_ssm.Mamba2 mamba_ssm.modules.mamba_simple.Mamba"
        " mamba_ssm.modules.mamba2.Mamba2", made_of("along"), source=_MAMBA),
)  # fmt: skip
