"""Binary logs on Spark (extra `spark`): `register(spark)`, then `spark.read.format("mtsd_binlog")`.

from mtsd.spark import latest, register

register(spark)
changes = spark.read.format("mtsd_binlog").option("shape", "changes").load("/var/lib/mysql")
changes.show()
latest(changes).show()
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

__all__ = ["latest", "register", "tables"]


def register(spark: "SparkSession") -> None:
    """Make the format `mtsd_binlog` and the function `mtsd_changes` known to a session.

    Raises ImportError, with what is to be installed, where the extra `spark` is not there.
    """
    try:
        # Decoding rows needs no Spark, and importing it takes a while.
        from pyspark.sql.functions import udtf  # noqa: PLC0415

        from mtsd.spark.source.data_source import BinlogDataSource  # noqa: PLC0415
        from mtsd.spark.source.table_function import NAME, ChangesFunction  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise ImportError(
            f"{error.name} is missing: install mtsd with its extra 'spark' (pip install '.[spark]')"
        ) from error
    spark.dataSource.register(BinlogDataSource)
    # What `udtf` returns depends on whether it is used as a decorator.
    spark.udtf.register(NAME, udtf(ChangesFunction, useArrow=True))  # type: ignore[arg-type]


def latest(changes: "DataFrame", *keys: str) -> "DataFrame":
    """Return the rows that a table has now: see `mtsd.spark.current_rows.latest`."""
    from mtsd.spark import current_rows  # noqa: PLC0415 - as above

    return current_rows.latest(changes, *keys)


def tables(
    changes: "DataFrame", schemas: "Mapping[str, StructType | str]"
) -> dict[str, "DataFrame"]:
    """Return typed rows of each table in a frame: see `mtsd.spark.typed_tables.tables`."""
    from mtsd.spark import typed_tables  # noqa: PLC0415 - as above

    return typed_tables.tables(changes, schemas)
