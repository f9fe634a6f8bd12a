"""What mtsd applies of a long backlog in a while, and the processors that this takes.

Only a stretch in the middle counts: the daemon has been applying for some time when it begins, and
has more to apply when it ends.
"""

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from benchmarks.parts.backlog import prepare
from benchmarks.replicas import servers
from benchmarks.replicas.external import External
from benchmarks.replicas.machine import Load, LoadWatch, own_cpu_seconds
from benchmarks.replicas.process import cpu_seconds
from mtsd.control.status import Status
from tests.replica.daemon_process import DaemonError, Value
from tests.servers.mysqld import Server

_WARM_UP_S: Final = 2.0
_TIMEOUT_S: Final = 120.0


@dataclass(frozen=True, slots=True)
class Throughput:
    """`groups` of the source applied in `seconds`, in `transactions` of the target.

    CPU is in seconds. `has_ended`: there was no more to apply before the time was over.
    """

    groups: int
    transactions: int
    seconds: float
    daemon_cpu: float
    target_cpu: float
    source_cpu: float
    has_ended: bool
    load: Load

    @property
    def rate(self) -> float:
        """Groups a second."""
        return self.groups / self.seconds


@dataclass(frozen=True, slots=True)
class _Reading:
    at: float
    groups: int
    transactions: int
    daemon_cpu: float
    target_cpu: float
    source_cpu: float


def throughput(
    source: Server,
    databases: int,
    seconds: float,
    *,
    durable: bool,
    settings: Mapping[str, Value],
    engine: str = "InnoDB",
    warm_up: float = _WARM_UP_S,
) -> Throughput:
    """Let mtsd apply the source's backlog to a fresh target for a while.

    The target's tables are of `engine`. What is applied in the first `warm_up` seconds does not
    count.
    """
    options = {"default_storage_engine": engine}
    with servers.target(durable=durable, workers=1, options=options) as target:
        prepare(target, databases)
        daemon = External(source, target, settings)

        def read() -> _Reading:
            status = daemon.status()
            workers = status.workers if status is not None else ()
            return _Reading(
                time.monotonic(),
                sum(worker.groups for worker in workers),
                sum(worker.transactions for worker in workers),
                daemon.cpu_seconds,
                cpu_seconds(target.pid),
                cpu_seconds(source.pid),
            )

        with daemon:
            _wait_until_applying(daemon)
            time.sleep(warm_up)
            watch = LoadWatch(
                lambda: (
                    own_cpu_seconds()
                    + cpu_seconds(source.pid)
                    + cpu_seconds(target.pid)
                    + daemon.cpu_seconds
                )
            )
            began = latest = read()
            has_ended = False
            while latest.at < began.at + seconds and not has_ended:
                time.sleep(min(1.0, max(0.0, began.at + seconds - latest.at)))
                now = read()
                status = daemon.status()
                has_ended = status is None or (status.pending_groups == 0 and now.groups > 0)
                if not has_ended:
                    latest = now
            load = watch.ended()
            daemon.stop()
        return Throughput(
            latest.groups - began.groups,
            latest.transactions - began.transactions,
            latest.at - began.at,
            latest.daemon_cpu - began.daemon_cpu,
            latest.target_cpu - began.target_cpu,
            latest.source_cpu - began.source_cpu,
            has_ended,
            load,
        )


def _wait_until_applying(daemon: External) -> Status:
    deadline = time.monotonic() + _TIMEOUT_S
    while time.monotonic() < deadline:
        status = daemon.status()
        if status is not None and any(worker.groups for worker in status.workers):
            return status
        time.sleep(0.05)
    raise DaemonError("it applies nothing")


def processors() -> int:
    """Return how many processors source, target and daemon share."""
    return os.cpu_count() or 1
