"""`mtsd status`: what a running daemon reports, or what the target holds if none is running."""

import argparse
import asyncio
import sys
from collections.abc import Iterator, Sequence

from mtsd.cli.arguments import Subparsers, add_configuration, load_configuration
from mtsd.cli.complaint import complain
from mtsd.cli.distribution_lines import described
from mtsd.cli.printable import printable
from mtsd.config import Settings
from mtsd.control.client import DaemonRefusedError, DaemonUnavailableError, fetch_status
from mtsd.control.status import Place, Status
from mtsd.model.errors import MtsdError
from mtsd.model.exit_status import ExitStatus
from mtsd.schedule.wait_cause import OF_READING

_MOST_PARTITIONS = 20
_MOST_SKIPPED = 5
_LONG_WAIT_S = 1.0
_EXAMPLE = """\
example:
  mtsd status --config /etc/mtsd/config.toml
  mtsd status --config config.toml --json | jq .lag_seconds

exit status: 0 a daemon is running; 1 it does not answer; 4 none is running: what is shown comes
from the position tables on the target
"""


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "status",
        help="show the state of the replica",
        description="Show the state of the replica: ask the running daemon, else read the target.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_configuration(parser)
    parser.add_argument("--json", action="store_true", help="print a JSON object")
    parser.set_defaults(run=_status)


def _status(args: argparse.Namespace) -> int:
    settings = load_configuration(args).settings
    socket = settings.status.socket
    try:
        status = fetch_status(socket) if socket is not None else None
    except (DaemonRefusedError, DaemonUnavailableError) as error:
        return complain(error, ExitStatus.FAILED)
    if status is not None:
        _show(status, as_json=args.json)
        return ExitStatus.DONE
    why = f"none answers on {socket}" if socket else "status.socket is empty, so none can be asked"
    print(f"mtsd: no daemon: {why}; this is what the target holds", file=sys.stderr)
    return _show_stored(settings, as_json=args.json)


def _show_stored(settings: Settings, *, as_json: bool) -> int:
    # Most of what this command would import, and not needed where a daemon answers.
    from mtsd.operations.stored_status import read_stored  # noqa: PLC0415

    try:
        status = asyncio.run(read_stored(settings))
    except MtsdError as error:
        return complain(error, ExitStatus.NOT_RUNNING)
    _show(status, as_json=as_json)
    return ExitStatus.NOT_RUNNING


def _show(status: Status, *, as_json: bool) -> None:
    if as_json:
        print(status.to_json(indent=2))
        return
    for line in lines(status):
        print(line)


def lines(status: Status) -> Iterator[str]:
    """Yield the human-readable lines of a status."""
    running = status.state != "stopped"
    state = f"{status.state}: {printable(status.doing)}" if status.doing else str(status.state)
    facts = [("state", state), ("source", status.source), ("target", status.target)]
    if status.channel:
        facts.append(("channel", status.channel))
    if status.filter:
        facts.append(("filter", printable(status.filter)))
    if running:
        facts += _place("received", status.received)
    facts += _place("executed", status.executed)
    if running:
        lag = status.lag_seconds
        delayed = status.remaining_delay
        held = f", on purpose: the next group is due in {delayed:.0f} s" if delayed else ""
        facts += [
            (
                "lag",
                "unknown: not connected to the source" if lag is None else f"{lag:.3f} s{held}",
            ),
            ("pending", f"{status.pending_groups} groups, {_size(status.pending_bytes)}"),
        ]
        if status.reading_waits_for:
            facts.append(("reading", f"waiting: {status.reading_waits_for}"))
    if status.prepared_transactions:
        facts.append(("prepared", f"{status.prepared_transactions} XA transactions"))
    facts += described(status.distribution)
    facts += [("warning", printable(warning)) for warning in status.warnings]
    if status.last_error:
        facts.append(("last error", status.last_error))
    width = max(len(name) for name, _ in facts)
    for name, value in facts:
        yield f"{name:<{width}}  {value}"
    yield from _stopped_at(status)
    yield from _in_doubt(status)
    yield from _skipped(status)
    yield from _workers(status, running=running)
    yield from _target_waits(status)
    yield from _partitions(status)
    yield from _waits(status)


def _place(name: str, place: Place) -> Iterator[tuple[str, str]]:
    yield name, str(place) or "nothing yet"
    for index, part in enumerate(place.gtid.split(",") if place.gtid else ()):
        yield "" if index else f"{name} GTIDs", part


def _stopped_at(status: Status) -> Iterator[str]:
    group = status.stopped_at
    if group is not None:
        later = "later groups applied" if group.later_applied else "no later group applied"
        yield ""
        yield from _table(
            ("stopped at: group", "kind", "databases", "end", "gtid", "when", "after it"),
            [
                (
                    str(group.number),
                    group.kind,
                    group.databases,
                    str(group.end),
                    group.end.gtid,
                    group.time,
                    later,
                )
            ],
            ">",
        )
        yield printable(" ".join(group.error.split()))


