"""``python -m tests.mutation``: see docs/mutation.md."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from concurrent.futures import Executor
from dataclasses import replace
from pathlib import Path

from tests.mutation import baseline, work
from tests.mutation.mutants import Described
from tests.mutation.outcomes import Outcome, Result, Writer, read, settled
from tests.mutation.running import CONTROL
from tests.mutation.subjects import Key
from tests.mutation.table import report


def main(arguments: list[str] | None = None) -> int:
    """Run the stages that are asked for; the exit code is 0 where the baseline holds."""
    args = _arguments(arguments)
    done = _begun(args)
    if args.static or args.run:
        usual = signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            with work.processes(args.jobs) as pool:
                _stages(args, pool, Writer(args.out), done)
        except KeyboardInterrupt:
            print(f"stopped; --resume goes on with {args.out}", file=sys.stderr)
            return 130
        finally:
            signal.signal(signal.SIGTERM, usual)
    results = settled(done.values()).values()
    page = report(results, examples=args.examples)
    if args.table is not None:
        args.table.write_text(page, encoding="utf-8")
    else:
        print(page)
    return baseline.command(results, record=args.record, admit=args.admit)


def _arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    add = parser.add_argument
    add("--static", action="store_true", help="judge every mutant by the tool's own checks")
    add("--run", action="store_true", help="then run those that are not refused, at two ranks")
    add("--sample", type=int, metavar="N", help="N mutants only (of those to be run, with --run)")
    add("--seed", type=int, default=0, help="of the sample")
    add("--kind", action="append", default=[], metavar="TEXT", help="only kinds that hold the text; repeatable")
    add("--case", action="append", default=[], metavar="NAME", help="only these cases; repeatable")
    add("--id", action="append", default=[], metavar="ID", help="only this mutant; repeatable")
    add("--shard", type=_shard, default=(1, 1), metavar="I/N", help="the I-th of N parts")
    add("-j", "--jobs", type=int, default=1, metavar="N", help="processes at once")
    add("--timeout", type=float, default=60, metavar="S", help="seconds for each run (60)")
    add("--no-control", action="store_true", help="do not run each program without a fault first")
    add("--out", type=Path, default=Path("mutation.jsonl"), metavar="FILE", help="the results")
    add("--resume", action="store_true", help="go on with the results in FILE")
    add("--table", type=Path, metavar="FILE", help="the page, instead of standard output")
    add("--examples", type=int, default=0, metavar="N", help="of each kind that is not refused")
    add("--record", action="store_true", help="write the baseline; it may only shrink")
    add("--admit", action="store_true", help="with --record: it may grow")
    args = parser.parse_args(arguments)
    if args.sample is not None and args.sample < 1:
        parser.error("--sample takes a number from 1")
    if args.jobs < 1:
        parser.error("-j takes a number from 1")
    if not (args.static or args.run or args.resume):
        parser.error("give --static, --run, or --resume for the table of what is there")
    if args.out.exists() and not args.resume:
        parser.error(f"{args.out} exists: --resume goes on with it, or name another with --out")
    if args.resume and not (args.static or args.run or args.out.exists()):
        parser.error(f"{args.out} does not exist")
    return args


def _shard(text: str) -> tuple[int, int]:
    number, slash, of = text.partition("/")
    if not (slash and number.isdigit() and of.isdigit() and 1 <= int(number) <= int(of)):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form I/N with 1 <= I <= N")
    return int(number), int(of)


def _begun(args: argparse.Namespace) -> dict[str, Result]:
    """What is in the file already; errors of the harness are tried again."""
    if not (args.resume and args.out.exists()):  # one that was stopped before its first result as well
        return {}
    try:
        results = read(args.out)
    except ValueError as error:
        raise SystemExit(f"error: {error}") from None
    return {i: r for i, r in results.items() if r.outcome is not Outcome.ERROR}


def _stages(
    args: argparse.Namespace, pool: Executor, writer: Writer, done: dict[str, Result]
) -> None:
    start = time.monotonic()

    def keep(results: list[Result]) -> None:
        results = [replace(r, digest=r.digest or _digest(done, r)) for r in results]
        writer.write(results)
        done.update((r.mutant.id, r) for r in results)
        took = f"{time.monotonic() - start:.0f} s"
        last = results[-1]
        said = f"{last.mutant.id}: {last.outcome.value}"
        print(f"{took}: {len(done)} results, {said}", file=sys.stderr, flush=True)

    named = frozenset(args.id) if args.id else None
    choice = work.Choice(tuple(args.kind), tuple(args.case), args.shard, named)
    asked: list[str] = []
    if args.sample is None:
        for results in work.static_stage(pool, replace(choice, done=frozenset(done))):
            keep(results)
        asked = [i for i, r in done.items() if choice.has(r.mutant)]
        absent = sorted((named or frozenset()) - done.keys())
        if absent:
            print(f"no such mutant: {', '.join(absent)}", file=sys.stderr)
    else:
        order = [d.id for d in work.sampled(work.all_described(pool, choice), args.seed)]
        while order and (not asked or (args.run and len(_passed(asked, done)) < args.sample)):
            piece, order = order[: args.sample], order[args.sample :]
            asked += piece
            missing = frozenset(piece) - done.keys()
            if missing:
                for results in work.static_stage(pool, replace(choice, ids=missing)):
                    keep(results)
    if args.run:
        ids = [(Key(d.case, d.script), d.id) for d in _passed(asked, done)[: args.sample]]
        controls = [] if args.no_control else _controls(ids, done)
        for results in work.run_stage(pool, [*controls, *ids], args.timeout):
            keep(results)


def _passed(asked: list[str], done: dict[str, Result]) -> list[Described]:
    """What is to be run of that."""
    real = settled(done.values())
    found = [real[i] for i in asked if i in real]
    open_ones = (Outcome.PASSED, Outcome.EQUIVALENT)  # a run holds the rules of these as well
    return [r.mutant for r in found if r.outcome in open_ones]


def _digest(done: dict[str, Result], result: Result) -> str:
    """The digest of a mutant that the static stage has seen before it is run."""
    before = done.get(result.mutant.id)
    return before.digest if before is not None else ""


def _controls(ids: list[tuple[Key, str]], done: dict[str, Result]) -> list[tuple[Key, str]]:
    wanted = {key: f"{key}:{CONTROL}" for key, _ in ids}
    return [(key, id) for key, id in wanted.items() if id not in done]


if __name__ == "__main__":
    sys.exit(main())
