"""What no server writes, or not on a day like this: built by hand."""

import tracemalloc
from zlib import crc32

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mtsd.binlog.bytes.event_type import (
    IGNORABLE,
    MTS_ISOLATE,
    SUPPRESS_USE,
    THREAD_SPECIFIC,
    EventType,
)
from mtsd.binlog.bytes.header import HEADER_SIZE
from mtsd.filter.filter import UNFILTERED, Filter
from mtsd.filter.rules import Rules
from mtsd.model.errors import BinlogError
from mtsd.model.group import (
    Group,
    GroupChunk,
    GroupClosed,
    GroupDropped,
    GroupKind,
    GroupOpened,
    PositionReached,
    StreamItem,
)
from mtsd.model.position import LogFile, Position
from mtsd.model.step import (
    Intvar,
    IntvarKind,
    LoadFile,
    Rand,
    Rows,
    Statement,
    StatementKind,
    UserVar,
    UserVarType,
)
from mtsd.model.temporary_tables import NONE_OPEN, NOT_KNOWN, TemporaryTables, TemporaryUse
from mtsd.model.xa_xid import XaXid
from tests.binlog.building import description, event, query
from tests.binlog.payloads import compressed
from tests.binlog.recording import Recording
from tests.binlog.transactions import (
    begin,
    group_of,
    grouped,
    grouper,
    gtid,
    in_stream,
    placed,
    rows,
    single,
    table_map,
    types_of,
    xid,
)

INSERT = (table_map(1), rows(1))
MAY_USE_ONE = (
    "a statement that may use a temporary table of its session on the source (flag THREAD_SPECIFIC;"
    " which ones it has is known only if mtsd has read everything since the source's start)"
)
ROTATE = event(EventType.ROTATE_EVENT, (4).to_bytes(8, "little") + b"f.000002")
STOP = event(EventType.STOP_EVENT, b"")
INCIDENT = event(EventType.INCIDENT_EVENT, b"\1\0\0")


def test_a_group_without_a_gtid() -> None:
    group = single(query(b"BEGIN", timestamp=12), *INSERT, xid())
    assert (group.number, group.kind, group.databases) == (1, GroupKind.ROWS, ("d",))
    assert (group.gtid, group.last_committed, group.sequence_number) == (None, 0, 0)
    assert group.commit_time == 12_000_000
    assert group.size == sum(map(len, INSERT))
    assert group.row_flags == 0
    assert not group.alone


def test_a_group_with_one() -> None:
    head = gtid(7, last_committed=5, sequence_number=6, commit_time=1234)
    group = single(head, begin(), *INSERT, xid())
    assert str(group.gtid) == "11111111-1111-1111-1111-111111111111:7"
    assert (group.last_committed, group.sequence_number, group.commit_time) == (5, 6, 1234)


@pytest.mark.parametrize(
    ("flags", "shared"), [((1,), 0), ((3, 3), 2), ((0x12, 0x11), None), ((0x200, 1), None)]
)
def test_row_flags(flags: tuple[int, ...], shared: int | None) -> None:
    events = [rows(1, flags=flag) for flag in flags]
    assert group_of([table_map(1), *events]).row_flags == shared


def test_row_flags_of_what_is_left_out_do_not_count() -> None:
    group = group_of([table_map(1, "mtsd"), rows(1, flags=3), table_map(2), rows(2, flags=0x11)])
    assert (group.row_flags, group.databases) == (0x10, ("d",))
    assert types_of(group.steps) == [19, 30]


def test_an_id_that_stood_for_a_position_table_before() -> None:
    group = group_of([table_map(1, "mtsd"), rows(1), table_map(1), rows(1, b"kept")])
    assert [found[-4:] for found in group.rows[1:]] == [b"kept"]


@pytest.mark.parametrize("end", [xid(), query(b"COMMIT"), query(b"ROLLBACK")])
def test_nothing_to_apply(end: bytes) -> None:
    for between in ((), (table_map(1, "mtsd"), rows(1))):
        group = single(begin(), *between, end)
        assert (group.kind, group.steps, group.unsupported) == (GroupKind.EMPTY, (), "")


