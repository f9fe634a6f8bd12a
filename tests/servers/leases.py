"""Running servers that nobody uses at the moment, to be used again.

To start one takes half a second of processor time, and to clean one a fiftieth. So a `Server`
takes a parked one in place of a start, with the same options but for those that can be set while
it runs, and at its end parks its own, once `clean` has made it what it was: also one that was
killed and has recovered. What cannot be put back fails the test.

A parked server is stopped (SIGSTOP), since an idle mysqld takes 5 ms of processor time a second.
So a client that comes to it is neither answered nor refused.
"""

from __future__ import annotations

import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Final

import pymysql

from tests.servers.provision import Installation, Options
from tests.servers.reaper import register

MAX_PARKED: Final = 6
"""How many one process keeps: each has a quarter of a gigabyte of memory."""

Connect = Callable[[], pymysql.connections.Connection]
Key = tuple[str, tuple[tuple[str, str | int | None], ...]]
"""What servers that can stand in for each other have in common."""

_SETTABLE: Final = (
    "binlog_checksum",
    "binlog_commit_wait_count",
    "binlog_commit_wait_usec",
    "binlog_format",
    "binlog_row_image",
    "binlog_row_metadata",
    "binlog_transaction_compression",
    "cte_max_recursion_depth",
    "default_storage_engine",
    "default_time_zone",
    "enforce_gtid_consistency",
    "event_scheduler",
    "explicit_defaults_for_timestamp",
    "gtid_mode",
    "local_infile",
    "log_bin_compress",
    "log_bin_compress_min_len",
    "log_bin_trust_function_creators",
    "max_allowed_packet",
    "net_write_timeout",
    "read_only",
    "server_id",
)
"""Options that make no other server than a SET GLOBAL with their values does."""
_VARIABLES: Final = {"default_time_zone": "time_zone"}
"""Variables that have another name than their options."""
_SYSTEM: Final = frozenset({"information_schema", "mysql", "performance_schema", "sys"})
_VOLATILE: Final = re.compile(r"gtid_(?!mode|domain)|last_gtid|timestamp|rand_seed|pseudo_thread")
"""Variables that change by themselves, or with the binlog."""
_LOGS: Final = frozenset({"general_log", "slow_log", "gtid_executed", "gtid_slave_pos"})
_COUNTED: Final = re.compile(r"innodb_|engine_cost|server_cost|.*_stats?$|replication_|slave_|ndb_")
"""System tables that change by themselves."""
_FILES: Final = re.compile(
    r".*\.pid|.*-bin\..*|binlog\..*|other\..*|ib.*|undo.*|#.*|.*tmp.*|aria_.*"
)
"""Files of the data directory that the server itself makes."""
_UNITS: Final = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
"""What sizes are written with on a command line, and not in SET GLOBAL."""
_MODES: Final = ("OFF", "OFF_PERMISSIVE", "ON_PERMISSIVE", "ON")
_ALL_ROWS: Final = (1 << 64) - 1
_TIMEOUT_S: Final = 30.0


class DirtyServerError(AssertionError):
    """Something in a server cannot be put back; the message says what."""


@dataclass(frozen=True, slots=True)
class Fresh:
    """What a server is like when it has just been started."""

    variables: Mapping[str, str]
    tables: Mapping[str, int]
    """Checksums of the system tables."""
    plugins: frozenset[tuple[str, ...]]
    accounts: frozenset[tuple[str, str, str]]
    """User, host, and Y for a role that is no user."""
    files: frozenset[str]

    @property
    def plugin_names(self) -> frozenset[str]:
        """What is installed."""
        return frozenset(name for name, *_ in self.plugins)

    @classmethod
    def of(
        cls, installation: Installation, client: pymysql.connections.Connection, datadir: Path
    ) -> Fresh:
        """Look at a server."""
        return cls(
            variables(client),
            _checksums(client),
            frozenset(_ask(client, "SHOW PLUGINS")),
            frozenset(_ask(client, installation.accounts)),
            _files(datadir),
        )

    def changed(self, found: Fresh) -> Iterator[str]:
        """Yield what is otherwise now."""
        for field in fields(self):
            before, now = getattr(self, field.name), getattr(found, field.name)
            if isinstance(before, Mapping):
                before, now = before.items(), now.items()
            if before != now:
                yield f"{field.name}: {sorted(before - now)} before, {sorted(now - before)} now"


@dataclass(frozen=True, slots=True)
class Parked:
    """A server that is what it was when it had just been started, and stands still."""

    key: Key
    options: Options
    """All of them, of which the key has not those that can be set."""
    folder: Path
    port_lock: socket.socket
    process: subprocess.Popen[bytes]
    fresh: Fresh

    def go_on(self) -> None:
        """Let it run again, for somebody who uses it."""
        self.process.send_signal(signal.SIGCONT)

    def end(self) -> None:
        """Kill it, which needs no going on, and remove everything it has written."""
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
        self.port_lock.close()
        register(self.folder, None)


