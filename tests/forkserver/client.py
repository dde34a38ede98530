"""Stands in for ``python script`` and ``python -m module``, which run as a fork of the server.

It passes on its arguments, environment, folder and standard streams, and ends as the process ends.
Signals go to the process; if this one is killed, so is the process. What the server cannot do the
same way (``-c``, other options, another Python environment, coverage) goes to a new interpreter.

It lies in the folder of the servers, with a first line that starts it by ``python -IS``. It imports
little: it is started for every process of every proof.
"""

import contextlib
import json
import os
import signal
import socket
import struct
import sys

PASSED_ON = (
    signal.SIGTERM,
    signal.SIGINT,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
)


def main() -> None:
    here, *arguments = sys.argv
    folder = os.path.dirname(here)
    with open(os.path.join(folder, "served.json"), encoding="utf-8") as file:
        python, served = json.load(file)
    own = {k: v for k, v in os.environ.items() if _is_read_at_the_start(k)}
    place = os.path.join(folder, os.environ.get("PYTHONHASHSEED", "none"))
    # torchrun passes -u; PYTHONUNBUFFERED says the same
    program = arguments[1:] if arguments[:1] == ["-u"] else arguments
    if own != served or not os.path.exists(place) or not _is_program(program):
        os.execv(python, [python, *arguments])
    request = {
        "arguments": arguments,
        "program": program,
        "environment": dict(os.environ),
        "folder": os.getcwd(),
        "python": here,
    }
    data = json.dumps(request).encode()
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(place)
        for number in PASSED_ON:
            signal.signal(number, lambda n, _: _pass_on(server, n))
        socket.send_fds(server, [struct.pack("!I", len(data))], [0, 1, 2])
        server.sendall(data)
        status = server.recv(4)
    if not status:
        sys.exit("the fork server is gone")
    (code,) = struct.unpack("!i", status)
    if code < 0:  # as the process: killed by this signal
        if -code not in (signal.SIGKILL, signal.SIGSTOP):  # nobody can handle these
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def _pass_on(server: socket.socket, number: int) -> None:
    """A signal for the process; one that has ended is not reached any more, and its status is still to be read."""
    with contextlib.suppress(OSError):
        server.send(bytes([number]))


def _is_read_at_the_start(name: str) -> bool:
    """Whether it says how an interpreter starts, beside what the server can give later."""
    if name in ("PYTHONPATH", "PYTHONHASHSEED"):
        return False
    return name == "OMP_NUM_THREADS" or name.startswith(("PYTHON", "COVERAGE"))


def _is_program(arguments: list[str]) -> bool:
    """Whether it is a script or ``-m module``."""
    if not arguments or arguments[0].startswith("-"):
        return arguments[:1] == ["-m"] and len(arguments) > 1
    return True


main()
