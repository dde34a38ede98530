"""Takes out of both runs what would differ without anybody being wrong: precision, dropout, batch statistics, devices."""

from __future__ import annotations

import functools
import os
import random
import sys
from typing import Any

from dpmigrate_probe.state import CONFIG, RECORD

#: what makes tensors where ``device=`` says
_MAKERS = (
    *("tensor", "as_tensor", "empty", "zeros", "ones", "full", "eye", "arange", "linspace", "logspace", "rand", "randn", "randint", "randperm"),
    *("empty_like", "zeros_like", "ones_like", "full_like", "rand_like", "randn_like", "randint_like", "normal"),
)
_OF_A_TENSOR = ("new_tensor", "new_empty", "new_zeros", "new_ones", "new_full")
_KINDS = ("Float", "Double", "Half", "BFloat16", "Long", "Int", "Short", "Char", "Byte", "Bool")


def install(torch: Any) -> None:
    """As far as the configuration asks."""
    torch.manual_seed(0)  # GPUs that are not in use yet as well
    seed(torch, 0)
    if CONFIG["still"]:
        _without_halves(torch)
    if CONFIG["float64"]:
        _double(torch)
    _watch_types(torch)
    if CONFIG["cpu"]:
        _cpu_only(torch)
    else:
        _shared_gpus(torch)
    if CONFIG["still"]:
        _still(torch)


def seed(torch: Any, value: int) -> None:
    """Seed every generator in use.

    ``torch.manual_seed`` would format the stack for each kind of device that is not in use yet, which costs more than fetching a sample.
    """
    torch.default_generator.manual_seed(value)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(value)
    random.seed(value)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(value % 2**32)


def _double(torch: Any) -> None:
    torch.set_default_dtype(torch.float64)
    torch.FloatTensor = torch.DoubleTensor
    for cls in (torch.Tensor, torch.nn.Module):
        cls.float = cls.double
        _replace_arguments(cls, "to", lambda v: torch.float64 if v is torch.float32 else v)
    _replace_arguments(torch.Tensor, "type", lambda v: torch.float64 if v is torch.float32 else v)


def _without_halves(torch: Any) -> None:
    """Half precision is float64: a change of type stays one, as DistributedDataParallel would see it, and its numbers can be compared."""
    halves = (torch.float16, torch.bfloat16)
    for cls in (torch.Tensor, torch.nn.Module):
        cls.half = cls.bfloat16 = cls.double
        _replace_arguments(cls, "to", lambda v: torch.float64 if v in halves else v)
        _replace_arguments(cls, "type", lambda v: torch.float64 if v in halves else v)
    torch.HalfTensor = torch.BFloat16Tensor = torch.DoubleTensor


def _watch_types(torch: Any) -> None:
    """Record that the program changes the type of a model: in float64 nothing would come of it."""
    module = torch.nn.Module

    def watched(name: str) -> None:
        original = getattr(module, name)

        @functools.wraps(original)
        def changed(self: Any, *a: Any, **k: Any) -> Any:
            before = {p.dtype for p in self.parameters()}
            types = [v for v in (*a, *k.values()) if isinstance(v, torch.dtype | type) or (isinstance(v, str) and v.endswith("Tensor"))]
            asked = name not in ("to", "type") or any(v not in (torch.float32, torch.FloatTensor) for v in types)
            if before and asked:
                RECORD["retyped"] = True
            return original(self, *a, **k)

        setattr(module, name, changed)

    for name in ("half", "bfloat16", "double", "to", "type"):
        watched(name)


def _still(torch: Any) -> None:
    functional = torch.nn.functional
    for name in ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout"):
        setattr(functional, name, lambda input, *a, **k: input)
    attention = functional.scaled_dot_product_attention

    def without_chance(query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0, *a: Any, **k: Any) -> Any:
        return attention(query, key, value, attn_mask, 0.0, *a, **k)

    functional.scaled_dot_product_attention = without_chance
    autocast = torch.autocast.__init__

    def off(self: Any, device_type: str, dtype: Any = None, enabled: bool = True, cache_enabled: Any = None) -> None:
        RECORD["autocast"] = True
        autocast(self, device_type, dtype, False, cache_enabled)

    torch.autocast.__init__ = off
    recurrent = torch.nn.RNNBase.__init__

    def without_dropout(self: Any, *a: Any, **k: Any) -> None:
        recurrent(self, *a, **k)
        self.dropout = 0.0

    torch.nn.RNNBase.__init__ = without_dropout
    normalise = functional.batch_norm

    def frozen(x: Any, mean: Any, var: Any, weight: Any = None, bias: Any = None, training: bool = False, momentum: float = 0.1, eps: float = 1e-5) -> Any:
        if len(x) == 1 and not str(sys._getframe(1).f_globals.get("__name__")).startswith("torch."):
            # samples beside each other as channels (x.view(1, b * c, h, w)): each is normalised by itself, no layer of torch does so
            return normalise(x, mean, var, weight, bias, training, momentum, eps)
        RECORD["batch_norm"] = True
        if training:
            functional._verify_batch_size(x.shape)  # a rank's share of one sample fails in earnest as well
            if _untrained(mean, var):
                x = x * torch.rsqrt(x.square().mean(dim=tuple(range(1, x.dim())), keepdim=True) + eps)
        mean = torch.zeros(x.shape[1], dtype=x.dtype, device=x.device) if mean is None else mean
        var = torch.ones(x.shape[1], dtype=x.dtype, device=x.device) if var is None else var
        return normalise(x, mean, var, weight, bias, False, momentum, eps)

    functional.batch_norm = frozen


