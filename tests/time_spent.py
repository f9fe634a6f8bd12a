"""How long the tests of each folder take: processor time, with that of their servers, and elapsed.

What a file takes is looked at when its last test ends, so it costs the suite next to nothing. With
xdist each worker counts its own, and the first process adds them up: elapsed seconds are then those
of all workers together.
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Any, Final

import pytest

_NAME: Final = "time_spent"
_PROC: Final = Path("/proc")


class TimeSpent:
    """A plugin of pytest that ends its output with a line for all folders."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._spent: dict[str, list[float]] = {}
        self._before = (0.0, 0.0)

    def pytest_collection_finish(self) -> None:
        """Begin to count."""
        self._before = _now()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Generator[None, object, object]:
        """Count a file when its last test in this process has ended."""
        result = yield
        if nextitem is None or nextitem.path != item.path:
            now = _now()
            folder = "/".join(item.path.relative_to(self._config.rootpath).parts[:2])
            self._add([(folder, now[0] - self._before[0], now[1] - self._before[1])])
            self._before = now
        return result

    def pytest_sessionfinish(self) -> None:
        """Hand the times to the process that has started this one, if it is a worker."""
        if (output := getattr(self._config, "workeroutput", None)) is not None:
            output[_NAME] = [(folder, *spent) for folder, spent in self._spent.items()]

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:  # noqa: ANN401  # xdist is not typed
        """Take over a worker's times; one that has crashed has none."""
        self._add(getattr(node, "workeroutput", {}).get(_NAME, ()))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say it, the longest first."""
        if len(self._spent) < 2:
            return
        longest = sorted(self._spent.items(), key=lambda each: -each[1][0])
        terminalreporter.write_line(
            "processor time (elapsed): "
            + ", ".join(f"{folder} {cpu:.0f} s ({wall:.0f})" for folder, (cpu, wall) in longest)
        )

    def _add(self, spent: Iterable[tuple[str, float, float]]) -> None:
        for folder, cpu, wall in spent:
            sums = self._spent.setdefault(folder, [0.0, 0.0])
            sums[0] += cpu
            sums[1] += wall


def _now() -> tuple[float, float]:
    """Return the processor time of this process and all below it, and the clock."""
    spent: dict[int, int] = {}
    children: dict[int, list[int]] = {}
    for place in _PROC.glob("[0-9]*/stat"):
        try:
            words = place.read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            # It has ended meanwhile.
            continue
        pid = int(place.parent.name)
        # Its own user and system time, and those of the children it has waited for.
        spent[pid] = sum(map(int, words[11:15]))
        children.setdefault(int(words[1]), []).append(pid)
    found, todo = 0, [os.getpid()]
    while todo:
        pid = todo.pop()
        found += spent.get(pid, 0)
        todo += children.get(pid, ())
    return found / os.sysconf("SC_CLK_TCK"), time.monotonic()