_PARKED: Final[list[Parked]] = []
_UNTOLD: Final[dict[str, str | None]] = {}
"""The gtid_mode of a server that is not told one, by template: it depends on the version."""


def key_of(installation: Installation, options: Options) -> Key:
    """Return the key of a server with these options."""
    fixed = {name: value for name, value in options.items() if name not in _SETTABLE}
    return str(installation.template), tuple(sorted(fixed.items()))


def first_look(
    installation: Installation,
    options: Options,
    client: pymysql.connections.Connection,
    datadir: Path,
) -> Fresh:
    """Return what a server is like that has just been started with these options."""
    fresh = Fresh.of(installation, client, datadir)
    if "gtid_mode" not in options:
        _UNTOLD[str(installation.template)] = fresh.variables.get("gtid_mode")
    return fresh


def take(key: Key, options: Options) -> Parked | None:
    """Return a parked server, which is the caller's from now on; None if there is none.

    It is one with all these options if there is one. It stands still until it is told to go on.
    """
    fitting = [parked for parked in _PARKED if parked.key == key]
    if not fitting or ("gtid_mode" not in options and key[0] not in _UNTOLD):
        return None
    chosen = max(
        fitting,
        key=lambda parked: sum(options.get(name) == parked.options.get(name) for name in _SETTABLE),
    )
    _PARKED.remove(chosen)
    return chosen


def park(parked: Parked) -> None:
    """Keep a server to be taken; the one that has been there for longest may end for it."""
    parked.process.send_signal(signal.SIGSTOP)
    _PARKED.append(parked)
    if len(_PARKED) > MAX_PARKED:
        _PARKED.pop(0).end()


def untouched(client: pymysql.connections.Connection) -> bool:
    """Return whether nobody has come to a parked server, as a daemon left running would."""
    databases = {name for (name,) in _ask(client, "SHOW DATABASES")}
    return databases <= _SYSTEM and not list(_sessions(client))


def adapt(
    installation: Installation,
    parked: Parked,
    options: Options,
    client: pymysql.connections.Connection,
) -> Fresh:
    """Give a parked server these options; return what it is like now. Raises pymysql's errors."""
    steps = [
        f"{_VARIABLES.get(name, name)} = {_literal(options.get(name))}"
        for name in _SETTABLE
        if name != "gtid_mode" and options.get(name) != parked.options.get(name)
    ]
    mode = parked.fresh.variables.get("gtid_mode")
    wanted = options.get("gtid_mode") or _UNTOLD.get(parked.key[0])
    if mode != wanted:
        by_mode = [f"gtid_mode = {each}" for each in _modes(str(mode), str(wanted))]
        # GTIDs need the consistency, and it cannot be given up before them.
        steps = steps + by_mode if wanted == "ON" else by_mode + steps
    if not steps:
        return parked.fresh
    for each in steps:
        _ask(client, f"SET GLOBAL {each}")
    # To change the mode, or the checksums, begins files.
    _forget_log(installation, parked.fresh, client)
    return replace(parked.fresh, variables=variables(client))


def clean(installation: Installation, fresh: Fresh, connect: Connect, datadir: Path) -> None:
    """Make a server what it was. Raises DirtyServerError, and pymysql's errors."""
    # A new session has what the variables say, and some are not changed while a replica runs.
    with closing(connect()) as client:
        # Otherwise a test's value may cut off all that is asked here.
        _ask(client, f"SET sql_select_limit = {_ALL_ROWS}")
        for statement in installation.replica_resets:
            _ask(client, statement)
        are_changed = _put_variables_back(client, fresh)
    with closing(connect()) as client:
        _end_sessions(client)
        _ask(client, "SET sql_log_bin = 0, foreign_key_checks = 0")
        for row in _ask(client, installation.xa_recover):
            _ask(client, f"XA ROLLBACK {_xid(*row)}")
        for (name,) in _ask(client, "SHOW DATABASES"):
            if name not in _SYSTEM:
                _ask(client, f"DROP DATABASE {_quoted(name)}")
        for user, host, is_role in set(_ask(client, installation.accounts)) - fresh.accounts:
            account = f"{_quoted(user)}@{_quoted(host)}"
            _ask(client, f"DROP ROLE {_quoted(user)}" if is_role == "Y" else f"DROP USER {account}")
        for name in {row[0] for row in _ask(client, "SHOW PLUGINS")} - fresh.plugin_names:
            _ask(client, f"UNINSTALL PLUGIN {_quoted(name)}")
        persisted = datadir / "mysqld-auto.cnf"
        if persisted.exists():
            _ask(client, "RESET PERSIST")
            persisted.unlink()
        if are_changed:
            # Some may only be put back when the accounts are gone.
            _put_variables_back(client, fresh)
        _forget_log(installation, fresh, client)
        # What LOAD DATA has read.
        for name in _files(datadir) - fresh.files:
            if (datadir / name).is_file():
                (datadir / name).unlink()
        for log in ("general_log", "slow_log"):
            _ask(client, f"TRUNCATE TABLE mysql.{log}")
        if changed := list(fresh.changed(Fresh.of(installation, client, datadir))):
            raise DirtyServerError("; ".join(changed))