def _untrained(mean: Any, var: Any) -> bool:
    """Statistics that say nothing yet: with them a deep network grows beyond all numbers within a few steps, so each sample is scaled to one size.

    All its channels together, and without taking their means: one channel of a few numbers would be left with their signs, and the bias of a layer
    before would have no gradient but rounding, which Adam makes as large as any other.
    """
    return mean is None or var is None or bool((mean == 0).all() and (var == 1).all())


def _replace_arguments(owner: Any, name: str, change: Any) -> None:
    original = getattr(owner, name)
    setattr(owner, name, lambda self, *a, **k: original(self, *map(change, a), **{n: change(v) for n, v in k.items()}))


def _replace_device(owner: Any, name: str, change: Any) -> None:
    original = getattr(owner, name)

    @functools.wraps(original)
    def made(*a: Any, **k: Any) -> Any:
        if "device" in k:
            k["device"] = change(k["device"])
        return original(*a, **k)

    setattr(owner, name, made)


def _cpu_only(torch: Any) -> None:
    """Programs that know only GPUs run on the CPU, those written for NCCL over gloo."""

    def here(value: Any) -> Any:
        if isinstance(value, torch.device):
            return torch.device("cpu") if value.type == "cuda" else value
        if isinstance(value, str):
            return "cpu" if value.split(":")[0] == "cuda" else value
        return "cpu" if isinstance(value, int) and not isinstance(value, bool) else value

    for cls in (torch.Tensor, torch.nn.Module):
        cls.cuda = lambda self, *a, **k: self
        _replace_arguments(cls, "to", here)
    for name in _MAKERS:
        _replace_device(torch, name, here)
    for name in _OF_A_TENSOR:
        _replace_device(torch.Tensor, name, here)
    for kind in _KINDS:
        setattr(torch.cuda, f"{kind}Tensor", getattr(torch, f"{kind}Tensor"))
    for name in ("synchronize", "set_device", "empty_cache", "manual_seed", "manual_seed_all"):
        setattr(torch.cuda, name, lambda *a, **k: None)
    load = torch.load

    def load_here(f: Any, map_location: Any = None, *a: Any, **k: Any) -> Any:
        return load(f, map_location if callable(map_location) else "cpu", *a, **k)

    torch.load = torch.serialization.load = load_here
    _group_over(torch, lambda: True)
    _without_device_ids(torch)


def _shared_gpus(torch: Any) -> None:
    """Several ranks on one GPU: NCCL refuses that, so gloo carries the gradients, and the ranks go round the GPUs that there are.

    The runtime package is told by the variable of its own.
    """
    ranks = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))

    def shared() -> bool:
        return bool(0 < torch.cuda.device_count() < ranks)

    if shared():
        os.environ["DPMIGRATE_BACKEND"] = "gloo"
    choose = torch.cuda.set_device
    torch.cuda.set_device = lambda device: choose(device % torch.cuda.device_count() if isinstance(device, int) and shared() else device)
    _group_over(torch, shared)


def _group_over(torch: Any, gloo: Any) -> None:
    """``init_process_group`` uses gloo where ``gloo()`` says so."""
    distributed = torch.distributed
    if not distributed.is_available():
        return
    begin = distributed.init_process_group

    def group(backend: Any = None, *a: Any, **k: Any) -> Any:
        if gloo():
            backend, _ = "gloo", k.pop("device_id", None)
        return begin(backend, *a, **k)

    distributed.init_process_group = distributed.distributed_c10d.init_process_group = group


def _without_device_ids(torch: Any) -> None:
    wrapper = torch.nn.parallel.DistributedDataParallel.__init__

    def wrapped(self: Any, module: Any, device_ids: Any = None, output_device: Any = None, *a: Any, **k: Any) -> None:
        wrapper(self, module, None, None, *a, **k)

    torch.nn.parallel.DistributedDataParallel.__init__ = wrapped
