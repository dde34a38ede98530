"""Networks and losses of libraries: rows in and rows out, and losses by their reduction."""

from __future__ import annotations

import pytest

from dpmigrate.execution import placements
from dpmigrate.execution.values import Data, const
from tests.execution.paper import executed, held, lines, placed

BEFORE = """\
import torchvision, timm, piq, kornia, monai
import segmentation_models_pytorch as smp
from efficientnet_pytorch import EfficientNet
from pytorch_msssim import SSIM, ssim
from torch_geometric.nn import GCNConv, global_mean_pool, ASAPooling, EdgePooling, SAGPooling, Set2Set, TopKPooling
from torch_geometric.utils import add_self_loops
from torch_geometric.data import Data
from torchcrf import CRF
from TorchCRF import CRF as FieldByRow
from allennlp.modules.conditional_random_field import ConditionalRandomField, allowed_transitions
from mamba_ssm import Mamba
from diffusers import UNet2DModel, DDPMScheduler
import torch.nn as nn
import albumentations as A
from torchvision import transforms as T
import dpmigrate_runtime as ddp
from torch.utils.data import DataLoader, TensorDataset
loader = DataLoader(TensorDataset(torch.ones(4, 3, 8, 8), torch.ones(4, 3, 8, 8)), 2)
nodes = DataLoader(TensorDataset(torch.ones(4, 3), torch.ones(4, 2)), 2)
for a, b in loader:
    pass
for n, e in nodes:
    pass
"""


def found(text: str, name: str = "x") -> str:
    return placed(executed(BEFORE + text), name)


@pytest.mark.parametrize(
    "text",
    [
        "x = smp.Unet('a')(a)",
        "x = timm.create_model('a')(a)",
        "x = torchvision.models.resnet18()(a)",
        "x = torchvision.models.get_model('a')(a)",
        "x = torchvision.models.inception_v3(pretrained=True, aux_logits=False)(a)",
        "x = torch.hub.load('pytorch/vision:v0.10.0', 'resnet18', pretrained=True)(a)",
        "x = torch.hub.load('pytorch/vision', 'deeplabv3_resnet50')(a)['out']",
        "x = torch.hub.load(repo_or_dir='facebookresearch/dinov2', model='dinov2_vits14')(a)",
        "x = EfficientNet.from_pretrained('a')(a)",
        "x = torchvision.models.segmentation.fcn_resnet50()(a)['out']",
        "x = monai.networks.nets.UNet(3)(a)",
        "x = GCNConv(3, 4)(n, e)",
        "x = global_mean_pool(n, e)",
        "x = UNet2DModel()(a, 3).sample",
        "x = DDPMScheduler().add_noise(a, b, 3)",
        "x = DDPMScheduler().add_noise(a, b, torch.randint(0, 9, (a.size(0),)))",
        "x = DDPMScheduler().add_noise(a.view(-1, 1), a.view(-1, 1), e[:, 0])",
        "x = monai.networks.nets.UNet(3)(a.view(-1, 1), e[:, 0])",
        "x = Mamba(d_model=8)(a[:, 0])",
        "x = CRF(5, batch_first=True)(n[:, None], e[:, :1].long(), reduction='none')",
        "x = CRF(5)(n[:, None].transpose(0, 1), e[:, :1].t().long(), reduction='none')",
        "x = FieldByRow(5)(n[:, None], e[:, :1].long(), e[:, :1] > 0)",
        "x = ssim(a, b, size_average=False)",
        "x = torchvision.ops.sigmoid_focal_loss(a, b)",
    ],
)
def test_rows_in_rows_out(text: str) -> None:
    ex = executed(BEFORE + text)
    assert placed(ex, "x") == "rows(axis 0)"


_FIELD = "c = CRF(5, batch_first=True)\nm = e > 0\nk = m.long()\n"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("x = -c(n, k, mask=m)", "partial(sum)"),
        ("x = -c(n, k, mask=m, reduction='mean')", "partial(mean)"),
        ("x = -c(n, k, m, 'mean')", "partial(mean)"),
        ("x = c(n, k, m, reduction='token_mean')", "ratio"),
        ("x = c(n, k, reduction='token_mean')", "partial(mean)"),
        ("x = c(n, k, reduction=load())", "unknown"),
        ("x = CRF(5, batch_first=load())(n, k, m)", "unknown"),
        ("x = CRF(5)(n, k, m)", "per rank"),  # the samples are taken for the places of one sequence
        ("x = Mamba(8)(a.transpose(0, 1))", "per rank"),
        ("x = ConditionalRandomField(5, allowed_transitions('BIO', {}))(n, k, m) / n.size(0)", "partial(mean)"),
        ("x = np.array(c.decode(n, m))", "rows(axis 0)"),
        ("x = DDPMScheduler().add_noise(a.transpose(0, 1), b, e[:, 0])", "unknown"),
    ],
)
def test_layers_along_sequences(text: str, wanted: str) -> None:
    assert found(f"import numpy as np\nfrom elsewhere import load\n{_FIELD}{text}") == wanted


