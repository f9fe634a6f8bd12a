"""Rules over mysqld_exporter's names that people have already, as they are published.

Of the mixin of mysqld_exporter itself, and of a much used collection ("awesome Prometheus alerts"):
the expressions that are about a replica, and how long they have to hold.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

from mtsd.control.exposition import metrics_text
from mtsd.control.status import Status

_KNOWN_SOURCE: Final = "mysql_slave_status_master_server_id > 0"

_RECORDED: Final = "instance:mysql_slave_lag_seconds"
_LAG: Final = "mysql_slave_status_seconds_behind_master - mysql_slave_status_sql_delay"
RULES: Final = {
    "MySQLReplicationNotRunning": (
        "mysql_slave_status_slave_io_running == 0 or mysql_slave_status_slave_sql_running == 0",
        "2m",
    ),
    "MySQLReplicationLag": (
        f"({_RECORDED} > 30) and on(instance) (predict_linear({_RECORDED}[5m], 60 * 2) > 0)",
        "1m",
    ),
    "MysqlSlaveIoThreadNotRunning": (
        f"( mysql_slave_status_slave_io_running and ON (instance) {_KNOWN_SOURCE} ) == 0",
        "1m",
    ),
    "MysqlSlaveSqlThreadNotRunning": (
        f"( mysql_slave_status_slave_sql_running and ON (instance) {_KNOWN_SOURCE}) == 0",
        "1m",
    ),
    "MysqlSlaveReplicationLag": (
        f"( ({_LAG}) and ON (instance) {_KNOWN_SOURCE} ) > 30",
        "1m",
    ),
    # As a MySQL from 8.4 on says it.
    "ReplicaNotRunning": (
        "mysql_slave_status_replica_io_running == 0 or mysql_slave_status_replica_sql_running == 0",
        "2m",
    ),
    "ReplicaLag": (
        "mysql_slave_status_seconds_behind_source - mysql_slave_status_sql_delay > 30",
        "1m",
    ),
}
"""By the alert's name, its expression and for how long it has to hold."""
NOT_RUNNING: Final = frozenset({"MySQLReplicationNotRunning", "ReplicaNotRunning"})
LAG: Final = frozenset({"MySQLReplicationLag", "MysqlSlaveReplicationLag", "ReplicaLag"})
IO: Final = NOT_RUNNING | {"MysqlSlaveIoThreadNotRunning"}
SQL: Final = NOT_RUNNING | {"MysqlSlaveSqlThreadNotRunning"}
_MINUTES: Final = 30
_FIRING: Final = 'ALERTS{alertname="%s",alertstate="firing"}'


@dataclass(frozen=True, slots=True)
class Lasting:
    """A replica that stays as it is, and the alerts that it fires."""

    name: str
    status: Status
    fires: frozenset[str]


def rules_document() -> dict[str, object]:
    """Return the file of rules."""
    recorded = [{"record": _RECORDED, "expr": _LAG}]
    alerts = [{"alert": name, "expr": text, "for": for_} for name, (text, for_) in RULES.items()]
    return {"groups": [{"name": "known", "rules": [*recorded, *alerts]}]}


def cases_document(rules: str, cases: Sequence[Lasting]) -> dict[str, object]:
    """Return the file that promtool tests them by: what mtsd is scraped for is the input."""
    return {
        "rule_files": [rules],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "name": case.name,
                "input_series": [*_scraped(case.status)],
                "promql_expr_test": [
                    {
                        "expr": f"count({_FIRING % rule}) or vector(0)",
                        "eval_time": f"{_MINUTES}m",
                        "exp_samples": [{"labels": "{}", "value": int(rule in case.fires)}],
                    }
                    for rule in RULES
                ],
            }
            for case in cases
        ],
    }


def _scraped(status: Status) -> Iterator[dict[str, str]]:
    text = metrics_text(status, exporter_names=True)
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name.startswith("mysql_slave_status_"):
                labels = ",".join(f'{name}="{value}"' for name, value in sample.labels.items())
                series = f'{sample.name}{{{labels},instance="i",job="mysql"}}'
                yield {"series": series, "values": f"{sample.value:g}x{_MINUTES}"}
