"""Runs all parts of the load on a source, side by side and one statement at a time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from random import Random
from typing import Final

import pymysql
from pymysql.connections import Connection
from pymysql.cursors import Cursor

from tests.load.matrix.engines import PARTS as ENGINES
from tests.load.matrix.of_mariadb import PARTS as OF_MARIADB
from tests.load.matrix.place import ACCOUNTS, Between, Part, Place, Step
from tests.load.matrix.rows import PARTS as ROWS
from tests.load.matrix.sessions import PARTS as SESSIONS
from tests.load.matrix.statements import LOCAL
from tests.load.matrix.statements import PARTS as STATEMENTS
from tests.load.matrix.types import PARTS as TYPES
from tests.servers.mysqld import NO_GTIDS, Options, Server

PARTS: Final[tuple[Part, ...]] = (*TYPES, *ROWS, *STATEMENTS, *SESSIONS, *ENGINES, *OF_MARIADB)
_UNKNOWN_XID: Final = 1397
_COLLATION: Final = "utf8mb4_general_ci"
"""One that both families have."""


def options(series: str) -> Options:
    """Return what a server of the matrix is started with.

    A MySQL with GTIDs refuses transactions that change tables with and without transactions.
    """
    common: Options = {
        "local_infile": 1,
        "log_bin_trust_function_creators": 1,
        "event_scheduler": 0,
    }
    return {**common, **(NO_GTIDS if series == "9.7" else {})}


class MatrixLoad:
    """The load from `between.source` on `server`; `left_out` is what the two do not share."""

    def __init__(
        self, server: Server, between: Between, *, seed: int = 1, parts: Sequence[Part] = PARTS
    ) -> None:
        self._server = server
        self._between = between
        self._seed = seed
        self._parts = parts
        self.left_out: list[str] = []

    def prepare(self, target: Server) -> None:
        """Create on the target the accounts that are not in the source's binary log."""
        if not ACCOUNTS.holds(self._between):
            target.sql(f"SET SESSION sql_log_bin = 0; CREATE USER {', '.join(LOCAL)}")

    def run(self) -> None:
        """Run every part to its end. Raises pymysql's errors, with a note of the statement."""
        chance = Random(self._seed)
        with ExitStack() as stack:
            running = [
                _Running(self._server, self._between, part, stack, self._seed)
                for part in self._parts
            ]
            while running:
                # A few steps at a time: transactions interleave, and some are together.
                one = chance.choice(running)
                for _ in range(chance.randint(1, 5)):
                    if not one.step():
                        running.remove(one)
                        self.left_out += one.place.left_out
                        break


class _Running:
    """A part, in sessions of its own."""

    def __init__(
        self, server: Server, between: Between, part: Part, stack: ExitStack, seed: int
    ) -> None:
        name = part.__name__
        self.place = Place(between, server, f"m_{name}", f"m_{name}_2", Random(f"{seed} {name}"))
        self._stack = stack
        self._sessions: dict[int, Cursor] = {}
        for database in (self.place.here, self.place.there):
            server.sql(f"CREATE DATABASE {database} CHARACTER SET utf8mb4 COLLATE {_COLLATION}")
        self._steps = part(self.place)

    def step(self) -> bool:
        """Take the next step; return whether there was one."""
        step = next(self._steps, None)
        if step is None:
            return False
        if isinstance(step, str):
            step = Step(step)
        cursor = self._sessions.get(step.session) or self._connect(step.session)
        if not step.sql:
            _close(self._sessions.pop(step.session).connection)
            return True
        try:
            _execute(cursor, step)
        except (pymysql.err.MySQLError, AssertionError) as error:
            error.add_note(f"{self.place.here}: {step}")
            raise
        return True

    def _connect(self, session: int) -> Cursor:
        client = pymysql.connect(
            unix_socket=str(self.place.server.socket), user="root", database=self.place.here,
            autocommit=True, local_infile=True, charset="utf8mb4", ssl_disabled=True,
        )  # fmt: skip
        self._stack.callback(_close, client)
        cursor: Cursor = client.cursor()
        for setting in (
            f"binlog_format = {self.place.between.binlog_format}",
            "innodb_lock_wait_timeout = 5",
            "lock_wait_timeout = 5",
            "time_zone = '+00:00'",
        ):
            cursor.execute(f"SET SESSION {setting}")
        cursor.execute(f"SET NAMES utf8mb4 COLLATE {_COLLATION}")
        self._sessions[session] = cursor
        return cursor


def _close(client: Connection) -> None:
    if client.open:
        client.close()


def _execute(cursor: Cursor, step: Step) -> None:
    """Execute a step and drop its results, or see it fail as it must."""
    deadline = time.monotonic() + 30
    while True:
        try:
            cursor.execute(step.sql)
            while cursor.nextset():
                pass
        except pymysql.err.MySQLError as error:
            number = error.args[0]
            # What a session of MariaDB has prepared is free once the session has ended.
            if number == _UNKNOWN_XID != step.error and time.monotonic() < deadline:
                time.sleep(0.01)
                continue
            if number != step.error:
                raise
            return
        assert not step.error, f"it did not fail with {step.error}"
        return