def test_a_field_over_sequences_that_are_filled_up() -> None:
    """What they are filled up with counts unless a mask leaves it out."""
    head = """
from torch.nn.utils.rnn import pad_sequence
from torchcrf import CRF
from torch.utils.data import DataLoader
def join(samples):
    return pad_sequence([s[0] for s in samples], batch_first=True), pad_sequence([s[1] for s in samples], batch_first=True)
for x, y in DataLoader([(torch.ones(3, 5), torch.ones(3).long())] * 8, 4, collate_fn=join):
    pass
c = CRF(5, batch_first=True)
"""
    ex = executed(f"{head}a = c(x, y, reduction='mean')\nb = c(x, y, y > 0, reduction='mean')")
    assert (placed(ex, "a"), placed(ex, "b")) == ("per rank", "partial(mean)")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("x = SSIM()(a, b)", "partial(mean)"),
        ("x = SSIM(size_average=True).to('cpu')(a, b)", "partial(mean)"),
        ("x = ssim(a, b)", "partial(mean)"),
        ("x = piq.ssim(a, b, reduction='sum')", "partial(sum)"),
        ("x = piq.SSIMLoss(reduction='none')(a, b)", "rows(axis 0)"),
        ("x = piq.TVLoss()(a)", "partial(mean)"),
        ("x = piq.ssim(a[a > 0], b[a > 0])", "ratio"),
        ("x = timm.loss.LabelSmoothingCrossEntropy()(a, b)", "partial(mean)"),
        ("x = monai.losses.DiceLoss()(a, b)", "partial(mean)"),
        ("x = monai.losses.DiceLoss(batch=True)(a, b)", "per rank"),
        ("x = piq.ssim(a, b, reduction=len('abc'))", "unknown"),
        ("x = smp.losses.DiceLoss('binary')(a, b)", "per rank"),
        ("x = kornia.losses.dice_loss(a, b)", "partial(mean)"),
        ("x = kornia.losses.psnr_loss(a, b, 1.0)", "per rank"),
        ("x = timm.loss.LabelSmoothingCrossEntropy()(a.flatten(1), b[:, 0, 0, 0].long())", "partial(mean)"),
        ("x = timm.loss.AsymmetricLossMultiLabel()(a, b)", "per rank"),  # a sum or a mean, by its version
        ("x = timm.loss.AsymmetricLossMultiLabel(reduction='sum')(a, b)", "partial(sum)"),
        ("x = timm.loss.AsymmetricLossMultiLabel(reduction='batchmean')(a, b)", "partial(mean)"),
        ("x = smp.losses.FocalLoss('multiclass')(a, b)", "partial(mean)"),
        ("x = smp.losses.FocalLoss('multiclass', ignore_index=255)(a, b)", "per rank"),
        ("x = smp.losses.FocalLoss('binary', normalized=True)(a, b)", "per rank"),
        ("x = smp.losses.SoftCrossEntropyLoss(smooth_factor=0.1)(a, b)", "partial(mean)"),
        ("x = kornia.losses.DiceLoss()(torch.ones(3), torch.ones(3))", "uniform"),
        ("x = add_self_loops(e)", "unknown"),
        ("x = nn.functional.normalize(timm.create_model('a')(a), dim=1).T", "rows(axis 1)"),
        ("x = nn.functional.normalize(timm.create_model('a')(a), dim=1).mT", "unknown"),
        ("x = TopKPooling(3)(n, e)[0]", "unknown"),
        ("x = TopKPooling(3)(n, e, None, e[:, 0])[0]", "rows(axis 0, ragged)"),
        ("x = SAGPooling(3)(n, e, batch=e[:, 0])[3]", "rows(axis 0, ragged)"),
        ("x, _, _, b, _ = ASAPooling(3)(n, e, None, e[:, 0])\nx = global_mean_pool(x, b)", "rows(axis 0)"),
        ("x = TopKPooling(3)(n, e, None, None)[0]", "unknown"),
        ("x = TopKPooling(3)(n, e, None, e[:, 0])[4]", "unknown"),
        ("x = EdgePooling(3)(n, e, e[:, 0])[0]", "unknown"),
        ("x = global_mean_pool(n, None)", "unknown"),
        ("x = Set2Set(3, 2)(n, e[:, 0])", "rows(axis 0)"),
        ("x = Set2Set(3, 2)(n)", "unknown"),
        ("x = global_mean_pool(torch.ones(3), None)", "uniform"),
        ("x = Data(x=torch.ones(3)).x", "zero"),
    ],
)
def test_losses_are_what_they_reduce_to(text: str, wanted: str) -> None:
    assert found(text) in (wanted, "uniform" if wanted == "zero" else wanted)


