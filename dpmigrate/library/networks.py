"""Networks, optimizers and data sets of libraries beside torch, by the names of classes.

A network of a library takes the samples of a batch and gives as many: rows in, rows out. What is
known to give something else (losses of a detector, features of several levels, functions that make
other networks) has no row here, and stays unseen.
"""

from __future__ import annotations

from dpmigrate.execution import broadcasting, derivation, placements
from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    Value,
    items,
    placement_of,
)
from dpmigrate.library import auxiliary
from dpmigrate.library.axes import rows_of
from dpmigrate.library.configs import node
from dpmigrate.library.effects import none, same, unestablished, uniform
from dpmigrate.library.library_losses import LOSS_PACKAGES, LOSS_SOURCE, by_reduction, loss
from dpmigrate.library.modules import library_network
from dpmigrate.library.pure import computed
from dpmigrate.library.sites import Row, Site, prefixed
from dpmigrate.library.torch_data import dataset
from dpmigrate.library.torch_optim import optimizer, scheduler
from dpmigrate.library.transformers import model as library_model
from dpmigrate.library.vision_parts import classifier

_VISION = "https://docs.pytorch.org/vision/stable/models.html"
_SMP = "https://smp.readthedocs.io/en/latest/models.html"
_TIMM = "https://huggingface.co/docs/timm/reference/models"
_GRAPHS = "https://pytorch-geometric.readthedocs.io/en/latest/modules/nn.html"
_DIFFUSERS = "https://huggingface.co/docs/diffusers/api/models/overview"
_SCHEDULES = "https://huggingface.co/docs/transformers/main_classes/optimizer_schedules"
_MONAI = "https://docs.monai.io/en/stable/networks.html"
#: packages of torchvision.models whose networks give classes of each sample
_SEVERAL = (
    "detection", "feature_extraction", "_utils", "optical_flow", "_api", "inception", "googlenet",
)  # fmt: skip
#: networks that may have a second output while they are trained
_AUXILIARY = ("inception_v3", "Inception3", "googlenet", "GoogLeNet")
_SMP_MODELS = (
    "Unet", "UnetPlusPlus", "MAnet", "Linknet", "FPN", "PSPNet", "PAN", "DeepLabV3",
    "DeepLabV3Plus", "UPerNet", "Segformer", "DPT", "create_model", "from_pretrained",
)  # fmt: skip
#: layers of graphs that are no convolutions by their names
_GRAPH_LAYERS = (
    "GCN", "GraphSAGE", "GAT", "GIN", "PNA", "EdgeCNN", "MLP", "Linear", "HeteroLinear",
    "BatchNorm", "LayerNorm", "GraphNorm", "InstanceNorm", "PairNorm", "GraphSizeNorm",
    "MessageNorm", "DiffGroupNorm", "MeanSubtractionNorm", "JumpingKnowledge", "Sequential",
    "DeepGCNLayer", "LabelPropagation",
)  # fmt: skip
#: layers that keep some nodes of each graph, and how many results they have
_CHOOSING = {"TopKPooling": 6, "SAGPooling": 6, "ASAPooling": 5}
_GRAPH_PACKAGES = ("torch_geometric.nn", "dgl.nn.pytorch", "dgl.nn")


def pooled(site: Site) -> Value:
    """``global_mean_pool(x, batch)``: of the nodes of each graph one row."""
    return site.each() if rows_of(site.get(0) or NOTHING) is None else _of_each_graph(site, site.get(0) or NOTHING, site.get(1, "batch"))


def _of_each_graph(site: Site, nodes: Value, whose: Value | None) -> Value:
    found = rows_of(nodes)
    if found is None or found.placement.axis or not whose or set(NONE) & set(whose):
        return site.unknown("whether the nodes are those of one graph")
    p = found.placement._replace(ragged=False, times=1)
    return derivation.derived(site.word, p, [nodes], site.node, axes=found.axes, keep_axes=False)


