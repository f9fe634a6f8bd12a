"""Queries a source for everything that decides whether a replica can read from it."""

import re
from dataclasses import replace

from mtsd.config.start import FilePosition, Latest, Start
from mtsd.model.error_numbers import ER, NOT_ALLOWED
from mtsd.model.errors import ServerError
from mtsd.model.gtid import GtidSet
from mtsd.model.low_water_mark import LowWaterMark
from mtsd.model.position import FIRST_EVENT, NOWHERE, Position
from mtsd.model.server import Flavour
from mtsd.source.binlog_files import read_begun
from mtsd.source.gtids_before import read_gtids_before
from mtsd.source.held_log import holds_its_log
from mtsd.source.place import starts_inside_group
from mtsd.source.source_state import BinlogFile, SourceState, mariadb_state
from mtsd.wire.binlog_status import binlog_status
from mtsd.wire.connection import Connection
from mtsd.wire.family import SERVERS
from mtsd.wire.traits import ServerTraits

_LONGEST_S = 60.0
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_OWNER = re.compile(r"#\d+")


async def read_source_state(
    connection: Connection,
    traits: ServerTraits,
    start: Start | None = None,
    *,
    file: str = "",
) -> SourceState:
    """Query a source, also about the place `start`, and what comes before `file`.

    For what a MySQL has executed before FILE:POS, the file is read up to there. Raises ServerError,
    ConnectionLostError, NeedsPersonError if the file cannot be read.
    """
    # Listing the files waits while many of them are being purged.
    async with connection.answering(_LONGEST_S):
        state = await _read(connection, traits, end=isinstance(start, Latest))
        sizes = {each.name: each.size for each in state.files or ()}
        if state.gtid_mode and not state.by_gtid and file in sizes:
            state = replace(state, before_file=await gtids_before_file(connection, file))
        if state.by_gtid and file in sizes:
            # The dump may begin with another file, whose first event does not tell of this one.
            state = replace(state, file_begun=await read_begun(connection.endpoint, file))
        inside = await starts_inside_group(connection.endpoint, start, sizes)
        state = replace(state, inside_group=inside)
    if inside or not state.gtid_mode or not isinstance(start, FilePosition):
        return state
    place = Position(start.file, start.pos)
    if place.offset > sizes.get(place.file, 0):
        return state
    return replace(state, before=await gtids_before(connection, traits.server.flavour, place))


async def gtids_before(connection: Connection, flavour: Flavour, place: Position) -> GtidSet | None:
    """Return what a source has executed before a place between transactions; None if unknown.

    Without this, they would stay unknown until the source's next file, and another source would be
    refused until then. Raises as `read_source_state` does.
    """
    if SERVERS[flavour].has_domains:
        async with connection.answering(_LONGEST_S):
            return await gtids_at(connection, place)
    gtids = await read_gtids_before(connection.endpoint, place)
    # A source that was itself loaded from a dump has these in none of its files until the next one
    # begins. None of them comes after the place: what is purged is in no file.
    ((purged,),) = await connection.query(b"SELECT @@global.gtid_purged")
    return gtids.union(GtidSet.parse(str(purged)))


async def _read(connection: Connection, traits: ServerTraits, *, end: bool) -> SourceState:
    if SERVERS[traits.server.flavour].has_domains:
        return await _read_mariadb(connection, traits, end=end)
    # Before the GTIDs: what is purged in the meantime is missing, and seen to be.
    files = await _files(connection)
    executed = purged = GtidSet()
    if traits.gtid_mode:
        executed, purged = await read_gtids(connection)
    mark = await _end(connection, traits) if end else None
    return SourceState(traits.uuid, traits.gtid_mode, executed, purged, files, mark)


async def gtids_before_file(connection: Connection, file: str) -> GtidSet | None:
    """Return the GTIDs with which a file of a MySQL begins; None if it does not tell.

    Raises ServerError, ConnectionLostError.
    """
    try:
        rows = await connection.query(
            b"SHOW BINLOG EVENTS IN '%b' LIMIT 2" % file.replace("'", "''").encode()
        )
    except ServerError as error:
        # Not to be read, or purged just now: the dump says which.
        if error.number not in {*NOT_ALLOWED, ER.ERROR_WHEN_EXECUTING_COMMAND}:
            raise
        return None
    begins = [str(info) for _, _, kind, _, _, info in rows if kind == "Previous_gtids"]
    return GtidSet.parse(begins[0]) if begins else None


