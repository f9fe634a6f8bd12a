"""A process that runs one query, to be killed and restarted.

Usage: python -m tests.spark.query_process JSON, with `master`, `options`, `place` and `trigger`.
Spark is started at once, and the query when a line is written to it, or its input is closed.
"""

import json
import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from mtsd.spark import register
from tests.spark.conftest import SETTINGS
from tests.spark.streams import Stream


def main(given: str) -> None:
    wanted = json.loads(given)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    builder = SparkSession.builder.master(wanted["master"]).appName("mtsd query")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    # A cluster whose executors are killed gives a task up after four of them.
    spark = builder.config("spark.task.maxFailures", "20").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    register(spark)
    sys.stdin.readline()
    Stream(spark, "", Path(wanted["place"]), wanted["options"]).run(**wanted["trigger"])


if __name__ == "__main__":
    main(sys.argv[1])
