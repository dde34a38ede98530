"""torch.nn: layers and functions by name (https://docs.pytorch.org/docs/stable/nn.html)."""

from __future__ import annotations

from collections.abc import Iterator

from dpmigrate.execution import placements
from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.values import NONE, NOTHING, Value, const, placement_of
from dpmigrate.library import streams
from dpmigrate.library.effects import coupled, elementwise, filled, in_place, same, unestablished
from dpmigrate.library.grids import by_channel, grid, normalised, pooled, prelu, sampled, weighted
from dpmigrate.library.layer_examples import LAYER_EXAMPLES
from dpmigrate.library.layer_table import BASES, LAYERS
from dpmigrate.library.layers import (
    attention,
    constructed,
    embedded,
    foreign_name,
    layer,
    module_called,
    one_hot,
    padded,
    padded_sequence,
    softmax,
)
from dpmigrate.library.products import with_weights
from dpmigrate.library.reductions import along, compared_rows
from dpmigrate.library.sequences import mask_made, packed, packed_part, unpacked
from dpmigrate.library.sites import Row, Site, examples, prefixed

_DOC = "https://docs.pytorch.org/docs/stable/nn.html"
_FUNCTIONAL = "https://docs.pytorch.org/docs/stable/nn.functional.html"


#: initial weights that are not drawn
_GIVEN = ("constant", "zeros", "ones", "eye", "dirac", "calculate_gain")


def weights_drawn(site: Site) -> Value:
    """``nn.init.xavier_uniform_(w)``: weights from torch's stream, but where all are given."""
    weights = site.get(0) or NOTHING
    if site.word.rstrip("_") not in _GIVEN:
        new = streams.drawn(site, "torch", weights)
        site.event("in place", target=weights, new=new)
    elif placement_of(site.flat(site.get(1, "val") or NOTHING)).kind not in placements.EQUAL:
        return in_place(filled)(site) or NONE
    return weights or NONE


def pretrained(site: Site) -> Value:
    """``nn.Embedding.from_pretrained(weights)``: the layer itself."""
    name = site.name.rpartition(".")[0]
    return layer(Site(site.m, name, site.arguments, site.node, site.frame))


def pretrained_like(site: Site) -> Value | None:
    """``embedding.from_pretrained(weights)``: a class method, called by an object: another layer."""
    made = site.object
    name = foreign_name(site.m, made) if made is not None else ""
    if name not in ("Embedding", "EmbeddingBag"):
        return None
    return layer(Site(site.m, f"torch.nn.{name}", site.arguments, site.node, site.frame))


def recomputed(site: Site) -> Value:
    """``checkpoint(f, x)``: the function is called, and called again in backward."""
    given = Arguments(site.arguments.positional[1:], {
        n: v for n, v in site.arguments.keywords.items() if n != "use_reentrant"
    })  # fmt: skip
    return site.m.call(site.get(0) or NOTHING, given, site.node, site.frame)


def called_with(site: Site) -> Value:
    """``functional_call(model, parameters, (x,), kwargs)``: the model, with other parameters."""
    given = site.get(2, "args") or NOTHING
    listed = site.m.known_elements(given)
    return site.m.call(
        site.get(0, "module") or NOTHING, Arguments(listed or [given]), site.node, site.frame
    )


def convolved(site: Site) -> Value:
    """``self._conv_forward(x, weight, bias)``, which a convolution's own forward calls."""
    assert site.object is not None
    count = foreign_name(site.m, site.object).removesuffix("d")[-1:]
    return grid(int(count), mixes=True)(site) or NOTHING if count.isdigit() else site.unknown("a convolution")


def as_vector(site: Site) -> Value:
    """``parameters_to_vector``: the same on every rank."""
    return site.data(placements.UNIFORM)


