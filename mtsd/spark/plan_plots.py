"""The plots of a plan as PNG images."""

from collections import defaultdict
from collections.abc import Mapping
from io import BytesIO
from typing import Final

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from mtsd.plan.advice import Result
from mtsd.plan.plan import Plan

_SIZE: Final = (7.2, 4.2)
_DPI: Final = 120
_MOST_BARS: Final = 12


def plots(plan: Plan) -> Mapping[str, bytes]:
    """Return PNG images by name: throughput, speed_up, load, and calibration if there is one."""
    found = {"throughput": _curves(plan, 1.0, "transactions of the source a second")}
    found["speed_up"] = _curves(plan, plan.serial or 1.0, "times one worker with nothing combined")
    found["load"] = _load(plan)
    if plan.fits:
        found["calibration"] = _calibration(plan)
    return found


def _curves(plan: Plan, unit: float, label: str) -> bytes:
    figure, axes = _figure()
    single: dict[int, Result] = {}
    lines: dict[tuple[str, int, int], list[Result]] = defaultdict(list)
    for result in plan.results:
        one = result.candidate
        if one.parallel_workers <= 1:
            single[one.batch_groups] = result
        else:
            lines[one.parallel_type, one.batch_groups, len(one.bind)].append(result)
    for (policy, batch, bound), found in lines.items():
        # A single worker behaves the same under every policy.
        row = [single[batch], *found] if batch in single else found
        row.sort(key=lambda result: result.candidate.parallel_workers)
        axes.plot(
            [result.candidate.parallel_workers for result in row],
            [result.outcome.rate / unit for result in row],
            marker="o",
            linestyle="--" if bound else "-",
            label=f"{policy}, batch_groups = {batch}{', bind' if bound else ''}",
        )
    if not lines:
        for batch, result in single.items():
            axes.plot(
                [1], [result.outcome.rate / unit], marker="o", label=f"batch_groups = {batch}"
            )
    best = plan.best
    axes.plot(
        [best.candidate.parallel_workers], [best.outcome.rate / unit],
        marker="*", markersize=16, color="black", linestyle="none", label="recommended",
    )  # fmt: skip
    workers = sorted({result.candidate.parallel_workers for result in plan.results})
    if len(workers) > 1:
        axes.set_xscale("log", base=2)
    axes.set_xticks(workers, [str(count) for count in workers])
    axes.minorticks_off()
    axes.set_ylim(bottom=0)
    axes.set_xlabel("parallel_workers")
    axes.set_ylabel(label)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    return _png(figure)


def _load(plan: Plan) -> bytes:
    figure, axes = _figure()
    parts = plan.load.databases[:_MOST_BARS]
    names = [f"{part.name}" for part in parts]
    axes.barh(names[::-1], [part.share * 100 for part in parts][::-1])
    axes.set_xlabel("% of the rows, by database")
    axes.grid(axis="x", alpha=0.3)
    return _png(figure)


def _calibration(plan: Plan) -> bytes:
    figure, axes = _figure()
    places = range(len(plan.fits))
    axes.bar(
        [at - 0.2 for at in places], [fit.measured for fit in plan.fits], 0.4, label="measured"
    )
    axes.bar(
        [at + 0.2 for at in places], [fit.predicted for fit in plan.fits], 0.4, label="simulated"
    )
    names = [
        f"{fit.candidate.parallel_workers} workers,\nbatches of {fit.candidate.batch_groups}"
        for fit in plan.fits
    ]
    axes.set_xticks(list(places), names, fontsize=8)
    axes.set_ylabel("transactions of the source a second")
    axes.legend()
    return _png(figure)


def _figure() -> tuple[Figure, Axes]:
    # Avoids pyplot, which looks for a display.
    figure = Figure(figsize=_SIZE, layout="constrained")
    return figure, figure.add_subplot()


def _png(figure: Figure) -> bytes:
    image = BytesIO()
    figure.set_dpi(_DPI)
    FigureCanvasAgg(figure)
    figure.savefig(image, format="png")
    return image.getvalue()
