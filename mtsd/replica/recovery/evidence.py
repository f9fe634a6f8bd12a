"""Whether an in-doubt group was applied: from what the target shows, never by trying it again.

`mtsd.replica.recovery.verdict` decides what counts as evidence; in the target's own binlog, the
group's statements have a thread id that nothing else has.
"""

from collections.abc import AsyncIterator
from dataclasses import replace

from mtsd.apply.branches.others_prepared import others_prepared
from mtsd.apply.position.in_doubt_table import IN_DOUBT_TABLE, InDoubt, values_of
from mtsd.apply.position.position_tables import PositionTables
from mtsd.apply.position.worker_info import WORKERS_TABLE, worker_of
from mtsd.apply.session.xa import prepared_xids, statement
from mtsd.apply.tables.table_engines import TableEngines
from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.events.event_reader import EventReader
from mtsd.binlog.events.format_description import parse_format_description
from mtsd.binlog.events.query import parse_query
from mtsd.binlog.events.rows import INSERTS
from mtsd.binlog.events.table_map import parse_table_map
from mtsd.binlog.sql.statement import classify
from mtsd.binlog.sql.statement_secrets import excerpt
from mtsd.model.error_numbers import ER, NOT_ALLOWED
from mtsd.model.errors import BinlogError, NeedsPersonError, ServerError
from mtsd.model.outcome.command import command
from mtsd.model.outcome.reason import Refused
from mtsd.model.position import FIRST_EVENT, Position
from mtsd.model.server import flavour_of, version_of
from mtsd.model.step import StatementKind
from mtsd.replica.recovery.left_prepared import xid_in_doubt
from mtsd.replica.recovery.verdict import (
    Completed,
    Logged,
    Verdict,
    after_a_crash,
    drops_all,
    in_another_log,
    judge,
    judge_branch,
    judge_logged,
    without_evidence,
)
from mtsd.source.binlog_files import NO_EVENT, BinlogFileReader, list_files
from mtsd.source.source_state import BinlogFile
from mtsd.wire.binlog_status import has_executed
from mtsd.wire.connection import Connection
from mtsd.wire.endpoint import Endpoint

_OF_RECOVERY = 0
"""The thread id under which a MariaDB logs what it completes when it recovers from a crash."""
_REFUSED = NOT_ALLOWED | {ER.OPTION_PREVENTS_STATEMENT}
"""Errors of a user who lacks the privilege."""


async def verdict(connection: Connection, tables: PositionTables, doubt: InDoubt) -> Verdict:
    """Determine what became of an in-doubt group, once nothing of the run that began it is left.

    `tables` are those of its channel.

    What a streamed one has prepared is rolled back, unless a GTID shows that it was applied, or
    its commit was recorded: then it is committed.

    Only APPLIED, NOT_APPLIED or SHOWS_ITSELF. Raises NeedsPersonError if there is no evidence
    either way.
    """
    executed = bool(doubt.evidence) and await has_executed(connection, doubt.evidence)
    judgement = _required(
        await in_logs(connection, tables, doubt, judge(doubt, executed=executed, logs=None))
    )
    if judgement in {Verdict.PREPARED, Verdict.COMPLETED}:
        prepared = await _is_prepared(connection, tables, doubt)
        branch = judge_branch(doubt, judgement, prepared=prepared)
        if branch.verb:
            await connection.query(statement(branch.verb, xid_in_doubt(doubt)))
        return branch.verdict
    return judgement


async def in_logs(
    connection: Connection, tables: PositionTables, doubt: InDoubt, verdict: Verdict | Refused
) -> Verdict | Refused:
    """Return what a verdict comes to if the target's own binlog decides; others are returned.

    Nothing is changed. Raises NeedsPersonError if the binlog may not be read.
    """
    if verdict is Verdict.NOT_BEGUN:
        run_on = await _has_run_on(connection.endpoint, doubt)
        return Verdict.NOT_APPLIED if run_on else without_evidence(doubt)
    if verdict is Verdict.LOGGED:
        logged = await _logged(connection.endpoint, tables, doubt)
        if isinstance(logged, Refused):
            return logged
        server = connection.server_version
        verdict = judge_logged(doubt, logged, flavour_of(server), version_of(server))
    if verdict is Verdict.NOT_COMMITTED:
        if not await _has_run_on(connection.endpoint, doubt) and await _may_remain(
            connection, doubt
        ):
            return after_a_crash(doubt)
        return Verdict.NOT_APPLIED
    return verdict