def _on_grids() -> Iterator[Row]:
    """Convolutions and poolings over 1, 2 and 3 axes; torch has most of them as well."""
    shaped = {1: "x[:, None]", 2: "x.view(-1, 1, 2, 2)", 3: "x.view(-1, 1, 1, 2, 2)"}
    for n, x in shaped.items():
        names = " ".join(f"torch.{w}{n}d torch.nn.functional.{w}{n}d" for w in (
            "avg_pool", "adaptive_avg_pool", "lp_pool", "max_unpool"))  # fmt: skip
        yield Row(names, grid(n), (f"F.avg_pool{n}d({x}, 1)", f"F.adaptive_avg_pool{n}d({x}, 1)"),
                  _FUNCTIONAL)  # fmt: skip
        words = [f"{w}{n}d{more}" for w in ("max_pool", "adaptive_max_pool", "fractional_max_pool")
                 for more in ("", "_with_indices")]  # fmt: skip
        names = " ".join(f"torch.{w} torch.nn.functional.{w}" for w in words)
        yield Row(names, pooled(n), (f"F.max_pool{n}d({x}, 1)",
                  f"F.max_pool{n}d({x}, 1, return_indices=True)[1]"), _FUNCTIONAL)  # fmt: skip
        names = " ".join(f"torch.{w}{n}d torch.nn.functional.{w}{n}d" for w in (
            "conv", "conv_transpose"))  # fmt: skip
        kernel = "w[:, None]" if n == 1 else f"w.view(-1, {', '.join('1' * (n - 2) + '1')}, 2, 2)"
        ones = ", 1" * n
        beside, own = f"x.view(1, -1{ones})", f"y.view(-1, 1{ones})"
        more = (
            f"F.conv{n}d({x}, {kernel})",
            f"F.conv{n}d(x.view(1, x.numel(){ones}), {own}, groups=x.numel())",
            f"F.conv{n}d({beside}, y.view(-1, 4{ones}), groups=x.size(0)).view(x.size(0), -1)",
            f"F.conv{n}d({beside}, y.view(-1, 4{ones}), None, 1, 0, 1, x.shape[0]).transpose(0, 1)",
            f"F.conv{n}d({beside}, y.view(-1, 2{ones}), y[:, :2].reshape(-1), groups=x.size(0) * 2)",
            f"F.conv_transpose{n}d({beside}, y.view(-1, 1{ones}), groups=x.size(0))",
            f"F.conv{n}d({beside}, torch.cat([x, y]).view(-1, 4{ones}), groups=x.size(0))",
        )
        yield Row(names, weighted(n), more, _FUNCTIONAL)


def dropped(site: Site) -> Value | None:
    """``F.dropout(x, p, training)``: draws nothing where ``training`` is False."""
    if (site.get(2, "training") or const(True)) == const(False):
        return elementwise(site)
    return streams.drawing("torch", elementwise)(site)


