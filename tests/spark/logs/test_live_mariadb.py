"""A live MariaDB as a source, with the documented grants alone."""

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import StructType

from mtsd.binlog.files.range_reader import RangeReader
from mtsd.binlog.files.ranges import whole_file, whole_files
from mtsd.spark.logs.folder_logs import FolderLogs
from mtsd.spark.logs.live_logs import LiveLogs
from mtsd.spark.logs.logs import name_of
from mtsd.spark.options.live_options import LiveOptions
from mtsd.spark.options.option_filters import option_filters
from mtsd.spark.options.options import Options
from mtsd.spark.plan.group_record import GroupRecorder, replayed_groups
from mtsd.spark.shapes.change_shape import ChangeShape
from mtsd.spark.shapes.group_shape import GroupShape
from mtsd.spark.shapes.shape import Shape, ShapeRequest, pruned
from mtsd.spark.shapes.table_shape import TableShape
from mtsd.spark.source.data_source import BinlogDataSource
from tests.servers.mariadb import provide_mariadb
from tests.servers.mysqld import Server

pytestmark = [pytest.mark.servers, pytest.mark.timeout(300)]


@pytest.fixture(scope="module", params=["FULL", "NO_LOG"])
def source(request: pytest.FixtureRequest) -> Iterator[Server]:
    settings = {"binlog_format": "ROW", "binlog_row_metadata": request.param}
    with Server(settings, installation=provide_mariadb("11.8")) as server:
        server.sql(
            "CREATE USER spark IDENTIFIED BY 'pw';"
            " GRANT REPLICATION SLAVE, REPLICATION CLIENT, SELECT ON *.* TO spark;"
            " CREATE DATABASE a;"
            " CREATE TABLE a.t (id INT PRIMARY KEY, u UUID, i6 INET6, i4 INET4);"
            " INSERT INTO a.t VALUES"
            " (1, '123e4567-e89b-12d3-a456-426655440000', '2001:db8::1', '1.2.3.4'),"
            " (2, NULL, '::', '0.0.0.0');"
            " CREATE TABLE a.hashed (id INT PRIMARY KEY, long_one TEXT UNIQUE);"
            " INSERT INTO a.hashed VALUES (1, 'one'), (2, 'two');"
            " ALTER TABLE a.hashed DROP KEY long_one;"
            " CREATE TABLE a.periods (id INT, period DATE, e DATE, PERIOD FOR p (period, e));"
            " INSERT INTO a.periods VALUES (1, '2026-01-01', '2026-01-02');"
            " CREATE TABLE a.places (p POINT, a TEXT CHARACTER SET utf8mb4, b BLOB, c BLOB, d BLOB,"
            " e TEXT CHARACTER SET latin2);"
            " INSERT INTO a.places VALUES (NULL, 'é', '', '', '', 'ł');"
            " DELETE FROM a.hashed WHERE id = 1;"
            " CREATE TABLE a.packed (id INT, t VARCHAR(500) COMPRESSED CHARACTER SET utf8mb4,"
            " b BLOB COMPRESSED, l TEXT COMPRESSED CHARACTER SET latin2);"
            " INSERT INTO a.packed VALUES (1, REPEAT('é', 200), REPEAT('x', 9000), 'ł'),"
            " (2, NULL, '', NULL), (3, '', NULL, 'no');"
            " CREATE TABLE a.xa (id INT PRIMARY KEY);"
            " XA START 'y'; INSERT INTO a.xa VALUES (1); XA END 'y'; XA PREPARE 'y'; XA COMMIT 'y';"
            " XA START 'z'; INSERT INTO a.xa VALUES (2); XA END 'z'; XA PREPARE 'z';"
            " XA ROLLBACK 'z'; CREATE OR REPLACE TABLE a.xa AS SELECT 3 AS id;"
            # What is left out ends no read.
            " CREATE TABLE a.stated (id INT);"
            " CREATE DATABASE b; CREATE TABLE b.x (id INT PRIMARY KEY);"
            " XA START 'x'; INSERT INTO b.x VALUES (1); XA END 'x'; XA PREPARE 'x'; XA COMMIT 'x';"
            " SET binlog_format = STATEMENT; INSERT INTO b.x VALUES (2); TRUNCATE b.x;"
            " INSERT INTO a.stated VALUES (2)"
        )
        yield server


