"""torch.utils.data and data sets of torchvision (https://docs.pytorch.org/docs/stable/data.html)."""

from __future__ import annotations

from dpmigrate.execution import placements
from dpmigrate.execution.foreign import Arguments
from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    SETTING,
    Atom,
    Const,
    Data,
    Items,
    Origin,
    Ref,
    Setting,
    Unknown,
    Value,
    const,
    items,
    join,
    known,
    value,
)
from dpmigrate.library.effects import uniform
from dpmigrate.library.sites import Row, Site, table, words

_DOC = "https://docs.pytorch.org/docs/stable/data.html"
_FIELDS = (
    "dataset",
    "batch_size",
    "shuffle",
    "sampler",
    "batch_sampler",
    "num_workers",
    "collate_fn",
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
    if site.arguments.stars:
        site.m.heap.write((number, "**"), site.arguments.stars)
    site.event("loader", object=value(Ref(number)))


def batches(site: Site) -> Value:
    """A pass over a loader: each batch is rows of the rank's share."""
    made = site.object
    assert made is not None
    dataset = site.m.heap.read((made.number, "dataset")) or NOTHING
    batch = site.m.heap.read((made.number, "batch_size"))
    if batch == NONE and not site.m.heap.read((made.number, "batch_sampler")):
        return as_rows(site, sample(site, dataset), made.number)
    collate = site.m.heap.read((made.number, "collate_fn"))
    one = sample(site, dataset)
    if collate and collate != NONE:
        given = site.m.listed([one], site.node, site.frame, exact=False)
        result = site.m.call(collate, Arguments([given]), site.node, site.frame)
        return as_rows(site, result or SETTING, made.number, collated=False)
    return as_rows(site, one, made.number)


def begun(site: Site) -> Value:
    """A pass over a loader begins."""
    if site.object is not None:
        site.event("pass", loader=value(Ref(site.object.number)))
    return NONE


def sample(site: Site, dataset: Value) -> Value:
    """One sample of a data set, as its ``__getitem__`` gives it."""
    found: list[Value] = []
    for atom in dataset:
        made = site.m.object(atom)
        if made is None:
            found.append(SETTING)
            continue
        method = site.m.method_of(made, "__getitem__") or site.m.method_of(made, "__iter__")
        if made.kind == "instance" and method is not None:
            found.append(_item_of(site, method))
            continue
        inner = site.m.heap.read((made.number, "dataset"))
        tensors = site.m.heap.read((made.number, "tensors"))
        if tensors:
            found.append(_unbatched(tensors))
        elif inner:
            found.append(sample(site, inner))
        elif made.kind == "list":
            found.append(site.m.contents(made) or SETTING)
        else:
            found.append(value(Data("samples", placements.UNIFORM)))
    return join(*found) or SETTING


def _item_of(site: Site, method: object) -> Value:
    """``dataset[i]``, run for an index that nobody knows; draws in it come from worker streams."""
    site.m.heap.mark()
    result = site.m.call(value(method), Arguments([SETTING]), site.node, site.frame)  # type: ignore[arg-type]
    result = site.m.elements(result, site.node, site.frame) if _generator(site, result) else result
    frozen = _frozen(site, result, 4)
    site.m.heap.rollback()
    return frozen or SETTING


def _generator(site: Site, v: Value) -> bool:
    return any(o.kind == "generator" for o in site.m.objects(v))


def _frozen(site: Site, v: Value, depth: int) -> Value:
    """A sample as a value that outlives the branch: dictionaries and lists become tuples with names."""
    found: list[Atom] = []
    for a in v:
        made = site.m.object(a)
        if isinstance(a, Items):
            found.append(Items(tuple(_frozen(site, i, depth - 1) for i in a.items)))
        elif made is not None and made.kind in ("list", "dict") and depth:
            held = [(n, site.m.bound(x)) for n, x in site.m.heap.names(made.number)]
            fields = tuple(
                items(
                    [(n,) if isinstance(n, Const) else const(str(n)), _frozen(site, x, depth - 1)]
                )
                for n, x in held
            )
            found.append(Items((const(f"<{made.kind}>"), *fields)))
        else:
            found.append(a)
    return tuple(found)


def _unbatched(v: Value) -> Value:
    """A sample of tensors that lie side by side."""
    found: list[Atom] = []
    for a in v:
        if isinstance(a, Items):
            found.append(Items(tuple(_unbatched(i) for i in a.items)))
        elif isinstance(a, Data):
            axes = a.axes - 1 if a.axes else None
            found.append(a._replace(axes=axes))
        else:
            found.append(a)
    return tuple(found)


def as_rows(site: Site, v: Value, loader_number: int, *, collated: bool = True) -> Value:
    """A batch made of samples: whatever a sample holds is rows; ``collated`` by torch as tensors."""
    origin = Origin(site.node, "batch")
    found: list[Atom] = []
    for a in v:
        match a:
            case Items() if a.items and _tag(a.items[0]):
                found += _container(site, a, loader_number)
            case Items():
                parts = (as_rows(site, i, loader_number, collated=collated) for i in a.items)
                found.append(Items(tuple(parts)))
            case Data():
                plain = a.kind in ("samples", "any")
                kind = "batch" if plain else "tensor" if collated or a.kind != "array" else "array"
                axes = 1 if a.kind == "number" else a.axes + 1 if a.axes is not None else None
                found.append(
                    Data(
                        kind,
                        placements.rows(),
                        "none",
                        frozenset([loader_number]),
                        frozenset(),
                        axes,
                        origin,
                    )
                )
            case Const() | Setting():
                if isinstance(a, Const) and a.value is None:
                    found.append(a)
                    continue
                text = isinstance(a, Const) and isinstance(a.value, str)
                kind = "list of texts" if text else "batch" if isinstance(a, Setting) else "tensor"
                axes = 1 if isinstance(a, Const) else None
                found.append(
                    Data(
                        kind,
                        placements.rows(),
                        "none",
                        frozenset([loader_number]),
                        frozenset(),
                        axes,
                        origin,
                    )
                )
            case Ref() if site.m.heap.objects[a.object].kind in ("list", "dict"):
                made = site.m.heap.objects[a.object]
                for name, held in site.m.heap.names(made.number):
                    if not (isinstance(name, str) and name.startswith("#")):
                        site.m.heap.write((made.number, name), as_rows(site, held, loader_number))
                found.append(a)
            case Unknown() | Ref():
                found.append(
                    Data(
                        "batch",
                        placements.rows(),
                        "none",
                        frozenset([loader_number]),
                        frozenset(),
                        None,
                        origin,
                    )
                )
            case _:
                found.append(
                    Data(
                        "batch",
                        placements.rows(),
                        "none",
                        frozenset([loader_number]),
                        frozenset(),
                        None,
                        origin,
                    )
                )
    return join(*[(a,) for a in found])


def _tag(v: Value) -> bool:
    return v in (const("<list>"), const("<dict>"))


def _container(site: Site, a: Items, loader_number: int) -> list[Atom]:
    kind = "dict" if a.items[0] == const("<dict>") else "list"
    made = site.m.heap.new(kind, kind, site.node, site.frame.context, key=("batch", loader_number))
    for pair in a.items[1:]:
        (both,) = pair
        assert isinstance(both, Items)
        name, held = both.items
        key = name[0]
        place = (
            key if kind == "dict" and not str(known(name)).startswith(("#", "*")) else known(name)
        )
        if kind == "list" and isinstance(place, str) and place.isdigit():
            place = int(place)
        rows = (
            held
            if isinstance(place, str) and place.startswith("#")
            else as_rows(site, held, loader_number)
        )
        site.m.heap.write((made.number, place), rows)
    return [Ref(made.number)]


def loader_length(site: Site) -> Value:
    """``len(loader)``: a number of batches, the same on every rank."""
    return SETTING


def tensor_dataset(site: Site) -> Value:
    """``TensorDataset(x, y)``."""
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
    own = site.get(2, "generator") is not None
    site.event("draw", stream=const("a generator" if own else "torch"))
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


def dataset_item(site: Site) -> Value:
    """``dataset[i]``."""
    return sample(site, value(site.receiver) if site.receiver else NOTHING)


def sampler(site: Site) -> Value:
    """A sampler."""
    made = site.made("sampler")
    for i, name in enumerate(("data_source", "num_replicas", "rank", "shuffle")):
        held = site.get(i, name)
        if held is not None:
            site.m.heap.write((made.number, name), held)
    return value(Ref(made.number))


def set_epoch(site: Site) -> Value:
    """``sampler.set_epoch(e)``."""
    site.event(
        "set epoch",
        sampler=value(site.receiver) if site.receiver else NOTHING,
        epoch=site.get(1) or NOTHING,
    )
    return NONE


def batch_attribute(site: Site) -> Value:
    """A field of a batch whose class is not known: rows as well."""
    return value(site.receiver._replace(axes=None)) if isinstance(site.receiver, Data) else SETTING


def batch_item(site: Site) -> Value:
    """``batch[0]``, ``batch["image"]``: a part of a batch."""
    if isinstance(site.receiver, Data):
        key = site.m.constant(site.get(1) or NOTHING)
        if key is not None and isinstance(key.value, int | str):
            return value(site.receiver._replace(kind="batch", axes=None))
        return value(site.receiver._replace(kind="tensor", axes=None))
    return SETTING


def batch_length(site: Site) -> Value:
    """``len(batch)``: of a tuple its parts, of a tensor its rows; not known which."""
    return SETTING


_SETS = words(
    """
MNIST FashionMNIST KMNIST EMNIST QMNIST CIFAR10 CIFAR100 SVHN STL10 ImageFolder
DatasetFolder ImageNet CocoDetection CocoCaptions VOCSegmentation VOCDetection Cityscapes
CelebA FakeData LSUN Omniglot USPS Food101 OxfordIIITPet Flowers102 Caltech101 Caltech256
Places365 StanfordCars GTSRB DTD EuroSAT FGVCAircraft SBDataset LFWPairs Kinetics UCF101
HMDB51
"""
)
ROWS = (
    Row("torch.utils.data.DataLoader", loader, (), _DOC),
    Row("torch.utils.data.TensorDataset", tensor_dataset, (), _DOC),
    Row("torch.utils.data.Subset torch.utils.data.ConcatDataset torch.utils.data.ChainDataset", subset, (), _DOC),
    Row("torch.utils.data.random_split", split, (), _DOC),
    Row(" ".join(f"torch.utils.data.{w}" for w in ["Sampler", "RandomSampler", "SequentialSampler", "SubsetRandomSampler", "WeightedRandomSampler", "BatchSampler", "DistributedSampler"]), sampler, (), _DOC),
    Row("torch.utils.data.get_worker_info torch.utils.data.default_collate torch.utils.data._utils.collate.default_collate", uniform, (), _DOC),
    Row(" ".join(f"torchvision.datasets.{w}" for w in _SETS), dataset, (), "https://docs.pytorch.org/vision/stable/datasets.html"),
)  # fmt: skip
FUNCTIONS = table(ROWS)


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


OF_KIND: dict[tuple[str, str], Row] = {
    ("loader", "__iter__"): Row("", batches),
    ("loader", "begun"): Row("", begun),
    ("loader", "__init__"): Row("", constructed),
    ("loader", "__len__"): Row("", loader_length),
    ("dataset", "__len__"): Row("", uniform),
    ("dataset", "__getitem__"): Row("", dataset_item),
    ("dataset", "__iter__"): Row("", dataset_item),
    ("sampler", "set_epoch"): Row("", set_epoch),
    ("sampler", "__iter__"): Row("", uniform),
    ("sampler", "__len__"): Row("", uniform),
    ("batch", "__getitem__"): Row("", batch_item),
    ("batch", "__iter__"): Row("", batch_attribute),
    ("list of texts", "__iter__"): Row("", batch_attribute),
    ("batch", "items"): Row("", lambda s: s.m.listed([items([SETTING, batch_attribute(s)])], s.node, s.frame, exact=False)),
    ("batch", "keys"): Row("", uniform),
}  # fmt: skip
ATTRIBUTES = {
    ("loader", "dataset"): Row("", lambda s: s.m.heap.read((o.number, "dataset")) or SETTING if (o := s.object) is not None else SETTING),
    **{("loader", n): Row("", uniform) for n in ("batch_size", "num_workers")},
    **{("dataset", n): Row("", uniform) for n in ("classes", "class_to_idx", "targets", "transform", "indices")},
    **{("dataset", n): Row("", lambda s: value(Data("tensor", placements.UNIFORM))) for n in ("data", "labels", "train_data", "train_labels", "test_data")},
}  # fmt: skip
