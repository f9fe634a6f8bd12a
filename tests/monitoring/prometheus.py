"""A Prometheus that scrapes daemons of a test every half second."""

import http.client
import json
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import urlencode

import yaml

from tests.monitoring.promtool import program
from tests.servers.mysqld import _lock_of_a_free_port

_SCRAPE_S: Final = 0.5
WINDOW: Final = "5s"
"""What a rate is taken over, in place of Grafana's interval."""


class Prometheus:
    """As a context manager it runs; `targets` are addresses, its files are in `folder`."""

    def __init__(self, folder: Path, targets: Sequence[str], rules: Path) -> None:
        self._folder = folder
        self._port_lock = _lock_of_a_free_port()
        self._address = "127.0.0.1:{1}".format(*self._port_lock.getsockname())
        configuration = {
            "global": {
                "scrape_interval": f"{int(_SCRAPE_S * 1000)}ms",
                "evaluation_interval": "1s",
            },
            "scrape_configs": [
                {"job_name": "mtsd", "static_configs": [{"targets": list(targets)}]}
            ],
            "rule_files": [str(rules)],
        }
        (folder / "prometheus.yml").write_text(yaml.safe_dump(configuration))

    def __enter__(self) -> Self:
        with (self._folder / "prometheus.log").open("wb") as log:
            self._process = subprocess.Popen(
                [
                    str(program("prometheus")),
                    f"--config.file={self._folder / 'prometheus.yml'}",
                    f"--storage.tsdb.path={self._folder / 'tsdb'}",
                    f"--web.listen-address={self._address}",
                ],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.terminate()
        self._process.wait(30)
        self._port_lock.close()

    def get(self, path: str, **parameters: str) -> dict[str, list[dict[str, Any]]]:
        """Return the data of an answer of its API."""
        connection = http.client.HTTPConnection(self._address, timeout=10)
        try:
            connection.request("GET", f"/api/v1/{path}?{urlencode(parameters)}")
            answer = json.loads(connection.getresponse().read())
        finally:
            connection.close()
        assert answer["status"] == "success", (parameters, answer)
        data: dict[str, list[dict[str, Any]]] = answer["data"]
        return data

    def labels(self, expression: str, label: str) -> list[str]:
        """Return the values of a label of which the expression is true now, sorted."""
        found = self.get("query", query=expression)["result"]
        return sorted({each["metric"].get(label, "") for each in found})

    def channels(self, expression: str) -> list[str]:
        """Return the channels of which the expression is true now, sorted."""
        name = "channel_name" if "mysql_slave" in expression else "channel"
        return self.labels(expression, name)

    def wait_for(self, expression: str, channels: list[str]) -> None:
        """Wait until the expression is true of these channels."""
        deadline = time.monotonic() + 60
        found: list[str] | Exception = []
        while True:
            try:
                found = self.channels(expression)
            except (OSError, ValueError) as error:
                # While it begins it answers nothing, and then no JSON.
                found = error
            if found == channels:
                return
            assert time.monotonic() < deadline, (expression, found)
            time.sleep(0.2)
