"""Whether a place in a source's binary log is one where a transaction begins, or may begin next."""

from collections.abc import Mapping
from typing import Final

from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.bytes.header import HEADER_SIZE
from mtsd.binlog.events.event_reader import EventReader
from mtsd.config.start import FilePosition, Start
from mtsd.model.errors import NeedsPersonError, ServerError
from mtsd.model.position import Position
from mtsd.model.server import version_of
from mtsd.source.binlog_files import NO_EVENT, BinlogFileReader
from mtsd.source.source_state import BinlogFile
from mtsd.wire.endpoint import Endpoint

_BETWEEN: Final = frozenset({
    EventType.FORMAT_DESCRIPTION_EVENT.value, EventType.PREVIOUS_GTIDS_LOG_EVENT.value,
    EventType.ROTATE_EVENT.value, EventType.STOP_EVENT.value, EventType.INCIDENT_EVENT.value,
    EventType.MARIADB_GTID_LIST_EVENT.value, EventType.MARIADB_BINLOG_CHECKPOINT_EVENT.value,
    EventType.MARIADB_START_ENCRYPTION_EVENT.value,
})  # fmt: skip
_STOP_BYTES: Final = HEADER_SIZE + 4
_WITH_HEADS: Final = (5, 7, 0)
"""Before, MySQL wrote a GTID event only with gtid_mode = ON: otherwise a statement comes first."""


async def starts_inside_group(
    endpoint: Endpoint, start: Start | None, sizes: Mapping[str, int]
) -> bool:
    """Return whether a start is a place in the source's files, but not between transactions.

    `sizes` are those of the files by name. Between a transaction and its GTID is inside of it.
    Raises ServerError, ConnectionLostError.
    """
    if not isinstance(start, FilePosition) or start.pos > sizes.get(start.file, 0):
        return False
    left = sizes[start.file] - start.pos
    return await _is_inside_group(endpoint, Position(start.file, start.pos), left)


async def _is_inside_group(endpoint: Endpoint, place: Position, left: int) -> bool:
    """Return whether a place is inside a group; `left`: bytes of its file after it."""
    reader = EventReader(place)
    dump = await BinlogFileReader.open(endpoint, BinlogFile(place.file, 0), offset=place.offset)
    try:
        while events := await dump.read():
            for raw in events:
                event = reader.read(raw)
                # What the source has made for the dump has no place.
                if reader.position != place:
                    return event[4] not in _BETWEEN and not _begins_group(event[4], reader)
    except NeedsPersonError:
        return True
    except ServerError as error:
        if error.number != NO_EVENT:
            raise
        return True
    finally:
        dump.close()
    # A MariaDB sends no Stop event; and inside an event, what it takes for a length may be more
    # than is left: then it sends nothing, either.
    return left > _STOP_BYTES


def _begins_group(code: int, reader: EventReader) -> bool:
    if code in reader.dialect.heads:
        return True
    description = reader.description
    return (
        code == EventType.QUERY_EVENT
        and not reader.dialect.all_have_gtids
        and description is not None
        and (version_of(description.server_version) or _WITH_HEADS) < _WITH_HEADS
    )
