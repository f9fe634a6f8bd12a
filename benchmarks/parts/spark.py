"""Rows per second through Spark, the CPU overhead of byte ranges, and the driver's memory.

A standalone cluster of a master and two workers of one core each reads large files that repeat the
recorded ones (`benchmarks.inputs.row_events`). The least CPU time of all turns counts.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from benchmarks.figures import Figure, Range
from benchmarks.inputs import row_events
from benchmarks.inputs.repeated import linked, repeated
from benchmarks.parts.cpu import environ, variants
from benchmarks.processes import spark_reads
from benchmarks.processes.spark_reads import Cost, Work
from tests.spark.standalone import StandaloneCluster

_TURNS: Final = 3
TIMES: Final = {row_events.MULTI: 16, row_events.SINGLE: 8}
"""How often a file repeats the recorded one: a quarter of a gigabyte each."""
CHANGES: Final = 2 * row_events.ROWS
_SMALL: Final = 0.1
"""The smaller read, as a share of the largest, whose memory is the baseline."""
_TIMEOUT_S: Final = 3600.0
ONE: Final = "one partition"
DEFAULT: Final = "64 MiB"
_RANGES: Final = {DEFAULT: "64m", ONE: "4g"}


@dataclass(frozen=True, slots=True)
class Through:
    """A read of one load: changes per second, and µs of the executors' CPU per change."""

    load: str
    variant: str
    shape: str
    ranges: str
    rate: float
    python: float
    java: float


@dataclass(frozen=True, slots=True)
class DriverMemory:
    """The driver's memory after a read of some size: its heap, and the peaks of its processes."""

    size: int
    files: int
    heap: float
    java_peak: float
    python_peak: float


@dataclass(frozen=True, slots=True)
class Results:
    """All measurements."""

    reads: list[Through]
    memory: list[DriverMemory]


def measured(gigabytes: float) -> Results:
    """Return the figures of every load and variant, and of reads of up to `gigabytes`.

    Raises ClusterError, and subprocess.CalledProcessError if the wheel is not built.
    """
    files = {load: repeated(row_events.recorded(load), times) for load, times in TIMES.items()}
    reads: list[Through] = []
    with StandaloneCluster() as cluster, TemporaryDirectory(prefix="mtsd-links-") as folder:
        with variants("") as trees:
            for variant in trees:
                path = environ(variant)["PYTHONPATH"]
                reads += _reads(cluster, files, variant.name, path)
        memory = _memory(cluster, files[row_events.MULTI], Path(folder), int(gigabytes * 1e9))
    return Results(reads, memory)


def _reads(
    cluster: StandaloneCluster, files: dict[str, Path], variant: str, path: str
) -> list[Through]:
    """Return the cost of reading the loads, with the modules found by `path`."""
    asked = [(load, "table", ranges) for load in files for ranges in _RANGES] * _TURNS
    asked += [(load, "changes", DEFAULT) for load in files]
    # An extra read, which does not count, starts Python and fills the caches.
    asked.insert(0, asked[0])
    table = {"table": "shop.orders"}
    costs = submitted(
        cluster,
        [
            {
                "path": str(files[load]),
                "shape": shape,
                "max_partition_bytes": _RANGES[ranges],
                **(table if shape == "table" else {}),
            }
            for load, shape, ranges in asked
        ],
        path,
    )
    least: dict[tuple[str, str, str], Through] = {}
    for (load, shape, ranges), cost in list(zip(asked, costs, strict=True))[1:]:
        changes = CHANGES * TIMES[load]
        found = Through(
            load, variant, shape, ranges,
            changes / cost["seconds"],
            cost["python"] / changes * 1e6,
            cost["java"] / changes * 1e6,
        )  # fmt: skip
        before = least.get((load, shape, ranges))
        if before is None or found.python < before.python:
            least[load, shape, ranges] = found
    return list(least.values())


def _memory(cluster: StandaloneCluster, file: Path, folder: Path, size: int) -> list[DriverMemory]:
    """Return the driver's memory after a small and a large read of many files."""
    places = []
    for share in (_SMALL, 1.0):
        place = folder / f"{share}"
        place.mkdir()
        places.append((place, linked(file, place, int(size * share))))
    # The first file is read twice, because the first read includes the driver's fixed memory use.
    asked = [places[0], *places]
    costs = submitted(cluster, [{"path": str(place), "shape": "groups"} for place, _ in asked])
    return [
        DriverMemory(
            read, len(list(place.iterdir())), cost["heap"], cost["java_peak"], cost["python_peak"]
        )
        for (place, read), cost in list(zip(asked, costs, strict=True))[1:]
    ]


def submitted(
    cluster: StandaloneCluster, reads: list[dict[str, str]], path: str = ""
) -> list[Cost]:
    """Return what each read costs, with the modules found by `path`."""
    modules = {"PYTHONPATH": path} if path else {}
    found = cluster.submit(
        Path(spark_reads.__file__),
        json.dumps(Work(workers=cluster.worker_pids, reads=reads)),
        settings={f"spark.executorEnv.{name}": value for name, value in modules.items()},
        environ=modules,
        timeout=_TIMEOUT_S,
    )
    costs: list[Cost] = json.loads(json.dumps(found["costs"]))
    return costs


def figures(results: Results) -> list[Figure]:
    """Return the figures that have to be reached."""
    by_range = {
        (one.load, one.variant, one.ranges): one for one in results.reads if one.shape == "table"
    }
    found = [
        Figure(
            f"{load}, {variant}: Python's CPU in Spark, ranges of {DEFAULT} / {ONE}",
            Range.of([one.python / by_range[load, variant, ONE].python]),
            1.2,
            at_most=True,
            unit=" times",
        )
        for (load, variant, ranges), one in by_range.items()
        if ranges == DEFAULT
    ]
    small, large = results.memory
    found.append(
        Figure(
            f"Spark's driver: heap after {large.size / 1e9:.0f} GB less heap after"
            f" {small.size / 1e9:.0f} GB",
            Range.of([large.heap - small.heap]),
            16.0,
            at_most=True,
            unit=" MB",
        )
    )
    return found


def table(results: Results) -> str:
    """Return tables for human readers."""
    lines = [
        "\nChanges a second through Spark, two executors of one core",
        f"  {'':62}{'changes/s':>10}{'Python µs':>11}{'Java µs':>9}",
    ]
    for one in results.reads:
        name = f"{one.load}, {one.variant}: shape {one.shape}, {one.ranges}"
        lines.append(f"  {name:62}{one.rate:>10,.0f}{one.python:>11.2f}{one.java:>9.2f}")
    lines.append("  µs: CPU of the executors for each change")
    lines += [
        "\nMemory of Spark's driver, MB",
        f"  {'':30}{'heap after it':>15}{'Java, peak':>12}{'Python, peak':>14}",
    ]
    for memory in results.memory:
        name = f"{memory.size / 1e9:.1f} GB in {memory.files} files"
        lines.append(
            f"  {name:30}{memory.heap:>15.1f}{memory.java_peak:>12.0f}{memory.python_peak:>14.0f}"
        )
    return "\n".join(lines)
