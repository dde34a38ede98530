"""What concerns the process: devices, random streams, autograd's mode, torch.distributed and the runtime."""

from __future__ import annotations

from dpmigrate.execution import arithmetic, placements
from dpmigrate.execution.foreign import Arguments
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    Atom,
    Data,
    Origin,
    Ref,
    Value,
    const,
    join,
    placement_of,
    value,
)
from dpmigrate.library.effects import none, same, uniform
from dpmigrate.library.sites import GRAD, Row, Site, table


def no_grad(site: Site) -> Value:
    """``torch.no_grad()``, as a context or a decorator."""
    if site.word == "set_grad_enabled":
        flag = site.get(0) or const(True)
        before = site.m.heap.read(GRAD)
        site.m.heap.write(GRAD, flag)
        return site.ref("grad mode", flag=flag, before=before or const(True))
    flag = const(site.word == "enable_grad")
    if site.arguments.positional:  # @torch.no_grad, without parentheses
        return decorated(site, site.arguments.positional[0], flag)
    return site.ref("grad mode", flag=flag)


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


def rank(site: Site) -> Value:
    """The number of this rank."""
    return value(Data("number", placements.PER_RANK, origin=Origin(site.node, site.word)))


def is_main(site: Site) -> Value:
    """Whether this is rank 0."""
    return value(Data("number", placements.PER_RANK, origin=Origin(site.node, "rank 0 alone")))


def collective(site: Site) -> Value:
    """All ranks come together."""
    site.event("collective", name=const(site.word))
    return NONE


def reduced(how: str) -> object:
    """A reduction over the ranks: the part becomes the whole."""

    def effect(site: Site) -> Value:
        site.event("collective", name=const(site.word))
        found: list[Value] = []
        for v in site.arguments.positional:
            found.append(whole(site, v))
        return found[0] if len(found) == 1 else join(*found)

    return effect


def whole(site: Site, v: Value) -> Value:
    """A value that is the same on all ranks after a reduction."""
    found: list[Atom] = []
    for a in v:
        if isinstance(a, Data) and a.placement.kind is not Kind.UNKNOWN:
            a = a._replace(
                placement=placements.UNIFORM, origin=None, gradient="none", reached=frozenset()
            )
        found.append(a)
    return tuple(found)


def seeded(site: Site) -> Value:
    """``torch.manual_seed(s)``."""
    site.event("seed", stream=const("torch"), given=site.get(0) or NONE)
    return site.ref("generator of numbers")


def loss_weighted(site: Site) -> Value:
    """``ddp.sum_loss(x)``, ``ddp.mean_loss``: the local loss whose average over the ranks is the original's."""
    site.event("collective", name=const(site.word))
    v = site.get(0) or NOTHING
    p = placement_of(site.flat(v))
    if p.kind in (Kind.PARTIAL, Kind.RATIO, Kind.ROWS):
        return arithmetic.derived(site.word, placements.MEAN, [site.flat(v)], site.node)
    return v


def tracked(site: Site) -> Value:
    """Something is written for people to look at."""
    site.event("write", values=site.arguments.joined() or NONE)
    return NONE


def spawned(site: Site) -> Value:
    """``mp.spawn(f, args)``: processes of the program's own."""
    site.event("process", target=site.get(0) or NOTHING)
    given = site.get(1, "args") or NOTHING
    listed = site.m.known_elements(given) or []
    site.m.call(site.get(0) or NOTHING, Arguments([rank(site), *listed]), site.node, site.frame)
    return NONE


_RUNTIME = "dpmigrate_runtime."
ROWS = (
    Row("""
torch.no_grad torch.inference_mode torch.enable_grad torch.set_grad_enabled
torch.autograd.no_grad torch.autograd.set_grad_enabled torch.autograd.enable_grad
""", no_grad, (), "https://docs.pytorch.org/docs/stable/autograd.html"),
    Row("""
torch.manual_seed torch.cuda.manual_seed torch.cuda.manual_seed_all torch.seed
torch.random.manual_seed numpy.random.seed
""", seeded),
    Row("""
torch.cuda.is_available torch.cuda.device_count torch.cuda.get_device_name
torch.cuda.current_device torch.backends.mps.is_available torch.cuda.get_device_properties
torch.cuda.max_memory_allocated torch.cuda.memory_allocated
torch.backends.cudnn.is_available torch.cuda.is_bf16_supported
torch.cuda.get_device_capability torch.mps.is_available torch.cuda.mem_get_info
torch.cuda.memory_reserved torch.cuda.max_memory_reserved torch.get_num_threads
torch.get_rng_state torch.initial_seed torch.cuda.current_stream torch.cuda.memory_summary
torch.version torch.distributed.is_available
""", uniform),
    Row("""
torch.cuda.empty_cache torch.cuda.set_device torch.cuda.synchronize
torch.cuda.reset_peak_memory_stats torch.set_rng_state torch.cuda.init torch.mps.empty_cache
torch.cuda.reset_max_memory_allocated
""", none),
    Row("torch.Generator torch.cuda.Stream torch.cuda.Event torch.cuda.stream", lambda s: s.ref("context")),
    Row("torch.distributed.get_rank", rank),
    Row("torch.distributed.get_world_size torch.distributed.is_initialized torch.distributed.new_group", uniform),
    Row("torch.distributed.init_process_group torch.distributed.destroy_process_group", none),
    Row("""
torch.distributed.barrier torch.distributed.all_reduce torch.distributed.broadcast
torch.distributed.all_gather torch.distributed.reduce torch.distributed.all_gather_object
torch.distributed.broadcast_object_list torch.distributed.gather
""", collective),
    Row("torch.multiprocessing.spawn", spawned),
    Row("torch.utils.tensorboard.SummaryWriter tensorboardX.SummaryWriter", lambda s: s.ref("writer")),
    Row("""
torch.profiler.profile torch.autograd.profiler.profile torch.profiler.record_function
torch.autograd.profiler.record_function torch.autograd.detect_anomaly
torch.autograd.set_detect_anomaly torch.random.fork_rng
""", lambda s: s.ref("context")),
    Row("torch.hub.load", lambda s: s.ref("module")),
    Row("torch.hub.load_state_dict_from_url torch.utils.model_zoo.load_url", lambda s: s.ref("state")),
)  # fmt: skip
FUNCTIONS = table(ROWS)
OF_KIND: dict[tuple[str, str], Row] = {
    ("grad mode", "__enter__"): Row("", mode_entered),
    ("grad mode", "__exit__"): Row("", mode_left),
    ("grad mode", "__call__"): Row("", mode_called),
    ("generator of numbers", "manual_seed"): Row("", same),
    ("context", "manual_seed"): Row("", same),
    ("context", "record"): Row("", none),
    ("context", "step"): Row("", none),
    ("context", "synchronize"): Row("", none),
    ("context", "elapsed_time"): Row("", rank),
    ("context", "wait_stream"): Row("", none),
    **{("writer", n): Row("", tracked) for n in (
        "add_scalar", "add_scalars", "add_image", "add_images", "add_histogram", "add_graph", "add_text", "add_figure",
        "add_embedding", "add_hparams", "close", "flush", "add_pr_curve", "add_video", "add_audio",
    )},
}  # fmt: skip