def test_without_a_position_schema_everything_counts() -> None:
    (group,) = grouped(begin(), *INSERT, xid(), reader=grouper(replicated=UNFILTERED))
    assert isinstance(group, Group)
    assert group.databases == ("d",)


def test_a_foreign_key_from_another_database() -> None:
    assert single(begin(), table_map(1, flags=3), rows(1), xid()).alone


def test_foreign_keys_count_where_the_target_has_them() -> None:
    """Each time, also where the tables of a transaction are known already."""
    reader = grouper(referred_in={"d": {"d", "e"}})
    one = (gtid(1), begin(), table_map(1, "c", flags=3), rows(1), xid())
    other = (gtid(2), begin(), table_map(2, "d", flags=3), rows(2), xid())
    events = placed([*one, *other, *one, *other])
    found = [each for each in reader.groups(events) if isinstance(each, Group)]
    assert [each.databases for each in found] == [("c",), ("d", "e")] * 2
    assert not any(each.alone for each in found)
    renamed = Filter(Rules(rewrite_db=(("c", "d"),)))
    reader = grouper(referred_in={"d": {"d", "e"}}, replicated=renamed)
    (group,) = reader.groups(placed([*one]))
    assert isinstance(group, Group)
    assert group.databases == ("d", "e")


def test_the_source_asks_for_isolation() -> None:
    asking = event(EventType.XID_EVENT, bytes(8), flags=MTS_ISOLATE)
    assert single(begin(), *INSERT, asking).alone


@pytest.mark.parametrize(
    ("statement", "unsupported"),
    [
        (b"DROP TABLE `d`.`t` /* generated by server */", ""),
        (b"drop /* x */ table t", ""),
        (b"DROP VIEW t", ""),
        (b"CREATE TABLE b (a INT CHECK (a LIKE 'x'))", ""),
        (b"CREATE TABLE IF NOT EXISTS `like` (`select` INT)", ""),
        (b"CREATE VIEW v AS SELECT CONNECTION_ID()", ""),
        (b"OPTIMIZE TABLE t", ""),
        (b"CREATE TABLE b LIKE t", MAY_USE_ONE),
        (b"CREATE TABLE b (LIKE t)", MAY_USE_ONE),
        (b"CREATE TABLE b (a INT) SELECT a FROM t", MAY_USE_ONE),
        (b"CREATE TABLE b (SELECT a FROM t)", MAY_USE_ONE),
        (b"CREATE TABLE b TABLE t", MAY_USE_ONE),
        (b"CREATE TEMPORARY TABLE t (a INT)", ""),
        (b"TRUNCATE t", MAY_USE_ONE),
        (b"ALTER TABLE t ADD a INT", MAY_USE_ONE),
        (b"CREATE UNIQUE INDEX i ON t (a)", MAY_USE_ONE),
        (b"DROP INDEX i ON t", MAY_USE_ONE),
        (b"INSERT INTO t VALUES (1)", MAY_USE_ONE),
        (b"DELETE a FROM a JOIN b USING (i)", MAY_USE_ONE),
    ],
)
def test_what_the_text_alone_says_of_temporary_tables(statement: bytes, unsupported: str) -> None:
    """Where nothing is known of what the thread did before."""
    specific = query(statement, status=b"\x0c\x01d\0", flags=THREAD_SPECIFIC)
    group = single(gtid(), specific)
    assert (group.unsupported, group.databases) == (unsupported, ("d",))


@pytest.mark.parametrize(
    ("statement", "unsupported"),
    [
        (b"ALTER TABLE t ADD a INT", ""),
        (b"CREATE UNIQUE INDEX i ON t (a)", ""),
        (b"DROP INDEX i ON t", ""),
        (b"TRUNCATE t", MAY_USE_ONE),
        (b"CREATE TABLE b LIKE t", MAY_USE_ONE),
    ],
)
def test_only_of_some_statements_a_ddl_xid_tells_base_tables(
    statement: bytes, unsupported: str
) -> None:
    status = b"\x11" + (7).to_bytes(8, "little")
    assert single(gtid(), query(statement, status=status, flags=4)).unsupported == unsupported


