"""Binary logs of a real server as DataFrames, in one process and in any number of tasks."""

import random
import re
import shutil
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, PythonException
from pyspark.sql import DataFrame, SparkSession

from mtsd.binlog.files.range_reader import RangeReader
from mtsd.binlog.files.ranges import ByteRange
from mtsd.cli.listing.event_listing import event_lines
from mtsd.spark import latest
from mtsd.spark.logs.failure import UnreadableBinlogError, failure_line
from tests.binlog.range_cases import Contents, raw_events
from tests.binlog.recording import OPTIONS, play
from tests.servers.mysqld import Server
from tests.spark.direct_reads import Row, read_directly

pytestmark = [pytest.mark.servers, pytest.mark.timeout(600)]

Read = Callable[..., DataFrame]
Directly = Callable[..., list[Row]]
TRANSACTIONS = 200


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("binlogs")
    with Server(OPTIONS) as server:
        for path in play(server):
            shutil.copy(path, folder)
    return folder


@pytest.fixture(scope="module")
def directly(folder: Path) -> Directly:
    def directly(shape: str, path: Path = folder, **options: object) -> list[Row]:
        given = {name: str(value) for name, value in options.items()}
        return read_directly({"shape": shape, "path": str(path), **given})

    return directly


@pytest.fixture(scope="module")
def read(spark: SparkSession, folder: Path) -> Read:
    def read(shape: str, path: Path = folder, **options: object) -> DataFrame:
        reader = spark.read.format("mtsd_binlog").option("shape", shape)
        for name, value in options.items():
            reader = reader.option(name, str(value))
        return reader.load(str(path))

    return read


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())


