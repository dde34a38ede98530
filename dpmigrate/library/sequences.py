"""Layers that go along a sequence: recurrent ones, attention, transformers.

The axis of the samples is the second one, or the first with ``batch_first``
(https://docs.pytorch.org/docs/stable/nn.html#recurrent-layers). Tensors of 2 axes are one sequence
without a batch; what is given samples and is not known to have 2 axes is taken to have 3.
"""

from __future__ import annotations

from dpmigrate.execution import broadcasting, derivation, placements
from dpmigrate.execution.joins import join
from dpmigrate.execution.objects import Object
from dpmigrate.execution.placements import Kind, Placement
from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    SETTING,
    Data,
    Origin,
    Value,
    const,
    data,
    items,
    known,
    only,
    origins,
    placement_of,
)
from dpmigrate.library.axes import rows_of
from dpmigrate.library.shapes import with_lengths
from dpmigrate.library.sites import PADDING, Site

RECURRENT = ("LSTM", "GRU", "RNN")
CELLS = ("LSTMCell", "GRUCell", "RNNCell")
TRANSFORMER = "Transformer"
ATTENDING = (
    "MultiheadAttention", TRANSFORMER, "TransformerEncoder", "TransformerDecoder",
    "TransformerEncoderLayer", "TransformerDecoderLayer",
)  # fmt: skip
#: the origin of last states that have gone through what a rank's batch is padded with
_LAST = "last states over padding"
#: the place of ``batch_first`` among the arguments of a layer
_PLACES = {
    "LSTM": 4, "GRU": 4, "RNN": 5, "MultiheadAttention": 8, TRANSFORMER: 10,
    "TransformerEncoderLayer": 6, "TransformerDecoderLayer": 6,
}  # fmt: skip
#: the arguments of a call: t is a tensor of sequences, m a mask over places, k one over samples
_ARGUMENTS = {
    "MultiheadAttention": ("t query", "t key", "t value", "k key_padding_mask", "- need_weights",
                           "m attn_mask", "- average_attn_weights"),
    TRANSFORMER: ("t src", "t tgt", "m src_mask", "m tgt_mask", "m memory_mask",
                    "k src_key_padding_mask", "k tgt_key_padding_mask",
                    "k memory_key_padding_mask"),
    "TransformerEncoder": ("t src", "m mask", "k src_key_padding_mask"),
    "TransformerEncoderLayer": ("t src", "m src_mask", "k src_key_padding_mask"),
    "TransformerDecoder": ("t tgt", "t memory", "m tgt_mask", "m memory_mask",
                           "k tgt_key_padding_mask", "k memory_key_padding_mask"),
    "TransformerDecoderLayer": ("t tgt", "t memory", "m tgt_mask", "m memory_mask",
                                "k tgt_key_padding_mask", "k memory_key_padding_mask"),
}  # fmt: skip


def batch_first(site: Site, made: Object, name: str) -> bool | None:
    """Whether a layer takes the samples first; None where that is not known."""
    if name in ("TransformerEncoder", "TransformerDecoder"):
        if said := site.m.heap.read((made.number, "=batch_first")):  # of the halves of a Transformer
            return _answer(site, said)
        word = name.removeprefix("Transformer").lower()
        given = site.m.heap.read((made.number, f"={word}_layer"))
        given = site.m.bound(given or site.m.heap.read((made.number, "=0")) or NOTHING)
        found = {
            batch_first(site, o, o.name)
            for o in site.m.objects(given)
            if o.kind == "module" and o.name == f"{name}Layer"
        }
        whole = len(given) == len(site.m.objects(given))
        return found.pop() if len(found) == 1 and whole else None
    return _answer(site, said_first(site, made.number, name))


def _answer(site: Site, said: Value) -> bool | None:
    answer = known(site.m.bound(said))  # layers of one place are made by one call
    return answer if isinstance(answer, bool) else None


def said_first(site: Site, number: int, name: str) -> Value:
    """What a layer is told of whether it takes the samples first."""
    read = site.m.heap.read
    given = read((number, "=batch_first")) or read((number, f"={_PLACES[name]}"))
    return given or (SETTING if read((number, "=**")) else const(False))