def _skipped(status: Status) -> Iterator[str]:
    if status.skipped:
        yield ""
        yield from _table(
            ("skipped: group", "databases", "end", "gtid", "when", "who", "why"),
            [
                (
                    str(group.number),
                    group.databases,
                    str(group.end),
                    group.end.gtid,
                    group.time,
                    printable(group.who),
                    printable(group.why),
                )
                for group in status.skipped[-_MOST_SKIPPED:]
            ],
            ">",
        )
        if len(status.skipped) > _MOST_SKIPPED:
            yield f"and {len(status.skipped) - _MOST_SKIPPED} earlier ones: --json shows all"


def _in_doubt(status: Status) -> Iterator[str]:
    if status.in_doubt:
        yield ""
        yield from _table(
            ("in doubt: group", "kind", "databases", "end", "gtid"),
            [
                (str(group.number), group.kind, group.databases, str(group.end), group.end.gtid)
                for group in status.in_doubt
            ],
            ">",
        )


def _workers(status: Status, *, running: bool) -> Iterator[str]:
    if not status.workers:
        return
    yield ""
    if not running:
        yield from _table(
            ("worker", "groups past executed", "last"),
            [(str(worker.id), str(worker.groups), str(worker.last)) for worker in status.workers],
            ">>",
        )
        return
    yield from _table(
        ("worker", "queued", "bytes", "groups", "commits", "retries", "busy", "state", "last"),
        [
            (
                str(worker.id),
                str(worker.queue_groups),
                _size(worker.queue_bytes),
                str(worker.groups),
                str(worker.transactions),
                f"{worker.retries}, {worker.gave_way} gave way"
                if worker.gave_way
                else str(worker.retries),
                f"{worker.busy_ratio:.0%}",
                f"{worker.state}: {worker.waits_for}" if worker.waits_for else worker.state,
                str(worker.last),
            )
            for worker in status.workers
        ],
        ">>>>>>>",
    )


def _target_waits(status: Status) -> Iterator[str]:
    """Tell which workers the target keeps waiting, for more than a moment."""
    waiting = [
        (worker.id, worker.target_wait)
        for worker in status.workers
        if worker.target_wait is not None and worker.target_wait.seconds >= _LONG_WAIT_S
    ]
    if waiting:
        yield ""
        yield from _table(
            (
                "target awaited by worker",
                "for",
                "at",
                "connection",
                "group",
                "kind",
                "databases",
            ),
            [
                (
                    str(worker),
                    f"{wait.seconds:.1f} s",
                    wait.statement,
                    str(wait.connection),
                    str(wait.group or "streamed"),
                    wait.kind,
                    printable(wait.databases),
                )
                for worker, wait in waiting
            ],
            ">><>>",
        )


def _partitions(status: Status) -> Iterator[str]:
    if not status.partitions:
        return
    most = sorted(status.partitions, key=lambda part: (-part.pending_groups, part.name))
    yield ""
    yield from _table(
        ("partition", "worker", "pending", "lag", "groups"),
        [
            (
                part.name,
                "-" if part.worker is None else str(part.worker),
                str(part.pending_groups),
                f"{part.lag_seconds:.3f} s",
                str(part.groups),
            )
            for part in most[:_MOST_PARTITIONS]
        ],
        "<>>>>",
    )
    if len(most) > _MOST_PARTITIONS:
        yield f"and {len(most) - _MOST_PARTITIONS} more: --json shows all"


def _waits(status: Status) -> Iterator[str]:
    most = sorted(
        [(time, cause) for cause, time in status.waits.items() if round(time, 1)], reverse=True
    )
    if most:
        yield ""
        yield from _table(
            ("waited for", "time", "share"),
            [(cause, f"{time:.1f} s", _share(status, cause, time)) for time, cause in most],
            "<><",
        )


def _share(status: Status, cause: str, waited: float) -> str:
    """Return the share of the time that could have been waited, in words."""
    reading = cause in OF_READING
    whole = status.run_seconds * (1 if reading else len(status.workers))
    if not whole:
        return ""
    return f"{waited / whole:.0%} of the time" + ("" if reading else " of all workers")


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], aligned: str) -> Iterator[str]:
    """Arrange cells in columns; `aligned` has < or > for each, < if it is too short."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    sides = aligned.ljust(len(head), "<")
    for row in (head, *rows):
        cells = (
            f"{cell:{side}{width}}" for cell, side, width in zip(row, sides, widths, strict=True)
        )
        yield "  ".join(cells).rstrip()


def _size(size: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"
