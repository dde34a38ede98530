"""What really happened in a run: losses, steps, samples, files and lines, recorded from inside the user's process.

This file is found by Python at start-up through PYTHONPATH, in every process of a run that `$DPMIGRATE_PROBE` describes (JSON, see ``Config`` in
``runs.py``). It patches torch alone, imports nothing of dpmigrate, and changes nothing unless the variable is set. At exit each process that trained
leaves ``rank<R>.json`` and ``rank<R>.pt`` in the folder ``out``.

Beside recording it makes two runs comparable, as far as the configuration asks: float64, no dropout, BatchNorm by its running statistics, random
augmentation seeded by the sample, and the sample order of another run in place of this one's.
"""

from __future__ import annotations

import atexit
import faulthandler
import importlib.abc
import importlib.machinery
import importlib.util
import json
import operator
import os
import random
import signal
import sys
from typing import Any

CONFIG: dict[str, Any] = json.loads(os.environ.get("DPMIGRATE_PROBE", "null")) or {}
RANK = int(os.environ.get("RANK", "0"))
PID = os.getpid()
LARGEST = 64_000_000  # bytes of parameters kept over all steps; beyond it only the first and the last step are kept

RECORD: dict[str, Any] = {
    "rank": RANK,
    "steps": [],  # one for each optimizer step: optimizer, lr, gradient norm
    "losses": [],  # one for each backward: value, samples in the batch
    "passes": [],  # one for each iteration over a DataLoader
    "lines": [],  # (printed in the middle of a training pass, text)
    "writes": {},  # file -> how often it was opened for writing or put in place
    "saves": [],
    "wrapped": 0,
    "autocast": False,
    "cut": False,
    "draws": False,  # random numbers are drawn between a batch and its step
    "group_left": None,
}
STATE: dict[str, Any] = {"optimizers": [], "parameters": {}, "current": None, "training": set(), "size": 0, "random": None, "scaled": {}}


class _After(importlib.abc.MetaPathFinder):
    """Runs something when a module has been imported for the first time."""

    def __init__(self, name: str, then: Any) -> None:
        self.name, self.then = name, then

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name != self.name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            execute, then = spec.loader.exec_module, self.then

            def exec_module(module: Any) -> None:
                execute(module)
                then(module)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


# ---------------------------------------------------------------- the same weights, numbers and devices
def comparable(torch: Any) -> None:
    """Takes out of both runs what would differ without anybody being wrong."""
    seed(torch, 0)
    functional = torch.nn.functional
    if CONFIG.get("float64"):
        torch.set_default_dtype(torch.float64)
        torch.FloatTensor = torch.DoubleTensor
        for cls in (torch.Tensor, torch.nn.Module):
            cls.float = lambda self, *a, **k: self.double()
            _replace_arguments(cls, "to", lambda v: torch.float64 if v is torch.float32 else v)
        _replace_arguments(torch.Tensor, "type", lambda v: torch.float64 if v is torch.float32 else v)
    if CONFIG.get("cpu"):
        _cpu_only(torch)
    if CONFIG.get("still"):
        for name in ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout"):
            setattr(functional, name, lambda input, *a, **k: input)
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
            RECORD["batch_norm"] = True
            mean = torch.zeros(x.shape[1], dtype=x.dtype) if mean is None else mean
            var = torch.ones(x.shape[1], dtype=x.dtype) if var is None else var
            return normalise(x, mean, var, weight, bias, False, momentum, eps)

        functional.batch_norm = frozen


def _replace_arguments(owner: Any, name: str, change: Any) -> None:
    original = getattr(owner, name)
    setattr(owner, name, lambda self, *a, **k: original(self, *map(change, a), **{n: change(v) for n, v in k.items()}))


def _cpu_only(torch: Any) -> None:
    """Scripts that know only GPUs run on the CPU."""

    def here(value: Any) -> Any:
        if isinstance(value, torch.device):
            return torch.device("cpu") if value.type == "cuda" else value
        if isinstance(value, str):
            return "cpu" if value.split(":")[0] == "cuda" else value
        return "cpu" if isinstance(value, int) and not isinstance(value, bool) else value

    for cls in (torch.Tensor, torch.nn.Module):
        cls.cuda = lambda self, *a, **k: self
        _replace_arguments(cls, "to", here)
    for name in ("synchronize", "set_device", "empty_cache", "manual_seed", "manual_seed_all"):
        setattr(torch.cuda, name, lambda *a, **k: None)