def rows(source: Server, columns: tuple[str, ...]) -> tuple[StructType, list[dict[str, object]]]:
    """Return what a batch of the live source reads, with an id of its own for each task."""
    live = LiveOptions(
        port=source.port, user="spark", password="pw", server_ids=(9001,), retry_seconds=0.0
    )
    logs = LiveLogs(live)
    shape = TableShape()
    loaded = logs.definition("a", "t")
    options = Options(shape="table", table=("a", "t"), columns=columns, live=live, loaded=loaded)
    schema = pruned(shape.schema(options, []), columns)
    found: list[dict[str, object]] = []
    try:
        for file, size in logs.files():
            bounds = whole_file(file, size)
            with logs.opened(bounds) as contents:
                reader = RangeReader(contents, bounds, file)
                for batch in shape.read(ShapeRequest(options, schema), reader, file):
                    found += batch.to_pylist()
    finally:
        logs.close()
    return schema, found


def test_addresses_are_bytes(source: Server) -> None:
    schema, found = rows(source, ("id", "u", "i6", "i4"))
    assert [field.dataType.simpleString() for field in schema.fields] == ["int", *["binary"] * 3]
    assert found == [
        {
            "id": 1,
            "u": bytes.fromhex("123e4567e89b12d3a456426655440000"),
            "i6": bytes.fromhex("20010db8000000000000000000000001"),
            "i4": b"\1\2\3\4",
        },
        {"id": 2, "u": None, "i6": bytes(16), "i4": bytes(4)},
    ]
    if source.options["binlog_row_metadata"] == "FULL":
        options = Options(str(source.datadir), "table", ("a", "t"))
        of_rows = TableShape().schema(options, FolderLogs(str(source.datadir)).files())
        assert pruned(of_rows, schema.names) == schema


@pytest.mark.parametrize("source", ["FULL"], indirect=True)
def test_hashes_of_named_keys_are_no_columns(source: Server) -> None:
    path = str(source.datadir)
    of_table = of_files(TableShape(), Options(path, "table", ("a", "hashed")))
    assert [(one["_op"], one["id"], one["long_one"]) for one in of_table] == [
        ("insert", 1, "one"),
        ("insert", 2, "two"),
        ("delete", 1, "one"),
    ]
    assert len(of_table[0]) == 8 + 2
    changes = of_files(ChangeShape(), Options(path, "changes", tables=(("a", "hashed"),)))
    assert [one["after"] or one["before"] for one in changes] == [
        '{"id":1,"long_one":"one"}',
        '{"id":2,"long_one":"two"}',
        '{"id":1,"long_one":"one"}',
    ]


@pytest.mark.parametrize("source", ["FULL"], indirect=True)
def test_xa_and_what_ends_rows(source: Server) -> None:
    options = Options(str(source.datadir), "changes", tables=(("a", "xa"),))
    assert [(one["op"], one["after"], one["row"]) for one in of_files(ChangeShape(), options)] == [
        ("insert", '{"id":1}', 0),
        ("truncate", None, -1),
        ("insert", '{"id":3}', 0),
    ]


def of_files(shape: Shape, options: Options) -> list[dict[str, object]]:
    logs = FolderLogs(options.path)
    request = ShapeRequest(options, shape.schema(options, logs.files()), option_filters(options))
    found: list[dict[str, object]] = []
    for bounds in whole_files(logs.files()):
        with logs.opened(bounds) as contents:
            reader = RangeReader(contents, bounds, name_of(bounds.file))
            for batch in shape.read(request, reader, name_of(bounds.file)):
                found += batch.to_pylist()
    return found


