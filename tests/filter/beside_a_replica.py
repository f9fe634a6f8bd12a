"""The same changes and rules for mtsd and for the server's own replica, and what both then hold."""

import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import pymysql

from tests.fix_daemon import NEEDS_PERSON
from tests.replica.daemon_process import DaemonProcess, Value
from tests.servers.mariadb import MariadbInstallation
from tests.servers.mysqld import GTIDS, Options, Server
from tests.servers.provision import Installation

Rules = dict[str, list[str] | list[list[str]]]
Change = tuple[str, str]
"""A default database, "" for none, and a statement in it."""

DATABASES = ("a", "b", "c", "x", "a_b", "aXb")
TABLES = ("t", "u", "T1")
OF_MARIADB: Options = {
    "skip_slave_start": "ON",
    "log_bin_trust_function_creators": "ON",
    "event_scheduler": "OFF",
    "gtid_domain_id": 0,
}
OPTIONS: Options = {
    **GTIDS,
    "skip_replica_start": "ON",
    "log_bin_trust_function_creators": "ON",
    "event_scheduler": "OFF",
    "replica_parallel_workers": 1,
}
_SYSTEM = "'mysql', 'sys', 'information_schema', 'performance_schema', 'mtsd'"


class Three:
    """A source, its own kind of replica, and a target of mtsd.

    `installation` is what they run, or all but the target if that has one of its own.
    """

    def __init__(
        self, installation: Installation | None = None, target: Installation | None = None
    ) -> None:
        target = target or installation
        self.mariadb = isinstance(installation, MariadbInstallation)
        self.source = Server(_options(installation), installation=installation)
        self.native = Server(_options(installation), installation=installation)
        self.target = Server(_options(target), installation=target)

    @classmethod
    @contextmanager
    def running(
        cls, installation: Installation | None = None, target: Installation | None = None
    ) -> Iterator["Three"]:
        three = cls(installation, target)
        try:
            for server in (three.source, three.native, three.target):
                server.spawn()
            for server in (three.source, three.native, three.target):
                server.wait_ready()
            yield three
        finally:
            for server in (three.source, three.native, three.target):
                server.close()

    def make(self, changes: Sequence[Change]) -> None:
        """Make the changes on a source that has nothing else in its binary log."""
        _clean(self.source)
        if self.mariadb:
            # Whether a session has temporary tables is known from the start of a server on.
            self.source.restart()
        # Rows first: a statement that finds other rows than on the source is no error.
        for binlog_format in ("ROW", "STATEMENT"):
            _make(self.source, changes, binlog_format)

    def replicate(
        self,
        rules: Rules,
        folder: Path,
        apply_mode: str = "auto",
        of_native: Rules | None = None,
    ) -> None:
        """Let both replicate the source's changes with the rules; `of_native`, if it has others."""
        if of_native is None:
            of_native = rules
        with ThreadPoolExecutor() as beside:
            native = beside.submit(self.replicate_natively, of_native)
            self.replicate_to_target(rules, folder, {"target.apply_mode": apply_mode})
            native.result()

    def replicate_natively(self, rules: Rules) -> None:
        """Let the source's own kind of replica replicate its changes with the rules."""
        word = "SLAVE" if self.mariadb else "REPLICA"
        self.native.sql(f"STOP {word}; RESET {word} ALL")
        _clean(self.native)
        if self.mariadb:
            self._native_mariadb(rules)
        else:
            self._native(rules)

    def replicate_to_target(
        self, rules: Rules, folder: Path, settings: Mapping[str, Value]
    ) -> None:
        """Let mtsd replicate the source's changes with the rules and other settings."""
        with self._daemon(rules, folder, settings) as daemon:
            daemon.wait_until_caught_up(30)
            assert daemon.stop() == 0

    def refused_by_mtsd(self, rules: Rules, folder: Path) -> str:
        """Let mtsd begin to replicate the source's changes, and return why it has stopped."""
        with self._daemon(rules, folder, {}) as daemon:
            assert daemon.wait() == NEEDS_PERSON, daemon.last_words()
            return str(daemon.records()[-1]["error"])

    def _daemon(self, rules: Rules, folder: Path, settings: Mapping[str, Value]) -> DaemonProcess:
        _clean(self.target)
        of_filter: dict[str, Value] = {f"filter.{name}": value for name, value in rules.items()}
        return DaemonProcess(self.source, self.target, folder, {**of_filter, **settings})

    def _native(self, rules: Rules) -> None:
        for name in (
            "DO_DB", "IGNORE_DB", "DO_TABLE", "IGNORE_TABLE", "WILD_DO_TABLE",
            "WILD_IGNORE_TABLE", "REWRITE_DB",
        ):  # fmt: skip
            given = ", ".join(_rule(name, each) for each in rules.get(name.lower(), []))
            self.native.sql(f"CHANGE REPLICATION FILTER REPLICATE_{name} = ({given})")
        self.native.sql(
            f"CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_USER = 'root',"
            f" SOURCE_PORT = {self.source.port}, GET_SOURCE_PUBLIC_KEY = 1,"
            f" SOURCE_AUTO_POSITION = 1; START REPLICA"
        )
        ((gtids,),) = self.source.sql("SELECT @@gtid_executed")
        self._wait(f"SELECT GTID_SUBTRACT('{gtids}', @@gtid_executed) = ''")

    def _native_mariadb(self, rules: Rules) -> None:
        for name in (
            "do_db", "ignore_db", "do_table", "ignore_table", "wild_do_table",
            "wild_ignore_table", "rewrite_db",
        ):  # fmt: skip
            given = ",".join(
                "->".join(each) if isinstance(each, list) else each for each in rules.get(name, [])
            ).replace("\\", "\\\\")
            self.native.sql(f"SET GLOBAL replicate_{name} = '{given}'")
        self.native.sql(
            f"SET GLOBAL gtid_slave_pos = ''; CHANGE MASTER TO MASTER_HOST = '127.0.0.1',"
            f" MASTER_USER = 'root', MASTER_PORT = {self.source.port}, MASTER_SSL = 0,"
            " MASTER_USE_GTID = slave_pos; START SLAVE"
        )
        ((gtid,),) = self.source.sql("SELECT @@gtid_binlog_pos")
        self._wait(f"SELECT @@gtid_slave_pos = '{gtid}'")

    def _wait(self, condition: str) -> None:
        deadline = time.monotonic() + 60
        while self.native.sql(condition) != [(1,)]:
            problem = self._problem()
            assert not problem, problem
            assert time.monotonic() < deadline, condition
            time.sleep(0.05)

    def _problem(self) -> str:
        with closing(self.native.client()) as client:
            cursor = client.cursor(pymysql.cursors.DictCursor)
            cursor.execute("SHOW SLAVE STATUS" if self.mariadb else "SHOW REPLICA STATUS")
            row = cursor.fetchone()
        return "" if row is None else str(row["Last_SQL_Error"] or row["Last_IO_Error"])


