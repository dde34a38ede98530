"""Progress bars, trackers of experiments, plots, and starters of functions."""

from __future__ import annotations

from dpmigrate.execution import placements
from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.joins import join
from dpmigrate.execution.objects import LENGTH
from dpmigrate.execution.values import NONE, NOTHING, SETTING, Data, Origin, Ref, Value, value
from dpmigrate.library.effects import none, same, uniform
from dpmigrate.library.iterators import counted_by
from dpmigrate.library.natures import CLOCK
from dpmigrate.library.sites import Row, Site, methods

_TQDM = "https://tqdm.github.io/"
_PROGRESSBAR = "https://progressbar-2.readthedocs.io/en/latest/progressbar.bar.html"


def bar(site: Site) -> Value:
    """``tqdm(iterable)``: the elements of what it goes over, with methods of a bar."""
    return _bar_over(site, site.get(0, "iterable"))


def _bar_over(site: Site, source: Value | None) -> Value:
    made = site.made("bar", extra=1)
    if source is not None:
        site.m.heap.write((made.number, "source 0"), source)
        counted_by(site, made, [source])
    return value(Ref(made.number))


def bar_range(site: Site) -> Value:
    """``trange(n)``."""
    made = site.made("bar", extra=0)
    site.m.heap.write((made.number, LENGTH), site.get(0) or SETTING)
    return value(Ref(made.number))


def bar_to_be_called(site: Site) -> Value:
    """``ProgressBar(max_value=n)``: it goes over nothing until it is called with what it shows."""
    return value(Ref(site.made("bar", extra=0).number))


def bar_called(site: Site) -> Value:
    """``bar(loader)``: a bar that shows another iterable from now on. The library gives the same
    object again; here it is a new one, so that what the first was called with is not mixed in.
    """
    source = site.get(1, "iterable")
    if source is not None and site.object is not None:  # ``bar(loader)``, then ``for x in bar``
        site.m.heap.write((site.object.number, "source 0"), source)
    return _bar_over(site, source)


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
    site.tell("print")
    return NONE


def advanced(site: Site) -> Value:
    """``bar.update(n)``: whether it was drawn anew, which the clock and the options decide."""
    shown(site)
    return value(Data("number", placements.PER_RANK, origin=Origin(site.node, CLOCK)))


def tracked(site: Site) -> Value:
    """``wandb.log({…})``: sent to a tracker."""
    site.tell("write")
    return NONE


def image_saved(site: Site) -> Value:
    """``save_image(x, path)``; a grid of images is one tensor."""
    site.event("save", what=site.get(0) or NOTHING, path=site.get(1) or NOTHING)
    return site.get(0) or NONE


def started(site: Site) -> Value:
    """``fire.Fire(main)``: the function is called with options, or any function of the module, of a
    dictionary or of a list.
    """
    target = site.get(0, "component")
    if not target:
        module = site.m.heap.objects[site.frame.module]
        names = [v for n, v in site.m.heap.names(module.number) if isinstance(n, str)]
        functions = [o for v in names for o in site.m.objects(v) if o.kind == "function"]
        own = [o for o in functions if o.extra.module == module.number]
        target = join(*[value(Ref(o.number)) for o in own])
    if site.word == "Fire":
        held = [site.m.contents(o) if o.kind in ("dict", "list") else value(Ref(o.number)) for o in site.m.objects(target)]
        target = join(*held) or target
    options = NOTHING if site.name.startswith("absl.") else SETTING
    return site.m.call(target, Arguments(stars=options), site.node, site.frame)


def opaque(site: Site) -> Value:
    """An object of which nothing is known."""
    return site.ref("opaque")


def writer(site: Site) -> Value:
    """``SummaryWriter(path)``."""
    return site.ref("writer")


