"""The names that the tables use: a function or class by its public name.

Large libraries write their code in modules of implementation and re-export it from the packages
round them: ``torch.optim.adam.Adam`` is ``torch.optim.Adam``. So a name that no table has is looked
for under the same last part in each package that encloses its module, from the inside out.

That is sound where a package has one meaning for each public name. A package of its own, whose
functions have the names of others (``torch.nn.functional.dropout``, ``numpy.linalg.norm``), is in
``_OWN``, and no name leaves it. No name comes up to ``torch`` itself but from the few modules of
``_INNER``, since most packages of torch are such. The tests compare what is found with the objects of the
installed torch, in each module that it has loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dpmigrate.library.sites import words

#: names of the same library that are no parts of one another
_ALIASES = (
    ("torch.cuda.amp.", "torch.amp."),
    ("torch.cpu.amp.", "torch.amp."),
    ("torch.nn.modules.", "torch.nn."),
    ("torch.functional.F.", "torch.nn.functional."),
    ("torch.Tensor.", "."),
    ("torch.autograd.Variable", "torch.Variable"),
    ("torch.autograd.variable.Variable", "torch.Variable"),
    ("torch.quantization.", "torch.ao.quantization."),
    ("torch.nn.qat.", "torch.ao.nn.qat."),
    ("torch.special.", "torch."),
    ("torch.linalg.", "torch."),
    ("torchvision.transforms.v2.", "torchvision.transforms."),
)
#: libraries that re-export
_LIBRARIES = frozenset((
    "torch", "torchvision", "torchaudio", "torchtext", "torch_geometric", "torchmetrics", "timm",
    "transformers", "sklearn", "skimage", "scipy", "numpy", "pandas", "tensorboardX", "tqdm",
    "accelerate", "diffusers", "lightning", "pytorch_lightning", "albumentations", "monai",
    "kornia",
))  # fmt: skip
#: modules of ``torch`` whose names are those of ``torch``
_INNER = frozenset((
    "torch.functional", "torch.random", "torch.serialization", "torch._tensor", "torch.tensor",
))  # fmt: skip
#: packages whose names stay in them
_OWN = frozenset(words("""
torch.nn.functional torch.nn.init torch.nn.quantized torch.nn.qat torch.nn.intrinsic
torch.nn.quantizable torch.nn.parallel torch.nn.parallel.comm torch.nn.utils.rnn
torch.nn.utils.parametrizations
torch.nn.utils.prune torch.nn.utils.stateless torch.nn.utils.parametrize torch.nn.attention
torch.distributions.constraints torch.distributions.transforms torch.distributions.utils
torch.utils.data.datapipes torch.utils.checkpoint torch.utils.dlpack torch.optim.lr_scheduler
torch.optim.swa_utils torch.backends.cudnn torch.backends.mps torch.cuda.comm torch.cuda.nccl
torch.cuda.nvtx torch.cuda.sparse torch.cuda.gds torch.distributed.autograd torch.distributed.rpc
torch.distributed.nn torch.distributed.fsdp torch.distributed.optim
numpy.linalg numpy.random numpy.fft numpy.ma numpy.char numpy.strings numpy.polynomial
scipy.special scipy.stats scipy.ndimage scipy.signal scipy.linalg scipy.sparse scipy.optimize
torchvision.ops torchvision.transforms torchvision.transforms.functional torchvision.io
torchvision.models torchvision.models.quantization torchvision.models.video
torchvision.models.segmentation torchvision.models.detection torchvision.datasets
torch.ao.nn.qat.dynamic torch.ao.quantization.fx torch_geometric.nn torch_geometric.utils torch_geometric.transforms torch_geometric.datasets
torchmetrics.functional skimage.metrics tqdm.contrib tqdm.keras
"""))

#: modules, which cannot be called: a function of the same name stands in each of them, or none
MODULES_OF_TORCH = frozenset(f"torch.{word}" for word in words("""
amp autograd backends cuda cuda.amp distributed distributions fft fx hub jit linalg
multiprocessing nn nn.functional nn.init nn.parallel nn.utils nn.utils.rnn onnx optim
optim.lr_scheduler profiler random sparse special utils utils.checkpoint utils.data
utils.tensorboard
"""))


def aliased(name: str) -> str:
    """The name with the public package in the place of one that is another name for it."""
    for before, after in _ALIASES:
        if name.startswith(before):
            return after + name[len(before) :]
    return name


def enclosing(name: str) -> Iterator[str]:
    """The name as each package round its module may export it, from the inside out."""
    module, _, last = name.rpartition(".")
    if module.partition(".")[0] not in _LIBRARIES:
        return
    while "." in module and module not in _OWN:
        package = module.rpartition(".")[0]
        if package == "torch" and module not in _INNER:
            return
        yield f"{package}.{last}"
        module = package


def public(name: str, known: Callable[[str], bool]) -> str:
    """The public name of a function or class, of which ``known`` tells whether a table has it."""
    name = aliased(name)
    if name.startswith(".") or known(name):
        return name
    return next((n for n in enclosing(name) if known(n)), name)
