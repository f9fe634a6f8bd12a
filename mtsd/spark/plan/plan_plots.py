"""The plots of a plan as PNG images."""

from collections.abc import Mapping
from io import BytesIO
from typing import Final

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from mtsd.plan.alike import Curve, curves
from mtsd.plan.plan import Plan

_SIZE: Final = (7.2, 4.2)
_DPI: Final = 120
_MAX_BARS: Final = 12
_BAR: Final = 0.28
_BARS_FRAME: Final = 0.7
_LEGEND_LINE: Final = 0.17
"""Heights in inches."""
_DASHES: Final = ("-", "--", ":", "-.")
_MARKERS: Final = ("o", "s", "^", "D", "v")
_LABEL: Final = 120
"""Characters of a legend that fit into the width."""


def plots(plan: Plan) -> Mapping[str, bytes]:
    """Return PNG images by name: throughput, speed_up, load, and calibration if there is one."""
    found = {"throughput": _curves(plan, 1.0, "transactions of the source a second")}
    found["speed_up"] = _curves(plan, plan.serial or 1.0, "times one worker with nothing combined")
    found["load"] = _load(plan)
    if plan.fits:
        found["calibration"] = _calibration(plan)
    return found


def _curves(plan: Plan, unit: float, label: str) -> bytes:
    drawn = curves(plan.results)
    figure, axes = _figure()
    policies = list(dict.fromkeys(policy for curve in drawn for policy, _ in curve.names))
    batches = sorted({curve.batch for curve in drawn})
    for curve in drawn:
        policy, bound = curve.names[0]
        style = batches.index(curve.batch)
        axes.plot(
            [result.candidate.parallel_workers for result in curve.results],
            [result.outcome.rate / unit for result in curve.results],
            color=f"C{policies.index(policy) % 10}",
            linestyle=_DASHES[style % len(_DASHES)],
            marker=_MARKERS[style % len(_MARKERS)],
            markerfacecolor="white" if bound else None,
            label=_label(curve),
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
    # Below the axes, where it covers no curve.
    lines = sum(1 + len(_label(curve)) // _LABEL for curve in drawn) + 1
    figure.set_size_inches(_SIZE[0], _SIZE[1] + _LEGEND_LINE * lines)
    figure.legend(loc="outside lower left", fontsize=8)
    return _png(figure)


def _label(curve: Curve) -> str:
    names = " = ".join(f"{policy}{' with bind' if bound else ''}" for policy, bound in curve.names)
    return f"batch_groups = {curve.batch}: {names}"


def _load(plan: Plan) -> bytes:
    figure, axes = _figure()
    parts = plan.load.databases[:_MAX_BARS]
    figure.set_size_inches(_SIZE[0], _BARS_FRAME + _BAR * len(parts))
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