@pytest.mark.parametrize(
    "text",
    [
        "torchvision.models.inception_v3(aux_logits=name)",
        "torchvision.models.googlenet(weights=name)",
        "torchvision.models.GoogLeNet(10, **options)",
        "smp.encoders.get_encoder('a')",
    ],
)
def test_what_gives_something_else_is_no_network(text: str) -> None:
    before = "name, options = input(), json.loads(input())\n"
    assert found(f"import json\n{before}m = {text}\nx = m(a)") == "unknown"


@pytest.mark.parametrize(
    "given",
    [
        "'pytorch/vision', 'inception_v3', aux_logits=name",
        "'pytorch/vision', 'raft_large'",
        "'pytorch/vision', name",
        "'snakers4/silero-vad', 'silero_vad'",
        "'pytorch/vision', 'resnet18', source='local'",
    ],
)
def test_other_networks_of_a_hub_are_not_known(given: str) -> None:
    ex = executed(BEFORE + f"import sys\nname = sys.argv[1]\nx = torch.hub.load({given})(a)\n")
    assert placed(ex, "x") == "unknown"


def test_a_gradient_comes_to_a_network_and_through_a_loss() -> None:
    ex = executed(BEFORE + "m = smp.Unet('a')\nx = smp.losses.DiceLoss('binary')(m(a), b)")
    (d,) = (v for v in held(ex, "x") if isinstance(v, Data))
    (m,) = held(ex, "m")
    assert d.gradient == "whole"
    assert m.object in d.reached  # type: ignore[union-attr]


def test_augmentation_draws_and_differs_where_ranks_have_their_own_streams() -> None:
    text = "x = A.Compose([A.HorizontalFlip()])(image=torch.ones(3))['image']"
    assert lines(executed(BEFORE + text), "draw") != []
    assert found(text) == "uniform"
    assert found("ddp.seed_ranks()\n" + text) == "per rank"
    plain = "t = T.Compose([T.Resize(3), T.ToTensor()])\nx = t(torch.ones(3))"
    drawn = "t = T.Compose([T.RandomCrop(3), T.ToTensor()])\nx = t(torch.ones(3))"
    assert found("ddp.seed_ranks()\n" + plain) == "uniform"
    assert found("ddp.seed_ranks()\n" + drawn) == "per rank"


def test_the_transforms_of_weights_are_transforms() -> None:
    text = "x = torchvision.models.ResNet50_Weights.DEFAULT.transforms()(a)"
    assert found(text) == "rows(axis 0)"


_VIEWS = """\
import argparse
class Twice:
    def __init__(self, count):
        self.count = count
    def __call__(self, image):
        return [image for _ in range(self.count)]
parser = argparse.ArgumentParser()
parser.add_argument("--views", type=int, default=2)
args = parser.parse_args()
{checked}
for views, labels in DataLoader(torchvision.datasets.{name}("data", transform={transform}), 4):
    x = torch.cat({given})
"""


@pytest.mark.parametrize(
    ("checked", "name", "transform", "given", "lying"),
    [
        ("", "CIFAR10", "Twice(2)", "views", "rows(axis 0, 2 segments)"),
        ("", "ImageFolder", "lambda image: (image, image)", "views", "rows(axis 0, 2 segments)"),
        ("", "CIFAR10", "Twice(2)", "[labels]", "rows(axis 0)"),
        ("assert args.views == 2 and args", "CIFAR10", "Twice(args.views)", "views", "rows(axis 0, 2 segments)"),
        ("assert args.views >= 2", "CIFAR10", "Twice(args.views)", "views", "rows(axis 0)"),
        ("", "Kinetics", "Twice(2)", "views", "rows(axis 0)"),
        ("", "CIFAR10", "T.Compose([Twice(2)])", "views", "rows(axis 0)"),
    ],
)
def test_views_that_a_transform_of_the_program_makes(checked: str, name: str, transform: str, given: str, lying: str) -> None:
    assert found(_VIEWS.format(checked=checked, name=name, transform=transform, given=given)) == lying


