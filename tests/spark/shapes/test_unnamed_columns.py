"""One table from files some of which do not name its columns, with changes of the table."""

import itertools
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from mtsd.spark.logs.failure import UnreadableBinlogError
from mtsd.spark.source.data_source import BinlogDataSource
from tests.servers.mysqld import Server

DDL = "CREATE TABLE t (a INT PRIMARY KEY, b INT)"
MINIMAL = "SET GLOBAL binlog_row_metadata = MINIMAL"
FULL = "SET GLOBAL binlog_row_metadata = FULL"
FLUSH = "FLUSH BINARY LOGS"
FIRST = "ALTER TABLE t MODIFY b INT FIRST"
OTHER = "CREATE TABLE u (a INT)"

Record = Callable[[Sequence[str]], Path]


@pytest.fixture
def record(server: Server, tmp_path: Path) -> Iterator[Record]:
    """Return a function that returns a folder of the files, numbered from 1, of statements."""

    def record(statements: Sequence[str]) -> Path:
        server.sql("DROP DATABASE IF EXISTS d; CREATE DATABASE d; RESET BINARY LOGS AND GTIDS")
        with closing(server.client("d")) as client, client.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
        server.sql(FLUSH)
        names = [str(name) for name, *_ in server.sql("SHOW BINARY LOGS")]
        for name in names[:-1]:
            shutil.copy(server.datadir / name, tmp_path)
        return tmp_path

    yield record
    server.sql(FULL)


def read(folder: Path, **options: str) -> list[tuple[object, object]]:
    source = BinlogDataSource(
        {"path": str(folder), "shape": "table", "table": "d.t", "ddl": DDL, **options}
    )
    reader = source.reader(source.schema())
    rows = [
        row
        for task in reader.partitions()
        for batch in reader.read(task)
        for row in batch.to_pylist()
    ]
    return [(row["a"], row["b"]) for row in rows if row.get("_op") != "truncate"]


@pytest.mark.parametrize("contents", [b"\xfdbin\xfe", b"\xfeb", b""])
def test_files_out_of_the_range_are_not_read(record: Record, contents: bytes) -> None:
    folder = record([FLUSH, DDL, "INSERT INTO t VALUES (1, 10)", FIRST, FLUSH])
    for number in (1, 3):
        (folder / f"binlog.{number:06}").write_bytes(contents)
    end = f"binlog.000002:{(folder / 'binlog.000002').stat().st_size}"
    assert read(folder, start="binlog.000002:4", end=end) == [(1, 10)]


def test_older_files_without_names_do_not_matter(record: Record) -> None:
    folder = record(
        [
            MINIMAL, DDL, "INSERT INTO t VALUES (1, 10)", FULL, FLUSH,
            FIRST, FLUSH,
            "INSERT INTO t (a, b) VALUES (2, 20)",
        ]
    )  # fmt: skip
    for size in ("1g", "200"):
        start = "binlog.000002:4"
        assert read(folder, start=start, max_partition_bytes=size) == [(2, 20)]
        with pytest.raises(UnreadableBinlogError, match="ALTER TABLE t MODIFY b INT FIRST"):
            read(folder, max_partition_bytes=size)


def test_names_from_the_middle_of_a_file_on(record: Record) -> None:
    folder = record(
        [
            MINIMAL, OTHER, "INSERT INTO u VALUES (1)", FULL, DDL,
            FIRST, "INSERT INTO t (a, b) VALUES (2, 20)",
        ]
    )  # fmt: skip
    with pytest.raises(UnreadableBinlogError, match="ALTER TABLE t MODIFY b INT FIRST"):
        read(folder)
    assert read(folder, start=begins(folder, "ddl")[-1]) == [(2, 20)]


@pytest.mark.parametrize("is_first_named", [False, True])
def test_names_only_before_or_after_a_change(record: Record, *, is_first_named: bool) -> None:
    before, after = (FULL, MINIMAL) if is_first_named else (MINIMAL, FULL)
    folder = record(
        [
            before, DDL, "INSERT INTO t VALUES (1, 10)", FLUSH,
            FIRST, FLUSH,
            after, "INSERT INTO t (a, b) VALUES (2, 20)",
        ]
    )  # fmt: skip
    with pytest.raises(UnreadableBinlogError, match="ALTER TABLE t MODIFY b INT FIRST"):
        read(folder, ddl="CREATE TABLE t (b INT, a INT PRIMARY KEY)")


RESTORED = [
    OTHER, "INSERT INTO u VALUES (1)",
    "DROP TABLE IF EXISTS t", DDL, "INSERT INTO t VALUES (1, 10)",
]  # fmt: skip