def test_groups_with_geometry(source: Server) -> None:
    """MariaDB counts geometry among the columns with a character set."""
    path = str(source.datadir)
    groups = of_files(GroupShape(), Options(path, "groups"))
    assert [one["rows"] for one in groups if one["tables"] == ["a.places"]] == [1]
    if source.options["binlog_row_metadata"] == "FULL":
        (place,) = of_files(ChangeShape(), Options(path, "changes", tables=(("a", "places"),)))
        assert place["after"] == '{"p":null,"a":"é","b":"","c":"","d":"","e":"ł"}'


@pytest.mark.parametrize("source", ["FULL"], indirect=True)
def test_compressed_columns(source: Server) -> None:
    path = str(source.datadir)
    options = Options(path, "table", ("a", "packed"))
    wanted = [("é" * 200, b"x" * 9000, "ł"), (None, b"", None), ("", None, "no")]
    found = of_files(TableShape(), options)
    assert [(one["t"], one["b"], one["l"]) for one in found] == wanted
    (first, *_) = of_files(ChangeShape(), Options(path, "changes", tables=(("a", "packed"),)))
    assert json.loads(str(first["after"]))["t"] == "é" * 200
    live = LiveOptions(port=source.port, user="spark", password="pw", retry_seconds=0.0)
    with closing(LiveLogs(live)) as logs:
        loaded = logs.definition("a", "packed")
    of_table = TableShape().schema(replace(options, live=live, loaded=loaded), [])
    assert of_table == TableShape().schema(options, FolderLogs(path).files())


def test_a_record_of_groups_with_geometry(source: Server, tmp_path: Path) -> None:
    with GroupRecorder(tmp_path / "record") as recorder:
        for file, size in FolderLogs(str(source.datadir)).files():
            bounds = whole_file(file, size)
            with FolderLogs(file).opened(bounds) as contents:
                parts = list(RangeReader(contents, bounds, name_of(file)).parts())
            recorder.add(part.group for part in parts if part.group is not None)
    assert len(list(replayed_groups(str(tmp_path / "record")))) == recorder.groups > 10


def test_a_definition_with_a_period(source: Server) -> None:
    ((_, ddl),) = source.sql("SHOW CREATE TABLE a.periods")
    options = Options(str(source.datadir), "table", ("a", "periods"), ddl=str(ddl))
    (found,) = of_files(TableShape(), options)
    assert (found["id"], str(found["period"]), str(found["e"])) == (1, "2026-01-01", "2026-01-02")


@pytest.mark.parametrize("source", ["FULL"], indirect=True)
def test_a_stream_goes_on_at_another_server(source: Server) -> None:
    """Another server_id is another server; its log goes on with GTIDs of the same domain."""
    ((server_id,),) = source.sql("SELECT @@global.server_id")
    source.sql("CREATE TABLE a.moved (id INT PRIMARY KEY); INSERT INTO a.moved VALUES (1)")
    live = {"host": "127.0.0.1", "port": str(source.port), "user": "spark", "password": "pw"}
    found = []
    place: dict[str, str | int] = {}
    for number in (int(server_id), int(server_id) + 1):
        source.sql(f"SET GLOBAL server_id = {number}; FLUSH BINARY LOGS")
        given = BinlogDataSource({**live, "shape": "changes", "tables": "a.moved"})
        reader = given.streamReader(given.schema())
        place = place or reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
        source.sql(f"INSERT INTO a.moved VALUES ({number + 10})")
        end = reader.latestOffset(place, ReadAllAvailable())
        found += [
            (row["key"], row["seq"][:4])
            for task in reader.partitions(place, end)
            for batch in reader.read(task)
            for row in batch.to_pylist()
        ]
        reader.stop()
        place = end
    source.sql(f"SET GLOBAL server_id = {server_id}")
    assert found == [
        ('{"id":1}', "0000"),
        (f'{{"id":{int(server_id) + 10}}}', "0000"),
        (f'{{"id":{int(server_id) + 11}}}', "0001"),
    ]
