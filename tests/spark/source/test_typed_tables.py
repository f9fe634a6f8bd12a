"""Typed tables out of one read of the changes are those that each read of a table gives."""

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody who writes Spark calls it
from pyspark.sql.types import VariantType

from mtsd.model.errors import MtsdError
from mtsd.spark import latest, tables
from tests.servers.mysqld import Server

pytestmark = [pytest.mark.servers, pytest.mark.timeout(300)]

SETUP = """
CREATE DATABASE typed; USE typed; FLUSH BINARY LOGS;
CREATE TABLE a (id BIGINT UNSIGNED PRIMARY KEY, d DECIMAL(38, 10), f DOUBLE, s VARCHAR(20), b BLOB,
    day DATE, at DATETIME(6), instant TIMESTAMP(3) NULL, j JSON, flag BOOLEAN, r FLOAT);
CREATE TABLE b (x INT PRIMARY KEY, t TEXT);
INSERT INTO a VALUES
    (18446744073709551615, -1234567890123456789012345678.0123456789, 0.1, 'ü"\\n', x'00ff',
     '2024-02-29', '2024-01-02 03:04:05.000006', '2024-01-02 03:04:05.678', '{"k": [1, 2.5]}', 1,
     1.1),
    (2, 1, NULL, '', '', NULL, NULL, NULL, NULL, NULL, NULL),
    (3, 0, 1e300, 'x', NULL, NULL, NULL, NULL, '[]', 0, 0);
INSERT INTO b VALUES (1, 'one'), (2, 'two');
UPDATE a SET id = 30, s = 'y' WHERE id = 3; DELETE FROM a WHERE id = 2; TRUNCATE b;
INSERT INTO b VALUES (3, 'three'); FLUSH BINARY LOGS
"""


def the_same(typed: DataFrame, single: DataFrame) -> None:
    if "j" in single.columns:
        # Of a document that became a text, nobody could tell where it was one before.
        typed = typed.withColumn("j", F.to_json("j"))
        single = single.withColumn("j", F.to_json(F.parse_json("j")))
    assert typed.schema == single.schema
    one, other = (in_order(frame) for frame in (typed, single))
    assert one == other
    assert len(one) > 1
    now, wanted = (in_order(latest(frame)) for frame in (typed, single))
    assert now == wanted != []


def in_order(frame: DataFrame) -> list[dict[str, object]]:
    """Return the rows in the order of their `_seq`, which is another one in each read."""
    rows = sorted((row.asDict() for row in frame.collect()), key=lambda row: str(row.pop("_seq")))
    # Each place is there once, so the order is that of the log.
    assert rows == sorted(rows, key=lambda row: (row["_file"], row["_pos"], row["_row"]))
    return rows


def test_they_are_those_of_each_table(spark: SparkSession, server: Server, tmp_path: Path) -> None:
    server.sql(SETUP)
    try:
        names = [name for name, *_ in server.sql("SHOW BINARY LOGS")]
        path = tmp_path / names[-2]
        path.write_bytes((server.datadir / path.name).read_bytes())
    finally:
        server.sql("DROP DATABASE typed")

    def read(**options: str) -> DataFrame:
        return spark.read.format("mtsd_binlog").options(path=str(path), **options).load()

    wanted = ("typed.a", "typed.b")
    single = {name: read(shape="table", table=name).persist() for name in wanted}
    changes = read(shape="changes").persist()
    schemas = {name: frame.schema for name, frame in single.items()}
    schemas["typed.a"]["j"].dataType = VariantType()
    typed = tables(changes, schemas)
    for name, frame in single.items():
        the_same(typed[name], frame)
    assert [row.t for row in latest(typed["typed.b"]).collect()] == ["three"]
    # By a text, and not by halves.
    (rows,) = tables(changes, {"typed.b": "x INT, t STRING"}).values()
    assert rows.schema == single["typed.b"].schema
    for schema, problem in (
        ("x INT", r"columns that its schema lacks: t \(after"),
        ("x INT, t INT", r"Cannot parse|MALFORMED_RECORD"),
    ):
        (rows,) = tables(changes, {"typed.b": schema}).values()
        with pytest.raises(Exception, match=problem):
            rows.collect()
    with pytest.raises(MtsdError, match="no column old_key"):
        tables(changes.drop("old_key"), {"typed.b": "x INT"})
    with pytest.raises(MtsdError, match="'b' is not"):
        tables(changes, {"b": "x INT"})