def noise_schedule(site: Site) -> Value:
    """``DDPMScheduler(…)``: how much noise there is at each step of diffusion."""
    return site.ref("noise schedule")


def noisy(site: Site) -> Value:
    """``schedule.add_noise(x, noise, t)``: of each sample with its own noise and step."""
    given = [v for v in (site.flat(a) for a in site.arguments.all()) if v]
    if len(given) < 2:
        return site.each()
    x, noise, *times = given
    if any((r := rows_of(v)) and r.placement.axis for v in (x, noise, *times)):
        return site.unknown(f"how {site.word} lies across the samples")
    # a step is a number for each sample, which no axis of x stands beside
    p = placements.elementwise([*broadcasting.aligned([x, noise]), *map(placement_of, times)])
    return derivation.derived(site.word, p, [x, noise, *times], site.node,
                              axes=broadcasting.axes_of([x, noise]), keep_axes=False)  # fmt: skip


def pooling_layer(site: Site) -> Value:
    """``TopKPooling``: a network of several results."""
    return site.ref("pooling of graphs", module=library_network(site))


def aggregating(site: Site) -> Value:
    """``Set2Set``: a layer that makes one row of the nodes of each graph."""
    return site.ref("aggregation of graphs", module=library_network(site))


def aggregated(site: Site) -> Value:
    """``aggregate(x, batch)``: as ``global_mean_pool`` does, with weights of its own."""
    made = site.object
    layer = site.m.heap.read((made.number, "module")) if made is not None else None
    scored = site.m.call(layer or NOTHING, Arguments([site.flat(site.get(1, "x") or NOTHING)]), site.node, site.frame)
    return _of_each_graph(site, scored, site.get(2, "index") or site.arguments.keywords.get("batch"))


def graphs_pooled(site: Site) -> Value:
    """What is left of the nodes, which the layer chooses for each graph by itself, where it is told whose each is."""
    made = site.object
    nodes, whose = site.flat(site.get(1, "x") or NOTHING), site.get(4, "batch")
    found = rows_of(nodes)
    unseen = site.unknown("which nodes are left")
    if made is None or made.name not in _CHOOSING or found is None or found.placement.axis or not whose or set(NONE) & set(whose):
        return items([unseen] * 6)
    layer = site.m.heap.read((made.number, "module")) or NOTHING
    scored = site.m.call(layer, Arguments([nodes]), site.node, site.frame)
    left = _chosen(site, scored, found.axes)
    weights = site.get(3, "edge_attr") or site.get(3, "edge_weight") or NONE
    kept = [left, site.get(2, "edge_index") or unseen, weights, _chosen(site, site.flat(whose), 1)]
    # the places of the nodes in the rank's batch, and what each is worth
    return items([*kept, unseen, _chosen(site, scored, 1)][: _CHOOSING[made.name]])


def _chosen(site: Site, nodes: Value, axes: int | None) -> Value:
    """Some nodes of each graph: how many is not known."""
    found = rows_of(nodes)
    if found is None:
        return nodes
    p = found.placement._replace(ragged=True, times=0)
    return derivation.derived(site.word, p, [nodes], site.node, axes=axes, keep_axes=False)


