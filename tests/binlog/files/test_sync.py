"""Where an event seems to begin, and none does."""

import struct

from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.bytes.framing import MAGIC
from mtsd.binlog.events.mariadb_gtid_event import DDL, STANDALONE
from mtsd.model.position import FIRST_EVENT
from tests.binlog.building import description, event, query
from tests.binlog.range_cases import declared, events, parts
from tests.binlog.transactions import placed


def test_a_thread_id_is_no_length_of_an_event() -> None:
    """An unplaced event of a MariaDB seems to begin ten bytes into a statement.

    Its length would be the statement's thread id, which is just the number of bytes up to the next
    event, and its end the execution time: 0, which is none.
    """
    raw = [description(server=b"11.8.3-MariaDB", algorithm=0)[:-4] + bytes(4)]
    for number in range(1, 9):
        body = struct.pack("<QIB", number, 0, STANDALONE | DDL)
        raw.append(event(EventType.MARIADB_GTID_EVENT, body.ljust(19, b"\0")))
        created = query(b"CREATE DATABASE d%d" % number, database=b"d%d" % number)
        raw.append(created[:19] + struct.pack("<I", len(created) - 10) + created[23:])
    data = MAGIC + b"".join(placed(raw))
    wanted, listed = declared(parts(data)), events(data)
    assert len(wanted) == 8
    at = FIRST_EVENT
    for each in raw:
        for cut in range(at + 1, at + 12):
            assert declared(parts(data, [cut])) == wanted, cut
            assert events(data, [cut]) == listed, cut
        at += len(each)
