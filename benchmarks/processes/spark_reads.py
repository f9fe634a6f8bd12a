"""A cluster application that reads binary logs, and prints the cost of each read as JSON.

Its argument is a JSON object: `workers`, the process ids of the cluster's workers, and `reads`, a
list of options. The rows are discarded.
"""

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Lock, Thread
from typing import TypedDict

from pyspark.sql import SparkSession

from mtsd.spark import register

_TICKS = os.sysconf("SC_CLK_TCK")
_SCALE = 1 << 20
_EVERY_S = 0.5


class Work(TypedDict):
    """What to read."""

    workers: list[int]
    reads: list[dict[str, str]]


class Cost(TypedDict):
    """The cost of a read: elapsed seconds, and CPU seconds of the executors.

    The driver's memory is in MB: its heap in use afterwards, and the peaks of its two processes.
    """

    seconds: float
    python: float
    java: float
    heap: float
    java_peak: float
    python_peak: float


def children(process: int) -> Iterator[int]:
    """Yield the descendants of a process."""
    try:
        for thread in Path(f"/proc/{process}/task").iterdir():
            for child in map(int, (thread / "children").read_text().split()):
                yield child
                yield from children(child)
    except (FileNotFoundError, ProcessLookupError):
        return


class Meter:
    """The executors' CPU time in Python and in Java.

    Spark ends a Python process that has been idle for a while, and its CPU time is then lost. So
    the processes are polled continuously, and the last value of each one is kept.
    """

    def __init__(self, workers: list[int]) -> None:
        self._workers = workers
        self._ticks: dict[tuple[str, int], int] = {}
        self._looking = Lock()
        Thread(target=self._look_again, daemon=True).start()

    def spent(self) -> tuple[float, float]:
        """Return the seconds used by Python and by Java so far."""
        self._look()
        python, java = (
            sum(ticks for (name, _), ticks in self._ticks.items() if name == wanted) / _TICKS
            for wanted in ("python", "java")
        )
        return python, java

    def _look_again(self) -> None:
        while True:
            time.sleep(_EVERY_S)
            self._look()

    def _look(self) -> None:
        with self._looking:
            for worker in self._workers:
                for process in children(worker):
                    try:
                        text = Path(f"/proc/{process}/stat").read_text()
                    except (FileNotFoundError, ProcessLookupError):
                        continue
                    head, _, rest = text.rpartition(") ")
                    name = "java" if head.partition(" (")[2].startswith("java") else "python"
                    self._ticks[name, process] = sum(map(int, rest.split()[11:13]))


def peak(process: int | str) -> float:
    """Return the peak memory of a process in MB."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    return 0.0


def heap(spark: SparkSession) -> float:
    """Return the used memory of the driver's heap in MB."""
    machine = spark.sparkContext._jvm  # noqa: SLF001 - the only way to its memory
    if machine is None:
        return 0.0
    runtime = machine.java.lang.Runtime.getRuntime()
    for _ in range(3):
        machine.java.lang.System.gc()
        time.sleep(0.2)
    return float(runtime.totalMemory() - runtime.freeMemory()) / _SCALE


def main(work: Work) -> list[Cost]:
    """Perform the reads, and return their costs."""
    spark = SparkSession.builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    register(spark)
    meter = Meter(work["workers"])
    found: list[Cost] = []
    for options in work["reads"]:
        before = meter.spent()
        began = time.monotonic()
        frame = spark.read.format("mtsd_binlog").options(**options).load()
        frame.write.format("noop").mode("overwrite").save()
        seconds = time.monotonic() - began
        after = meter.spent()
        found.append(
            Cost(
                seconds=seconds,
                python=after[0] - before[0],
                java=after[1] - before[1],
                heap=heap(spark),
                java_peak=peak(os.getppid()),
                python_peak=peak("self"),
            )
        )
    spark.stop()
    return found


if __name__ == "__main__":
    print(json.dumps({"costs": main(json.loads(sys.argv[1]))}))
