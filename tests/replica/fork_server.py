"""Starts Python programs by forking a process that has imported them: `ForkServer`.

To import what a daemon consists of takes most of the processor time of its start, and the suite
starts thousands. A forked process is in every other way one of its own: with its own environment,
arguments and log, and killed, waited for and finalized as any.

An order is one packet, JSON of an `Order`, with two descriptors: what becomes its standard output
and error, and a socket on which its maker is told, in two packets, its process id, with a
descriptor of the process, and then its wait status.
"""

import gc
import importlib
import json
import os
import select
import selectors
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import IO, Final

IMPORTED: Final = ("mtsd.__main__", "mtsd.cli.main", "mtsd.cli.run", "tests.replica.faulty_daemon")
"""Modules that are ready before the first fork; those with `main` can be run."""
_ROOT: Final = Path(__file__).parents[2]
_STATUS: Final = struct.Struct("<i")
_LARGEST: Final = 128 * 1024
"""Bytes of an order, most of which is the environment."""


@dataclass(frozen=True, slots=True)
class Order:
    """A program: the module whose `main` it is, its `sys.argv`, and its environment."""

    module: str
    argv: Sequence[str]
    environ: Mapping[str, str]


class ForkedProcess:
    """A process that was forked, with what is used of `subprocess.Popen`."""

    def __init__(self, told: socket.socket) -> None:
        self.returncode: int | None = None
        self._told = told
        message, (self._process,), _, _ = socket.recv_fds(told, _STATUS.size, 1)
        (self.pid,) = _STATUS.unpack(message)

    def poll(self) -> int | None:
        """Return its exit status, or minus the signal that killed it; None while it runs."""
        return self._status(0)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end; returns as `poll`. Raises TimeoutExpired."""
        status = self._status(timeout)
        if status is None:
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0)
        return status

    def send_signal(self, number: int) -> None:
        """Send a signal, if it still runs."""
        if self.poll() is None:
            signal.pidfd_send_signal(self._process, number)

    def kill(self) -> None:
        """SIGKILL, if it still runs."""
        self.send_signal(signal.SIGKILL)

    def _status(self, timeout: float | None) -> int | None:
        if self.returncode is None:
            ready = select.poll()
            ready.register(self._told, select.POLLIN)
            if not ready.poll(None if timeout is None else timeout * 1000):
                return None
            self.returncode = os.waitstatus_to_exitcode(*_STATUS.unpack(self._told.recv(99)))
            self._told.close()
            # Its descriptor stays until this is no longer used: another may be about to signal.
        return self.returncode

    def __del__(self) -> None:
        os.close(self._process)
        self._told.close()


def fork(order: Order, output: IO[bytes]) -> ForkedProcess:
    """Run an order in a process of its own, in the root of the tests, without standard input."""
    told, tells = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with tells:
        packet = json.dumps(asdict(order)).encode()
        socket.send_fds(_server()[0], [packet], [output.fileno(), tells.fileno()])
    return ForkedProcess(told)


@cache
def _server() -> tuple[socket.socket, subprocess.Popen[bytes]]:
    """Start the server of this process; it ends with this process."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        server = subprocess.Popen(
            [sys.executable, "-m", __name__, str(theirs.fileno())],
            cwd=_ROOT, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()],
        )  # fmt: skip
    return ours, server


def serve(orders: socket.socket) -> Order | None:
    """Fork for each order. Returns in each forked process what it is to run, None at the end."""
    running: dict[int, tuple[int, socket.socket]] = {}
    with selectors.DefaultSelector() as ready:
        ready.register(orders, selectors.EVENT_READ)
        while True:
            for key, _ in ready.select():
                if key.fileobj is not orders:
                    ready.unregister(key.fd)
                    os.close(key.fd)
                    pid, tells = running.pop(key.fd)
                    with tells, suppress(BrokenPipeError):
                        tells.send(_STATUS.pack(os.waitpid(pid, 0)[1]))
                    continue
                packet, descriptors, _, _ = socket.recv_fds(orders, _LARGEST, 2)
                if not packet:
                    return None
                output, told = descriptors
                pid = os.fork()
                if not pid:
                    for each, (_, tells) in running.items():
                        os.close(each)
                        tells.close()
                    os.dup2(output, 1)
                    os.dup2(output, 2)
                    os.close(output)
                    os.close(told)
                    return Order(**json.loads(packet))
                os.close(output)
                process = os.pidfd_open(pid)
                running[process] = pid, socket.socket(fileno=told)
                socket.send_fds(running[process][1], [_STATUS.pack(pid)], [process])
                ready.register(process, selectors.EVENT_READ)


def main() -> int:
    """Serve, and run an order in each forked process."""
    for module in IMPORTED:
        importlib.import_module(module)
    gc.collect()
    # Otherwise a collection in a forked process copies all that is shared.
    gc.freeze()
    with socket.socket(fileno=int(sys.argv[1])) as orders:
        order = serve(orders)
    if order is None:
        return 0
    os.environ.clear()
    os.environ.update(order.environ)
    time.tzset()
    sys.argv = [*order.argv]
    run: Callable[[], int] = importlib.import_module(order.module).main
    return run()


if __name__ == "__main__":
    sys.exit(main())
