"""The own replica of a MariaDB."""

import time
from contextlib import closing
from typing import Any

from pymysql.cursors import DictCursor

from benchmarks.replicas.native import NativeReplicaError
from tests.servers.mysqld import Server

_POLL_S = 0.1


class NativeMariadbReplica:
    """The replica inside `target`, by GTID; its workers are among the target's options."""

    def __init__(self, source: Server, target: Server) -> None:
        self._source = source
        self._target = target
        target.sql(
            f"CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={source.port},"
            " MASTER_USER='root', MASTER_PASSWORD='', MASTER_USE_GTID=slave_pos"
        )

    def receive(self, timeout: float) -> None:
        """Start only the receiver, and wait until the relay log has everything."""
        end = self._source.binlog_end()[:2]
        self._target.sql("START SLAVE IO_THREAD")
        deadline = time.monotonic() + timeout
        while self.received() != end:
            self.check(deadline)
            time.sleep(_POLL_S)

    def received(self) -> tuple[str, int]:
        """Return up to which place of the source's binlog it has received everything."""
        status = self._status()
        return str(status["Master_Log_File"]), int(status["Read_Master_Log_Pos"])

    def start_applying(self) -> None:
        """Start the appliers."""
        self._target.sql("START SLAVE SQL_THREAD")

    def stop(self) -> None:
        """Stop receiver and appliers."""
        self._target.sql("STOP SLAVE")

    def check(self, deadline: float) -> None:
        """Raise NativeReplicaError if it has stopped, or after the deadline."""
        status = self._status()
        if said := status["Last_IO_Error"] or status["Last_SQL_Error"]:
            raise NativeReplicaError(str(said))
        if time.monotonic() > deadline:
            raise NativeReplicaError(f"the server's own replica has not caught up: {status}")

    def _status(self) -> dict[str, Any]:
        with closing(self._target.client()) as client, client.cursor(DictCursor) as cursor:
            cursor.execute("SHOW SLAVE STATUS")
            return dict(cursor.fetchone() or {})