ROWS = (
    Row("torchvision.models.list_models timm.list_models timm.list_pretrained timm.is_model"
        " timm.data.resolve_data_config timm.data.resolve_model_data_config"
        " segmentation_models_pytorch.encoders.get_preprocessing_fn"
        " segmentation_models_pytorch.encoders.get_preprocessing_params"
        " torchvision.models.get_weight torchvision.models.get_model_weights"
        " efficientnet_pytorch.EfficientNet.get_image_size timm.data.IMAGENET_DEFAULT_MEAN",
        computed, source=_VISION),
    Row("timm.models.register_model timm.models.registry.register_model"
        " timm.models._registry.register_model", same, source=_TIMM),
    Row("torchvision.models.get_model timm.create_model timm.models.create_model"
        " timm.models.factory.create_model timm.models.registry.create_model"
        " open_clip.create_model",
        library_network, source=_TIMM),
    Row("torchvision.disable_beta_transforms_warning torchvision.set_image_backend"
        " torchvision.set_video_backend torchaudio.set_audio_backend", none, source=_VISION),
    Row("torchvision.utils.draw_bounding_boxes torchvision.utils.draw_segmentation_masks"
        " torchvision.utils.draw_keypoints torchvision.utils.flow_to_image", same,
        source="https://docs.pytorch.org/vision/stable/utils.html"),
    Row(prefixed("torch_geometric.nn.", """
global_mean_pool global_add_pool global_max_pool pool.global_mean_pool pool.global_add_pool
pool.global_max_pool glob.global_mean_pool glob.global_add_pool glob.global_max_pool
global_sort_pool
"""), pooled, source=_GRAPHS),
    Row(prefixed("torch_geometric.nn.", "TopKPooling SAGPooling ASAPooling EdgePooling"),
        pooling_layer, source=_GRAPHS),
    Row("<pooling_of_graphs>.__call__", graphs_pooled, source=_GRAPHS),
    Row(prefixed("torch_geometric.nn.", """
Set2Set GlobalAttention aggr.Set2Set aggr.AttentionalAggregation aggr.MeanAggregation aggr.SumAggregation
aggr.MaxAggregation aggr.SortAggregation aggr.SoftmaxAggregation aggr.PowerMeanAggregation
AttentionalAggregation SortAggregation MeanAggregation SumAggregation MaxAggregation SoftmaxAggregation
"""), aggregating, source=_GRAPHS),
    Row("<aggregation_of_graphs>.__call__", aggregated, source=_GRAPHS),
    Row("torch_geometric.data.Data torch_geometric.data.HeteroData torch_geometric.data.data.Data",
        node, source="https://pytorch-geometric.readthedocs.io/en/latest/modules/data.html"),
    Row("torch_geometric.data.Batch.from_data_list torch_geometric.seed_everything", computed,
        source=_GRAPHS),
    Row("diffusers.optimization.get_scheduler diffusers.get_cosine_schedule_with_warmup"
        " transformers.get_scheduler transformers.optimization.get_scheduler"
        " diffusers.optimization.get_cosine_schedule_with_warmup",
        scheduler, source=_SCHEDULES),
    Row("transformers.AdamW transformers.Adafactor prodigyopt.Prodigy dadaptation.DAdaptAdam"
        " dadaptation.DAdaptSGD dadaptation.DAdaptAdaGrad adam_mini.Adam_mini sophia.SophiaG"
        " deepspeed.ops.adam.FusedAdam deepspeed.ops.adam.DeepSpeedCPUAdam",
        optimizer, source=_SCHEDULES),
    Row("<noise_schedule>.add_noise <noise_schedule>.get_velocity", noisy, source=_DIFFUSERS),
    Row("<noise_schedule>.set_timesteps", none, source=_DIFFUSERS),
    Row("facenet_pytorch.fixed_image_standardization", same,
        source="https://github.com/timesler/facenet-pytorch"),
    Row("peft.prepare_model_for_kbit_training", same, source="https://huggingface.co/docs/peft/"),
)  # fmt: skip
ATTRIBUTES = (
    Row("<noise_schedule>.timesteps <noise_schedule>.config", uniform, source=_DIFFUSERS),
)


