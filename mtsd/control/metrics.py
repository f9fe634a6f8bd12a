"""The one list of what `/metrics` tells; the page of the docs, the alerts and the dashboard use it.

A metric is a function of a status: `mtsd status`, `mtsd top` and `/metrics` cannot disagree. Names
have their units, counters only go up while the daemon lives, and no label holds an address, an
error's text or anything else that a row may contain: whoever can connect may read all of it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, get_args

from mtsd.control.status import AgesStatus, DatabaseStatus, State, Status

MAX_DATABASES: Final = 10
"""Databases with a series of their own: the most delayed ones. A source may have thousands."""
OTHERS: Final = "other"

Labels = tuple[str, ...]
Samples = Iterable[tuple[Labels, float]]
"""Each has the values of the metric's labels, and its own value."""
Kind = Literal["gauge", "counter", "histogram"]


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric; `labels` are those that it has beside `channel`.

    A value that is not known has no sample. `ages` are a histogram's.
    """

    name: str
    kind: Kind
    help: str
    samples: Callable[[Status], Samples] = lambda _: ()
    labels: Labels = ()
    ages: Callable[[Status], AgesStatus] = lambda _: AgesStatus()


def _value(value: float | None) -> Samples:
    return [] if value is None else [((), float(value))]


def _time(text: str) -> Samples:
    return _value(datetime.fromisoformat(text).timestamp() if text else None)


def _states(status: Status) -> Samples:
    return [((state,), float(state == status.state)) for state in get_args(State)]


def _by_server(source: float | None, target: float | None) -> Samples:
    both = (("source", source), ("target", target))
    return [((server,), value) for server, value in both if value is not None]


def _error_numbers(status: Status) -> Samples:
    source, target = status.connections.source.last_error, status.connections.target.last_error
    return _by_server(source.number if source else 0, target.number if target else 0)


def _by_cause(waits: Mapping[str, float]) -> Samples:
    return [((cause,), seconds) for cause, seconds in waits.items()]


def most_delayed(databases: Sequence[DatabaseStatus]) -> Sequence[DatabaseStatus]:
    """Return those with something pending that are shown by name, and one for the others."""
    pending = [each for each in databases if each.pending_groups]
    pending.sort(key=lambda each: (-each.lag_seconds, -each.pending_groups, each.name))
    # A database of that name would be the same series a second time, and nothing would be scraped.
    shown = [each for each in pending if each.name != OTHERS][:MAX_DATABASES]
    others = [each for each in pending if each not in shown]
    if others:
        lag = max(each.lag_seconds for each in others)
        shown.append(DatabaseStatus(OTHERS, sum(each.pending_groups for each in others), lag))
    return shown


def _lag_by_database(status: Status) -> Samples:
    return [((each.name,), each.lag_seconds) for each in most_delayed(status.databases)]


def _pending_by_database(status: Status) -> Samples:
    return [((each.name,), each.pending_groups) for each in most_delayed(status.databases)]


def _target_wait(status: Status) -> Samples:
    waits = (worker.target_wait for worker in status.workers)
    return _value(max((wait.seconds for wait in waits if wait is not None), default=0.0))


def _pending(status: Status, value: int) -> Samples:
    # While nothing is read, nothing is pending, and that says nothing.
    return _value(value if status.workers else None)


def _workers(status: Status) -> Samples:
    counts: dict[str, int] = dict.fromkeys(("idle", "waiting", "applying", "frozen"), 0)
    for worker in status.workers:
        counts[worker.state] = counts.get(worker.state, 0) + 1
    return [((state,), count) for state, count in counts.items()]


BUILD: Final = Metric(
    "mtsd_build_info", "gauge",
    "The version that runs, and whether it is the compiled one; always 1.",
    lambda s: [((s.daemon.version, str(s.daemon.compiled).lower()), 1.0)], ("version", "compiled"),
)  # fmt: skip
START: Final = Metric(
    "mtsd_start_time_seconds", "gauge", "When the daemon began, in seconds since 1970.",
    lambda s: _time(s.daemon.started),
)  # fmt: skip
TASKS: Final = Metric(
    "mtsd_tasks", "gauge", "Coroutines of the daemon that run or wait; it does not grow.",
    lambda s: _value(s.daemon.tasks),
)  # fmt: skip
STATE: Final = Metric(
    "mtsd_state", "gauge", "1 for the state that the replica is in, 0 for the others.",
    _states, ("state",),
)  # fmt: skip
SOURCE_CONNECTED: Final = Metric(
    "mtsd_source_connected", "gauge", "Whether the source is connected: 1 or 0.",
    lambda s: _value(s.connections.source.connected),
)  # fmt: skip
TARGET_CONNECTED: Final = Metric(
    "mtsd_target_connected", "gauge", "Whether the target is connected: 1 or 0.",
    lambda s: _value(s.connections.target.connected),
)  # fmt: skip
ATTEMPTS: Final = Metric(
    "mtsd_connection_failed_attempts", "gauge",
    "Attempts to connect that have failed since the server was last connected and of use.",
    lambda s: _by_server(s.connections.source.attempts, s.connections.target.attempts),
    ("server",),
)  # fmt: skip
ERROR: Final = Metric(
    "mtsd_connection_error_number", "gauge",
    "The server's error number of what is wrong now with a connection; 0: nothing, or no number.",
    _error_numbers, ("server",),
)  # fmt: skip
HEARD: Final = Metric(
    "mtsd_last_source_event_timestamp_seconds", "gauge",
    "When the source has last sent something, heartbeats included, in seconds since 1970. It stands"
    " still while mtsd reads nothing because its queues are full.",
    lambda s: _time(s.source_log.heard),
)  # fmt: skip
LAG: Final = Metric(
    "mtsd_lag_seconds", "gauge",
    "Age of the oldest transaction that is not applied yet; 0: there is none. Without a sample"
    " while the source is not connected: then nobody knows.",
    lambda s: _value(s.lag_seconds),
)  # fmt: skip
LAG_BEYOND: Final = Metric(
    "mtsd_lag_beyond_delay_seconds", "gauge",
    "What of the lag is more than the delay that is configured.",
    lambda s: _value(s.lag_beyond_delay),
)  # fmt: skip
DELAY: Final = Metric(
    "mtsd_delay_seconds", "gauge", "The delay that is configured ([replica] delay).",
    lambda s: _value(s.delay),
)  # fmt: skip
DATABASE_LAG: Final = Metric(
    "mtsd_database_lag_seconds", "gauge",
    f"Age of a database's oldest queued transaction: of the {MAX_DATABASES} most delayed"
    f' databases, and of all others together as "{OTHERS}". A database with none has no sample.',
    _lag_by_database, ("database",),
)  # fmt: skip
DATABASE_PENDING: Final = Metric(
    "mtsd_database_pending_groups", "gauge",
    "Queued transactions that update a database; which ones are shown as for the lag.",
    _pending_by_database, ("database",),
)  # fmt: skip
BYTES_BEHIND: Final = Metric(
    "mtsd_source_bytes_behind", "gauge",
    "Bytes of the source's binary log from the executed position to its end, asked every half"
    " minute. Without a sample where the source does not list its files, and while it is not"
    " connected.",
    lambda s: _value(s.source_log.bytes_behind),
)  # fmt: skip
RETENTION: Final = Metric(
    "mtsd_retention_left_seconds", "gauge",
    "For how long the source keeps, for certain, what is not applied yet: its"
    " binlog_expire_logs_seconds less the age of that. Without a sample where it keeps its logs for"
    " ever, or has not been asked.",
    lambda s: _value(s.source_log.retention_left_seconds),
)  # fmt: skip
PENDING: Final = Metric(
    "mtsd_pending_groups", "gauge",
    "Transactions that have been read and are not applied yet. Without a sample while the target is"
    " not connected.",
    lambda s: _pending(s, s.pending_groups),
)  # fmt: skip
PENDING_BYTES: Final = Metric(
    "mtsd_pending_bytes", "gauge", "Bytes of the transactions that are not applied yet.",
    lambda s: _pending(s, s.pending_bytes),
)  # fmt: skip
PREPARED: Final = Metric(
    "mtsd_prepared_transactions", "gauge",
    "XA transactions that are prepared and that the source has not completed yet.",
    lambda s: _value(s.prepared_transactions),
)  # fmt: skip
GROUPS: Final = Metric(
    "mtsd_applied_groups_total", "counter", "Transactions of the source that were applied.",
    lambda s: _value(s.totals.groups),
)  # fmt: skip
COMMITS: Final = Metric(
    "mtsd_target_transactions_total", "counter",
    "Transactions of the target that they were applied in: several share one.",
    lambda s: _value(s.totals.transactions),
)  # fmt: skip
AGES: Final = Metric(
    "mtsd_commit_to_apply_seconds", "histogram",
    "Time from a transaction's commit on the source to its commit on the target.",
    ages=lambda s: s.ages,
)  # fmt: skip
SEMI_SYNC: Final = Metric(
    "mtsd_semi_sync_acknowledging", "gauge",
    "1 while the source may wait for this replica ([source] semi_sync).",
    lambda s: _value(s.semi_sync.state == "acknowledging") if s.semi_sync.state != "off" else [],
)  # fmt: skip
WITHDRAWALS: Final = Metric(
    "mtsd_semi_sync_withdrawals_total", "counter",
    "How often the source had waited for longer than semi_sync_limit, and waits no more.",
    lambda s: _value(s.semi_sync.withdrawals) if s.semi_sync.state != "off" else [],
)  # fmt: skip
ACKNOWLEDGED: Final = Metric(
    "mtsd_semi_sync_acknowledgement_seconds", "histogram",
    "Time from the arrival of a transaction that the source waits for to its acknowledgement.",
    ages=lambda s: s.semi_sync.latencies,
)  # fmt: skip
RETRIES: Final = Metric(
    "mtsd_retries_total", "counter",
    "Attempts to apply something that were repeated: after a deadlock, a lock wait, a full disk.",
    lambda s: _value(s.totals.retries),
)  # fmt: skip
GAVE_WAY: Final = Metric(
    "mtsd_gave_way_total", "counter",
    "Target transactions rolled back and repeated because an earlier one needed a lock of theirs"
    ' (consistency = "any_time", and large ones side by side).',
    lambda s: _value(s.totals.gave_way),
)  # fmt: skip
SKIPPED: Final = Metric(
    "mtsd_skipped_groups_total", "counter",
    "Transactions that people have skipped on this channel, ever (mtsd skip).",
    lambda s: _value(s.totals.skipped_by_hand),
)  # fmt: skip
SKIPPED_BY_ERROR: Final = Metric(
    "mtsd_skipped_by_error_groups_total", "counter",
    "Transactions skipped because of their error ([replica] skip_errors).",
    lambda s: _value(s.totals.skipped),
)  # fmt: skip
IN_DOUBT: Final = Metric(
    "mtsd_in_doubt_groups", "gauge",
    "Transactions that are in doubt on the target: definitions while they run, and what mtsd"
    " resolve is for.",
    lambda s: _value(s.in_doubt_groups),
)  # fmt: skip
WAITS: Final = Metric(
    "mtsd_wait_seconds_total", "counter",
    "Time waited, by cause: by the reader, or by all workers together (docs/policies.md).",
    lambda s: _by_cause(s.totals.waits), ("cause",),
)  # fmt: skip
TARGET_WAIT: Final = Metric(
    "mtsd_target_wait_seconds", "gauge",
    "For how long the worker that waits longest has waited for the target's answer.",
    _target_wait,
)  # fmt: skip
WORKERS: Final = Metric(
    "mtsd_workers", "gauge", "Workers by what they are doing.", _workers, ("state",)
)
BUSY: Final = Metric(
    "mtsd_worker_busy_seconds_total", "counter", "Time that workers had work, all together.",
    lambda s: _value(s.totals.busy_seconds),
)  # fmt: skip
WARNINGS: Final = Metric(
    "mtsd_warnings", "gauge",
    "What may damage data later on and does not yet, as mtsd status tells: the target's own"
    " replica, a circle of servers.",
    lambda s: _value(len(s.warnings)),
)  # fmt: skip
RELOAD: Final = Metric(
    "mtsd_config_reload_success", "gauge",
    "0 if the last reload was refused: the file says something else than what is in force.",
    lambda s: _value(not s.daemon.reload_refused),
)  # fmt: skip
STOPPED_AT: Final = Metric(
    "mtsd_stop_timestamp_seconds", "gauge",
    'When an error has stopped the replica (on_error = "stay"), in seconds since 1970.',
    lambda s: _time(s.last_stop.time) if s.last_stop is not None else [],
)  # fmt: skip
STOP_ERROR: Final = Metric(
    "mtsd_stop_error_number", "gauge",
    "The server's number of the error that has stopped the replica; 0: mtsd refuses to go on.",
    lambda s: _value(s.last_stop.number) if s.last_stop is not None else [],
)  # fmt: skip
STOP_GROUP: Final = Metric(
    "mtsd_stop_group", "gauge", "The number of the transaction that it has stopped at; 0: none.",
    lambda s: _value(s.last_stop.group) if s.last_stop is not None else [],
)  # fmt: skip

METRICS: Final[tuple[Metric, ...]] = (
    BUILD, START, TASKS, STATE, SOURCE_CONNECTED, TARGET_CONNECTED, ATTEMPTS, ERROR, HEARD, LAG,
    LAG_BEYOND, DELAY, DATABASE_LAG, DATABASE_PENDING, BYTES_BEHIND, RETENTION, PENDING,
    PENDING_BYTES, PREPARED, GROUPS, COMMITS, AGES, SEMI_SYNC, WITHDRAWALS, ACKNOWLEDGED, RETRIES,
    GAVE_WAY, SKIPPED, SKIPPED_BY_ERROR, IN_DOUBT, WAITS, TARGET_WAIT, WORKERS, BUSY, WARNINGS,
    RELOAD, STOPPED_AT, STOP_ERROR, STOP_GROUP,
)  # fmt: skip