def recurrent(site: Site, made: Object, name: str) -> Value:
    """``LSTM(x, (h, c))``: a tensor for each place, and the last states."""
    first, state = site.flat(site.get(1, "input") or NOTHING), site.get(2, "hx")
    packs = [a for a in first if isinstance(a, Data) and a.kind == "packed"]
    whole = batch_first(site, made, name)
    if whole is None and not packs:
        return site.unknown(f"whether {name} takes the samples first")
    found = rows_of(first)
    states = _states(site, state)
    given = data(state or NOTHING, deep=True)
    if read := tuple(d for d in given if any(o.word == _LAST and o.node is not site.node for o in origins(d.origin))):
        site.event(PADDING, given=read)
    if found is None:
        p = placements.elementwise([placement_of(first), *states])
        axes = next((a.axes for a in first if isinstance(a, Data)), None)
        each = _made(site, p, axes, "tensor")
        return _with_states(name, each, _made(site, p, axes, "tensor"))
    p = found.placement
    axis = 0 if packs else (0 if whole else 1)
    lying = p.kind is Kind.ROWS and p.axis == axis and found.axes != 2
    if packs:
        lying = len(packs) == len(first)
    if lying and (counted := _counted(site, name, first, state, 1)):
        return counted
    fits = all(q.kind in placements.EQUAL or (q.kind is Kind.ROWS and q.axis == 1) for q in states)
    if not lying or not fits:
        lost = any(q.kind is Kind.UNKNOWN for q in states)
        made_of = placements.UNKNOWN if lost else placements.PER_RANK
        each = _made(site, made_of, None, "packed" if packs else "tensor")
        return _with_states(name, each, _made(site, made_of, None, "tensor"))
    both = known(site.m.heap.read((made.number, "=bidirectional")) or NOTHING)
    if p.padded and not packs and both:
        site.event(PADDING, given=first)
    joined = placements.joined([p._replace(axis=1, ragged=False, times=1), *_rows(states)])
    last = _made(site, joined._replace(axis=1), 3, "tensor")
    if p.padded and not packs:
        last = tuple(a._replace(origin=Origin(site.node, _LAST, a.origin)) if isinstance(a, Data) else a for a in last)
    last = with_lengths(last, [_layers(site, made), None, _features(site, made)])
    each = _made(site, p, 2 if packs else 3, "packed" if packs else "tensor")
    return _with_states(name, each, last)


def _field(site: Site, made: Object, *names: str) -> Value:
    """An argument of a layer, under the first of the names that it was given by."""
    held = (site.m.heap.read((made.number, f"={n}")) for n in names)
    return site.m.bound(next((v for v in held if v), NOTHING))


def _layers(site: Site, made: Object) -> int | None:
    """How many last states a recurrent layer gives, where that is a number."""
    if _field(site, made, *"67", "**"):
        return None  # both directions, by their place or of what is not seen
    try:
        layers = only(_field(site, made, "num_layers", "2") or const(1))
        sides = 2 if only(_field(site, made, "bidirectional") or const(False)) else 1
    except LookupError:
        return None
    return layers * sides if type(layers) is int else None


def _features(site: Site, made: Object) -> int | None:
    """How many features a state of a recurrent layer has, where that is a number."""
    if _field(site, made, "proj_size", *"89", "**"):
        return None
    try:
        count = only(_field(site, made, "hidden_size", "1"))
    except LookupError:
        return None
    return count if type(count) is int else None


def _rows(lying: list[Placement]) -> list[Placement]:
    return [p for p in lying if p.kind is Kind.ROWS]


def _states(site: Site, state: Value | None) -> list[Placement]:
    """How the states lie that a recurrent layer begins with."""
    if not state or state == NONE:
        return []
    listed = site.m.known_elements(state) if not isinstance(state[0], Data) else None
    each = listed if listed is not None else [state]
    return [placement_of(site.flat(v)) for v in each]


def _counted(site: Site, name: str, given: Value, state: Value | None, axis: int) -> Value | None:
    """What a recurrent layer gives that begins with states for a number of samples which the program has written
    out: the batch of a rank has fewer. None where the states are others, and where the loader has batches of as
    many: those of an evaluation, and of all ranks where each keeps the batch size.
    """
    loaders = {n for d in data(given) for n in d.sources}
    whole = {known(site.m.heap.read((n, "batch_size")) or NOTHING) for n in loaders}
    listed = site.m.known_elements(state) if state and not isinstance(state[0], Data) else None
    for d in (d for v in (listed if listed is not None else [state or NOTHING]) for d in data(site.flat(v))):
        count = d.lengths[axis] if d.placement.kind is not Kind.ROWS and len(d.lengths) > axis else None
        if count is not None and count > 1 and count not in whole:
            return site.unknown(f"{name} with states of {count} samples, a number in the program that a rank's batch does not have")
    return None


def _made(site: Site, p: Placement, axes: int | None, kind: str) -> Value:
    return derivation.derived(
        site.word, p, site.operands(), site.node, kind=kind, axes=axes, keep_axes=False
    )


def _with_states(name: str, each: Value, last: Value) -> Value:
    return items([each, items([last, last]) if name == "LSTM" else last])


def cell(site: Site, name: str) -> Value:
    """``LSTMCell(x, (h, c))``: the next states of each sample."""
    first, state = site.flat(site.get(1, "input") or NOTHING), site.get(2, "hx")
    found, states = rows_of(first), _states(site, state)
    lying = [placement_of(first), *states]
    if placement_of(first).kind is Kind.ROWS and (counted := _counted(site, name, first, state, 0)):
        return counted
    p = placements.elementwise(lying)
    if p.kind is Kind.ROWS and (p.axis != 0 or (found is not None and found.axes == 1)):
        p = placements.PER_RANK
    made = _made(site, p, 2 if p.kind is Kind.ROWS else None, "tensor")
    return items([made, made]) if name == "LSTMCell" else made