def _forget_log(
    installation: Installation, fresh: Fresh, client: pymysql.connections.Connection
) -> None:
    # Without a binlog, a MySQL forgets its GTIDs all the same, and a MariaDB refuses.
    if fresh.variables["log_bin"] == "ON" or not installation.gtid_resets:
        _ask(client, installation.binlog_reset)
    for statement in installation.gtid_resets:
        _ask(client, statement)


def variables(client: pymysql.connections.Connection) -> dict[str, str]:
    """Return the global variables that change only if somebody sets them."""
    found = _ask(client, "SHOW GLOBAL VARIABLES")
    return {name: value for name, value in found if not _VOLATILE.match(name)}


def _put_variables_back(client: pymysql.connections.Connection, fresh: Fresh) -> bool:
    """Return whether any was another than it is to be."""
    are_changed = False
    for name, value in _ask(client, "SHOW GLOBAL VARIABLES"):
        wanted = fresh.variables.get(name, value)
        if wanted == value:
            continue
        are_changed = True
        for each in _modes(value, wanted) if name == "gtid_mode" else (wanted,):
            # What cannot be put back is seen afterwards.
            with closing(client.cursor()) as cursor:
                try:
                    cursor.execute(f"SET GLOBAL {name} = {_literal(each)}")
                except pymysql.err.MySQLError:
                    continue
    return are_changed


def _literal(value: str | int | None) -> str:
    """Return a value as SET GLOBAL takes it; None is what it is unless a server is told."""
    if value is None:
        return "DEFAULT"
    text = str(value)
    if size := re.fullmatch(r"(\d+)([KMG])", text):
        return str(int(size[1]) * _UNITS[size[2]])
    number = re.fullmatch(r"-?\d+(\.\d+)?", text)
    return text if number else f"'{pymysql.converters.escape_string(text)}'"


def _modes(now: str, wanted: str) -> tuple[str, ...]:
    """Return the values of gtid_mode on the way from one to another."""
    begin, end = _MODES.index(now), _MODES.index(wanted)
    return _MODES[begin + 1 : end + 1] if begin < end else _MODES[end:begin][::-1]


def _end_sessions(client: pymysql.connections.Connection) -> None:
    deadline = time.monotonic() + _TIMEOUT_S
    killed: set[int] = set()
    while sessions := set(_sessions(client)):
        for session in sessions - killed:
            with closing(client.cursor()) as cursor:
                try:
                    cursor.execute(f"KILL {session}")
                except pymysql.err.MySQLError:
                    # It has ended by itself.
                    continue
        killed |= sessions
        if time.monotonic() > deadline:
            raise DirtyServerError(f"sessions {sorted(sessions)} go on after a KILL")
        time.sleep(0.005)


def _sessions(client: pymysql.connections.Connection) -> Iterator[int]:
    """Yield the ids of others' sessions, the server's own left out."""
    for session, user, *_ in _ask(client, "SHOW PROCESSLIST"):
        if session != client.thread_id() and user not in {"system user", "event_scheduler"}:
            yield int(session)


def _files(datadir: Path) -> frozenset[str]:
    """Return what is in a data directory beside the files that the server makes by itself."""
    return frozenset(each.name for each in datadir.iterdir() if not _FILES.fullmatch(each.name))


def _checksums(client: pymysql.connections.Connection) -> dict[str, int]:
    names = ",".join(
        f"mysql.{name}"
        for name, kind in _ask(client, "SHOW FULL TABLES FROM mysql")
        if kind == "BASE TABLE" and name not in _LOGS and not _COUNTED.fullmatch(name)
    )
    return dict(_ask(client, f"CHECKSUM TABLE {names}"))


def _xid(format_id: int, gtrid_length: int, _bqual_length: int, data: str) -> str:
    if not data.startswith("0x"):
        # A MariaDB prints it as it is written in a statement.
        return data
    at = 2 + 2 * gtrid_length
    return f"X'{data[2:at]}',X'{data[at:]}',{format_id}"


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _ask(client: pymysql.connections.Connection, statement: str) -> list[tuple[Any, ...]]:
    with closing(client.cursor()) as cursor:
        cursor.execute(statement)
        return list(cursor.fetchall())
