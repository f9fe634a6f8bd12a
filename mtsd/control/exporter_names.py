"""The names that mysqld_exporter gives to what a server says of its own replica, on request.

The target of mtsd says nothing there, so alert rules that people have would never fire. Names and
labels are those of `SHOW SLAVE STATUS` as mysqld_exporter shows it: the column in lower case.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from mtsd.control.status import Status

PREFIX: Final = "mysql_slave_status_"
LABELS: Final = ("master_host", "master_uuid", "channel_name", "connection_name")


@dataclass(frozen=True, slots=True)
class ReplicaStatusColumn:
    """A column of SHOW SLAVE STATUS, in lower case, and its value; None: NULL, no sample."""

    name: str
    value: Callable[[Status], float | None]


def labels_of(status: Status) -> tuple[str, ...]:
    """Return the values of `LABELS`; the host is the source's, as it is configured."""
    host = status.source.rpartition(":")[0] or status.source
    return host, status.source_log.server_uuid, status.channel, status.channel


def _applies(status: Status) -> float:
    ended = status.state in {"stopped", "failed"}
    return float(status.connections.target.connected and not ended)


def _source_error(status: Status) -> float:
    error = status.connections.source.last_error
    return error.number if error is not None else 0


def _apply_error(status: Status) -> float:
    if status.last_stop is not None:
        return status.last_stop.number
    error = status.connections.target.last_error
    return error.number if error is not None else 0


COLUMNS: Final = (
    ReplicaStatusColumn("slave_io_running", lambda s: float(s.connections.source.connected)),
    ReplicaStatusColumn("slave_sql_running", _applies),
    ReplicaStatusColumn("seconds_behind_master", lambda s: s.lag_seconds),
    ReplicaStatusColumn("sql_delay", lambda s: s.delay),
    ReplicaStatusColumn("sql_remaining_delay", lambda s: s.remaining_delay or None),
    ReplicaStatusColumn("read_master_log_pos", lambda s: s.received.pos),
    ReplicaStatusColumn("exec_master_log_pos", lambda s: s.executed.pos),
    ReplicaStatusColumn("master_server_id", lambda s: s.source_log.server_id),
    ReplicaStatusColumn("last_io_errno", _source_error),
    ReplicaStatusColumn("last_sql_errno", _apply_error),
    ReplicaStatusColumn("last_errno", _apply_error),
)
