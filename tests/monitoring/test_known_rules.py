"""Alert rules that people have for a server's own replica work with [status] exporter_names."""

from dataclasses import replace
from pathlib import Path
from typing import Final

import yaml

from mtsd.control.server_status import (
    ConnectionsStatus,
    ConnectionStatus,
    ErrorStatus,
    SourceLogStatus,
)
from mtsd.control.status import Status
from mtsd.control.stop_status import LastStopStatus
from tests.monitoring.known_rules import (
    IO,
    LAG,
    NOT_RUNNING,
    SQL,
    Lasting,
    cases_document,
    rules_document,
)
from tests.monitoring.promtool import judged

WHEN: Final = "2026-07-01T10:00:00+00:00"
UP: Final = ConnectionStatus(connected=True, since=WHEN)
AWAY: Final = ConnectionStatus(since=WHEN, attempts=9, last_error=ErrorStatus(0, "gone", WHEN))
RUNS: Final = Status(
    "running", "db1:3306", "db2:3306", lag_seconds=0.0, connections=ConnectionsStatus(UP, UP),
    source_log=SourceLogStatus(server_id=7, server_uuid="u"),
)  # fmt: skip
CASES: Final = (
    Lasting("it runs", RUNS, frozenset()),
    Lasting("it lags", replace(RUNS, lag_seconds=90.0), LAG),
    Lasting("it is delayed", replace(RUNS, lag_seconds=3610.0, delay=3600), frozenset()),
    Lasting(
        "the source is away",
        replace(RUNS, state="connecting", lag_seconds=None,
                connections=ConnectionsStatus(AWAY, UP)),
        IO,
    ),
    Lasting(
        "the target is away",
        replace(RUNS, state="connecting", lag_seconds=None,
                connections=ConnectionsStatus(ConnectionStatus(since=WHEN), AWAY)),
        IO | SQL,
    ),
    Lasting("the target is read-only", replace(RUNS, state="waiting", lag_seconds=9.0), SQL),
    Lasting(
        "an error has stopped it",
        replace(
            RUNS, state="failed", lag_seconds=None,
            connections=ConnectionsStatus(ConnectionStatus(since=WHEN), ConnectionStatus()),
            last_stop=LastStopStatus(WHEN, False, "Duplicate entry", 1062, 8),
        ),
        IO | SQL,
    ),
)  # fmt: skip


def test_they_fire_when_they_do_for_a_replica_of_the_server(tmp_path: Path) -> None:
    assert NOT_RUNNING <= IO & SQL
    (rules := tmp_path / "rules.yml").write_text(yaml.safe_dump(rules_document()))
    (cases := tmp_path / "cases.yml").write_text(yaml.safe_dump(cases_document(str(rules), CASES)))
    done = judged(cases)
    assert done.returncode == 0, done.stdout + done.stderr
