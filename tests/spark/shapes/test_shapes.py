"""Changes and typed rows of a real server's binary logs, as returned by the shapes."""

import json
import random
import re
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from pyspark.sql.types import DateType, IntegerType, LongType, StringType, StructField, StructType

from mtsd.binlog.files.range_reader import RangeReader
from mtsd.binlog.files.ranges import ranges_of, whole_files
from mtsd.model.errors import BinlogError, NotSupportedError
from mtsd.model.position import Position, parse_position
from mtsd.spark.logs.folder_logs import FolderLogs
from mtsd.spark.logs.whole_read import WholeRead, stretch_of
from mtsd.spark.options.options import OptionError, Options
from mtsd.spark.options.row_filters import ColumnTest, RowFilters
from mtsd.spark.shapes.change_shape import ChangeShape
from mtsd.spark.shapes.row_columns import seq_prefix, seq_suffix
from mtsd.spark.shapes.shape import Shape, ShapeRequest, pruned
from mtsd.spark.shapes.table_shape import TableShape
from tests.binlog.range_cases import Contents
from tests.binlog.recording import OPTIONS
from tests.binlog.row_values import KINDS, LENIENT, create, names, row
from tests.servers.mysqld import Server

Rows = list[dict[str, object]]


@dataclass
class Recorded:
    """A binary log file, and the final rows of its tables on the server."""

    path: Path
    tables: dict[str, Rows] = field(default_factory=dict)

    @property
    def files(self) -> list[tuple[str, int]]:
        return [(str(self.path), self.path.stat().st_size)]


def log(
    server: Server, folder: Path, name: str, statements: Sequence[str], shown: Sequence[str] = ()
) -> Recorded:
    """Run statements in the database `name`, and return the file with what was logged."""
    server.sql(f"CREATE DATABASE {name}")
    server.sql("FLUSH BINARY LOGS")
    recorded = Recorded(folder / name / "f")
    recorded.path.parent.mkdir(exist_ok=True)
    with closing(server.client(name)) as client, client.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
    server.sql("FLUSH BINARY LOGS")
    *_, (file, *_), _ = server.sql("SHOW BINARY LOGS")
    recorded.path.write_bytes((server.datadir / str(file)).read_bytes())
    for table in shown:
        columns = [str(one[0]) for one in server.sql(f"SHOW COLUMNS FROM {name}.{table}")]
        rows = server.sql(f"SELECT * FROM {name}.{table}")
        recorded.tables[table] = [dict(zip(columns, one, strict=True)) for one in rows]
    server.sql(f"DROP DATABASE {name}")
    return recorded


