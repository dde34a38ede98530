"""Options that commands share, and what they become together with the project's configuration."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click
from click.core import ParameterSource

if TYPE_CHECKING:
    from dpmigrate.config import Config
    from dpmigrate.settings import Settings

Precision = Literal["float16", "bfloat16"]
Batch = Literal["global", "per-rank"]

paths = click.argument("paths", nargs=-1, type=click.Path(path_type=str))
output_format = click.option("--output-format", type=click.Choice(["text", "json"]), default="text", show_default=True, help="How to report.")
stdin = click.option("--stdin-filename", default="<stdin>", help="The name to report for source that comes from '-'.")


def codes(name: str, text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return click.option(name, multiple=True, metavar="CODE", callback=lambda context, option, given: known(given), help=text)


def known(given: Iterable[str]) -> tuple[str, ...]:
    """Codes and prefixes in capitals; a word that no code begins with is a mistake."""
    wanted = tuple(c.strip().upper() for item in given for c in item.split(",") if c.strip())
    if wanted:
        from dpmigrate.rules import all_rules

        for code in wanted:
            if not any(r.code.startswith(code) for r in all_rules()):
                raise click.UsageError(f"no rule is called {code!r}; 'dpmigrate rules' lists them")
    return wanted


def configuration(paths: tuple[str, ...]) -> Config:
    """What pyproject.toml says for these paths. UsageError for what cannot be understood."""
    from dpmigrate import config
    from dpmigrate.report.plain import safe

    first = next((p for p in paths if p != "-"), ".")
    try:
        found = config.load(Path(first))
    except config.ConfigError as e:
        raise click.UsageError(safe(str(e))) from e
    given = {key: found.options[key] for key in ("select", "ignore") if key in found.options}
    given["per-file-ignores"] = [code for _, codes in found.per_file_ignores for code in codes]
    for key, wanted in given.items():
        try:
            known(wanted)
        except click.UsageError as e:
            raise click.UsageError(f"{safe(str(found.root / 'pyproject.toml'))}: [tool.dpmigrate] {key}: {e.message}") from e
    return found


def chosen(config: Config, name: str) -> Any:
    """The value of an option: as it was given, else what the project wants, else the default.

    Commands that lack an option follow the project too: check and verify are about what apply would write.
    """
    context = click.get_current_context()
    if name in config.options and context.get_parameter_source(name) in (None, ParameterSource.DEFAULT):
        value = config.options[name]
        return known(value) if isinstance(value, list) else value
    return context.params.get(name)


def choices(command: Callable[..., Any]) -> Callable[..., Any]:
    """What a user may choose about the result, for the commands that make one."""
    options = (
        click.option("--amp", is_flag=True, help="Add mixed precision: autocast and, for float16, a GradScaler."),
        click.option("--amp-dtype", type=click.Choice(["float16", "bfloat16"]), help="The precision of --amp.  [default: float16]"),
        click.option("--sync-bn", is_flag=True, help="Compute BatchNorm statistics over all ranks (on GPUs)."),
        codes("--select", "Make only the optional changes of these codes; what every migration needs is always made."),
        codes("--ignore", "Leave out the optional changes of these codes."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def programs(command: Callable[..., Any]) -> Callable[..., Any]:
    """What belongs to a program, for the commands that read one."""
    follow = click.option("--no-follow", is_flag=True, help="Look at each file by itself, not at the program that it starts with its own imports.")
    entry = click.option("--entry", type=click.Path(path_type=str, dir_okay=False), help="Of the directories given, only the program that this script starts.")
    return follow(entry(command))


def entries(folders: tuple[str, ...], entry: str) -> tuple[str, ...]:
    """The script of each directory; UsageError for a path that is none, or does not hold it."""
    found = []
    for folder in folders or (".",):
        if not Path(folder).is_dir():
            raise click.UsageError(f"--entry names the script of a directory, and {folder!r} is none")
        inside = Path(folder, entry)
        found.append(inside if inside.is_file() else Path(entry))
        if not found[-1].is_file() or not found[-1].resolve().is_relative_to(Path(folder).resolve()):
            raise click.UsageError(f"{folder!r} holds no {entry!r}")
    return tuple(map(str, found))


def settings(config: Config) -> Settings:
    """The settings of the command that runs. UsageError for options that do not go together."""
    from dpmigrate.settings import Settings

    amp, dtype = bool(chosen(config, "amp")), chosen(config, "amp_dtype")
    if click.get_current_context().params.get("amp_dtype") is not None and not amp:
        raise click.UsageError("--amp-dtype says how --amp computes: give --amp as well")
    return Settings(
        amp,
        dtype or "float16",
        chosen(config, "batch") or "global",
        bool(chosen(config, "sync_bn")),
        bool(chosen(config, "unproven")),
        chosen(config, "select") or (),
        chosen(config, "ignore") or (),
        config.per_file_ignores,
        str(config.root),
        not click.get_current_context().params.get("no_follow"),
    )


def provable(settings: Settings) -> None:
    """UsageError where the migration means to train in another way, so that there is nothing to prove."""
    if settings.batch == "per-rank":
        raise click.UsageError("a proof cannot go with --batch per-rank: with another global batch the result trains in another way than the original")
