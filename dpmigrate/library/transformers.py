"""transformers: models by class, tokenizers, and torch_geometric's loaders.

Sources: https://huggingface.co/docs/transformers/main_classes/output and
https://pytorch-geometric.readthedocs.io/en/latest/modules/loader.html
"""

from __future__ import annotations

import ast
import re

from dpmigrate.execution import derivation, placements
from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.joins import join
from dpmigrate.execution.objects import Object
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    SETTING,
    Atom,
    Const,
    Data,
    Ref,
    Value,
    items,
    placement_of,
    value,
)
from dpmigrate.library.batches import GRAPHS
from dpmigrate.library.effects import cut, none
from dpmigrate.library.forward_pass import forward
from dpmigrate.library.layers import reach
from dpmigrate.library.sites import Row, Site, methods
from dpmigrate.library.torch_data import loader

_DOC = "https://huggingface.co/docs/transformers/"
#: the library, and by the name it had before
_LIBRARIES = ("transformers.", "pytorch_transformers.")
#: models whose loss is the mean over the samples; that of others leaves out labels of padding
_BY_SAMPLE = ("ForSequenceClassification", "ForImageClassification", "ForMultipleChoice",
              "ForAudioClassification", "ForNextSentencePrediction")  # fmt: skip
#: models that end in a pooler, a layer of which only ``pooler_output`` is made, unless
#: ``add_pooling_layer=False`` is given; ``Auto`` stands for any of them, and so does the encoder
#: of a composed model
_POOLED = re.compile(
    "(Auto|Albert|Beit|(Megatron|Mobile|QDQ|Rem|Visual|I)?Bert|BigBird|Bros|Camembert|Data2Vec(Text|Vision)"
    "|DPT|De[iI]t|ErnieM?|Esm|Flava|LayoutLM(v3)?|Lilt|Longformer|Luke|MPNet|Nezha"
    "|(XLM)?Roberta(PreLayerNorm|XL)?|Tapas|ViT(MSN)?|Xmod|Yolos|(Vision)?EncoderDecoder)Model"
)


def model(site: Site) -> Value:
    """``BertModel(config)``, ``AutoModel.from_pretrained(name)``."""
    made = site.made("library model")
    made.name = site.name.removesuffix(".from_pretrained").removesuffix(".from_config")
    made.name = made.name.rsplit(".", 1)[-1]
    if _POOLED.fullmatch(made.name) and site.constant(-1, "add_pooling_layer") is not False:
        for word in ("body", "pooler"):
            inner = site.m.heap.new("module", f"{made.name}.{word}", site.node, made.context,
                                    key=(made.number, word))  # fmt: skip
            inner.many = made.many
            site.m.heap.write((made.number, word), value(Ref(inner.number)))
    return value(Ref(made.number))


def own_model(site: Site) -> Value | None:
    """``Net.from_pretrained(name, 3, labels=5)`` of a class of the program: it is built with a
    configuration, and what else is given that its constructor takes.
    """
    cls = site.object
    if cls is None or cls.kind != "class":
        return None
    taken = {a.arg for o in site.m.objects(site.m.in_class(cls, "__init__") or NOTHING) for a in _parameters(o)}
    named = {n: v for n, v in site.arguments.keywords.items() if n in taken}
    given = Arguments([SETTING, *site.arguments.positional[2:]], named, site.arguments.star)
    return site.m.call(value(Ref(cls.number)), given, site.node, site.frame)


def _parameters(function: Object) -> list[ast.arg]:
    if function.kind != "function":
        return []
    found: ast.arguments = function.extra.node.args
    return [*found.args, *found.kwonlyargs]