def _random_state(torch: Any) -> Any:
    numpy = sys.modules.get("numpy")
    drawn = numpy.random.get_state()[1:3] if numpy else None
    return (
        bytes(torch.get_rng_state().numpy().tobytes()) if numpy else torch.get_rng_state().tolist(),
        random.getstate(),
        (drawn[0].tobytes(), drawn[1]) if drawn else None,
    )


def seed(torch: Any, value: int) -> None:
    torch.manual_seed(value)
    random.seed(value)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(value % 2**32)


# ---------------------------------------------------------------- data
def _base(dataset: Any) -> tuple[Any, list[Any]]:
    """The data set under all Subsets, and their indices, the outermost first."""
    chain = []
    while hasattr(dataset, "indices") and hasattr(dataset, "dataset"):
        chain.append(dataset.indices)
        dataset = dataset.dataset
    return dataset, chain


def _index(chain: list[Any], i: Any) -> int:
    """The sample's place in the data set under all Subsets; -1 for what is no place."""
    try:
        for indices in chain:
            i = indices[operator.index(i)]
        return operator.index(i)
    except TypeError:
        return -1


def _key(dataset: Any) -> str:
    base, _ = _base(dataset)
    try:
        return f"{type(base).__name__} of {len(base)}"
    except TypeError:
        return f"{type(base).__name__}, a stream"


def record_data(torch: Any) -> None:
    from torch.utils.data import BatchSampler, dataloader
    from torch.utils.data._utils import fetch

    module: Any = dataloader
    fetcher: Any = fetch._MapDatasetFetcher
    iterator = module._BaseDataLoaderIter
    init, advance, draw, iterate = iterator.__init__, iterator.__next__, iterator._next_index, module.DataLoader.__iter__

    replay = {(key, nth): batches for key, nth, batches in CONFIG.get("replay", [])}

    def loader_iter(self: Any) -> Any:
        limit = CONFIG.get("steps")
        if limit and len(RECORD["steps"]) >= limit and _key(self.dataset) in STATE["training"] and not getattr(self, "_probe_evaluates", False):
            RECORD["cut"] = True
            raise SystemExit(0)  # the steps that were asked for are done
        return iterate(self)

    def new_pass(self: Any, loader: Any) -> None:
        init(self, loader)
        self._probe_loader = loader
        _, self._probe_chain = _base(loader.dataset)
        key = _key(loader.dataset)
        nth = sum(p["data"] == key for p in RECORD["passes"])
        self._probe = {"data": key, "nth": nth, "batches": [], "delivered": 0, "ended": False, "backwards": 0, "first_step": len(RECORD["steps"])}
        sampler = loader.sampler
        self._probe["sampler"] = type(sampler).__name__
        self._probe["replacement"] = bool(getattr(sampler, "replacement", False))
        self._probe["length"] = len(sampler) if hasattr(sampler, "__len__") else None
        self._probe["batch"] = loader.batch_size
        RECORD["passes"].append(self._probe)
        if (key, nth) in replay:  # whatever sampler the loader has
            back = {_index(self._probe_chain, i): i for i in range(len(loader.dataset))}
            batches = [[back[i] for i in batch if i in back] for batch in replay[key, nth]]
            flat = [i for batch in batches for i in batch]
            size = loader.batch_size
            if size is not None and type(loader.batch_sampler) is BatchSampler:  # the batches stay this loader's own
                batches = [flat[i : i + size] for i in range(0, len(flat), size) if not loader.drop_last or i + size <= len(flat)]
            self._sampler_iter = iter(batches if self._auto_collation else flat)

    def next_index(self: Any) -> Any:
        found = draw(self)
        flat = found if isinstance(found, list | tuple) else [found]
        self._probe["batches"].append([_index(self._probe_chain, i) for i in flat])
        return found

    def next_batch(self: Any) -> Any:
        limit = CONFIG.get("steps")
        if limit and self._probe["backwards"] and len(RECORD["steps"]) >= limit:
            RECORD["cut"] = True
            self._probe["ended"] = True
            STATE["current"] = None
            raise StopIteration
        try:
            data = advance(self)
        except StopIteration:
            self._probe["ended"] = True
            STATE["current"] = None
            raise
        self._probe["delivered"] += 1
        STATE["current"] = self._probe
        if not RECORD["draws"]:
            STATE["random"] = _random_state(torch)
        return data

    module.DataLoader.__iter__ = loader_iter
    iterator.__init__, iterator._next_index, iterator.__next__ = new_pass, next_index, next_batch

    if CONFIG.get("still"):

        def fetched(self: Any, wanted: Any) -> Any:
            """Augmentation depends on the sample alone, not on who draws it when."""
            numpy = sys.modules.get("numpy")
            kept = torch.get_rng_state(), random.getstate(), numpy.random.get_state() if numpy else None
            _, chain = _base(self.dataset)
            samples = []
            for i in wanted if self.auto_collation else [wanted]:
                seed(torch, 977 * (_index(chain, i) + 1) + 13)
                samples.append(self.dataset[i])
            torch.set_rng_state(kept[0])
            random.setstate(kept[1])
            if numpy:
                numpy.random.set_state(kept[2])
            return self.collate_fn(samples if self.auto_collation else samples[0])

        fetcher.fetch = fetched


