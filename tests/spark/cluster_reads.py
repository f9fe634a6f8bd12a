"""A cluster application that reads binary logs in several ways, and prints what it has found.

Its argument is a JSON object, see `Work`.
"""

import json
import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Event
from typing import TypedDict

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from mtsd.spark import register
from mtsd.spark.logs.failure import failure_line

MANY_TASKS = 24
AT_THE_END = """
    SELECT
        count(*), count(DISTINCT _file, _pos, _row, _op),
        count_if(is_there), sum(if(is_there, crc32(line), 0))
    FROM (
        SELECT _file, _pos, _row, _op, concat_ws('|', id, name, balance, doc) AS line,
            _op IN ('insert', 'update_postimage') AND 1 = row_number() OVER (
                PARTITION BY id ORDER BY _file DESC, _pos DESC, _row DESC, _op = 'update_preimage'
            ) AS is_there
        FROM t
    )
"""


class Work(TypedDict):
    """What to read: `folder`, of `size` bytes, once for each number of `tasks`; then `damaged`.

    If `workers` contains process ids, the executor of one is killed during another read.
    """

    folder: str
    damaged: str
    size: int
    tasks: list[int]
    workers: list[int]


def read(spark: SparkSession, folder: str, size: int, tasks: int) -> list[int]:
    """Return how many rows changed and in how many places, the rows left, and their checksum."""
    frame = (
        spark.read.format("mtsd_binlog")
        .option("shape", "table")
        .option("table", "w.t")
        .option("max_partition_bytes", str(size // tasks + 1))
        .load(folder)
    )
    frame.createOrReplaceTempView("t")
    (found,) = spark.sql(AT_THE_END).collect()
    return [int(one) for one in found]


def executors(worker: int) -> list[int]:
    """Return the processes that a worker has started."""
    found: list[int] = []
    for thread in Path(f"/proc/{worker}/task").iterdir():
        # A thread may end in the meantime.
        with suppress(FileNotFoundError, ProcessLookupError):
            found += map(int, (thread / "children").read_text().split())
    return found


def kill_an_executor(spark: SparkSession, worker: int, over: Event) -> int:
    """Kill one when some tasks have ended and others have not; return how many have ended.

    Return 0 if everything is `over` before that.
    """
    tracker = spark.sparkContext.statusTracker()
    while not over.wait(0.01):
        for stage in tracker.getActiveStageIds():
            declared = tracker.getStageInfo(stage)
            if (
                declared is not None
                and declared.numTasks > MANY_TASKS // 2
                and declared.numCompletedTasks > 3
            ):
                for executor in executors(worker):
                    os.kill(executor, signal.SIGKILL)
                    return int(declared.numCompletedTasks)
    return 0


def main(work: Work) -> dict[str, object]:
    spark = SparkSession.builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    register(spark)
    folder, size = work["folder"], work["size"]
    found: dict[str, object] = {
        f"{tasks} tasks": read(spark, folder, size, tasks) for tasks in work["tasks"]
    }
    prefixes = spark.sparkContext.parallelize(range(2), 2).map(lambda _: sys.prefix)
    found["environments"] = sorted(set(prefixes.collect()))
    if work["workers"]:
        with ThreadPoolExecutor(1) as threads:
            over = Event()
            ended = threads.submit(kill_an_executor, spark, work["workers"][0], over)
            try:
                found["killed"] = read(spark, folder, size, MANY_TASKS)
            finally:
                over.set()
            found["ended before"] = ended.result()
    try:
        read(spark, work["damaged"], size, 1)
    except PySparkException as error:
        found["error"] = str(error)
        found["line"] = failure_line(error)
    spark.stop()
    return found


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))
