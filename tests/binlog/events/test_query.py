import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.events.query import (
    OVER_MAX_DBS_IN_EVENT_MTS,
    _remembered,
    parse_query,
    parse_status_variables,
)
from mtsd.model.errors import BinlogError
from mtsd.model.session import SessionContext
from mtsd.model.statement_text import StatementText
from mtsd.model.step import QueryEvent
from tests.binlog.building import event, query
from tests.binlog.recording import Recording


def find(recording: Recording, start: bytes) -> QueryEvent:
    return next(
        found for found in recording.decoded(QueryEvent) if found.statement.startswith(start)
    )


def test_the_session_of_a_statement_is_told_in_full(recording: Recording) -> None:
    ids = dict(recording.server.sql("SELECT COLLATION_NAME, ID FROM information_schema.COLLATIONS"))
    definition = find(recording, b'CREATE TABLE d2."')
    assert definition.statement.startswith('CREATE TABLE d2."tä" '.encode())
    assert definition.database == "d1"
    assert definition.updated_databases == ("d2",)
    assert definition.context == SessionContext(
        auto_is_null=True,
        foreign_key_checks=False,
        unique_checks=False,
        # ANSI_QUOTES and NO_BACKSLASH_ESCAPES
        sql_mode=0x4 | 0x100000,
        auto_increment_increment=7,
        auto_increment_offset=3,
        character_set_client=ids["utf8mb4_0900_ai_ci"],
        collation_connection=ids["utf8mb4_bin"],
        collation_server=ids["latin1_swedish_ci"],
        time_zone=b"+03:00",
        lc_time_names=4,
        collation_database=definition.context.collation_database,
        explicit_defaults_for_timestamp=True,
        default_collation_for_utf8mb4=ids["utf8mb4_general_ci"],
        sql_require_primary_key=True,
        default_table_encryption=definition.context.default_table_encryption,
    )
    assert definition.ddl_xid


def test_what_comes_once_is_not_remembered(recording: Recording) -> None:
    recording.decoded(QueryEvent)
    assert _remembered
    assert not [each for each in _remembered.values() if each.ddl_xid is not None]


def test_an_ordinary_session(recording: Recording) -> None:
    begin = next(
        found
        for found in recording.decoded(QueryEvent)
        if found.statement == b"BEGIN" and found.context.time_zone is None
    )
    assert begin.context.auto_is_null is False
    assert begin.context.foreign_key_checks is True
    assert begin.context.unique_checks is True
    assert begin.context.auto_increment_increment is None
    assert begin.microseconds is None
    assert begin.ddl_xid is None
    assert begin.error_code == 0
    assert begin.thread_id > 0


def test_microseconds_and_timestamp(recording: Recording) -> None:
    insert = find(recording, b"INSERT INTO counted (v) VALUES (NOW(6))")
    assert (insert.timestamp, insert.microseconds) == (1_700_000_000, 125_000)
    assert insert.context.time_zone == b"SYSTEM"


@given(
    st.lists(
        st.tuples(st.sampled_from((1, 2, 3)), st.none() | st.integers(0, 999_999), st.booleans()),
        max_size=12,
    )
)
def test_microseconds_are_those_of_each_event(
    events: list[tuple[int, int | None, bool]],
) -> None:
    """What is remembered of other events, of the same size or not, changes nothing."""
    for mode, microseconds, comes_first in events:
        # As many bytes without microseconds, among them one that looks like their code.
        piece = b"\x13\x0d\x14\x0d"
        if microseconds is not None:
            piece = b"\x0d" + microseconds.to_bytes(3, "little")
        pieces = [struct.pack("<BQ", 1, mode), struct.pack("<BH", 7, mode)]
        pieces.insert(1 if comes_first else 2, piece)
        found = parse_query(query(b"DO 0", status=b"".join(pieces)))
        assert found.microseconds == microseconds
        assert found.context.sql_mode == mode
        assert found.context.lc_time_names == mode


