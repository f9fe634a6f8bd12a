"""A session on the target: its pinned state, its transactions, and the source's statements."""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pymysql.constants import ER

from mtsd.binlog.event_type import SUPPRESS_USE
from mtsd.binlog.qualifiers import names
from mtsd.model.errors import NotSupportedError, ServerError
from mtsd.model.fault_points import FaultPoint, Reached, nothing
from mtsd.model.server import Flavour
from mtsd.model.session import SessionContext
from mtsd.model.step import Duplicates, Satellite, Statement, StatementKind, Step
from mtsd.model.temporary_tables import TableName
from mtsd.model.xa_xid import XaXid
from mtsd.target import literals
from mtsd.target.other_family import statement_of
from mtsd.target.retry import patiently
from mtsd.target.satellites import (
    Collation,
    after_statement,
    before_statement,
    needs_collations,
)
from mtsd.target.session_state import (
    TIMESTAMP_DEFAULTS,
    changes,
    collation,
    only_settled,
    pinned,
    statement_state,
    without_settled,
)
from mtsd.target.worker_info import ROW_GONE
from mtsd.target.xa import roll_back
from mtsd.wire.binlog_status import binlog_status
from mtsd.wire.connection import Connection, Loaded
from mtsd.wire.endpoint import Endpoint
from mtsd.wire.traits import ServerTraits, read_traits

_INIT_DB = 0x02
_COLLATIONS = b"SELECT ID,COLLATION_NAME,CHARACTER_SET_NAME FROM information_schema.COLLATIONS"
_MARIADB_COLLATIONS = (
    b"SELECT ID,FULL_COLLATION_NAME,CHARACTER_SET_NAME"
    b" FROM information_schema.COLLATION_CHARACTER_SET_APPLICABILITY"
)
_NOT_ALLOWED = 1227
_NOT_ROLLED_BACK = 1196
NEUTRAL: Final = b"information_schema"
_ITS_NAME = frozenset({"DATABASE", "SCHEMA"})
"""The functions that return the default database."""
_NEUTRAL_NAMES = (
    b"SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA='information_schema'"
)
FOREVER: Final = b"1073741824"
"""Of innodb_lock_wait_timeout."""
_GUARD: Final = b"SAVEPOINT mtsd_guard"
STATEMENTS_READ = b"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"
"""Before a transaction with statements: under READ COMMITTED they could read different rows than
on the source."""
_AUTOCOMMIT = b"SET @@session.autocommit=1"
_GREATEST_PACKET = 1 << 30
"""The largest max_allowed_packet of any server, in bytes."""


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """What a session is opened with."""

    binary_log: bool
    """Whether the session's changes are written to the target's own binlog."""
    sql_mode: bytes = b"0"
    """The SQL mode between statements of the source, as an expression."""
    source: Flavour | None = None
    """The family of the source; None if it is the target's."""
    rows_as_sql: bool = False
    """Whether rows are applied as SQL, which may cascade."""


