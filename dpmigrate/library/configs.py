"""Configurations and starters: hydra, omegaconf, yacs, absl, click, typer.

What a configuration says is a setting: the same on every rank, and not known. Sources:
https://hydra.cc/docs/intro/, https://github.com/rbgirshick/yacs,
https://abseil.io/docs/python/guides/flags,
https://click.palletsprojects.com/, https://typer.tiangolo.com/
"""

from __future__ import annotations

from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.objects import ELEMENTS
from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    SETTING,
    Const,
    Foreign,
    Ref,
    Setting,
    Value,
    items,
    known,
    value,
)
from dpmigrate.library.effects import none, uniform
from dpmigrate.library.pure import ANY, computed, read, wrote
from dpmigrate.library.sites import Effect, Row, Site, methods, prefixed

_HYDRA = "https://hydra.cc/docs/advanced/decorated_main/"
_YACS = "https://github.com/rbgirshick/yacs"
_ABSL = "https://abseil.io/docs/python/guides/flags"
_CLICK = "https://click.palletsprojects.com/en/stable/api/"
_TYPER = "https://typer.tiangolo.com/reference/typer/"
FLAGS = Foreign("absl.flags.FLAGS")


def decorator(name: str) -> Effect:
    """A call that gives a decorator, which a row of that name stands for."""

    def effect(site: Site) -> Value:
        first = site.get(0)
        functions = [o for o in site.m.objects(first or NOTHING) if o.kind == "function"]
        if functions:  # the decorator without brackets
            return site.m.call(
                value(Foreign(name)), Arguments([first or NOTHING]), site.node, site.frame
            )
        return value(Foreign(name))

    return effect


def configured(site: Site) -> Value:
    """``@hydra.main(…)``: the function is called with the configuration."""
    made = site.ref("partial", function=site.get(0))
    config = site.ref(ANY)
    site.m.objects(made)[0].extra = Arguments([config])
    return made


def commanded(site: Site) -> Value:
    """``@click.command()``: the function is called with options."""
    made = site.ref("partial", function=site.get(0))
    site.m.objects(made)[0].extra = Arguments(stars=SETTING)
    return made


def unchanged(site: Site) -> Value:
    """A decorator that tells what options there are."""
    return site.get(0) or NOTHING


def application(site: Site) -> Value:
    """``typer.Typer()``: calls the functions that are registered with it."""
    return site.ref("application")


def registered(site: Site) -> Value:
    """``@app.command()``: the application may call the function."""
    made = site.object
    assert made is not None
    new = site.ref("registering", of=value(Ref(made.number)))
    first = site.get(1)
    if first and any(o.kind == "function" for o in site.m.objects(first)):
        site.m.heap.widen((made.number, ELEMENTS), first)
        return first
    return new


def registering(site: Site) -> Value:
    """``app.command()(f)``."""
    made = site.object
    assert made is not None
    function = site.get(1) or NOTHING
    for o in site.m.objects(site.m.heap.read((made.number, "of")) or NOTHING):
        site.m.heap.widen((o.number, ELEMENTS), function)
    return function


def run(site: Site) -> Value:
    """``app()``: one of the registered functions is called with options."""
    made = site.object
    assert made is not None
    held = site.m.heap.read((made.number, ELEMENTS))
    if not held:
        return NONE
    return site.m.call(held, Arguments(stars=SETTING), site.node, site.frame)


def class_parser(site: Site) -> Value:
    """``HfArgumentParser((A, B))``: options by the fields of data classes."""
    return site.ref("class parser", classes=site.get(0, "dataclass_types"))


def classes_parsed(site: Site) -> Value:
    """``parse_args_into_dataclasses()``: an instance of each, whose fields are settings."""
    made = site.object
    assert made is not None
    held = site.m.heap.read((made.number, "classes")) or NOTHING
    listed = site.m.known_elements(held)
    given = Arguments(stars=SETTING)
    return items(
        site.m.call(c, given, site.node, site.frame) for c in (listed or [held])
    )


def defined(site: Site) -> Value:
    """``flags.DEFINE_integer("batch", 32, "help")``: a field of ``flags.FLAGS``."""
    name = known(site.get(0, "name") or NOTHING)
    default = site.get(1, "default") or NONE
    if not isinstance(name, str):
        return NONE
    found: list[Setting | Const] = [
        Setting(name, a) for a in default if isinstance(a, Const) and a.value is not None
    ]
    option: Value = (*(found or [Setting(name)]), *(NONE if default == NONE else ()))
    site.m.heap.write((site.m.heap.number(FLAGS), name), option)
    return site.ref("flag", value=option)


def loosened(site: Site) -> Value:
    """``cfg.merge_from_file(path)``: what was set before is a default from here on."""
    seen: set[int] = set()
    todo = site.m.objects((site.receiver,) if site.receiver is not None else ())
    while todo:
        made = todo.pop()
        if made.number in seen or made.kind != ANY:
            continue
        seen.add(made.number)
        for name, held in list(site.m.heap.names(made.number)):
            todo += site.m.objects(held)
            loose = tuple(
                Setting(str(name), a) if isinstance(a, Const) and a.value is not None
                else a for a in held
            )  # fmt: skip
            if loose != held:
                none_too = tuple(a for a in loose if isinstance(a, Const))
                settings = tuple(a for a in loose if isinstance(a, Setting))[:1]
                others = tuple(a for a in loose if not isinstance(a, Const | Setting))
                site.m.heap.write((made.number, name), (*settings, *others, *none_too))
    computed(site)
    return NONE


