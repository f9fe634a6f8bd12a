import struct
import tracemalloc

import pytest

from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.events.load_data import (
    BEFORE_5_0,
    LoadData,
    parse_block,
    parse_execute_load_query,
    parse_load_data,
    sent_by_client,
)
from mtsd.binlog.groups.load_data_files import ENTRY_COST, TOO_LARGE, UNKNOWN, LoadDataFiles
from mtsd.model.errors import BinlogError
from mtsd.model.group import Group, GroupKind
from mtsd.model.session import SessionContext
from mtsd.model.statement_text import StatementText
from mtsd.model.step import Duplicates, FromFile, LoadFile, Statement
from tests.binlog.building import event, query
from tests.binlog.recording import Recording
from tests.binlog.transactions import begin, grouped, single, xid


def test_real_ones(recording: Recording) -> None:
    block, statement = recording.decoded(LoadData)
    assert block == LoadData(EventType.BEGIN_LOAD_QUERY_EVENT, block.file_id, len("1\n2\n"))
    assert (statement.type, statement.file_id, statement.block_size, statement.duplicates) == (
        EventType.EXECUTE_LOAD_QUERY_EVENT, block.file_id, None, Duplicates.ERROR,
    )  # fmt: skip
    assert statement.query is not None
    assert statement.query.statement.startswith(b"LOAD DATA INFILE")


def test_what_each_part_says() -> None:
    for code, found in (
        (EventType.APPEND_BLOCK_EVENT, LoadData(EventType.APPEND_BLOCK_EVENT, 3, 5)),
        (EventType.DELETE_FILE_EVENT, LoadData(EventType.DELETE_FILE_EVENT, 3)),
        (EventType.CREATE_FILE_EVENT, LoadData(EventType.CREATE_FILE_EVENT)),
    ):
        body = b"\3\0\0\0" + b"block" * (code is EventType.APPEND_BLOCK_EVENT)
        assert parse_load_data(event(code, body)) == found


def test_another_event() -> None:
    with pytest.raises(BinlogError, match="QUERY_EVENT is not an event of LOAD DATA"):
        parse_load_data(event(EventType.QUERY_EVENT, b""))


def execute(start: int, end: int, duplicates: int) -> bytes:
    """Return an Execute_load_query event in database d."""
    statement = b"LOAD DATA 'x' INTO t"
    fixed = struct.pack("<IIBHH", 7, 0, 1, 0, 0) + struct.pack("<IIIB", 3, start, end, duplicates)
    return event(EventType.EXECUTE_LOAD_QUERY_EVENT, fixed + b"d\0" + statement)


def test_the_statement_and_where_its_file_is() -> None:
    query, file = parse_execute_load_query(execute(9, 18, 2))
    assert (query.thread_id, query.database) == (7, "d")
    assert file == FromFile(3, 9, 18, Duplicates.REPLACE)
    for duplicates, handling in zip(Duplicates, (b"", b" IGNORE", b" REPLACE"), strict=True):
        assert sent_by_client(query, file, duplicates) == (
            b"LOAD DATA LOCAL INFILE 'mtsd'%b INTO t" % handling
        )


FORMATS = {
    # As MySQL 9.7 and MariaDB write them, and the separators without escapes.
    rb"FIELDS TERMINATED BY '\t' ENCLOSED BY '' ESCAPED BY '\\' LINES TERMINATED BY '\n' (`v`)": (
        rb"FIELDS TERMINATED BY X'09' ENCLOSED BY '' ESCAPED BY X'5c' LINES TERMINATED BY X'0a'"
        rb" (`v`)"
    ),
    (
        rb"CHARACTER SET latin1 FIELDS TERMINATED BY '\0\b' OPTIONALLY  ENCLOSED BY '\''"
        rb" ESCAPED BY '' LINES TERMINATED BY ',' STARTING BY '\r\Z\\%%' IGNORE 1 LINES  (`v`)"
    ): (
        rb"CHARACTER SET latin1 FIELDS TERMINATED BY X'0008' OPTIONALLY  ENCLOSED BY X'27'"
        rb" ESCAPED BY '' LINES TERMINATED BY ',' STARTING BY X'0d1a5c2525' IGNORE 1 LINES  (`v`)"
    ),
    rb"SET v = '\t'": rb"SET v = '\t'",
}


@pytest.mark.parametrize("table", [b"`t`", b"`d`.`it's ``odd\\`"])
@pytest.mark.parametrize("separators", FORMATS)
def test_separators_where_a_backslash_is_none(separators: bytes, table: bytes) -> None:
    """What the client has written after them stays as it is."""
    query, _ = parse_execute_load_query(execute(9, 18, 0))
    after = rb" SET `v`= 'a\b''\t'"
    for mode, expected in ((0, separators), (0x100000, FORMATS[separators])):
        statement = b"LOAD DATA INFILE 'x' INTO TABLE %b %b%b" % (table, separators, after)
        found = sent_by_client(
            query._replace(text=StatementText(statement, SessionContext(sql_mode=mode))),
            FromFile(3, 9, 25, Duplicates.ERROR),
            Duplicates.ERROR,
        )
        assert found == b"LOAD DATA LOCAL INFILE 'mtsd' INTO TABLE %b %b%b" % (
            table, expected, after,
        )  # fmt: skip


