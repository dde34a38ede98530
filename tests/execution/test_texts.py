"""Texts that are made of values, and of objects of the program."""

from __future__ import annotations

import pytest

from dpmigrate.execution.values import placement_of
from tests.execution.paper import executed, module_of

_METER = """
import dpmigrate_runtime as ddp
rank = ddp.rank()
class Meter:
    def __init__(self):
        self.own, self.all, self.items = rank, 3, [rank, 3]
{method}
meter = Meter()
found = {made}
"""


def placed(made: str, method: str = "") -> str:
    ex = executed(_METER.format(method=method, made=made))
    held = ex.heap.read((module_of(ex).number, "found"))
    assert held
    return str(placement_of(ex.bound(held)))


@pytest.mark.parametrize(
    ("made", "placement"),
    [
        ("'{}'.format(3)", "uniform"),
        ("'{}'.format(meter.all)", "uniform"),
        ("'{0.all} {0.own}'.format(meter)", "per rank"),
        ("'{0.all}'.format(meter)", "uniform"),
        ("'{m.all:.3f} {n}'.format(m=meter, n=3)", "uniform"),
        ("'{m.items[0]:d}'.format(m=meter)", "per rank"),
        ("'{m.items[1]:d}'.format(m=meter)", "uniform"),
        ("'{m[a]} {}'.format(rank, m={'a': 3})", "per rank"),
        ("'{m[a]} {m[b]}'.format(m={'a': 3, 'b': rank})", "per rank"),
        ("'{{}} {}'.format(rank)", "per rank"),
        ("'{:{w}}'.format(rank, w=3)", "per rank"),  # what is not read field by field
        ("'{'.format(rank)", "per rank"),
        ("'{no}'.format(m=rank)", "per rank"),
        ("'{0.all}'.format(*[meter])", "uniform"),
        ("str(meter)", "per rank"),  # by what it holds
    ],
)
def test_fields_of_objects(made: str, placement: str) -> None:
    assert placed(made) == placement


@pytest.mark.parametrize("name", ["__str__", "__repr__", "__format__"])
@pytest.mark.parametrize(
    "made",
    ["f'{meter}'", "f'{meter:>8}'", "f'{meter!r}'", "'{}'.format(meter)", "'{!r:>8}'.format(meter)", "'{m:>8}'.format(m=meter)", "'%s' % meter", "str(meter)", "format(meter)"],
)
def test_what_objects_say_of_themselves(name: str, made: str) -> None:
    given = ", how" if name == "__format__" and "!r" not in made else ""
    if "!r" in made:
        name = "__repr__"  # the only one that is asked
    for field, placement in (("own", "per rank"), ("all", "uniform")):
        method = f"    def {name}(self{given}):\n        return str(self.{field})\n"
        assert placed(made, method) == placement


def test_a_conversion_of_constants() -> None:
    assert placed("f'{3!a:>4}' + f'{3!s}' + f'{3!r}'") == "uniform"


def test_what_is_printed_of_an_object() -> None:
    method = "    def __str__(self):\n        return str(self.{field})\n"
    for field, kind in (("own", "per rank"), ("all", "uniform")):
        ex = executed(_METER.format(method=method.format(field=field), made="print(meter)"))
        (event,) = ex.trace.of("print")
        assert str(placement_of(event.values["value 0"])) == kind
