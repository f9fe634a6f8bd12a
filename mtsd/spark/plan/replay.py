"""Simulates the configurations of a plan, each in a Spark task."""

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Final

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from mtsd.model.errors import MtsdError
from mtsd.plan.advice import TriedCandidate
from mtsd.plan.candidate import DEFAULT_SETTINGS, Candidate, CommonSettings
from mtsd.plan.costs import Costs, Machines
from mtsd.plan.replayed_group import repeated
from mtsd.plan.simulated_run import SimulatedRun
from mtsd.plan.simulation import NotRecordedError, Simulation
from mtsd.spark.logs.failure import failure_line, one_line
from mtsd.spark.plan.group_record import recorded_needs, replayed_groups

_COLUMNS: Final = "number LONG, outcome STRING, error STRING"
_ARROW: Final = pa.schema([
    pa.field("number", pa.int64()), pa.field("outcome", pa.string()), pa.field("error", pa.string())
])  # fmt: skip
_POLL_S: Final = 0.5
LEAST: Final = 30_000
"""The least number of groups to simulate; a shorter load is repeated."""

Progress = Callable[[int, int], None]
"""Called with the number of tasks done and their total."""


def replay(
    spark: SparkSession,
    record: str,
    candidates: Sequence[Candidate],
    costs: Costs,
    machines: Machines,
    *,
    settings: CommonSettings = DEFAULT_SETTINGS,
    most: int | None = None,
    progress: Progress | None = None,
) -> tuple[list[TriedCandidate], list[str]]:
    """Simulate each candidate on the first `most` groups of the record, which every task opens.

    Returns the results, and why other candidates have none: their policy needs unrecorded fields.
    Raises RecordError, and MtsdError with Spark's error.
    """
    recorded = recorded_needs(record)

    def simulate(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                outcome, error = None, None
                try:
                    with one_line(record):
                        groups = repeated(partial(replayed_groups, record, most), LEAST)
                        simulation = Simulation(
                            candidates[number], groups, costs, machines,
                            recorded=recorded, settings=settings,
                        )  # fmt: skip
                        outcome = json.dumps(simulation.run().document())
                except NotRecordedError as missing:
                    error = str(missing)
                columns = [pa.array([number], pa.int64())]
                columns += [pa.array([text], pa.string()) for text in (outcome, error)]
                yield pa.RecordBatch.from_arrays(columns, schema=_ARROW)

    count = len(candidates)
    tasks = spark.range(0, count, 1, count).mapInArrow(simulate, _COLUMNS)
    try:
        with _watched(spark, count, progress):
            rows = sorted(tasks.collect())
    except PySparkException as error:
        lines = str(error).strip().splitlines()
        reason = failure_line(error) or (lines[-1] if lines else "it does not say why")
        raise MtsdError(f"Spark could not simulate: {reason}") from error
    results = [
        TriedCandidate(candidates[row.number], _outcome(row.outcome)) for row in rows if row.outcome
    ]
    missing = list(dict.fromkeys(row.error for row in rows if row.error))
    if not results:
        raise MtsdError("; ".join(missing) or "there is nothing to simulate")
    return results, missing


def _outcome(text: str) -> SimulatedRun:
    document = json.loads(text)
    document["workers"] = tuple(document["workers"])
    return SimulatedRun(**document)


@contextmanager
def _watched(spark: SparkSession, count: int, progress: Progress | None) -> Iterator[None]:
    """Report the number of finished tasks while the context is active."""
    if progress is None:
        yield
        return
    ended = threading.Event()
    tracker = spark.sparkContext.statusTracker()

    def watch() -> None:
        while not ended.wait(_POLL_S):
            stages = [tracker.getStageInfo(number) for number in tracker.getActiveStageIds()]
            progress(sum(stage.numCompletedTasks for stage in stages if stage), count)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
    progress(count, count)
