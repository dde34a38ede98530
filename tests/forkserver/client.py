"""Stands in for ``python script`` and ``python -m module``: the process runs as a fork of the server, this one waits for it.

It passes on its arguments, environment, folder and standard streams, and ends as the process ends. Signals go to the process; if this one is killed, so is
the process. What the server cannot do the same way (``-c``, other options, another Python environment, coverage) goes to the real interpreter.

It lies in the folder of the servers, with a first line that starts it by ``python -IS``. It imports little: it is started for every process of every proof.
"""

import json
import os
import signal
import socket
import struct
import sys

PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)


def main() -> None:
    here, *arguments = sys.argv
    folder = os.path.dirname(here)
    with open(os.path.join(folder, "served.json"), encoding="utf-8") as file:
        python, served = json.load(file)
    own = {k: v for k, v in os.environ.items() if k == "OMP_NUM_THREADS" or (k.startswith(("PYTHON", "COVERAGE")) and k not in ("PYTHONPATH", "PYTHONHASHSEED"))}
    place = os.path.join(folder, os.environ.get("PYTHONHASHSEED", "none"))
    program = arguments[1:] if arguments[:1] == ["-u"] else arguments  # torchrun passes it; PYTHONUNBUFFERED says the same
    if own != served or not os.path.exists(place) or not _is_program(program):
        os.execv(python, [python, *arguments])
    request = {"arguments": arguments, "program": program, "environment": dict(os.environ), "folder": os.getcwd(), "python": here}
    data = json.dumps(request).encode()
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(place)
        for number in PASSED_ON:
            signal.signal(number, lambda n, _: server.send(bytes([n])))
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


def _is_program(arguments: list[str]) -> bool:
    """Whether it is a script or ``-m module``."""
    return bool(arguments) and (not arguments[0].startswith("-") or (arguments[0] == "-m" and len(arguments) > 1))


main()
