"""What models of libraries give whose code is not seen: several results, losses, parts with hooks."""

from __future__ import annotations

import pytest

from dpmigrate.execution.values import Data
from tests.execution.paper import executed, held, placed

_HEAD = """
import torch, torchvision
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from elsewhere.nets import Autoencoder
import monai
from vit_pytorch import MAE, SimMIM, ViT
from denoising_diffusion_pytorch import GaussianDiffusion, Unet
from xformers.ops import memory_efficient_attention as attend
from flash_attn import flash_attn_qkvpacked_func, flash_attn_varlen_func
from mamba_ssm.ops.selective_scan_interface import selective_scan_fn
for a, b in DataLoader(TensorDataset(torch.ones(4, 3, 8, 8), torch.ones(4, 3, 8, 8)), 2):
    pass
model = Autoencoder()
torch.optim.Adam(model.parameters())
"""


def found(text: str, *names: str) -> list[str]:
    ex = executed(_HEAD + text)
    return [placed(ex, n) for n in names]


@pytest.mark.parametrize(
    "text",
    [
        "x, y, z = model(a)",
        "x, *rest = model(a)\ny = z = rest[0]",
        "out = model(a)\nx, y, z = out.logits, out['mask'], out.to('cpu')",
        "x, y, z = monai.networks.nets.AutoencoderKL()(a)",
    ],
)
def test_results_that_are_unpacked_are_no_samples(text: str) -> None:
    assert found(text, "x", "y", "z") == ["rows(axis 0)"] * 3


@pytest.mark.parametrize("text", ["x = model(a, b).loss", "x = model(a, b)['loss']", "x = model(a, b)['aux_losses']"])
def test_how_a_loss_of_a_model_takes_the_samples_together_is_not_known(text: str) -> None:
    assert found(text, "x") == ["unknown"]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("x = MAE(encoder=ViT(image_size=8))(a)", "partial(mean)"),
        ("x = SimMIM(encoder=ViT(image_size=8)).to('cuda')(a)", "partial(mean)"),
        ("x = GaussianDiffusion(Unet(8), image_size=8)(a)", "partial(mean)"),
        ("x = GaussianDiffusion(Unet(8), image_size=8)(torch.ones(4, 3, 8, 8))", "uniform"),
    ],
)
def test_models_that_give_the_mean_of_their_loss(text: str, wanted: str) -> None:
    assert found(text, "x") == [wanted]


def _reached(text: str) -> set[str]:
    ex = executed(_HEAD + text)
    numbers = {n for atom in held(ex, "x") or () if isinstance(atom, Data) for n in atom.reached}
    return {ex.heap.objects[n].name for n in numbers}


def test_the_encoder_of_a_masked_autoencoder_keeps_a_head_that_is_not_used() -> None:
    assert _reached("x = MAE(encoder=ViT(image_size=8))(a)") == {"MAE.body"}
    assert {"GaussianDiffusion"} < _reached("x = GaussianDiffusion(Unet(8))(a)")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("x = attend(a, b, b)", "rows(axis 0)"),
        ("x = attend(a, b, b, attn_bias=None, p=0.1)", "rows(axis 0)"),
        ("x = attend(a, b, b, attn_bias=b)", "rows(axis 0)"),
        ("x = attend(a.transpose(0, 1), b, b)", "unknown"),
        ("x = flash_attn_qkvpacked_func(a, dropout_p=0.0, causal=True)", "rows(axis 0)"),
        ("x = flash_attn_qkvpacked_func(a, 0.0, return_attn_probs=True)", "unknown"),
        ("x = flash_attn_varlen_func(a, b, b)", "unknown"),
        ("x, y = selective_scan_fn(a, a, torch.ones(3, 4), b, b, return_last_state=True)", "rows(axis 0)"),
        ("x = selective_scan_fn(a, a, torch.ones(3, 4), b, b, return_last_state=False)", "rows(axis 0)"),
        ("x = selective_scan_fn(a, a, torch.ones(3, 4), b, b, return_last_state=len('abc') > 2)", "rows(axis 0)"),
    ],
)
def test_kernels_take_the_samples_first(text: str, wanted: str) -> None:
    assert found(text, "x")[0] == wanted


@pytest.mark.parametrize(
    "text",
    [
        "kept = []\nlayer = nn.Conv2d(3, 4, 3)\nlayer.register_forward_hook(lambda m, i, o: kept.append(o))\n"
        "nn.Sequential(layer, nn.ReLU())(a)\nx = kept[0]",
        "kept = {}\nnet = torchvision.models.resnet18()\ndef keep(name):\n    def hook(module, given, result):\n"
        "        kept[name] = result\n    return hook\nfor i, part in enumerate(net.layer1):\n"
        "    part.register_forward_hook(keep(f'part {i}'))\nnet(a)\nx = kept[f'part {len(kept)}']",
    ],
)
def test_what_a_hook_keeps_of_a_pass(text: str) -> None:
    assert found(text, "x") == ["rows(axis 0)"]


def test_a_hook_may_put_something_else_in_the_place_of_a_result() -> None:
    text = "layer = nn.Conv2d(3, 4, 3)\nhandle = layer.register_forward_hook(lambda m, i, o: o.mean())\nx = layer(a)\n"
    assert found(f"{text}handle.remove()\ny = layer(a)\n", "x", "y") == ["partial(mean)", "rows(axis 0)"]


def test_a_gradient_comes_from_a_hook_of_a_part_to_that_part_alone() -> None:
    text = "kept = []\nnet = torchvision.models.resnet18()\nnet.layer1.register_forward_hook(lambda m, i, o: kept.append(o))\ny = net(a)\n"
    assert _reached(f"{text}x = kept[0]") == {"resnet18.layer1"}
    assert _reached(f"{text}x = y") == {"resnet18", "resnet18.layer1", "resnet18.rest"}
