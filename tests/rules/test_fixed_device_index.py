"""DPM103: every rank has its own GPU."""

from __future__ import annotations

import pytest

from tests.rules.program import STEP, after, found


@pytest.mark.parametrize(
    "end",
    [
        pytest.param("d = torch.device('cuda')", id="the current device"),
        pytest.param("d = torch.device('cpu')", id="the CPU"),
        pytest.param("d = 'cuda:x'  # 'cuda:0'", id="not a number; in a comment"),
        pytest.param("print('use cuda:0 or cuda:1')", id="part of a sentence"),
        pytest.param("t = torch.ones(1).cuda()", id="no number"),
        pytest.param("t = torch.ones(1).cuda(device)", id="a device that is no number"),
        pytest.param("t = torch.ones(1).to(device)", id="a device"),
        pytest.param("t = torch.ones(1).to('cuda')", id="a name"),
        pytest.param("t = torch.ones(1).to(dtype=torch.float64)", id="no device"),
        pytest.param("t = torch.ones(1).to(True)", id="a truth value is no number"),
        pytest.param("s = f'{device}:0'", id="a string that begins with something else"),
        pytest.param("s = f'cuda:{0}:{1}'", id="a longer string"),
        pytest.param("s = ''.join('a')\ns = f''\ns = 'x:' + s", id="other strings"),
        pytest.param("s = device + ':0'", id="added to something else"),
        pytest.param("s = 'gpu {}'.format(0)", id="another format"),
        pytest.param("s = 'cuda:{}'.upper()", id="another method"),
        pytest.param("n = torch.cuda.set_device(0)", id="set_device whose value is used"),
        pytest.param("print(torch.cuda.get_device_name(0))", id="the name of the first GPU"),
        pytest.param("torch.cuda.synchronize()\nn = torch.cuda.max_memory_allocated(device)", id="the current GPU"),
        pytest.param("with torch.cuda.device(device):\n    pass", id="a device for a block"),
        pytest.param("n = os.environ['A'][0]\nt = torch.ones(1).cuda(n)", id="an item of something else"),
    ],
)
def test_nothing_to_say(end: str) -> None:
    assert found("DPM103", setup="device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')", end=end) == []


@pytest.mark.parametrize(
    ("line", "pointed", "new"),
    [
        pytest.param("d = 'cuda:0'", "'cuda:0'", 'd = "cuda"', id="string"),
        pytest.param("d = torch.device('cuda:1' if n else 'cpu')", "'cuda:1'", "d = torch.device(\"cuda\" if n else 'cpu')", id="expression"),
        pytest.param("d = f'cuda:{n}'", "f'cuda:{n}'", 'd = "cuda"', id="f-string"),
        pytest.param("d = 'cuda:' + str(n)", "'cuda:' + str(n)", 'd = "cuda"', id="sum"),
        pytest.param("d = 'cuda:%d' % n", "'cuda:%d' % n", 'd = "cuda"', id="percent"),
        pytest.param("d = 'cuda:{}'.format(n)", "'cuda:{}'.format(n)", 'd = "cuda"', id="format"),
        pytest.param("d = torch.device('cuda', 0)", "torch.device('cuda', 0)", "d = torch.device('cuda')", id="index"),
        pytest.param("d = torch.device('cuda', index=n)", "torch.device('cuda', index=n)", "d = torch.device('cuda')", id="index by keyword"),
        pytest.param("d = torch.device(0)", "torch.device(0)", 'd = torch.device("cuda")', id="a number alone"),
        pytest.param("t = torch.ones(1).cuda(0)", "torch.ones(1).cuda(0)", "t = torch.ones(1).cuda()", id="cuda"),
        pytest.param("t = torch.ones(1).cuda(device=n)", "torch.ones(1).cuda(device=n)", "t = torch.ones(1).cuda()", id="cuda, keyword"),
        pytest.param("t = torch.ones(1).cuda(0, True)", "torch.ones(1).cuda(0, True)", "t = torch.ones(1).cuda(non_blocking=True)", id="cuda, two"),
        pytest.param("t = torch.ones(1).cuda(args.gpu)", "torch.ones(1).cuda(args.gpu)", "t = torch.ones(1).cuda()", id="a setting"),
        pytest.param("t = torch.ones(1).cuda(gpu_ids[0])", "torch.ones(1).cuda(gpu_ids[0])", "t = torch.ones(1).cuda()", id="the first of a list"),
        pytest.param("t = torch.ones(1).to(0)", "0", "t = torch.ones(1).to(ddp.device())", id="to"),
        pytest.param("t = torch.ones(1).to(device=args.gpu)", "args.gpu", "t = torch.ones(1).to(device=ddp.device())", id="to, a setting"),
        pytest.param("d = 0 if n else 'cpu'\nt = torch.ones(1).to(d)", "0", "d = ddp.local_rank() if n else 'cpu'", id="to, through a name"),
        pytest.param("torch.cuda.synchronize(0)", "torch.cuda.synchronize(0)", "torch.cuda.synchronize(ddp.local_rank())", id="wait"),
        pytest.param("m = torch.cuda.max_memory_allocated(device=args.gpu)", "torch.cuda.max_memory_allocated(device=args.gpu)", "m = torch.cuda.max_memory_allocated(device=ddp.local_rank())", id="memory"),
        pytest.param("print(torch.cuda.get_device_name(args.gpu))", "torch.cuda.get_device_name(args.gpu)", "print(torch.cuda.get_device_name(ddp.local_rank()))", id="a name"),
        pytest.param("with torch.cuda.device(0):\n    pass", "torch.cuda.device(0)", "with torch.cuda.device(ddp.local_rank()):", id="for a block"),
    ],
)
@pytest.mark.parametrize("module_level", [False, True], ids=["function", "module"])
def test_found_and_fixed(line: str, pointed: str, new: str, module_level: bool) -> None:
    setup = "import argparse\nargs = argparse.ArgumentParser().parse_args()\nn = 1\ngpu_ids = [0]"
    parts: dict[str, str | bool] = {"setup": setup, "end": line, "module_level": module_level}
    assert found("DPM103", **parts) == [pointed]
    assert new in after(**parts)


