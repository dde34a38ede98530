"""What concerns the process: devices, random streams, autograd's mode, profilers."""

from __future__ import annotations

from dpmigrate.execution import placements
from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    Data,
    Origin,
    Ref,
    Value,
    const,
    placement_of,
    value,
)
from dpmigrate.library import streams
from dpmigrate.library.effects import none, uniform
from dpmigrate.library.natures import CLOCK
from dpmigrate.library.sites import GRAD, Row, Site, methods

#: the seed with which torch's generators begin
_FIRST_SEED = 67280421310721
_DOC = "https://docs.pytorch.org/docs/stable/"


def no_grad(site: Site) -> Value:
    """``torch.no_grad()``, as a context or a decorator."""
    if site.word == "set_grad_enabled":
        flag = site.get(0) or const(True)
        before = site.m.heap.read(GRAD)
        site.m.heap.write(GRAD, flag)
        return site.ref("grad_mode", flag=flag, before=before or const(True))
    flag = const(site.word == "enable_grad")
    if site.arguments.positional:  # @torch.no_grad, without parentheses
        return decorated(site, site.arguments.positional[0], flag)
    return site.ref("grad_mode", flag=flag)


def decorated(site: Site, function: Value, flag: Value) -> Value:
    """A function that runs in a mode of autograd."""
    made = site.made("in mode")
    site.m.heap.write((made.number, "function"), function)
    site.m.heap.write((made.number, "flag"), flag)
    for f in site.m.objects(function):
        if f.kind == "function":
            site.m.heap.write((f.number, GRAD[1]), flag)
            return function
    return value(Ref(made.number))


def mode_called(site: Site) -> Value:
    """``@torch.no_grad()``: the context is called with a function."""
    owner = site.object
    assert owner is not None
    flag = site.m.heap.read((owner.number, "flag")) or const(False)
    return decorated(site, site.get(1) or NOTHING, flag)


def mode_asked(site: Site) -> Value:
    """``torch.is_grad_enabled()``."""
    return site.m.heap.read(GRAD) or const(True)


def mode_entered(site: Site) -> Value:
    """``with torch.no_grad():``."""
    owner = site.object
    assert owner is not None
    before = site.m.heap.read((owner.number, "before")) or site.m.heap.read(GRAD) or const(True)
    site.m.heap.write((owner.number, "outside"), before)
    site.m.heap.write(GRAD, site.m.heap.read((owner.number, "flag")) or const(False))
    return NONE


def mode_left(site: Site) -> Value:
    """The end of ``with torch.no_grad():``."""
    owner = site.object
    assert owner is not None
    site.m.heap.write(GRAD, site.m.heap.read((owner.number, "outside")) or const(True))
    return NONE


def seeded(site: Site) -> Value:
    """``torch.manual_seed(s)``: of a number of its own each rank draws its own, of one that all ranks
    have the same.
    """
    given = site.get(0, "seed") or NONE
    own = _SEEDED.get(site.name, ("torch",))
    named = tuple(const(s)[0] for s in own)
    site.event("seed", given=given, own=const(all(streams.own(site, s) for s in own)), streams=named)
    if placement_of(given).kind not in placements.EQUAL:
        streams.parted(site, *own)
    elif given != NONE:
        streams.rejoined(site, *own)
    return streams.generator(site, "generator_of_numbers", given)


#: the streams of the process that functions seed; others seed torch's
_SEEDED = {
    "numpy.random.seed": ("numpy",),
    "random.seed": ("random",),
    "pytorch_lightning.seed_everything": tuple(streams.OWN),
    "transformers.set_seed": tuple(streams.OWN),
}


def generator(site: Site) -> Value:
    """``torch.Generator()``: all of them begin with one seed."""
    return streams.generator(site, "generator_of_numbers", const(_FIRST_SEED))


def context(site: Site) -> Value:
    """Something for ``with``, or an event of a device."""
    return site.ref("context")


def elapsed(site: Site) -> Value:
    """``event.elapsed_time(other)``: a clock."""
    return value(Data("number", placements.PER_RANK, origin=Origin(site.node, CLOCK)))


def state_loaded(site: Site) -> Value:
    """``load_state_dict_from_url``."""
    return site.ref("state")


ROWS = (
    Row("""
torch.autograd.inference_mode torch.no_grad torch.inference_mode torch.enable_grad torch.set_grad_enabled
torch.autograd.no_grad torch.autograd.set_grad_enabled torch.autograd.enable_grad
""", no_grad, source=_DOC + "autograd.html"),
    Row("""
torch.manual_seed torch.cuda.manual_seed torch.cuda.manual_seed_all torch.seed
torch.random.manual_seed numpy.random.seed random.seed torch.cuda.seed_all torch.mps.manual_seed
pytorch_lightning.seed_everything transformers.set_seed
""", seeded, source=_DOC + "random.html"),
    Row("""
torch.cuda.is_available torch.cuda.device_count torch.cuda.get_device_name
torch.backends.mps.is_available torch.cuda.get_device_properties
torch.cuda.max_memory_allocated torch.cuda.memory_allocated torch.cuda.device
torch.backends.cudnn.is_available torch.cuda.is_bf16_supported
torch.cuda.get_device_capability torch.mps.is_available torch.cuda.mem_get_info
torch.cuda.memory_reserved torch.cuda.max_memory_reserved torch.get_num_threads
torch.get_rng_state torch.initial_seed torch.cuda.current_stream torch.cuda.memory_summary
torch.version torch.backends.mps.is_built torch.cuda.get_rng_state torch.cuda.get_rng_state_all
torch.backends.cudnn.version torch.cuda.memory_cached torch.cuda.max_memory_cached
""", uniform, source=_DOC + "cuda.html"),
    Row("""
torch.cuda.empty_cache torch.cuda.synchronize
torch.cuda.reset_peak_memory_stats torch.set_rng_state torch.cuda.init torch.mps.empty_cache
torch.cuda.reset_max_memory_allocated torch.cuda.set_rng_state torch.cuda.set_rng_state_all
torch.cuda.ipc_collect torch.set_warn_always
""", none, source=_DOC + "cuda.html"),
    Row("""
torch.cuda.Stream torch.cuda.Event torch.cuda.stream
""", context, source=_DOC),
    Row("torch.Generator", generator, source=_DOC + "generated/torch.Generator.html"),
    Row("""
torch.profiler.profile torch.autograd.profiler.profile torch.profiler.record_function
torch.autograd.profiler.record_function torch.autograd.detect_anomaly torch.random.fork_rng
torch.profiler.schedule torch.profiler.tensorboard_trace_handler
""", context, source=_DOC + "profiler.html"),
    Row("""
torch.hub.load_state_dict_from_url torch.utils.model_zoo.load_url
""", state_loaded, source=_DOC + "hub.html"),
    Row("torch.is_grad_enabled", mode_asked, ("x * torch.is_grad_enabled()",), source=_DOC + "generated/torch.is_grad_enabled.html"),
    Row("<grad_mode>.__enter__", mode_entered, source=_DOC),
    Row("<grad_mode>.__exit__", mode_left, source=_DOC),
    Row("<grad_mode>.__call__", mode_called, source=_DOC),
    Row(methods("context", """
record step synchronize wait_stream close update export_chrome_trace
"""), none, source=_DOC),
    Row("<context>.elapsed_time", elapsed, source=_DOC),
)  # fmt: skip
