"""Spark for the demonstration: quiet, with progress on a terminal."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Final

from pyspark.sql import SparkSession

from mtsd.model.errors import MtsdError
from mtsd.spark.plan.local_session import spark_session

_EVERY_S: Final = 0.3


@contextmanager
def quiet_session() -> Iterator[SparkSession]:
    """Start Spark, and stop it at the end; end the demonstration if it does not start."""
    try:
        with spark_session("mtsd demo", "local[*]") as session:
            session.conf.set("spark.sql.shuffle.partitions", "2")
            session.conf.set("spark.sql.session.timeZone", "UTC")
            with _progress(session):
                yield session
    except MtsdError as error:
        sys.exit(f"demo: {error}")


@contextmanager
def _progress(session: SparkSession) -> Iterator[None]:
    """Show on a terminal how many tasks of a job have ended."""
    if not sys.stderr.isatty():
        yield
        return
    tracker = session.sparkContext.statusTracker()
    ending = Event()

    def show() -> None:
        width = 0
        while not ending.wait(_EVERY_S):
            stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            text = ", ".join(
                f"{stage.numCompletedTasks} of {stage.numTasks} tasks" for stage in stages if stage
            )
            if text or width:
                sys.stderr.write(f"\r{text:{width}}\r")
                sys.stderr.flush()
            width = len(text)

    thread = Thread(target=show, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join()
