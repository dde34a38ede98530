"""The command line: options in, exit code out; the work is the engine's.

Imports stand inside the commands, so that ``--version`` and ``check`` start in a few times the time of Python itself.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

import click

from dpmigrate import __version__, interrupts, options, terminal

if TYPE_CHECKING:
    from pathlib import Path

    from dpmigrate.config import Config
    from dpmigrate.engine import Target, Writing
    from dpmigrate.model import Outcome
    from dpmigrate.settings import Settings


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="dpmigrate")
def cli() -> None:
    """Move PyTorch training scripts from one GPU or nn.DataParallel to DistributedDataParallel."""


@cli.command()
@options.paths
@options.codes("--select", "Report only these codes (or prefixes: DPM2); may be given several times.")
@options.codes("--ignore", "Leave out these codes (or prefixes).")
@click.option("--explain-roles", is_flag=True, help="Say what was taken for the model, the loaders, the loops and the loss, and why; nothing else.")
@click.option("--exit-zero", is_flag=True, help="Exit 0 where there are findings; unreadable files still exit 2.")
@options.programs
@options.output_format
@options.stdin
def check(
    paths: tuple[str, ...],
    no_follow: bool,
    entry: str | None,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    explain_roles: bool,
    exit_zero: bool,
    output_format: str,
    stdin_filename: str,
) -> None:
    """Say what would break, or silently change, if the programs ran under DistributedDataParallel.

    PATHS are files, directories, or '-' for standard input; the current directory if none is given. A script is read with the files of its own that it
    imports.
    """
    from dpmigrate import engine
    from dpmigrate.model import Status

    config = options.configuration(paths)
    settings, output_format = options.settings(config), options.chosen(config, "output_format")
    targets = list(_targets(paths, stdin_filename, config, entry))
    look = engine.explain if explain_roles else engine.check
    outcomes, stopped = _finished(look(targets, settings), len(targets))
    if output_format == "json":
        terminal.document(outcomes)
    elif explain_roles:
        _roles_text(outcomes)
    elif outcomes or not stopped:
        _check_text(outcomes, settings)
    failed = any(o.status is Status.FAILED or o.unread for o in outcomes)
    found = any(o.status in (Status.FINDINGS, Status.REFUSED) for o in outcomes)
    sys.exit(_told(stopped, outcomes, targets) or (2 if failed else 1 if found and not exit_zero else 0))


def _finished(outcomes: Iterator[Outcome], total: int) -> tuple[list[Outcome], int]:
    """The outcomes up to the end or to a signal, with the exit code for that; 0 where there was none."""
    found: list[Outcome] = []
    try:
        found.extend(terminal.progress(outcomes, total))  # in one call: no signal comes between a program that is written and the list
    except interrupts.Interrupted as e:
        return found, e.code
    return found, 0


def _told(stopped: int, outcomes: Sequence[Outcome], targets: Sequence[Target]) -> int:
    """After a signal, how far the command has come; its exit code."""
    if stopped:
        terminal.note(f"dpmigrate: interrupted: {len(outcomes)} of {len(targets)} done, the others are as they were")
    return stopped


def _roles_text(outcomes: Sequence[Outcome]) -> None:
    from dpmigrate.report import text

    style, _ = terminal.style()
    for o in outcomes:
        terminal.lines(text.roles(o, style))


def _check_text(outcomes: Sequence[Outcome], settings: Settings) -> None:
    from dataclasses import replace

    from dpmigrate.report import text

    style, watched = terminal.style()
    for o in outcomes:
        shown = tuple(replace(f, findings=tuple(x for x in f.findings if _wanted(x.code, settings))) for f in o.files)
        terminal.lines(text.findings(replace(o, files=shown), style, source=watched))
    terminal.lines(text.check_summary(outcomes, style))


def _wanted(code: str, settings: Settings) -> bool:
    return (not settings.select or code.startswith(settings.select)) and not (settings.ignore and code.startswith(settings.ignore))


@cli.command()
@options.paths
@click.option("--diff", is_flag=True, help="Show what would be written, and write nothing.")
@click.option("-o", "--output", type=click.Path(path_type=str, dir_okay=False), help="Write the result of one file here instead of in place.")
@options.choices
@click.option(
    "--batch",
    type=click.Choice(["global", "per-rank"]),
    default="global",
    show_default=True,
    help="What the script's batch size stays: that of all ranks together, or of each.",
)
@click.option("--unproven", is_flag=True, help="Take a result also where executing it on paper does not show it to be right.")
@click.option("--vendor", is_flag=True, help="Copy the runtime package beside the script, so that it needs nothing but torch.")
@click.option("--annotate", is_flag=True, help="Write what is left to you into the program, as # TODO(DPM…) comments.")
@click.option("--verify", "check_by_running", is_flag=True, help="Run original and result first (see verify), and write only what is proved.")
@options.programs
@options.output_format
@options.stdin
@click.pass_obj
def apply(
    arguments: tuple[str, ...] | None,
    paths: tuple[str, ...],
    no_follow: bool,
    entry: str | None,
    diff: bool,
    output: str | None,
    amp: bool,
    amp_dtype: options.Precision | None,
    batch: options.Batch,
    sync_bn: bool,
    unproven: bool,
    vendor: bool,
    annotate: bool,
    check_by_running: bool,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    output_format: str,
    stdin_filename: str,
) -> None:
    """Rewrite programs for DistributedDataParallel, in place, each as a whole or not at all.

    PATHS are scripts, directories, or '-' for standard input. A script is rewritten together with the files of its own that it imports; 'dpmigrate undo'
    takes that back. With --verify, what follows -- goes to the script when it is run.
    """
    from pathlib import Path

    from dpmigrate import engine
    from dpmigrate.model import Status

    config = options.configuration(paths)
    settings, output_format = options.settings(config), options.chosen(config, "output_format")
    piped = "-" in paths
    if not paths:
        raise click.UsageError("say what to rewrite; 'dpmigrate apply .' takes every script of this directory")
    if diff and output is not None:
        raise click.UsageError("--diff writes nothing: leave out --output")
    if check_by_running and piped:
        raise click.UsageError("--verify cannot go with -: a program needs a file to be run")
    if check_by_running:
        options.provable(settings)
        settings = replace(settings, unproven=True)  # running it decides
    targets = list(_targets(paths, stdin_filename, config, entry))
    if output is not None and len(targets) != 1:
        raise click.UsageError("--output takes the result of one file")
    how = engine.Writing(
        write=not diff and (not piped or output is not None),
        output=Path(output) if output is not None else None,
        vendor=vendor,
        annotate=annotate,
        gate=_gate(arguments or ()) if check_by_running else None,
    )
    outcomes, stopped = _finished(engine.apply(targets, settings, how), len(targets))
    choices = (amp, amp_dtype, sync_bn, select, ignore) if diff else ()
    provable = not piped and not check_by_running and batch != "per-rank"
    try:
        if output_format == "json":
            terminal.document(outcomes)
        elif piped and not diff and how.output is None:  # a filter: the program goes to stdout, words about it to stderr
            _filter(outcomes, {str(t[0]): t[1] for t in targets if isinstance(t, tuple) and isinstance(t[1], bytes)})
        elif outcomes or not stopped:
            _apply_text(outcomes, how, diff=diff, proof=(lambda path: _proof(path, output, *choices)) if provable else lambda path: "")
        terminal.flush()
    except terminal.Unwritable:
        _lost(outcomes, how)
        raise
    if how.write and not vendor and any(o.status is Status.CHANGED for o in outcomes):
        _runtime_wanted()
    failed = any(o.status is Status.FAILED or o.unread for o in outcomes)
    sys.exit(_told(stopped, outcomes, targets) or (2 if failed else 1 if any(_left(o) for o in outcomes) else 0))


def _lost(outcomes: Sequence[Outcome], how: Writing) -> None:
    """What was written all the same, where the report of it could not be."""
    from dpmigrate.report.plain import safe

    if how.write:
        terminal.note(*(f"dpmigrate: {safe(path)} was written" for o in outcomes for path in ((str(how.output),) if how.output else o.changed) if o.changed))


def _runtime_wanted() -> None:
    from importlib.util import find_spec

    has = "which came to this Python with dpmigrate" if find_spec("dpmigrate_runtime") is not None else "which this Python lacks"
    where = "install dpmigrate for the Python that runs it (pip), or apply with --vendor"
    terminal.note(f"dpmigrate: the result imports dpmigrate_runtime, {has}: {where}")


def _gate(arguments: tuple[str, ...]) -> Callable[[Path, Mapping[Path, bytes]], str | None]:
    from dpmigrate import proving

    return proving.gate(arguments, lambda lines: terminal.note(*lines))


def _left(outcome: Outcome) -> bool:
    """Whether something was refused or is left to the user."""
    from dpmigrate.model import Status, left

    return outcome.status is Status.REFUSED or (outcome.status is Status.CHANGED and bool(left(outcome.findings)))


def _proof(
    path: str,
    output: str | None,
    amp: bool = False,
    amp_dtype: str | None = None,
    sync_bn: bool = False,
    select: tuple[str, ...] = (),
    ignore: tuple[str, ...] = (),
) -> str:
    """The command that proves the migration of a script: what was written, or what the same choices would write."""
    import shlex

    named = [f"./{name}" if name.startswith("-") else name for name in (path, *([output] if output is not None else []))]
    words = ["dpmigrate", "verify", *named, *(["--amp"] if amp else []), *(["--sync-bn"] if sync_bn else [])]
    words += ["--amp-dtype", amp_dtype] if amp_dtype is not None else []
    words += [word for option, codes in (("--select", select), ("--ignore", ignore)) for code in codes for word in (option, code)]
    return shlex.join(words)


def _apply_text(outcomes: Sequence[Outcome], how: Writing, *, diff: bool, proof: Callable[[str], str]) -> None:
    from dpmigrate.model import Status
    from dpmigrate.report import text

    style, _ = terminal.style()
    quiet = len(outcomes) > 1
    for o in outcomes:
        if quiet and o.status is Status.UNCHANGED and "already" not in o.reason:
            continue
        if diff:
            terminal.diff(o)
        written = None if not how.write else str(how.output) if how.output is not None else o.path
        terminal.lines(text.apply_result(o, style, written=written, proof=proof(o.path)))
    if quiet:
        terminal.lines([text.totals(outcomes)])


def _filter(outcomes: Sequence[Outcome], given: Mapping[str, bytes]) -> None:
    """The result on stdout, in the program's own encoding; a program that stays as it is comes out as it went in."""
    from dpmigrate.report import text

    for o in outcomes:
        new = o.files[0].data if o.after is not None else None
        terminal.raw(new[1] if new is not None else given.get(o.path, b""))
        terminal.note(*text.apply_result(o, text.Style(False), written=None))


