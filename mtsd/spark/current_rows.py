"""The rows that a table has now, out of its changes."""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody who writes Spark calls it

from mtsd.model.errors import MtsdError
from mtsd.spark.shapes.marks import DDL, TRUNCATE
from mtsd.spark.shapes.row_columns import DELETE, INSERT, UPDATE
from mtsd.spark.shapes.table_definitions import POSTIMAGE

_PLACE: Final = ("schema", "table")
_ENDED: Final = "_mtsd_ended"
_NEWEST: Final = "_mtsd_newest"
_NO_KEY: Final = (
    "latest: a row has no primary key that the binary log names (binlog_row_metadata is not FULL,"
    " or the table has none): name the columns that identify a row, as in latest(changes, 'id')"
)
_MOVED: Final = (
    "latest: rows of the table were moved or ended without row events (op = ddl): begin after that"
    " statement, with a new copy of the table. It is at "
)


def latest(changes: DataFrame, *keys: str) -> DataFrame:
    """Return the newest change of each row that is still there, with all columns of `changes`.

    These are of the shape `table` or `changes`, read in any order and from any number of files,
    streams or Parquet. The result can be one of the inputs again:

        latest(latest(monday).unionByName(tuesday))  is  latest(monday.unionByName(tuesday))

    So a table is kept up to date by the changes since, and it does not matter if some of them are
    there twice. `keys` are the columns that identify a row in the shape `table`, if its primary key
    is not known. Raises MtsdError for other columns; a query fails if keys are not known, or if
    rows of a table moved without row events.
    """
    names = set(changes.columns)
    if {"_op", "_seq"} <= names and (keys or "_key" in names):
        return _of_table(changes, keys)
    if {"op", "seq", "key", "old_key", *_PLACE} <= names and not keys:
        return _of_changes(changes)
    raise MtsdError(
        "latest: it needs _op, _seq and _key of shape 'table', or op, schema, table, key, old_key"
        " and seq of shape 'changes'; there are " + ", ".join(changes.columns)
    )


def _of_table(changes: DataFrame, keys: tuple[str, ...]) -> DataFrame:
    is_mark = F.col("_op") == TRUNCATE
    by = [F.col(key) for key in keys or ("_key",)]
    found = _newest(changes, [is_mark, *by], "_seq")
    # Of the same rows, so that the changes are read once.
    ended = found.agg(F.max(F.when(F.col(f"{_NEWEST}._op") == TRUNCATE, F.col(f"{_NEWEST}._seq"))))
    is_there = F.col("_op").isin(INSERT, POSTIMAGE)
    return (
        found.select(f"{_NEWEST}.*")
        .where(is_there if keys else _of_known_key("_key", ~is_mark, is_there))
        .crossJoin(F.broadcast(ended.toDF(_ENDED)))
        .where(F.col(_ENDED).isNull() | (F.col("_seq") > F.col(_ENDED)))
        .drop(_ENDED)
    )


def _of_changes(changes: DataFrame) -> DataFrame:
    op = F.col("op")
    is_mark = op.isin(TRUNCATE, DDL)
    names = changes.columns
    row = F.struct(*map(F.col, names))
    # An update of the key ends the row that had the former one.
    former = [
        F.lit(DELETE).alias(name) if name == "op" else
        F.col("old_key").alias(name) if name == "key" else F.col(name)
        for name in names
    ]  # fmt: skip
    both = F.when(F.col("old_key").isNotNull(), F.array(row, F.struct(*former)))
    each = changes.select(F.explode(F.coalesce(both, F.array(row))).alias("_row")).select("_row.*")
    key = F.when(is_mark, op).otherwise(F.col("key"))
    found = _newest(each, [is_mark, *map(F.col, _PLACE), key], "seq").select(f"{_NEWEST}.*")
    place = F.when(op == DDL, F.concat_ws(":", "file", "pos", "statement"))
    ended = found.where(is_mark).select(
        F.col("schema").alias("_schema"),
        F.col("table").alias("_table"),
        F.col("seq").alias(_ENDED),
        place.alias("_ddl"),
    )
    # DROP DATABASE names no table, and a statement that is not understood not even a database.
    is_of = (F.col("_schema").isNull() | (F.col("schema") == F.col("_schema"))) & (
        F.col("_table").isNull() | (F.col("table") == F.col("_table"))
    )
    is_ended = F.when(
        F.col("_ddl").isNotNull(), F.raise_error(F.concat(F.lit(_MOVED), F.col("_ddl")))
    ).otherwise(F.col("seq") < F.col(_ENDED))
    there = found.where(_of_known_key("key", ~is_mark, op.isin(INSERT, UPDATE)))
    return there.join(F.broadcast(ended), is_of & is_ended.cast("boolean"), "left_anti")


def _newest(rows: DataFrame, by: list[Column], seq: str) -> DataFrame:
    """Return the row with the largest `seq` of each group, as the column `_NEWEST`."""
    named = [column.alias(f"_mtsd_{number}") for number, column in enumerate(by)]
    newest = F.max_by(F.struct(*map(F.col, rows.columns)), F.col(seq)).alias(_NEWEST)
    return rows.groupBy(*named).agg(newest).select(_NEWEST)


def _of_known_key(key: str, is_row: Column, test: Column) -> Column:
    """Return a test that fails the query for a row whose key is not known."""
    no_key = F.raise_error(F.lit(_NO_KEY)).cast("boolean")
    return F.when(is_row & F.col(key).isNull(), no_key).otherwise(test)
