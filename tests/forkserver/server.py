"""A process that has imported torch and forks: each fork becomes the program of a client.

Importing torch takes some seconds of a processor, and a proof needs it in four processes. A fork
has it at once. What a new interpreter would do, the fork does: it takes the client's environment,
folder, streams and arguments, searches the client's PYTHONPATH, imports ``sitecustomize``, runs the
program as ``__main__`` and leaves through the interpreter's own end. ``torch`` counts as not
imported, so that hooks on its import work.

Started as ``python server.py SOCKET MODULE…`` with the modules to import; it ends when its standard
input is closed. What is said of torch here holds where it is among them.
"""

from __future__ import annotations

import builtins
import contextlib
import ctypes
import gc
import importlib
import importlib.abc
import importlib.machinery
import io
import json
import os
import runpy
import selectors
import signal
import socket
import struct
import sys
import types
from typing import Any, NoReturn

#: the folders that every process searches, after its own and those of PYTHONPATH
SEARCHED = sys.path[1:]


class Request:
    """One client: its connection, and what it wants to be run."""

    def __init__(self, connection: socket.socket) -> None:
        head, self.streams, *_ = socket.recv_fds(connection, 4, 3)
        (left,) = struct.unpack("!I", head)
        parts = []
        while left:
            part = connection.recv(left)
            if not part:
                raise EOFError("the client is gone")
            parts.append(part)
            left -= len(part)
        told = json.loads(b"".join(parts))
        self.arguments: list[str] = told["arguments"]  # of the interpreter
        self.program: list[str] = told["program"]  # without its options
        self.environment: dict[str, str] = told["environment"]
        self.folder: str = told["folder"]
        self.python: str = told["python"]