ROWS = (
    Row("<module>.from_pretrained", pretrained_like, source=_DOC),
    Row("torch.func.functional_call torch.nn.utils.stateless.functional_call", called_with,
        ("torch.func.functional_call(torch.nn.Linear(4, 2).double(), {}, (x,))",),
        source="https://docs.pytorch.org/docs/stable/generated/torch.func.functional_call.html"),
    Row(prefixed("torch.nn.functional.", """
relu relu6 leaky_relu elu selu gelu silu mish tanh sigmoid softplus hardtanh hardswish
hardsigmoid softsign logsigmoid celu relu_ leaky_relu_ elu_ hardshrink softshrink threshold
tanhshrink rrelu selu_ celu_ threshold_ hardtanh_ rrelu_
"""), elementwise, ("F.relu(x)", "F.softplus(x)", "F.relu(x.mean())"), _FUNCTIONAL),
    Row(prefixed("torch.nn.functional.", """
dropout dropout1d dropout2d dropout3d alpha_dropout feature_alpha_dropout
"""), dropped, ("F.dropout(x, 0.5)", "F.dropout(x, 0.5, False)"), _FUNCTIONAL),
    *_on_grids(),
    Row(prefixed("torch.nn.functional.", "interpolate upsample upsample_nearest upsample_bilinear"),
        grid(), ("F.interpolate(x.view(-1, 1, 2, 2), scale_factor=2)",), _FUNCTIONAL),
    Row("""
torch.nn.functional.pixel_shuffle torch.nn.functional.pixel_unshuffle torch.pixel_shuffle
torch.nn.functional.channel_shuffle torch.pixel_unshuffle torch.channel_shuffle
""", grid(2, mixes=True), examples("""
F.pixel_shuffle(x[:, :, None, None], 2)
F.pixel_unshuffle(x.view(-1, 1, 2, 2), 2)
"""), _FUNCTIONAL),
    Row(prefixed("torch.nn.functional.", """
batch_norm instance_norm
"""), by_channel, examples("""
F.batch_norm(x, w[0].detach(), w[1].detach().abs() + 1)
F.instance_norm(x[:, None])
F.batch_norm(x.reshape(1, -1, 1).expand(3, -1, 2), None, None, x.reshape(-1), None, True)
"""), _FUNCTIONAL),
    Row(prefixed("torch.nn.functional.", """
group_norm local_response_norm
"""), grid(mixes=True), examples("""
F.group_norm(x, 2)
F.local_response_norm(x[:, :, None], 2)
"""), _FUNCTIONAL),
    Row(prefixed("torch.nn.functional.", "layer_norm rms_norm"), normalised, examples("""
F.layer_norm(x, (4,))
F.layer_norm(x.view(-1, 2, 2), [2, 2])
F.layer_norm(x.view(-1, 2, 2).transpose(0, 1), [2])
F.rms_norm(x, (4,))
"""), _FUNCTIONAL),
    Row("torch.nn.functional.unfold", grid(2, mixes=True, change=-1), examples("""
F.unfold(x.view(-1, 1, 2, 2), 2)
"""), _FUNCTIONAL),
    Row("torch.nn.functional.fold", grid(1, mixes=True, change=1), examples("""
F.fold(x[:, :, None], (2, 2), 2)
"""), _FUNCTIONAL),
    Row("torch.nn.functional.grid_sample", grid(2), examples("""
F.grid_sample(x.view(-1, 1, 2, 2), y.view(-1, 1, 2, 2).tanh())
"""), _FUNCTIONAL),
    Row("torch.nn.functional.affine_grid", sampled, examples("""
F.affine_grid(x[:, None, :3].expand(-1, 2, -1), (x.size(0), 1, 2, 2))
"""), _FUNCTIONAL),
    Row("torch.nn.functional.prelu torch.prelu .prelu", prelu, examples("""
F.prelu(x, w[0])
"""), _FUNCTIONAL),
    Row("<module>._conv_forward", convolved, examples("""
nn.Conv1d(1, 2, 3)._conv_forward(x[:, None], w[:2, None, :3], None)
nn.Conv2d(1, 2, 2)._conv_forward(x.view(-1, 1, 2, 2), w.view(4, 1, 2, 2), w[0])
"""), _DOC),
    Row(prefixed("torch.nn.functional.", "linear bilinear"), with_weights, examples("""
F.linear(x, w)
F.linear(x, w, w[0])
F.linear(x, y)
F.bilinear(x, x, w[None])
"""), _FUNCTIONAL),
    Row("torch.nn.functional.multi_head_attention_forward", unestablished("attention over samples"),
        ("F.relu(w)",), _FUNCTIONAL),
    Row("torch.nn.functional.scaled_dot_product_attention "
        "torch.nn.attention.flex_attention.flex_attention", attention, examples("""
F.scaled_dot_product_attention(x[:, None], y[:, None], x[:, None])
F.scaled_dot_product_attention(x.view(-1, 2, 2), y.view(-1, 2, 2), x.view(-1, 2, 2))
F.scaled_dot_product_attention(x, y, x)
"""), _FUNCTIONAL),
    Row("torch.nn.functional.embedding torch.nn.functional.embedding_bag", embedded,
        ("F.embedding(t, w)",), _FUNCTIONAL),
    Row("torch.nn.functional.glu", along(), ("F.glu(x)", "F.glu(x, 0)"), _FUNCTIONAL),
    Row(prefixed("torch.nn.functional.", "softmax log_softmax softmin"), softmax, examples("""
F.softmax(x, dim=1)
F.softmax(x, 0)
F.log_softmax(x, dim=-1)
"""), _FUNCTIONAL),
    Row("torch.nn.functional.gumbel_softmax", streams.drawing("torch", along(4)), examples("""
F.gumbel_softmax(x)
"""), _FUNCTIONAL),
    Row("torch.nn.functional.normalize", along(2, 1), examples("""
F.normalize(x, dim=1)
F.normalize(x)
F.normalize(x, dim=0)
F.normalize(x, 2, 0)
F.normalize(x, p=2, dim=-1)
"""), _FUNCTIONAL),
    Row("torch.nn.functional.one_hot", one_hot, ("F.one_hot(t, 4)", "F.one_hot(t)"), _FUNCTIONAL),
    Row("torch.nn.functional.cosine_similarity", compared_rows(False), examples("""
F.cosine_similarity(x, y)
F.cosine_similarity(x, y, dim=-1)
F.cosine_similarity(x.unsqueeze(1), x.unsqueeze(0), dim=2)
"""), _FUNCTIONAL),
    Row("torch.nn.functional.pairwise_distance", compared_rows(True), examples("""
F.pairwise_distance(x, y)
F.pairwise_distance(x, y, keepdim=True)
F.pairwise_distance(x, y, 2.0, 1e-6, True).squeeze(1)
F.pairwise_distance(x[:, None], y[None])
"""), _FUNCTIONAL),
    Row("torch.nn.functional.pad", padded, examples("""
F.pad(x, (1, 1))
F.pad(x, (0, 0, 1, 1))
F.pad(x.view(-1, 2, 2), (1, 1, 1, 1))
F.pad(x.view(-1, 2, 2), (0, 0, 0, 3 - x.view(-1, 2, 2).shape[1]))
F.pad(x.view(-1, 4), (0, 2, 0, 0))
F.pad(x.view(-1, 4), (1, 1, 1, 1))
F.pad(x, (0, 0, 0, 12 - x.size(0)))
"""), _FUNCTIONAL),
    Row("torch.nn.functional.pdist", coupled, examples("""
F.pdist(w)
F.pdist(x)
"""), _FUNCTIONAL),
    Row("""
torch.nn.utils.rnn.pack_padded_sequence torch.nn.utils.rnn.pack_sequence
""", packed, source=_DOC),
    Row("torch.nn.utils.rnn.pad_packed_sequence", unpacked, source=_DOC),
    Row("torch.nn.utils.rnn.pad_sequence", padded_sequence, source=_DOC),
    Row("""
torch.nn.utils.spectral_norm torch.nn.utils.weight_norm
torch.nn.utils.parametrizations.spectral_norm torch.nn.utils.parametrizations.weight_norm
torch.compile torch.jit.script torch.jit.trace torch.nn.SyncBatchNorm.convert_sync_batchnorm
torch.nn.utils.remove_weight_norm torch.nn.utils.remove_spectral_norm
""", same, source=_DOC),
    Row("""
torch.utils.checkpoint.checkpoint torch.utils.checkpoint.checkpoint_sequential
""", recomputed, examples("""
torch.utils.checkpoint.checkpoint(torch.exp, x, use_reentrant=False)
"""), "https://docs.pytorch.org/docs/stable/checkpoint.html"),
    Row("torch.nn.utils.parameters_to_vector", as_vector, source=_DOC),
    Row("<module>.__init__", constructed, source=_DOC),
    Row(".generate_square_subsequent_mask <module>.generate_square_subsequent_mask "
        "torch.nn.Transformer.generate_square_subsequent_mask", mask_made, examples("""
nn.Transformer.generate_square_subsequent_mask(3)
nn.Transformer(4, 1, 1, 1, 8).generate_square_subsequent_mask(3)
"""), _DOC),
    Row("<module>.__call__ <module>.forward", module_called, LAYER_EXAMPLES, _DOC),
)  # fmt: skip


ATTRIBUTES = (
    Row("<packed>.data <packed>.batch_sizes <packed>.sorted_indices <packed>.unsorted_indices",
        packed_part, source=_DOC),
)  # fmt: skip


def pattern(name: str) -> Row | None:
    """Any other layer of torch.nn, and its initialisers."""
    if name.startswith("torch.nn.init."):
        return Row(name, weights_drawn, source="https://docs.pytorch.org/docs/stable/nn.init.html")
    head, _, word = name.rpartition(".")
    if head == "torch.nn" and word in LAYERS:
        return Row(name, layer, source=_DOC)
    if head.startswith("torch.nn.") and word in ("from_pretrained", "from_float"):
        return Row(name, pretrained, source=_DOC)
    return None


def classes(name: str) -> str | None:
    """What the instances of a class of torch.nn are; bases of several layers begin with ``_``."""
    head, _, word = name.rpartition(".")
    found = head == "torch.nn" and (word in LAYERS or word in BASES)
    return "module" if found else None
