"""torch.ao.nn.quantized: the objects that add and multiply where a model may be quantised later."""

from __future__ import annotations

from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.values import Value
from dpmigrate.library.effects import same
from dpmigrate.library.joining import cat
from dpmigrate.library.sites import Row, Site, methods

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


ROWS = (
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