@cli.command()
@click.argument("script", type=click.Path(exists=True, dir_okay=False))
def undo(script: str) -> None:
    """Bring back the files that the last apply of SCRIPT replaced, if none of them has been changed since."""
    from pathlib import Path

    from dpmigrate import transaction
    from dpmigrate.model import Problem
    from dpmigrate.report.plain import safe

    with interrupts.held():  # what is brought back is also told
        told = transaction.undo(Path(script))
        if isinstance(told, Problem):
            terminal.note(f"dpmigrate: {safe(script)}: {safe(told.message)}")
            sys.exit(2)
        terminal.lines([f"{safe(script)}: as it was before the last apply: {', '.join(safe(str(p)) for p in told)}"])


@cli.command()
@click.argument("original", type=click.Path(exists=True, dir_okay=False))
@click.argument("migrated", type=click.Path(exists=True, dir_okay=False), required=False)
@click.option("--nproc", type=click.IntRange(1), default=2, show_default=True, help="Ranks of the migrated program.")
@click.option("--steps", type=click.IntRange(0), help="Cut both runs after so many optimizer steps; 0 lets them end by themselves.  [default: 20]")
@click.option("--epochs", type=click.IntRange(1), help="Cut both runs after so many passes over the training data, in place of --steps.")
@click.option("--float32", is_flag=True, help="Keep single precision; differences below 2e-3 are then not told from rounding.")
@click.option("--device", type=click.Choice(["cpu", "cuda"]), default="cpu", show_default=True)
@click.option("--timeout", type=click.FloatRange(1), default=600, show_default=True, help="Seconds for each run.")
@options.choices
@click.option("--report", type=click.Path(file_okay=False), help="Write an HTML page with curves and the diff into this folder.")
@click.option("--output-format", type=click.Choice(["text", "json"]), default="text", show_default=True, help="How to report.")
@click.pass_obj
def verify(
    arguments: tuple[str, ...] | None,
    original: str,
    migrated: str | None,
    nproc: int,
    steps: int | None,
    epochs: int | None,
    float32: bool,
    device: str,
    timeout: float,
    report: str | None,
    amp: bool,
    amp_dtype: options.Precision | None,
    sync_bn: bool,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    output_format: str,
) -> None:
    """Run ORIGINAL and its migration on scratch copies, and compare what they did.

    A script that apply has migrated in place is compared with the original that apply kept. With MIGRATED, judge that file, whoever made it. What follows
    -- goes to the script. The script is executed, in a copy of its folder.
    """
    from pathlib import Path

    from dpmigrate import proving
    from dpmigrate.report import text
    from dpmigrate.report.plain import safe
    from dpmigrate.verify import proof, show

    config = options.configuration((original,))
    settings, output_format = options.settings(config), options.chosen(config, "output_format")

    if steps is None and epochs is None:
        steps = 20
    wish = proof.Wish(nproc, steps or None, epochs, not float32, timeout, device == "cpu", arguments or ())
    after: Mapping[Path, bytes] | Path | None
    former: Mapping[Path, bytes] = {}
    if migrated is not None:
        after = Path(migrated)
    else:
        options.provable(settings)
        outcome, after = proving.migration(Path(original), replace(settings, unproven=True))
        if after is None:
            former = proving.kept(outcome)
            after = {path: path.read_bytes() for path in former}
        if not after:
            terminal.lines(text.apply_result(outcome, terminal.style()[0], written=None))
            terminal.lines(["There is nothing to prove: a proof needs a migration. One that is made already is proved by: dpmigrate verify ORIGINAL MIGRATED"])
            sys.exit(2)
    if former:
        kept = safe(", ".join(map(str, former)))
        terminal.note(f"dpmigrate: compared with the original that the last apply kept: {kept}")
    found = proving.prove(Path(original), after, wish, former)
    if report is not None:
        from dpmigrate.verify import page

        new = {Path(original): after.read_bytes()} if isinstance(after, Path) else after
        old = {path: former[path] if path in former else path.read_bytes() for path in new}
        written = page.write(Path(report), found, original, [(str(p), old[p], data) for p, data in new.items() if old[p] != data])
        terminal.note(f"dpmigrate: the report is {safe(str(written))}")
    if output_format == "json":
        terminal.out(show.document(found) + "\n")
    else:
        terminal.lines(show.table(found, terminal.style()[0]))
    sys.exit(show.exit_code(found))