def pattern(name: str) -> Row | None:
    """Families of names."""
    head, _, word = name.rpartition(".")
    if head.endswith(".from_pretrained") or word in ("from_pretrained", "from_name", "from_config"):
        head, _, word = head.rpartition(".")
    if head.startswith("torchvision.models.segmentation") and word.islower():
        return Row(name, library_model, source=_VISION)  # a dictionary of rows
    if head.startswith("torchvision.models") and word in _AUXILIARY:
        return Row(name, auxiliary.network, source=_VISION)
    if _network(head, word):
        return Row(name, classifier if head.startswith("torchvision.models") else library_network, source=_source(head))
    if head.startswith("timm.scheduler") and "scheduler" in word.lower():
        return Row(name, scheduler, source=_TIMM)
    if head.startswith(LOSS_PACKAGES) and word not in ("FID", "KID", "MSID", "IS", "PR"):
        return Row(name, loss("") if word[:1].isupper() else by_reduction(""), source=LOSS_SOURCE)
    if head.startswith("diffusers"):
        return _of_diffusion(name, word)
    if head in ("torch_geometric.utils", "torch_scatter", "torch_sparse", "torch_cluster"):
        return Row(name, unestablished("which samples the nodes of a graph belong to"),
                   source=_GRAPHS)  # fmt: skip
    if classes(name) == "dataset":
        return Row(name, dataset, source=_GRAPHS)
    return None


def _of_diffusion(name: str, word: str) -> Row | None:
    if word.endswith("Scheduler"):
        return Row(name, noise_schedule, source=_DIFFUSERS)
    if word.startswith("UNet") or word.endswith("Transformer2DModel"):
        return Row(name, library_model, source=_DIFFUSERS)
    return None


def _network(head: str, word: str) -> bool:
    """Whether a name is a class, or a function, that makes a network of rows in and rows out."""
    parts = head.split(".")
    match parts[0]:
        case "torchvision" if parts[1:2] == ["models"]:
            plain = not word.endswith(("Weights", "Builder")) and not word.startswith("list")
            several = any(p in _SEVERAL for p in parts) or word.startswith(("inception", "Incep"))
            return plain and not several and len(parts) < 5 and not _upper(parts[2:])
        case "segmentation_models_pytorch":
            return word in _SMP_MODELS and "losses" not in parts
        case "efficientnet_pytorch" | "pretrainedmodels" | "resnest" | "vit_pytorch":
            return not word.startswith("get_")
        case "timm":
            layer = parts[1:2] == ["layers"] and word[:1].isupper()
            return layer or (parts[1:2] == ["models"] and not word.startswith(("is_", "list_", "load_")))
        case "monai":
            return parts[1:3] == ["networks", "nets"] or parts[1:] == ["networks"]
        case "facenet_pytorch":
            return word == "InceptionResnetV1"
        case "lpips":
            return word in ("LPIPS", "PerceptualLoss")
        case "torch_geometric" | "dgl":
            graphs = any(head == p or head.startswith(f"{p}.") for p in _GRAPH_PACKAGES)
            return graphs and (word.endswith("Conv") or word in _GRAPH_LAYERS)
    return False


def _upper(parts: list[str]) -> bool:
    """Whether a class stands before the name: ``ResNet50_Weights.DEFAULT.transforms``."""
    return any(p[:1].isupper() for p in parts)


def _source(head: str) -> str:
    sources = {
        "torchvision": _VISION, "segmentation_models_pytorch": _SMP, "timm": _TIMM,
        "monai": _MONAI, "torch_geometric": _GRAPHS,
        "dgl": "https://www.dgl.ai/dgl_docs/api/python/nn-pytorch.html",
        "lpips": "https://github.com/richzhang/PerceptualSimilarity",
        "facenet_pytorch": "https://github.com/timesler/facenet-pytorch",
        "efficientnet_pytorch": "https://github.com/lukemelas/EfficientNet-PyTorch",
    }  # fmt: skip
    return sources.get(head.partition(".")[0], "")


def classes(name: str) -> str | None:
    """Classes of libraries that a class of the program may derive from."""
    head, _, word = name.rpartition(".")
    graphs = ("torch_geometric.datasets", "ogb.graphproppred", "ogb.nodeproppred")
    sets = (*graphs, "torchaudio.datasets", "medmnist", "torchtext.datasets")
    if head in sets and word[:1].isupper():
        return "dataset"
    if head == "torch_geometric.data" and word in ("InMemoryDataset", "Dataset"):
        return "dataset"
    if head == "torch_geometric.nn" and word in ("MessagePassing", "conv.MessagePassing"):
        return "module"
    return None