def contents(server: Server) -> dict[str, object]:
    """Return everything that statements can leave behind."""
    found: dict[str, object] = {}
    found["databases"] = server.sql(
        "SELECT schema_name, default_character_set_name FROM information_schema.schemata"
        f" WHERE schema_name NOT IN ({_SYSTEM}) ORDER BY 1"
    )
    for schema, table in server.sql(
        "SELECT table_schema, table_name FROM information_schema.tables"
        f" WHERE table_schema NOT IN ({_SYSTEM}) ORDER BY 1, 2"
    ):
        name = f"`{schema}`.`{table}`"
        found[name] = (
            server.sql(f"SHOW CREATE TABLE {name}")[0][1],
            server.sql(f"SELECT * FROM {name} ORDER BY 1"),
        )
    found["routines"] = server.sql(
        "SELECT routine_schema, routine_name FROM information_schema.routines"
        f" WHERE routine_schema NOT IN ({_SYSTEM}) ORDER BY 1, 2"
    )
    found["triggers"] = server.sql(
        "SELECT trigger_schema, trigger_name FROM information_schema.triggers"
        f" WHERE trigger_schema NOT IN ({_SYSTEM}) ORDER BY 1, 2"
    )
    found["events"] = server.sql(
        "SELECT event_schema, event_name FROM information_schema.events ORDER BY 1, 2"
    )
    for (user,) in server.sql("SELECT user FROM mysql.user WHERE user LIKE 'u\\_%' ORDER BY 1"):
        found[f"grants of {user}"] = server.sql(f"SHOW GRANTS FOR '{user}'@'%'")
    return found


def _options(installation: Installation | None) -> Options:
    return OF_MARIADB if isinstance(installation, MariadbInstallation) else OPTIONS


def _clean(server: Server) -> None:
    names = server.sql(
        "SELECT schema_name FROM information_schema.schemata"
        f" WHERE schema_name NOT IN ({_SYSTEM[:-8]})"
    )
    users = server.sql("SELECT user FROM mysql.user WHERE user LIKE 'u\\_%'")
    statements = [
        *(f"DROP DATABASE `{name}`" for (name,) in names),
        *(f"DROP USER '{user}'@'%'" for (user,) in users),
    ]
    for database in DATABASES:
        # A collation that all of them know.
        statements.append(f"CREATE DATABASE {database} COLLATE utf8mb4_general_ci")
        for table in TABLES:
            statements += [
                f"CREATE TABLE {database}.{table} (i INT PRIMARY KEY, v INT)",
                f"INSERT INTO {database}.{table} VALUES (1, 1), (2, 2), (3, 3), (4, 4)",
            ]
    server.sql("; ".join(["SET sql_log_bin = 0", *statements]))
    server.reset_binlog()


def _make(server: Server, changes: Sequence[Change], binlog_format: str) -> None:
    for database, statement in changes:
        with closing(server.client(database or None)) as client, client.cursor() as cursor:
            cursor.execute(f"SET SESSION binlog_format = {binlog_format}")
            number = 1 if binlog_format == "ROW" else 2
            for each in statement.split(";"):
                cursor.execute(each.replace("@", str(number)))


def _rule(name: str, rule: str | list[str]) -> str:
    if isinstance(rule, list):
        return f"({', '.join(f'`{each}`' for each in rule)})"
    if name.startswith("WILD"):
        return "'" + rule.replace("\\", "\\\\") + "'"
    return ".".join(f"`{part}`" for part in rule.split("."))
