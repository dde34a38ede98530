"""torch.nn: layers and functions by name (https://docs.pytorch.org/docs/stable/nn.html)."""

from __future__ import annotations

from dpmigrate.execution import placements
from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.values import NONE, NOTHING, Value, const
from dpmigrate.library.effects import elementwise, same, unestablished
from dpmigrate.library.factories import drawn
from dpmigrate.library.layers import (
    attention,
    embedded,
    gridded,
    layer,
    module_called,
    one_hot,
    packed,
    padded,
    padded_sequence,
    softmax,
    unpacked,
)
from dpmigrate.library.products import with_weights
from dpmigrate.library.reductions import along, compared_rows
from dpmigrate.library.sites import Row, Site, examples, prefixed

_DOC = "https://docs.pytorch.org/docs/stable/nn.html"
_FUNCTIONAL = "https://docs.pytorch.org/docs/stable/nn.functional.html"


#: initial weights that are not drawn
_GIVEN = ("constant", "zeros", "ones", "eye", "dirac", "calculate_gain")


def weights_drawn(site: Site) -> Value:
    """``nn.init.xavier_uniform_(w)``: weights from torch's stream, but where all are given."""
    if site.word.rstrip("_") not in _GIVEN:
        site.event("draw", stream=const("torch"))
    return site.get(0) or NONE


def pretrained(site: Site) -> Value:
    """``nn.Embedding.from_pretrained(weights)``: the layer itself."""
    name = site.name.rpartition(".")[0]
    return layer(Site(site.m, name, site.arguments, site.node, site.frame))


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


def as_vector(site: Site) -> Value:
    """``parameters_to_vector``: the same on every rank."""
    return site.data(placements.UNIFORM)


ROWS = (
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
"""), drawn(gridded), ("F.dropout(x, 0.5)",), _FUNCTIONAL),
    Row(prefixed("torch.nn.functional.", """
max_pool1d max_pool2d max_pool3d avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d
adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d interpolate
upsample upsample_nearest upsample_bilinear pixel_shuffle pixel_unshuffle layer_norm
batch_norm group_norm instance_norm local_response_norm unfold fold grid_sample affine_grid
prelu lp_pool1d lp_pool2d max_unpool1d max_unpool2d max_unpool3d channel_shuffle rms_norm
fractional_max_pool2d adaptive_max_pool3d
"""), gridded, examples("""
F.avg_pool1d(x[:, None], 2)
F.layer_norm(x, (4,))
F.interpolate(x.view(-1, 1, 2, 2), scale_factor=2)
F.adaptive_avg_pool2d(x.view(-1, 1, 2, 2), 1)
F.batch_norm(x, w[0].detach(), w[1].detach().abs() + 1)
"""), _FUNCTIONAL),
    Row(prefixed("torch.nn.functional.", """
linear conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d bilinear
"""), with_weights, examples("""
F.linear(x, w)
F.linear(x, w, w[0])
F.linear(x, y)
F.conv1d(x[:, None], w[:, None])
"""), _FUNCTIONAL),
    Row("torch.nn.functional.multi_head_attention_forward", unestablished("attention over samples"),
        ("F.relu(w)",), _FUNCTIONAL),
    Row("torch.nn.functional.scaled_dot_product_attention", attention, examples("""
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
    Row("torch.nn.functional.gumbel_softmax", drawn(along(4)), examples("""
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
F.pairwise_distance(x[:, None], y[None])
"""), _FUNCTIONAL),
    Row("torch.nn.functional.pad", padded, examples("""
F.pad(x, (1, 1))
F.pad(x, (0, 0, 1, 1))
F.pad(x.view(-1, 2, 2), (1, 1, 1, 1))
"""), _FUNCTIONAL),
    Row("torch.nn.functional.pdist", unestablished("distances between samples"), examples("""
F.pdist(w)
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
    Row("<module>.__call__ <module>.forward", module_called, examples("""
nn.Linear(4, 2)(x)
nn.Linear(4, 2).double()(x.mean(0))
nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))(x)
nn.Softmax(dim=1)(x)
nn.Softmax(dim=0)(x)
nn.Flatten()(x.view(-1, 2, 2))
nn.Embedding(4, 3)(t)
nn.LayerNorm(4)(x)
nn.Conv1d(1, 2, 2)(x[:, None])
nn.CosineSimilarity(dim=1)(x, y)
nn.PairwiseDistance()(x, y)
nn.BatchNorm1d(4).eval()(x)
nn.LSTM(4, 3, batch_first=True)(x[:, None])[0]
nn.LSTM(4, 3, batch_first=True)(x[:, None])[1][0]
nn.GRU(4, 3)(x[None])[0]
nn.GRU(4, 3)(x[:, None])[0]
nn.MultiheadAttention(4, 1, batch_first=True)(x[:, None], x[:, None], x[:, None])[0]
nn.MultiheadAttention(4, 1)(x[:, None], x[:, None], x[:, None])[0]
"""), _DOC),
)  # fmt: skip


def pattern(name: str) -> Row | None:
    """Any other layer of torch.nn, and its initialisers."""
    if name.startswith("torch.nn.init."):
        return Row(name, weights_drawn, source="https://docs.pytorch.org/docs/stable/nn.init.html")
    head, _, word = name.rpartition(".")
    if head == "torch.nn" and word[:1].isupper():
        return Row(name, layer, source=_DOC)
    if head.startswith("torch.nn.") and word in ("from_pretrained", "from_float"):
        return Row(name, pretrained, source=_DOC)
    return None


def classes(name: str) -> str | None:
    """What the instances of a class of torch.nn are."""
    head, _, word = name.rpartition(".")
    return "module" if head == "torch.nn" and word[:1].isupper() and word != "Parameter" else None
