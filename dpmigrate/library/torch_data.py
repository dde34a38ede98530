"""torch.utils.data and data sets of torchvision
(https://docs.pytorch.org/docs/stable/data.html).
"""

from __future__ import annotations

from dpmigrate.execution import placements
from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    SETTING,
    Data,
    Origin,
    Ref,
    Value,
    const,
    data,
    items,
    value,
)
from dpmigrate.library import collating, streams
from dpmigrate.library.batches import divided
from dpmigrate.library.collating import is_put_together
from dpmigrate.library.dataset_samples import OWN_ORDER, sample
from dpmigrate.library.effects import uniform
from dpmigrate.library.sites import Effect, Row, Site, methods, prefixed

_DOC = "https://docs.pytorch.org/docs/stable/data.html"
_VISION = "https://docs.pytorch.org/vision/stable/datasets.html"
#: the mark of samplers that the runtime makes
_OF_RUNTIME = "sampler of the runtime"
_FIELDS = (
    "dataset",
    "batch_size",
    "shuffle",
    "sampler",
    "batch_sampler",
    "num_workers",
    "collate_fn",
    "pin_memory",
    "drop_last",
)


def loader(site: Site) -> Value:
    """``DataLoader(dataset, batch_size, shuffle, sampler, …)``."""
    made = site.made("loader")
    keep(site, made.number, 0)
    return value(Ref(made.number))


def constructed(site: Site) -> Value:
    """``super().__init__(dataset, …)`` of a loader class of the program."""
    if site.object is not None:
        keep(site, site.object.number, 1)
    return NONE


def keep(site: Site, number: int, first: int) -> None:
    """The arguments of a loader."""
    for i, name in enumerate(_FIELDS):
        held = site.get(i + first, name)
        if held is not None:
            site.m.heap.write((number, name), held)
    generator = site.arguments.keywords.get("generator")
    if generator and generator != NONE:
        site.m.heap.write((number, "generator"), generator)
    if (kept := site.arguments.keywords.get("persistent_workers")) is not None:
        site.m.heap.write((number, "persistent_workers"), kept)
    if site.arguments.stars:
        site.m.heap.write((number, "**"), site.arguments.stars)
    site.event("loader", object=value(Ref(number)))


def loader_length(site: Site) -> Value:
    """``len(loader)``: a number of batches, the same on every rank."""
    return SETTING


#: since when a number is made of a rank's part of the batch size
RANKS_BATCH = "a rank's batch size"


def batch_size(site: Site) -> Value:
    """``loader.batch_size``: of a loader that is divided over the ranks that of a rank's part."""
    if site.object is None or not divided(site.m, site.object):
        return SETTING
    return value(Data("number", placements.size(1), origin=Origin(site.node, RANKS_BATCH)))


#: the event of a call that fails whatever the ranks do
FAILING = "failing call"


def tensor_dataset(site: Site) -> Value:
    """``TensorDataset(x, y)``: of what it is given it asks the size, which no list has."""
    objects = [[site.m.object(a) for a in v] for v in site.arguments.positional]
    kinds = [{o.kind if o is not None else "" for o in found} for found in objects]
    kind = next((k for k in ("list", "dict") if {k} in kinds), "")
    if kind and not site.m.tries:
        why = f"TensorDataset asks what it is given for its size(), and a {kind} has none: the program ends here, on one process too"
        site.event(FAILING, why=const(why))
    return site.ref(
        "dataset",
        tensors=items(site.arguments.positional)
        if not site.arguments.star
        else value(Data("samples", placements.UNIFORM)),
    )


def subset(site: Site) -> Value:
    """``Subset(dataset, indices)``, ``ConcatDataset``: samples of others."""
    given = site.get(0, "dataset") or site.get(0, "datasets") or NOTHING
    if site.word in ("ConcatDataset", "ChainDataset", "StackDataset"):
        given = site.m.elements(given, site.node, site.frame)
    return site.ref("dataset", dataset=given, indices=site.get(1, "indices"))


def split(site: Site) -> Value:
    """``random_split(dataset, lengths)``."""
    site.event("draw", stream=const("torch" if site.get(2, "generator") is None else streams.GENERATOR))
    given = site.get(0, "dataset")
    lengths = site.get(1, "lengths")
    listed = site.m.known_elements(lengths) if lengths else None
    parts = []
    for i in range(len(listed) if listed is not None else 1):
        made = site.made("dataset", key=i)
        if given:
            site.m.heap.write((made.number, "dataset"), given)
        parts.append(value(Ref(made.number)))
    return site.m.listed(parts, site.node, site.frame, exact=listed is not None)


def dataset(site: Site) -> Value:
    """A data set of a library."""
    return site.ref("dataset", transform=site.get(-1, "transform"))


def collated(site: Site) -> Value:
    """``default_collate(samples)``: a batch, of what a rank has where the samples are its own."""
    given = site.get(0, "batch") or NOTHING
    if is_put_together(site, given):
        return collating.stacked(site, site.m.elements(given, site.node, site.frame))
    held = [data(site.m.contents(o), deep=True) for o in site.m.objects(given)]
    found = [d for some in (data(given, deep=True), *held) for d in some]
    own = next((d for d in found if d.placement.kind not in placements.EQUAL), None)
    if own is None:
        return SETTING
    return value(Data("samples", placements.PER_RANK, origin=own.origin))