@pytest.mark.parametrize("tasks", [6, *(pytest.param(n, marks=pytest.mark.long) for n in (1, 48))])
def test_groups_are_those_of_the_files(read: Read, folder: Path, tasks: int) -> None:
    wanted = []
    for path in sorted(folder.iterdir()):
        data = path.read_bytes()
        bounds = ByteRange(path.name, 4, len(data), len(data))
        for part in RangeReader(Contents(data), bounds, path.name).parts():
            assert part.group
            wanted.append(
                (
                    path.name,
                    part.begin,
                    part.end,
                    str(part.gtid),
                    part.group.kind.value,
                    sorted(part.group.databases),
                    part.group.size,
                )
            )
    found = read("groups", max_partition_bytes=size_of(folder) // tasks + 1)
    names = ("file", "begin", "pos", "gtid", "kind", "databases", "bytes")
    assert sorted(tuple(row[name] for name in names) for row in found.collect()) == wanted


def test_rows_and_tables_of_groups(directly: Directly) -> None:
    groups = directly("groups", columns="kind,rows,tables")
    rows = [tuple(row.values()) for row in groups if row["rows"]]
    assert [rows for kind, rows, _ in rows if kind == "create_select"] == [1]
    assert ("rows", 2, ["d1.types"]) in rows


def test_events_are_those_that_mtsd_binlog_lists(directly: Directly, folder: Path) -> None:
    wanted = []
    for path in sorted(folder.iterdir()):
        raw = raw_events(path.read_bytes())
        pos = 0
        for line in event_lines(path.name, raw):
            pos = line.offset or pos
            wanted.append((path.name, pos, line.type, line.inner, line.header.server_id))
    found = directly("events", columns="file,pos,type,inner,server_id", max_partition_bytes=9000)
    assert [tuple(row.values()) for row in found] == wanted


def test_positions(directly: Directly, folder: Path) -> None:
    places = [(row["file"], row["pos"], row["begin"]) for row in directly("groups")]
    last = max(folder.iterdir()).name
    number = [file for file, *_ in places].index(last) + 9
    file, pos, begin = places[number]
    first = min(folder.iterdir()).name
    for options, wanted in (
        ({"start": f"{file}:{begin}"}, places[number:]),
        ({"end": f"{file}:{pos}"}, places[: number + 1]),
    ):
        found = directly("groups", **options)
        assert [(row["file"], row["pos"], row["begin"]) for row in found] == wanted
    with pytest.raises(UnreadableBinlogError, match="'start' and 'end' leave nothing"):
        directly("groups", start=file, end=f"{first}:4")


def test_sql_reads_the_same(spark: SparkSession, read: Read, folder: Path) -> None:
    path = str(min(folder.iterdir()))
    for name, value in {"groups": "groups", "changes": "changes"}.items():
        named = f"path => '{path}', shape => '{value}'"
        found = spark.sql(f"SELECT * FROM mtsd_changes({named})")
        wanted = read(name, path=Path(path))
        assert found.schema == wanted.schema
        assert sorted(map(str, found.collect())) == sorted(map(str, wanted.collect()))
    with pytest.raises(AnalysisException, match="option 'shap' is unknown: did you mean 'shape'"):
        spark.sql(f"SELECT * FROM mtsd_changes(path => '{path}', shap => 'table')")
    for given, message in (
        (f"'{path}'", r"options of mtsd_changes have names, as in mtsd_changes\(path => "),
        (f"path => '{path}', since => DATE'2026-01-02'", "'since' of mtsd_changes is a date: it"),
        (f"path => '{path}', start => NULL", "'start' of mtsd_changes is a void: it has to be"),
    ):
        with pytest.raises(AnalysisException, match=message):
            spark.sql(f"SELECT * FROM mtsd_changes({given})")
    # Spark keeps the columns of a table of its catalog, and not its options: a view has them.
    options = f"path = '{path}', shape = 'changes'"
    spark.sql(f"CREATE TABLE log USING mtsd_binlog OPTIONS ({options.replace(' =', '')})")
    try:
        spark.sql(f"CREATE VIEW log_changes AS SELECT * FROM log WITH ({options})")
        assert spark.table("log_changes").count() == read("changes", path=Path(path)).count() > 0
        spark.sql("DROP VIEW log_changes")
        with pytest.raises(AnalysisException, match=r"SELECT … FROM … WITH \(path = …\)"):
            spark.table("log").collect()
    finally:
        spark.sql("DROP TABLE log")


def test_what_is_wrong_is_said_by_name(
    spark: SparkSession, directly: Directly, folder: Path
) -> None:
    for options, message in (
        ({"shap": 1}, "option 'shap' is unknown: did you mean 'shape'?"),
        ({"columns": "file,a"}, "there is no a: there are file, begin, pos"),
        ({"path": folder / "none"}, "there are no binary logs at"),
        ({"start": "binlog.000000"}, "'start': there is no binlog.000000, there is binlog.000001"),
        ({"start": "mysql-bin.000001:4"}, "option 'start': there is no mysql-bin.000001, there"),
        ({"end": "aa.000001:4"}, "option 'end': there is no aa.000001, there is binlog.000001 to"),
    ):
        with pytest.raises(UnreadableBinlogError, match=re.escape(message)):
            directly("groups", **options)
    reader = spark.read.format("mtsd_binlog").option("shape", "groups")
    with pytest.raises(AnalysisException) as caught:
        reader.schema("pos STRING").load(str(folder)).collect()
    assert "column 'pos' of shape 'groups' is bigint, not" in str(failure_line(caught.value))
    assert reader.schema("pos BIGINT, kind STRING").load(str(folder)).count() > 50


def test_damage_is_one_line_with_file_and_position(
    read: Read, folder: Path, tmp_path: Path
) -> None:
    copy = tmp_path / min(folder.iterdir()).name
    data = bytearray(min(folder.iterdir()).read_bytes())
    data[3000] ^= 0xFF
    copy.write_bytes(data)
    with pytest.raises(PythonException) as caught:
        read("groups", tmp_path).collect()
    assert len(str(caught.value).splitlines()) < 8
    line = failure_line(caught.value)
    assert line is not None
    assert line.startswith(f"{copy}: checksum mismatch in an event of type ")
    assert f"(after {copy.name}:" in line


@dataclass(frozen=True)
class Written:
    """Binary logs of a table that was changed at random, and the source's facts about it."""

    folder: Path
    rows: int
    checksum: int


SHOWN = (
    "id", "name", "CAST(balance AS CHAR)", "CAST(born AS CHAR)", "CAST(CAST(doc AS CHAR) AS CHAR)",
    "CAST(seen AS CHAR)",
)  # fmt: skip


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    folder = tmp_path_factory.mktemp("written")
    rng = random.Random(31)
    with Server(OPTIONS) as server:
        server.sql("SET GLOBAL max_binlog_size = 65536")
        server.sql("CREATE DATABASE w")
        with closing(server.client("w")) as client, client.cursor() as cursor:
            cursor.execute("SET time_zone = '+00:00'")
            cursor.execute(
                "CREATE TABLE t (id BIGINT UNSIGNED PRIMARY KEY, name VARCHAR(60),"
                " balance DECIMAL(20, 4), born DATE, doc JSON, seen TIMESTAMP(3) NULL)"
            )
            cursor.execute("CREATE TABLE noise (a INT)")
            for number in range(TRANSACTIONS):
                compressed = "ON" if number % 5 == 0 else "OFF"
                cursor.execute(f"SET binlog_transaction_compression = {compressed}")
                first = number * 10
                values = ", ".join(
                    f"({first + n}, '{rng.choice(('é', 'x', ''))}{rng.random()}',"
                    f" {rng.randrange(10**9) / 10000}, '2020-02-{rng.randrange(1, 29):02}',"
                    f""" '{{"n": {rng.randrange(1000)}, "s": "{rng.random()}"}}', NULL)"""
                    for n in range(rng.randrange(1, 10))
                )
                cursor.execute("BEGIN")
                cursor.execute(f"INSERT INTO t VALUES {values}")
                cursor.execute(
                    f"UPDATE t SET balance = balance + 1, seen = '2024-05-06 07:08:09.125'"
                    f" WHERE id % 7 = {rng.randrange(7)} AND id > {first - 300}"
                )
                cursor.execute(f"DELETE FROM t WHERE id = {rng.randrange(first + 10)}")
                cursor.execute("INSERT INTO noise VALUES (1)")
                cursor.execute(f"UPDATE t SET id = id + 1000000 WHERE id = {first}")
                cursor.execute("COMMIT")
            shown = ", ".join(f"IFNULL({one}, 'NULL')" for one in SHOWN)
            line = f"CONCAT_WS('|', {shown})"
            cursor.execute(f"SELECT COUNT(*), SUM(CRC32({line})) FROM t")
            ((rows, checksum),) = cursor.fetchall()
        server.sql("FLUSH BINARY LOGS")
        names = [str(name) for name, *_ in server.sql("SHOW BINARY LOGS")][:-1]
        for name in names:
            shutil.copy(server.datadir / name, folder)
    assert len(names) > 3
    return Written(folder, int(rows), int(checksum))


@pytest.mark.parametrize("tasks", [6, *(pytest.param(n, marks=pytest.mark.long) for n in (1, 48))])
def test_the_table_has_the_sources_checksum(read: Read, written: Written, tasks: int) -> None:
    frame = read(
        "table",
        written.folder,
        table="w.t",
        max_partition_bytes=size_of(written.folder) // tasks + 1,
    )
    types = dict(frame.dtypes)
    assert types["id"] == "decimal(20,0)"
    assert (types["balance"], types["seen"]) == ("decimal(20,4)", "timestamp")
    shown = ("id", "name", "balance", "born", "doc")
    columns = ", ".join(f"ifnull(cast({one} AS string), 'NULL')" for one in shown)
    columns += ", ifnull(date_format(seen, 'yyyy-MM-dd HH:mm:ss.SSS'), 'NULL')"
    line = f"sum(crc32(concat_ws('|', {columns})))"
    ((rows, checksum),) = latest(frame).selectExpr("count(*)", line).collect()
    assert (rows, checksum) == (written.rows, written.checksum)


def test_changes_are_fit_for_variant(spark: SparkSession, read: Read, written: Written) -> None:
    frame = read("changes", written.folder, max_partition_bytes="256k")
    keys = frame.select("file", "pos", "row").collect()
    assert len(set(keys)) == len(keys) > written.rows
    there = latest(frame.where("table = 't' AND schema = 'w'"))
    assert there.where("after IS NOT NULL").count() == there.count() == written.rows
    frame.createOrReplaceTempView("changes")
    ((before, after),) = spark.sql(
        """SELECT
            sum(variant_get(parse_json(before), '$.balance', 'decimal(20,4)')),
            sum(variant_get(parse_json(after), '$.balance', 'decimal(20,4)'))
        FROM changes WHERE table = 't' AND schema = 'w'"""
    ).collect()
    typed = read("table", written.folder, table="w.t", columns="_op,balance")
    sums = typed.groupBy("_op").sum("balance").collect()
    totals = {row[0]: row[1] for row in sums}
    assert before == totals["delete"] + totals["update_preimage"]
    assert after == totals["insert"] + totals["update_postimage"]


def test_one_frame_with_several_filters(spark: SparkSession, read: Read, written: Written) -> None:
    frame = read("changes", written.folder, columns="op,table,row")
    counts = {
        (row["table"], row["op"]): row["count"]
        for row in frame.groupBy("table", "op").count().collect()
    }
    assert counts["noise", "insert"] == TRANSACTIONS
    noise, deleted = frame.where("table = 'noise'"), frame.where("op = 'delete'")
    noise.explain()
    assert frame.count() == sum(counts.values())
    assert noise.count() == TRANSACTIONS
    assert deleted.count() == counts["t", "delete"]
    assert noise.union(deleted).count() == TRANSACTIONS + counts["t", "delete"]
    assert frame.where("table = 'none'").count() == 0
    assert frame.count() == sum(counts.values())
    frame.createOrReplaceTempView("one_frame")
    found = spark.sql(
        "SELECT (SELECT count(*) FROM one_frame WHERE table = 'noise'),"
        " (SELECT count(*) FROM one_frame)"
    )
    assert tuple(found.collect()[0]) == (TRANSACTIONS, sum(counts.values()))