@cli.command()
@click.argument("code")
def explain(code: str) -> None:
    """Print the page of a rule: what it finds, why it matters, an example, when it is not fixed."""
    from dpmigrate import docs

    page = docs.page(code)
    if page is None:
        raise click.UsageError(f"no rule is called {code!r}; 'dpmigrate rules' lists them")
    terminal.out(page)


@cli.command("rules")
@click.option("--markdown", is_flag=True, help="The whole reference as Markdown.")
def list_rules(markdown: bool) -> None:
    """List the rules."""
    from dpmigrate import docs

    terminal.out(docs.markdown() if markdown else docs.table())


@cli.command()
def demo() -> None:
    """Migrate a bundled DataParallel script, run both versions, and compare them."""
    from dpmigrate.demo import run_demo

    sys.exit(run_demo(lambda line: terminal.lines([line])))


# ------------------------------------------------------------------ in and out
def _targets(paths: tuple[str, ...], stdin_filename: str, config: Config, entry: str | None) -> Iterator[Target]:
    from dpmigrate.walk import find

    if "-" in paths:
        yield _standard_input(stdin_filename)
    named = tuple(p for p in paths if p != "-")
    if entry is not None:
        yield from find(options.entries(named, entry))
    elif named or not paths:
        yield from find(named or (".",), config.exclude, config.root)


