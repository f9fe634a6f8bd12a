import re
from dataclasses import replace

import pytest
import structlog
from prometheus_client.parser import text_string_to_metric_families

from mtsd.control.exposition import metrics_text
from mtsd.control.metrics import MAX_DATABASES, METRICS, OTHERS, Kind, most_delayed
from mtsd.control.probes import not_ready, probes
from mtsd.control.routes import Request, RequestRefusedError, Routes
from mtsd.control.server_status import (
    ConnectionsStatus,
    ConnectionStatus,
    ErrorStatus,
    SourceLogStatus,
)
from mtsd.control.status import (
    AgesStatus,
    DaemonStatus,
    DatabaseStatus,
    Status,
    TargetWaitStatus,
    TotalsStatus,
    WorkerStatus,
)
from mtsd.control.stop_status import LastStopStatus

SECRET = "Duplicate entry 'ann@example.org'"
WHEN = "2026-07-01T10:00:00+00:00"
CONNECTED = ConnectionStatus(connected=True, since=WHEN)
STATUS = Status(
    state="running",
    source="10.1.2.3:3306",
    target="10.1.2.4:3306",
    channel="c1",
    lag_seconds=90.5,
    lag_beyond_delay=30.5,
    pending_groups=5,
    pending_bytes=500,
    last_error=SECRET,
    warnings=(SECRET,),
    workers=(
        WorkerStatus(1, "applying", target_wait=TargetWaitStatus(3.5, "UPDATE", 11)),
        WorkerStatus(2, "idle"),
    ),
    connections=ConnectionsStatus(
        CONNECTED, replace(CONNECTED, last_error=ErrorStatus(1205, SECRET, WHEN))
    ),
    daemon=DaemonStatus("1.2", compiled=True, pid=7, started=WHEN),
    totals=TotalsStatus(
        groups=100, transactions=9, retries=3, skipped=2, skipped_by_hand=1, waits={"alone": 0.5}
    ),
    databases=(DatabaseStatus("shop", 5, 90.5, 60), DatabaseStatus("blog", 0, 0.0, 40)),
    ages=AgesStatus((0.1, 1.0), (60, 30, 10), 75.0),
    source_log=SourceLogStatus(WHEN, 4096, 3600.0, 7, "u"),
    in_doubt_groups=0,
    delay=60,
    last_stop=LastStopStatus(WHEN, False, SECRET, 1062, 8),
)
"""With everything at once, as no daemon is."""

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def samples_of(text: str) -> Samples:
    """Parse what is scraped: samples by name and labels, without the channel's."""
    return {
        (sample.name, frozenset(sample.labels.items() - {("channel", "c1")})): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_a_status_is_what_is_scraped() -> None:
    found = samples_of(metrics_text(STATUS))

    def value(name: str, **labels: str) -> float:
        return found[f"mtsd_{name}", frozenset(labels.items())]

    assert value("build_info", version="1.2", compiled="true") == 1
    assert value("start_time_seconds") == 1782900000
    assert (value("state", state="running"), value("state", state="failed")) == (1, 0)
    assert (value("lag_seconds"), value("lag_beyond_delay_seconds")) == (90.5, 30.5)
    assert value("connection_error_number", server="target") == 1205
    assert (value("pending_groups"), value("delay_seconds")) == (5, 60)
    assert (value("applied_groups_total"), value("retries_total")) == (100, 3)
    assert value("skipped_groups_total") == 1
    assert value("wait_seconds_total", cause="alone") == 0.5
    assert value("database_lag_seconds", database="shop") == 90.5
    assert ("mtsd_database_lag_seconds", frozenset({("database", "blog")})) not in found
    assert value("target_wait_seconds") == 3.5
    assert value("workers", state="idle") == 1
    assert (value("source_bytes_behind"), value("retention_left_seconds")) == (4096, 3600)
    assert [value("commit_to_apply_seconds_bucket", le=le) for le in ("0.1", "1.0", "+Inf")] == [
        60, 90, 100,
    ]  # fmt: skip
    assert value("commit_to_apply_seconds_sum") == 75
    assert (value("stop_error_number"), value("stop_group")) == (1062, 8)
    assert found["process_resident_memory_bytes", frozenset()] > 0


def test_what_is_not_known_has_no_sample() -> None:
    found = {name for name, _ in samples_of(metrics_text(Status("starting", "a", "b")))}
    assert found >= {"mtsd_source_connected", "mtsd_state", "mtsd_commit_to_apply_seconds_bucket"}
    assert not found & {
        "mtsd_lag_seconds", "mtsd_retention_left_seconds", "mtsd_source_bytes_behind",
        "mtsd_last_source_event_timestamp_seconds", "mtsd_skipped_groups_total",
        "mtsd_stop_timestamp_seconds", "mtsd_in_doubt_groups",
    }  # fmt: skip


def test_nobody_who_scrapes_reads_rows_or_addresses() -> None:
    text = metrics_text(STATUS)
    assert "example.org" not in text
    assert "10.1.2." not in text


def test_under_the_names_that_alert_rules_have_already() -> None:
    plain = {name for name, _ in samples_of(metrics_text(STATUS))}
    text = metrics_text(replace(STATUS, last_stop=None), exporter_names=True)
    labels = frozenset({
        ("master_host", "10.1.2.3"), ("master_uuid", "u"), ("channel_name", "c1"),
        ("connection_name", "c1"),
    })  # fmt: skip
    found = {
        name.removeprefix("mysql_slave_status_"): value
        for (name, its), value in samples_of(text).items()
        if name not in plain and its == labels
    }
    assert found == {
        "slave_io_running": 1, "slave_sql_running": 1, "seconds_behind_master": 90.5,
        "sql_delay": 60, "read_master_log_pos": 0, "exec_master_log_pos": 0,
        "master_server_id": 7, "last_io_errno": 0, "last_sql_errno": 1205, "last_errno": 1205,
        # As a MySQL says it from 8.4 on.
        "replica_io_running": 1, "replica_sql_running": 1, "seconds_behind_source": 90.5,
        "read_source_log_pos": 0, "exec_source_log_pos": 0, "source_server_id": 7,
    }  # fmt: skip


def test_each_metric_has_a_name_as_they_have_and_says_what_it_is() -> None:
    names = [metric.name for metric in METRICS]
    assert len(names) == len(set(names))
    beside: dict[Kind, str] = {"counter": r"_total$", "gauge": r"(?<!_total)$", "histogram": "s$"}
    for metric in METRICS:
        assert re.fullmatch(r"mtsd_[a-z_]+", metric.name)
        assert re.search(beside[metric.kind], metric.name), metric.name
        assert re.fullmatch(r"[A-Z1F0].*\.", metric.help), metric.name
        assert set(metric.labels) <= {
            "server", "state", "cause", "database", "version", "compiled"
        }  # fmt: skip


def test_many_databases_are_few_series() -> None:
    many = [
        DatabaseStatus(f"d{number:02}", 1 + number % 3, float(number), 1)
        for number in range(MAX_DATABASES + 5)
    ]
    shown = most_delayed([*many, DatabaseStatus("idle", 0, 0.0, 9)])
    assert [each.name for each in shown[:2]] == ["d14", "d13"]
    assert len(shown) == MAX_DATABASES + 1
    assert shown[-1] == DatabaseStatus(OTHERS, 1 + 2 + 3 + 1 + 2, 4.0)


def test_any_name_of_a_database_is_a_label_once() -> None:
    """Prometheus takes nothing of what has a series twice, or is not UTF-8."""
    names = (OTHERS, "caf\udce9", 'a"b\\c\nd')
    many = [DatabaseStatus(f"d{number}", 1, 1.0) for number in range(MAX_DATABASES)]
    databases = (*(DatabaseStatus(name, 1, 9.0) for name in names), *many)
    text = metrics_text(replace(STATUS, databases=databases))
    series = [line for line in text.splitlines() if line.startswith("mtsd_database_lag_seconds{")]
    assert len({line.rpartition(" ")[0] for line in series}) == len(series) == MAX_DATABASES + 1
    found = samples_of(text)
    assert found["mtsd_database_lag_seconds", frozenset({("database", names[2])})] == 9
    assert found["mtsd_database_lag_seconds", frozenset({("database", "caf\\udce9")})] == 9


@pytest.mark.parametrize("path", ["/metrics", "/readyz"])
async def test_what_fails_is_for_the_log_only(path: str) -> None:
    def fail() -> Status:
        raise ValueError(SECRET)

    route = Routes(probes(fail)).find("GET", path)
    with pytest.raises(RequestRefusedError) as refused, structlog.testing.capture_logs() as logs:
        await route.answer(Request("GET", path))
    assert SECRET not in refused.value.answer.body
    assert logs[0]["event"] == "the status cannot be told"


@pytest.mark.parametrize(
    ("status", "why"),
    [
        (STATUS, ""),
        (replace(STATUS, state="delayed"), ""),
        (replace(STATUS, state="failed"), "failed"),
        (replace(STATUS, state="waiting"), "waiting"),
        (
            replace(STATUS, connections=ConnectionsStatus(ConnectionStatus(), CONNECTED)),
            "not connected to the source",
        ),
    ],
)
def test_who_is_ready(status: Status, why: str) -> None:
    assert not_ready(status) == why
