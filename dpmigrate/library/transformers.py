"""transformers: models by class, tokenizers, and torch_geometric's loaders.

Sources: https://huggingface.co/docs/transformers/main_classes/output and
https://pytorch-geometric.readthedocs.io/en/latest/modules/loader.html
"""

from __future__ import annotations

from dpmigrate.execution import arithmetic, placements
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.values import NONE, NOTHING, Ref, Value, placement_of, value
from dpmigrate.library.batches import GRAPHS
from dpmigrate.library.effects import cut
from dpmigrate.library.layers import reach
from dpmigrate.library.modules import forward
from dpmigrate.library.sites import Row, Site, methods
from dpmigrate.library.torch_data import loader

_DOC = "https://huggingface.co/docs/transformers/"
#: models whose loss is the mean over the samples; that of others leaves out labels of padding
_BY_SAMPLE = ("ForSequenceClassification", "ForImageClassification", "ForMultipleChoice",
              "ForAudioClassification", "ForNextSentencePrediction")  # fmt: skip


def model(site: Site) -> Value:
    """``BertModel(config)``, ``AutoModel.from_pretrained(name)``."""
    made = site.made("library model")
    made.name = site.name.removesuffix(".from_pretrained").removesuffix(".from_config")
    made.name = made.name.rsplit(".", 1)[-1]
    return value(Ref(made.number))


def model_called(site: Site) -> Value:
    """A call: an output with ``logits`` and the like, and ``loss`` where labels are given."""
    made = site.object
    assert made is not None
    forward(site, made)
    operands = [v for v in (site.flat(a) for a in site.arguments.all()) if v]
    p = placements.elementwise(placement_of(v) for v in operands)
    rows = arithmetic.derived(made.name, p, operands, site.node, kind="tensor", keep_axes=False)
    rows = reach(rows, made, site)
    labels = site.arguments.keywords.get("labels") or site.arguments.stars
    out = site.made("output")
    site.m.heap.write((out.number, "rows"), rows)
    if labels and labels != NONE:
        mean = placements.MEAN if made.name.endswith(_BY_SAMPLE) else placements.RATIO
        q = mean if p.kind is Kind.ROWS else p
        loss = arithmetic.derived("loss", q, [rows], site.node, kind="tensor", axes=0)
        site.m.heap.write((out.number, "loss"), loss)
    return value(Ref(out.number))


def output_part(site: Site) -> Value:
    """``output.logits``, ``output[0]``, ``output["loss"]``."""
    made = site.object
    assert made is not None
    loss = site.m.heap.read((made.number, "loss"))
    rows = site.m.heap.read((made.number, "rows")) or NOTHING
    key = site.m.constant(site.get(1) or NOTHING) if site.word == "__getitem__" else None
    if loss and (site.word == "loss" or (key is not None and key.value in ("loss", 0))):
        return loss
    return rows


def tokens(site: Site) -> Value:
    """A tokenizer is called: rows where its texts are those of a batch."""
    return cut(site.each(kind="batch"))


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
    if not name.startswith("transformers."):
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
    """A class of the program that derives from a loader of graphs."""
    found = name.rsplit(".", 1)[0] in ("torch_geometric.loader", "torch_geometric.data")
    return "loader" if found and name.endswith("DataLoader") else None
