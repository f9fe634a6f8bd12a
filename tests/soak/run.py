"""Runs a replica under a mixed load, and samples what must not grow."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mtsd.model.gtid import GtidSet
from tests.load.compare import differences
from tests.load.mixed import MixedLoad
from tests.replica.daemon_process import DaemonProcess
from tests.servers.mysqld import GTIDS
from tests.servers.pair import Pair
from tests.soak.growth import Allowed, Growth, growth

ALLOWED: Final[Mapping[str, Allowed]] = {
    "memory": Allowed(0.05, 4_000_000),
    "descriptors": Allowed(0, 3),
    "tasks": Allowed(0, 3),
    "threads": Allowed(0, 3),
    "gtid_intervals": Allowed(0, 20),
}
"""By what a sample has, how much it may grow from the second third of the time to the last one."""
KEEPS_UP_S: Final = 10.0
"""A replica further behind than that holds what it has not applied yet: that is not a leak."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What the daemon takes, at a moment: `memory` in bytes; `lag` in seconds, None: not known."""

    seconds: float
    memory: int
    descriptors: int
    tasks: int
    threads: int
    gtid_intervals: int
    groups: int
    lag: float | None

    @property
    def keeps_up(self) -> bool:
        """Whether the replica is as good as up to date, so that what it takes can be judged."""
        return self.lag is not None and self.lag <= KEEPS_UP_S


def growths(samples: Sequence[Sample]) -> dict[str, Growth]:
    """Return how much of each has grown, while the replica kept up.

    Raises ValueError if there are too few samples of that.
    """
    judged = [sample for sample in samples if sample.keeps_up]
    return {
        name: growth([float(getattr(sample, name)) for sample in judged], allowed)
        for name, allowed in ALLOWED.items()
    }


def sampled(daemon: DaemonProcess, began: float) -> Sample:
    """Return a sample of a running daemon."""
    status = daemon.status()
    assert status is not None
    process = Path(f"/proc/{daemon.pid}")
    fields = dict(
        line.split(":", 1) for line in (process / "status").read_text().splitlines() if ":" in line
    )
    return Sample(
        seconds=round(time.monotonic() - began, 1),
        memory=int(fields["VmRSS"].split()[0]) * 1024,
        descriptors=len(list((process / "fd").iterdir())),
        tasks=status.daemon.tasks,
        threads=int(fields["Threads"]),
        gtid_intervals=len(list(GtidSet.parse(status.executed.gtid).intervals())),
        groups=status.totals.groups,
        lag=status.lag_seconds,
    )


def soak(folder: Path, seconds: float, every: float, rate: float | None) -> Iterator[Sample]:
    """Yield a sample `every` so many seconds; at the end both servers must be equal.

    `rate` is in transactions a second, None for as many as there can be.
    """
    with Pair(GTIDS, GTIDS) as pair:
        load = MixedLoad(pair.source, seed=int(seconds), databases=8)
        load.prepare()
        # A Python of its own: what the tests have loaded is not what is measured.
        with DaemonProcess(pair.source, pair.target, folder, forked=False) as daemon:
            daemon.wait_until_caught_up()
            began = time.monotonic()
            with load.running(rate=rate):
                while time.monotonic() - began < seconds:
                    time.sleep(every)
                    yield sampled(daemon, began)
            daemon.wait_until_caught_up()
            assert daemon.stop() == 0
        assert differences(pair.source, pair.target) == []
