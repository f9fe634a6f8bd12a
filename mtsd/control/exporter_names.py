"""The names that mysqld_exporter gives to what a server says of its own replica, on request.

The target of mtsd says nothing there, so alert rules that people have would never fire. A name is
that of a column in lower case: of SHOW REPLICA STATUS, and of SHOW SLAVE STATUS, which a MySQL had
before 8.4, and for which most rules are made.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from mtsd.control.status import Status
from mtsd.model.error_numbers import ER

PREFIX: Final = "mysql_slave_status_"
LABELS: Final = ("master_host", "master_uuid", "channel_name", "connection_name")


@dataclass(frozen=True, slots=True)
class ReplicaStatusColumn:
    """A column in lower case, and its value; None: NULL, no sample.

    `formerly` is its name in SHOW SLAVE STATUS, "" if it is the same.
    """

    name: str
    value: Callable[[Status], float | None]
    formerly: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """The names that it is shown under."""
        return (self.formerly, self.name) if self.formerly else (self.name,)


def labels_of(status: Status) -> tuple[str, ...]:
    """Return the values of `LABELS`; the host is the source's, as it is configured."""
    host = status.source.rpartition(":")[0] or status.source
    return host, status.source_log.server_uuid, status.channel, status.channel


def _applies(status: Status) -> float:
    applies = status.state not in {"stopped", "failed", "waiting"}
    return float(status.connections.target.connected and applies)


def _source_error(status: Status) -> float:
    error = status.connections.source.last_error
    if error is None:
        return 0
    return error.number or ER.CR_CONN_HOST_ERROR


def _apply_error(status: Status) -> float:
    if status.last_stop is not None:
        return status.last_stop.number
    error = status.connections.target.last_error
    return error.number if error is not None else 0


COLUMNS: Final = (
    ReplicaStatusColumn(
        "replica_io_running", lambda s: float(s.connections.source.connected), "slave_io_running"
    ),
    ReplicaStatusColumn("replica_sql_running", _applies, "slave_sql_running"),
    ReplicaStatusColumn("seconds_behind_source", lambda s: s.lag_seconds, "seconds_behind_master"),
    ReplicaStatusColumn("sql_delay", lambda s: s.delay),
    ReplicaStatusColumn("sql_remaining_delay", lambda s: s.remaining_delay or None),
    ReplicaStatusColumn("read_source_log_pos", lambda s: s.received.pos, "read_master_log_pos"),
    ReplicaStatusColumn("exec_source_log_pos", lambda s: s.executed.pos, "exec_master_log_pos"),
    ReplicaStatusColumn("source_server_id", lambda s: s.source_log.server_id, "master_server_id"),
    ReplicaStatusColumn("last_io_errno", _source_error),
    ReplicaStatusColumn("last_sql_errno", _apply_error),
    ReplicaStatusColumn("last_errno", _apply_error),
)
