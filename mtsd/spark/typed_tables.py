"""Tables with types out of one read or stream of the shape `changes`, for all of them at once.

A stream of shape `table` for each of twelve tables reads the log twelve times. The shape `changes`
reads it once, and here its JSON becomes the rows that the shape `table` has.
"""

from collections.abc import Mapping
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody who writes Spark calls it
from pyspark.sql.types import StructField, StructType, VariantType

from mtsd.model.errors import MtsdError
from mtsd.spark.shapes.marks import DDL, TRUNCATE
from mtsd.spark.shapes.row_columns import UPDATE
from mtsd.spark.shapes.table_definitions import ABSENT, META, POSTIMAGE, PREIMAGE

_NEEDED: Final = (
    "op", "schema", "table", "before", "after", "file", "pos", "row", "gtid", "commit_time",
    "statement", "key", "old_key", "seq",
)  # fmt: skip
_ROW: Final = "_mtsd_row"
_EACH: Final = "_mtsd_each"


def tables(changes: DataFrame, schemas: Mapping[str, StructType | str]) -> dict[str, DataFrame]:
    """Return the rows of each table in a frame of the shape `changes`, with types.

    `schemas` are by name ("shop.orders") what `.schema(…)` takes for the shape `table`: a text
    such as "id INT, amount DECIMAL(10, 2)", or the schema of such a frame. The rows are as those of
    the shape `table`: `_op`, `_seq` and so on, followed by the columns; an update is two rows. JSON
    columns should be of the type VARIANT: as texts they lose spaces, and strings their quotes.

        def store(batch, number):
            batch.persist()
            for name, rows in tables(batch, schemas).items():
                rows.write.mode("overwrite").parquet(f"/srv/lake/{name}/{number}")
            batch.unpersist()

    A query fails if a row has a column that the schema lacks, if a value does not fit its type, or
    if rows of the table were moved by a statement (op = ddl). A column that a row lacks is NULL.
    Raises MtsdError for a frame of another shape, and for a name that is not "database.table".
    """
    missing = [name for name in _NEEDED if name not in changes.columns]
    if missing:
        raise MtsdError(
            f"tables: there is no column {missing[0]}: it needs all of the shape 'changes'"
        )
    return {name: _typed(changes, name, schema) for name, schema in schemas.items()}


def _typed(changes: DataFrame, name: str, schema: StructType | str) -> DataFrame:
    database, dot, table = name.replace("`", "").partition(".")
    if not dot or not table or "." in table:
        raise MtsdError(f'tables: {name!r} is not "database.table"')
    whole = schema if isinstance(schema, StructType) else _parsed(schema)
    own = StructType([one for one in whole.fields if one.name not in META and one.name != ABSENT])
    is_of = (F.col("schema") == database) & (F.col("table").isNull() | (F.col("table") == table))
    op = F.col("op")
    # Which tables a statement that is not understood has moved, nobody knows.
    rows = changes.where(F.coalesce(is_of, op == DDL))

    def image(operation: Column, text: str, number: int) -> Column:
        key = F.coalesce("old_key", "key") if text == "before" else F.col("key")
        seq = F.concat_ws("-", "seq", F.lit(str(number)))
        return F.struct(
            operation.alias("_op"), key.alias("_key"), seq.alias("_seq"), F.col(text).alias(_ROW)
        )

    is_mark = op.isin(TRUNCATE, DDL)
    mark = F.struct(
        op.alias("_op"), F.col("key").alias("_key"), F.col("seq").alias("_seq"),
        F.col("after").alias(_ROW),
    )  # fmt: skip
    images = (
        F.when(op == UPDATE, F.array(
            image(F.lit(PREIMAGE), "before", 0), image(F.lit(POSTIMAGE), "after", 1)))
        .when(is_mark, F.array(mark))
        .when(F.col("after").isNull(), F.array(image(op, "before", 0)))
        .otherwise(F.array(image(op, "after", 0)))
    )  # fmt: skip
    each = rows.withColumn(_EACH, F.explode(images)).select("*", f"{_EACH}.*")
    text = F.col(_ROW)
    values = F.from_json(text, own, {"mode": "FAILFAST"})
    moved = F.concat(F.lit(f"tables: rows of {name} were moved by: "), F.col("statement"))
    unknown = F.array_except(F.json_object_keys(text), F.array(*map(F.lit, own.names)))
    more = F.concat(
        F.lit(f"tables: a row of {name} has columns that its schema lacks: "),
        F.concat_ws(", ", unknown), F.lit(" (after "), F.col("file"), F.lit(":"),
        F.col("pos").cast("string"), F.lit(")"),
    )  # fmt: skip
    checked = (
        F.when(op == DDL, F.raise_error(moved).cast(own))
        .when(F.size(unknown) > 0, F.raise_error(more).cast(own))
        .otherwise(values)
    )
    meta = {
        "_op": "_op", "_file": "file", "_pos": "pos", "_row": "row", "_gtid": "gtid",
        "_commit_time": "commit_time", "_key": "_key", "_seq": "_seq",
    }  # fmt: skip
    return each.withColumn(_ROW, checked).select(
        *(F.col(f"`{source}`").alias(column) for column, source in meta.items()),
        *(_value(one).alias(one.name) for one in own.fields),
    )


def _value(column: StructField) -> Column:
    found = F.col(_ROW).getField(column.name)
    # A NULL would be a document.
    return F.when(~F.is_variant_null(found), found) if _is_variant(column) else found


def _is_variant(column: StructField) -> bool:
    return isinstance(column.dataType, VariantType)


def _parsed(schema: str) -> StructType:
    found = StructType.fromDDL(schema)
    if not isinstance(found, StructType):
        raise MtsdError(f"tables: {schema!r} is not a list of columns")
    return found
