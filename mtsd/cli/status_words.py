"""Parts of a status in words, for people."""

from typing import Final

from mtsd.control.server_status import ConnectionStatus, ErrorStatus
from mtsd.control.status import Status, WorkerStatus

_STOPPED: Final = "an error has stopped the replica"


def source_in_words(status: Status) -> str:
    """Return what to say after the source's address."""
    source, target = status.connections.source, status.connections.target
    if status.state == "standby":
        # It is meant to be connected to nothing.
        return ""
    if status.state == "failed":
        return _after_an_error(source)
    words = _connection_in_words(source)
    tried = source.attempts or source.last_error is not None
    if source.since and not (source.connected or tried or target.connected):
        return f"{words}: not tried while the target is away"
    return words


def target_in_words(status: Status) -> str:
    """Return what to say after the target's address; an error that `doing` has is not repeated."""
    target = status.connections.target
    if status.state == "standby":
        return ""
    if status.state == "failed":
        return _after_an_error(target)
    return _connection_in_words(target, status.doing)


def _after_an_error(connection: ConnectionStatus) -> str:
    words = _connection_in_words(connection)
    if not words or connection.connected or connection.last_error is not None:
        return words
    return f"{words}: {_STOPPED}"


def _connection_in_words(connection: ConnectionStatus, doing: str = "") -> str:
    if not connection.since:
        return ""
    if connection.connected:
        found = f", connected since {connection.since}"
        error = connection.last_error
        # A server that accepts connections and ends them again has not come back yet.
        if error is None or error.text in doing:
            return found
        return f"{found}, before that: {_error(error)}"
    tried: list[str] = []
    if connection.attempts:
        tried.append(f"{connection.attempts} attempt{'s' if connection.attempts > 1 else ''}")
    if connection.next_in is not None:
        tried.append(f"next in {connection.next_in:.1f} s")
    words = f", not connected since {connection.since}"
    if tried:
        # Not after the error, which ends with what a person has to do.
        words += f" ({', '.join(tried)})"
    return words if connection.last_error is None else f"{words}: {_error(connection.last_error)}"


def _error(error: ErrorStatus) -> str:
    return " ".join(error.text.split())


def lag_in_words(status: Status) -> str:
    """Return how far a running replica is behind."""
    lag = status.lag_seconds
    if status.state == "failed":
        return f"unknown: {_STOPPED}"
    if status.state == "standby":
        return "unknown: it stands by"
    if lag is None:
        target = status.connections.target
        away = "target" if target.since and not target.connected else "source"
        return f"unknown: not connected to the {away}"
    if not status.remaining_delay:
        return f"{lag:.3f} s"
    return (
        f"{lag:.3f} s, {status.lag_beyond_delay or 0.0:.3f} s of it beyond the delay: the next"
        f" group is due in {status.remaining_delay:.0f} s"
    )


def worker_in_words(worker: WorkerStatus) -> str:
    """Return what a worker does, and what it waits for; a frozen one is both."""
    waits_for = worker.waits_for
    return worker.state if waits_for in {"", worker.state} else f"{worker.state}: {waits_for}"


def groups_in_words(groups: int) -> str:
    """Return a number of groups."""
    return f"{groups:,} group{'' if groups == 1 else 's'}"


def size_in_words(size: float) -> str:
    """Return a size in bytes with its unit."""
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"
