from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from mtsd.binlog.bytes.framing import FileFramer
from mtsd.binlog.groups.grouper import Grouper
from mtsd.binlog.groups.updated_tables import UpdatedTables
from mtsd.model.errors import BinlogError
from mtsd.model.group import Group, GroupClosed, StreamItem
from mtsd.model.position import FIRST_EVENT, Position
from mtsd.model.step import Rows
from mtsd.schedule.policies.assignment import Need
from mtsd.spark.plan.group_record import (
    GroupRecorder,
    RecordError,
    count_of,
    recorded_needs,
    replayed_groups,
)
from tests.load import small
from tests.servers.mysqld import Server


@pytest.fixture(scope="module")
def binlog(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file with small transactions, a large one, definitions and statements."""
    server.sql("RESET BINARY LOGS AND GTIDS")
    small.prepare(server, 3)
    small.fill(server, 300, 3, seed=301)
    small.large(server, 300_000)
    server.sql("CREATE TABLE small0.both (id INT PRIMARY KEY)")
    server.sql("SET SESSION binlog_format = 'STATEMENT'; INSERT INTO small0.both VALUES (1)")
    server.sql("FLUSH BINARY LOGS")
    path = tmp_path_factory.mktemp("record") / "binlog.000001"
    path.write_bytes((server.datadir / path.name).read_bytes())
    return path


def items(path: Path, hold_bytes: int) -> list[StreamItem]:
    grouper = Grouper(
        start=Position(path.name, FIRST_EVENT),
        next_number=1,
        hold_bytes=hold_bytes,
        chunk_bytes=hold_bytes,
        checksums=False,
    )
    return list(grouper.groups(list(FileFramer().feed(path.read_bytes()))))


def groups(path: Path) -> list[Group]:
    return [item for item in items(path, 1 << 30) if isinstance(item, Group)]


@pytest.mark.parametrize("hold_bytes", [1 << 30, 50_000])
def test_the_record_has_what_the_scheduler_sees(
    binlog: Path, tmp_path: Path, hold_bytes: int
) -> None:
    path = tmp_path / "load.parquet"
    stream = items(binlog, hold_bytes)
    assert (hold_bytes < 1 << 20) == any(isinstance(item, GroupClosed) for item in stream)
    with GroupRecorder(path) as recorder:
        recorder.add(stream[:100])
        recorder.add(stream[100:])
    found = list(replayed_groups(str(path)))
    expected = groups(binlog)
    assert recorder.groups == count_of(str(path)) == len(found) == len(expected)
    formats = {one.group.format_description for one in found}
    assert formats == {b"0"}
    for one, group in zip(found, expected, strict=True):
        bare = replace(group,
            steps=(), gtid=None, temporary=None, format_description=b"0",
            tables=UpdatedTables(fold_case=False)(group).tables, begin=0,
        )  # fmt: skip
        assert replace(one.group, steps=()) == bare
        has_statements = any(not isinstance(step, Rows) for step in group.steps)
        assert bool(one.group.steps) == has_statements
        assert not any(isinstance(step, Rows) for step in one.group.steps)
    ends = [FIRST_EVENT, *(one.group.end.offset for one in found)]
    assert [one.length for one in found] == [after - before for before, after in pairwise(ends)]


def test_rows_and_tables_are_counted(binlog: Path, tmp_path: Path, server: Server) -> None:
    path = tmp_path / "load.parquet"
    with GroupRecorder(path) as recorder:
        recorder.add(items(binlog, 1 << 30))
    found = list(replayed_groups(str(path)))
    large = max(found, key=lambda one: one.rows)
    assert large.rows == int(str(server.sql("SELECT COUNT(*) FROM small0.blobs")[0][0]))
    assert large.group.tables == ("small0.blobs",)
    updates = [one for one in found if any(name.endswith(".items") for name in one.group.tables)]
    assert len(updates) == 300
    assert {one.rows for one in updates} == {2, 3}
    assert recorded_needs(str(path)) == {Need.TABLES}
    assert [one.group.number for one in replayed_groups(str(path), 7)] == list(range(1, 8))


def damaged(stream: list[StreamItem]) -> Iterator[StreamItem]:
    yield from stream
    raise BinlogError("damaged")


def test_nothing_is_left_of_a_record_that_fails(binlog: Path, tmp_path: Path) -> None:
    recorder = GroupRecorder(tmp_path / "load.parquet")
    with pytest.raises(BinlogError), recorder:
        recorder.add(damaged(items(binlog, 1 << 30)))
    assert not list(tmp_path.iterdir())


def test_other_files_are_no_records(binlog: Path, tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="it is no Parquet file"):
        count_of(str(binlog))
    with pytest.raises(RecordError, match="cannot be read"):
        count_of(str(tmp_path / "none"))
    path = tmp_path / "other.parquet"
    with GroupRecorder(path):
        pass
    table = pq.read_table(path)
    pq.write_table(table.replace_schema_metadata({}), path)
    with pytest.raises(RecordError, match="record again"):
        list(replayed_groups(str(path)))


def test_a_damaged_record_is_an_error_that_names_it(binlog: Path, tmp_path: Path) -> None:
    path = tmp_path / "load.parquet"
    with GroupRecorder(path) as recorder:
        recorder.add(items(binlog, 1 << 30))
    content = bytearray(path.read_bytes())
    content[4:400] = bytes(396)
    path.write_bytes(content)
    with pytest.raises(RecordError, match=r"load\.parquet is damaged: "):
        list(replayed_groups(str(path)))