def attending(site: Site, made: Object, name: str) -> Value:
    """Attention and transformers: the samples of all that they are given beside each other."""
    whole = batch_first(site, made, name)
    tensors, masks, paddings = (_given(site, name, letter) for letter in "tmk")
    lying = [placement_of(v) for v in (*tensors, *masks, *paddings)]
    if not any(p.kind is Kind.ROWS for p in lying):
        p = placements.elementwise(lying)
        axes = next((a.axes for v in tensors[:1] for a in v if isinstance(a, Data)), None)
        return _weights(site, name, _made(site, p, axes, "tensor"), p, None)
    if whole is None:
        return site.unknown(f"whether {name} takes the samples first")
    if any(placement_of(v).kind not in placements.EQUAL for v in masks):
        return site.unknown(f"the mask of {name}")
    axis = 0 if whole else 1
    rows = [r for v in tensors if (r := rows_of(v))]
    beside = all(r.placement.axis == axis and r.axes != 2 for r in rows)
    beside = beside and all(r.placement.axis == 0 for v in paddings if (r := rows_of(v)))
    p = placements.elementwise(
        p._replace(axis=axis) if p.kind is Kind.ROWS else p for p in lying
    )
    if not beside and p.kind is Kind.ROWS:
        p = placements.PER_RANK
    if p.kind is Kind.ROWS and p.padded and not masks and not paddings:
        site.event(PADDING, given=join(*tensors))
    axes = 3 if p.kind is Kind.ROWS else None
    return _weights(site, name, _made(site, p, axes, "tensor"), p, axes)


def _given(site: Site, name: str, letter: str) -> list[Value]:
    """The arguments of a kind."""
    places = enumerate(_ARGUMENTS[name])
    given = [site.get(i + 1, word[2:]) for i, word in places if word[0] == letter]
    return [f for v in given if v and (f := site.flat(v))]


def _weights(site: Site, name: str, result: Value, p: Placement, axes: int | None) -> Value:
    """``MultiheadAttention`` gives its weights beside, one or several for each sample."""
    if name != "MultiheadAttention":
        return result
    if site.get(5, "need_weights") == const(False):
        return items([result, NONE])
    plain = site.get(7, "average_attn_weights") in (None, const(True))
    lying = p._replace(axis=0) if p.kind is Kind.ROWS else p
    return items([result, _made(site, lying, 3 if plain and axes else None, "tensor")])


def packed(site: Site) -> Value:
    """``pack_padded_sequence(x, lengths, batch_first)``: the places of all samples, one behind
    the other.
    """
    first = site.flat(site.get(0) or NOTHING)
    found = rows_of(first)
    if found is None:
        return site.data(placements.elementwise(broadcasting.aligned([first])), kind="packed",
                         keep_axes=False)  # fmt: skip
    if site.word == "pack_padded_sequence":
        flag = site.get(2, "batch_first") or const(False)
        answer = known(flag)
        if not isinstance(answer, bool):
            return site.unknown("whether packed sequences have the samples first")
        if found.placement.axis != (0 if answer else 1):
            return site.data(placements.PER_RANK, kind="packed", keep_axes=False)
    p = found.placement._replace(axis=0, ragged=True, times=0, padded=False)
    axes = found.axes - 1 if found.axes else None
    return site.data(p, kind="packed", axes=axes, keep_axes=False)


def packed_part(site: Site) -> Value:
    """``packed.data``: the places of all samples; the numbers of places of each turn."""
    given = site.get(0) or NOTHING
    if site.word == "data":
        return tuple(a._replace(kind="tensor") if isinstance(a, Data) else a for a in given)
    return site.unknown(f"the {site.word} of packed sequences")


def unpacked(site: Site) -> Value:
    """``pad_packed_sequence``: the rows, and the lengths."""
    answer = known(site.get(1, "batch_first") or const(False))
    found = rows_of(site.flat(site.get(0) or NOTHING))
    if found is None:
        p = placements.elementwise(placement_of(v) for v in site.operands())
        return items([_made(site, p, None, "tensor"), _made(site, p, 1, "tensor")])
    if not isinstance(answer, bool):
        return site.unknown("whether padded sequences have the samples first")
    p = placements.rows(segments=found.placement.segments)
    padded = site.get(3, "total_length") in (None, NONE)  # to the longest that the rank has
    made = _made(site, p._replace(axis=0 if answer else 1, padded=padded), 3, "tensor")
    lengths = derivation.derived(
        "lengths", p, site.operands(), site.node, kind="tensor", gradient="none", axes=1
    )
    return items([made, lengths])


def mask_made(site: Site) -> Value:
    """``generate_square_subsequent_mask(n)``: the same on all ranks where n is."""
    size = site.get(site.receiver is not None, "sz") or NOTHING
    if placement_of(size).kind in placements.EQUAL:
        return (Data("tensor", placements.UNIFORM, axes=2),)
    return site.unknown("the size of a mask")