@pytest.mark.parametrize(
    "statement", [b"DROP TEMPORARY TABLE `d`.`t`", b"DROP /*!40005 TEMPORARY */ TABLE `d`.`t`"]
)
def test_a_temporary_table_that_was_never_made_is_not_dropped(statement: bytes) -> None:
    for group in (
        single(gtid(), query(statement, flags=THREAD_SPECIFIC)),
        single(gtid(), begin(), query(statement, flags=THREAD_SPECIFIC), query(b"COMMIT")),
    ):
        assert (group.kind, group.steps, group.unsupported) == (GroupKind.EMPTY, (), "")


def description_of(recording: Recording, *, created: int) -> bytes:
    described = bytearray(recording.raw[0])
    described[71:75] = created.to_bytes(4, "little")
    # Where a dump begins inside of a file, the source says neither when it started nor where.
    log_pos = 4 + len(described) if created else 0
    described[13:17] = log_pos.to_bytes(4, "little")
    described[-5] = 0
    return bytes(described)


def test_whose_threads_are_known_to_have_no_temporary_tables(recording: Recording) -> None:
    specific = query(b"TRUNCATE t", flags=THREAD_SPECIFIC)
    made = query(b"CREATE TEMPORARY TABLE t (a INT)", flags=THREAD_SPECIFIC)
    reader = grouper()

    def refused() -> bool:
        (group,) = grouped(specific, reader=reader)
        assert isinstance(group, Group)
        assert group.temporary is None
        return bool(group.unsupported)

    def connected(*, created: int) -> list[StreamItem]:
        nonlocal reader
        reader = grouper(temporary=reader.temporary)
        file, *items = reader.groups([description_of(recording, created=created)])
        assert file == LogFile("f.000001", int.from_bytes(recording.raw[0][:4], "little"))
        return items

    behind = Position("f.000001", 4 + len(recording.raw[0]))
    assert connected(created=0) == []
    assert refused()
    assert connected(created=1700) == [PositionReached(behind, temporary=NONE_OPEN)]
    assert not refused()
    assert connected(created=0) == []
    assert not refused()
    (group,) = grouped(made, reader=reader)
    opened = TemporaryTables(complete=True, by_thread={(1, 7): frozenset({("", "t")})})
    assert isinstance(group, Group)
    assert group.temporary == reader.temporary == opened
    table = frozenset({("", "t")})
    assert group.uses_temporary == TemporaryUse(
        (1, 7), frozenset(), table, uses=False, only=True, created=table
    )
    assert not refused()
    assert connected(created=0) == []
    (group,) = grouped(specific, reader=reader)
    assert isinstance(group, Group)
    assert group.uses_temporary == TemporaryUse((1, 7), table, table, uses=True, only=True)
    # The server has started again.
    assert connected(created=1800) == [PositionReached(behind, temporary=NONE_OPEN)]
    assert not refused()
    beat = event(EventType.HEARTBEAT_LOG_EVENT, b"f.000001", log_pos=5000)
    assert list(reader.groups([beat])) == [
        PositionReached(Position("f.000001", 5000), temporary=NOT_KNOWN)
    ]
    assert refused()


@pytest.mark.parametrize(
    ("statement", "database", "status", "kind", "unsupported"),
    [
        (b"TRUNCATE t", b"mtsd", b"", "empty", False),
        (b"TRUNCATE TABLE `mtsd`.t", b"d", b"", "empty", False),
        (b"truncate d.t", b"mtsd", b"", "ddl", False),
        (b"TRUNCATE MTSD.t", b"d", b"", "ddl", True),
        (b"CREATE TABLE IF NOT EXISTS mtsd.t LIKE d.t", b"d", b"", "empty", False),
        (b"CREATE TABLE d.t LIKE mtsd.t", b"mtsd", b"", "ddl", False),
        (b"ANALYZE TABLE t", b"mtsd", b"", "empty", False),
        (b"FLUSH TABLES d.t, t", b"mtsd", b"", "ddl", False),
        (b"CREATE USER u", b"mtsd", b"", "ddl", False),
        (b"DROP TABLE mtsd.t, d.t", b"", b"\x0c\xfe", "ddl", True),
        (b"DROP TABLE mtsd.t, d.t", b"", b"\x0c\2d\0mtsd\0", "ddl", True),
        (b"RENAME TABLE d.t TO mtsd.slave_in_doubt", b"", b"\x0c\2d\0mtsd\0", "ddl", True),
        (b"GRANT ALL ON mtsd.* TO u", b"", b"\x0c\2mysql\0mtsd\0", "ddl", False),
        (b"DROP DATABASE mtsd", b"mtsd", b"\x0c\1mtsd\0", "empty", False),
        (b"CREATE VIEW d.v AS SELECT * FROM mtsd.t", b"mtsd", b"\x0c\1d\0", "ddl", False),
    ],
)
def test_the_position_schema_is_mtsds_own(
    statement: bytes, database: bytes, status: bytes, kind: str, unsupported: bool
) -> None:
    group = single(gtid(), query(statement, database=database, status=status))
    assert (group.kind.value, bool(group.unsupported)) == (kind, unsupported)
    assert "mtsd" not in group.databases


