"""Alert rules for Prometheus, over the metrics of the list."""

from dataclasses import dataclass
from typing import Final

from mtsd.control import metrics
from mtsd.control.metrics import Metric

DAY_S: Final = 86_400


@dataclass(frozen=True, slots=True)
class Alert:
    """One rule; `lasts` is for how long the expression has to hold, as Prometheus writes it."""

    name: str
    expression: str
    lasts: str
    severity: str
    summary: str
    action: str
    """What whoever is called does first."""


def _increase(metric: Metric, period: str) -> str:
    return f"increase({metric.name}[{period}])"


def _away(connected: Metric) -> str:
    # A replica that an error has stopped is connected to nothing: that is one alert, not three.
    # And one that stands by is not meant to be.
    rests = f'{metrics.STATE.name}{{state=~"failed|standby"}} == 1'
    return f"{connected.name} == 0 unless on(channel, instance) {rests}"


ALERTS: Final = (
    Alert(
        "MtsdDown", 'up{job="mtsd"} == 0', "1m", "critical",
        "mtsd does not answer",
        "Nothing is replicated. mtsd status says how the last daemon ended; the unit's log too.",
    ),
    Alert(
        "MtsdFailed", f'{metrics.STATE.name}{{state="failed"}} == 1', "0s", "critical",
        "an error has stopped the replica",
        "mtsd status names the transaction and what to do; then restart mtsd.",
    ),
    Alert(
        "MtsdSourceNotConnected", _away(metrics.SOURCE_CONNECTED), "2m", "critical",
        "the source is not connected",
        "mtsd status says why. If the target is away too, that comes first.",
    ),
    Alert(
        "MtsdTargetNotConnected", _away(metrics.TARGET_CONNECTED), "1m", "critical",
        "the target is not connected",
        "mtsd status says why; mtsd goes on by itself once the target is back.",
    ),
    Alert(
        "MtsdWaitsForTarget", f'{metrics.STATE.name}{{state="waiting"}} == 1', "2m", "critical",
        "the target takes no changes",
        "A full disk, read_only, or it hangs: mtsd status says which. It goes on by itself.",
    ),
    Alert(
        "MtsdLag", f"{metrics.LAG_BEYOND.name} > 60", "5m", "warning",
        "the replica is more than a minute behind, beside its delay",
        "mtsd top shows what it waits for, and which database is behind.",
    ),
    Alert(
        "MtsdStandsStill",
        f"{metrics.PENDING.name} > 0 and rate({metrics.GROUPS.name}[5m]) == 0"
        f" and on(channel, instance) {metrics.LAG_BEYOND.name} > 0",
        "5m", "critical",
        "transactions are pending and none is applied",
        "A long transaction, a lock on the target, or a frozen worker: mtsd status.",
    ),
    Alert(
        "MtsdTargetAnswersSlowly", f"{metrics.TARGET_WAIT.name} > 60", "1m", "warning",
        "a worker has waited for the target's answer for more than a minute",
        "mtsd status names the statement and its connection; SHOW PROCESSLIST on the target, and"
        " its error log: a full disk.",
    ),
    Alert(
        "MtsdSourceLogRunsOut", f"{metrics.RETENTION.name} < {DAY_S}", "10m", "critical",
        "in less than a day the source may purge what is not applied yet",
        "Raise binlog_expire_logs_seconds on the source now, then look for the reason of the lag.",
    ),
    Alert(
        "MtsdSkipped", f"{_increase(metrics.SKIPPED, '1d')} > 0", "0s", "warning",
        "somebody has skipped a transaction",
        "The target differs from the source. mtsd status lists who, why and which.",
    ),
    Alert(
        "MtsdSkippedByError", f"{_increase(metrics.SKIPPED_BY_ERROR, '1d')} > 0", "0s", "warning",
        "skip_errors has skipped transactions",
        "The target differs from the source; the log has each of them.",
    ),
    Alert(
        "MtsdSemiSyncWithdrawn", f"{metrics.SEMI_SYNC.name} == 0", "5m", "warning",
        "the source does not wait for this replica",
        "The target is too slow for semi_sync_limit, or the source cannot wait: mtsd status.",
    ),
    Alert(
        "MtsdRetries", f"rate({metrics.RETRIES.name}[5m]) > 1", "15m", "warning",
        "transactions are retried more than once a second",
        "Somebody else writes to the target, or locks its rows: the log has the errors.",
    ),
    Alert(
        "MtsdInDoubt", f"{metrics.IN_DOUBT.name} > 0", "1h", "warning",
        "a transaction has been in doubt for an hour",
        "A definition that takes so long, or one that mtsd resolve is for: mtsd status.",
    ),
    Alert(
        "MtsdWarns", f"{metrics.WARNINGS.name} > 0", "1m", "warning",
        "something may damage data later on",
        "mtsd status says what: the target's own replica, a circle of servers, or a source that has"
        " purged what is needed.",
    ),
    Alert(
        "MtsdConfigurationRefused", f"{metrics.RELOAD.name} == 0", "1m", "warning",
        "the configuration was refused when it was reloaded",
        "The log says what is wrong. The next start would be refused, too.",
    ),
)  # fmt: skip


def alerts_document() -> dict[str, object]:
    """Return the file of rules, as YAML holds it."""
    return {
        "groups": [
            {
                "name": "mtsd",
                "rules": [
                    {
                        "alert": alert.name,
                        "expr": alert.expression,
                        "for": alert.lasts,
                        "labels": {"severity": alert.severity},
                        "annotations": {
                            "summary": f"{alert.summary} ({{{{ $labels.instance }}}}, channel"
                            " '{{ $labels.channel }}')",
                            "description": alert.action,
                        },
                    }
                    for alert in ALERTS
                ],
            }
        ]
    }
