"""The short real run of `mtsd plan --measure`: the daemon itself, at three points."""

import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from mtsd.config import Settings
from mtsd.control.client import DaemonUnavailableError, fetch_status
from mtsd.control.status import Status
from mtsd.model.errors import MtsdError
from mtsd.plan.calibration import Point
from mtsd.plan.candidate import Candidate

_POLL_S: Final = 0.1
_WARM_UP_S: Final = 1.0
_TIMEOUT_S: Final = 60.0
_CREDENTIALS: Final = struct.Struct("3i")
_TICKS: Final = os.sysconf("SC_CLK_TCK")


class MeasuringError(MtsdError):
    """The daemon could not be measured."""


@dataclass(frozen=True, slots=True)
class _Reading:
    at: float
    groups: int
    transactions: int
    daemon: float
    target: float | None
    machine: float
    """What all processors have spent."""


def three_points(settings: Settings) -> list[Candidate]:
    """Return what is measured: one worker unbatched, several unbatched, one batched.

    The last one takes by far the most of the backlog. Where transactions keep their own GTIDs,
    none is batched.
    """
    replica = settings.replica
    policy = replica.parallel_type
    several = max(2, replica.parallel_workers)
    batch = max(2, replica.batch_groups)
    bind = tuple(tuple(names) for names in replica.bind)
    batched = [] if settings.target.gtid == "preserve" else [Candidate(policy, 1, batch)]
    return [Candidate(policy, 1, 1), Candidate(policy, several, 1, bind), *batched]


def measure(
    options: Sequence[str],
    settings: Settings,
    seconds: float,
    report: Callable[[str], None],
    keep: Callable[[Sequence[Point]], None],
) -> list[Point]:
    """Run `mtsd run` with the options at each point for so long, and return what it did.

    It replicates as it always does, each time from where it stopped. `keep` is called with all
    points so far after each. Raises MeasuringError if there is none.
    """

    def measured(candidate: Candidate) -> Point:
        report(f"measuring for {seconds:g} s: {candidate}")
        return _measured(options, settings, candidate, seconds)

    return measured_points(three_points(settings), measured, report, keep)


def measured_points(
    candidates: Sequence[Candidate],
    measured: Callable[[Candidate], Point],
    report: Callable[[str], None],
    keep: Callable[[Sequence[Point]], None],
) -> list[Point]:
    """Return what `measured` returns for each candidate, up to one that cannot be measured.

    Raises MeasuringError if that is the first.
    """
    points: list[Point] = []
    for candidate in candidates:
        try:
            points.append(measured(candidate))
        except MeasuringError as error:
            if not points:
                raise
            report(f"{error}; going on with what was measured before")
            break
        keep(points)
    return points


def _measured(
    options: Sequence[str], settings: Settings, candidate: Candidate, seconds: float
) -> Point:
    with TemporaryDirectory(prefix="mtsd-plan-") as folder:
        socket_path, log = Path(folder, "status"), Path(folder, "log")
        changed = {
            "replica.parallel_workers": candidate.parallel_workers,
            "replica.batch_groups": candidate.batch_groups,
            # The workers that databases are pinned to may be more than there are now.
            "replica.pin": [],
            "replica.weigh": [],
            "status.socket": socket_path,
            "log.format": "json",
        }
        command = [sys.executable, "-m", "mtsd", "run", *options]
        for key, value in changed.items():
            command += ["--set", f"{key}={value}"]
        with log.open("wb") as output:
            daemon = subprocess.Popen(  # noqa: S603 - the daemon of this very command
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )
        try:
            return _watched(daemon, log, socket_path, settings, candidate, seconds)
        finally:
            daemon.send_signal(signal.SIGTERM)
            try:
                daemon.wait(settings.replica.stop_timeout + _TIMEOUT_S)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()


def _watched(
    daemon: subprocess.Popen[bytes],
    log: Path,
    socket_path: Path,
    settings: Settings,
    candidate: Candidate,
    seconds: float,
) -> Point:
    target = target_process(settings)

    def status() -> Status | None:
        if daemon.poll() is not None:
            last_words = log.read_text("utf-8", "replace").strip().splitlines()
            raise MeasuringError(
                f"the daemon ended: {last_words[-1] if last_words else daemon.returncode}"
            )
        try:
            return fetch_status(socket_path)
        except DaemonUnavailableError:
            return None

    def reading(now: Status) -> _Reading:
        return _Reading(
            time.monotonic(),
            sum(worker.groups for worker in now.workers),
            sum(worker.transactions for worker in now.workers),
            now.cpu_seconds,
            None if target is None else _cpu_seconds(target),
            _machine_seconds() if target is not None else 0.0,
        )

    deadline = time.monotonic() + _TIMEOUT_S
    while (now := status()) is None or not any(worker.groups for worker in now.workers):
        if time.monotonic() > deadline:
            raise MeasuringError(
                f"the daemon has applied nothing in {_TIMEOUT_S:.0f} s: measuring needs a backlog;"
                " stop the replica for a while first, or give --points"
            )
        time.sleep(_POLL_S)
    time.sleep(_WARM_UP_S)
    began = last = reading(status() or now)
    while last.at < began.at + seconds:
        time.sleep(_POLL_S)
        now = status()
        if now is None or now.pending_groups == 0:
            break
        last = reading(now)
    groups = last.groups - began.groups
    if not groups or last.at - began.at < seconds / 2:
        raise MeasuringError(
            f"the replica caught up within {last.at - began.at:.1f} s at the point {candidate}:"
            " measuring needs a longer backlog, or a shorter time"
        )
    of_daemon = last.daemon - began.daemon
    of_target = others = None
    if began.target is not None and last.target is not None:
        of_target = last.target - began.target
        left = last.machine - began.machine - of_daemon - of_target
        others = max(0.0, left) / ((last.at - began.at) * (os.cpu_count() or 1))
    return Point(
        candidate,
        groups,
        last.transactions - began.transactions,
        last.at - began.at,
        of_daemon,
        of_target,
        others=others,
    )


def target_process(settings: Settings) -> int | None:
    """Return the process of a target on this machine; None if it is elsewhere, or not to be told.

    The kernel tells who listens on a Unix socket; who listens on a port only root may find out.
    """
    path = settings.target.unix_socket
    if not path or not hasattr(socket, "SO_PEERCRED"):
        return None
    with socket.socket(socket.AF_UNIX) as peer:
        try:
            peer.connect(str(path))
            credentials = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
            process = int(_CREDENTIALS.unpack(credentials)[0])
            _cpu_seconds(process)
        except (OSError, ValueError, IndexError):
            return None
    return process


def _machine_seconds() -> float:
    """Return what all processors have spent, including what went to other machines (proc(5))."""
    with Path("/proc/stat").open() as file:
        user, nice, system, _, _, irq, softirq, stolen = map(int, file.readline().split()[1:9])
    return (user + nice + system + irq + softirq + stolen) / _TICKS


def _cpu_seconds(process: int) -> float:
    """Return what a process has used (proc(5))."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS
