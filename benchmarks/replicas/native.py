"""The server's own replica."""

import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

from pymysql.cursors import DictCursor

from tests.servers.mysqld import Server

_POLL_S = 0.1

Status = dict[str, Any]
"""A row of SHOW REPLICA STATUS."""


class NativeReplicaError(RuntimeError):
    """The server's own replica has stopped with an error, or does not finish."""


class NativeReplica:
    """The replica inside `target`, with defaults: only the source's address is set."""

    def __init__(self, source: Server, target: Server) -> None:
        self._source = source
        self._target = target
        target.sql(
            "CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1',"
            f" SOURCE_PORT={source.port}, SOURCE_USER='root', SOURCE_PASSWORD='',"
            " SOURCE_AUTO_POSITION=1, GET_SOURCE_PUBLIC_KEY=1"
        )

    def receive(self, timeout: float) -> float:
        """Start only the receiver, wait until the relay log has everything; return the seconds."""
        began = time.monotonic()
        file, offset = self._source.sql("SHOW BINARY LOG STATUS")[0][:2]
        self._target.sql("START REPLICA IO_THREAD")

        def received(status: Status) -> bool:
            return (status["Source_Log_File"], status["Read_Source_Log_Pos"]) == (file, offset)

        self._wait(received, timeout)
        return time.monotonic() - began

    def start_applying(self) -> None:
        """Start the appliers."""
        self._target.sql("START REPLICA SQL_THREAD")

    def start(self) -> None:
        """Start receiver and appliers."""
        self._target.sql("START REPLICA")

    def stop(self) -> None:
        """Stop receiver and appliers."""
        self._target.sql("STOP REPLICA")

    def wait_until_caught_up(self, timeout: float) -> None:
        """Wait until everything now in the source's binlog is applied."""
        gtids = str(self._source.sql("SELECT @@GLOBAL.gtid_executed")[0][0])
        deadline = time.monotonic() + timeout
        while True:
            waited = f"SELECT WAIT_FOR_EXECUTED_GTID_SET('{gtids}', 2)"
            if self._target.sql(waited)[0][0] == 0:
                return
            self.check(deadline)

    def check(self, deadline: float) -> None:
        """Raise NativeReplicaError if it has stopped, or after the deadline."""
        self._check(self._status(), deadline)

    def _wait(self, reached: Callable[[Status], bool], timeout: float) -> None:
        deadline = time.monotonic() + timeout
        while not reached(status := self._status()):
            self._check(status, deadline)
            time.sleep(_POLL_S)

    def _status(self) -> Status:
        with closing(self._target.client()) as client, client.cursor(DictCursor) as cursor:
            cursor.execute("SHOW REPLICA STATUS")
            return dict(cursor.fetchone() or {})

    def _check(self, status: Status, deadline: float) -> None:
        said = status.get("Last_IO_Error") or status.get("Last_SQL_Error")
        if said:
            raise NativeReplicaError(str(said))
        if time.monotonic() > deadline:
            raise NativeReplicaError(f"the server's own replica has not caught up: {status}")
