"""Why a run cannot be judged, in words for the user of a proof."""

from __future__ import annotations

import re

from dpmigrate.verify.judge.outside import ABORT
from dpmigrate.verify.runs import Config, Ran

#: the line with which torch says that tensors of two precisions meet
PRECISION = re.compile(
    r".*(?:\bdtype\b|\bDouble(?:Tensor)?\b|\bdouble\b|float64|must be a float tensor|(?:bias|weight|scalar) type|Float but).*",
)
_LAST = 12  # lines of what a process said


_ABORTED = -6  # SIGABRT, as a subprocess and torchrun tell it
_ENDED_BY_THE_LAUNCHER = -15  # SIGTERM


def aborted_at_exit(ran: Ran) -> tuple[int, ...]:
    """The ranks that were aborted (SIGABRT) after they had finished everything, if the run failed by nothing else.

    Over gloo a worker thread that still holds the group needs the interpreter while that shuts
    down, and the process dies with "terminate called without an active exception"
    (pytorch/pytorch#179291). The probe writes a rank's record as the last thing before the
    interpreter's own end.
    """
    ended = {record["rank"] for record in ran.records if record.get("ended")}
    aborted = {rank for rank, code in ran.exits if code == _ABORTED}
    others = [rank for rank, code in ran.exits if code not in (_ABORTED, _ENDED_BY_THE_LAUNCHER)]
    if ran.late or others or not aborted <= ended:
        return ()
    return tuple(sorted(aborted))


def cut_short(ran: Ran, ranks: int) -> bool:
    """Whether such an abort ended ranks that had not finished: the launcher ends all if one dies."""
    finished = sum(bool(record.get("ended")) for record in ran.records)
    return bool(aborted_at_exit(ran)) and finished < ranks


def unfinished(ran: Ran, ranks: int, timeout: float, config: Config) -> str:
    """Why a run cannot be judged, with the user's own paths; '' if it can."""
    return _why(ran, ranks, timeout, config).replace(config.root, config.origin)


def _why(ran: Ran, ranks: int, timeout: float, config: Config) -> str:
    if ran.late:
        where = "\n".join(f"rank {i}:\n{stack}" if config.ranks else stack for i, stack in enumerate(ran.stacks))
        return f"it was not done after {timeout:g} s (a hang? pass --timeout for more, or arguments for a smaller run). It stood at\n{where}"
    if cut_short(ran, ranks):
        names = ", ".join(map(str, aborted_at_exit(ran)))
        return f"rank {names} {ABORT}. The launcher ended the other ranks before they had finished"
    if ran.code and not aborted_at_exit(ran):
        words = last_words(ran.stderr, config.root)
        hint = next((text for sign, text in _HINTS if sign.search(words)), "")
        return f"exit code {ran.code}\n{words}" + (f"\n{hint.format(folder=config.folder)}" if hint else "")
    if len(ran.records) < ranks:
        return f"{len(ran.records)} of {ranks} processes left a record: is torch imported, and does the script end by itself (not by os._exit)?"
    return ""


def last_words(errors: str, root: str) -> str:
    """The end of what the processes said of their failure, and the last place in the program's own files."""
    lines = [line for line in errors.splitlines() if line.strip()]
    end = lines[-_LAST:]
    own = [i for i, line in enumerate(lines) if line.lstrip().startswith(f'File "{root}')]
    if own and own[-1] < len(lines) - _LAST:
        end = [*lines[own[-1] : own[-1] + 2], "  ...", *end]
    return "\n".join(end)


#: what a failure's last words mean; the first that fits is said
_HINTS = (
    (re.compile(r"unrecognized arguments|No such option"), "the script does not know an argument that stands after --"),
    (
        re.compile(r"the following arguments are required|\busage:|Missing (option|argument)|argv.*\n(?:[ ~^]*\n)?IndexError"),
        "pass the script's arguments after --",
    ),
    (
        re.compile(r"Expected to have finished reduction in the prior iteration"),
        "some parameters get no gradient, and DistributedDataParallel waits for them: wrap the model by ddp.wrap(model), which does not",
    ),
    (re.compile(r"dpmigrate verify: the program wants to write"), "only the scratch copy is written in a proof; pass another place for the output after --"),
    (
        re.compile(r"urlopen error|ConnectionError|Max retries exceeded|Temporary failure in name resolution|HTTPError|Dataset not found"),
        "the data must be there before: run the script once, or pass the folder of its data after --",
    ),
    (
        re.compile(r"FileNotFoundError|No such file or directory"),
        "a file is missing; the program was started in {folder}. Pass the paths of data and configuration after --",
    ),
    (re.compile(r"EOFError: EOF when reading a line"), "the program asks for input, and a proof has none to give: pass what it asks for after --"),
    (re.compile(r"CUDA|NVIDIA|\bGPU\b|nccl", re.IGNORECASE), "the program asks for a GPU: pass --device cuda on a machine that has one"),
    (re.compile(r"ModuleNotFoundError|ImportError"), "install what the program needs beside dpmigrate: a proof runs it with the same Python"),
)
