"""`mtsd status`: what a running daemon reports, or what the target holds if none is running."""

import argparse
import asyncio
from collections.abc import Iterator, Sequence

from mtsd.cli.arguments import Subparsers, add_configuration, load_configuration
from mtsd.cli.complaint import complain
from mtsd.cli.distribution_lines import described
from mtsd.cli.output import print_json, print_line, printable, report
from mtsd.cli.status_words import (
    groups_in_words,
    lag_in_words,
    size_in_words,
    source_in_words,
    target_in_words,
    worker_in_words,
)
from mtsd.config import Settings
from mtsd.control.client import DaemonRefusedError, DaemonUnavailableError, fetch_status
from mtsd.control.place import Place
from mtsd.control.status import Status
from mtsd.control.stop_status import NONE_YET, NOT_BEGUN
from mtsd.model.errors import MtsdError
from mtsd.model.outcome.exit_status import ExitStatus
from mtsd.schedule.wait_cause import OF_READING

_MAX_PARTITIONS = 20
_MAX_SKIPPED = 5
_LONG_WAIT_S = 1.0
_EXAMPLE = """\
example:
  mtsd status --config /etc/mtsd/config.toml
  mtsd status --config config.toml --json | jq .lag_seconds

exit status: 0 a daemon is running, with both servers; 5 one is running, and not connected to the
source or the target; 4 none is running: the last one was stopped gracefully, or there was none yet;
3 an error has stopped the last one, or the one that runs and stays; 1 that cannot be told: it does
not answer, the last one did not say why it ended, or the target cannot be asked; 2 bad usage or
configuration
"""


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "status",
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
        if status.channel != (asked := settings.replica.channel):
            report(f"the daemon on {socket} has channel {status.channel!r}, and not {asked!r}")
        _show(status, as_json=args.json)
        return exit_status(status)
    why = f"none answers on {socket}" if socket else "status.socket is empty, so none can be asked"
    return _show_stored(settings, f"no daemon: {why}", as_json=args.json)


def exit_status(status: Status, *, stored: bool = False) -> ExitStatus:
    """Decide what a status means to a script; `stored`: no daemon has answered."""
    if status.state == "failed":
        return ExitStatus.NEEDS_PERSON
    if stored:
        known = status.doing in {"", NONE_YET, NOT_BEGUN}
        return ExitStatus.NOT_RUNNING if known else ExitStatus.FAILED
    connections = status.connections
    if status.state == "standby":
        return ExitStatus.DONE
    if connections.source.connected and connections.target.connected:
        return ExitStatus.DONE
    return ExitStatus.NOT_CONNECTED


def _show_stored(settings: Settings, why: str, *, as_json: bool) -> int:
    # Most of what this command would import, and not needed where a daemon answers.
    from mtsd.operations.stored_status import read_stored, status_of_note  # noqa: PLC0415

    try:
        status = asyncio.run(read_stored(settings))
    except MtsdError as error:
        report(why)
        complain(error, ExitStatus.FAILED)
        note = status_of_note(settings)
        if note is None:
            return ExitStatus.FAILED
        report("this is what the last daemon has left beside its socket")
        _show(note, as_json=as_json, whole=False)
        return exit_status(note, stored=True)
    report(f"{why}; this is what the target holds")
    _show(status, as_json=as_json)
    return exit_status(status, stored=True)


def _show(status: Status, *, as_json: bool, whole: bool = True) -> None:
    if as_json:
        print_json(status.to_json(indent=2))
        return
    for line in lines(status, whole=whole):
        print_line(line)


def lines(status: Status, *, whole: bool = True) -> Iterator[str]:
    """Yield the human-readable lines of a status; not `whole`: the target was not asked."""
    # One that stands by has not looked at its position yet.
    stands_by = status.state == "standby"
    running = status.state not in {"stopped", "failed", "standby"}
    state = f"{status.state}: {status.doing}" if status.doing else str(status.state)
    if status.state == "waiting":
        state += "; once that is over, it goes on"
    facts = [
        ("state", state),
        ("source", status.source + source_in_words(status)),
        ("target", status.target + target_in_words(status)),
    ]
    if status.channel:
        facts.append(("channel", status.channel))
    if status.filter:
        facts.append(("filter", status.filter))
    if status.parallel_type_because:
        facts.append(("policy", f"{status.parallel_type}, as {status.parallel_type_because}"))
    if running:
        facts += _place("received", status.received)
    if whole and not stands_by:
        facts += _place("executed", status.executed)
    if running:
        facts.append(("lag", lag_in_words(status)))
        if status.workers:
            groups, size = groups_in_words(status.pending_groups), status.pending_bytes
            facts.append(("pending", f"{groups}, {size_in_words(size)}"))
        if status.reading_waits_for:
            facts.append(("reading", f"waiting: {status.reading_waits_for}"))
    if status.prepared_transactions:
        facts.append(("prepared", f"{status.prepared_transactions} XA transactions"))
    facts += described(status.distribution)
    facts += [("warning", warning) for warning in status.warnings]
    facts += _last_stop(status)
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


def _last_stop(status: Status) -> Iterator[tuple[str, str]]:
    """Tell how the last daemon has ended, or what is wrong with the one that runs.

    What is wrong with a server stands beside its address.
    """
    stop = status.last_stop
    if stop is None:
        of_servers = (status.connections.source.last_error, status.connections.target.last_error)
        if status.last_error and status.last_error not in {
            each.text for each in of_servers if each is not None
        }:
            yield "last error", " ".join(status.last_error.split())
    elif stop.graceful:
        yield "last stop", f"{stop.time}, gracefully"
    else:
        group = f" at group {stop.group}" if stop.group else ""
        number = f" {stop.number}" if stop.number else ""
        # The group is shown with the same message.
        repeated = status.stopped_at is not None and status.stopped_at.number == stop.group
        text = "see below" if repeated else " ".join(stop.text.split())
        yield "last stop", f"{stop.time}, by error{number}{group}: {text}"


def _place(name: str, place: Place) -> Iterator[tuple[str, str]]:
    if str(place) or not place.gtid:
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
        yield " ".join(group.error.split())


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
                    group.who,
                    group.why,
                )
                for group in status.skipped[-_MAX_SKIPPED:]
            ],
            ">",
        )
        if len(status.skipped) > _MAX_SKIPPED:
            yield f"and {len(status.skipped) - _MAX_SKIPPED} earlier ones: --json shows all"


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
                size_in_words(worker.queue_bytes),
                str(worker.groups),
                str(worker.transactions),
                f"{worker.retries}, {worker.gave_way} gave way"
                if worker.gave_way
                else str(worker.retries),
                f"{worker.busy_ratio:.0%}",
                worker_in_words(worker),
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
                    wait.databases,
                )
                for worker, wait in waiting
            ],
            ">><>>",
        )
        # A lock on rows, on a table's definition or on the server: only the target knows.
        yield "what for: SHOW FULL PROCESSLIST there, by the number of the connection"


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
            for part in most[:_MAX_PARTITIONS]
        ],
        "<>>>>",
    )
    if len(most) > _MAX_PARTITIONS:
        yield f"and {len(most) - _MAX_PARTITIONS} more: --json shows all"


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
    # As wide as they are printed.
    shown = [head, *([printable(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    sides = aligned.ljust(len(head), "<")
    for row in shown:
        cells = (
            f"{cell:{side}{width}}" for cell, side, width in zip(row, sides, widths, strict=True)
        )
        yield "  ".join(cells).rstrip()