# ---------------------------------------------------------------- training
def record_training(torch: Any) -> None:
    from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

    made = torch.optim.Optimizer.__init__

    def optimizer(self: Any, *a: Any, **k: Any) -> None:
        first = not hasattr(self, "param_groups")
        made(self, *a, **k)
        if first:
            STATE["optimizers"].append(self)
            _same_start(torch, self, len(STATE["optimizers"]) - 1)

    torch.optim.Optimizer.__init__ = optimizer

    def before(opt: Any, *_: Any) -> None:
        if not RECORD["draws"] and STATE["random"] is not None and STATE["current"] is not None:
            RECORD["draws"] = STATE["random"] != _random_state(torch)
        norms = [p.grad.detach().double().norm() for g in opt.param_groups for p in g["params"] if p.grad is not None]
        total = float(torch.stack(norms).norm()) if norms else None
        which = next((i for i, o in enumerate(STATE["optimizers"]) if o is opt), -1)
        RECORD["steps"].append({"optimizer": which, "lr": [float(g["lr"]) for g in opt.param_groups if "lr" in g], "gradient": total})

    def after(opt: Any, *_: Any) -> None:
        if STATE["current"] is not None:
            STATE["training"].add(STATE["current"]["data"])
        keep_parameters(torch, len(RECORD["steps"]))

    register_optimizer_step_pre_hook(before)
    register_optimizer_step_post_hook(after)

    backward = torch.Tensor.backward

    def differentiate(self: Any, *a: Any, **k: Any) -> Any:
        now = STATE["current"]
        if now is not None:
            now["backwards"] += 1
        if self.numel() == 1:
            factor = STATE["scaled"].pop(id(self), 1.0)
            RECORD["losses"].append(
                [float(self.detach()) / factor, len(now["batches"][now["delivered"] - 1]) if now and now["delivered"] else 0, len(RECORD["steps"])]
            )
        return backward(self, *a, **k)

    torch.Tensor.backward = differentiate

    scale = torch.amp.GradScaler.scale

    def scaled(self: Any, outputs: Any) -> Any:
        result = scale(self, outputs)
        if isinstance(result, torch.Tensor) and self.is_enabled():
            STATE["scaled"][id(result)] = float(self.get_scale())
        return result

    torch.amp.GradScaler.scale = scaled

    wrapper = torch.nn.parallel.DistributedDataParallel.__init__

    def wrapped(self: Any, *a: Any, **k: Any) -> None:
        wrapper(self, *a, **k)
        RECORD["wrapped"] += 1

    torch.nn.parallel.DistributedDataParallel.__init__ = wrapped


def _same_start(torch: Any, opt: Any, number: int) -> None:
    """Both runs begin with the weights of the one that ran first."""
    given = CONFIG.get("start")
    parameters = [p for g in opt.param_groups for p in g["params"]]
    if given:
        path = os.path.join(given, f"start{number}.pt")
        if os.path.exists(path):
            saved = torch.load(path, weights_only=True)
            if [tuple(s.shape) for s in saved] == [tuple(p.shape) for p in parameters]:
                with torch.no_grad():
                    for p, s in zip(parameters, saved, strict=True):
                        p.copy_(s)
    elif RANK == 0:
        _SAVE(torch)([p.detach().cpu().clone() for p in parameters], os.path.join(CONFIG["out"], f"start{number}.pt"))


def keep_parameters(torch: Any, step: int) -> None:
    limit = CONFIG.get("steps")
    held = [p.detach().cpu().clone() for o in STATE["optimizers"] for g in o.param_groups for p in g["params"]]
    STATE["size"] += sum(p.numel() * p.element_size() for p in held)
    if STATE["size"] > LARGEST and step > 1:
        for old in [s for s in STATE["parameters"] if s > 1 and s != limit]:
            del STATE["parameters"][old]
    if not limit or step <= limit:
        STATE["parameters"][step] = held


# ---------------------------------------------------------------- files and lines
def _SAVE(torch: Any) -> Any:
    return getattr(torch.save, "__wrapped__", torch.save)