@pytest.mark.parametrize(
    ("start", "end", "duplicates", "error"),
    [
        (9, 8, 0, "the file's name is at 9 to 8"),
        (9, 99, 0, "the file's name is at 9 to 99"),
        (9, 18, 3, "unknown handling of duplicates 3"),
    ],
)
def test_impossible_ones(start: int, end: int, duplicates: int, error: str) -> None:
    with pytest.raises(BinlogError, match=error):
        parse_execute_load_query(execute(start, end, duplicates))
    with pytest.raises(BinlogError, match="fewer than its fixed part"):
        parse_execute_load_query(execute(9, 18, 0)[:40])
    with pytest.raises(BinlogError, match="fewer than its fixed part"):
        parse_block(event(EventType.APPEND_BLOCK_EVENT, b"\1\0\0"))


@pytest.mark.parametrize("code", sorted(BEFORE_5_0))
def test_those_of_4_0_and_4_1_stop_the_replica(code: int) -> None:
    """WL#5569, U.D; no server writes them any more."""
    with pytest.raises(BinlogError, match=r"LOAD DATA of a MySQL 4\.0 or 4\.1 source"):
        grouped(event(EventType(code), bytes(40)))


def test_a_group_with_a_file() -> None:
    begins = event(EventType.BEGIN_LOAD_QUERY_EVENT, b"\3\0\0\0one,")
    block = event(EventType.APPEND_BLOCK_EVENT, b"\3\0\0\0two")
    group = single(begin(), begins, block, execute(9, 18, 0), xid())
    assert group.kind is GroupKind.STATEMENTS
    assert group.databases == ("d",)
    first, second, loaded = group.steps
    assert isinstance(first, LoadFile)
    assert isinstance(second, LoadFile)
    assert (parse_block(first.event), parse_block(second.event)) == ((3, b"one,"), (3, b"two"))
    assert isinstance(loaded, Statement)
    assert loaded.file is not None


def block(kind: EventType, file: int, contents: bytes = b"") -> bytes:
    return event(kind, struct.pack("<I", file) + contents)


BEGIN_FILE, APPEND, DELETE = (
    EventType.BEGIN_LOAD_QUERY_EVENT,
    EventType.APPEND_BLOCK_EVENT,
    EventType.DELETE_FILE_EVENT,
)
IN_PARTS = (block(BEGIN_FILE, 3, b"one,"), block(APPEND, 3, b"two"))
"""A group of its own, as MySQL writes the file of a table without transactions."""


def test_a_file_in_an_earlier_group() -> None:
    commit = query(b"COMMIT")
    alone, between, loads, again = grouped(
        begin(), *IN_PARTS, commit,
        begin(), query(b"INSERT INTO t VALUES (1)", database=b"d"), xid(),
        begin(), query(b"INSERT INTO t VALUES (2)", database=b"d"), execute(9, 18, 0), commit,
        begin(), execute(9, 18, 0), commit,
    )  # fmt: skip
    assert isinstance(alone, Group)
    assert isinstance(between, Group)
    assert isinstance(loads, Group)
    assert isinstance(again, Group)
    assert alone.kind is GroupKind.EMPTY
    assert between.kind is GroupKind.STATEMENTS
    _, first, second, loaded = loads.steps
    assert isinstance(first, LoadFile)
    assert isinstance(second, LoadFile)
    assert (parse_block(first.event), parse_block(second.event)) == ((3, b"one,"), (3, b"two"))
    assert isinstance(loaded, Statement)
    assert not loads.unsupported
    # It has been used up.
    assert again.unsupported == UNKNOWN


def test_files_without_contents_are_counted() -> None:
    """Each costs memory, and a hostile source may begin any number of them."""
    tracemalloc.start()
    try:
        files = LoadDataFiles(1 << 20)
        for number in range(30_000):
            files.take(block(BEGIN_FILE, number, b""))
            files.end_group()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2 << 20
    assert files.of_statement(29_999) != UNKNOWN
    files = LoadDataFiles(1 << 30)
    for number in range(10_000):
        files.take(block(BEGIN_FILE, number, b""))
    with pytest.raises(BinlogError, match="more than 10000 files"):
        files.take(block(BEGIN_FILE, 10_000, b""))


def test_a_connection_that_is_lost_in_the_group_of_the_statement() -> None:
    files = LoadDataFiles(1000)
    for each in IN_PARTS:
        files.take(each)
    files.end_group()
    for _ in range(2):
        assert files.of_statement(3) == list(IN_PARTS)
        files.abandon_group()
    assert files.of_statement(3) == list(IN_PARTS)
    files.end_group()
    assert files.of_statement(3) == UNKNOWN


def test_only_so_much_is_kept_for_later() -> None:
    entries = 4 * ENTRY_COST
    files = LoadDataFiles(2 * len(IN_PARTS[0]) + len(IN_PARTS[1]) + entries)
    for each in IN_PARTS:
        files.take(each)
    files.end_group()
    # The oldest has to go for another one.
    files.take(block(BEGIN_FILE, 4, b"one,"))
    files.take(block(APPEND, 4, b"two"))
    assert files.of_statement(3) == UNKNOWN
    assert files.of_statement(4) == ()
    # What is too large to be kept is still there for a statement of its own group.
    files.take(block(BEGIN_FILE, 5, bytes(1000)))
    files.take(block(APPEND, 5, b"two"))
    files.end_group()
    assert files.of_statement(5) == TOO_LARGE
    files.take(block(BEGIN_FILE, 5, b"one"))
    files.pass_on()
    files.take(block(APPEND, 5, b"two"))
    files.end_group()
    assert files.of_statement(5) == TOO_LARGE
    files.take(block(BEGIN_FILE, 6, bytes(1000)))
    assert files.of_statement(6) == ()
    files.take(block(BEGIN_FILE, 7, b"one"))
    files.take(block(DELETE, 7))
    assert files.of_statement(7) == UNKNOWN