async def _may_remain(connection: Connection, doubt: InDoubt) -> bool:
    databases = doubt.databases.split(",")
    return await TableEngines().may_define(connection, doubt.statement, databases)


def _required(verdict: Verdict | Refused) -> Verdict:
    if isinstance(verdict, Refused):
        raise NeedsPersonError(str(verdict))
    return verdict


async def _is_prepared(connection: Connection, tables: PositionTables, doubt: InDoubt) -> bool:
    """Return whether the target has prepared the transaction, and not for another channel."""
    xid = xid_in_doubt(doubt)
    try:
        if xid not in await prepared_xids(connection):
            return False
    except ServerError as error:
        if error.number != ER.XAER_RMERR:
            raise
        raise NeedsPersonError(
            f"group {doubt.number}{doubt.end.as_ending}: what the target has prepared shows"
            f" whether it was applied, but {connection.endpoint.user!r} may not list that"
            f" ({error}): GRANT XA_RECOVER_ADMIN on the target"
        ) from error
    others = await others_prepared(connection, tables)
    if (other := others.in_doubt.get(xid)) is not None:
        raise NeedsPersonError(
            f"group {doubt.number}{doubt.end.as_ending}: the target has prepared the transaction"
            f" {xid}, and it may be this channel's or that of {other!r}, which is in doubt about"
            " one with the same xid. Start that channel first; or look at the changes on the target"
            " and say what you found:"
            f" {command('resolve', '--group', str(doubt.number), '--applied')}, or --not-applied"
        )
    return xid not in others.prepared


async def _has_run_on(endpoint: Endpoint, doubt: InDoubt) -> bool:
    """Return whether the target has not been restarted since the record was written.

    A server begins a binlog file when it starts, and only that file's description has a creation
    time. Also False if the user may not read the binlog, or it is purged.
    """
    try:
        files = await list_files(endpoint)
        names = [file.name for file in files]
        if doubt.target_file not in names:
            return False
        for file in files[names.index(doubt.target_file) + 1 :]:
            if await _begins_with_a_start(endpoint, file):
                return False
    except ServerError as error:
        if error.number not in _REFUSED:
            raise
        return False
    return True


async def _begins_with_a_start(endpoint: Endpoint, file: BinlogFile) -> bool:
    reader = await BinlogFileReader.open(endpoint, file)
    try:
        while events := await reader.read():
            for raw in events:
                if raw[4] == EventType.FORMAT_DESCRIPTION_EVENT:
                    return _is_of_a_start(raw)
    finally:
        reader.close()
    return True


def _is_of_a_start(format_description: bytes) -> bool:
    return parse_format_description(format_description).created != 0


async def _logged(endpoint: Endpoint, tables: PositionTables, doubt: InDoubt) -> Logged | Refused:
    """Read the target's binlog, starting where it was when the record was written.

    What follows there is the record itself, or this is another log under the same name. Raises
    NeedsPersonError if it may not be read.
    """
    record = RecordInLog(tables, doubt)
    restarted = False
    own: list[bytes] = []
    rows = RowsOfRun(tables, doubt)
    recovered: list[Completed] = []
    try:
        files = await list_files(endpoint)
        names = [file.name for file in files]
        judgement = judge(doubt, executed=False, logs=names)
        if isinstance(judgement, Refused):
            return judgement
        for file in files[names.index(doubt.target_file) :]:
            first = file.name == doubt.target_file
            async for event in _events(
                endpoint, file, doubt.target_offset if first else FIRST_EVENT
            ):
                if event[4] == EventType.FORMAT_DESCRIPTION_EVENT:
                    restarted = restarted or (not first and _is_of_a_start(event))
                record.see(event)
                # After a restart, another session may have its id.
                if doubt.is_of_run and not restarted:
                    rows.see(event)
                elif not restarted and is_statement_of(event, doubt.thread):
                    own.append(parse_query(event).statement)
                if restarted and is_statement_of(event, _OF_RECOVERY):
                    query = parse_query(event)
                    recovered.append(Completed(query.database, excerpt(query)))
    except BinlogError:
        # In the middle of an event.
        return in_another_log(doubt)
    except ServerError as error:
        if error.number == NO_EVENT:
            return in_another_log(doubt)
        if error.number not in _REFUSED:
            raise
        raise NeedsPersonError(
            f"group {doubt.number}{doubt.end.as_ending}: the target's binlog, starting at"
            f" {doubt.target_file}:{doubt.target_offset}, shows whether it was applied, but"
            f" {endpoint.user!r} may not read it ({error}): GRANT REPLICATION SLAVE, REPLICATION"
            " CLIENT on the target"
        ) from error
    if not record.seen:
        return in_another_log(doubt)
    begun = rows.unsettled if doubt.is_of_run else drops_all(doubt.statement, own)
    return Logged(begun, restarted, tuple(recovered))