def record_saves(torch: Any) -> None:
    save = torch.save

    def saved(value: Any, target: Any, *a: Any, **k: Any) -> Any:
        path = target if isinstance(target, str | os.PathLike) else getattr(target, "name", None)
        if isinstance(path, str | os.PathLike):
            RECORD["saves"].append(os.path.relpath(os.path.abspath(path), CONFIG["root"]))
            if path is target:  # torch's own writer opens the file, unseen by Python
                _wrote(path)
        return save(value, target, *a, **k)

    saved.__wrapped__ = save  # type: ignore[attr-defined]
    torch.save = torch.serialization.save = saved


def _wrote(path: Any) -> None:
    if os.getpid() != PID or not isinstance(path, str | bytes | os.PathLike):
        return
    full = os.path.abspath(os.fsdecode(path))
    if full.startswith(CONFIG["root"] + os.sep) and "__pycache__" not in full:
        name = os.path.relpath(full, CONFIG["root"])
        RECORD["writes"][name] = RECORD["writes"].get(name, 0) + 1


def audit(event: str, arguments: Any) -> None:
    if event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+"):
        _wrote(arguments[0])
    elif event == "os.rename":
        _wrote(arguments[1])


class Lines:
    """stdout, with each line kept beside where it goes."""

    def __init__(self, stream: Any) -> None:
        self._stream, self._rest = stream, ""

    def write(self, text: str) -> int:
        now = STATE["current"]
        self._rest += text
        *lines, self._rest = self._rest.split("\n")
        for line in lines:
            if line.strip() and os.getpid() == PID:
                RECORD["lines"].append([bool(now and now["data"] in STATE["training"] and now["backwards"]), line.rsplit("\r", 1)[-1][:400]])
        written: int = self._stream.write(text)
        return written

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


# ---------------------------------------------------------------- the end
def names_of(torch: Any) -> list[str]:
    """The names of the optimizers' parameters, in order, from the modules that hold them."""
    import gc

    names: dict[int, str] = {}
    for module in [o for o in gc.get_objects() if issubclass(type(o), torch.nn.Module)]:
        for name, p in module.named_parameters():
            bare = name.removeprefix("module.")
            if len(bare) > len(names.get(id(p), "")):
                names[id(p)] = bare
    return [names.get(id(p), "?") for o in STATE["optimizers"] for g in o.param_groups for p in g["params"]]


def leave_record() -> None:
    torch = sys.modules.get("torch")
    if os.getpid() != PID or torch is None or not hasattr(torch, "save"):
        return
    distributed = torch.distributed
    RECORD["group_left"] = bool(distributed.is_available() and distributed.is_initialized()) and not RECORD["cut"]
    RECORD["names"] = names_of(torch)
    try:
        import resource

        RECORD["memory"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    except ImportError:
        pass
    _SAVE(torch)(STATE["parameters"], os.path.join(CONFIG["out"], f"rank{RANK}.pt"))
    with open(os.path.join(CONFIG["out"], f"rank{RANK}.json"), "w", encoding="utf-8") as f:
        json.dump(RECORD, f)


def start(torch: Any) -> None:
    comparable(torch)
    record_data(torch)
    record_training(torch)
    record_saves(torch)


def _is_program() -> bool:
    """The script itself: neither the launcher nor a process that the script starts."""
    if not CONFIG or (CONFIG["ranks"] and "RANK" not in os.environ) or os.environ.get("DPMIGRATE_PROBED"):
        return False
    os.environ["DPMIGRATE_PROBED"] = str(PID)
    return True


def _run_the_users_own() -> None:
    """This file hides another ``sitecustomize`` on the path, which must run as well."""
    here = os.path.dirname(os.path.abspath(__file__))
    for folder in sys.path:
        path = os.path.join(folder, "sitecustomize.py")
        if os.path.abspath(folder) != here and os.path.isfile(path):
            spec = importlib.util.spec_from_file_location("sitecustomize_of_the_user", path)
            if spec is not None and spec.loader is not None:
                spec.loader.exec_module(importlib.util.module_from_spec(spec))
            return


_run_the_users_own()
if _is_program():
    atexit.register(leave_record)
    if hasattr(signal, "SIGUSR1"):
        faulthandler.register(signal.SIGUSR1, open(os.path.join(CONFIG["out"], f"stack{RANK}.txt"), "w"), all_threads=False)  # noqa: SIM115
    sys.addaudithook(audit)
    sys.stdout = Lines(sys.stdout)
    sys.meta_path.insert(0, _After("torch", start))