def model_called(site: Site) -> Value:
    """A call: an output with ``logits`` and the like, and ``loss`` where labels are given."""
    made = site.object
    assert made is not None
    forward(site, made)
    operands = [v for v in (site.flat(a) for a in site.arguments.all()) if v]
    p = placements.elementwise(placement_of(v) for v in operands)
    rows = derivation.derived(made.name, p, operands, site.node, kind="tensor", keep_axes=False)
    pooled = _of_samples(_reaching(rows, made, ("body", "pooler"), site))
    rows = _reaching(rows, made, ("body",), site)
    labels = site.arguments.keywords.get("labels") or site.arguments.stars
    out = site.made("output", extra=made.name)
    site.m.heap.write((out.number, "rows"), rows)
    site.m.heap.write((out.number, "pooled"), pooled)
    if labels and labels != NONE:
        mean = placements.MEAN if made.name.endswith(_BY_SAMPLE) else placements.RATIO
        q = mean if p.kind is Kind.ROWS else p
        loss = derivation.derived("loss", q, [rows], site.node, kind="tensor", axes=0)
        site.m.heap.write((out.number, "loss"), loss)
    return value(Ref(out.number))


def _reaching(rows: Value, made: Object, parts: tuple[str, ...], site: Site) -> Value:
    """What some parts of a model have made, or the model as a whole where it has no such parts."""
    inner = [o for word in parts for o in site.m.objects(_held(site, made.number, word))]
    for o in inner or [made]:
        rows = reach(rows, o, site)
    return rows


def _held(site: Site, number: int, name: str) -> Value:
    return site.m.heap.read((number, name)) or NOTHING


#: how many axes the parts of an output have: samples, tokens, features
_AXES = {"last_hidden_state": 3, "pooler_output": 2}
#: parts that have one row of numbers for each sample
_FOR_SAMPLES = ("image_embeds", "text_embeds", "logits_per_image", "logits_per_text")
#: parts that are tuples of what each layer gives, with the axes of these
_OF_LAYERS: dict[object, int] = {"hidden_states": 3, "attentions": 4}


def output_part(site: Site) -> Value:
    """``output.logits``, ``output[0]``, ``output["loss"]``."""
    made = site.object
    assert made is not None
    loss = site.m.heap.read((made.number, "loss"))
    key = site.m.constant(site.get(1) or NOTHING) if site.word in ("__getitem__", "get") else None
    asked = key.value if key is not None else site.word
    if loss and asked in ("loss", 0):
        return loss
    rows, pooled = (_held(site, made.number, name) for name in ("rows", "pooled"))
    if any(site.m.is_slice(a) for a in site.get(1) or NOTHING):
        return _slice(site, loss or rows, join(rows, pooled))
    if asked in ("__getitem__", "get"):  # any of them
        return join(rows, pooled)
    if asked in _OF_LAYERS:
        held = _with_axes(rows, _OF_LAYERS[asked])
        return site.m.listed([held], site.node, site.frame, exact=False)
    found = pooled if asked in (1, "pooler_output") else rows
    by_sample = str(made.extra or "").endswith(_BY_SAMPLE) and asked in ("logits", 0, 1)
    found = _of_samples(found) if by_sample or asked in _FOR_SAMPLES else found
    axes = _AXES.get(str(asked))
    return found if axes is None else _with_axes(found, axes)


def _slice(site: Site, first: Value, others: Value) -> Value:
    """``output[:2]``, ``output[1:]``: a tuple of parts, as many as are asked for."""
    cut = site.m.constant_slice(site.get(1) or NOTHING, 0)
    start = (cut.start or 0) if cut is not None else -1
    if cut is not None and cut.stop is not None and 0 <= start < cut.stop:
        return items([others if i else first for i in range(start, cut.stop, cut.step or 1)])
    each = [others] if start > 0 else [first, others]
    return site.m.listed(each, site.node, site.frame, exact=False)


def _with_axes(v: Value, axes: int) -> Value:
    return tuple(a._replace(axes=axes) if isinstance(a, Data) else a for a in v)


