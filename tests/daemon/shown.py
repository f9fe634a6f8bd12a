"""What each of the ways to look at a replica shows of it, in one form that can be compared."""

import re
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from io import StringIO

from prometheus_client.parser import text_string_to_metric_families
from rich.console import Console

from mtsd.cli.live.screen import screen
from mtsd.cli.live.view import NO_RATES, View
from mtsd.cli.status import lines
from mtsd.control.exposition import metrics_text
from mtsd.control.metrics import LAG, PENDING, SOURCE_CONNECTED, STATE, TARGET_CONNECTED, WORKERS
from mtsd.control.status import Status
from mtsd.daemon.status_tables import StatusTables
from tests.servers.mysqld import Server

_ROW = re.compile(r" *(\d+) .*?\b(idle|waiting|applying|frozen)\b")
_SCHEMA = "mtsd"
_TABLE = f"{_SCHEMA}.replication_applier_status_by_worker"


@dataclass(frozen=True, slots=True)
class Shown:
    """A replica as it is shown.

    `lag` is None where it is unknown, `pending` where no run is active. `workers` are counted by
    what they do. `connected` are source and target, None where that is not shown.
    """

    state: str
    lag: float | None
    pending: int | None
    workers: Counter[str]
    connected: tuple[bool, bool] | None


def all_shown(status: Status, server: Server) -> dict[str, Shown]:
    """Return a status as each shows it; the tables are written to the server, and read there."""
    console = Console(file=StringIO(), width=200, height=60)
    console.print(screen(status, NO_RATES, View(), 60))
    assert isinstance(console.file, StringIO)
    return {
        "json": _of(Status.from_json(status.to_json())),
        "status": _of_lines(lines(status)),
        "top": _of_lines(console.file.getvalue().splitlines()),
        "metrics": _of_metrics(metrics_text(status)),
        "tables": _of_tables(status, server),
    }


def _of(status: Status) -> Shown:
    both = status.connections
    return Shown(
        status.state,
        status.lag_seconds,
        status.pending_groups if status.workers else None,
        Counter(worker.state for worker in status.workers),
        (both.source.connected, both.target.connected),
    )


def _of_lines(said: Iterable[str]) -> Shown:
    text = "\n".join(said)

    def line(name: str) -> str:
        found = re.search(rf"^{name} +(.*)$", text, re.MULTILINE)
        return "" if found is None else found[1]

    lag = re.match(r"([\d.]+) s", line("lag"))
    pending = re.match(r"([\d,]+) group", line("pending"))
    _, _, workers = text.partition("\nworker ")
    return Shown(
        re.split("[:,]", line("state"))[0].strip(),
        None if lag is None else float(lag[1]),
        None if pending is None else int(pending[1].replace(",", "")),
        Counter(row[2] for row in map(_ROW.match, workers.splitlines()[1:]) if row is not None),
        (", connected since" in line("source"), ", connected since" in line("target")),
    )


def _of_metrics(text: str) -> Shown:
    found = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    values = {sample.name: sample.value for sample in found}
    (state,) = [s.labels["state"] for s in found if s.name == STATE.name and s.value]
    pending = values.get(PENDING.name)
    workers = {s.labels["state"]: int(s.value) for s in found if s.name == WORKERS.name}
    return Shown(
        state,
        values.get(LAG.name),
        None if pending is None else int(pending),
        +Counter(workers),
        (bool(values[SOURCE_CONNECTED.name]), bool(values[TARGET_CONNECTED.name])),
    )


def _of_tables(status: Status, server: Server) -> Shown:
    channel = "shown"
    tables = StatusTables(_SCHEMA, channel)
    statements = [*tables.definitions(), *tables.written(status, time.time())]
    server.sql("; ".join(["SET sql_log_bin = 0", *(each.decode() for each in statements)]))
    return read_tables(server, channel)


def read_tables(server: Server, channel: str) -> Shown:
    """Return what the tables of a server say."""
    (whole, *workers) = server.sql(
        f"SELECT STATE, LAG_SECONDS, QUEUED_TRANSACTIONS FROM {_TABLE}"
        f" WHERE CHANNEL_NAME = '{channel}' ORDER BY WORKER_ID"
    )
    state, lag, pending = whole
    return Shown(
        str(state),
        None if lag is None else float(str(lag)),
        int(str(pending)) if workers else None,
        Counter(str(doing) for doing, _, _ in workers),
        None,
    )