@pytest.mark.parametrize("before", [[], [OTHER, "INSERT INTO u VALUES (5)", "DROP TABLE u", FLUSH]])
def test_a_restored_dump(record: Record, before: list[str]) -> None:
    folder = record([MINIMAL, *before, *RESTORED])
    assert read(folder) == [(1, 10)]
    with pytest.raises(UnreadableBinlogError, match="DROP TABLE IF EXISTS"):
        read(folder, ddl=DDL.replace("b INT", "b INT UNSIGNED"))


@pytest.mark.parametrize(
    "statements",
    [
        [DDL, "INSERT INTO t VALUES (0, 5)", *RESTORED],
        [DDL, "INSERT INTO t VALUES (0, 5)", FLUSH, *RESTORED],
        [*RESTORED[:-1], FIRST, "INSERT INTO t (a, b) VALUES (2, 20)"],
        [*RESTORED[:-2], "CREATE TABLE t (b INT, a INT)", "INSERT INTO t VALUES (5, 1)"],
        [
            *RESTORED[:-2],
            "CREATE TABLE t (a INT, c INT)",
            DDL.replace("TABLE", "TABLE IF NOT EXISTS"),
            "INSERT INTO t VALUES (1, 5)",
        ],
        [*RESTORED[:-2], FLUSH, *RESTORED[-2:]],
    ],
)
def test_a_drop_that_may_change_columns(record: Record, statements: list[str]) -> None:
    folder = record([MINIMAL, *statements])
    with pytest.raises(UnreadableBinlogError, match="may have other columns"):
        read(folder, unseen_changes="skip")


ADDED = [
    DDL, "INSERT INTO t VALUES (1, 10)",
    "ALTER TABLE t ADD c TEXT FIRST", "INSERT INTO t VALUES ('x', 2, 20)",
    "ALTER TABLE t DROP c, MODIFY b BIGINT", "INSERT INTO t VALUES (3, 30)",
]  # fmt: skip
LATER = (
    r"there is a column `c` that is not one of this read, since the statement at"
    r" binlog.000001:\d+: ALTER TABLE t ADD c TEXT FIRST; leave the column out by option 'columns'"
)


def test_a_definition_does_not_matter_to_rows_with_names(record: Record) -> None:
    folder = record(ADDED)
    assert read(folder, columns="a,b") == [(1, 10), (2, 20), (3, 30)]


@pytest.mark.parametrize("flushed", [False, True])
def test_a_column_that_is_added_later_is_named(record: Record, *, flushed: bool) -> None:
    folder = record([*ADDED[:3], *[FLUSH] * flushed, *ADDED[3:4]])
    # Whether the statement is read by the same task, or by another one, of another file.
    for size in ("1g", "150"):
        with pytest.raises(UnreadableBinlogError, match=LATER):
            read(folder, max_partition_bytes=size, ddl="")
    assert read(folder, columns="a,b") == [(1, 10), (2, 20)]
    after = next(place for place in begins(folder, "rows") if place != begins(folder, "rows")[0])
    options = {"path": str(folder), "shape": "table", "table": "d.t", "start": after}
    assert "c" in BinlogDataSource(options).schema().names
    assert read(folder, ddl="", start=after) == [(2, 20)]


def test_a_column_that_is_added_while_a_stream_runs(record: Record, server: Server) -> None:
    folder = record([*ADDED[:2], FLUSH])
    name = str(server.sql("SHOW BINARY LOGS")[-2][0])
    live = {"host": "127.0.0.1", "port": str(server.port), "user": "root", "start": name}
    for given in (live, {"path": str(folder)}):
        options = {**given, "shape": "table", "table": "d.t"}
        source = BinlogDataSource(options)
        schema = source.schema()
        if given is live:
            server.sql(f"USE d; {'; '.join(ADDED[2:4])}; FLUSH BINARY LOGS")
        else:
            record(ADDED[:4])
        place: dict[str, str | int] | None = None
        for _ in range(2):
            # A query that is started again reads the same batch.
            reader = source.streamReader(schema)
            place = place or reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
            end = reader.latestOffset(place, ReadAllAvailable())
            tasks = [reader.read(task) for task in reader.partitions(place, end)]
            with pytest.raises(UnreadableBinlogError, match=r"since the statement at .*ADD c TEXT"):
                list(itertools.chain(*tasks))
            reader.stop()


def begins(folder: Path, kind: str) -> list[str]:
    """Return where the groups of a kind begin."""
    source = BinlogDataSource({"path": str(folder), "shape": "groups"})
    reader = source.reader(source.schema())
    return [
        f"{row['file']}:{row['begin']}"
        for task in reader.partitions()
        for batch in reader.read(task)
        for row in batch.to_pylist()
        if row["kind"] == kind
    ]
