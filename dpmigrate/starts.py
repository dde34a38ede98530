"""How a program is started today: the lines of shell scripts, Makefiles and READMEs beside it, and what they become with torchrun.

Looked at are files of the program's folder and of the folders above it, up to the top of the repository. Nothing is changed: such lines hold
settings of a machine that only their author knows. A file in another encoding is read as far as it goes.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from dpmigrate import reading
from dpmigrate.model import Problem, Start
from dpmigrate.started import as_module

_SHELL = frozenset({".sh", ".bash", ".zsh", ".slurm", ".sbatch", ".pbs", ".mk"})
_MAKE = frozenset({"Makefile", "makefile", "GNUmakefile"})
_LARGEST = 1 << 18  # bytes of a file; what is larger is a log or data
_MOST = 100  # files of a folder, lines in all: a bound for folders of a cluster's thousand job files

_PYTHON = re.compile(r"(?<![^\s;&|(@!\"'])((?:[\w.~/-]*/)?python[\d.]*|\$[({]?PYTHON\w*[)}]?)(?=\s)")
_WORD = re.compile(r"""\s+((?:[^\s"';&|]|"[^"]*"|'[^']*')+)""")
_LAUNCHERS = frozenset({"torch.distributed.launch", "torch.distributed.run"})
#: options of Python and of the launcher that are followed by a word
_WITH_WORD = frozenset({"-W", "-X", "--check-hash-based-pycs"})
_ALONE = frozenset({"--use_env", "--standalone", "--no_python", "--run_path", "--module", "-m"})
#: what torchrun --standalone says by itself, and what it does always
_IMPLIED = frozenset({"--use_env", "--standalone", "--nnodes", "--node_rank", "--master_addr", "--master_port"})
_DEVICES = re.compile(r"\bCUDA_VISIBLE_DEVICES=[\"']?([\w,]*)")
_FOLDER = re.compile(r"(?:^|[;&|(]|\s)cd\s+([^\s;&|)]+)")
_LASTING = re.compile(r"(?:export\s+)?CUDA_VISIBLE_DEVICES=\S*")
_PROMPT = re.compile(r"^(?:[$>%]\s+|[!@-]+\s*)")
_CODE = re.compile(r"`([^`]+)`")


def starts(script: Path, written: Path | None = None, unread: list[tuple[str, Problem]] | None = None) -> tuple[Start, ...]:
    """The lines that start ``script``, nearest files first; ``written`` is where the migrated program lies, if that is another file.

    ``unread`` gets the files and folders that could not be read, with what is wrong: whether they start the program is not known.
    """
    try:
        target = Path(os.path.realpath(script, strict=True))
    except OSError:
        return ()
    out: list[Start] = []
    unread = [] if unread is None else unread
    module = as_module(script)
    for folder in _folders(target.parent, module.folder if module is not None else target.parent):
        files, problems = _files(folder)
        for file in files:
            name = _shown(file, script)
            try:
                text = reading.content(file).decode("utf-8", "replace")
            except OSError as e:
                problems.append((file, e))
                continue
            found = _found(file, text, _Program(target, Path(os.path.realpath(written or script)), folder))
            out += (Start(name, line, command) for line, command in found)
        unread += [(_shown(file, script), Problem(f"cannot be read: {reading.why(e)}")) for file, e in problems]
    return tuple(out[:_MOST])


def _shown(file: Path, script: Path) -> str:
    """The file's name as the user writes that of the script."""
    return str(file) if script.is_absolute() else os.path.relpath(file)


def _folders(folder: Path, start: Path) -> list[Path]:
    """The folder and those above it, up to the repository's top; of what is no repository those up to where the program is started."""
    chain = [folder, *folder.parents]
    top = next((i for i, f in enumerate(chain) if os.path.exists(f / ".git")), chain.index(start))
    return chain[: top + 1]


def _files(folder: Path) -> tuple[list[Path], list[tuple[Path, OSError]]]:
    """The files of a folder that may hold commands, and what of them could not be asked."""
    try:
        with os.scandir(folder) as entries:
            candidates = sorted((e for e in entries if _kind(e.name)), key=lambda e: e.name)
    except OSError as e:
        return [], [(folder, e)]
    found, problems = [], []
    for entry in candidates:
        try:
            if entry.is_file() and entry.stat().st_size <= _LARGEST:
                found.append(folder / entry.name)
        except OSError as e:
            problems.append((folder / entry.name, e))
    return found[:_MOST], problems


def _kind(name: str) -> str:
    if name in _MAKE or Path(name).suffix in _SHELL:
        return "shell"
    return "text" if name.upper().startswith("README") and Path(name).suffix.lower() in ("", ".md", ".rst", ".txt") else ""


class _Program:
    """The program that is looked for, as the lines of one file see it."""

    def __init__(self, path: Path, written: Path, top: Path) -> None:
        self.path = path
        self.written = written
        self.top = top  # the file's own folder
        self.here = top  # where the line is run

    def enter(self, line: str) -> None:
        """Follow ``cd``. A folder that is not there is the clone that a README speaks of, or said by a variable: taken for the file's own."""
        for word in _FOLDER.findall(line):
            folders = [base / word.strip("\"'") for base in (self.here, self.top)]
            self.here = next((Path(os.path.realpath(f)) for f in folders if os.path.isdir(f)), self.top)

    def named(self, word: str) -> str | None:
        """The word for the migrated program in place of ``word``, None where that names another file."""
        plain = word.strip("\"'")
        path = re.sub(r"^\$[({]?\w+[)}]?/", "", plain)
        if not path.endswith(".py") or os.path.realpath(self.here / path) != str(self.path):
            return None
        return word if self.written == self.path else self._elsewhere()

    def module(self, word: str) -> str | None:
        place = self.here / word.replace(".", "/")
        if str(self.path) not in (os.path.realpath(place.with_name(f"{place.name}.py")), os.path.realpath(place / "__main__.py")):
            return None
        return f"-m {word}" if self.written == self.path else self._elsewhere()

    def _elsewhere(self) -> str:
        """The result in another file: as seen from the line, or in full where that is far away."""
        near = self.written.is_relative_to(self.top)
        return shlex.quote(os.path.relpath(self.written, self.here) if near else str(self.written))


def _found(file: Path, text: str, program: _Program) -> Iterator[tuple[int, str]]:
    """The number of each line that starts the program, with the new command."""
    devices = ""
    make = file.name in _MAKE or file.suffix == ".mk"
    for number, line in _commands(text.replace("\0", "\ufffd"), shell=_kind(file.name) == "shell"):
        if make:
            program.here = program.top  # a shell of its own for each line
        program.enter(line)
        chosen = _DEVICES.findall(line)
        command = _rewritten(line, program, chosen[-1] if chosen else devices)
        if command is not None:
            yield number, command
        if chosen and _LASTING.fullmatch(line):
            devices = chosen[-1]


def _commands(text: str, *, shell: bool) -> Iterator[tuple[int, str]]:
    """The lines that are commands, continued ones joined, without prompts; of a README those in code."""
    fenced, held, first = False, "", 0
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        fence = not shell and line.startswith(("```", "~~~"))
        fenced = fenced != fence
        whole = shell or fenced or bool(held) or line.startswith("$ ") or raw.startswith(("    ", "\t"))
        if not whole:
            yield from ((number, code.strip()) for code in _CODE.findall(line))
        elif not fence:
            first = first if held else number
            held += line
            if held.endswith("\\"):
                held = held[:-1].rstrip() + " "
                continue
        yield from _command(first, held)
        held = ""
    yield from _command(first, held)


def _command(number: int, line: str) -> Iterator[tuple[int, str]]:
    """The line, if it is a command. A backslash that the end of the code follows continues nothing."""
    if line and not line.startswith("#"):
        yield number, _PROMPT.sub("", line.rstrip())


_NUMBERED = re.compile(r"\bcuda:\d+\b")


def _rewritten(line: str, program: _Program, devices: str) -> str | None:
    """The line with its starts of the program turned into torchrun's; None where it has none. Everything else stays as it is written, but for the number
    of a GPU among the arguments (``--device cuda:1``): each rank has one of its own.
    """
    out, at = "", 0
    for match in _PYTHON.finditer(line):
        if match.start() >= at and (found := _start(line, match, program, devices)) is not None:
            out += (_NUMBERED.sub("cuda", line[at : match.start()]) if at else line[: match.start()]) + found[0]
            at = found[1]
    return out + _NUMBERED.sub("cuda", line[at:]) if at else None


def _start(line: str, python: re.Match[str], program: _Program, devices: str) -> tuple[str, int] | None:
    """The launcher and the program that take the place of ``python … train.py``, and where in the line that ends."""
    flags, launcher = _Options(), _Options()
    words = _WORD.finditer(line, python.end())
    taken, launched = flags, False
    for match in words:
        word = match[1]
        if word == "-m" and not launched:
            match = next(words, match)
            if match[1] in _LAUNCHERS:
                taken, launched = launcher, True
                continue
            name = program.module(match[1])
        elif taken.takes(word, launched):
            continue
        else:
            name = program.module(word) if launcher.holds("-m", "--module") else program.named(word)
        return None if name is None else (f"{_torchrun(python[1], flags, launcher, devices)} {name}", match.end())
    return None


class _Options:
    """The options of Python or of the launcher, as they are written."""

    def __init__(self) -> None:
        self.words: list[list[str]] = []
        self._open = False

    def takes(self, word: str, launched: bool) -> bool:
        """Whether the word belongs to the options: one itself, or the value of the one before."""
        if self._open:
            self.words[-1].append(word)
            self._open = False
        elif word.startswith("-"):
            self.words.append([word])
            self._open = "=" not in word and (_name(word) not in _ALONE if launched else word in _WITH_WORD)
        else:
            return False
        return True

    def holds(self, *names: str) -> bool:
        return any(w[0] in names for w in self.words)

    def value(self, name: str) -> str:
        """What the option is given; '' where it is not."""
        return next((w[0].partition("=")[2] or w[-1] for w in self.words if _name(w[0]) == name), "")


def _name(word: str) -> str:
    head = word.partition("=")[0]
    return head if len(head) == 2 else "--" + head.lstrip("-").replace("-", "_")


def _torchrun(python: str, flags: _Options, launcher: _Options, devices: str) -> str:
    """``torchrun`` of the same Python, with the launcher's own options, the flags of Python where they change anything, and a process for each GPU."""
    program = "torchrun" if python in ("python", "python3") else f"{python} -m torch.distributed.run"
    several = launcher.value("--nnodes") not in ("", "1")
    count = len(devices.split(",")) if re.fullmatch(r"\d+(,\d+)*", devices) else "NUMBER_OF_GPUS"
    words = [program] if several else [program, "--standalone"]
    if not launcher.value("--nproc_per_node"):
        words.append(f"--nproc-per-node={count}")
    left_out = {"--use_env"} if several else _IMPLIED
    words += [w for option in launcher.words if _name(option[0]) not in left_out | {"-m", "--module"} for w in option]
    kept = [w for option in flags.words if option != ["-u"] for w in option]
    if kept:  # torchrun itself starts "python -u"
        words += ["--no-python", "python" if program == "torchrun" else python, *kept]
    return " ".join(words)
