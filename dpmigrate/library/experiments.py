"""Trackers of experiments: what they are given is written, and runs have names of their own.

Sources: https://docs.wandb.ai/ref/python/,
https://mlflow.org/docs/latest/api_reference/python_api/,
https://www.comet.com/docs/v2/api-and-sdk/python-sdk/, https://docs.neptune.ai/api/,
https://aimstack.readthedocs.io/, https://clear.ml/docs/, https://github.com/fossasia/visdom
"""

from __future__ import annotations

from dpmigrate.execution import placements
from dpmigrate.execution.objects import ELEMENTS
from dpmigrate.execution.values import (
    NOTHING,
    Atom,
    Const,
    Data,
    Foreign,
    Method,
    Origin,
    Setting,
    Value,
    value,
)
from dpmigrate.library.effects import none
from dpmigrate.library.natures import MAIN_SETTINGS, OF_RUN
from dpmigrate.library.pure import ANY, computed
from dpmigrate.library.sites import Row, Site, methods

_WANDB = "https://docs.wandb.ai/ref/python/"
_MLFLOW = "https://mlflow.org/docs/latest/api_reference/python_api/mlflow.html"
#: what a run is called: a name that the service, or the process, makes up
_OWN = "id name dir url path hash run_id experiment_id info project_name key sys_id task_id"


def run(site: Site) -> Value:
    """``wandb.init(config=…)``: a run, also as ``wandb.run``; its configuration is a setting, which is what it is given unless
    a sweep says something else (https://docs.wandb.ai/guides/track/config/).
    """
    made = site.ref("run")
    top = site.name.partition(".")[0]
    config = site.arguments.keywords.get("config") or NOTHING
    settings = site.ref(ANY)
    for o in site.m.objects(made):
        site.m.heap.write((o.number, "config"), settings)
    _keep(site, settings, config)
    for o in site.m.objects(settings):
        for name, held in _given(site, config).items():
            site.m.heap.write((o.number, name), tuple(dict.fromkeys(_by_default(site, name, a) for a in held)))
    library = site.m.heap.number(Foreign(top))
    if top == "wandb":
        site.m.heap.write((library, "run"), made)
        site.m.heap.write((library, "config"), settings)
    return made


def _given(site: Site, config: Value) -> dict[str, Value]:
    """What a configuration holds under names, where it is one dictionary, or the options of one program."""
    made = site.m.object(config[0]) if len(config) == 1 else None
    if made is None or made.kind not in ("dict", "namespace") or any(site.m.heap.read((made.number, n)) for n in (ELEMENTS, "*")):
        return {}
    fields = [(n.value if isinstance(n, Const) else n, held) for n, held in site.m.heap.names(made.number)]
    plain = (Const, Setting, Data)
    return {n: v for n, v in fields if isinstance(n, str) and n.isidentifier() and v and all(isinstance(a, plain) for a in v)}


def _by_default(site: Site, name: str, atom: Atom) -> Atom:
    """A setting that has a value unless somebody chooses another one."""
    if isinstance(atom, Const) and atom.value is not None and not site.m.has_default(atom):
        return Setting(name, atom)
    return atom


def _keep(site: Site, settings: Value, config: Value) -> None:
    """A configuration that differs between ranks does so in the run as well."""
    moving = [v for v in (config,) if v and site.m.depends(v).kind not in placements.EQUAL]
    alone = site.m.parted
    if alone is not None and alone.origin.word.startswith("rank 0"):
        noone = value(Data("any", placements.PER_RANK, origin=Origin(site.node, MAIN_SETTINGS)))
        for o in site.m.objects(settings):
            site.m.heap.widen((o.number, "*"), noone)
    for o in site.m.objects(settings) if moving else []:
        site.m.heap.widen((o.number, "*"), computed(site))


def told(site: Site) -> Value:
    """Any method of a run: what it is given is written."""
    site.tell("write")
    return site.ref(ANY)


def own_name(site: Site) -> Value:
    """``run.id``, ``run.dir``: each process that starts a run has its own."""
    origin = Origin(site.node, OF_RUN)
    return value(Data("text", placements.PER_RANK, origin=origin))


def part(site: Site) -> Value:
    """Another attribute of a run."""
    assert site.receiver is not None
    return value(Method(site.receiver, site.word))


def entered(site: Site) -> Value:
    """``with mlflow.start_run() as run:``."""
    return value(site.receiver) if site.receiver is not None else NOTHING


ROWS = (
    Row("wandb.init swanlab.init", run, source=_WANDB),
    Row("mlflow.start_run mlflow.active_run mlflow.tracking.MlflowClient mlflow.MlflowClient", run,
        source=_MLFLOW),
    Row("comet_ml.Experiment comet_ml.OfflineExperiment comet_ml.ExistingExperiment comet_ml.start"
        " comet_ml.experiment.Experiment", run,
        source="https://www.comet.com/docs/v2/api-and-sdk/python-sdk/"),
    Row("neptune.init neptune.init_run neptune.new.init neptune.new.init_run"
        " neptune.create_experiment", run, source="https://docs.neptune.ai/api/"),
    Row("aim.Run aim.Session", run, source="https://aimstack.readthedocs.io/"),
    Row("clearml.Task.init trains.Task.init clearml.Task.current_task", run,
        source="https://clear.ml/docs/latest/docs/references/sdk/task"),
    Row("visdom.Visdom dvclive.Live hyperdash.Experiment sacred.observers.MongoObserver"
        " tensorboardX.FileWriter tensorflow.summary.FileWriter"
        " tensorflow.summary.create_file_writer"
        " tensorboard.summary.Writer", run, source="https://github.com/fossasia/visdom"),
    Row("<run>.*", told, source=_WANDB),
    Row("<run>.__enter__", entered, source=_WANDB),
    Row("<run>.__exit__", none, source=_WANDB),
    Row("<run>.__setitem__ <run>.__getitem__ <run>.__call__", told, source=_WANDB),
    Row("wandb.Table aim.Text aim.Image aim.Distribution aim.Figure neptune.types.File"
        " neptune.new.types.File swanlab.Image clearml.Logger.current_logger", computed,
        source=_WANDB),
)  # fmt: skip
ATTRIBUTES = (
    Row(methods("run", _OWN), own_name, source=_WANDB),
    Row("<run>.*", part, source=_WANDB),
)
