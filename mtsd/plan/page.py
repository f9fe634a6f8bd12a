"""A plan as a self-contained HTML page that embeds its plots."""

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from mtsd.plan.alike import alike
from mtsd.plan.plan import Plan, toml
from mtsd.plan.table import calibration_rows, load_lines, part_rows, result_rows

_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
div.wide { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .45rem; border-bottom: 1px solid #8884; text-align: right; }
th:first-child, td:first-child { text-align: left; }
p.warning { background: #e904; padding: .5rem 1rem; border-radius: .4rem; }
tr.best { font-weight: bold; background: #4a84; }
pre { background: #8882; padding: 1rem; border-radius: .4rem; overflow-x: auto; }
img { max-width: 100%; background: white; border-radius: .4rem; }
"""


def page(plan: Plan, plots: Mapping[str, bytes]) -> str:
    """Return the page; `plots` are PNG images by name."""
    best = plan.best
    rows = alike(plan.results)
    speed_up = best.outcome.rate / (plan.serial or 1.0)
    predicted = (
        f"<b>{best.outcome.rate:,.0f}</b> transactions of the source a second, {speed_up:.1f} times"
        " one worker with nothing combined"
    )
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8"><title>mtsd plan</title>',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<style>{_STYLE}</style></head><body>",
        "<h1>Which configuration serves this load</h1>",
        f"<p>Predicted: {predicted}.</p>",
        f"<pre>{_text(toml(best.candidate))}</pre>",
        *(f'<p class="warning">{_text(warning)}</p>' for warning in plan.warnings()),
        "<h2>What holds it back</h2>",
        _list(plan.reasons() or ["nothing that was simulated"]),
        "<h2>Predictions</h2>",
        _image(plots, "throughput"),
        _image(plots, "speed_up"),
        _table(
            *result_rows(plan, rows),
            best=next(number for number, one in enumerate(rows) if best in one.results),
        ),
        "<h2>The load</h2>",
        _list(load_lines(plan.load)),
        _image(plots, "load"),
        _table(*part_rows("database", plan.load.databases)),
        _table(*part_rows("table", plan.load.tables)),
    ]
    if plan.fits:
        parts += [
            "<h2>Calibration</h2>",
            _image(plots, "calibration"),
            _table(*calibration_rows(plan.fits)),
        ]
    if plan.missing:
        parts += ["<h2>Not simulated</h2>", _list(plan.missing)]
    return "\n".join([*(part for part in parts if part), "</body></html>", ""])


def _text(text: str) -> str:
    # A name that is not UTF-8 contains surrogates, which cannot be encoded in a page.
    return escape(text.encode("utf-8", "backslashreplace").decode())


def _list(lines: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{_text(line)}</li>' for line in lines)}</ul>"


def _image(plots: Mapping[str, bytes], name: str) -> str:
    if name not in plots:
        return ""
    data = b64encode(plots[name]).decode()
    return f'<p><img alt="{name.replace("_", "-")}" src="data:image/png;base64,{data}"></p>'


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], best: int = -1) -> str:
    if not rows:
        return ""
    lines = ["".join(f"<th>{_text(head)}</th>" for head in heads)]
    lines += ["".join(f"<td>{_text(cell)}</td>" for cell in row) for row in rows]
    marked = (
        f'<tr class="best">{line}</tr>' if number == best + 1 and best >= 0 else f"<tr>{line}</tr>"
        for number, line in enumerate(lines)
    )
    return f'<div class="wide"><table>{"".join(marked)}</table></div>'
