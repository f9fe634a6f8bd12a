"""The table of throughput as plots: a panel for each number of databases, a line a policy."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Final

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from benchmarks.scaling.cells import ANY_POLICY, Measured, counted

_PANEL: Final = (4.0, 3.6)
_DPI: Final = 100


def plots(found: Sequence[Measured]) -> Mapping[str, bytes]:
    """Return PNG images by name, one for each engine, format and number of processors."""
    parts: dict[tuple[str, str, int], list[Measured]] = defaultdict(list)
    for one in found:
        backlog = one.cell.backlog
        parts[backlog.engine, backlog.format, one.cell.cores].append(one)
    return {
        f"{engine.lower()}-{format_.lower()}-{cores}.png": _plot(part)
        for (engine, format_, cores), part in sorted(parts.items())
    }


def _plot(found: Sequence[Measured]) -> bytes:
    databases = sorted({one.cell.backlog.databases for one in found})
    workers = sorted({one.cell.workers for one in found})
    figure = Figure((_PANEL[0] * len(databases), _PANEL[1]), dpi=_DPI, layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, len(databases), sharey=True, squeeze=False)[0]
    for panel, number in zip(panels, databases, strict=True):
        lines: dict[str, dict[int, float]] = defaultdict(dict)
        for one in found:
            if one.cell.backlog.databases == number:
                lines[one.cell.policy][one.cell.workers] = one.rate
        for policy, rates in sorted(lines.items()):
            # Evenly spaced: the numbers of workers double.
            places = [workers.index(each) for each in sorted(rates)]
            label = "no workers" if policy == ANY_POLICY else policy
            panel.plot(places, [rates[each] for each in sorted(rates)], marker="o", label=label)
        panel.set_title(counted(number, "database"))
        panel.set_xticks(range(len(workers)), [str(each) for each in workers])
        panel.set_xlabel("workers")
        panel.grid(visible=True, alpha=0.3)
    # Once all lines are there: it fixes the upper end, which the panels share.
    panels[0].set_ylim(bottom=0)
    panels[0].set_ylabel("transactions of the source a second")
    panels[-1].legend(fontsize="small")
    written = BytesIO()
    figure.savefig(written, format="png")
    return written.getvalue()
