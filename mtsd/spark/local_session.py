"""Spark as a command uses it: in this process's own JVM unless told otherwise, and quiet."""

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
"""What Spark says itself stays away from a command's own lines; its errors come as exceptions.

Without an appender Spark takes it for no configuration.
"""
_LOCAL: Final = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
"""Nothing leaves the machine, whatever its name resolves to."""
_SHOWN: Final = 1000
"""Characters of what Spark and Java print if they do not start."""


class NoJavaError(MtsdError):
    """There is no Java, which Spark runs on."""


class NotStartedError(MtsdError):
    """Spark has not started; the message contains what it and Java have printed."""


@contextmanager
def spark_session(name: str, master: str) -> Iterator[SparkSession]:
    """Start Spark, or join the session that there is; it is stopped only if it was started here.

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
    """Start Spark; what it and Java print meanwhile is shown only if they do not start."""
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
    """Let this process and those that it starts write to a file instead of standard error."""
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
