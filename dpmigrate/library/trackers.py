"""Objects of unseen code that write, measure or plot: loggers, trackers, metrics that
synchronise.
"""

from __future__ import annotations

from dpmigrate.execution import placements
from dpmigrate.execution.joins import join
from dpmigrate.execution.values import NONE, NOTHING, SETTING, Data, Ref, Value, const, value
from dpmigrate.library.effects import elementwise, none, same, unestablished, uniform
from dpmigrate.library.progress import tracked
from dpmigrate.library.sites import Row, Site, methods
from dpmigrate.library.writers import written

_METRICS = "https://lightning.ai/docs/torchmetrics/stable/pages/overview.html"


def measure(site: Site) -> Value:
    """``torchmetrics.Accuracy()``: keeps sums over what it is given."""
    return site.ref("metric")


def updated(site: Site) -> Value:
    """``metric.update(x, t)``; a call gives the metric of this batch as well."""
    given = join(*[site.flat(v) for v in site.arguments.all()])
    site.event("metric", metric=site.get(0) or NOTHING, given=given)
    if site.word == "update":
        return NONE
    moving = any(d.placement.kind not in placements.EQUAL for d in given if isinstance(d, Data))
    return site.data(placements.PER_RANK if moving else placements.UNIFORM, keep_axes=False)


def computed(site: Site) -> Value:
    """``metric.compute()``: the metric synchronises what the ranks have."""
    site.event("collective", name=const("compute"), given=site.get(0) or NOTHING)
    return value(Data("tensor", placements.UNIFORM))


def scaled(site: Site) -> Value:
    """``apex.amp.scale_loss(loss, optimizer)``: a context that gives the loss."""
    made = site.made("scaled")
    site.m.heap.write((made.number, "loss"), site.get(0) or NOTHING)
    return value(Ref(made.number))


def scaled_loss(site: Site) -> Value:
    """``with scale_loss(…) as scaled:``."""
    made = site.object
    return (site.m.heap.read((made.number, "loss")) if made is not None else None) or SETTING


def itself(site: Site) -> Value:
    """``model.module`` of a wrapper that is not seen."""
    return site.get(0) or SETTING


_ANY = "opaque|setting|str|text"
ROWS = (
    Row(methods(_ANY, """
info debug warning error critical exception log add_scalar add_scalars add_image add_images
add_histogram add_figure add_text add_graph add_summary log_value log_metric log_metrics
log_artifact log_params add_data add_row add_entry to_csv to_json to_excel savefig print_log
log_scalar log_image line images image plot bar scatter imshow report_scalar write writerow
add_embedding add_pr_curve add_video scalar_summary log_hyperparams
"""), written),
    Row(methods("list|dict|set|iterator|generator|opaque|setting|transform", "__len__"), uniform),
    Row(".strftime .isoformat .timestamp .date .time .total_seconds .timetuple .weekday",
        elementwise, source="https://docs.python.org/3/library/datetime.html"),
    Row("<metric>.update <metric>.__call__ <metric>.forward", updated, source=_METRICS),
    Row("<metric>.compute", computed, source=_METRICS),
    Row("<metric>.reset", none, source=_METRICS),
    Row("<metric>.to <metric>.cuda <metric>.clone", same, source=_METRICS),
    Row("apex.amp.scale_loss", scaled, source="https://nvidia.github.io/apex/amp.html"),
    Row("<scaled>.__enter__", scaled_loss, source="https://nvidia.github.io/apex/amp.html"),
    Row("<scaled>.__exit__", none),
    Row("""
tensorflow.Summary tensorflow.Summary.Value tensorflow.summary.scalar tensorflow.summary.image
tensorflow.Summary.Image
""", tracked),
    Row("torch.onnx.export pytorch_model_summary.summary torchviz.make_dot", none),
)  # fmt: skip
ATTRIBUTES = (Row("<opaque>.module", itself),)


def pattern(name: str) -> Row | None:
    """Metrics of torchmetrics, functions of boxes."""
    word = name.rsplit(".", 1)[-1]
    if name.startswith("torchmetrics.") and word[:1].isupper():
        return Row(name, measure, source=_METRICS)
    if name.startswith("torchvision.ops."):
        return Row(name, unestablished("which samples the boxes belong to"))
    return None
