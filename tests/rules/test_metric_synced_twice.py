"""DPM608: metrics of a library in an evaluation that every rank does in full."""

from __future__ import annotations

import pytest

from tests.rules.program import STEP, after, found, hits

_IMPORTS = "import torchmetrics\nfrom torchmetrics import MetricCollection\nfrom torchmetrics.classification import MulticlassAccuracy as Accuracy"
_EVALUATION = """\
val_loader = DataLoader(val_set, batch_size=16)
for a, b in val_loader:
    {update}
print(metric)
"""


def _end(update: str) -> str:
    return _EVALUATION.format(update=update)


@pytest.mark.parametrize(
    ("setup", "update"),
    [
        pytest.param("metric = other.Accuracy()", "metric.update(model(a), b)", id="another library"),
        pytest.param("metric = torchmetrics.functional.accuracy", "metric(model(a), b)", id="a function"),
        pytest.param("metric = Accuracy(3, sync_on_compute=True)", "metric(model(a), b)", id="somebody has decided"),
        pytest.param("metric = Accuracy(**options)", "metric(model(a), b)", id="options that are not known"),
        pytest.param("metric = Accuracy(3)", "print(model(a))", id="never updated"),
        pytest.param("metric = torchmetrics.functional.accuracy(x, y)", "print(model(a))", id="a value"),
    ],
)
def test_nothing_to_say(setup: str, update: str) -> None:
    assert found("DPM608", imports=_IMPORTS, setup=setup, end=_end(update)) == []


@pytest.mark.parametrize(
    ("setup", "update", "line"),
    [
        pytest.param("metric = Accuracy(3)", "metric(model(a), b)", "metric = Accuracy(3, sync_on_compute=False)", id="called"),
        pytest.param("metric = torchmetrics.SumMetric()", "metric.update(model(a))", "metric = torchmetrics.SumMetric(sync_on_compute=False)", id="updated"),
        pytest.param("metric = MetricCollection([Accuracy(3)])", "metric.update(model(a), b)", "metric = MetricCollection([Accuracy(3, sync_on_compute=False)])", id="in a collection"),
    ],
)  # fmt: skip
def test_whole_on_every_rank(setup: str, update: str, line: str) -> None:
    assert line in after(imports=_IMPORTS, setup=setup, end=_end(update))


def test_a_metric_of_the_training() -> None:
    assert found("DPM608", imports=_IMPORTS, setup="metric = Accuracy(3)", step=f"{STEP}metric.update(x, y)\n") == []
    quiet = f"{STEP}with torch.no_grad():\n    metric.update(x, y)\n"
    assert found("DPM608", imports=_IMPORTS, setup="metric = Accuracy(3)", step=quiet) == []


def test_a_metric_of_both() -> None:
    (one,) = hits("DPM608", imports=_IMPORTS, setup="metric = Accuracy(3)", step=f"{STEP}metric.update(x, y)\n", end=_end("metric.update(model(a), b)"))
    assert not one.edits and "second metric" in one.advice


@pytest.mark.parametrize(
    "metric",
    [
        pytest.param("from ignite.metrics import PSNR as Metric", id="of Ignite"),
        pytest.param("from pytorch_lightning.metrics import Accuracy as Metric", id="of an old Lightning"),
        pytest.param("from catalyst.metrics import AccuracyMetric as Metric", id="of Catalyst"),
    ],
)
def test_a_metric_whose_constructor_cannot_say_so(metric: str) -> None:
    (one,) = hits("DPM608", imports=metric, setup="metric = Metric()", end=_end("metric.update((model(a), b))"))
    assert not one.edits and "of torchmetrics" in one.advice
    assert found("DPM608", imports=metric, setup="metric = Metric()", step=f"{STEP}metric.update((x, y))\n") == []
