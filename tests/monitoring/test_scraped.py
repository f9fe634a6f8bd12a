"""Two daemons, a real Prometheus that scrapes them, and the queries that people will ask it."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.monitoring.dashboard import PANELS
from tests.monitoring.prometheus import WINDOW, Prometheus
from tests.monitoring.written import DOCS
from tests.replica.daemon_process import DaemonProcess
from tests.servers.mysqld import GTIDS, _lock_of_a_free_port
from tests.servers.pair import Pair

pytestmark = pytest.mark.servers

CHANNELS = ["a", "b"]
NOT_RUNNING = (
    "mysql_slave_status_slave_io_running == 0 or mysql_slave_status_slave_sql_running == 0"
)
"""The rule of mysqld_exporter's own alerts, and below what their alert of a lag compares."""
BEHIND = "mysql_slave_status_seconds_behind_master - mysql_slave_status_sql_delay"
MAY_BE_EMPTY = {"mtsd_database_lag_seconds", "mtsd_database_pending_groups", "mtsd_stop_group"}
"""Of these there are samples only while something waits, or has failed."""


def test_a_prometheus_sees_both(tmp_path: Path) -> None:
    with ExitStack() as stack:
        pair = stack.enter_context(Pair(GTIDS, GTIDS))
        daemons = []
        addresses = []
        for number, channel in enumerate(CHANNELS):
            pair.source.sql(f"CREATE DATABASE {channel}; CREATE TABLE {channel}.t (i INT)")
            lock = _lock_of_a_free_port()
            stack.callback(lock.close)
            addresses.append("127.0.0.1:{1}".format(*lock.getsockname()))
            (folder := tmp_path / channel).mkdir()
            daemons.append(
                DaemonProcess(
                    pair.source,
                    pair.target,
                    folder,
                    {
                        "replica.channel": channel,
                        "source.server_id": 4201 + number,
                        "filter.do_db": [channel],
                        "status.listen": addresses[-1],
                        "status.exporter_names": True,
                    },
                )
            )
            stack.enter_context(daemons[-1])
        for daemon in daemons:
            daemon.wait_until_caught_up()
        prometheus = stack.enter_context(Prometheus(tmp_path, addresses, DOCS / "alerts.yml"))
        prometheus.wait_for(f"rate(mtsd_applied_groups_total[{WINDOW}]) == 0", CHANNELS)
        for panel in PANELS:
            for expression, _ in panel.queries:
                asked = (
                    expression.replace("$__rate_interval", WINDOW)
                    .replace("$instance", ".*")
                    .replace("$channel", ".*")
                )
                found = prometheus.labels(asked, "instance")
                if not any(name in expression for name in MAY_BE_EMPTY):
                    assert found == sorted(addresses), (panel.title, asked)
        (group,) = prometheus.get("rules")["groups"]
        assert {rule["health"] for rule in group["rules"]} == {"ok"}
        assert {rule["state"] for rule in group["rules"]} == {"inactive"}
        # Rules that people have already.
        assert prometheus.channels(NOT_RUNNING) == []
        assert prometheus.channels(BEHIND) == CHANNELS
        daemons[0].kill()
        pair.source.kill()
        prometheus.wait_for(NOT_RUNNING, ["b"])
        prometheus.wait_for(BEHIND, [])
        prometheus.wait_for('ALERTS{alertname="MtsdSourceNotConnected"}', ["b"])
        pair.source.start()
        prometheus.wait_for(BEHIND, ["b"])