def tokens(site: Site) -> Value:
    """A tokenizer is called: rows where its texts are those of a batch, filled up to the longest of them
    where it pads and no length is given
    (https://huggingface.co/docs/transformers/pad_truncation).
    """
    made = cut(site.each(kind="batch"))
    return tuple(_filled_up(a) for a in made) if _pads(site) else made


#: methods of tokenizers that take several texts, with the place of ``padding``; ``pad`` pads unless it is told not to
_OF_TEXTS = {"__call__": 5, "batch_encode_plus": 2, "pad": 1}


def _pads(site: Site) -> bool:
    """Whether texts are filled up to the longest of those that are given; also where an option may say so."""
    if site.word not in _OF_TEXTS:
        return False
    given = site.arguments.get(_OF_TEXTS[site.word], "padding")
    if given is None:
        return site.word == "pad"
    return any(a.value in (True, "longest") if isinstance(a, Const) else True for a in given)


def _filled_up(a: Atom) -> Atom:
    rows = isinstance(a, Data) and a.placement.kind is Kind.ROWS
    return _padded(a, True) if rows else a


def _padded(a: Atom, yes: bool) -> Atom:
    if not isinstance(a, Data) or a.placement.kind is not Kind.ROWS:
        return a
    return a._replace(placement=a.placement._replace(padded=yes))


def _of_samples(v: Value) -> Value:
    """What a model gives for each sample, however long it was: nothing of it is filled up."""
    return tuple(_padded(a, False) for a in v)


def tokenizer(site: Site) -> Value:
    """``AutoTokenizer.from_pretrained(name)``."""
    return site.ref("tokenizer")


def loader_of_graphs(site: Site) -> Value:
    """A loader whose batches are graphs put beside each other."""
    made = loader(site)
    for o in site.m.objects(made):
        o.marks.add(GRAPHS)
    return made


ROWS = (
    Row("<class>.from_pretrained <class>.from_config <class>._from_config", own_model, source=_DOC),
    Row(methods("module", """
post_init init_weights tie_weights gradient_checkpointing_enable gradient_checkpointing_disable
enable_input_require_grads
"""), none, source=_DOC),
    Row("<library_model>.__call__ <library_model>.forward", model_called, source=_DOC),
    Row("<output>.__getitem__ <output>.get", output_part, source=_DOC),
    Row(methods("tokenizer", """
__call__ encode batch_encode_plus encode_plus decode batch_decode pad convert_tokens_to_ids
tokenize
"""), tokens, source=_DOC),
    Row("""
torch_geometric.loader.DataLoader torch_geometric.data.DataLoader
torch_geometric.loader.NeighborLoader dgl.dataloading.GraphDataLoader
""", loader_of_graphs, source="https://pytorch-geometric.readthedocs.io/"),
)  # fmt: skip
ATTRIBUTES = (
    Row(methods("output", """
loss logits last_hidden_state pooler_output hidden_states attentions image_embeds text_embeds
prediction_logits start_logits end_logits logits_per_image logits_per_text sample
"""), output_part, source=_DOC),
)  # fmt: skip


def pattern(name: str) -> Row | None:
    """Models and tokenizers by the names of their classes."""
    if not name.startswith(_LIBRARIES):
        return None
    if name.endswith((".from_pretrained", ".from_config")):
        name = name.rsplit(".", 1)[0]
    word = name.rsplit(".", 1)[-1]
    if "Tokenizer" in word or "Processor" in word or "FeatureExtractor" in word:
        return Row(name, tokenizer, source=_DOC)
    if word.endswith("Model") or "For" in word:
        return Row(name, model, source=_DOC)
    return None


def classes(name: str) -> str | None:
    """A class of the program that derives from a loader of graphs, or is a model of its own on the
    base of all models of transformers.
    """
    if name.startswith(_LIBRARIES) and name.endswith("PreTrainedModel"):
        return "module"
    found = name.rsplit(".", 1)[0] in ("torch_geometric.loader", "torch_geometric.data")
    return "loader" if found and name.endswith("DataLoader") else None
