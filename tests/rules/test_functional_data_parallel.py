"""DPM143: a model that spreads its own forward."""

from __future__ import annotations

import pytest

from tests.rules.program import found, whole

_PART = "class Part(nn.Module):\n    def forward(self, x):\n        return {call}"


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({}, id="none"),
        pytest.param({"before": "z = nn.parallel.data_parallel(model, 1, range(2))"}, id="outside a model: refused"),
        pytest.param({"imports": "import lib", "defs": _PART.format(call="lib.data_parallel(self.main, x)")}, id="another library's"),
    ],
)
def test_nothing_to_say(parts: dict[str, str]) -> None:
    assert found("DPM143", **parts) == []


@pytest.mark.parametrize(
    ("imports", "call", "expected"),
    [
        pytest.param("", "nn.parallel.data_parallel(self.main, x, range(2))", "self.main(x)", id="positional"),
        pytest.param("", "torch.nn.parallel.data_parallel(inputs=x, module=self.main)", "self.main(x)", id="keyword"),
        pytest.param("from torch.nn.parallel import data_parallel as dp", "dp(self.layers[0], (x, x + 1))", "self.layers[0](x, x + 1)", id="several inputs"),
        pytest.param("", "nn.parallel.data_parallel(self.main, x, module_kwargs=dict(a=1))", "self.main(x, **dict(a=1))", id="keywords of the module"),
        pytest.param("", "nn.parallel.data_parallel(self.main, x, module_kwargs=None)", "self.main(x)", id="no keywords"),
        pytest.param("from torch.nn.parallel.data_parallel import data_parallel", "data_parallel(self.main, x)", "self.main(x)", id="inner module"),
    ],
)
def test_called_directly(imports: str, call: str, expected: str) -> None:
    assert f"return {expected}" in whole(imports=imports, defs=_PART.format(call=call))
