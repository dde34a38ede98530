"""torch.ao: the objects that add and multiply where a model may be quantised later; observers, layers that round as if quantised, and what puts them into
a model. These compute with each sample by itself, but for ranges of values that they keep of their batches (``batch_state``), as BatchNorm does.
"""

from __future__ import annotations

from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.values import NOTHING, Value
from dpmigrate.library import batch_state
from dpmigrate.library.copies import copy_of
from dpmigrate.library.effects import same
from dpmigrate.library.joining import cat
from dpmigrate.library.layers import layer
from dpmigrate.library.sites import Row, Site, methods

_AO = "https://docs.pytorch.org/docs/stable/quantization-support.html"
_DOC = "https://docs.pytorch.org/docs/stable/generated/torch.ao.nn.quantized.FloatFunctional.html"


def made(site: Site) -> Value:
    """``FloatFunctional()``: without parameters."""
    return site.ref("arithmetic")


def _without(site: Site) -> Site:
    """The call as one of a function that is given the operands alone."""
    given = site.all()[1:]
    return Site(site.m, site.name, Arguments(given), site.node, site.frame)


def by_element(site: Site) -> Value:
    """``f.add(x, y)``: as ``x + y``."""
    return _without(site).each()


def joined(site: Site) -> Value | None:
    """``f.cat([x, y], dim)``: as ``torch.cat``."""
    return cat()(_without(site))


def observer(site: Site) -> Value:
    """``FakeQuantize()``, ``MinMaxObserver()``: a layer that gives what it is given, rounded or not, and keeps the range of it."""
    made = stub(site)
    batch_state.observed(site, made)
    return made


def stub(site: Site) -> Value:
    """``QuantStub()``: a layer that gives what it is given, and may hold an observer."""
    return layer(Site(site.m, "torch.nn.Identity", Arguments(), site.node, site.frame))


def of_training(site: Site) -> Value:
    """``torch.ao.nn.qat.Linear(8, 16, qconfig=c)``: the layer of torch.nn with an observer of its weight and of what it gives."""
    made = layer(Site(site.m, f"torch.nn.{site.word}", site.arguments, site.node, site.frame))
    batch_state.observed(site, made)
    return made


def prepared(site: Site) -> Value:
    """``prepare_qat(model)``: a copy of the model with observers behind its layers; ``inplace=True``: the model itself."""
    given = site.get(0, "model") or NOTHING
    place = {"prepare_qat": 2, "prepare": 1}.get(site.word, -1)
    model = given if site.constant(place, "inplace") is True else copy_of(site, given)
    batch_state.observed(site, model)
    return model


ROWS = (
    Row("""
torch.ao.quantization.FakeQuantize torch.ao.quantization.FusedMovingAvgObsFakeQuantize
torch.ao.quantization.MinMaxObserver torch.ao.quantization.MovingAverageMinMaxObserver
torch.ao.quantization.PerChannelMinMaxObserver torch.ao.quantization.MovingAveragePerChannelMinMaxObserver
torch.ao.quantization.HistogramObserver torch.ao.quantization.RecordingObserver
""", observer, ("torch.ao.quantization.MinMaxObserver()(x)",), _AO),
    Row("torch.ao.quantization.QuantStub torch.ao.quantization.DeQuantStub", stub, ("torch.ao.quantization.QuantStub()(x)",), _AO),
    Row("""
torch.ao.quantization.prepare_qat torch.ao.quantization.prepare
torch.ao.quantization.quantize_fx.prepare_qat_fx torch.ao.quantization.quantize_fx.prepare_fx
""", prepared, source=_AO),
    Row(" ".join(f"torch.ao.nn.qat.{name}" for name in ("Linear", "Conv1d", "Conv2d", "Conv3d", "Embedding", "EmbeddingBag")), of_training, (
        "torch.ao.nn.qat.Linear(4, 2, qconfig=torch.ao.quantization.QConfig(torch.nn.Identity, torch.nn.Identity))(x)",
    ), _AO),
    Row("""
torch.nn.quantized.FloatFunctional torch.ao.nn.quantized.FloatFunctional
""", made, ("torch.ao.nn.quantized.FloatFunctional().add(x, y)",), _DOC),
    Row(methods("arithmetic", "add mul add_relu add_scalar mul_scalar"), by_element, (
        "torch.nn.quantized.FloatFunctional().add(x, x * 2)",
        "torch.ao.nn.quantized.FloatFunctional().mul_scalar(x, 2.0)",
    ), _DOC),
    Row("<arithmetic>.cat", joined, ("torch.nn.quantized.FloatFunctional().cat([x, x], 1)",), _DOC),
    Row(methods("arithmetic", "to cuda train eval"), same, source=_DOC),
)  # fmt: skip
