"""A standalone Spark cluster on loopback: a master and workers, as processes on this machine.

Each picks a free port. Applications are run by `spark-submit` in their own processes, because a
session that already exists in this process could not use the cluster.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Self

from tests.servers.reaper import register

_START_S: Final = 90.0
_POLL_S: Final = 0.05
_ADDRESS: Final = re.compile(r"Starting Spark master at (spark://\S+)")
_REGISTERED: Final = "Successfully registered with master"
_CLASSES: Final = "org.apache.spark.deploy"
_QUICK_START: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_NO_SERVICES: Final = "spark.ui.enabled=false", "spark.master.rest.enabled=false"


class ClusterError(AssertionError):
    """The cluster or an application failed; the message ends with what it printed."""


def spark_home() -> Path:
    """Return the folder of the pyspark distribution."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise ClusterError("pyspark is not installed: scripts/setup --spark")
    return Path(spec.origin).parent


class StandaloneCluster:
    """A master and `workers` of one core each, in their own folder."""

    def __init__(self, workers: int = 2) -> None:
        self._workers = workers
        self._folder = tempfile.TemporaryDirectory(prefix="mtsd-spark-")
        self.folder = Path(self._folder.name)
        self._processes: list[subprocess.Popen[bytes]] = []
        self.address = ""

    def __enter__(self) -> Self:
        try:
            log = self._start("master", "master.Master")
            self.address = _awaited(log, _ADDRESS)
            logs = [
                self._start(
                    f"worker{number}", "worker.Worker", "--cores", "1", "--memory", "1g",
                    "--work-dir", str(self.folder / f"work{number}"), self.address,
                )
                for number in range(self._workers)
            ]  # fmt: skip
            for log in logs:
                _awaited(log, re.compile(f"({_REGISTERED})"))
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def worker_pids(self) -> list[int]:
        """The workers' processes, whose children are the executors."""
        return [process.pid for process in self._processes[1:]]

    def close(self) -> None:
        """End all processes; a worker ends its executors."""
        for process in reversed(self._processes):
            process.terminate()
        for process in reversed(self._processes):
            try:
                process.wait(20.0)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for number in range(len(self._processes)):
            register(self.folder / str(number), None)
        self._processes.clear()
        self._folder.cleanup()

    def submit(
        self,
        script: Path,
        *arguments: str,
        settings: Mapping[str, str] | None = None,
        python: str = sys.executable,
        archives: str = "",
        folder: Path | None = None,
        environ: Mapping[str, str] | None = None,
        timeout: float = 540.0,
    ) -> dict[str, object]:
        """Run an application by spark-submit; return the JSON object in its last line.

        `python` is the executors' interpreter, `archives` their --archives; `folder` is the
        driver's working directory, `environ` is added to its environment. Raises ClusterError.
        """
        settings = {
            "spark.driver.memory": "768m",
            "spark.executor.memory": "512m",
            "spark.driver.extraJavaOptions": _QUICK_START,
            "spark.executor.extraJavaOptions": _QUICK_START,
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.session.timeZone": "UTC",
            **(settings or {}),
        }
        command = [
            str(spark_home() / "bin" / "spark-submit"), "--master", self.address,
            *(f"--conf={name}={value}" for name, value in settings.items()),
            *(("--archives", archives) if archives else ()),
            str(script), *arguments,
        ]  # fmt: skip
        pythons = {"PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": sys.executable}
        environ = self._environ(**(environ or {}), **pythons)
        try:
            done = subprocess.run(
                command, env=environ, cwd=folder or self.folder, capture_output=True, text=True,
                timeout=timeout, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise ClusterError(f"{script.name} does not end: {error.stderr!r}") from error
        if done.returncode:
            raise ClusterError(
                f"{script.name}: status {done.returncode}\n{done.stdout}{done.stderr[-6000:]}"
            )
        found: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
        return found

    def _start(self, name: str, class_name: str, *arguments: str) -> Path:
        log = self.folder / f"{name}.log"
        properties = self.folder / f"{name}.conf"
        properties.write_text("\n".join(one.replace("=", " ") for one in _NO_SERVICES))
        with log.open("wb") as output:
            process = subprocess.Popen(
                [
                    spark_home() / "bin" / "spark-class", f"{_CLASSES}.{class_name}",
                    "--host", "127.0.0.1", "--port", "0", "--webui-port", "0",
                    "--properties-file", properties, *arguments,
                ],
                env=self._environ(), stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                cwd=self.folder,
            )  # fmt: skip
        register(self.folder / str(len(self._processes)), process.pid)
        self._processes.append(process)
        return log

    def _environ(self, **more: str) -> dict[str, str]:
        return {
            **os.environ,
            "SPARK_HOME": str(spark_home()),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_DIRS": str(self.folder / "local"),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": _QUICK_START,
            **more,
        }


def _awaited(log: Path, pattern: re.Pattern[str]) -> str:
    """Return the first match in a log, waiting until there is one."""
    deadline = time.monotonic() + _START_S
    while True:
        text = log.read_text(errors="replace")
        found = pattern.search(text)
        if found:
            return found[1]
        if time.monotonic() > deadline:
            raise ClusterError(f"{log.name} without {pattern.pattern!r}:\n{text[-2000:]}")
        time.sleep(_POLL_S)