@pytest.mark.parametrize(
    ("text", "axes"),
    [
        pytest.param("m = torchvision.models.resnet18()", 2, id="as it is"),
        pytest.param("m = torchvision.models.vgg11()\nm.classifier[6] = nn.Linear(3, 4)", 2, id="a part of the last part"),
        pytest.param("m = torchvision.models.vit_b_16()\nm.heads.head = nn.Identity()", 2, id="a field of the last part"),
        pytest.param("m = torchvision.models.resnet50()\nm.fc = nn.Sequential(nn.Linear(3, 4), nn.ReLU())", 2, id="several layers"),
        pytest.param("m = torchvision.models.resnet50()\nm.conv1 = nn.Conv2d(1, 64, 3)", 2, id="another part"),
        pytest.param("m = torchvision.models.resnet50()\nm.fc = nn.Sequential(nn.Linear(3, 4), nn.Unflatten(1, (2, 2)))", None, id="more axes"),
        pytest.param("m = torchvision.models.vgg11()\nm.classifier[6] = unknown(3)", None, id="something that is not seen"),
        pytest.param("class M(nn.Module):\n    def forward(self, x):\n        return x[:, None]\nm = torchvision.models.resnet50()\nm.fc = M()", None, id="a class of the program"),
        pytest.param("m = torchvision.models.convnext_tiny()\nm.classifier = nn.Identity()", None, id="no row before its last part"),
        pytest.param("m = torchvision.models.video.r3d_18()", None, id="another family"),
        pytest.param("m = timm.create_model('resnet18', num_classes=0, global_pool='')", None, id="another library's"),
    ],
)
def test_the_axes_of_what_a_classifier_gives(text: str, axes: int | None) -> None:
    (given,) = held(executed(f"{BEFORE}from others import unknown\n{text}\nx = m(a)"), "x")
    assert isinstance(given, Data) and given.placement == placements.rows()
    assert given.axes == axes


_AUXILIARY = """
inception = torchvision.models.inception
Outputs = inception.InceptionOutputs
which = bool(input())
"""


@pytest.mark.parametrize(
    "text",
    [
        "x, y = torchvision.models.inception_v3(weights='DEFAULT')(a)",
        "x = torchvision.models.inception_v3(True, aux_logits=True)(a).aux_logits",
        "x = torch.hub.load('pytorch/vision', 'inception_v3', pretrained=True)(a)[1]",
        "x, y, z = torchvision.models.googlenet()(a)",
        "x = torchvision.models.GoogLeNet(10)(a).aux_logits1",
        "x = torchvision.models.googlenet(weights='DEFAULT')(a)",
        "m = inception.Inception3(10)\nm.eval()\nx = m(a)",
        "m = inception.Inception3(10, False)\nx = m(a)",
        "m = torchvision.models.inception_v3()\nm.aux_logits = False\nx = m(a)",
        "m = torchvision.models.inception_v3()\nm.AuxLogits.fc = torch.nn.Linear(768, 5)\nx, y = m(a)",
        "m = torchvision.models.inception_v3().train(which)\nx = m(a)\nif isinstance(x, Outputs):\n    x, y = x",
        "m = torchvision.models.inception_v3().train(which)\nx = m(a)\nx = x.logits if isinstance(x, Outputs) else x",
        "m = torchvision.models.inception_v3().train(which)\nx = m(a)\nif isinstance(x, tuple):\n    x = x[0]",
        "m = torchvision.models.inception_v3().train(which)\nx = m(a)\nx = x if isinstance(x, torch.Tensor) else x[0]",
        "m = torchvision.models.inception_v3() if which else timm.create_model('a')\nx = m(a)\nif isinstance(x, Outputs):\n    x, y = x",
    ],
)
def test_a_network_that_trains_gives_further_outputs(text: str) -> None:
    assert found(_AUXILIARY + text) == "rows(axis 0)"


@pytest.mark.parametrize(
    "text",
    [
        "x = torchvision.models.inception_v3()(a).mean()",
        "m = torchvision.models.inception_v3()\nm.AuxLogits = None\nx = m(a)",
    ],
)
def test_outputs_of_which_the_number_is_not_known(text: str) -> None:
    assert found(_AUXILIARY + text) == "unknown"


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        ("isinstance(out, Outputs)", True),
        ("isinstance(out, tuple)", True),
        ("isinstance(out, torch.Tensor)", False),
        ("isinstance(out[0], Outputs)", False),
        ("isinstance(out, torchvision.models.googlenet.GoogLeNetOutputs)", False),
        ("isinstance(out, torchvision.models.InceptionOutputs)", True),
        ("isinstance((a, b, a), Outputs)", False),
    ],
)
def test_such_a_tuple_is_of_its_class(asked: str, answer: bool) -> None:
    text = f"{_AUXILIARY}out = torchvision.models.inception_v3()(a)\nx = {asked}\n"
    assert held(executed(BEFORE + text), "x") == const(answer)