class TargetSession:
    """One session on the target, on which groups are applied one transaction after another.

    Every method raises ServerError after a ROLLBACK if the server returns an error, and
    ConnectionLostError if it is unknown what has become of the transaction.
    """

    def __init__(
        self,
        connection: Connection,
        settings: SessionSettings,
        traits: ServerTraits,
        reached: Reached,
    ) -> None:
        self.connection = connection
        self.traits = traits
        self._settings = settings
        self._reached = reached
        self._state = pinned(traits.server, connection.thread_id)
        self._state[b"sql_mode"] = settings.sql_mode
        if settings.rows_as_sql and traits.loses_cascade_errors:
            # A deadlock is found out (see `guard`), but nothing tells of a wait that was too long.
            self._state[b"innodb_lock_wait_timeout"] = FOREVER
        # Only definitions have it in their events: others run with the target's, as in a replica.
        if TIMESTAMP_DEFAULTS in self._state:
            self._state[TIMESTAMP_DEFAULTS] = b"%d" % traits.explicit_defaults_for_timestamp
        self._reset = changes({}, without_settled(self._state))
        self._lock = b""
        self._collations: dict[int, Collation] = {}
        self.branch: XaXid | None = None
        """The branch of an XA transaction that is open."""
        self._left: tuple[dict[bytes, bytes], Sequence[Satellite]] | None = None
        """The state and satellites of a statement after which nothing could be set yet."""
        self._is_guarded = False
        """Whether a savepoint shows that the open transaction is still the one that was begun."""
        self.limits_lock_waits = False
        """Whether `limit_lock_waits` has set a limit."""
        self.changed_rows = 0
        """How many rows the statements have changed since somebody set it to 0."""

    @property
    def is_logged(self) -> bool:
        """Whether the session's changes are written to the target's own binlog."""
        return self.traits.log_bin and self._settings.binary_log

    @classmethod
    async def open(
        cls, endpoint: Endpoint, settings: SessionSettings, *, reached: Reached = nothing
    ) -> "TargetSession":
        """Connect and pin the session's state."""
        await reached(FaultPoint.BEFORE_CONNECT_TARGET)
        connection = await Connection.open(endpoint)
        try:
            async with connection.answering():
                traits = await read_traits(connection)
                session = cls(connection, settings, traits, reached)
                await session._pin()
        except BaseException:
            connection.close()
            raise
        return session

    async def _pin(self) -> None:
        sets = [changes({}, self._state), _AUTOCOMMIT]
        if not self._settings.binary_log:
            sets.append(b"SET @@session.sql_log_bin=0")
        await self.connection.run(b";".join(sets), len(sets))

    def keep_lock(self, lock: str) -> None:
        """Take that lock of the session again if a statement of the source has released it.

        RELEASE_ALL_LOCKS() may be in a function that a statement calls.
        """
        self._lock = b"DO IF(IS_USED_LOCK('%b')<=>%d,0,GET_LOCK('%b',0))" % (
            lock.encode(),
            self.connection.thread_id,
            lock.encode(),
        )

    def refuse_too_large(self, steps: Sequence[Step]) -> None:
        """Raise ServerError 1153 if the target does not accept the text of a statement."""
        limit = self.traits.max_allowed_packet
        for step in steps:
            if isinstance(step, Statement) and len(step.query.statement) >= limit:
                raise _too_large(len(step.query.statement), limit)

    async def settle(self, steps: Sequence[Step]) -> None:
        """Set what a transaction of these steps needs and cannot set itself; none may be open."""
        said = (
            step.query.context.explicit_defaults_for_timestamp
            for step in steps
            if isinstance(step, Statement)
        )
        await self.settle_timestamps(next((each for each in said if each is not None), None))

    async def settle_timestamps(self, explicit: bool | None) -> None:
        """Set the explicit_defaults_for_timestamp of a transaction's statements, if it is known.

        A MySQL does not set it inside a transaction; none may be open.
        """
        if explicit is None or self.traits.server.flavour is not Flavour.MYSQL:
            return
        settled = {**self._state, TIMESTAMP_DEFAULTS: b"%d" % explicit}
        if settled != self._state:
            await self.connection.run(changes(self._state, settled), 1)
            self._state = settled

    async def begin_statements(self) -> None:
        """Begin a transaction of statements, which read as they did on the source."""
        await self.connection.run(STATEMENTS_READ + b";BEGIN", 2)
        await self.guard()

    async def guard(self) -> None:
        """Let `unguard` find out whether the transaction, or branch, that has begun is lost.

        A target that loses errors inside cascades rolls it back and goes on with another one (see
        docs/foreign-keys.md). Rows in BINLOG statements lose no errors.
        """
        if guarding := self.guarding():
            await self.connection.run(guarding[0], 1)

    def guarding(self) -> list[bytes]:
        """Return the statement of `guard`, to be sent after BEGIN; nothing if none is needed."""
        if not self.traits.loses_cascade_errors:
            return []
        self._is_guarded = True
        return [_GUARD]

    async def unguard(self) -> None:
        """Raise ServerError 1213 if the transaction that was guarded is lost."""
        if not self._is_guarded:
            return
        self._is_guarded = False
        try:
            await self.connection.run(b"RELEASE " + _GUARD, 1)
        except ServerError as error:
            raise _lost(error) from error

    async def commit(self, record: Sequence[bytes]) -> None:
        """Run the statements of `record` and commit, in one packet."""
        await self.unguard()
        await self._commit([*record, b"COMMIT"])

    async def commit_left(self, record: Sequence[bytes]) -> None:
        """As `commit`, after returning from the state that statements have left."""
        if self._left is None:
            raise RuntimeError("no statement has left its state")
        back = self._returning(*self._left)
        release = [b"RELEASE " + _GUARD] if self._is_guarded else []
        try:
            await self._commit([*release, *back, *record, b"COMMIT"])
        except ServerError as error:
            raise _lost(error) if release else error from error
        self._is_guarded = False
        self._left = None

    async def _commit(self, statements: Sequence[bytes]) -> None:
        await self._reached(FaultPoint.BEFORE_COMMIT)
        self.connection.send(b";".join(statements))
        await self._reached(FaultPoint.COMMIT_SENT)
        try:
            await self.connection.receive(len(statements))
        except ServerError as error:
            if error.number == ROW_GONE:
                raise _row_gone(error) from error
            raise
        await self._reached(FaultPoint.AFTER_COMMIT)

    async def record(self, statements: Sequence[bytes]) -> None:
        """Commit mtsd's own statements in a transaction of their own, `patiently`."""
        whole = [b"BEGIN", *statements, b"COMMIT"]
        await patiently(self.connection, lambda: self._commit(whole), statements[0])

    async def undo(self, error: ServerError, *, unsure: bool = False) -> None:
        """Roll back after an error; the error gets its warnings, and whether any changes remain.

        If non-transactional tables have changed, the server warns about it: after the error
        if the statement was a transaction by itself, else after the ROLLBACK. `unsure` is what
        to assume if these warnings cannot be read because that was interrupted too.
        """
        found: list[tuple[int, str]] = []
        certain = await self._read_warnings(found)
        try:
            await self._roll_back()
        except ServerError:
            certain = False
            await self._roll_back()
        # Only now may anything else run, which would leave other warnings.
        certain = await self._read_warnings(found) and certain
        await self.clean_left()
        if any(number == _NOT_ROLLED_BACK for number, _ in found) or (unsure and not certain):
            error.leaves_changes = True
        error.warnings = error.warnings or "; ".join(text for _, text in found)

    async def rollback(self) -> None:
        """Roll back the open transaction or branch; the session's lock and state remain."""
        await self._roll_back()
        await self.clean_left()

    async def _roll_back(self) -> None:
        self._is_guarded = False
        if self.branch is None:
            await self.connection.run(b"ROLLBACK", 1)
            return
        branch, self.branch = self.branch, None
        await roll_back(self.connection, branch)

    async def run_statement(
        self,
        statement: Statement,
        text: bytes,
        *,
        then: Callable[[], Awaitable[None]] | None = None,
        leaves_state: bool = False,
        file: AsyncIterator[bytes] | None = None,
    ) -> Loaded | None:
        """Run `text`, which replaces a statement's own text, in its session state and database.

        The state is reset afterwards, even after an error; before that, `then` is awaited. With
        `leaves_state` it is reset only by `clean_left`, or when the transaction is rolled back. A
        statement that failed on the source has to fail with the same error number here; other
        errors are raised. `file` is that of a LOAD DATA, whose counts are returned.
        """
        statement = self.translated(statement)
        query = statement.query
        if len(text) >= self.traits.max_allowed_packet:
            raise _too_large(len(text), self.traits.max_allowed_packet)
        lacking = await self._use(statement)
        collations = await self.known_collations(statement.satellites)
        wanted = self.wanted_state(statement, lacking=lacking)
        state = changes(self._state, wanted)
        before = b";".join((before_statement(statement.satellites, collations), state))
        if len(before) >= self.traits.max_allowed_packet:
            raise _too_large(len(before), self.traits.max_allowed_packet)
        await self.connection.run(before, 2)
        loaded = None
        try:
            await self._reached(FaultPoint.BEFORE_STATEMENT)
            if file is not None:
                loaded = await self.connection.load(text, self._passing(file))
                self.changed_rows += loaded.records
                if loaded.skipped or loaded.deleted:
                    await self._check_loaded(statement, loaded)
                if loaded.warnings:
                    await self._check_results()
            else:
                self.connection.ask(text)
                await self._reached(FaultPoint.STATEMENT_SENT)
                await self.connection.results()
                self.changed_rows += self.connection.affected_rows
                # After CREATE TABLE … START TRANSACTION, SHOW WARNINGS is refused (error 3977).
                creates = statement.kind is StatementKind.CREATE_SELECT
                if self.connection.warnings and not creates:
                    await self._check_results()
            if then is not None:
                await then()
        except ServerError as error:
            expected = error.number == query.error_code
            if not expected:
                await self.undo(error)
            elif then is not None:
                try:
                    await then()
                except ServerError as interrupted:
                    await self.undo(interrupted)
                    await self._clean(wanted, statement.satellites)
                    raise
            await self._clean(wanted, statement.satellites)
            if expected:
                return loaded
            if lacking and NEUTRAL.decode() in error.text:
                raise _unknown_database(query.database) from error
            raise
        self._left = wanted, statement.satellites
        if not leaves_state:
            await self.clean_left()
        if query.error_code:
            raise ServerError(
                query.error_code,
                "",
                f"the statement failed with this error on the source but succeeded here:"
                f" {query.statement[:200]!r}",
            )
        return loaded

    @property
    def own_state(self) -> dict[bytes, bytes]:
        """The session's state between statements of the source."""
        return self._state

    def translated(self, statement: Statement) -> Statement:
        """Return a statement of the source as one of the target. Raises NotSupportedError."""
        if self._settings.source is not None:
            statement = statement_of(statement, self._settings.source, self.traits.server)
        self._refuse_timestamps(statement.query.context)
        return statement

    def wanted_state(self, statement: Statement, *, lacking: bool = False) -> dict[bytes, bytes]:
        """Return the state that a translated statement runs in, in its database.

        `lacking`: the target does not have that database.
        """
        query = statement.query
        wanted = statement_state(query, self.traits.server, self._state)
        # Each default database sets it; without one it is the server's.
        if query.context.collation_database is not None:
            wanted[b"collation_database"] = collation(query.context.collation_database)
        elif lacking or not query.database:
            wanted[b"collation_database"] = wanted[b"collation_server"]
        if statement.kind is StatementKind.EVENT_DDL and query.context.time_zone is None:
            # An event keeps the time zone of the session that creates it.
            wanted[b"time_zone"] = b"DEFAULT"
        if self.traits.loses_cascade_errors:
            # As with rows that are applied as SQL.
            wanted[b"innodb_lock_wait_timeout"] = FOREVER
        return wanted

    def leave_state(self, state: dict[bytes, bytes], satellites: Sequence[Satellite]) -> None:
        """Note that statements will leave the session in that state, or on the way to it."""
        self._left = state, satellites

    def _refuse_timestamps(self, context: SessionContext) -> None:
        said = context.explicit_defaults_for_timestamp
        own = self.traits.explicit_defaults_for_timestamp
        if TIMESTAMP_DEFAULTS not in self._state and said not in {None, own}:
            value = "ON" if said else "OFF"
            raise NotSupportedError(
                f"a statement that ran on the source with explicit_defaults_for_timestamp = {value}"
                ", which no session can set on the target, an early release of its version. Start"
                " the target with that value, or upgrade it"
            )

    async def _passing(self, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Yield the pieces of a file that the target has asked for, with a fault point."""
        await self._reached(FaultPoint.STATEMENT_SENT)
        async for piece in pieces:
            yield piece

    async def _check_loaded(self, statement: Statement, loaded: Loaded) -> None:
        """Raise ServerError if a LOAD DATA has left out or replaced rows, unlike on the source."""
        if statement.file is None or statement.file.duplicates is not Duplicates.ERROR:
            return
        for level, number, text in await self.connection.query(b"SHOW WARNINGS"):
            if level != "Note" and loaded.skipped:
                raise ServerError(
                    literals.number(number),
                    "",
                    f"{text!s}: {loaded.skipped} of {loaded.records} rows of a LOAD DATA that"
                    " succeeded on the source would be left out",
                )
        raise ServerError(
            ER.DUP_ENTRY,
            "23000",
            f"{loaded.deleted + loaded.skipped} of {loaded.records} rows of a LOAD DATA that"
            " succeeded on the source have keys that exist on the target",
        )

    async def _check_results(self) -> None:
        """Raise ServerError if the result of a function was too large for the target.

        Outside of strict mode it is NULL then, with a warning. A server's own replica has a limit
        of its own (replica_max_allowed_packet), of 1 GiB. What is larger than that cannot have been
        smaller than the limit of the source: it is NULL on both.
        """
        if self.traits.max_allowed_packet >= _GREATEST_PACKET:
            return
        for _, number, text in await self.connection.query(b"SHOW WARNINGS"):
            if number == ER.WARN_ALLOWED_PACKET_OVERFLOWED:
                raise ServerError(
                    ER.WARN_ALLOWED_PACKET_OVERFLOWED,
                    "HY000",
                    f"{text!s}: raise max_allowed_packet on the target, to that of the source or"
                    " more. If the source truncated it too, which it does not log, only 1 GiB"
                    " (max_allowed_packet = 1073741824), the limit of a server's own replica, lets"
                    " mtsd go on",
                )

    async def known_collations(self, satellites: Sequence[Satellite]) -> Mapping[int, Collation]:
        """Return the target's collations by number, if these satellites need any."""
        if not self._collations and needs_collations(satellites):
            mariadb = self.traits.server.flavour is Flavour.MARIADB
            rows = await self.connection.query(_MARIADB_COLLATIONS if mariadb else _COLLATIONS)
            self._collations = {
                literals.number(id_): Collation(str(name).encode(), str(character_set).encode())
                for id_, name, character_set in rows
            }
        return self._collations

    async def clean_left(self) -> None:
        """Return from the state that a statement was to leave, if one has."""
        left, self._left = self._left, None
        if left is not None:
            await self._clean(*left)

    async def _clean(self, state: dict[bytes, bytes], satellites: Sequence[Satellite]) -> None:
        """Return from a statement's state to the pinned one."""
        sets = self._returning(state, satellites)
        await self.connection.run(b";".join(sets), len(sets))

    def _returning(self, state: dict[bytes, bytes], satellites: Sequence[Satellite]) -> list[bytes]:
        """Return the statements of `_clean`.

        Everything is set: a function or trigger may have changed any of the variables.
        """
        sets = [self._reset]
        if back := changes(only_settled(state), only_settled(self._state)):
            sets.append(back)
        if self._lock:
            sets.append(self._lock)
        if forgotten := after_statement(satellites):
            sets.append(forgotten)
        return sets

    async def drop_temporary(self, thread_id: int, tables: Collection[TableName]) -> None:
        """Drop temporary tables that statements of this thread of the source have created."""
        names = (literals.shown_name(a) + "." + literals.shown_name(b) for a, b in sorted(tables))
        dropped = ",".join(names).encode("utf-8", "surrogateescape")
        own = self._state[b"pseudo_thread_id"]
        await self.connection.run(
            b"SET @@session.pseudo_thread_id=%d;DROP TEMPORARY TABLE IF EXISTS %b;"
            b"SET @@session.pseudo_thread_id=%b" % (thread_id, dropped, own),
            3,
        )

    @property
    def lock_wait_s(self) -> bytes:
        """How long the session usually waits for a lock of a row, in seconds."""
        return self._state[b"innodb_lock_wait_timeout"]

    async def limit_lock_waits(self, seconds: int | None) -> None:
        """Let rows wait for a lock at most so long; None: as long as is pinned."""
        wait_s = self.lock_wait_s if seconds is None else b"%d" % seconds
        self.limits_lock_waits = seconds is not None
        await self.connection.run(b"SET @@session.innodb_lock_wait_timeout=%b" % wait_s, 1)

    async def set_gtid(self, gtid: str) -> None:
        """Set the GTID of the next transaction; "" returns to automatic ones."""
        if self.traits.gtid_mode:
            await self.connection.run(next_gtid(gtid), 1)

    async def log_position(self) -> tuple[str, int]:
        """Return the end of the target's own binlog, if it contains all that the session does.

        ("", 0) if it does not, or if the user may not query it.
        """
        if not self.is_logged:
            return "", 0
        try:
            rows = await self.connection.query(binlog_status(self.traits.version))
        except ServerError as error:
            if error.number != _NOT_ALLOWED:
                raise
            return "", 0
        file, offset, only, ignored, *_ = rows[0]
        return ("", 0) if only or ignored else (str(file), literals.number(offset))

    async def _read_warnings(self, found: list[tuple[int, str]]) -> bool:
        """Add number and text of each warning of the last statement; return whether that worked."""
        try:
            rows = await self.connection.query(b"SHOW WARNINGS")
        except ServerError:
            return False
        for level, number, text in rows:
            each = literals.number(number), f"{level!s} {number!s}: {text!s}"
            if each not in found:
                found.append(each)
        return True

    async def _use(self, statement: Statement) -> bool:
        """Make the statement's database the default one; return whether the target lacks it.

        A server has no way to unset a default database. So a statement without one runs in
        information_schema, where nothing can be created, changed or dropped: an unqualified name
        cannot refer to the database of an earlier statement. The same applies to a statement whose
        database does not exist, as long as its names match nothing in information_schema.
        Raises ServerError 1049 if they might.
        """
        query = statement.query
        if query.database:
            if self.traits.server.flavour is Flavour.MARIADB:
                # Otherwise it keeps the collation that the database had before an ALTER DATABASE in
                # another session.
                await self.connection.command(_INIT_DB, NEUTRAL, answer=True)
            try:
                wanted = query.database.encode("utf-8", "surrogateescape")
                await self.connection.command(_INIT_DB, wanted, answer=True)
            except ServerError as error:
                if error.number != ER.BAD_DB_ERROR:
                    raise
            else:
                return False
            # With SUPPRESS_USE the database is what the statement creates or drops, or all of its
            # names are qualified.
            if not statement.flags & SUPPRESS_USE:
                rows = await self.connection.query(_NEUTRAL_NAMES)
                neutral = {str(name).upper() for (name,) in rows} | _ITS_NAME
                if not neutral.isdisjoint(names(query.statement, query.context)):
                    raise _unknown_database(query.database)
        await self.connection.command(_INIT_DB, NEUTRAL, answer=True)
        return bool(query.database)


def _too_large(length: int, limit: int) -> ServerError:
    # The server would close the connection, which looks like a lost one.
    return ServerError(
        ER.NET_PACKET_TOO_LARGE,
        "08S01",
        f"a statement of {length} bytes, its user variables included, is more than the target"
        f" accepts ({limit}): raise max_allowed_packet on the target",
    )


def _lost(error: ServerError) -> ServerError:
    """Return what an error of a transaction that was guarded means."""
    if error.number != ER.SP_DOES_NOT_EXIST:
        return error
    lost = ServerError(
        ER.LOCK_DEADLOCK,
        "40001",
        "a deadlock inside the cascade of a foreign key, of which the target says nothing"
        " because innodb_native_foreign_keys is OFF",
    )
    lost.server = error.server
    return lost


def _row_gone(error: ServerError) -> ServerError:
    return ServerError(
        error.number,
        error.sqlstate,
        "mtsd's own row for this worker in slave_worker_info is gone, so nothing would show that"
        " the transaction has been applied. If a view, trigger or routine of the target that a"
        " statement uses deletes it, drop that, or give the position tables another [target]"
        " schema; if somebody has deleted it, say where to continue with mtsd position set",
    )


def _unknown_database(database: str) -> ServerError:
    return ServerError(ER.BAD_DB_ERROR, "42000", f"Unknown database '{database}'")


def next_gtid(gtid: str) -> bytes:
    """Return the statement that sets the next transaction's GTID; "": an automatic one."""
    return b"SET @@session.gtid_next=" + literals.text(gtid or "AUTOMATIC")
