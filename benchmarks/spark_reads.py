"""An application on a cluster: reads binary logs, and prints what each read has cost, as JSON.

Its argument is a JSON object: `workers`, the processes of the cluster's workers, and `reads`, a
list of options. Nothing is done with the rows.
"""

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TypedDict

from pyspark.sql import SparkSession

from mtsd.spark import register

_TICKS = os.sysconf("SC_CLK_TCK")
_SCALE = 1 << 20


class Work(TypedDict):
    """What is read."""

    workers: list[int]
    reads: list[dict[str, str]]


class Cost(TypedDict):
    """What a read has cost: seconds, and seconds of CPU of the executors.

    The driver's memory, in MB: its heap in use afterwards, and the most that its two processes have
    had.
    """

    seconds: float
    python: float
    java: float
    heap: float
    java_peak: float
    python_peak: float


def children(process: int) -> Iterator[int]:
    """Yield the processes that descend from one."""
    try:
        for thread in Path(f"/proc/{process}/task").iterdir():
            for child in map(int, (thread / "children").read_text().split()):
                yield child
                yield from children(child)
    except (FileNotFoundError, ProcessLookupError):
        return


def cpu(workers: list[int]) -> tuple[float, float]:
    """Return the seconds of CPU of the executors' Python and Java so far."""
    spent = {"python": 0, "java": 0}
    for worker in workers:
        for process in children(worker):
            try:
                head, _, rest = Path(f"/proc/{process}/stat").read_text().rpartition(") ")
            except (FileNotFoundError, ProcessLookupError):
                continue
            name = "java" if head.partition(" (")[2].startswith("java") else "python"
            fields = rest.split()
            # Its own, and of what it has waited for: a daemon of Python ends its children.
            counted = fields[11:15] if name == "python" else fields[11:13]
            spent[name] += sum(map(int, counted))
    return spent["python"] / _TICKS, spent["java"] / _TICKS


def peak(process: int | str) -> float:
    """Return the most memory that a process has had, in MB."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    return 0.0


def heap(spark: SparkSession) -> float:
    """Return what the driver's heap holds, in MB."""
    machine = spark.sparkContext._jvm  # noqa: SLF001 - the only way to its memory
    if machine is None:
        return 0.0
    runtime = machine.java.lang.Runtime.getRuntime()
    for _ in range(3):
        machine.java.lang.System.gc()
        time.sleep(0.2)
    return float(runtime.totalMemory() - runtime.freeMemory()) / _SCALE


def main(work: Work) -> list[Cost]:
    """Read, and return the costs."""
    spark = SparkSession.builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    register(spark)
    found: list[Cost] = []
    for options in work["reads"]:
        before = cpu(work["workers"])
        began = time.monotonic()
        frame = spark.read.format("mtsd_binlog").options(**options).load()
        frame.write.format("noop").mode("overwrite").save()
        seconds = time.monotonic() - began
        after = cpu(work["workers"])
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
