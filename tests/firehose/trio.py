"""A source, the server's own replica of it, and a target of mtsd."""

from __future__ import annotations

import time
from contextlib import closing, suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import pymysql

from tests.firehose.history import History, read_history
from tests.firehose.suites import Suites
from tests.replica.daemon_process import DaemonProcess
from tests.servers.mysqld import GTIDS, NO_GTIDS, Server
from tests.servers.provision import Options

WORKERS: Final = 4
ANSWER_TIMEOUTS: Final = 60.0
"""How many seconds a replica may apply nothing before it counts as stopped."""
_COMMON: Final[Options] = {"log_bin_trust_function_creators": "ON", "local_infile": "ON"}
_SYSTEM: Final = frozenset({"information_schema", "mysql", "performance_schema", "sys"})
_OWN: Final = frozenset({*_SYSTEM, "mtsd", "mtr"})
_NOT_RESTORED: Final = frozenset({
    "gtid_executed", "gtid_purged", "gtid_binlog_pos", "gtid_binlog_state", "gtid_current_pos",
    "gtid_slave_pos", "timestamp",
})  # fmt: skip


_KEPT: Final = ("binlog_", "gtid", "enforce_gtid", "log_", "server_", "relay_", "replica", "slave")
"""What the options that replication stands on begin with."""


