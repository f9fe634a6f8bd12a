"""Spark for a command: quiet, and in a JVM of this process unless another master is given."""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from mtsd.model.errors import MtsdError

_SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.pyspark.udf.hideTraceback.enabled": "true",
}
_LOGGING: Final = """\
rootLogger.level = off
rootLogger.appenderRef.stderr.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
"""
"""Keeps Spark's log messages out of a command's output; its errors arrive as exceptions.

Spark ignores a configuration without an appender.
"""
_LOCAL: Final = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
"""Keeps all traffic on this machine, whatever its name resolves to."""
_SHOWN: Final = 1000
"""How many characters of Spark's and Java's output are shown if they do not start."""


class NoJavaError(MtsdError):
    """Java, which Spark needs, was not found."""


class NotStartedError(MtsdError):
    """Spark has not started; the message contains the output of Spark and Java."""


@contextmanager
def spark_session(name: str, master: str) -> Iterator[SparkSession]:
    """Start Spark, or use the existing session; it is stopped only if it was started here.

    Raises NoJavaError and NotStartedError.
    """
    existing = SparkSession.getActiveSession()
    if existing is not None:
        yield existing
        return
    _require_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = dict(_SETTINGS)
    if master.startswith("local"):
        settings |= _LOCAL
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    with TemporaryDirectory(prefix="mtsd-spark-") as folder:
        logging = Path(folder, "log4j2.properties")
        logging.write_text(_LOGGING)
        settings["spark.driver.extraJavaOptions"] = f"-Dlog4j2.configurationFile={logging.as_uri()}"
        builder = SparkSession.builder.master(master).appName(name)
        for key, value in settings.items():
            builder = builder.config(key, value)
        session = _started(builder, master)
        try:
            yield session
        finally:
            session.stop()


def _started(builder: "SparkSession.Builder", master: str) -> SparkSession:
    """Start Spark; the output of Spark and Java is shown only if they do not start."""
    with TemporaryFile() as printed:
        try:
            with _stderr_to(printed.fileno()):
                return builder.getOrCreate()
        except (PySparkException, RuntimeError) as error:
            printed.seek(0)
            text = f"{error} {printed.read().decode(errors='replace')}"
            what = " ".join(text.split())[:_SHOWN]
            raise NotStartedError(f"Spark does not start with {master}: {what}") from error


@contextmanager
def _stderr_to(file: int) -> Iterator[None]:
    """Redirect standard error of this process and its children to a file."""
    sys.stderr.flush()
    kept = os.dup(2)
    os.dup2(file, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _require_java() -> None:
    home = os.environ.get("JAVA_HOME")
    if home:
        if not (Path(home) / "bin" / "java").exists():
            raise NoJavaError(f"JAVA_HOME={home} has no bin/java: set it to a Java 17 or 21")
        return
    if shutil.which("java") is None:
        beside = Path(sys.executable).with_name("java")
        if not beside.exists():
            raise NoJavaError(
                "Spark needs Java, and there is none: install Java 17 or 21 (Debian: apt install"
                " openjdk-17-jre-headless), or set JAVA_HOME to one"
            )
        os.environ["PATH"] = f"{beside.parent}{os.pathsep}{os.environ.get('PATH', '')}"