def test_steps_hold_statements_with_their_satellites_in_order() -> None:
    intvar = event(EventType.INTVAR_EVENT, b"\2" + (7).to_bytes(8, "little"))
    rand = event(EventType.RAND_EVENT, (1).to_bytes(8, "little") + (2).to_bytes(8, "little"))
    user = event(EventType.USER_VAR_EVENT, b"\1\0\0\0v\1")
    insert = query(b"INSERT INTO t VALUES (NULL, RAND(), @v)", database=b"d", flags=SUPPRESS_USE)
    load = event(EventType.BEGIN_LOAD_QUERY_EVENT, b"\1\0\0\0data")
    plain = query(b"DELETE FROM t")
    group = single(begin(), intvar, rand, user, insert, plain, *INSERT, load, *INSERT, xid())
    assert group.kind is GroupKind.STATEMENTS
    with_satellites, without, changed, loaded, again = group.steps
    assert isinstance(with_satellites, Statement)
    assert with_satellites.satellites == (
        Intvar(IntvarKind.INSERT_ID, 7),
        Rand(1, 2),
        UserVar(b"v", UserVarType.STRING, 0, None, unsigned=False),
    )
    assert (with_satellites.flags, with_satellites.query.database) == (SUPPRESS_USE, "d")
    assert with_satellites.kind is StatementKind.DML
    assert isinstance(without, Statement)
    assert (without.satellites, without.query.statement) == ((), b"DELETE FROM t")
    assert isinstance(loaded, LoadFile)
    assert loaded.event[HEADER_SIZE:] == load[HEADER_SIZE:]
    assert isinstance(changed, Rows)
    assert isinstance(again, Rows)
    assert (changed.events, again.events) == (group.rows[:2], group.rows[2:])
    assert group.size == sum(map(len, (intvar, rand, user, insert, plain, load, *INSERT, *INSERT)))
    assert not group.unsupported


@pytest.mark.parametrize(
    ("status", "databases", "alone"),
    [
        (b"\x0c\x02a\0b\0", ("a", "b"), False),
        (b"\x0c\xfe", (), True),
        (b"\x0c\x01\0", (), True),
        (b"\x0c\x00", (), True),
        (b"", (), True),
    ],
)
def test_databases_of_a_statement(status: bytes, databases: tuple[str, ...], alone: bool) -> None:
    for group in (
        single(gtid(), query(b"GRANT", status=status)),
        single(gtid(), begin(), query(b"DELETE FROM t", status=status), xid()),
    ):
        assert (group.databases, group.alone) == (databases, alone)


XID = XaXid(7, b"a", b"")
XA_START, XA_END = query(b"XA START X'61',X'',7"), query(b"XA END X'61',X'',7")


def xa_prepare(xid: XaXid = XID, *, one_phase: bool = False) -> bytes:
    format_id = (xid.format_id & 0xFFFFFFFF).to_bytes(4, "little")
    sizes = len(xid.gtrid).to_bytes(4, "little") + len(xid.bqual).to_bytes(4, "little")
    body = bytes((one_phase,)) + format_id + sizes + xid.gtrid + xid.bqual
    return event(EventType.XA_PREPARE_LOG_EVENT, body)


