"""DPM903: DataParallel by hand."""

from __future__ import annotations

import pytest

from tests.rules.program import found, hits, refused


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({}, id="none"),
        pytest.param({"model": "model = nn.DataParallel(Net())"}, id="DataParallel itself"),
        pytest.param({"end": "torch.gather(torch.ones(1), 0, torch.zeros(1).long())"}, id="another gather"),
        pytest.param({"imports": "import lib", "end": "lib.replicate(3)\nlib.spawn(3)"}, id="another library's"),
        pytest.param({"end": "print('nn.parallel.gather')  # nn.parallel.gather(a)"}, id="in a string and a comment"),
        pytest.param({"defs": "class A(dict):\n    pass"}, id="a class of something else"),
    ],
)
def test_nothing_to_say(parts: dict[str, str]) -> None:
    assert found("DPM903", **parts) == []


@pytest.mark.parametrize(
    ("imports", "call"),
    [
        pytest.param("", "nn.parallel.data_parallel(model, 1, range(2))", id="functional"),
        pytest.param("", "torch.nn.parallel.replicate(network=model, devices=[0])", id="replicate, keyword"),
        pytest.param("from torch.nn.parallel import scatter as s", "s(1, [0])", id="from-import with alias"),
        pytest.param("from torch.nn.parallel.scatter_gather import gather", "gather(1, 0)", id="inner module"),
        pytest.param("from torch.nn.parallel import parallel_apply", "parallel_apply([], [])", id="parallel_apply"),
        pytest.param("from geometric.nn import DataParallel", "DataParallel(model)", id="another library's DataParallel"),
        pytest.param("from parallel import DataParallelModel as P", "P(model)", id="a relative of DataParallel"),
        pytest.param("from net import *", "DataParallel(model)", id="DataParallel from somewhere"),
    ],
)
@pytest.mark.parametrize("module_level", [False, True], ids=["function", "module"])
def test_refused(imports: str, call: str, module_level: bool) -> None:
    assert refused("DPM903", imports=imports, before=f"z = {call}", module_level=module_level) == [call]


@pytest.mark.parametrize(
    ("imports", "base"),
    [pytest.param("", "nn.DataParallel", id="attribute"), pytest.param("from torch.nn.parallel import DataParallel as D", "D", id="from-import with alias")],
)
def test_derived_classes(imports: str, base: str) -> None:
    mine = f"class Mine({base}):\n    def gather(self, outputs, output_device):\n        return outputs"
    assert refused("DPM903", imports=imports, defs=mine, before="z = Mine(model)") == [base]
    assert refused("DPM903", imports=imports, defs=mine) == []  # nothing makes one
    copies = f"class Mine({base}):\n    def replicate(self, module, device_ids):\n        return super().replicate(module, device_ids)"
    assert refused("DPM903", imports=imports, defs=copies, model="model = Mine(Net())") == []


def test_a_list_of_graphs_is_no_batch() -> None:
    call = "DataParallel(model)"
    imports = "from torch_geometric.nn import DataParallel"
    (hit,) = hits("DPM903", imports=imports, before=f"z = {call}")
    assert "list of graphs" in hit.message


def test_inside_a_model_it_is_not_refused() -> None:
    defs = "class Part(nn.Module):\n    def forward(self, x):\n        return nn.parallel.data_parallel(self.main, x, range(2))"
    assert found("DPM903", defs=defs) == []


def test_a_part_that_is_not_named() -> None:
    call = "nn.parallel.data_parallel(make(), x, range(2))"
    assert refused("DPM903", defs=f"class Part(nn.Module):\n    def forward(self, x):\n        return {call}") == [call]