def read(
    shape: Shape,
    recorded: Recorded,
    options: Options,
    *,
    schema: StructType | None = None,
    filters: RowFilters | None = None,
    count: int = 1,
    hold_bytes: int = 8 << 20,
) -> Rows:
    data = recorded.path.read_bytes()
    schema = schema or pruned(shape.schema(options, recorded.files), options.columns)
    parts = whole_files(recorded.files)
    stretch = stretch_of(parts, options.start, options.end)
    assert stretch
    logs = FolderLogs(str(recorded.path))
    found: Rows = []
    for bounds in ranges_of("f", len(data), -(-len(data) // count)):
        whole = WholeRead(logs, stretch, Position("f", bounds.begin) <= stretch.begin)
        request = ShapeRequest(options, schema, filters or RowFilters(), whole)
        shape.check(request)
        reader = RangeReader(Contents(data), bounds, "f", hold_bytes=hold_bytes)
        for batch in shape.read(request, reader, "f"):
            batch.validate(full=True)
            assert batch.schema == request.arrow_schema
            found += batch.to_pylist()
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("shapes")


@pytest.fixture(scope="module")
def few(server: Server, folder: Path) -> Recorded:
    """Return a file with every operation, and groups of two tables."""
    return log(
        server,
        folder,
        "few",
        shown=["t"],
        statements=[
            'CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(30), `a "b"` DECIMAL(20, 8), j JSON)',
            "CREATE TABLE other (id BIGINT UNSIGNED PRIMARY KEY, b VARBINARY(9), x VECTOR(2))",
            """INSERT INTO t VALUES (1, 'it''s "q" \\\\ \\n', 0.00000001, '{"k": [1, null]}'),
            (2, NULL, NULL, NULL)""",
            "BEGIN",
            "UPDATE t SET v = 'new' WHERE id = 1",
            "INSERT INTO other VALUES (18446744073709551615, X'00FF', TO_VECTOR('[1, 0.1]'))",
            "UPDATE t SET id = 3 WHERE id = 2",
            "INSERT INTO t VALUES (4, 'é€', -1.5, 'true'), (5, '', 12, '3')",
            "COMMIT",
            "SET binlog_transaction_compression = ON",
            "INSERT INTO t SELECT id + 10, v, NULL, j FROM t",
            "SET binlog_transaction_compression = OFF",
            "DELETE FROM t WHERE id > 13",
        ],
    )


def test_changes(few: Recorded) -> None:
    found = read(ChangeShape(), few, Options("f", "changes"))
    assert [(one["op"], one["table"], one["row"]) for one in found] == [
        ("insert", "t", 0),
        ("insert", "t", 1),
        ("update", "t", 0),
        ("insert", "other", 1),
        ("update", "t", 2),
        ("insert", "t", 3),
        ("insert", "t", 4),
        *(("insert", "t", number) for number in range(4)),
        ("delete", "t", 0),
        ("delete", "t", 1),
    ]
    first, second, update, other, moved = found[:5]
    assert first["before"] is None
    assert first["after"] == (
        '{"id":1,"v":"it\'s \\"q\\" \\\\ \\n","a \\"b\\"":0.00000001,"j":{"k": [1, null]}}'
    )
    assert second["after"] == '{"id":2,"v":null,"a \\"b\\"":null,"j":null}'
    assert update["before"] == first["after"]
    assert json.loads(str(update["after"]))["v"] == "new"
    assert other["after"] == '{"id":18446744073709551615,"b":"AP8=","x":[1,0.1]}'
    assert (json.loads(str(moved["before"]))["id"], json.loads(str(moved["after"]))["id"]) == (2, 3)
    assert found[5]["after"] == '{"id":4,"v":"é€","a \\"b\\"":-1.50000000,"j":true}'
    assert len({one["pos"] for one in found}) == 4
    assert len({one["gtid"] for one in found}) == 4
    assert all(one["schema"] == "few" and one["file"] == "f" for one in found)


@pytest.mark.parametrize("hold_bytes", [60, 8 << 20])
def test_changes_are_the_same_in_any_ranges(few: Recorded, hold_bytes: int) -> None:
    options = Options("f", "changes")
    wanted = read(ChangeShape(), few, options)
    for count in (2, 6, 48):
        found = read(ChangeShape(), few, options, count=count, hold_bytes=hold_bytes)
        assert found == wanted


def test_rows_keep_their_numbers_whatever_is_left_out(few: Recorded) -> None:
    options = Options("f", "changes")
    wanted = read(ChangeShape(), few, options)
    for column, values in (("table", ("other",)), ("table", ("t",)), ("op", ("update",))):
        found = read(
            ChangeShape(), few, options, filters=RowFilters((ColumnTest(column, "=", values),))
        )
        assert found == [one for one in wanted if one[column] in values]
    columns = Options("f", "changes", columns=("row", "op"))
    assert read(ChangeShape(), few, columns) == [
        {"row": one["row"], "op": one["op"]} for one in wanted
    ]


def test_operations_that_are_left_out_are_not_decoded(server: Server, folder: Path) -> None:
    """A date that is not in the calendar is an error only where it is decoded."""
    recorded = log(
        server,
        folder,
        "operations",
        [
            LENIENT,
            "CREATE TABLE t (id INT PRIMARY KEY, d DATE)",
            "BEGIN",
            "INSERT INTO t VALUES (1, 0), (2, '2026-01-02')",
            "UPDATE t SET d = '2026-01-01' WHERE id = 1",
            "DELETE FROM t WHERE id = 2",
            "COMMIT",
        ],
    )
    options = Options("f", "table", ("operations", "t"))
    for op, place in (("update_postimage", (1, 2)), ("delete", (2, 3))):
        filters = RowFilters((ColumnTest("op", "=", (op,)),))
        (found,) = read(TableShape(), recorded, options, filters=filters)
        assert (found["_op"], found["id"], found["_row"]) == (op, *place)
        assert found["d"] is not None
    with pytest.raises(NotSupportedError, match="not in the calendar"):
        read(TableShape(), recorded, options)


def replayed(rows: Rows, key: str = "id") -> dict[object, dict[str, object]]:
    """Return the table that results from these rows of shape `table`."""
    found: dict[object, dict[str, object]] = {}
    for one in rows:
        values = {name: value for name, value in one.items() if not name.startswith("_")}
        if one["_op"] in {"delete", "update_preimage"}:
            assert found.pop(one[key]) == values
        else:
            assert one[key] not in found
            found[one[key]] = values
    return found


def test_a_table_as_its_changes_make_it(few: Recorded) -> None:
    options = Options("f", "table", ("few", "t"))
    for count in (1, 6, 48):
        made = replayed(read(TableShape(), few, options, count=count))
        assert (
            list(made.values()) == few.tables["t"]
            or sorted(made.values(), key=lambda one: int(str(one["id"]))) == few.tables["t"]
        )
    other = read(TableShape(), few, Options("f", "table", ("few", "other")))
    assert other[0]["id"] == 2**64 - 1
    assert other[0]["b"] == b"\0\xff"
    assert list(other[0])[:6] == [
        "_op", "_file", "_pos", "_row", "_gtid", "_commit_time",
    ]  # fmt: skip


def test_only_columns_that_are_wanted(few: Recorded) -> None:
    options = Options("f", "table", ("few", "t"), columns=("v", "_row"))
    found = read(TableShape(), few, options)
    assert found[0] == {"v": 'it\'s "q" \\ \n', "_row": 0}
    with pytest.raises(OptionError, match="there is no w: there are _op,"):
        read(TableShape(), few, Options("f", "table", ("few", "t"), columns=("w",)))
    with pytest.raises(OptionError, match=r"there are no rows of `few`.`none`"):
        read(TableShape(), few, Options("f", "table", ("few", "none")))


def test_names_that_are_nearly_the_same(server: Server, folder: Path) -> None:
    recorded = log(
        server,
        folder,
        "names",
        [
            "CREATE TABLE t (id INT PRIMARY KEY, `straße` INT, `strasse` INT)",
            "INSERT INTO t VALUES (1, 10, 20)",
        ],
    )
    options = Options("f", "table", ("names", "t"))
    (found,) = read(TableShape(), recorded, options)
    assert (found["straße"], found["strasse"]) == (10, 20)
    other = StructType([StructField("ID", IntegerType())])
    only = replace(options, columns=("ID",))
    assert read(TableShape(), recorded, only, schema=other) == [{"ID": 1}]
    with pytest.raises(NotSupportedError, match="there is a column `straße` that is not one of"):
        read(TableShape(), recorded, options, schema=other)
    either = StructType([StructField("STRASSE", IntegerType())])
    with pytest.raises(NotSupportedError, match="there is no column `STRASSE`"):
        read(TableShape(), recorded, options, schema=either)


def test_columns_named_like_ours(server: Server, folder: Path) -> None:
    recorded = log(
        server,
        folder,
        "ours",
        [
            "CREATE TABLE t (id INT PRIMARY KEY, `_op` VARCHAR(20), `_row` BIGINT)",
            "INSERT INTO t VALUES (1, 'mine', 777)",
        ],
    )
    table = ("ours", "t")
    for columns in ((), ("id", "_op"), ("_row",)):
        with pytest.raises(OptionError, match=r"`ours`.`t`: it has a column `_(op|row)` of its"):
            read(TableShape(), recorded, Options("f", "table", table, columns))
    schema = StructType([StructField("_op", StringType())])
    with pytest.raises(NotSupportedError, match=r"`ours`.`t`: it has a column `_op` of its own"):
        read(TableShape(), recorded, Options("f", "table", table), schema=schema)
    found = read(TableShape(), recorded, Options("f", "table", table, ("id", "_file")))
    assert found == [{"id": 1, "_file": "f"}]


def test_every_type(server: Server, folder: Path) -> None:
    rng = random.Random(21)
    values = ", ".join(f"({number}, {row(rng)})" for number in range(40))
    recorded = log(
        server,
        folder,
        "every",
        [
            LENIENT,
            create("every.t").replace("every.t", "t"),
            f"INSERT INTO t (id, {names(KINDS)}) VALUES {values}",
            "DELETE FROM t WHERE id % 3 = 0",
        ],
    )
    found = read(ChangeShape(), recorded, Options("f", "changes"))
    assert len(found) == 40 + 14
    for one in found:
        for text in (one["before"], one["after"]):
            assert text is None or len(json.loads(str(text))) == len(KINDS) + 1


@contextmanager
def without_names(server: Server) -> Iterator[None]:
    """Let a server log no names of columns."""
    server.sql("SET GLOBAL binlog_row_metadata = MINIMAL")
    try:
        yield
    finally:
        server.sql("SET GLOBAL binlog_row_metadata = FULL")


def test_tables_without_names(server: Server, folder: Path) -> None:
    definition = "CREATE TABLE t (id INT UNSIGNED PRIMARY KEY, e ENUM('x', 'y'), v VARCHAR(9))"
    with without_names(server):
        recorded = log(
            server,
            folder,
            "unnamed",
            [definition, "INSERT INTO t VALUES (1, 'y', 'one')", "UPDATE t SET v = 'two'"],
        )
    changes = read(ChangeShape(), recorded, Options("f", "changes"))
    assert changes[0]["after"] == '{"@1":1,"@2":2,"@3":"one"}'
    ddl = definition.replace(" t ", " unnamed.t ") + ";"
    changes = read(ChangeShape(), recorded, Options("f", "changes", ddl=ddl))
    assert changes[0]["after"] == '{"id":1,"e":"y","v":"one"}'
    options = Options("f", "table", ("unnamed", "t"))
    with pytest.raises(NotSupportedError, match=r"does not name the columns of `unnamed`.`t`"):
        read(TableShape(), recorded, options)
    rows = read(TableShape(), recorded, Options("f", "table", ("unnamed", "t"), ddl=definition))
    assert replayed(rows) == {1: {"id": 1, "e": "y", "v": "two"}}
    schema = StructType(
        [
            StructField("id", LongType()),
            StructField("e", LongType()),
            StructField("v", StringType()),
        ]
    )
    assert read(TableShape(), recorded, options, schema=schema)[0] == {"id": 1, "e": 2, "v": "one"}
    with pytest.raises(NotSupportedError, match=r"does not name its 3 columns.*\(after f:"):
        read(TableShape(), recorded, options, schema=StructType(schema.fields[:2]))
    with pytest.raises(OptionError, match="not understood as a new table: DROP"):
        read(ChangeShape(), recorded, Options("f", "changes", ddl="DROP TABLE t"))


def test_a_definition_that_does_not_fit_is_an_error(server: Server, folder: Path) -> None:
    recorded = log(
        server,
        folder,
        "altered",
        [
            "CREATE TABLE t (id INT PRIMARY KEY, v INT, w INT)",
            "INSERT INTO t VALUES (1, 1, 1)",
            "ALTER TABLE t MODIFY v BIGINT, ADD n INT",
            "INSERT INTO t VALUES (2, 2, 2, 2)",
            "ALTER TABLE t DROP COLUMN w, DROP COLUMN n",
            "INSERT INTO t VALUES (3, 3)",
        ],
    )
    options = Options("f", "table", ("altered", "t"), ("id", "v", "w"))
    with pytest.raises(NotSupportedError) as caught:
        read(TableShape(), recorded, options)
    assert "`altered`.`t`: there is no column `w`, since the statement at f:" in str(caught.value)
    assert "ALTER TABLE t DROP COLUMN w, DROP COLUMN n; leave" in str(caught.value)
    found = read(TableShape(), recorded, Options("f", "table", ("altered", "t"), ("id", "v")))
    assert [one["v"] for one in found] == [1, 2, 3]
    dates = StructType([StructField("v", DateType())])
    with pytest.raises(NotSupportedError, match="column `v` is int in the binary log, not date"):
        read(TableShape(), recorded, options, schema=dates)


def test_a_redefinition_without_names_is_an_error(server: Server, folder: Path) -> None:
    definition = "CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT)"
    with without_names(server):
        recorded = log(
            server,
            folder,
            "redefined",
            [
                definition,
                "INSERT INTO t VALUES (1, 10, 20)",
                "ALTER TABLE t ADD INDEX (a)",
                "INSERT INTO t VALUES (2, 10, 20)",
                "ALTER TABLE t MODIFY b INT AFTER id",
                "INSERT INTO t (id, a, b) VALUES (3, 10, 20)",
            ],
        )
    table = ("redefined", "t")
    by_place = StructType([StructField(name, LongType()) for name in ("id", "a", "b")])
    said = ""
    # A task without any rows has to know from elsewhere that they have no names.
    for count in (1, 48):
        for ddl, schema in ((definition, None), ("", by_place)):
            options = Options("f", "table", table, ddl=ddl)
            with pytest.raises(NotSupportedError) as caught:
                read(TableShape(), recorded, options, schema=schema, count=count)
            said = str(caught.value)
            assert "ALTER TABLE t MODIFY b INT AFTER id" in said
    found = re.search(r"option end=(f:\d+) .* with start=(f:\d+),", said)
    assert found
    end, start = parse_position(found[1]), parse_position(found[2])
    after = definition.replace("a INT, b INT", "b INT, a INT")
    rows = [
        *read(TableShape(), recorded, Options("f", "table", table, end=end, ddl=definition)),
        *read(TableShape(), recorded, Options("f", "table", table, start=start, ddl=after)),
    ]
    assert [(one["id"], one["a"], one["b"]) for one in rows] == [(n, 10, 20) for n in (1, 2, 3)]
    meta = Options("f", "table", table, columns=("_op",), ddl=definition)
    assert len(read(TableShape(), recorded, meta)) == 3


def test_absent_columns_are_not_null(server: Server, folder: Path) -> None:
    recorded = log(
        server,
        folder,
        "minimal",
        [
            "SET binlog_row_image = MINIMAL",
            "CREATE TABLE t (id INT PRIMARY KEY, v INT, w INT)",
            "INSERT INTO t VALUES (1, 1, NULL)",
            "UPDATE t SET v = 2",
            "UPDATE t SET id = 3",
            "DELETE FROM t",
        ],
    )
    found = read(ChangeShape(), recorded, Options("f", "changes"))
    assert [(one["before"], one["after"]) for one in found] == [
        (None, '{"id":1,"v":1,"w":null}'),
        ('{"id":1}', '{"v":2}'),
        ('{"id":1}', '{"id":3}'),
        ('{"id":3}', None),
    ]
    keys = [("1", None), ("1", None), ("3", "1"), ("3", None)]
    assert [(one["key"], one["old_key"]) for one in found] == [
        (f'{{"id":{key}}}', old and f'{{"id":{old}}}') for key, old in keys
    ]
    with pytest.raises(NotSupportedError, match=r"`v` of `minimal`.`t` is not in every image"):
        read(TableShape(), recorded, Options("f", "table", ("minimal", "t")))
    options = Options("f", "table", ("minimal", "t"), absent="null")
    no_before = RowFilters((ColumnTest("op", "=", ("insert", "update_postimage", "delete")),))
    assert [
        (one["_key"], one["_absent"], one["id"], one["v"], one["w"])
        for one in read(TableShape(), recorded, options, filters=no_before)
    ] == [
        ('{"id":1}', [], 1, 1, None),
        ('{"id":1}', ["w"], 1, 2, None),
        ('{"id":3}', ["v", "w"], 3, None, None),
        ('{"id":3}', ["v", "w"], 3, None, None),
    ]
    only_keys = Options("f", "table", ("minimal", "t"), columns=("_op", "_key", "id"))
    assert [one["id"] for one in read(TableShape(), recorded, only_keys)] == [1, 1, 1, 1, 3, 3]


def test_the_order_of_changes(few: Recorded) -> None:
    for shape, options, seq in (
        (ChangeShape(), Options("f", "changes"), "seq"),
        (TableShape(), Options("f", "table", ("few", "t")), "_seq"),
    ):
        found = [str(one[seq]) for one in read(shape, few, options)]
        assert found == sorted(set(found))
    assert seq_prefix(0, "binlog.999999", 4) < seq_prefix(0, "binlog.1000000", 4)
    assert seq_prefix(9, "binlog.000009", 4) < seq_prefix(10, "binlog.000001", 4)
    assert seq_prefix(0, "b.000001", 900) < seq_prefix(0, "b.000001", 1 << 40)
    assert seq_suffix(-1) < seq_suffix(0) < seq_suffix(9) < seq_suffix(10)


@pytest.mark.parametrize(
    ("statements", "message"),
    [
        (
            ["SET binlog_format = STATEMENT", "INSERT INTO t VALUES (1)"],
            "rows changed by a statement",
        ),
        (["SET binlog_format = STATEMENT", "CREATE TABLE u AS SELECT 1 AS a"], "by a statement"),
        (["SET binlog_format = STATEMENT", "CREATE TABLE u (VALUES ROW(1))"], "by a statement"),
    ],
)
def test_changes_that_rows_do_not_tell(
    server: Server, folder: Path, statements: list[str], message: str
) -> None:
    recorded = log(
        server, folder, "statements", ["CREATE TABLE t (id INT PRIMARY KEY)", *statements]
    )
    with pytest.raises(NotSupportedError, match=message + r".*\(after f:\d+\)"):
        read(ChangeShape(), recorded, Options("f", "changes"))
    for column, name in (("schema", "other"), ("schema.table", "statements.v"), ("table", "v")):
        other = RowFilters((ColumnTest(column, "=", (name,)),))
        for hold_bytes in (60, 8 << 20):
            options = Options("f", "changes")
            assert not read(ChangeShape(), recorded, options, filters=other, hold_bytes=hold_bytes)


def test_definitions_and_accounts_change_no_rows(server: Server, folder: Path) -> None:
    recorded = log(
        server,
        folder,
        "definitions",
        [
            "CREATE TABLE t (id INT PRIMARY KEY, `select` INT COMMENT 'SELECT')",
            "INSERT INTO t VALUES (1, 1)",
            "CREATE VIEW v AS SELECT 1",
            "CREATE USER nobody_here",
            "GRANT SELECT ON definitions.* TO nobody_here",
            "DROP USER nobody_here",
            "ANALYZE TABLE t",
            "CREATE TABLE u SELECT * FROM t",
            "CREATE TABLE p (a INT) PARTITION BY RANGE (a) (PARTITION q VALUES LESS THAN (5))",
            "CREATE TEMPORARY TABLE x (a INT)",
            "INSERT INTO x VALUES (1)",
            "DROP TABLE p",
        ],
    )
    found = read(ChangeShape(), recorded, Options("f", "changes"))
    assert [(one["op"], one["table"], one["after"]) for one in found] == [
        ("insert", "t", '{"id":1,"select":1}'),
        ("insert", "u", '{"id":1,"select":1}'),
        ("truncate", "p", None),
    ]


def test_what_ends_rows_is_told(server: Server, folder: Path) -> None:
    made = ["CREATE TABLE t (id INT PRIMARY KEY)", "CREATE TABLE u (id INT PRIMARY KEY)"]
    inserted = ["INSERT INTO t VALUES (1)", "INSERT INTO u VALUES (2)"]
    recorded = log(
        server,
        folder,
        "ended",
        [*made, *inserted, "TRUNCATE u", "INSERT INTO u VALUES (3)", "DROP TABLE u, t", made[0]],
    )
    everything = [
        ("insert", "t", 0, None),
        ("insert", "u", 0, None),
        ("truncate", "u", -1, "TRUNCATE u"),
        ("insert", "u", 0, None),
        ("truncate", "u", -2, "DROP TABLE `u`,`t` /* generated by server */"),
        ("truncate", "t", -1, "DROP TABLE `u`,`t` /* generated by server */"),
    ]
    for count in (1, 48):
        changes = read(ChangeShape(), recorded, Options("f", "changes"), count=count)
        assert [tuple(one[name] for name in ("op", "table", "row", "statement"))
                for one in changes] == everything  # fmt: skip
        assert all(one["gtid"] and one["commit_time"] for one in changes)
        of_table = read(TableShape(), recorded, Options("f", "table", ("ended", "u")), count=count)
        assert [(one["_op"], one["id"]) for one in of_table] == [
            ("insert", 2), ("truncate", None), ("insert", 3), ("truncate", None),
        ]  # fmt: skip
    other = RowFilters((ColumnTest("schema.table", "=", ("ended.v",)),))
    assert not read(ChangeShape(), recorded, Options("f", "changes"), filters=other)
    inserts = RowFilters((ColumnTest("op", "=", ("insert",)),))
    assert len(read(ChangeShape(), recorded, Options("f", "changes"), filters=inserts)) == 3


def test_rows_that_move_are_told_or_an_error(server: Server, folder: Path) -> None:
    recorded = log(
        server,
        folder,
        "moved",
        [
            "CREATE TABLE t (id INT PRIMARY KEY)",
            "INSERT INTO t VALUES (1)",
            "RENAME TABLE t TO u",
            "INSERT INTO u VALUES (2)",
        ],
    )
    changes = read(ChangeShape(), recorded, Options("f", "changes"), count=9)
    assert [(one["op"], one["table"], one["statement"]) for one in changes] == [
        ("insert", "t", None),
        ("ddl", "t", "RENAME TABLE t TO u"),
        ("ddl", "u", "RENAME TABLE t TO u"),
        ("insert", "u", None),
    ]
    for count in (1, 48):
        options = Options("f", "table", ("moved", "u"))
        with pytest.raises(NotSupportedError, match="moved without row events, by RENAME TABLE t"):
            read(TableShape(), recorded, options, count=count)
        options = replace(options, unseen_changes="skip")
        assert len(read(TableShape(), recorded, options, count=count)) == 1


def test_xa_transactions_come_with_their_commits(server: Server, folder: Path) -> None:
    def prepared(xid: str, statement: str) -> list[str]:
        return [f"XA START '{xid}'", statement, f"XA END '{xid}'", f"XA PREPARE '{xid}'"]

    recorded = log(
        server,
        folder,
        "xa",
        [
            "CREATE TABLE t (id INT PRIMARY KEY, v TEXT)",
            *prepared("x", "INSERT INTO t VALUES (1, 'x'), (2, REPEAT('x', 500))"),
            "INSERT INTO t VALUES (3, 'between')",
            *prepared("gone", "INSERT INTO t VALUES (4, 'gone')"),
            "XA COMMIT 'x'",
            "XA ROLLBACK 'gone'",
            *prepared("gone", "DELETE FROM t WHERE id = 3"),
            "XA START 'one'",
            "INSERT INTO t VALUES (5, 'one')",
            "XA END 'one'",
            "XA COMMIT 'one' ONE PHASE",
            "XA COMMIT 'gone'",
        ],
    )
    options = Options("f", "changes")
    wanted = read(ChangeShape(), recorded, options)
    ids = [re.search(r'"id":(\d)', str(one["after"] or one["before"])) for one in wanted]
    assert [(one["op"], found and found[1], one["row"]) for one, found in zip(
        wanted, ids, strict=True)] == [
        ("insert", "3", 0),
        ("insert", "1", 0),
        ("insert", "2", 1),
        ("insert", "5", 0),
        ("delete", "3", 0),
    ]  # fmt: skip
    assert len({one["gtid"] for one in wanted}) == 4
    assert sorted(int(str(one["pos"])) for one in wanted) == [one["pos"] for one in wanted]
    # The ranges of other tasks have the XA PREPARE, or it is too large to be held.
    for count, hold_bytes in ((9, 8 << 20), (48, 8 << 20), (1, 60), (17, 60)):
        assert read(ChangeShape(), recorded, options, count=count, hold_bytes=hold_bytes) == wanted
    # A read that begins after the XA PREPARE looks back.
    commit = Position("f", int(str(wanted[0]["pos"])))
    assert read(ChangeShape(), recorded, replace(options, start=commit)) == wanted[1:]


def test_damage_is_an_error_or_the_same_rows(few: Recorded) -> None:
    rng = random.Random(22)
    data = few.path.read_bytes()
    wanted = read(ChangeShape(), few, Options("f", "changes"))
    copy = Recorded(few.path.with_suffix(".damaged"))
    errors = 0
    for _ in range(400):
        damaged = bytearray(data)
        damaged[rng.randrange(len(data))] ^= rng.randrange(1, 256)
        copy.path.write_bytes(damaged)
        try:
            assert read(ChangeShape(), copy, Options("f", "changes"), count=3) == wanted
        except (BinlogError, NotSupportedError):
            errors += 1
    assert errors > 350


@pytest.mark.long
def test_a_row_that_is_too_large_as_json_is_named(folder: Path) -> None:
    options = OPTIONS | {"max_allowed_packet": "1G"}
    with Server(options) as server:
        recorded = log(
            server,
            folder,
            "large",
            [
                "CREATE TABLE t (id INT PRIMARY KEY, body LONGTEXT)",
                "INSERT INTO t VALUES (1, 'small')",
                "INSERT INTO t VALUES (2, REPEAT(CHAR(1), 360000000))",
            ],
        )
    with pytest.raises(
        NotSupportedError,
        match=r"a row of `large`\.`t` is larger than 2 GB as JSON.*\(in a group from f:\d+ on\)",
    ):
        read(ChangeShape(), recorded, Options("f", "changes"))
    options_of_table = Options("f", "table", ("large", "t"))
    sizes = [len(str(one["body"])) for one in read(TableShape(), recorded, options_of_table)]
    assert sizes == [5, 360000000]