class RecordInLog:
    """Looks for a record of slave_in_doubt among the events of a binlog."""

    def __init__(self, tables: PositionTables, doubt: InDoubt) -> None:
        self._values = values_of(tables.doubts.insert(replace(doubt, resolution="")))
        self._key = tables.doubts.key(doubt)
        self._is_its_table = False
        self.seen = False

    def see(self, event: bytes) -> None:
        """Look at the next event, which has no checksum."""
        code = event[4]
        if code == EventType.TABLE_MAP_EVENT:
            self._is_its_table = IN_DOUBT_TABLE in event
        elif code == EventType.QUERY_EVENT:
            self.seen = self.seen or self._values in event
        elif self._is_its_table and code in INSERTS:
            self.seen = self.seen or self._key in event


class RowsOfRun:
    """Looks for rows of the thread of a run that have no place in its worker's row.

    A server logs the rows of tables without transactions before the others of a statement, in a
    transaction of their own. If the statement fails, or the server is killed in it, only they are
    there. A place counts only if the same thread has written it, in the row of this worker:
    another channel has a worker of the same number, and a session that applies statements may have
    the same thread id.
    """

    def __init__(self, tables: PositionTables, doubt: InDoubt) -> None:
        self._schema = tables.schema.lower()
        self._thread = doubt.thread
        self._worker = doubt.worker_id
        self._is_own = False
        self._is_of_workers = False
        """Whether the rows that come next are of the workers' table."""
        self.unsettled = False
        """Whether the last ones have no place there."""

    def see(self, event: bytes) -> None:
        """Look at the next event, which has no checksum."""
        code = event[4]
        if code == EventType.QUERY_EVENT:
            self._is_own = parse_query(event).thread_id == self._thread
        elif code == EventType.TABLE_MAP_EVENT:
            is_position = parse_table_map(event).database.lower() == self._schema
            self._is_of_workers = is_position and WORKERS_TABLE in event
            self.unsettled = self.unsettled or (self._is_own and not is_position)
        elif code == EventType.UPDATE_ROWS_EVENT and self._is_of_workers and self._is_own:
            self.unsettled = self.unsettled and worker_of(event) != self._worker


async def _events(endpoint: Endpoint, file: BinlogFile, offset: int) -> AsyncIterator[bytes]:
    file_reader = await BinlogFileReader.open(endpoint, file, offset=offset)
    reader = EventReader(Position(file.name, offset))
    try:
        while events := await file_reader.read():
            for raw in events:
                event = reader.read(raw)
                compressed = event[4] == EventType.TRANSACTION_PAYLOAD_EVENT
                for inner in reader.inner(event) if compressed else (event,):
                    yield inner
    finally:
        file_reader.close()


def is_statement_of(event: bytes, thread: int) -> bool:
    """Return whether an event, without its checksum, contains a statement of that thread.

    Statements that only begin or end a transaction do not count. Nor does the record of a group in
    doubt: a target that logs statements has it under the same thread id, if the session has to
    keep its own.
    """
    if event[4] != EventType.QUERY_EVENT:
        return False
    query = parse_query(event)
    if query.thread_id != thread or IN_DOUBT_TABLE in query.statement:
        return False
    return classify(query.text) not in _BRACKETS


_BRACKETS = frozenset({StatementKind.BEGIN, StatementKind.COMMIT, StatementKind.ROLLBACK})
