"""Optimizers, their steps and parameters, losses, wrappers."""

from __future__ import annotations

import os
from typing import Any

from dpmigrate_probe.data import feeding, random_state
from dpmigrate_probe.outputs import plain_save
from dpmigrate_probe.places import note
from dpmigrate_probe.state import CONFIG, RANK, RECORD, STATE, taken

LARGEST = 64_000_000  # bytes of parameters kept over all steps; beyond it only the first and the last step are kept


def install(torch: Any) -> None:
    """Record steps, losses and wraps; the weights to begin with are those of the run that went first."""
    _steps(torch)
    _losses(torch)
    _wraps(torch)


def _steps(torch: Any) -> None:
    from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

    made = torch.optim.Optimizer.__init__
    progress = os.open(os.path.join(CONFIG["out"], f"progress{RANK}"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def optimizer(self: Any, *a: Any, **k: Any) -> None:
        first = not hasattr(self, "param_groups")
        made(self, *a, **k)
        if first and any(isinstance(p, torch.nn.Parameter) for g in self.param_groups for p in g["params"]):
            note("optimizer")
            STATE["optimizers"].append(self)
            _same_start(torch, self, len(STATE["optimizers"]) - 1)

    torch.optim.Optimizer.__init__ = optimizer

    def recorded(opt: Any) -> bool:
        # one that holds no parameters has tensors of the batch (an adversarial perturbation), another number of them on each rank
        return any(o is opt for o in STATE["optimizers"])

    def before(opt: Any, *_: Any) -> None:
        if not recorded(opt):
            del RECORD["losses"][-1:]  # the loss of a rank's own samples
            return
        if STATE["named"] < len(STATE["optimizers"]):  # at the end the modules may be gone
            STATE["named"], RECORD["names"] = len(STATE["optimizers"]), names_of(torch)
        if RECORD["draws"] is None and STATE["random"] is not None and STATE["current"] is not None and STATE["random"] != random_state(torch):
            RECORD["draws"] = len(RECORD["steps"])
        note("step")
        norms = [p.grad.detach().double().norm() for g in opt.param_groups for p in g["params"] if p.grad is not None]
        total = float(torch.stack(norms).norm()) if norms else None
        which = next(i for i, o in enumerate(STATE["optimizers"]) if o is opt)
        RECORD["steps"].append({"optimizer": which, "lr": [float(g["lr"]) for g in opt.param_groups if "lr" in g], "gradient": total})

    def after(opt: Any, *_: Any) -> None:
        if not recorded(opt):
            return
        STATE["training"] |= STATE["fed"]
        STATE["fed"].clear()
        _keep_parameters(len(RECORD["steps"]))
        os.write(progress, b".")

    register_optimizer_step_pre_hook(before)
    register_optimizer_step_post_hook(after)


def _losses(torch: Any) -> None:
    backward, scale = torch.Tensor.backward, torch.amp.GradScaler.scale

    def differentiate(self: Any, *a: Any, **k: Any) -> Any:
        note("backward")
        for p in feeding():
            p["backwards"] += 1
            STATE["fed"].add(p["view"])
        if self.numel() == 1:
            factor = STATE["scaled"].pop(id(self), 1.0)
            RECORD["losses"].append([float(self.detach()) / factor, len(taken()), len(RECORD["steps"])])
        return backward(self, *a, **k)

    def scaled(self: Any, outputs: Any) -> Any:
        result = scale(self, outputs)
        if isinstance(result, torch.Tensor) and self.is_enabled():
            STATE["scaled"][id(result)] = float(self.get_scale())
        return result

    torch.Tensor.backward, torch.amp.GradScaler.scale = differentiate, scaled


def _wraps(torch: Any) -> None:
    wrapper = torch.nn.parallel.DistributedDataParallel.__init__

    def wrapped(self: Any, *a: Any, **k: Any) -> None:
        wrapper(self, *a, **k)
        note("wrap")
        RECORD["wrapped"] += 1

    torch.nn.parallel.DistributedDataParallel.__init__ = wrapped


def _same_start(torch: Any, opt: Any, number: int) -> None:
    """Both runs begin with the weights of the one that ran first."""
    given = CONFIG["start"]
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
        plain_save(torch)([p.detach().cpu().clone() for p in parameters], os.path.join(CONFIG["out"], f"start{number}.pt"))


def _keep_parameters(step: int) -> None:
    limit = CONFIG["steps"]
    held = [p.detach().cpu().clone() for o in STATE["optimizers"] for g in o.param_groups for p in g["params"]]
    STATE["size"] += sum(p.numel() * p.element_size() for p in held)
    if STATE["size"] > LARGEST and step > 1:
        for old in [s for s in STATE["parameters"] if s > 1 and s != limit]:
            del STATE["parameters"][old]
    if not limit or step <= limit:
        STATE["parameters"][step] = held


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
