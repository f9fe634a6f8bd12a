"""The figures as a table for a reader, and as JSON."""

import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.backlog import Applied
from benchmarks.lag import Lag

MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True)
class Required:
    """A figure that has to be reached. `at_most` says on which side of `limit` it has to lie."""

    name: str
    found: float
    limit: float
    at_most: bool
    unit: str = ""

    @property
    def met(self) -> bool:
        """Whether it is reached."""
        return self.found <= self.limit if self.at_most else self.found >= self.limit

    def __str__(self) -> str:
        side = "at most" if self.at_most else "at least"
        verdict = "met" if self.met else "MISSED"
        return f"{verdict:6}  {self.name}: {self.found:.2f}{self.unit}, {side} {self.limit:g}"


def applied_table(title: str, rows: Sequence[tuple[str, Applied]]) -> str:
    """Return a table of runs over a backlog."""
    lines = [
        title,
        f"  {'':18}{'replica':16}{'trx/s':>9}{'s':>9}{'s of commits':>14}{'target trx':>12}"
        f"{'server CPU s':>14}{'mtsd CPU s':>12}{'mtsd MB':>9}",
    ]
    for variant, run in rows:
        own_cpu = "" if run.own_cpu is None else f"{run.own_cpu:.2f}"
        memory = "" if run.peak_memory is None else f"{run.peak_memory / MEGABYTE:.0f}"
        lines.append(
            f"  {variant:18}{run.replica:16}{run.rate:>9,.0f}{run.seconds:>9.2f}"
            f"{run.seconds_of_commits:>14.2f}{run.target_transactions:>12,}"
            f"{run.server_cpu:>14.2f}{own_cpu:>12}{memory:>9}"
        )
    return "\n".join(lines)


def lag_table(title: str, rows: Sequence[Lag]) -> str:
    """Return a table of lags."""
    lines = [
        title,
        f"  {'replica':16}{'p50 ms':>9}{'p95 ms':>9}{'p99 ms':>9}{'most ms':>9}{'trx':>9}"
        f"{'target trx':>12}",
    ]
    lines += [
        f"  {lag.replica:16}{lag.p50:>9.2f}{lag.p95:>9.2f}{lag.p99:>9.2f}{lag.highest:>9.2f}"
        f"{lag.source_transactions:>9,}{lag.target_transactions:>12,}"
        for lag in rows
    ]
    return "\n".join(lines)


def settings_list(title: str, settings: Mapping[str, object]) -> str:
    """Return settings, a line each."""
    return "\n".join([title, *(f"  {name} = {value}" for name, value in settings.items())])


def machine() -> dict[str, str]:
    """Return what the figures were made on."""
    load = Path("/proc/loadavg").read_text().split()
    return {
        "processors": str(os.cpu_count()),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "load_average_before": load[0],
    }


def write_json(
    path: Path,
    about: Mapping[str, object],
    applied: Mapping[str, Sequence[Applied]],
    lags: Sequence[Sequence[Lag]],
    required: Sequence[Required],
) -> None:
    """Write every run, not only the medians."""
    document = {
        "about": dict(about),
        "applied": {
            name: [{**asdict(run), "rate": run.rate} for run in runs]
            for name, runs in applied.items()
        },
        "lag": [[asdict(lag) for lag in pair] for pair in lags],
        "required": [{**asdict(figure), "met": figure.met} for figure in required],
    }
    path.write_text(json.dumps(document, indent=2) + "\n", "utf-8")
