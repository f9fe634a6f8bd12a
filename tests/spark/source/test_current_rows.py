"""Which rows of a table are there after its changes, in whatever order and pieces they are read."""

import random
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from mtsd.model.errors import MtsdError
from mtsd.spark import latest

TABLE = pa.schema(
    [
        *((name, pa.string()) for name in ("_op", "_key", "_seq")),
        ("id", pa.int32()),
        ("v", pa.int32()),
    ]
)
_TEXTS = "op", "schema", "table", "key", "old_key", "seq", "after", "file", "statement"
CHANGES = pa.schema([*((name, pa.string()) for name in _TEXTS), ("pos", pa.int64())])
TYPED = [
    ("insert", "1", "01", 1, 10),
    ("insert", "2", "02", 2, 20),
    ("truncate", None, "03", None, None),
    ("insert", "2", "04", 2, 21),
    ("insert", "3", "05", 3, 30),
    ("update_preimage", "3", "06", 3, 30),
    ("update_postimage", "3", "07", 3, 31),
    ("insert", "4", "08", 4, 40),
    ("update_preimage", "4", "09", 4, 40),
    ("update_postimage", "5", "10", 5, 40),
    ("delete", "2", "11", 2, 21),
]
END = [(3, 31), (5, 40)]


def frame_of(
    spark: SparkSession, found: Sequence[Sequence[object]], schema: pa.Schema
) -> DataFrame:
    """Make a frame that Spark keeps as it is; of a list, it makes tasks in Python."""
    rows = [dict(zip(schema.names, row, strict=True)) for row in found]
    return spark.createDataFrame(pa.Table.from_pylist(rows, schema))


@pytest.fixture
def frame(spark: SparkSession) -> DataFrame:
    return frame_of(spark, TYPED, TABLE)


def rows(frame: DataFrame) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in frame.select("id", "v").collect())


def test_the_rows_of_a_table(spark: SparkSession, frame: DataFrame) -> None:
    assert rows(latest(frame)) == END
    assert rows(latest(frame.drop("_key"), "id")) == END
    rng = random.Random(1)
    cut = rng.randrange(len(TYPED))
    # Merged bit by bit, a part of them twice.
    first = latest(frame_of(spark, TYPED[: cut + 2], TABLE))
    second = frame_of(spark, rng.sample(TYPED[cut:], len(TYPED) - cut), TABLE)
    assert rows(latest(first.unionByName(second))) == END


def changes(spark: SparkSession, found: Sequence[tuple[str, ...]]) -> DataFrame:
    """Make changes of (op, table, key, old key)."""
    return frame_of(
        spark,
        [
            (op, "d", table or None, key or None, old or None, f"{number:02}", f"{table}{key}",
             "f", "RENAME TABLE x TO u", number)
            for number, (op, table, key, old) in enumerate(found)
        ],
        CHANGES,
    )  # fmt: skip


def test_the_rows_of_all_tables(spark: SparkSession) -> None:
    found = [
        ("insert", "t", "1", ""),
        ("insert", "t", "2", ""),
        ("insert", "u", "1", ""),
        ("update", "t", "7", "2"),
        ("truncate", "u", "", ""),
        ("insert", "u", "9", ""),
        ("update", "u", "9", ""),
        ("delete", "t", "1", ""),
    ]
    there = latest(changes(spark, found))
    assert sorted(row.after for row in there.collect()) == ["t7", "u9"]
    # A database that is dropped ends all of its tables.
    dropped = [*found, ("truncate", "", "", ""), ("insert", "v", "1", "")]
    assert [row.after for row in latest(changes(spark, dropped)).collect()] == ["v1"]
    moved = changes(spark, [*found, ("ddl", "u", "", "")])
    with pytest.raises(PySparkException, match=r"moved or ended .* at f:8:RENAME TABLE x TO u"):
        latest(moved).collect()
    assert latest(moved.where("table = 't'")).count() == 1


def test_changes_are_read_once(spark: SparkSession, frame: DataFrame) -> None:
    """Reading is most of the work, and the newest TRUNCATE is found in the same rows."""
    for made in (frame, changes(spark, [("insert", "t", "1", ""), ("truncate", "t", "", "")])):
        read = spark.sparkContext.accumulator(0)

        def counted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                read.add(batch.num_rows)  # noqa: B023 - used in this turn only
                yield batch

        latest(made.mapInArrow(counted, made.schema)).collect()
        assert read.value == made.count()


def test_what_cannot_be_told(frame: DataFrame) -> None:
    with pytest.raises(MtsdError, match="it needs _op, _seq and _key of shape 'table', or op"):
        latest(frame.drop("_seq"))
    with pytest.raises(PySparkException, match=r"no primary key .* as in latest\(changes, 'id'\)"):
        latest(frame.selectExpr("_op", "_seq", "string(NULL) AS _key", "id")).collect()
