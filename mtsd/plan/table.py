"""A plan as lines and tables, for a terminal and for a page."""

from collections.abc import Iterable, Iterator, Sequence

from mtsd.plan.alike import Alike, alike
from mtsd.plan.candidate import Bind
from mtsd.plan.load import Load, Part
from mtsd.plan.plan import FittedPoint, Plan, toml

Rows = tuple[Sequence[str], list[list[str]]]
"""Column headings, and the cells of each row."""


def result_rows(plan: Plan, alike: Sequence[Alike]) -> Rows:
    """Return the simulated configurations and their outcomes, one row for all that are alike."""
    heads = (
        "parallel_type", "workers", "batch_groups", "bind", "trx/s", "times", "in one", "target",
        "daemon", "sync", "waiting",
    )  # fmt: skip
    serial = plan.serial or 1.0
    rows = []
    for one in alike:
        outcome = one.shown.outcome
        rows.append(
            [
                " = ".join(one.policies) if max(one.workers) > 1 else "any",
                ", ".join(map(str, one.workers)),
                str(one.batch),
                " = ".join(map(_bound, one.binds)) if any(one.binds) else "",
                f"{outcome.rate:,.0f}",
                f"{outcome.rate / serial:.1f}",
                f"{outcome.groups / max(1, outcome.transactions):.1f}",
                f"{outcome.target:.2f}",
                f"{outcome.reading + outcome.sending:.2f}",
                f"{outcome.sync:.2f}",
                f"{outcome.waiting:.0%}",
            ]
        )
    return heads, rows


def _bound(bind: Bind) -> str:
    if not bind:
        return "none"
    bound = "+".join("/".join(names) for names in bind)
    return bound if len(bound) <= _LONGEST else f"{len(bind)} sets"


_LONGEST = 30


def part_rows(what: str, parts: Sequence[Part]) -> Rows:
    """Return the largest databases or tables."""
    return (what, "groups", "rows", "share"), [
        [part.name, f"{part.groups:,}", f"{part.rows:,}", f"{part.share:.1%}"] for part in parts
    ]


def calibration_rows(fits: Sequence[FittedPoint]) -> Rows:
    """Return the measured rates next to the simulated ones."""
    return ("workers", "batch_groups", "measured", "simulated", "off"), [
        [
            str(fit.candidate.parallel_workers), str(fit.candidate.batch_groups),
            f"{fit.measured:,.0f}", f"{fit.predicted:,.0f}", f"{fit.off:+.0%}",
        ]
        for fit in fits
    ]  # fmt: skip


def load_lines(load: Load) -> Iterator[str]:
    """Yield a description of a load in words."""
    yield (
        f"{load.groups:,} transactions, {load.rows:,} rows, {load.length / 1e6:,.1f} MB of binlog"
        f" in {load.seconds:,.0f} s: {load.rate:,.0f} a second, at most {load.peak_rate:,}"
    )
    if load.number_of_databases:
        yield f"{load.number_of_databases:,} databases"
    if load.several:
        yield f"{load.several:,} transactions ({load.several / load.groups:.1%}) update several"
    for pair in load.together[:_MAX_PAIRS]:
        yield f"{pair.first} and {pair.second} are updated together by {pair.groups:,}"
    others = {kind: count for kind, count in load.kinds.items() if kind not in {"rows", "empty"}}
    if others:
        counted = ", ".join(f"{count:,} {kind}" for kind, count in others.items())
        yield f"cannot share a commit: {counted}"
    if load.alone:
        counted = ", ".join(f"{count:,} {kind}" for kind, count in load.alone.items())
        yield f"run while nothing else does: {counted}"


_MAX_PAIRS = 5


def lines(plan: Plan) -> Iterator[str]:
    """Yield a plan as a terminal shows it."""
    yield from load_lines(plan.load)
    yield ""
    yield from _aligned(part_rows("database", plan.load.databases[:_MAX_PARTS]))
    yield ""
    yield from _aligned(part_rows("table", plan.load.tables[:_MAX_PARTS]))
    yield ""
    yield from _aligned(result_rows(plan, alike(plan.results)))
    if plan.fits:
        yield ""
        yield from _aligned(calibration_rows(plan.fits))
    yield ""
    best = plan.best
    speed_up = best.outcome.rate / (plan.serial or 1.0)
    yield (
        f"recommended: {best.outcome.rate:,.0f} transactions a second,"
        f" {speed_up:.1f} times one worker with nothing combined"
    )
    peak = plan.load.peak_rate
    if peak:
        times = best.outcome.rate / peak
        yield f"{times:.1f} times the busiest second of the load, which had {peak:,}"
    yield from toml(best.candidate).splitlines()
    reasons = plan.reasons()
    if reasons:
        yield ""
        yield "held back by"
        yield from (f"  {reason}" for reason in reasons)
    for why in plan.missing:
        yield f"not simulated: {why}"
    warnings = plan.warnings()
    if warnings:
        yield ""
        yield from warnings


_MAX_PARTS = 8


def _aligned(rows: Rows) -> Iterator[str]:
    heads, cells = rows
    if not cells:
        return
    widths = [max(map(len, column)) for column in zip(heads, *cells, strict=True)]
    for row in (heads, *cells):
        yield _line(row, widths)


def _line(row: Iterable[str], widths: Sequence[int]) -> str:
    padded = (
        cell.ljust(width) if number == 0 else cell.rjust(width)
        for number, (cell, width) in enumerate(zip(row, widths, strict=True))
    )
    return "  ".join(padded).rstrip()
