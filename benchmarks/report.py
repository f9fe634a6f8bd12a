"""The figures as tables for a reader, and as JSON."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict

from benchmarks.figures import MEGABYTE, Figure, Range
from benchmarks.parts.cpu import Stages
from benchmarks.parts.lag import Lag
from benchmarks.replicas.machine import DISTURBED, Load
from benchmarks.replicas.runs import Applied, Pair

_LOAD_HEADS = f"{'load':>7}{'others':>8}"


def applied_table(title: str, runs: Mapping[str, Sequence[Applied]]) -> str:
    """Return a table of runs over a backlog, by variant, in the order in which they were made."""
    heads = f"{'trx/s':>8}{'start-up':>10}{'seconds':>9}{'committing':>12}{'target trx':>12}"
    heads += f"{'server CPU':>12}{'mtsd CPU':>10}{'µs/trx':>16}{'mtsd MB':>9}{_LOAD_HEADS}"
    width = _width(runs)
    lines = [f"\n{title}", f"  {'':{width}}{'replica':17}{heads}"]
    for variant, row in runs.items():
        for run in row:
            small = run.source_transactions > 1
            own_cpu = "" if run.own_cpu is None else f"{run.own_cpu:.2f}"
            peak = "" if run.peak_memory is None else f"{run.peak_memory / MEGABYTE:.0f}"
            rate = f"{run.rate:,.0f}" if small else ""
            lines.append(
                f"  {variant:{width}}{run.replica:17}{rate:>8}{run.start_up:>10.2f}"
                f"{run.seconds:>9.2f}{run.seconds_of_commits:>12.2f}{run.target_transactions:>12,}"
                f"{run.server_cpu:>12.2f}{own_cpu:>10}{_cpu_each(run) if small else '':>16}"
                f"{peak:>9}{_load(run.load)}"
            )
    lines.append("  CPU in seconds; µs/trx: the target's + mtsd's, start-up included")
    return "\n".join([*lines, _LEGEND])


_LEGEND = (
    "  load: average over a minute at the end; others: share of the processors that other processes"
    f"\n  and the kernel's threads used; * over {DISTURBED:.0%}, the run was disturbed"
)


def pairs_table(title: str, pairs: Mapping[str, Sequence[Pair]]) -> str:
    """Return a summary of the pairs of each variant: medians, each followed by the range."""
    heads = f"{'times':>20}{'own, µs/trx':>20}{'target + mtsd':>20}{'mtsd':>20}{'disturbed':>12}"
    width = _width(pairs)
    lines = [f"\n{title}: medians (ranges) of pairs", f"  {'':{width}}{heads}"]
    for variant, row in pairs.items():
        mtsd = [pair.mtsd for pair in row]
        lines.append(
            f"  {variant:{width}}{_spread((pair.times for pair in row), 1):>20}"
            f"{_spread((pair.native.cpu_each for pair in row), 0):>20}"
            f"{_spread((run.cpu_each for run in mtsd), 0):>20}"
            f"{_spread((run.own_cpu_each for run in mtsd), 1):>20}"
            f"{sum(pair.disturbed for pair in row):>9} of {len(row)}"
        )
    return "\n".join(lines)


def lag_table(title: str, lags: Sequence[Lag]) -> str:
    """Return a table of lags."""
    heads = f"{'p50 ms':>9}{'p95 ms':>9}{'p99 ms':>9}{'p99.9 ms':>10}{'most ms':>9}"
    heads += f"{'trx':>9}{'target trx':>12}"
    lines = [f"\n{title}", f"  {'replica':17}{heads}{_LOAD_HEADS}"]
    lines += [
        f"  {lag.replica:17}{lag.p50:>9.2f}{lag.p95:>9.2f}{lag.p99:>9.2f}{lag.p999:>10.2f}"
        f"{lag.highest:>9.2f}"
        f"{lag.source_transactions:>9,}{lag.target_transactions:>12,}{_load(lag.load)}"
        for lag in lags
    ]
    return "\n".join([*lines, _LEGEND])


def stages_table(title: str, variants: Sequence[Stages]) -> str:
    """Return a table of what a transaction costs the daemon, by stage and variant."""
    width = max(20, *(len(variant.variant) + 2 for variant in variants))
    lines = [f"\n{title}"]
    for unit, by_stage in (
        ("µs of CPU", [variant.microseconds for variant in variants]),
        ("thousands of instructions", [variant.instructions for variant in variants]),
    ):
        if not by_stage[0]:
            continue
        heads = "".join(f"{variant.variant:>{width}}" for variant in variants)
        lines.append(f"  {unit:27}{heads}")
        for stage in by_stage[0]:
            # Another revision may have other stages.
            found = (one.get(stage) for one in by_stage)
            cells = (f"{'' if one is None else f'{one:.2f}':>{width}}" for one in found)
            lines.append(f"  {stage:27}{''.join(cells)}")
        sums = "".join(f"{sum(one.values()):>{width}.2f}" for one in by_stage)
        lines.append(f"  {'all':27}{sums}")
    return "\n".join(lines)


def markdown(
    about: Mapping[str, object],
    pairs: Mapping[str, Sequence[Pair]],
    large: Sequence[Pair],
    lags: Sequence[tuple[Lag, Lag]],
) -> str:
    """Return the table of the README, for all parts that were run."""
    lines = [
        f"\n{about['processor']}, {about['processors']} processors, Python {about['python']}:\n",
        "| | the server's own replica | mtsd | times | CPU: the server's own | target and mtsd |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {variant} | {_rates([pair.native for pair in row])} |"
        f" {_rates([pair.mtsd for pair in row])} | {_spread((pair.times for pair in row), 1)} |"
        f" {_spread((pair.native.cpu_each for pair in row), 0)} µs |"
        f" {_spread((pair.mtsd.cpu_each for pair in row), 0)} µs |"
        for variant, row in pairs.items()
    ]
    if large:
        lines.append(
            f"| one large transaction, durable | {_spread((p.native.seconds for p in large), 1)} s"
            f" | {_spread((p.mtsd.seconds for p in large), 1)} s"
            f" | {_spread((pair.times for pair in large), 1)} | | |"
        )
    for percentile, label in (("p50", "median"), ("p99", "99th percentile")) if lags else ():
        found = [_spread((getattr(pair[side], percentile) for pair in lags), 2) for side in (0, 1)]
        lines.append(f"| lag, {label} | {found[0]} ms | {found[1]} ms | | | |")
    return "\n".join(lines)


def settings_list(title: str, settings: Mapping[str, object]) -> str:
    """Return settings, one per line."""
    return "\n".join([f"\n{title}", *(f"  {name} = {value}" for name, value in settings.items())])


def figures_list(figures: Sequence[Figure]) -> str:
    """Return a line for each figure that has a limit."""
    lines = ["\nRequired"]
    for figure in figures:
        side = "at most" if figure.at_most else "at least"
        verdict = "met" if figure.met else "MISSED"
        found = f"{_range(figure.found, 2)}{figure.unit}"
        lines.append(f"  {verdict:8}{figure.name}: {found} ({side} {figure.limit:g})")
    return "\n".join(lines)


def as_json(
    about: Mapping[str, object],
    pairs: Mapping[str, Sequence[Pair]],
    lags: Sequence[tuple[Lag, Lag]],
    stages: Sequence[Stages],
    figures: Sequence[Figure],
) -> str:
    """Return all runs, not only those that the figures are based on."""
    document = {
        "about": dict(about),
        "pairs": {
            name: [
                {
                    "times": pair.times,
                    "disturbed": pair.disturbed,
                    "native": _run(pair.native),
                    "mtsd": _run(pair.mtsd),
                }
                for pair in row
            ]
            for name, row in pairs.items()
        },
        "lags": [asdict(lag) for both in lags for lag in both],
        "stages": [asdict(one) for one in stages],
        "required": [{**asdict(figure), "met": figure.met} for figure in figures],
    }
    return json.dumps(document, indent=2) + "\n"


def _run(run: Applied) -> Mapping[str, object]:
    each = {"rate": run.rate, "server_cpu_each": run.server_cpu_each}
    return {**asdict(run), **each, "own_cpu_each": run.own_cpu_each, "cpu_each": run.cpu_each}


def _cpu_each(run: Applied) -> str:
    if run.own_cpu is None:
        return f"{run.cpu_each:.0f}"
    return f"{run.server_cpu_each:.0f} + {run.own_cpu_each:.1f}"


def _load(load: Load) -> str:
    mark = "*" if load.disturbed else " "
    return f"{load.average_after:>7.1f}{load.others:>7.0%}{mark}"


def _width(variants: Iterable[str]) -> int:
    """Return how wide the column of their names is."""
    return max([27, *(len(name) + 2 for name in variants)])


def _rates(runs: Sequence[Applied]) -> str:
    return f"{_spread((run.rate for run in runs), 0)} transactions/s"


def _spread(found: Iterable[float], digits: int) -> str:
    return _range(Range.of(found), digits)


def _range(found: Range, digits: int) -> str:
    middle = f"{found.median:,.{digits}f}"
    if found.lowest == found.highest:
        return middle
    return f"{middle} ({found.lowest:,.{digits}f} to {found.highest:,.{digits}f})"