ROWS = (
    Row("""
tqdm.tqdm tqdm.auto.tqdm tqdm.notebook.tqdm tqdm.tqdm_notebook tqdm.autonotebook.tqdm
tqdm.rich.tqdm rich.progress.track alive_progress.alive_it fastprogress.progress_bar
progressbar.progressbar tqdm.asyncio.tqdm tqdm.std.tqdm fastprogress.master_bar
fastprogress.fastprogress.progress_bar fastprogress.fastprogress.master_bar pyprind.prog_bar
pyprind.prog_percent tqdm.gui.tqdm barbar.Bar
""", bar, source=_TQDM),
    Row("tqdm.trange tqdm.auto.trange tqdm.notebook.trange tqdm.tnrange", bar_range, source=_TQDM),
    Row("tqdm.tqdm.write tqdm.write", shown, source=_TQDM),
    Row("""
progressbar.ProgressBar progressbar.bar.ProgressBar progressbar.DataTransferBar
progressbar.bar.DataTransferBar
""", bar_to_be_called, source=_PROGRESSBAR),
    Row("<bar>.__call__", bar_called, source=_PROGRESSBAR),
    Row(methods("bar", "start"), same, source=_PROGRESSBAR),
    Row(methods("bar", "finish increment"), shown, source=_PROGRESSBAR),
    Row("<bar>.__iter__", bar_elements, source=_TQDM),
    Row("<bar>.__enter__", same, source=_TQDM),
    Row("<bar>.__exit__", none, source=_TQDM),
    Row("<bar>.__len__", uniform, source=_TQDM),
    Row(methods("bar", """
set_description set_postfix set_postfix_str write set_description_str close reset clear
"""), shown, source=_TQDM),
    Row(methods("bar", "update refresh display"), advanced, source=_TQDM),
    Row("""
wandb.log mlflow.log_metric mlflow.log_metrics neptune.log tensorboard_logger.log_value
wandb.log_model mlflow.log_artifacts mlflow.log_dict mlflow.log_figure
mlflow.log_image mlflow.log_text mlflow.set_tag mlflow.set_tags mlflow.register_model
mlflow.pytorch.save_model mlflow.log_table swanlab.log dvclive.log aim.track
tensorboard_logger.log_histogram wandb.run.log wandb.summary.update mlflow.log_artifact
mlflow.pytorch.log_model comet_ml.log_metric wandb.log_artifact wandb.alert
clearml.Logger.report_scalar
""", tracked),
    Row("""
wandb.watch wandb.finish wandb.save wandb.login mlflow.log_param
mlflow.log_params mlflow.set_experiment wandb.config.update wandb.define_metric
mlflow.set_tracking_uri tensorboard_logger.configure wandb.Artifact wandb.Api
wandb.Settings wandb.setup wandb.unwatch mlflow.end_run wandb.agent wandb.sweep
wandb.run.log_code wandb.mark_preempting wandb.restore wandb.use_artifact wandb.join
wandb.config.setdefaults mlflow.autolog mlflow.pytorch.autolog
mlflow.get_experiment_by_name mlflow.create_experiment mlflow.set_registry_uri
""", opaque),
    Row("wandb.Image wandb.Histogram wandb.Video wandb.Html wandb.plot wandb.Audio"
        " wandb.Object3D wandb.Molecule wandb.Graph", same),
    Row("""
torch.utils.tensorboard.SummaryWriter tensorboardX.SummaryWriter tensorboard_logger.Logger
torch.utils.tensorboard.writer.SummaryWriter
tensorboardX.writer.SummaryWriter
""", writer),
    Row(methods("writer", """
add_scalar add_scalars add_image add_images add_histogram add_graph add_text add_figure
add_embedding add_hparams add_pr_curve add_video add_audio export_scalars_to_json log_value
scalar_summary add_mesh add_scalar_dict
"""), tracked, source="https://docs.pytorch.org/docs/stable/tensorboard.html"),
    Row(methods("writer", "get_logdir"), uniform, source="https://docs.pytorch.org/docs/stable/tensorboard.html"),
    Row("""
torchvision.utils.save_image torchvision.utils.make_grid
""", image_saved, source="https://docs.pytorch.org/vision/stable/utils.html"),
    Row("""
torchsummary.summary torchinfo.summary thop.profile ptflops.get_model_complexity_info
torchsummaryX.summary fvcore.nn.FlopCountAnalysis thop.clever_format
""", uniform),
    Row("fire.Fire typer.run tyro.cli absl.app.run", started),
)  # fmt: skip
