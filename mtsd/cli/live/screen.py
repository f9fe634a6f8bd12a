"""Draws what `mtsd top` shows. Texts of servers are shown as they are, never as markup."""

from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from mtsd.cli.live.view import Rates, View, busiest, worker_of
from mtsd.cli.output import printable
from mtsd.cli.status_words import (
    groups_in_words,
    lag_in_words,
    size_in_words,
    source_in_words,
    target_in_words,
    worker_in_words,
)
from mtsd.control.status import Status, WorkerStatus
from mtsd.control.stop_status import LastStopStatus

_KEYS: Final = "q quit   j/k choose a worker   enter look into it   f freeze it, or let it go on"
_COLORS: Final = {
    "running": "green", "delayed": "green", "failed": "bold red", "waiting": "red",
    "connecting": "red", "applying": "green", "frozen": "yellow",
}  # fmt: skip
_FEWEST_ROWS: Final = 3
_CUT: Final = frozenset({"last", "database"})
"""Columns of text that may be long."""
_LONGEST_LINE: Final = 100
_MOST_LINES: Final = 6
"""Of why it has stopped."""


def screen(status: Status, found: Rates, view: View, height: int) -> RenderableType:
    """Return the whole screen of so many lines."""
    head = [*_head(status, found)]
    waits = _waits(found)
    worker = worker_of(status, view.selected) if view.inside else None
    detail = [] if worker is None else [Text(), *_inside(worker)]
    # Two for each table's head and the line before it, one for the keys.
    left = height - len(head) - len(waits) - len(detail) - 6
    workers = max(_FEWEST_ROWS, min(len(status.workers), left // 2))
    databases = max(_FEWEST_ROWS, left - workers)
    return Group(
        *head,
        *detail,
        Text(),
        _workers(status, found, view, workers),
        Text(),
        _databases(status, found, databases),
        *waits,
        Text(printable(view.message) if view.message else _KEYS, style="dim", no_wrap=True),
    )


def _line(name: str, value: str, style: str = "") -> Text:
    return Text.assemble(
        (f"{name:<10}", "bold"), (printable(value), style), no_wrap=True, overflow="ellipsis"
    )


def _head(status: Status, found: Rates) -> Iterator[Text]:
    channel = f", channel {status.channel}" if status.channel else ""
    doing = f": {status.doing}" if status.doing else ""
    yield _line("state", f"{status.state}{doing}{channel}", _COLORS.get(status.state, ""))
    yield _line("source", status.source + source_in_words(status))
    yield _line("target", status.target + target_in_words(status))
    if status.last_stop is not None:
        yield from _stopped(status.last_stop)
    behind = status.source_log.bytes_behind
    behind_in_words = "" if behind is None else f", {size_in_words(behind)} behind the source's end"
    yield _line("lag", lag_in_words(status) + behind_in_words)
    yield _line(
        "applies",
        f"{found.groups:,.0f}/s in {found.transactions:,.0f} transactions of the target/s",
    )
    reading = f", reading waits: {status.reading_waits_for}" if status.reading_waits_for else ""
    if status.workers:
        groups, size = groups_in_words(status.pending_groups), status.pending_bytes
        yield _line("pending", f"{groups}, {size_in_words(size)}{reading}")
    yield _line("executed", str(status.executed) or status.executed.gtid or "nothing yet")
    for warning in status.warnings:
        yield _line("warning", warning, "yellow")


def _stopped(stop: LastStopStatus) -> Iterator[Text]:
    """Yield why it has stopped: at most some lines, `mtsd status` has all of it."""
    lines = wrap(f"{stop.time}: {' '.join(stop.text.split())}", _LONGEST_LINE)
    for number, line in enumerate(lines[:_MOST_LINES]):
        yield _line("" if number else "stopped", line)
    if len(lines) > _MOST_LINES:
        yield _line("", "mtsd status says all of it", "dim")


def _table(names: Sequence[str], left: Sequence[str]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 1, 0, 0))
    for name in names:
        # In a narrow terminal this one is cut, before any number is.
        is_cut = name in _CUT
        table.add_column(name, justify="left" if name in left else "right", no_wrap=not is_cut)
    return table


def _cell(text: str, style: str = "") -> Text:
    return Text(printable(text), style, no_wrap=True, overflow="ellipsis")


def _workers(status: Status, found: Rates, view: View, most: int) -> RenderableType:
    if not status.workers:
        return Text("no worker runs", "dim")
    table = _table(
        ("worker", "state", "queued", "bytes", "groups/s", "commits", "retries", "busy", "last"),
        ("state", "last"),
    )
    shown = _around(status.workers, view.selected, most)
    for worker in shown:
        state = worker_in_words(worker)
        table.add_row(
            str(worker.id),
            _cell(state, _COLORS.get(worker.state, "")),
            f"{worker.queue_groups:,}",
            size_in_words(worker.queue_bytes),
            f"{found.workers.get(worker.id, 0.0):,.0f}",
            f"{worker.transactions:,}",
            f"{worker.retries:,}",
            f"{worker.busy_ratio:.0%}",
            _cell(str(worker.last) or worker.last.gtid),
            style="reverse" if worker.id == view.selected else "",
        )
    if hidden := len(status.workers) - len(shown):
        table.add_row("", _cell(f"and {hidden} more", "dim"))
    return table


def _around(workers: Sequence[WorkerStatus], selected: int, most: int) -> Sequence[WorkerStatus]:
    """Return at most so many, the selected one among them."""
    at = next((index for index, each in enumerate(workers) if each.id == selected), 0)
    first = max(0, min(at - most // 2, len(workers) - most))
    return workers[first : first + most]


def _databases(status: Status, found: Rates, most: int) -> Table:
    table = _table(("database", "lag", "pending", "groups/s", "groups"), ("database",))
    shown = busiest(status, found, most)
    for each in shown:
        table.add_row(
            _cell(each.name),
            f"{each.lag_seconds:.1f} s" if each.pending_groups else "",
            f"{each.pending_groups:,}",
            f"{found.databases.get(each.name, 0.0):,.0f}",
            f"{each.groups:,}",
        )
    if hidden := len(status.databases) - len(shown):
        table.add_row(_cell(f"and {hidden} more", "dim"))
    return table


def _inside(worker: WorkerStatus) -> Iterator[Text]:
    yield _line(f"worker {worker.id}", "")
    wait = worker.target_wait
    if wait is not None:
        group = f"group {wait.group}" if wait.group else "a group that is applied while it is read"
        what = f", {wait.kind} of {wait.databases}" if wait.kind else ""
        yield _line(
            "awaits",
            f"the target since {wait.seconds:.1f} s, at {wait.statement}, connection"
            f" {wait.connection} there: {group}{what}",
        )
    else:
        yield _line("awaits", worker.waits_for or "nothing")
    yield _line("last", " ".join(filter(None, (str(worker.last), worker.last.gtid))) or "nothing")
    yield _line(
        "done",
        f"{worker.groups:,} groups in {worker.transactions:,} transactions, {worker.retries:,}"
        f" retries, {worker.gave_way:,} gave way",
    )


def _waits(found: Rates) -> Sequence[Text]:
    most = sorted(
        ((rate, cause) for cause, rate in found.waits.items() if rate >= 0.01), reverse=True
    )
    if not most:
        return ()
    shares = ", ".join(f"{cause} {rate:.0%}" for rate, cause in most)
    return Text(), _line("waits", f"{shares} (of a second in each second, all workers together)")
