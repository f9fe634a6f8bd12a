"""Spark for the demonstration: in this process's own JVM, quiet, with progress on a terminal."""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

_SETTINGS: Final = {
    "spark.driver.memory": "1g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.pyspark.udf.hideTraceback.enabled": "true",
}
_EVERY_S: Final = 0.3


@contextmanager
def quiet_session() -> Iterator[SparkSession]:
    """Start Spark; what it and Java have to say goes to a file, shown if they do not start."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    # Java, where the machine has none, is beside Python (scripts/setup --spark).
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    builder = SparkSession.builder.master("local[*]").appName("mtsd demo")
    for name, value in _SETTINGS.items():
        builder = builder.config(name, value)
    with tempfile.TemporaryFile() as said:
        try:
            with _stderr_to(said.fileno()):
                session = builder.getOrCreate()
        except (PySparkException, RuntimeError) as error:
            said.seek(0)
            text = said.read().decode(errors="replace").strip()
            sys.exit(f"demo: Spark does not start: {error}\n{text}")
        session.sparkContext.setLogLevel("OFF")
        try:
            with _progress(session):
                yield session
        finally:
            session.stop()


@contextmanager
def _stderr_to(file: int) -> Iterator[None]:
    """Let processes that start meanwhile write their errors there."""
    sys.stderr.flush()
    kept = os.dup(2)
    os.dup2(file, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


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
