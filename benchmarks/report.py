"""The figures as tables for a reader, and as JSON."""

import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from benchmarks.backlog import Applied
from benchmarks.figures import MEGABYTE, Figure
from benchmarks.lag import Lag


def applied_table(title: str, runs: Mapping[str, Sequence[Applied]]) -> str:
    """Return a table of runs over a backlog, by variant."""
    heads = f"{'trx/s':>8}{'start-up':>10}{'seconds':>9}{'committing':>12}{'target trx':>12}"
    heads += f"{'server CPU':>12}{'mtsd CPU':>10}{'mtsd MB':>9}"
    lines = [f"\n{title}", f"  {'':27}{'replica':17}{heads}"]
    for variant, row in runs.items():
        for run in row:
            own_cpu = "" if run.own_cpu is None else f"{run.own_cpu:.2f}"
            peak = "" if run.peak_memory is None else f"{run.peak_memory / MEGABYTE:.0f}"
            rate = f"{run.rate:,.0f}" if run.source_transactions > 1 else ""
            lines.append(
                f"  {variant:27}{run.replica:17}{rate:>8}{run.start_up:>10.2f}{run.seconds:>9.2f}"
                f"{run.seconds_of_commits:>12.2f}{run.target_transactions:>12,}"
                f"{run.server_cpu:>12.2f}{own_cpu:>10}{peak:>9}"
            )
    return "\n".join(lines)


def lag_table(title: str, lags: Sequence[Lag]) -> str:
    """Return a table of lags."""
    heads = f"{'p50 ms':>9}{'p95 ms':>9}{'p99 ms':>9}{'most ms':>9}{'trx':>9}{'target trx':>12}"
    lines = [f"\n{title}", f"  {'replica':17}{heads}"]
    lines += [
        f"  {lag.replica:17}{lag.p50:>9.2f}{lag.p95:>9.2f}{lag.p99:>9.2f}{lag.highest:>9.2f}"
        f"{lag.source_transactions:>9,}{lag.target_transactions:>12,}"
        for lag in lags
    ]
    return "\n".join(lines)


def settings_list(title: str, settings: Mapping[str, object]) -> str:
    """Return settings, a line each."""
    return "\n".join([f"\n{title}", *(f"  {name} = {value}" for name, value in settings.items())])


def figures_list(figures: Sequence[Figure]) -> str:
    """Return a line for each figure that has to be reached."""
    lines = ["\nRequired"]
    for figure in figures:
        side = "at most" if figure.at_most else "at least"
        verdict = "met" if figure.met else "MISSED"
        found = f"{figure.found:.2f}{figure.unit}"
        lines.append(f"  {verdict:8}{figure.name}: {found} ({side} {figure.limit:g})")
    return "\n".join(lines)


def machine() -> dict[str, object]:
    """Return what the figures are made on."""
    return {
        "processors": os.cpu_count(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "load_average": os.getloadavg()[0],
    }


def as_json(
    about: Mapping[str, object],
    applied: Mapping[str, Sequence[Applied]],
    lags: Sequence[Lag],
    figures: Sequence[Figure],
) -> str:
    """Return all runs, not only those that the figures are made of."""
    document = {
        "about": dict(about),
        "applied": {
            name: [{**asdict(run), "rate": run.rate} for run in runs]
            for name, runs in applied.items()
        },
        "lags": [asdict(lag) for lag in lags],
        "required": [{**asdict(figure), "met": figure.met} for figure in figures],
    }
    return json.dumps(document, indent=2) + "\n"
