"""Where a program changes the type of its model, and whether training may follow."""

from __future__ import annotations

import ast

import pytest

from dpmigrate.facts.casts import before_training, casts
from tests.pipeline import script
from tests.rules.program import program


def _casts(lines: str, **parts: str) -> list[tuple[str, str]]:
    found = script(program(before=lines, **parts))  # type: ignore[arg-type]
    return [(ast.unparse(c.call), ast.unparse(c.model)) for c in casts(found.roles)]


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("x = train_set[0][0].half()", id="a tensor"),
        pytest.param("model.to('cuda')", id="a device"),
        pytest.param("model.to(device)", id="a device of which nothing is known"),
        pytest.param("model.to(memory_format=torch.channels_last)", id="a layout"),
        pytest.param("model.float()", id="what it has anyway"),
        pytest.param("model.to(torch.float32)", id="the same by to"),
        pytest.param("model.type(torch.cuda.FloatTensor)", id="the same by type"),
        pytest.param("print(model.type())", id="a question"),
        pytest.param("print(model.half(3))", id="a method of its own"),
        pytest.param("half(model)", id="a function that nobody knows"),
        pytest.param("network_to_half(model)", id="a function of that name that is not imported"),
        pytest.param("network_to_half()", id="without a model"),
        pytest.param("print('model.half()')  # model.half()", id="in a string and a comment"),
        pytest.param("for layer in [1]:\n    layer.half()", id="a part of something else"),
        pytest.param("get()[0].half()", id="of an unknown value"),
        pytest.param("for layer in model.modules():\n    pass\nlayer.half()", id="after the loop over the parts"),
    ],
)
def test_nothing_changes(line: str) -> None:
    assert _casts(line, imports="from apex.fp16_utils import network_to_half" if line == "network_to_half()" else "") == []


def test_inside_a_model() -> None:
    assert (
        _casts(
            "",
            net="class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.fc = nn.Linear(8, 2)\n        self.fc.half()\n    def forward(self, x):\n        return self.fc(x)",
        )
        == []
    )


@pytest.mark.parametrize(
    ("line", "call", "model"),
    [
        pytest.param("model.half()", "model.half()", "model", id="half"),
        pytest.param("model = model.bfloat16()", "model.bfloat16()", "model", id="bfloat16, bound again"),
        pytest.param("if args.double:\n    model.double()", "model.double()", "model", id="under a test"),
        pytest.param("model.to(torch.float16)", "model.to(torch.float16)", "model", id="to"),
        pytest.param("model.to('cuda', torch.half)", "model.to('cuda', torch.half)", "model", id="to, second"),
        pytest.param("model.to(dtype=torch.bfloat16)", "model.to(dtype=torch.bfloat16)", "model", id="to, keyword"),
        pytest.param("model.to(dtype=args.dtype)", "model.to(dtype=args.dtype)", "model", id="a type that is not seen"),
        pytest.param("kind = torch.float64\nmodel.to(kind)", "model.to(kind)", "model", id="through a variable"),
        pytest.param("model.type(torch.cuda.HalfTensor)", "model.type(torch.cuda.HalfTensor)", "model", id="type"),
        pytest.param("model.type(dst_type=torch.float16)", "model.type(dst_type=torch.float16)", "model", id="type, keyword"),
        pytest.param("model.type('torch.HalfTensor')", "model.type('torch.HalfTensor')", "model", id="type, a string"),
        pytest.param("model.type(kind())", "model.type(kind())", "model", id="type, not seen"),
        pytest.param("network_to_half(model)", "network_to_half(model)", "model", id="a function"),
        pytest.param("model.fc.half()", "model.fc.half()", "model", id="a part"),
        pytest.param("for p in model.parameters():\n    p.double()", "p.double()", "model", id="part by part"),
    ],
)
def test_a_change(line: str, call: str, model: str) -> None:
    assert _casts(line, imports="from apex.fp16_utils import network_to_half") == [(call, model)]


def test_what_follows_a_change_counts() -> None:
    """Layers that are put back to float32 after the model has been made half."""
    line = "model.half()\nfor m in model.modules():\n    if isinstance(m, nn.BatchNorm2d):\n        m.float()"
    assert _casts(line) == [("model.half()", "model"), ("m.float()", "model")]


@pytest.mark.parametrize(
    ("parts", "follows"),
    [
        pytest.param({"before": "model.half()"}, True, id="before the epochs"),
        pytest.param({"epoch_end": "model.half()"}, True, id="between the epochs"),
        pytest.param({"epoch_end": "export(model)", "defs": "def export(net):\n    net.half()"}, True, id="in a function, between the epochs"),
        pytest.param({"end": "model.half()"}, False, id="at the end"),
        pytest.param({"end": "export(model)", "defs": "def export(net):\n    net.half()"}, False, id="in a function, at the end"),
        pytest.param({"end": "for k in range(3):\n    model.half()"}, False, id="in a loop that does not train"),
    ],
)
def test_before_training(parts: dict[str, str], follows: bool) -> None:
    found = script(program(**parts))  # type: ignore[arg-type]
    (cast,) = casts(found.roles)
    assert before_training(found.roles, cast.call) is follows