def test_cascade_triggers(recording: Recording) -> None:
    usual = find(recording, b"INSERT INTO counted (v) VALUES (RAND())")
    changed = find(recording, b"INSERT INTO counted (v) VALUES ('cascade')")
    ((default,),) = recording.server.sql("SELECT @@enable_cascade_triggers")
    assert usual.context.enable_cascade_triggers is bool(default)
    assert changed.context.enable_cascade_triggers is not bool(default)


def test_updated_databases(recording: Recording) -> None:
    several = find(recording, b"DROP TABLE `d17`.`many`,`many`")
    assert (several.updated_databases, several.over_max) == (("d17", "d1"), False)
    sixteen = find(recording, b"DROP TABLE `many`,")
    assert sixteen.updated_databases
    assert (len(sixteen.updated_databases), sixteen.over_max) == (16, False)
    seventeen = find(recording, b"DROP TABLE `again`,")
    assert (seventeen.updated_databases, seventeen.over_max) == ((), True)
    assert find(recording, b"BEGIN").updated_databases is None


def test_too_many_databases_to_be_named() -> None:
    status = bytes([0x0C, OVER_MAX_DBS_IN_EVENT_MTS])
    found = parse_query(query(b"DO 1", status=status))
    assert (found.updated_databases, found.over_max) == ((), True)


def test_the_invoker_of_a_definition(recording: Recording) -> None:
    assert find(recording, b"ALTER EVENT e").invoker == (b"root", b"localhost")


def test_a_query_by_hand() -> None:
    status = bytes.fromhex("00 00400004 0c 02 6100 6200 0d 40e201")
    found = parse_query(query(b"DO 1", status=status, database=b"db", timestamp=5))
    assert found == QueryEvent(
        thread_id=7,
        exec_time=0,
        error_code=0,
        text=StatementText(
            b"DO 1",
            SessionContext(auto_is_null=True, foreign_key_checks=False, unique_checks=True),
        ),
        microseconds=123456,
        database="db",
        updated_databases=("a", "b"),
        over_max=False,
        invoker=None,
        ddl_xid=None,
        timestamp=5,
    )


def test_variables_of_old_servers_are_passed_over() -> None:
    # Catalog with its NUL, table map for update, bytes written by the source's source.
    status = b"\x02\x03std\0" + b"\x09" + bytes(8) + b"\x0a" + bytes(4) + b"\x07\x01\x00"
    assert parse_status_variables(status).context == SessionContext(lc_time_names=1)


@pytest.mark.parametrize("code", [14, 15, 22, 127, 132, 255])
def test_an_unknown_variable_stops(code: int) -> None:
    with pytest.raises(BinlogError, match=f"unknown status variable {code}"):
        parse_query(query(b"DO 1", status=bytes((0, 0, 0, 0, 0, code, 1, 2))))


@pytest.mark.parametrize(
    ("damaged", "message"),
    [
        (event(EventType.QUERY_EVENT, bytes(12)), "31 bytes, fewer than its fixed part"),
        (query(b"", database=b"db")[:-2], "do not fit into"),
        (query(b"")[:-1], "do not fit into"),
        (event(EventType.QUERY_EVENT, bytes(13) + b"x"), "no NUL after the database"),
        (query(b"", database=b"\xff"), "is not UTF-8"),
        (query(b"", status=b"\x05\x09UTC"), "time_zone of 9 bytes"),
        (query(b"", status=b"\x0c\x01db"), "a name without its NUL"),
        (query(b"", status=b"\x0c\x01\xff\0"), "is not UTF-8"),
        (query(b"", status=b"\x01\x00"), "sql_mode of 8 bytes"),
        (query(b"", status=struct.pack("<BI", 0, 0) + b"\x0b\x04root"), "invoker of 1 bytes"),
    ],
)
def test_what_is_refused(damaged: bytes, message: str) -> None:
    with pytest.raises(BinlogError, match=message):
        parse_query(damaged)