@pytest.mark.parametrize("asked", ["isinstance((a, b), Outputs)", "isinstance(timm.create_model('a')(a), Outputs)"])
def test_another_tuple_may_be_of_that_class(asked: str) -> None:
    assert held(executed(f"{BEFORE}{_AUXILIARY}x = {asked}\n"), "x") not in (const(True), const(False))


@pytest.mark.parametrize("again", ["for one in net.children():\n    pass", "one = next(iter(net.children()))", "one = list(net.children())[:-1][0]", "one = nn.Sequential(*list(net.children())[:-1])[0]"])
def test_children_that_are_asked_for_again(again: str) -> None:
    ex = executed(f"import torchvision\nfrom torch import nn\nnet = torchvision.models.resnet50(pretrained=True)\nwidth = len(list(net.children()))\n{again}\n")
    assert [o.kind for o in ex.objects(held(ex, "one"))] == ["module"]


@pytest.mark.parametrize(
    ("made", "draws"),
    [
        pytest.param("A.Compose([A.Resize(8, 8), A.Normalize(), ToTensorV2()])", False, id="none that draws"),
        pytest.param("A.Compose([A.Resize(8, 8), A.HorizontalFlip(p=0.5)])", True, id="one that draws"),
        pytest.param("A.Compose([A.Resize(8, 8, p=0.5)])", True, id="by chance"),
        pytest.param("A.OneOf([A.Resize(8, 8), A.CenterCrop(8, 8)])", True, id="one of two"),
        pytest.param("A.Compose(settings)", True, id="what is not seen"),
        pytest.param("A.Compose([A.Compose([A.PadIfNeeded(8, 8)]), A.ToFloat()], bbox_params=A.BboxParams('coco'))", False, id="in each other"),
    ],
)
def test_transforms_of_albumentations_that_draw(made: str, draws: bool) -> None:
    text = f"import json\nfrom albumentations.pytorch import ToTensorV2\nsettings = json.load(open('s.json'))\nx = {made}(image=a, mask=b)['image']"
    assert bool(list(executed(BEFORE + text).trace.of("draw"))) is draws


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        pytest.param("x = smp.losses.DiceLoss('binary')(ddp.batch_rows(m(a)), ddp.batch_rows(b))", "partial(mean)", id="the samples of all ranks"),
        pytest.param("x = smp.losses.DiceLoss('binary')(ddp.batch_rows(m(a)), b)", "unknown", id="of one of them the rank's own"),
        pytest.param("x = smp.losses.DiceLoss('binary')(m(a).transpose(0, 1), b)", "unknown", id="samples along another axis"),
        pytest.param("with torch.no_grad():\n    x = smp.losses.DiceLoss('binary')(m(a), b)", "unknown", id="without gradients, where rows are not gathered"),
    ],
)
def test_a_loss_that_is_given_the_samples_of_all_ranks(text: str, wanted: str) -> None:
    """Then it is that of the whole batch, however it takes the samples together."""
    assert found(f"m = smp.Unet('a')\n{text}") == wanted


@pytest.mark.parametrize(
    ("made", "axes"),
    [
        pytest.param("A.Compose([A.Resize(8, 8), ToTensorV2()])", 4, id="with an axis of channels"),
        pytest.param("A.Compose([A.Resize(8, 8)])", 3, id="an array as it was"),
        pytest.param("A.Compose(settings)", None, id="what is not seen"),
    ],
)
def test_axes_of_images_without_channels(made: str, axes: int | None) -> None:
    """``ToTensorV2`` gives an image (H, W) an axis for its channels, and none to a mask."""
    data = (
        "class Slices(torch.utils.data.Dataset):\n    def __len__(self):\n        return 8\n    def __getitem__(self, i):\n"
        "        both = transform(image=torch.ones(8, 8).numpy(), mask=torch.ones(8, 8).numpy())\n        return both['image'], both['mask']\n"
    )
    top = f"import json\nfrom albumentations.pytorch import ToTensorV2\nsettings = json.load(open('s.json'))\ntransform = {made}\n"
    ex = executed(f"{BEFORE}{top}{data}for x, y in DataLoader(Slices(), 2):\n    pass\n")
    assert [d.axes for name in ("x", "y") for d in held(ex, name) if isinstance(d, Data)] == [axes, 3]