def test_a_prepared_transaction() -> None:
    group = single(gtid(), XA_START, *INSERT, XA_END, xa_prepare())
    assert (group.kind, group.xid, group.alone) == (GroupKind.XA_PREPARE, XID, False)
    assert (group.databases, types_of(group.steps)) == (("d",), [19, 30])
    inside = single(gtid(), compressed(XA_START, *INSERT, XA_END, xa_prepare()))
    assert (inside.kind, inside.xid, inside.databases) == (group.kind, XID, ("d",))


def test_a_prepared_transaction_without_changes_is_completed_later_too() -> None:
    group = single(gtid(), XA_START, XA_END, xa_prepare())
    assert (group.kind, group.xid, group.steps) == (GroupKind.XA_PREPARE, XID, ())


@pytest.mark.parametrize(
    ("changes", "kind"),
    [(INSERT, GroupKind.ROWS), ((query(b"DELETE FROM t"),), GroupKind.STATEMENTS), ((), None)],
)
def test_a_transaction_in_one_phase_is_an_ordinary_one(
    changes: tuple[bytes, ...], kind: GroupKind | None
) -> None:
    group = single(gtid(), XA_START, *changes, XA_END, xa_prepare(one_phase=True))
    assert (group.kind, group.xid) == (kind or GroupKind.EMPTY, None)
    assert len(group.steps) == (1 if changes else 0)


@pytest.mark.parametrize("statement", [b"XA COMMIT X'61',X'',7", b"XA ROLLBACK 'a','',7"])
@pytest.mark.parametrize("database", [b"", b"d", b"mtsd"])
def test_what_completes_a_prepared_transaction(statement: bytes, database: bytes) -> None:
    group = single(gtid(), query(statement, database=database))
    assert (group.kind, group.xid, group.unsupported) == (GroupKind.XA_COMPLETE, XID, "")
    assert (group.databases, group.alone, len(group.steps)) == ((), False, 1)


@pytest.mark.parametrize("statement", [b"XA PREPARE X'31'", b"XA COMMIT X'31' ONE PHASE"])
def test_xa_statements_that_no_server_logs(statement: bytes) -> None:
    group = single(gtid(), query(statement))
    assert group.kind is GroupKind.XA_COMPLETE
    assert group.unsupported == "XA PREPARE, or XA COMMIT … ONE PHASE, as a statement"


def test_the_format_id_is_that_of_the_statement() -> None:
    """The event has 32 bits of it, and servers accept 64."""
    start, end = query(b"XA START X'61',X'',4294967296"), query(b"XA END X'61',X'',4294967296")
    group = single(gtid(), start, *INSERT, end, xa_prepare(XID._replace(format_id=0)))
    assert group.xid == XID._replace(format_id=1 << 32)
    start = query(b"XA START X'61',X'',4294967295")
    group = single(gtid(), start, *INSERT, XA_END, xa_prepare(XID._replace(format_id=-1)))
    assert group.xid == XID._replace(format_id=(1 << 32) - 1)


@pytest.mark.parametrize(
    "other",
    [XID._replace(format_id=8), XID._replace(gtrid=b"b"), XID._replace(bqual=b"a"), None],
)
def test_a_prepare_of_another_transaction(other: XaXid | None) -> None:
    start = query(f"XA START {other}".encode()) if other is not None else begin()
    with pytest.raises(BinlogError, match=r"XA PREPARE X'61',X'',7 of another transaction"):
        grouped(gtid(), start, *INSERT, xa_prepare())


def test_a_streamed_one_has_its_xid_from_the_beginning() -> None:
    reader = grouper(hold_bytes=10)
    items = grouped(gtid(), XA_START, *INSERT, XA_END, xa_prepare(), reader=reader)
    assert isinstance(items[0], GroupOpened)
    assert isinstance(items[-1], GroupClosed)
    assert (items[0].xid, items[-1].group.xid) == (XID, XID)
    assert items[-1].group.kind is GroupKind.XA_PREPARE


