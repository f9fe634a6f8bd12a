"""Whether a group in doubt was applied: by what the target shows, never by trying it again.

In this order: what a person has said (`mtsd resolve`); the GTID that it ran under; the target's
own binlog, from where it stood before, in which its statements have a thread id that nothing else
has; and where there is neither, the error by which a definition tells that it has run before.

A group on tables without transactions is settled by the packet that applies it, so one that is in
doubt has failed, was cut off, or was never begun. Only that last can be told: where what it does is
logged, its first change uses up its GTID; unless the server itself was killed before it logged.
"""

import enum

from mtsd.binlog.event_type import EventType
from mtsd.binlog.format_description import parse_format_description
from mtsd.binlog.payload import payload_events
from mtsd.binlog.query import parse_query
from mtsd.binlog.repeatable import errors_of_a_second_time
from mtsd.binlog.statement import classify
from mtsd.model.errors import NeedsPersonError, ServerError
from mtsd.model.group import GroupKind
from mtsd.model.step import StatementKind
from mtsd.replica.report import half_applied
from mtsd.source.binlog_files import BinlogFile, BinlogFileReader, list_files
from mtsd.target.position_tables import InDoubt
from mtsd.wire.connection import Connection
from mtsd.wire.endpoint import Endpoint

APPLIED = "applied"
NOT_APPLIED = "not applied"
_FIRST_EVENT = 4
_REFUSED = frozenset({1044, 1045, 1142, 1227, 1290})
"""Errors of a user who may not do that."""


class Verdict(enum.Enum):
    """What became of a group in doubt."""

    APPLIED = "applied"
    NOT_APPLIED = "not applied"
    SHOWS_ITSELF = "shows itself"
    """To be run: if it has run before, it fails with an error that says so."""


async def verdict(connection: Connection, doubt: InDoubt) -> Verdict:
    """Tell what became of a group in doubt, when nothing of the run that began it is left.

    Raises NeedsPersonError where there is no evidence either way.
    """
    if doubt.resolution:
        return Verdict(doubt.resolution)
    executed = False
    if doubt.evidence:
        rows = await connection.query(
            b"SELECT GTID_SUBSET('%b', @@global.gtid_executed)" % doubt.evidence.encode("ascii")
        )
        executed = rows[0][0] == 1
    if doubt.kind == GroupKind.NON_TRANSACTIONAL.value:
        if (
            doubt.evidence
            and doubt.target_file
            and not executed
            and await _has_run_on(connection.endpoint, doubt)
        ):
            return Verdict.NOT_APPLIED
        raise NeedsPersonError(
            f"{_where(doubt)} changes tables without transactions and has failed or was cut off:"
            f" a part of it may have been applied. {half_applied(doubt.number)}, then start again"
        )
    if doubt.evidence:
        return Verdict.APPLIED if executed else Verdict.NOT_APPLIED
    if doubt.target_file:
        logged = await _is_logged(connection.endpoint, doubt)
        return Verdict.APPLIED if logged else Verdict.NOT_APPLIED
    if errors_of_a_second_time(doubt.statement) is not None:
        return Verdict.SHOWS_ITSELF
    raise NeedsPersonError(
        f"{_where(doubt)} was being applied when mtsd or the target was killed, and the target has"
        f" neither GTIDs nor a binlog to tell whether it happened: {_excerpt(doubt)}. Look,"
        f" and {_say(doubt)}. With gtid_mode = ON on the target mtsd can tell by itself"
    )


async def _has_run_on(endpoint: Endpoint, doubt: InDoubt) -> bool:
    """Tell whether the target has not been started anew since the record was written.

    A server begins a binlog file when it starts, and only that one's description has a time of
    creation. False too where the user may not read the binlog, or it is purged.
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
                    return parse_format_description(raw).created != 0
    finally:
        reader.close()
    return True


async def _is_logged(endpoint: Endpoint, doubt: InDoubt) -> bool:
    """Tell whether a statement of the group's thread is in the target's binlog."""
    try:
        files = await list_files(endpoint)
        names = [file.name for file in files]
        if doubt.target_file not in names:
            raise NeedsPersonError(
                f"{_where(doubt)} was being applied when mtsd or the target was killed, and the"
                f" target has purged {doubt.target_file}, which would tell whether it happened:"
                f" {_excerpt(doubt)}. Look, and {_say(doubt)}"
            )
        for file in files[names.index(doubt.target_file) :]:
            first = file.name == doubt.target_file
            offset = doubt.target_offset if first else _FIRST_EVENT
            if await _is_in(endpoint, file, offset, doubt.thread):
                return True
    except ServerError as error:
        if error.number not in _REFUSED:
            raise
        raise NeedsPersonError(
            f"{_where(doubt)}: the target's binlog from {doubt.target_file}:{doubt.target_offset}"
            f" on tells whether it happened, and {endpoint.user!r} may not read it ({error}): GRANT"
            " REPLICATION SLAVE, REPLICATION CLIENT on the target"
        ) from error
    return False


async def _is_in(endpoint: Endpoint, file: BinlogFile, offset: int, thread: int) -> bool:
    reader = await BinlogFileReader.open(endpoint, file, offset=offset)
    checksum = 0
    try:
        while events := await reader.read():
            for raw in events:
                if raw[4] == EventType.FORMAT_DESCRIPTION_EVENT:
                    checksum = 4 if parse_format_description(raw).checksum_algorithm == 1 else 0
                elif is_statement_of(raw[: len(raw) - checksum], thread):
                    return True
    finally:
        reader.close()
    return False


def is_statement_of(event: bytes, thread: int) -> bool:
    """Tell whether an event, less its checksum, holds a statement of that thread.

    What only begins or ends a transaction is none.
    """
    if event[4] == EventType.TRANSACTION_PAYLOAD_EVENT:
        return any(is_statement_of(inner, thread) for inner in payload_events(event))
    if event[4] != EventType.QUERY_EVENT:
        return False
    query = parse_query(event)
    return query.thread_id == thread and classify(query.statement, query.context) not in _BRACKETS


_BRACKETS = frozenset({StatementKind.BEGIN, StatementKind.COMMIT, StatementKind.ROLLBACK})


def _where(doubt: InDoubt) -> str:
    return f"group {doubt.number}, ending at {doubt.end}, in databases {doubt.databases!r},"


def _excerpt(doubt: InDoubt) -> str:
    return repr(doubt.statement[:200].decode("utf-8", "replace"))


def _say(doubt: InDoubt) -> str:
    return (
        f"say what you found: mtsd resolve --group {doubt.number} --applied, or --not-applied, then"
        " start again"
    )
