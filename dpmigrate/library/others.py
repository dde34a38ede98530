"""Progress bars, trackers, and libraries of models and metrics, by how often scripts use them."""

from __future__ import annotations

from dpmigrate.execution import placements
from dpmigrate.execution.foreign import Arguments
from dpmigrate.execution.values import NONE, NOTHING, SETTING, Data, Ref, Value, join, value
from dpmigrate.library import torch_nn
from dpmigrate.library.effects import coupled, none, same, uniform
from dpmigrate.library.sites import Row, Site, table


def bar(site: Site) -> Value:
    """``tqdm(iterable)``: the elements of what it goes over, with methods of a bar."""
    source = site.get(0, "iterable")
    made = site.made("bar", extra=1)
    if source is not None:
        site.m.heap.write((made.number, "source 0"), source)
        for other in site.m.objects(source):
            held = site.m.heap.read((other.number, "#length"))
            if held:
                site.m.heap.write((made.number, "#length"), held)
    return value(Ref(made.number))


def bar_range(site: Site) -> Value:
    """``trange(n)``."""
    made = site.made("bar", extra=0)
    site.m.heap.write((made.number, "#length"), site.get(0) or SETTING)
    return value(Ref(made.number))


def bar_elements(site: Site) -> Value:
    """A loop over a bar."""
    made = site.object
    assert made is not None
    source = site.m.heap.read((made.number, "source 0"))
    if source is None:
        return SETTING
    return site.m.elements(source, site.node, site.frame)


def shown(site: Site) -> Value:
    """``bar.set_postfix(loss=…)``: printed."""
    site.event("print", values=site.arguments.joined() or NONE)
    return NONE


def tracked(site: Site) -> Value:
    """``wandb.log({…})``: sent to a tracker."""
    site.event("write", values=site.arguments.joined() or NONE)
    return NONE


def image_saved(site: Site) -> Value:
    """``save_image(x, path)``; a grid of images is one tensor."""
    site.event("save", what=site.get(0) or NOTHING, path=site.get(1) or NOTHING)
    return site.get(0) or NONE


def started(site: Site) -> Value:
    """``fire.Fire(main)``: the function is called with options, or any function of the module."""
    target = site.get(0, "component")
    if not target:
        module = site.m.heap.objects[site.frame.module]
        names = [v for n, v in site.m.heap.names(module.number) if isinstance(n, str)]
        functions = [o for v in names for o in site.m.objects(v) if o.kind == "function"]
        own = [o for o in functions if o.extra.module == module.number]
        target = join(*[value(Ref(o.number)) for o in own])
    return site.m.call(target, Arguments(), site.node, site.frame)


def metric(site: Site) -> Value:
    """A metric of sklearn over what it is given: not a sum over samples."""
    return coupled(site)


def transform(site: Site) -> Value:
    """A transform of torchvision: a function of one sample."""
    return site.ref("transform")


def transformed(site: Site) -> Value:
    """A transform is called with a sample."""
    return value(Data("tensor", placements.UNIFORM))


def model(site: Site) -> Value:
    """A model of a library."""
    made = site.made("module", extra=torch_nn.MODEL)
    return value(Ref(made.number))


ROWS = (
    Row("""
tqdm.tqdm tqdm.auto.tqdm tqdm.notebook.tqdm tqdm.tqdm_notebook tqdm.autonotebook.tqdm
tqdm.rich.tqdm rich.progress.track alive_progress.alive_it fastprogress.progress_bar
progressbar.progressbar
""", bar, (), "https://tqdm.github.io/"),
    Row("tqdm.trange tqdm.auto.trange tqdm.notebook.trange tqdm.tnrange", bar_range, (), "https://tqdm.github.io/"),
    Row("tqdm.tqdm.write tqdm.write", shown),
    Row("wandb.log mlflow.log_metric mlflow.log_metrics neptune.log", tracked),
    Row("""
wandb.init wandb.watch wandb.finish wandb.save wandb.login mlflow.start_run mlflow.log_param
mlflow.log_params mlflow.set_experiment wandb.config.update wandb.define_metric
""", lambda s: s.ref("opaque")),
    Row("wandb.Image wandb.Histogram wandb.Table", same),
    Row("""
matplotlib.pyplot.plot matplotlib.pyplot.imshow matplotlib.pyplot.scatter
matplotlib.pyplot.savefig matplotlib.pyplot.hist matplotlib.pyplot.bar
""", tracked),
    Row("torchvision.utils.save_image torchvision.utils.make_grid", image_saved),
    Row("torchsummary.summary torchinfo.summary thop.profile ptflops.get_model_complexity_info", uniform),
)  # fmt: skip
FUNCTIONS = table((*ROWS, Row("fire.Fire typer.run tyro.cli", started)))


def pattern(name: str) -> Row | None:
    """Families of names."""
    if name.startswith(
        ("matplotlib.", "seaborn.", "plotly.", "PIL.", "cv2.", "imageio.", "skimage.")
    ):
        return Row(
            name,
            none
            if name.startswith(("matplotlib.pyplot.", "seaborn."))
            and name.rsplit(".", 1)[-1] not in ("subplots", "figure")
            else same_kind,
        )
    if name.startswith("sklearn.metrics."):
        return Row(name, metric)
    if name.startswith("torchvision.transforms."):
        return Row(name, transform)
    if name.startswith("torchvision.models."):
        return Row(name, model)
    if name.startswith("timm.") and name.rsplit(".", 1)[-1] == "create_model":
        return Row(name, model)
    return None


def same_kind(site: Site) -> Value | None:
    """A function of images: as divided as what it is given, plain if that is."""
    operands = site.operands()
    return site.each() if operands else site.ref("opaque")


OF_KIND = {
    ("bar", "__iter__"): Row("", bar_elements),
    ("bar", "__enter__"): Row("", same),
    ("bar", "__exit__"): Row("", none),
    ("bar", "__len__"): Row("", uniform),
    **{("bar", n): Row("", shown) for n in ("set_description", "set_postfix", "set_postfix_str", "write", "set_description_str", "update", "close", "refresh", "reset", "clear")},
    ("transform", "__call__"): Row("", transformed),
}  # fmt: skip
ATTRIBUTES: dict[tuple[str, str], Row] = {}