class Server:
    """Takes requests, forks, tells the clients how their processes end."""

    def __init__(self, place: str) -> None:
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(f"{place}.new")
        self.listener.listen(64)
        self.selector = selectors.DefaultSelector()
        self.awake, self.wake = os.pipe()
        for end in (self.awake, self.wake):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(self.wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self.running: dict[int, socket.socket] = {}
        for source in (self.listener, self.awake, sys.stdin.fileno()):
            self.selector.register(source, selectors.EVENT_READ)
        os.rename(f"{place}.new", place)  # who sees the name can connect

    def serve(self) -> Request | None:
        """Serve until the end (None); in a fork, what it is to run."""
        while True:
            for key, _ in self.selector.select():
                if key.fileobj is self.listener:
                    request = self._take()
                    if request is not None:
                        return request
                elif key.fileobj == self.awake:
                    os.read(self.awake, 1024)
                    self._reap()
                elif isinstance(key.fileobj, socket.socket):
                    self._hear(key.fileobj, key.data)
                else:
                    for pid in self.running:
                        os.kill(pid, signal.SIGKILL)
                    return None

    def _take(self) -> Request | None:
        """Start what a new client asks for; the request, in the fork alone."""
        connection, _ = self.listener.accept()
        try:
            request = Request(connection)
        except (EOFError, OSError, struct.error):
            connection.close()
            return None
        pid = os.fork()
        if not pid:
            connection.close()
            return request
        for stream in request.streams:
            os.close(stream)
        self.running[pid] = connection
        self.selector.register(connection, selectors.EVENT_READ, pid)
        return None

    def _hear(self, connection: socket.socket, pid: int) -> None:
        """Signals for the process, or that its client was killed."""
        if self.running.get(pid) is not connection:
            return  # it has just ended
        try:
            signals = connection.recv(64)
        except ConnectionError:
            signals = b""
        for number in signals or [signal.SIGKILL]:
            os.kill(pid, number)
        if not signals:
            self.selector.unregister(connection)

    def _reap(self) -> None:
        while self.running:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            connection = self.running.pop(pid)
            with contextlib.suppress(KeyError):
                self.selector.unregister(connection)
            with contextlib.suppress(OSError):
                connection.sendall(struct.pack("!i", os.waitstatus_to_exitcode(status)))
            connection.close()

    def close(self) -> None:
        """In a fork: nothing of the server is left in it."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        open_ends = [key.fileobj for key in list(self.selector.get_map().values())]
        self.selector.close()
        for end in open_ends:
            if isinstance(end, socket.socket):
                end.close()
        os.close(self.awake)
        os.close(self.wake)


class Again(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives a module that the server has imported to who first imports it in the fork."""

    def __init__(self, module: types.ModuleType) -> None:
        self.module = module
        self.spec = module.__spec__

    def find_spec(
        self, name: str, path: Any, target: Any = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != self.module.__name__:
            return None
        assert self.spec is not None
        return importlib.machinery.ModuleSpec(name, self, origin=self.spec.origin, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return self.module

    def exec_module(self, module: types.ModuleType) -> None:
        module.__spec__ = self.spec
        if self in sys.meta_path:
            sys.meta_path.remove(self)


def show_environment(wanted: dict[str, str]) -> None:
    """Write the environment to where /proc shows it: by it the processes of a run are found."""
    with open("/proc/self/stat", encoding="ascii", errors="replace") as file:
        fields = file.read().rpartition(")")[2].split()
    start, end = int(fields[47]), int(fields[48])
    block = b"".join(os.fsencode(f"{k}={v}") + b"\0" for k, v in wanted.items())
    if len(block) > end - start:
        raise RuntimeError(f"an environment of {len(block)} bytes; there is room for {end - start}")
    ctypes.memmove(start, block.ljust(end - start, b"\0"), end - start)


def become(request: Request) -> None:
    """Be the client's process: its streams, folder, environment and search path."""
    for number, stream in enumerate(request.streams):
        os.dup2(stream, number)
        os.close(stream)
    os.setsid()
    # PR_SET_PDEATHSIG: die with the server, however that ends
    ctypes.CDLL(None).prctl(1, int(signal.SIGKILL))
    os.chdir(request.folder)
    os.environ.clear()
    show_environment(request.environment)
    os.environ.update(request.environment)
    sys.executable = request.python
    sys.orig_argv = [request.python, *request.arguments]
    # no fork draws the numbers of another; the module random sees to it by itself
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()
    if "torch" in sys.modules:
        sys.modules["torch"].default_generator.seed()
    wanted = request.environment.get("PYTHONPATH")
    paths = [p or os.getcwd() for p in wanted.split(os.pathsep)] if wanted else []
    script = os.path.realpath(request.program[0])
    first = os.getcwd() if request.program[0] == "-m" else os.path.dirname(script)
    sys.path[:] = [first, *paths, *SEARCHED]
    sys.path_importer_cache.clear()
    importlib.invalidate_caches()
    sys.modules.pop("sitecustomize", None)
    if "torch" in sys.modules:
        sys.meta_path.insert(0, Again(sys.modules.pop("torch")))
    sys.path.pop(0)  # the interpreter puts it there after sitecustomize has run
    try:
        importlib.import_module("sitecustomize")
    except ModuleNotFoundError as error:
        if error.name != "sitecustomize":
            raise
    sys.path.insert(0, first)


def run(program: list[str]) -> None:
    """Run the program as ``__main__``."""
    main = types.ModuleType("__main__")
    main.__dict__.update(__builtins__=builtins, __annotations__={}, __cached__=None)
    sys.modules["__main__"] = main
    if program[0] == "-m":
        sys.argv = ["-m", *program[2:]]
        runpy._run_module_as_main(program[1])  # type: ignore[attr-defined]
        return
    sys.argv = list(program)
    path = os.path.join(os.getcwd(), program[0])
    main.__file__ = path
    main.__loader__ = importlib.machinery.SourceFileLoader("__main__", path)
    with io.open_code(path) as file:
        code = compile(file.read(), path, "exec", dont_inherit=True)
    exec(code, main.__dict__)


def end_by(error: BaseException) -> NoReturn:
    """End as the interpreter does after an error that nobody has caught; no frame is this file's."""
    place = error.__traceback__
    while place is not None and place.tb_frame.f_code.co_filename == __file__:
        place = place.tb_next
    sys.excepthook(type(error), error.with_traceback(place), place)
    sys.exit(1)


def leave_libraries() -> None:
    """At the end of a process, leave out the destructors of the libraries that are loaded by now.

    Those of torch take each operator out of its tables: a third of a second of a processor, and
    copies of that memory in every fork. They come when the interpreter is gone, and when what was
    loaded later has been destroyed; the exit code is the one that ``exit`` was called with.
    """
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "on_exit"):  # the GNU C library has it
        return
    libc.on_exit(libc._exit, None)  # calls _exit(code, None)
    # before that: exit writes what C has in its buffers after the destructors
    libc.on_exit(libc.fcloseall, None)


def serve() -> None:
    """Serve; in a fork, run what is asked for."""
    for name in sys.argv[2:]:
        importlib.import_module(name)
    leave_libraries()
    gc.freeze()  # a collection in a fork would copy the memory of all that is imported
    server = Server(sys.argv[1])
    request = server.serve()
    if request is None:
        return
    server.close()
    try:
        become(request)
        run(request.program)
    except Exception as error:
        end_by(error)


if __name__ == "__main__":
    serve()
