"""Networks, losses, optimizers and data sets of libraries beside torch, by the names of classes.

A network of a library takes the samples of a batch and gives as many: rows in, rows out. What is
known to give something else (losses of a detector, features of several levels, functions that make
other networks) has no row here, and stays unseen.
"""

from __future__ import annotations

from dataclasses import replace

from dpmigrate.execution import broadcasting, derivation, placements
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    Value,
    const,
    items,
    known,
    placement_of,
    value,
)
from dpmigrate.library.axes import rows_of
from dpmigrate.library.configs import node
from dpmigrate.library.effects import none, same, unestablished, uniform
from dpmigrate.library.modules import library_network
from dpmigrate.library.pure import computed
from dpmigrate.library.sites import Effect, Row, Site, methods, prefixed
from dpmigrate.library.torch_data import dataset
from dpmigrate.library.torch_optim import optimizer, scheduler
from dpmigrate.library.transformers import model as library_model

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
_GRAPH_PACKAGES = ("torch_geometric.nn", "dgl.nn.pytorch", "dgl.nn")


def with_auxiliary(site: Site) -> Value:
    """``inception_v3(aux_logits=False)``: by default it gives a second output while it trains."""
    if known(site.arguments.keywords.get("aux_logits", NOTHING)) is False:
        return library_network(site)
    return site.unknown("how many outputs the network has, which aux_logits says")


def pooled(site: Site) -> Value:
    """``global_mean_pool(x, batch)``: of the nodes of each graph one row."""
    found = rows_of(site.get(0) or NOTHING)
    if found is None:
        return site.each()
    p = found.placement._replace(ragged=False, times=1)
    return site.data(p, axes=found.axes, keep_axes=False)


#: options of losses by which samples meet, or do not all count
_WHOLE = ("batch", "weight", "ignore_index", "normalized")
#: how many arguments of such a function are no reduction where they are given by their place
_PLAIN = 3


def by_reduction(default: str) -> Effect:
    """``ssim(x, y, reduction="mean")``: a number for each sample, reduced as is asked."""

    def effect(site: Site) -> Value:
        if len(site.arguments.positional) > _PLAIN:
            return site.unknown("the reduction of a loss")
        return _reduced(site, dict(site.arguments.keywords), default, site.arguments.all()[:2])

    return effect


def _reduced(site: Site, fields: dict[str, Value], default: str, given: list[Value]) -> Value:
    reduction = known(fields["reduction"]) if "reduction" in fields else default
    average = fields.get("size_average")
    if average:
        reduction = "none" if known(average) is False else "mean"
    whole = [v for n in _WHOLE if (v := fields.get(n)) and v not in (NONE, const(False))]
    operands = [v for v in (site.flat(a) for a in given) if v]
    # labels (B,) of predictions (B, C) are taken by sample: no elements are put beside each other
    p = placements.elementwise(map(placement_of, operands))
    if reduction == "" and p.kind not in placements.EQUAL:
        return site.unknown(f"how {site.word} takes the samples together")
    if p.kind is Kind.ROWS:
        if whole or p.axis:
            return site.unknown(f"how {site.word} takes the samples together")
        match reduction:
            case "mean" | "batchmean":  # of all elements, or of the samples
                p = placements.mean_over(p)
            case "sum":
                p = placements.SUM
            case "none":
                pass
            case _:
                return site.unknown("the reduction of a loss")
    axes = 0 if reduction in ("mean", "batchmean", "sum") else None
    return derivation.derived(
        site.word, p, operands, site.node, kind="tensor", axes=axes, keep_axes=False
    )


def loss(default: str) -> Effect:
    """``SSIMLoss(reduction="mean")``: an object that is called as a loss."""

    def effect(site: Site) -> Value:
        made = site.ref("loss of a library", **site.arguments.keywords)
        by_place = len(site.arguments.positional) > 1  # one of them may be the reduction
        site.m.objects(made)[0].extra = "" if by_place else default
        return made

    return effect


def loss_called(site: Site) -> Value:
    """A call of such an object."""
    made = site.object
    assert made is not None
    fields = {str(n): v for n, v in site.m.heap.names(made.number) if isinstance(n, str)}
    named = replace(site, name=made.name)
    given = site.arguments.all()
    return _reduced(named, fields, made.extra or "", given[:2] if made.extra else given)


def itself(site: Site) -> Value:
    """``criterion.to(device)``."""
    return value(site.receiver) if site.receiver is not None else NOTHING


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