def queue(site: Site) -> Value:
    """A queue of samples, filled by a loader of its own: what it gives is the next, whichever is asked for."""
    return site.ref("dataset", dealing=const(OWN_ORDER))


def dataset_item(site: Site) -> Value:
    """``dataset[i]``."""
    index = site.get(1) or SETTING
    return sample(site, value(site.receiver) if site.receiver else NOTHING, index)


def sampler(site: Site) -> Value:
    """A sampler."""
    made = site.made("sampler")
    if site.name.startswith("dpmigrate_runtime."):
        made.marks.add(_OF_RUNTIME)
    names = ("data_source", "num_replicas", "rank", "shuffle", "seed", "drop_last")
    for i, name in enumerate(names):
        held = site.get(i, name)
        if held is not None:
            site.m.heap.write((made.number, name), held)
    return value(Ref(made.number))


def sampler_length(site: Site) -> Value:
    """``len(sampler)``: of a sampler of the runtime the samples of the rank's share. Programs that use
    torch's own, which is as long on every rank, count with the number of ranks.
    """
    if site.object is None or _OF_RUNTIME not in site.object.marks:
        return SETTING
    return value(Data("number", placements.size(0), origin=Origin(site.node, "the rank's samples")))


def set_epoch(site: Site) -> Value:
    """``sampler.set_epoch(e)``."""
    site.event(
        "set epoch",
        sampler=value(site.receiver) if site.receiver else NOTHING,
        epoch=site.get(1) or NOTHING,
    )
    return NONE


def held(name: str) -> Effect:
    """A field of an object."""

    def effect(site: Site) -> Value:
        made = site.object
        return (site.m.heap.read((made.number, name)) if made else None) or SETTING

    return effect


def stored(site: Site) -> Value:
    """The samples that a data set holds, the same on every rank."""
    return value(Data("tensor", placements.UNIFORM))


ROWS = (
    Row("torch.utils.data.DataLoader", loader, source=_DOC),
    Row("torch.utils.data.TensorDataset", tensor_dataset, source=_DOC),
    Row(
        """
torch.utils.data.Subset torch.utils.data.ConcatDataset torch.utils.data.ChainDataset
torch.utils.data.StackDataset
""",
        subset,
        source=_DOC,
    ),
    Row("torch.utils.data.random_split", split, source=_DOC),
    Row(
        prefixed(
            "torch.utils.data.",
            """
Sampler RandomSampler SequentialSampler SubsetRandomSampler WeightedRandomSampler
BatchSampler DistributedSampler
""",
        ),
        sampler,
        source=_DOC,
    ),
    Row("torch.utils.data.get_worker_info", uniform, source=_DOC),
    Row(
        """
torch.utils.data.default_collate torch.utils.data.dataloader.default_collate
torch.utils.data._utils.collate.default_collate
""",
        collated,
        (
            "torch.utils.data.default_collate([w, w])",
            "torch.utils.data.default_collate([x, x])",
        ),
        source=_DOC,
    ),
    Row(
        prefixed(
            "torchvision.datasets.",
            """
MNIST FashionMNIST KMNIST EMNIST QMNIST CIFAR10 CIFAR100 SVHN STL10 ImageFolder
DatasetFolder ImageNet CocoDetection CocoCaptions VOCSegmentation VOCDetection Cityscapes
CelebA FakeData LSUN Omniglot USPS Food101 OxfordIIITPet Flowers102 Caltech101 Caltech256
Places365 StanfordCars GTSRB DTD EuroSAT FGVCAircraft SBDataset LFWPairs Kinetics UCF101
HMDB51
""",
        ),
        dataset,
        source=_VISION,
    ),
    Row("torchio.Queue torchio.data.Queue", queue, source="https://docs.torchio.org/patches/patch_training.html"),
    Row("<loader>.__init__", constructed, source=_DOC),
    Row("<loader>.__len__", loader_length, source=_DOC),
    Row("<dataset>.__len__", uniform, source=_DOC),
    Row("<dataset>.__getitem__ <dataset>.__iter__", dataset_item, source=_DOC),
    Row("<sampler>.set_epoch", set_epoch, source=_DOC),
    Row("<sampler>.__iter__", uniform, source=_DOC),
    Row("<sampler>.__len__", sampler_length, source=_DOC),
)  # fmt: skip
ATTRIBUTES = (
    Row("<loader>.dataset", held("dataset"), source=_DOC),
    Row("<loader>.batch_size", batch_size, source=_DOC),
    Row(methods("loader", "num_workers drop_last pin_memory"), uniform, source=_DOC),
    Row(
        methods(
            "dataset",
            """
classes class_to_idx transform indices target_transform root samples imgs
""",
        ),
        uniform,
        source=_DOC,
    ),
    Row(
        methods("dataset", "data labels train_data train_labels test_data test_labels targets"),
        stored,
        source=_DOC,
    ),
)  # fmt: skip


def classes(name: str) -> str | None:
    """Data sets and samplers."""
    head, _, word = name.rpartition(".")
    if (
        name
        in (
            "torch.utils.data.Dataset",
            "torch.utils.data.IterableDataset",
            "torch.utils.data.TensorDataset",
        )
        or head == "torchvision.datasets"
    ):
        return "dataset"
    if head == "torch.utils.data" and word.endswith("Sampler"):
        return "sampler"
    return "loader" if name == "torch.utils.data.DataLoader" else None
