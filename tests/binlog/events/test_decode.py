from types import SimpleNamespace
from typing import Any

import pytest
from pymysql.protocol import MysqlPacket
from pymysqlreplication import event as reference_events
from pymysqlreplication.packet import BinLogPacketWrapper
from pymysqlreplication.row_event import TableMapEvent

from mtsd.binlog.bytes.event_type import IGNORABLE, EventType
from mtsd.binlog.events.decode import Stop, Undecoded, decode
from mtsd.binlog.events.gtid_event import GtidEvent
from mtsd.binlog.events.rotate import Rotate
from mtsd.binlog.events.rows_query import RowsQuery
from mtsd.binlog.events.table_map import TableMap
from mtsd.binlog.events.xa_prepare import XaPrepare
from mtsd.binlog.events.xid import Xid
from mtsd.binlog.values.column_type import ColumnType
from mtsd.binlog.values.table_metadata import parse_optional_metadata
from mtsd.model.errors import BinlogError
from mtsd.model.session import SessionContext
from mtsd.model.step import Intvar, IntvarKind, QueryEvent, Rand, UserVar, UserVarType
from tests.binlog.building import event
from tests.binlog.recording import Recording

COMPARED = [
    reference_events.GtidEvent,
    reference_events.IntvarEvent,
    reference_events.QueryEvent,
    reference_events.RandEvent,
    reference_events.RotateEvent,
    reference_events.RowsQueryLogEvent,
    reference_events.UserVarEvent,
    reference_events.XAPrepareEvent,
    reference_events.XidEvent,
    TableMapEvent,
]


def read_by_mysql_replication(raw: bytes) -> Any:  # noqa: ANN401 - the library has no types
    sized = raw[:9] + len(raw).to_bytes(4, "little") + raw[13:]
    connection = SimpleNamespace(charset="utf8", _get_dbms=lambda: "mysql")
    wrapper = BinLogPacketWrapper(
        MysqlPacket(b"\0" + sized, "utf8"), {}, connection, (9, 7, 0), False, COMPARED,
        None, None, None, None, False, False, False, False, False,
    )  # fmt: skip
    return wrapper.event


def test_every_event_is_decoded(recording: Recording) -> None:
    names = {EventType(raw[4]).name for raw in recording.events}
    undecoded = {
        EventType(found.type).name
        for found in map(decode, recording.events)
        if isinstance(found, Undecoded)
    }
    assert undecoded == set()
    # All that a single server of this version can be made to write.
    assert names == {
        "BEGIN_LOAD_QUERY_EVENT",
        "DELETE_ROWS_EVENT",
        "EXECUTE_LOAD_QUERY_EVENT",
        "FORMAT_DESCRIPTION_EVENT",
        "GTID_LOG_EVENT",
        "GTID_TAGGED_LOG_EVENT",
        "INTVAR_EVENT",
        "PARTIAL_UPDATE_ROWS_EVENT",
        "PREVIOUS_GTIDS_LOG_EVENT",
        "QUERY_EVENT",
        "RAND_EVENT",
        "ROTATE_EVENT",
        "ROWS_QUERY_LOG_EVENT",
        "TABLE_MAP_EVENT",
        "TRANSACTION_PAYLOAD_EVENT",
        "UPDATE_ROWS_EVENT",
        "USER_VAR_EVENT",
        "WRITE_ROWS_EVENT",
        "XA_PREPARE_LOG_EVENT",
        "XID_EVENT",
    }


def test_mysql_replication_reads_the_same(recording: Recording) -> None:
    compared = 0
    for raw in recording.events:
        found = decode(raw)
        match found:
            # The library knows no status variable 21.
            case QueryEvent(context=SessionContext(enable_cascade_triggers=None)):
                theirs = read_by_mysql_replication(raw)
                assert theirs.schema.decode() == found.database
                assert theirs.query.encode() == found.statement
                assert theirs.slave_proxy_id == found.thread_id
                assert theirs.sql_mode == found.context.sql_mode
            case GtidEvent() if raw[4] == EventType.GTID_LOG_EVENT:
                theirs = read_by_mysql_replication(raw)
                assert theirs.gtid == str(found.gtid)
                assert theirs.last_committed == found.last_committed
                assert theirs.sequence_number == found.sequence_number
            # The library knows no vectors.
            case TableMap() if ColumnType.VECTOR not in found.column_types:
                theirs = read_by_mysql_replication(raw)
                assert theirs.table_id == found.table_id
                assert (theirs.schema, theirs.table) == (found.database, found.table)
                assert theirs.column_count == len(found.column_types)
                names = tuple(theirs.optional_metadata.column_name_list)
                assert names == parse_optional_metadata(found).names
            case Xid():
                assert read_by_mysql_replication(raw).xid == found.number
            case Rotate():
                theirs = read_by_mysql_replication(raw)
                assert (theirs.next_binlog, theirs.position) == (
                    found.position.file,
                    found.position.offset,
                )
            case RowsQuery():
                # The library believes the length byte, which cannot tell of long statements.
                theirs = read_by_mysql_replication(raw)
                assert theirs.query
                assert found.statement.startswith(theirs.query.encode())
            case XaPrepare():
                theirs = read_by_mysql_replication(raw)
                assert (theirs.one_phase, theirs.xid_gtrid) == (found.one_phase, found.gtrid)
            case Intvar(kind=IntvarKind() as kind, value=value):
                theirs = read_by_mysql_replication(raw)
                assert (theirs.type, theirs.value) == (kind, value)
            case Rand():
                theirs = read_by_mysql_replication(raw)
                assert (theirs.seed1, theirs.seed2) == (found.seed1, found.seed2)
            # The library reads the flags of every type, which the server writes for integers.
            case UserVar() if found.raw is None or found.type is UserVarType.INT:
                theirs = read_by_mysql_replication(raw)
                assert theirs.name.encode() == found.name
                assert bool(theirs.is_null) is (found.raw is None)
            case _:
                continue
        compared += 1
    assert compared > 200


def test_stop(recording: Recording) -> None:
    assert decode(event(EventType.STOP_EVENT, b"")) == Stop()
    assert recording.events


@pytest.mark.parametrize(
    "kind", [EventType.VIEW_CHANGE_EVENT, EventType.MARIADB_QUERY_COMPRESSED_EVENT]
)
def test_types_known_by_name_only(kind: EventType) -> None:
    assert decode(event(kind, b"anything")) == Undecoded(kind)


@pytest.mark.parametrize("kind", [0, 43, 99, 159, 173, 255])
def test_an_unknown_type_is_refused_unless_it_may_be_ignored(kind: int) -> None:
    with pytest.raises(BinlogError, match="unknown event type"):
        decode(event(kind, b""))
    assert decode(event(kind, b"", flags=IGNORABLE)) == Undecoded(kind)