def test_savepoints_count_only_where_the_transaction_goes_back() -> None:
    savepoint, back = query(b"SAVEPOINT `a`"), query(b"ROLLBACK TO `a`")
    group = single(begin(), savepoint, *INSERT, savepoint, xid())
    assert (group.kind, group.alone) == (GroupKind.ROWS, False)
    assert types_of(group.steps) == [19, 30]
    assert group.size == sum(map(len, INSERT))
    group = single(begin(), savepoint, *INSERT, back, xid())
    assert (group.kind, group.alone) == (GroupKind.STATEMENTS, False)
    assert types_of(group.steps) == [2, 19, 30, 2]
    assert single(begin(), savepoint, xid()).kind is GroupKind.EMPTY


def test_a_transaction_that_was_rolled_back_says_so() -> None:
    for end, rolled_back in ((b"ROLLBACK", True), (b"COMMIT", False)):
        group = single(begin(), *INSERT, query(end))
        assert (group.kind, group.rolled_back) == (GroupKind.NON_TRANSACTIONAL, rolled_back)
    assert not single(begin(), *INSERT, xid()).rolled_back


def test_a_statement_that_was_interrupted_is_refused() -> None:
    for code, refused in ((1317, True), (1053, True), (1062, False), (0, False)):
        interrupted = query(b"INSERT INTO t SELECT * FROM u", error_code=code)
        group = single(begin(), interrupted, query(b"COMMIT"))
        assert ("was interrupted on the source" in group.unsupported) == refused


@pytest.mark.parametrize(
    "events",
    [
        (gtid(), gtid()),
        (begin(), gtid()),
        (begin(), begin()),
        (gtid(), begin(), query(b"START TRANSACTION")),
        (xid(),),
        (event(EventType.XA_PREPARE_LOG_EVENT, bytes(20)),),
        (table_map(1),),
        (rows(1),),
        (begin(), event(EventType.WRITE_ROWS_EVENT, bytes(7))),
        (begin(), event(99, b"")),
        (event(EventType.MARIADB_GTID_EVENT, bytes(13)),),
        (gtid(), compressed(begin(), gtid(), xid())),
        (gtid(), compressed(begin(), ROTATE)),
        (gtid(), compressed(begin(), event(99, b""))),
        (gtid(), compressed(begin(), *INSERT, xid()), xid()),
        (gtid(), event(EventType.QUERY_EVENT, b"\0BEGIN")),
        (event(EventType.FORMAT_DESCRIPTION_EVENT, b"\1"),),
        (event(EventType.FORMAT_DESCRIPTION_EVENT, b"\4\0" + bytes(60) + b"\1sum."),),
        (b"short",),
    ],
    ids=range(19),
)
def test_errors_name_the_last_sound_place(events: tuple[bytes, ...]) -> None:
    reader = grouper(start=Position("f.000009", 1000))
    before = Position("f.000009", 1000 + sum(map(len, events[:-1])))
    with pytest.raises(BinlogError) as raised:
        grouped(*events, reader=reader)
    assert raised.value.position == before
    assert str(raised.value).endswith(f"(after {before})")


def test_an_unknown_event_that_may_be_ignored() -> None:
    group = single(begin(), event(99, b"", flags=IGNORABLE), *INSERT, xid())
    assert types_of(group.steps) == [19, 30]


@pytest.mark.parametrize("end", [ROTATE, STOP])
@pytest.mark.parametrize("hold", [10, 1 << 20])
def test_a_half_group_at_the_end_of_a_file_leaves_no_trace(end: bytes, hold: int) -> None:
    reader = grouper(hold_bytes=hold)
    items = grouped(begin(), *INSERT, xid(), begin(), *INSERT, end, reader=reader)
    small = hold > 10
    kinds = [type(item) for item in items if not isinstance(item, GroupChunk)]
    assert kinds == (
        [Group, PositionReached]
        if small
        else [GroupOpened, GroupClosed, GroupOpened, GroupDropped, PositionReached]
    )
    assert [item.number for item in items if isinstance(item, GroupDropped)] == [2] * (not small)
    again = grouped(begin(), *INSERT, xid(), reader=reader)
    last = again[-1].group if isinstance(again[-1], GroupClosed) else again[-1]
    assert isinstance(last, Group)
    assert (last.number, last.databases) == (2, ("d",))


