"""What the figures are measured on, and what else ran there (proc(5): cpuinfo, stat)."""

import os
import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from benchmarks.replicas.process import cpu_seconds

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_BUSY: Final = (0, 1, 2, 5, 6, 7)
"""Of the columns of /proc/stat: user, nice, system, irq, softirq, steal; not idle, iowait."""
_STEAL: Final = 7
_COUNTED: Final = 8
DISTURBED: Final = 0.10
"""Share of the processors that others may use. They include the kernel's own threads, which write
what a run wants written and take a few per cent."""


@dataclass(frozen=True, slots=True)
class Load:
    """The machine during a run. Shares are of all its processors together.

    `others` is what processes that take no part in the run have used, including the kernel's;
    `stolen` is what the hypervisor has given to other machines, and is included in `others`.
    """

    average_before: float
    average_after: float
    busy: float
    others: float
    stolen: float

    @property
    def disturbed(self) -> bool:
        """Whether others have used so much that the run's figures are unreliable."""
        return self.others > DISTURBED


class Process(Protocol):
    """A server, or what else has a process id."""

    @property
    def pid(self) -> int:
        """Its process id."""
        ...


class Daemon(Protocol):
    """A daemon, which may not have been started yet."""

    @property
    def cpu_seconds(self) -> float:
        """CPU seconds that it has used."""
        ...


class LoadWatch:
    """Begins when created. `used` returns the CPU seconds of everything that takes part in the run.

    That sum must only grow: a process that ends has to remain in it.
    """

    def __init__(self, used: Callable[[], float]) -> None:
        self._used = used
        self._average = os.getloadavg()[0]
        self._began = time.monotonic()
        self._before = (_processors(), used())

    def ended(self) -> Load:
        """Return the load from the beginning to now."""
        (before, used_before), (after, used_after) = self._before, (_processors(), self._used())
        spent = [new - old for old, new in zip(before, after, strict=True)]
        available = (time.monotonic() - self._began) * (os.cpu_count() or 1)
        busy = sum(spent[column] for column in _BUSY)
        return Load(
            average_before=self._average,
            average_after=os.getloadavg()[0],
            busy=busy / available,
            others=max(0.0, busy - (used_after - used_before)) / available,
            stolen=spent[_STEAL] / available,
        )


def watched(*servers: Process, daemon: Daemon | None = None) -> LoadWatch:
    """Watch a run that these servers, the daemon and this process take part in."""

    def used() -> float:
        theirs = sum(cpu_seconds(server.pid) for server in servers)
        return own_cpu_seconds() + theirs + (0.0 if daemon is None else daemon.cpu_seconds)

    return LoadWatch(used)


def own_cpu_seconds() -> float:
    """Return the CPU seconds of this process, and of its children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def processor() -> str:
    """Return the processor's name, with its clock if the name does not include it."""
    told: dict[str, str] = {}
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        name, _, value = line.partition(":")
        told.setdefault(name.strip(), value.strip())
    name = told.get("model name") or platform.processor() or platform.machine()
    clock = told.get("cpu MHz")
    if clock is None or "GHz" in name:
        return name
    return f"{name}, {float(clock) / 1000:.1f} GHz"


def about() -> Mapping[str, object]:
    """Return what a reader needs to know about the machine to judge its figures."""
    return {
        "processor": processor(),
        "processors": os.cpu_count(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "load_average": os.getloadavg()[0],
    }


def _processors() -> list[float]:
    """Return what all processors have spent since the machine's start, in seconds by column."""
    first = Path("/proc/stat").read_text().splitlines()[0]
    return [int(ticks) / _TICKS for ticks in first.split()[1 : 1 + _COUNTED]]
