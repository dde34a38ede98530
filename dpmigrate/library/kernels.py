"""Kernels of libraries for attention and state spaces: functions of tensors whose first axis runs over
the samples.

They take ``(samples, places, heads, features)``, so attention goes over the second axis, unlike
torch's, which goes over the last axis but one.
"""

from __future__ import annotations

from collections.abc import Iterable

from dpmigrate.execution import placements
from dpmigrate.execution.placements import Kind, Placement
from dpmigrate.execution.values import NONE, Value, const, items, placement_of
from dpmigrate.library.axes import rows_of
from dpmigrate.library.effects import unestablished
from dpmigrate.library.sites import Effect, Row, Site, prefixed
from dpmigrate.library.streams import drawing

_XFORMERS = "https://facebookresearch.github.io/xformers/components/ops.html"
_FLASH = "https://github.com/Dao-AILab/flash-attention"
_MAMBA = "https://github.com/state-spaces/mamba"
_SAGE = "https://github.com/thu-ml/SageAttention"
#: what tells how likely an element of the attention is left out, by the libraries
_DROPOUT = ("p", "dropout_p")


def _together(lying: Iterable[Placement]) -> Placement | None:
    """How tensors lie that have the samples first; None where one of them has not."""
    moving = [p for p in lying if p.kind not in placements.EQUAL]
    if any(p.kind is not Kind.ROWS or p.axis for p in moving):
        return None
    return placements.joined(moving) if moving else placements.UNIFORM


def samples_first(axes: int | None = None, *, more: str = "") -> Effect:
    """A function of tensors that each have the samples first, or are the same on all ranks.

    ``axes`` is how many the result has, None for as many as the first operand; with the option
    ``more`` it gives a second result.
    """

    def effect(site: Site) -> Value:
        operands = site.operands()
        p = _together(map(placement_of, operands))
        if p is None:
            return site.unknown(f"whether samples meet in {site.word}")
        found = rows_of(operands[0]) if operands else None
        own = axes if axes is not None else found.axes if found is not None else None
        made = site.data(p, kind="tensor", axes=own, keep_axes=False)
        asked = site.get(-1, more) if more else None
        if asked in (None, NONE, const(False)):
            return made
        if asked != const(True):
            return site.unknown(f"how many results {site.word} gives")
        return items([made, site.data(p, kind="tensor", keep_axes=False)])

    return effect


def attention(axes: int | None = None) -> Effect:
    """An attention that may leave elements out at random."""
    plain = samples_first(axes)

    def effect(site: Site) -> Value | None:
        if site.arguments.keywords.get("return_attn_probs", NONE) not in (NONE, const(False)):
            return site.unknown(f"how many results {site.word} gives")
        chance = next((v for n in _DROPOUT if (v := site.arguments.keywords.get(n))), const(0.0))
        return plain(site) if chance in (const(0.0), const(0)) else drawing("torch", plain)(site)

    return effect


ROWS = (
    Row("xformers.ops.memory_efficient_attention xformers.ops.fmha.memory_efficient_attention",
        attention(), source=_XFORMERS),
    Row(prefixed("flash_attn.", """
flash_attn_func flash_attn_kvpacked_func flash_attn_qkvpacked_func
flash_attn_interface.flash_attn_func flash_attn_interface.flash_attn_kvpacked_func
flash_attn_interface.flash_attn_qkvpacked_func
"""), attention(4), source=_FLASH),
    Row(prefixed("flash_attn.", """
flash_attn_varlen_func flash_attn_varlen_qkvpacked_func flash_attn_varlen_kvpacked_func
"""), unestablished("which samples the places of packed sequences belong to"), source=_FLASH),
    Row("sageattention.sageattn", attention(4), source=_SAGE),
    Row(prefixed("mamba_ssm.ops.selective_scan_interface.", "selective_scan_fn selective_scan_ref"),
        samples_first(3, more="return_last_state"), source=_MAMBA),
    Row("causal_conv1d.causal_conv1d_fn causal_conv1d.causal_conv1d_interface.causal_conv1d_fn",
        samples_first(3), source="https://github.com/Dao-AILab/causal-conv1d"),
)  # fmt: skip