def test_a_description_in_the_middle_of_a_group(recording: Recording) -> None:
    description = recording.raw[0]
    reader = grouper(hold_bytes=10)
    begun = grouped(begin(), *INSERT, reader=reader)
    items = [*begun, *reader.groups([ROTATE, description])]
    assert [type(item) for item in items if not isinstance(item, GroupChunk)] == [
        GroupOpened,
        GroupDropped,
        LogFile,
        PositionReached,
    ]
    assert not list(reader.abandon())


def test_a_table_is_the_same_one_in_the_next_file_but_not_after_a_start() -> None:
    """Whoever applies rows knows a table by its event, and asks the target about another one."""
    reader = grouper()
    found = []
    for number, created in ((2, 1), (3, 0), (4, 2)):
        file = f"f.{number:06}".encode()
        rotate = event(EventType.ROTATE_EVENT, (4).to_bytes(8, "little") + file)
        begun = reader.groups([rotate, description(algorithm=0, created=created)])
        items = [*begun, *grouped(begin(), *INSERT, xid(), reader=reader)]
        (group,) = (item for item in items if isinstance(item, Group))
        found.append(group.rows[0])
    assert found[0] is found[1] is not found[2]


def test_an_incident_drops_what_was_half_read_and_keeps_its_gtid() -> None:
    reader = grouper(hold_bytes=10)
    *_, dropped, incident = grouped(begin(), *INSERT, INCIDENT, reader=reader)
    assert dropped == GroupDropped(1)
    assert isinstance(incident, Group)
    assert (incident.number, incident.kind) == (1, GroupKind.INCIDENT)
    incident = single(gtid(9), INCIDENT)
    assert (incident.kind, incident.gtid and incident.gtid.number) == (GroupKind.INCIDENT, 9)


def test_artificial_events_do_not_move_the_position(recording: Recording) -> None:
    rotate = event(EventType.ROTATE_EVENT, (777).to_bytes(8, "little") + b"f.000005")
    description = recording.raw[0][:13] + bytes(4) + recording.raw[0][17:-4]
    description += crc32(description).to_bytes(4, "little")
    reader = grouper()
    begun = int.from_bytes(description[:4], "little")
    assert list(reader.groups([rotate, description])) == [LogFile("f.000005", begun)]
    assert reader.position == Position("f.000005", 777)
    with pytest.raises(BinlogError, match="checksum mismatch"):
        # The description said that events have checksums.
        list(reader.groups([STOP + bytes(4)]))


GIB = 1 << 30


@given(
    st.lists(st.integers(0, GIB), min_size=1, max_size=40),
    st.sampled_from([4, 3 * GIB, 4 * GIB - 30, 4 * GIB - 40, 4 * GIB, 9 * GIB]),
)
@settings(deadline=None)
def test_positions_past_4_gib(gaps: list[int], start: int) -> None:
    """A dump by GTID leaves groups out, and a heartbeat says so: of these gaps each is smaller."""
    reader = grouper(start=Position("f.000001", start))
    offset = start
    transaction = (begin(), *INSERT, xid())
    for gap in gaps:
        offset += gap
        beat = event(EventType.HEARTBEAT_LOG_EVENT, b"f.000001", log_pos=offset & 0xFFFFFFFF)
        (group,) = reader.groups([beat, *placed(transaction, offset)])
        offset += sum(map(len, transaction))
        assert isinstance(group, Group)
        assert group.end == Position("f.000001", offset)


def test_a_heartbeat_at_the_same_place_does_not_move_the_position() -> None:
    for at in (5 * GIB, 4 * GIB - 1, 100):
        reader = grouper(start=Position("f.000001", at))
        beat = event(EventType.HEARTBEAT_LOG_EVENT, b"f.000001", log_pos=at & 0xFFFFFFFF)
        assert list(reader.groups([beat, beat])) == []
        assert reader.position.offset == at


def test_checksums() -> None:
    events = in_stream([gtid(1), begin(), *INSERT, xid()])
    (group,) = grouper(checksums=True).groups(events)
    assert isinstance(group, Group)
    # The header's length is set where the events are used.
    assert group.rows == (events[2][:-4], events[3][:-4])
    for index in range(len(events)):
        damaged = events.copy()
        damaged[index] = damaged[index][:-1] + bytes((damaged[index][-1] ^ 1,))
        with pytest.raises(BinlogError, match="checksum mismatch in an event of type"):
            list(grouper(checksums=True).groups(damaged))