async def _end(connection: Connection, traits: ServerTraits) -> LowWaterMark:
    """Return the end of a MySQL's binary log: by GTID only, if file and GTIDs do not agree.

    What is being committed is in the file before it is in gtid_executed, seconds before with
    semi-synchronous replication. Its GTID would stay missing, and another source would be asked
    for it later.
    """
    status = binlog_status(traits.version)
    ((file, offset, *others),) = await connection.query(status)
    position = Position(str(file), int(str(offset)))
    if not traits.gtid_mode:
        return LowWaterMark(0, position, None)
    ((owned,),) = await connection.query(b"SELECT @@global.gtid_owned")
    agree = not owned and await connection.query(status) == [(file, offset, *others)]
    return LowWaterMark(0, position if agree else NOWHERE, GtidSet.parse(str(others[-1])))


async def _files(connection: Connection) -> tuple[BinlogFile, ...] | None:
    try:
        rows = await connection.query(b"SHOW BINARY LOGS")
    except ServerError as error:
        if error.number not in NOT_ALLOWED:
            raise
        return None
    return tuple(BinlogFile(str(row[0]), int(str(row[1]))) for row in rows)


async def _read_mariadb(connection: Connection, traits: ServerTraits, *, end: bool) -> SourceState:
    if traits.binlog_in_engine:
        executed = await read_mariadb_state(connection)
        mark = await end_without_files(connection) if end else None
        return SourceState(traits.uuid, True, executed, end=mark, by_gtid=True, without_files=True)
    mark = None
    if await holds_its_log(connection, traits.server.flavour):
        # As where the files may not be listed: the dump says if something is missing.
        executed = await read_mariadb_state(connection)
        mark = await end_without_files(connection) if end else None
        return SourceState(traits.uuid, True, executed, end=mark, by_gtid=True)
    if end:
        file, offset, *_ = (await connection.query(binlog_status(traits.version)))[0]
        position = Position(str(file), int(str(offset)))
        mark = LowWaterMark(0, position, await gtids_at(connection, position))
    files = await _files(connection)
    purged = None
    if files:
        purged = await gtids_at(connection, Position(files[0].name, FIRST_EVENT))
    executed = await read_mariadb_state(connection)
    return SourceState(
        traits.uuid,
        True,
        executed,
        purged or GtidSet(),
        files,
        mark,
        by_gtid=True,
    )


async def gtids_at(connection: Connection, position: Position) -> GtidSet | None:
    """Return what a MariaDB has executed before a place in its binary log; None if not known.

    Raises ServerError, ConnectionLostError.
    """
    rows = await connection.query(
        b"SELECT BINLOG_GTID_POS(%b, %d)"
        % (b"X'" + position.file.encode().hex().encode() + b"'", position.offset)
    )
    return None if rows[0][0] is None else GtidSet.parse(str(rows[0][0]))


async def end_without_files(connection: Connection) -> LowWaterMark:
    """Return the end of a MariaDB's binary log that is inside a storage engine.

    Raises ServerError, ConnectionLostError.
    """
    ((gtids,),) = await connection.query(b"SELECT @@global.gtid_binlog_pos")
    return LowWaterMark(0, NOWHERE, GtidSet.parse(str(gtids)))


async def read_mariadb_state(connection: Connection) -> GtidSet:
    """Return everything that a MariaDB has executed. Raises ServerError, ConnectionLostError."""
    ((logged, applied),) = await connection.query(
        b"SELECT @@global.gtid_binlog_state, @@global.gtid_slave_pos"
    )
    return mariadb_state(str(logged), str(applied))


async def read_gtids(connection: Connection) -> tuple[GtidSet, GtidSet]:
    """Return what a server has executed or is committing, and its gtid_purged.

    A source sends a transaction before it adds it to gtid_executed; with semi-synchronous
    replication, seconds before. Raises ServerError, ConnectionLostError.
    """
    # In this order: what ceases to be owned in the meantime is executed.
    rows = await connection.query(
        b"SELECT @@global.gtid_owned, @@global.gtid_executed, @@global.gtid_purged"
    )
    owned, executed, purged = (str(text) for text in rows[0])
    return GtidSet.parse(executed).union(parse_owned(owned)), GtidSet.parse(purged)


def parse_owned(text: str) -> GtidSet:
    """Parse gtid_owned: `UUID[:TAG]:N#THREAD[:N#THREAD]…`, the next UUID following directly.

    Raises ValueError as `GtidSet.parse` does.
    """
    uuids = list(_UUID.finditer(text))
    ends = [*(uuid.start() for uuid in uuids[1:]), len(text)]
    # If there is none, only the end of the text is left over.
    parts = [
        uuid[0] + _OWNER.sub("", text[uuid.end() : end])
        for uuid, end in zip(uuids, ends, strict=False)
    ]
    return GtidSet.parse(",".join(parts))