def graphs_pooled(site: Site) -> Value:
    """What is left of the nodes, which the layer chooses: as many as their number says."""
    return items([site.unknown("which nodes are left")] * 6)


#: packages of losses of which it is not said here how they take the samples together
_LOSS_PACKAGES = (
    "segmentation_models_pytorch.losses", "segmentation_models_pytorch.utils.losses",
    "kornia.losses", "pytorch_metric_learning.losses", "pytorch_metric_learning.distances",
    "monai.losses", "timm.loss", "piq", "pytorch_toolbelt.losses", "lightly.loss", "info_nce",
    "focal_loss", "torchgeometry.losses", "geomloss", "auraloss", "IQA_pytorch", "pyiqa",
)  # fmt: skip
_LOSS_SOURCE = "https://smp.readthedocs.io/en/latest/losses.html"
#: losses by what they reduce by unless they are told; a number for each sample or element
_MEANS = {
    "piq": (
        "ssim multi_scale_ssim psnr vif_p fsim gmsd multi_scale_gmsd vsi haarpsi mdsi dss srsim"
        " information_weighted_ssim total_variation brisque",
        "SSIMLoss MultiScaleSSIMLoss VIFLoss FSIMLoss GMSDLoss MultiScaleGMSDLoss VSILoss"
        " HaarPSILoss MDSILoss DSSLoss SRSIMLoss InformationWeightedSSIMLoss TVLoss BRISQUELoss",
        "https://piq.readthedocs.io/en/latest/",
    ),
    "pytorch_msssim": (
        "ssim ms_ssim",
        "SSIM MS_SSIM",
        "https://github.com/VainF/pytorch-msssim",
    ),
    "timm.loss": (
        "",
        "LabelSmoothingCrossEntropy SoftTargetCrossEntropy BinaryCrossEntropy"
        " AsymmetricLossSingleLabel",
        "https://github.com/huggingface/pytorch-image-models/tree/main/timm/loss",
    ),
    "monai.losses": (
        "",
        "DiceLoss DiceCELoss DiceFocalLoss TverskyLoss GeneralizedDiceLoss FocalLoss",
        "https://docs.monai.io/en/stable/losses.html",
    ),
    "segmentation_models_pytorch.losses": (
        "",
        "FocalLoss SoftBCEWithLogitsLoss SoftCrossEntropyLoss",
        "https://smp.readthedocs.io/en/latest/losses.html",
    ),
    "kornia.losses": (
        "ssim_loss dice_loss tversky_loss",
        "SSIMLoss DiceLoss TverskyLoss",
        "https://kornia.readthedocs.io/en/latest/losses.html",
    ),
}  # fmt: skip
_LOSSES = tuple(
    row
    for package, (functions, classes_, source) in _MEANS.items()
    for row in (
        Row(prefixed(f"{package}.", functions), by_reduction("mean"), source=source),
        Row(prefixed(f"{package}.", classes_), loss("mean"), source=source),
    )
    if row.names
)
ROWS = (
    *_LOSSES,
    Row("<loss_of_a_library>.__call__ <loss_of_a_library>.forward", loss_called),
    Row(methods("loss_of_a_library", "to cuda cpu eval train float double half"), itself),
    Row(methods("loss_of_a_library", "requires_grad_ zero_grad"), none),
    Row("torchvision.ops.sigmoid_focal_loss torchvision.ops.focal_loss.sigmoid_focal_loss",
        by_reduction("none"),
        source="https://docs.pytorch.org/vision/stable/ops.html"),
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
"""), pooled, source=_GRAPHS),
    Row(prefixed("torch_geometric.nn.", "TopKPooling SAGPooling ASAPooling EdgePooling"),
        pooling_layer, source=_GRAPHS),
    Row("<pooling_of_graphs>.__call__", graphs_pooled, source=_GRAPHS),
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
        return Row(name, with_auxiliary, source=_VISION)
    if _network(head, word):
        return Row(name, library_network, source=_source(head))
    if head.startswith("timm.scheduler") and "scheduler" in word.lower():
        return Row(name, scheduler, source=_TIMM)
    if head.startswith(_LOSS_PACKAGES) and word not in ("FID", "KID", "MSID", "IS", "PR"):
        return Row(name, loss("") if word[:1].isupper() else by_reduction(""), source=_LOSS_SOURCE)
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