def test_events_inside_a_payload_have_no_position_and_no_checksum() -> None:
    inner = placed([begin(), *INSERT, xid()], 1 << 20)
    reader = grouper(checksums=True)
    events = in_stream([gtid(1, length=10_000), compressed(*inner)])
    (group,) = reader.groups(events)
    assert isinstance(group, Group)
    assert reader.position.offset == 4 + sum(map(len, events))
    assert group.end == reader.position
    (again,) = reader.groups(in_stream([query(b"CREATE DATABASE x")], group.end.offset))
    assert isinstance(again, Group)
    with pytest.raises(BinlogError, match="checksum"):
        list(reader.groups([query(b"CREATE DATABASE x")]))


def test_a_large_group_is_streamed_from_its_first_chunk_on() -> None:
    """The GTID event tells its size, so nothing is held that will not be held anyway."""
    reader = grouper(hold_bytes=1000, chunk_bytes=100)
    events = [gtid(1, length=5000), begin(), table_map(1), *(rows(1, bytes(60)) for _ in range(9))]
    items = grouped(*events, xid(), reader=reader)
    chunks = [item for item in items if isinstance(item, GroupChunk)]
    assert [type(item) for item in items] == [
        GroupOpened, *[GroupChunk] * len(chunks), GroupClosed,
    ]  # fmt: skip
    assert max(chunk.size for chunk in chunks) < 250
    closed = items[-1]
    assert isinstance(closed, GroupClosed)
    assert closed.group.size == sum(chunk.size for chunk in chunks)
    opened = items[0]
    assert isinstance(opened, GroupOpened)
    assert (opened.length, str(opened.gtid)[-2:], opened.unsupported) == (5000, ":1", "")


def test_chunks_of_a_group_whose_size_was_not_told() -> None:
    reader = grouper(hold_bytes=1000, chunk_bytes=100)
    events = [begin(), table_map(1), *(rows(1, bytes(60)) for _ in range(30))]
    items = grouped(*events, xid(), reader=reader)
    sizes = [item.size for item in items if isinstance(item, GroupChunk)]
    assert 1000 < sizes[0] < 1200
    assert max(sizes[1:]) < 250


def test_a_large_create_select_is_told_when_it_is_opened() -> None:
    create = query(b"CREATE TABLE t (a INT) START TRANSACTION", status=b"\x0c\x01d\0")
    opened, *_ = grouped(begin(), create, *INSERT, xid(), reader=grouper(hold_bytes=10))
    assert isinstance(opened, GroupOpened)
    assert (opened.unsupported, opened.creates_table) == ("", True)


def test_memory_is_bounded_by_what_may_be_held() -> None:
    """Whatever the source sends, applied or not: rows, LOAD DATA, savepoints."""
    size, count, hold = 100_000, 300, 1_000_000

    for piece in (
        rows(1, bytes(size)),
        event(EventType.APPEND_BLOCK_EVENT, bytes(size)),
        query(b"SAVEPOINT `" + b"x" * size + b"`"),
        query(b"INSERT INTO t VALUES ('" + b"x" * size + b"')"),
    ):
        reader = grouper(hold_bytes=hold, chunk_bytes=hold)
        grouped(begin(), table_map(1), reader=reader)
        tracemalloc.start()
        try:
            for _ in range(count):
                for item in grouped(piece, reader=reader):
                    assert isinstance(item, GroupOpened | GroupChunk)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        # Of 30 MB.
        assert peak < 2.5 * hold


def test_what_is_not_applied_is_told_when_it_is_opened() -> None:
    reader = grouper(hold_bytes=10)
    interrupted = query(b"INSERT INTO t VALUES (1)", error_code=1317)
    opened, *_ = grouped(gtid(1), begin(), interrupted, xid(), reader=reader)
    assert isinstance(opened, GroupOpened)
    assert "interrupted on the source" in opened.unsupported
