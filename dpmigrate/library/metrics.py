"""scikit-learn, scipy and metrics over predictions (https://scikit-learn.org/stable/api/)."""

from __future__ import annotations

from dpmigrate.execution import placements
from dpmigrate.execution.values import NONE, SETTING, Data, Ref, Value, const, items, placement_of, value
from dpmigrate.library import streams
from dpmigrate.library.effects import coupled, elementwise, uniform
from dpmigrate.library.pure import method
from dpmigrate.library.reductions import along
from dpmigrate.library.sites import Row, Site, methods, prefixed

_DOC = "https://scikit-learn.org/stable/api/sklearn.metrics.html"
_PREPROCESSING = "https://scikit-learn.org/stable/api/sklearn.preprocessing.html"
_METRICS = "https://lightning.ai/docs/torchmetrics/stable/pages/overview.html"


def metric(site: Site) -> Value:
    """A metric over what it is given: of the rank's samples, and no sum over them."""
    return coupled(site)


def divided(site: Site) -> Value:
    """``train_test_split(a, b)``: two parts of each, the same on every rank if what is split is."""
    found = []
    for v in site.arguments.positional:
        flat = site.flat(v)
        moving = flat and placement_of(flat).kind not in placements.EQUAL
        part = site.data(placements.PER_RANK, keep_axes=False) if moving else flat or SETTING
        if not moving and site.m.objects(v):
            part = v
        found += [part, part]
    if _seeded(site):
        return items(found)
    return items(streams.drawn(site, "numpy", part) for part in found)


def _seeded(site: Site) -> bool:
    """Whether the order is given, by a seed or because nothing is shuffled."""
    given = site.arguments.keywords
    return given.get("random_state", NONE) != NONE or given.get("shuffle") == const(False)


def folds(site: Site) -> Value:
    """``KFold(n)``."""
    ordered = site.word.endswith("KFold") and "shuffle" not in site.arguments.keywords
    return site.ref("folds", seeded=const(ordered or _seeded(site)))


def fold(site: Site) -> Value:
    """``folds.split(x)``: pairs of places."""
    part: Value = SETTING
    if any(site.m.depends(v).kind not in placements.EQUAL for v in site.arguments.all()):
        part = site.data(placements.PER_RANK, kind="array", keep_axes=False)
    assert site.object is not None
    if site.m.heap.read((site.object.number, "seeded")) == const(False):
        part = streams.drawn(site, "numpy", part)
    return site.m.listed([items([part, part])], site.node, site.frame, exact=False)


def rescaled(site: Site) -> Value | None:
    """``scaler.fit_transform(x)``: a table with a row for each sample, whatever it is given. Of what is
    no scaler, or data that differ between ranks, what such a method gives of any object.
    """
    axes = _axes_given(site)
    return value(Data("array", placements.UNIFORM, axes=axes)) if axes else method(site)


def fitted(site: Site) -> Value | None:
    """``scaler.fit(x)``: the scaler; of anything else what such a method gives of any object."""
    made = site.object
    return value(Ref(made.number)) if made is not None and _axes_given(site) else method(site)


def _axes_given(site: Site) -> int:
    """How many axes has what a transformer makes of data that are the same on all ranks; 0 where that
    is not known.
    """
    same = all(site.m.depends(v).kind in placements.EQUAL for v in site.arguments.all())
    return _AXES.get(site.object.name, 0) if site.object is not None and same else 0


#: how many axes has what a transformer gives
_AXES = {
    **dict.fromkeys(("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler", "Normalizer"), 2),
    **dict.fromkeys(("QuantileTransformer", "PowerTransformer", "PCA", "SimpleImputer"), 2),
    "LabelEncoder": 1,
}
ROWS = (
    Row("sklearn.model_selection.train_test_split", divided, source=_DOC),
    Row(methods("any", "fit_transform transform inverse_transform"), rescaled, source=_PREPROCESSING),
    Row(methods("any", "fit"), fitted, source=_PREPROCESSING),
    Row(
        prefixed(
            "sklearn.model_selection.",
            """
KFold StratifiedKFold GroupKFold ShuffleSplit StratifiedShuffleSplit
""",
        ),
        folds,
        source=_DOC,
    ),
    Row("<folds>.split", fold, source=_DOC),
    Row("<folds>.get_n_splits", uniform, source=_DOC),
    Row(
        """
scipy.special.expit scipy.special.logit scipy.stats.norm.cdf scipy.stats.norm.pdf
""",
        elementwise,
    ),
    Row("scipy.special.softmax scipy.special.logsumexp", along(), ()),
)  # fmt: skip


def pattern(name: str) -> Row | None:
    """Families of names."""
    if name.startswith("torchmetrics.functional."):
        return Row(name, metric, source=_METRICS)
    return None