class Trio:
    """Three fresh servers of one installation, which replicate from the moment that it is entered.

    `var` is the folder of everything that they write. Its subfolder `tmp` is for the tests.
    """

    def __init__(self, suites: Suites, var: Path, binlog_format: str, *, gtids: bool) -> None:
        self.suites = suites
        self.var = var
        self.mariadb = suites.installation.binlog_status == "SHOW MASTER STATUS"
        installation = suites.installation
        common = {**_COMMON}
        if self.mariadb:
            replica: dict[str, str | int | None] = {
                "log_slave_updates": "ON", "slave_parallel_threads": 0,
                "skip_slave_start": None, "binlog_format": "ROW",
            }  # fmt: skip
        else:
            common |= GTIDS if gtids else NO_GTIDS
            replica = {
                "log_replica_updates": "ON", "replica_parallel_workers": 1,
                "skip_replica_start": "ON", "binlog_format": "ROW",
            }  # fmt: skip
        for place in ("tmp", "log"):
            (var / place).mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            (var / "std_data").symlink_to(suites.folder / "std_data")
        self.source = Server(
            {**common, "binlog_format": binlog_format}, installation=installation, parent=var
        )
        self.native = Server({**common, **replica}, installation=installation, parent=var)
        # That of the server's own replica, whose max_allowed_packet does not count.
        limits: Options = {"max_allowed_packet": 1 << 30}
        self.target = Server({**common, **replica, **limits}, installation=installation, parent=var)
        self.daemon = DaemonProcess(
            self.source, self.target, self.target.folder, {"replica.parallel_workers": WORKERS}
        )
        self._globals: dict[str, str] = {}
        self._first_accounts: set[tuple[str, str, bool]] = set()
        self._files: dict[Server, str] = {}

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Kill everything, and remove what the servers have written."""
        self.daemon.close()
        for server in (self.source, self.native, self.target):
            server.close()

    def prepare(self) -> None:
        """Leave the source as it was at first, and let the histories begin here.

        Raises pymysql's errors where it cannot be.
        """
        ((mine,),) = self.source.sql("SELECT CONNECTION_ID()")
        for number, *_ in self.source.sql(
            "SELECT ID FROM information_schema.PROCESSLIST WHERE USER <> 'system user'"
            f" AND USER <> 'event_scheduler' AND COMMAND NOT LIKE 'Binlog Dump%' AND ID <> {mine}"
        ):
            with suppress(pymysql.MySQLError):
                self.source.sql(f"KILL {number}")
        for name, value in self._variables().items():
            if value != self._globals.get(name, value) and name not in _NOT_RESTORED:
                self._set(name, self._globals[name])
        for number, gtrid, _, data in self.source.sql(
            "XA RECOVER FORMAT='SQL'" if self.mariadb else "XA RECOVER CONVERT XID"
        ):
            if self.mariadb:
                self.source.sql(f"XA ROLLBACK {data}")
            else:
                first, second = data[2 : 2 + 2 * gtrid], data[2 + 2 * gtrid :]
                self.source.sql(f"XA ROLLBACK X'{first}', X'{second}', {number}")
        statements = ["SET foreign_key_checks = 0"]
        statements += [
            f"DROP DATABASE `{name}`"
            for (name,) in self.source.sql("SELECT SCHEMA_NAME FROM information_schema.SCHEMATA")
            if name not in _OWN
        ]
        for user, host, role in sorted(self._accounts() - self._first_accounts):
            statements.append(
                f"DROP ROLE {_text(user)}" if role else f"DROP USER {_text(user)}@{_text(host)}"
            )
        statements.append("CREATE DATABASE test")
        self.source.sql(";".join(statements))
        # The histories begin behind that on both, however far behind either is.
        self.settle()
        for server in (self.native, self.target):
            server.sql("FLUSH BINARY LOGS")
            self._files[server] = server.binlog_end()[0]

    def give_options(self, text: str) -> None:
        """Give the source those options of an option file that can be set while it runs."""
        for word in text.split():
            name, _, value = word.lstrip("-").partition("=")
            name = name.removeprefix("loose-").replace("-", "_")
            if value and not name.startswith(_KEPT):
                self._set(name, value)

    def settle(self) -> tuple[str, str]:
        """Wait until both replicas have everything; returns why each has not, "" if it has."""
        file, offset, _ = self.source.binlog_end()
        return self._wait_for_native((file, offset)), self._wait_for_mtsd()

    def histories(self) -> tuple[History, History]:
        """Return what the server's own replica, and mtsd's target, have done since `prepare`."""
        native, target = (
            read_history(
                server.datadir / name
                for (name, *_) in server.sql("SHOW BINARY LOGS")
                if name >= self._files[server]
            )
            for server in (self.native, self.target)
        )
        return native, target

    def _start(self) -> None:
        servers = (self.source, self.native, self.target)
        for server in servers:
            server.spawn()
        for server in servers:
            server.wait_ready()
        self._globals = self._variables()
        self._first_accounts = self._accounts()
        self.source.sql(
            "CREATE DATABASE mtr;CREATE PROCEDURE mtr.add_suppression(pattern TEXT) BEGIN END"
        )
        if self.mariadb:
            self.native.sql(
                f"CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={self.source.port},"
                " MASTER_USER='root', MASTER_LOG_FILE='binlog.000001', MASTER_LOG_POS=4,"
                " MASTER_USE_GTID=no; START SLAVE"
            )
        else:
            self.native.sql(
                f"CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_USER='root',"
                f" SOURCE_PORT={self.source.port}, GET_SOURCE_PUBLIC_KEY=1,"
                " SOURCE_LOG_FILE='binlog.000001', SOURCE_LOG_POS=4; START REPLICA"
            )
        self.daemon.start()
        self.daemon.wait_until_running()

    def _accounts(self) -> set[tuple[str, str, bool]]:
        """Return user, host, and whether it is one of MariaDB's roles."""
        role = "is_role" if self.mariadb else "'N'"
        return {
            (user, host, is_role == "Y")
            for user, host, is_role in self.source.sql(f"SELECT user, host, {role} FROM mysql.user")
        }

    def _variables(self) -> dict[str, str]:
        return {str(name): str(value) for name, value in self.source.sql("SHOW GLOBAL VARIABLES")}

    def _set(self, name: str, value: str) -> None:
        """Set a global variable of the source, if it can be set."""
        with suppress(pymysql.MySQLError):
            self.source.sql(f"SET GLOBAL {name} = {value if value.isdecimal() else _text(value)}")

    def _wait_for_native(self, end: tuple[str, int]) -> str:
        place: tuple[str, int] | None = None
        deadline = time.monotonic() + ANSWER_TIMEOUTS
        while True:
            with closing(self.native.client()) as client:
                cursor = client.cursor(pymysql.cursors.DictCursor)
                cursor.execute("SHOW SLAVE STATUS" if self.mariadb else "SHOW REPLICA STATUS")
                row = cursor.fetchone() or {}
            file = row["Relay_Master_Log_File" if self.mariadb else "Relay_Source_Log_File"]
            offset = row["Exec_Master_Log_Pos" if self.mariadb else "Exec_Source_Log_Pos"]
            problem = str(row["Last_SQL_Error"] or row["Last_IO_Error"])
            if problem:
                return self._errors(self.native) or problem
            if (file, int(offset)) >= end:
                return ""
            if (file, int(offset)) != place:
                place = file, int(offset)
                deadline = time.monotonic() + ANSWER_TIMEOUTS
            if time.monotonic() > deadline:
                return f"stands still at {place}, the source ends at {end}"
            time.sleep(0.1)

    def _wait_for_mtsd(self) -> str:
        try:
            self.daemon.wait_until_caught_up(ANSWER_TIMEOUTS)
        except AssertionError as error:
            if self.daemon.running:
                return str(error).partition("\n")[0]
            return str(self.daemon.records()[-1].get("error", self.daemon.last_words()))
        return ""

    @staticmethod
    def _errors(server: Server) -> str:
        lines = server.error_log.read_text(errors="replace").splitlines()
        return " | ".join([line for line in lines if "[ERROR]" in line][-3:])


def _text(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"