def _standard_input(name: str) -> Target:
    from pathlib import Path

    from dpmigrate.model import Problem

    if sys.stdin is None:
        return Path(name), Problem("standard input is closed")
    try:
        return name, sys.stdin.buffer.read()
    except OSError as e:
        return Path(name), Problem(f"cannot be read: {e.strerror or e}")


def main() -> NoReturn:
    """The console script. It ends with one of the documented exit codes, never with a traceback over what the system denies."""
    terminal.prepare()
    interrupts.listen()
    words = sys.argv[1:]
    arguments: tuple[str, ...] = ()
    at = words.index("--") if "--" in words else len(words)
    if words[:1] == ["verify"] or (words[:1] == ["apply"] and "--verify" in words[:at]):  # what follows is the script's own
        words, arguments = words[:at], tuple(words[at + 1 :])
    code = _ended(lambda: _run(words, arguments))
    sys.exit(_ended(terminal.flush, code))


def _run(words: list[str], arguments: tuple[str, ...]) -> None:
    try:
        os.getcwd()
    except OSError as e:
        raise click.ClickException(f"the current folder cannot be used: {e.strerror}") from e
    cli.main(words, prog_name="dpmigrate", standalone_mode=False, obj=arguments)


def _ended(work: Callable[[], object], code: int = 0) -> int:
    """Do it, and say how it ended: an exit code, ``code`` where nothing went wrong."""
    stream = sys.stdout
    try:
        work()
    except click.exceptions.Exit as e:
        return e.exit_code
    except click.ClickException as e:
        with contextlib.suppress(OSError):
            e.show()
        if isinstance(e, click.NoSuchOption) and (sys.argv[1:2] == ["verify"] or "--verify" in sys.argv):
            terminal.note("Options of the script go after --")
        return max(e.exit_code, 2)
    except SystemExit as e:
        if sys.stdout is not stream:  # click's own way out of help and version over a closed pipe: another stream, and 1
            return terminal.CLOSED_PIPE
        return e.code if isinstance(e.code, int) else 1
    except (KeyboardInterrupt, click.exceptions.Abort) as e:
        terminal.note("dpmigrate: interrupted")
        signal = e.__cause__ if isinstance(e, click.exceptions.Abort) else e
        return signal.code if isinstance(signal, interrupts.Interrupted) else 130
    except terminal.Unwritable as e:
        return _unwritable(e)
    except OSError as e:
        if e.filename is None:  # click's own output: help, version
            return _unwritable(terminal.Unwritable(e))
        terminal.note(f"dpmigrate: {str(e.filename)!r}: {e.strerror}")
        return 2
    except Exception as e:  # a fault of ours must not have the exit code of findings
        import traceback

        terminal.note(traceback.format_exc(), f"dpmigrate: internal error, please report it: {type(e).__name__}")
        return 2
    return code


def _unwritable(error: terminal.Unwritable) -> int:
    if error.code != terminal.CLOSED_PIPE:
        terminal.note(f"dpmigrate: cannot write to stdout: {error}")
    terminal.abandon()
    return error.code