def test_set_device_goes() -> None:
    parts = {"setup": "torch.cuda.set_device(1)"}
    assert found("DPM103", **parts) == ["torch.cuda.set_device(1)"]
    assert after(**parts) == []
    assert after(imports="from torch.cuda import set_device as use", setup="use(device=0)") == []


def test_in_a_method_and_a_parameter() -> None:
    defs = "class T:\n    def move(self, x, gpu):\n        return x.cuda(gpu)"
    assert "return x.cuda()" in after(defs=defs)


def test_the_map_of_a_load_is_replaced_as_a_whole() -> None:
    assert found("DPM103", end="torch.load('a', map_location={'cuda:0': 'cuda:1'})") == []
    assert found("DPM103", end="d = {'cuda:0': 1}") == ["'cuda:0'"]


_FUNCTION = """
class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, gpu):
        {line}
        return x * 2
"""


@pytest.mark.parametrize("device", ["x.device", "x.get_device()", "x.device.index", "x[0].device"])
def test_the_device_of_a_tensor_stays(device: str) -> None:
    assert found("DPM103", defs=_FUNCTION.format(line=f"torch.cuda.set_device({device})")) == []


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({"step": "torch.cuda.set_device(x.device)\n" + STEP}, id="of the batch"),
        pytest.param({"step": "x = x.cuda()\ntorch.cuda.set_device(device=x.device)\n" + STEP}, id="of the batch, moved; keyword"),
        pytest.param({"batches": "for i, (x, y) in enumerate(loader):", "step": "torch.cuda.set_device(x.device)\n" + STEP}, id="of the batch, counted"),
        pytest.param({"before": "torch.cuda.set_device(next(model.parameters()).device)"}, id="of the model"),
        pytest.param({"before": "torch.cuda.set_device(model.fc.weight.device)"}, id="of a layer"),
        pytest.param({"before": "where = model.fc.bias.device\ntorch.cuda.set_device(where)"}, id="through a name"),
    ],
)
def test_the_device_of_the_data_stays(parts: dict[str, str]) -> None:
    assert found("DPM103", **parts) == []


@pytest.mark.parametrize("device", ["0", "args.gpu", "args.device", "gpu", "where", "self.device", "other.device", "later.index", "make()", "again"])
def test_a_setting_goes(device: str) -> None:
    before = f"where = args.device\nagain = again\nother = make()\ntorch.cuda.set_device({device})"
    assert found("DPM103", before=before) == [f"torch.cuda.set_device({device})"]
    assert found("DPM103", defs=_FUNCTION.format(line="torch.cuda.set_device(ctx.device)")) == ["torch.cuda.set_device(ctx.device)"]
