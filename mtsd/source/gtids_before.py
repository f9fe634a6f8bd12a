"""What a MySQL has executed before a place in its binary log: read from the file itself."""

from mtsd.binlog.events.event_reader import EventReader
from mtsd.model.errors import BinlogError, NeedsPersonError
from mtsd.model.gtid import GtidSet
from mtsd.model.position import FIRST_EVENT, Position
from mtsd.source.binlog_files import BinlogFileReader
from mtsd.source.source_state import BinlogFile
from mtsd.wire.endpoint import Endpoint


async def read_gtids_before(endpoint: Endpoint, place: Position) -> GtidSet:
    """Return it for a place between transactions; the source sends its file up to there.

    What the file says is before it, is before each place in it, 4 too. Raises NeedsPersonError if
    the file cannot be read, ServerError, ConnectionLostError.
    """
    reader = EventReader(Position(place.file, FIRST_EVENT))
    gtids = GtidSet()
    dump = await BinlogFileReader.open(endpoint, BinlogFile(place.file, 0))
    try:
        while events := await dump.read():
            for raw in events:
                begins = reader.position
                event = reader.read(raw)
                code = event[4]
                if code in reader.dialect.heads:
                    if begins >= place:
                        return gtids
                    gtid = reader.dialect.parse_head(event).gtid
                    if gtid is not None:
                        gtids.add(gtid)
                elif code in reader.dialect.previous_gtids:
                    gtids.update(reader.dialect.previous_gtids[code](event))
    except BinlogError as error:
        raise NeedsPersonError(f"the source's {place.file} cannot be read: {error}") from error
    finally:
        dump.close()
    return gtids