def node(site: Site) -> Value:
    """``CfgNode({…})``, ``EasyDict(a=1)``: fields that are given by name."""
    made = computed(site)
    for o in site.m.objects(made):
        given = {
            k.value: v
            for p in site.arguments.positional
            for d in site.m.objects(p)
            if d.kind == "dict"
            for k, v in site.m.heap.names(d.number)
            if isinstance(k, Const)
        }
        for name, held in {**given, **site.arguments.keywords}.items():
            site.m.heap.write((o.number, name), held)
    return made


ROWS = (
    Row("hydra.main", decorator("dpmigrate.configured"), source=_HYDRA),
    Row("dpmigrate.configured", configured, source=_HYDRA),
    Row("""
hydra.core.hydra_config.HydraConfig.get hydra.compose hydra.initialize
hydra.initialize_config_dir hydra.initialize_config_module hydra.utils.get_original_cwd
hydra.utils.to_absolute_path hydra.core.config_store.ConfigStore.instance
hydra.core.global_hydra.GlobalHydra.instance
""", computed, source=_HYDRA),
    Row("""
yacs.config.CfgNode yacs.config.CfgNode.load_cfg easydict.EasyDict addict.Dict munch.Munch
munch.munchify munch.DefaultMunch box.Box ml_collections.ConfigDict
ml_collections.FrozenConfigDict ml_collections.config_dict.ConfigDict fvcore.common.config.CfgNode
mmcv.Config mmcv.ConfigDict mmengine.Config dotmap.DotMap attrdict.AttrDict
""", node, source=_YACS),
    Row("mmcv.Config.fromfile mmengine.Config.fromfile confuse.Configuration environs.Env"
        " decouple.config", read, source=_YACS),
    Row(methods("any", """
merge_from_file merge_from_list merge_from_other_cfg merge_from_dict update set_value
"""), loosened, source=_YACS),
    Row(methods("any", "freeze defrost set_new_allowed register_deprecated_key lock unlock"), none,
        source=_YACS),
    Row("omegaconf.OmegaConf.save", wrote, source="https://omegaconf.readthedocs.io/"),
    Row("omegaconf.OmegaConf.register_new_resolver omegaconf.OmegaConf.set_struct"
        " omegaconf.OmegaConf.set_readonly omegaconf.OmegaConf.register_resolver"
        " omegaconf.OmegaConf.resolve omegaconf.open_dict omegaconf.read_write"
        " omegaconf.flag_override", computed, source="https://omegaconf.readthedocs.io/"),
    Row("dotenv.load_dotenv dotenv.find_dotenv", uniform,
        source="https://github.com/theskumar/python-dotenv"),
    Row(prefixed("absl.flags.", """
DEFINE_integer DEFINE_float DEFINE_string DEFINE_bool DEFINE_boolean DEFINE_enum DEFINE_list
DEFINE_spaceseplist DEFINE_multi_integer DEFINE_multi_string DEFINE_multi_float DEFINE_enum_class
"""), defined, source=_ABSL),
    Row("transformers.HfArgumentParser transformers.hf_argparser.HfArgumentParser trl.TrlParser",
        class_parser, source="https://huggingface.co/docs/transformers/internal/trainer_utils"),
    Row(methods("class_parser", """
parse_args_into_dataclasses parse_json_file parse_yaml_file parse_dict parse_args_and_config
"""), classes_parsed, source="https://huggingface.co/docs/transformers/internal/trainer_utils"),
    Row("absl.flags.mark_flag_as_required absl.flags.mark_flags_as_required"
        " absl.logging.set_verbosity absl.logging.use_absl_handler absl.flags.FLAGS.__call__"
        " absl.flags.FLAGS.parse_flags", none, source=_ABSL),
    Row("absl.flags.FLAGS absl.flags.FLAGS.flag_values_dict absl.flags.FLAGS.flags_into_string"
        " absl.flags.FLAGS.append_flags_into_file", uniform, source=_ABSL),
    Row("click.command click.group click.Group click.Command rich_click.command",
        decorator("dpmigrate.commanded"), source=_CLICK),
    Row("dpmigrate.commanded", commanded, source=_CLICK),
    Row("click.option click.argument click.pass_context click.version_option click.password_option"
        " click.confirmation_option click.help_option click.pass_obj click.make_pass_decorator",
        decorator("dpmigrate.unchanged"), source=_CLICK),
    Row("dpmigrate.unchanged", unchanged, source=_CLICK),
    Row("click.Path click.Choice click.File click.IntRange click.FloatRange click.prompt"
        " click.confirm click.get_current_context click.style typer.Option typer.Argument"
        " typer.prompt typer.confirm typer.style typer.get_app_dir", uniform, source=_CLICK),
    Row("<partial>.command <partial>.group", decorator("dpmigrate.unchanged"), source=_CLICK),
    Row("<partial>.add_command", none, source=_CLICK),
    Row("typer.Typer cyclopts.App", application, source=_TYPER),
    Row("<application>.command <application>.callback <application>.default", registered,
        source=_TYPER),
    Row("<registering>.__call__", registering, source=_TYPER),
    Row("<application>.__call__", run, source=_TYPER),
    Row("<application>.add_typer", none, source=_TYPER),
)  # fmt: skip
