"""Binary logs on Spark (extra `spark`): `register(spark)`, then `spark.read.format("mtsd_binlog")`.

from mtsd.spark import register

register(spark)
spark.read.format("mtsd_binlog").load("/var/lib/mysql").show()
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["register"]


def register(spark: "SparkSession") -> None:
    """Make the format `mtsd_binlog` known to a session.

    Raises ImportError, with what is to be installed, where the extra `spark` is not there.
    """
    try:
        # Decoding rows needs no Spark, and importing it takes a while.
        from mtsd.spark.source.data_source import BinlogDataSource  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise ImportError(
            f"{error.name} is missing: install mtsd with its extra 'spark' (pip install '.[spark]')"
        ) from error
    spark.dataSource.register(BinlogDataSource)
