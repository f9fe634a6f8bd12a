"""A dashboard for Grafana, over the metrics of the list."""

from dataclasses import dataclass
from typing import Final

from mtsd.control import metrics

_CHOSEN: Final = '{instance=~"$instance",channel=~"$channel"}'
_WHOSE: Final = "{{instance}} {{channel}}"
"""In each legend: several daemons may be chosen."""
_WIDTH: Final = 12
_HEIGHT: Final = 8


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel: `queries` are expressions with the legend of each."""

    title: str
    unit: str
    queries: tuple[tuple[str, str], ...]
    description: str = ""


def _of(name: str) -> str:
    return f"{name}{_CHOSEN}"


def _rate(name: str) -> str:
    return f"rate({_of(name)}[$__rate_interval])"


def _quantile(part: float) -> str:
    buckets = _rate(f"{metrics.AGES.name}_bucket")
    return f"histogram_quantile({part}, sum by (le, channel, instance) ({buckets}))"


PANELS: Final = (
    Panel("State", "none", ((f"{_of(metrics.STATE.name)} == 1", "{{state}}"),)),
    Panel(
        "Connected", "bool",
        (
            (_of(metrics.SOURCE_CONNECTED.name), "source"),
            (_of(metrics.TARGET_CONNECTED.name), "target"),
        ),
    ),
    Panel(
        "Lag", "s",
        (
            (_of(metrics.LAG.name), "lag"),
            (_of(metrics.LAG_BEYOND.name), "beyond the delay"),
        ),
        metrics.LAG.help,
    ),
    Panel("Lag by database", "s", ((_of(metrics.DATABASE_LAG.name), "{{database}}"),)),
    Panel(
        "Commit to apply", "s",
        ((_quantile(0.5), "half"), (_quantile(0.99), "99 of 100")), metrics.AGES.help,
    ),
    Panel(
        "Throughput", "ops",
        (
            (_rate(metrics.GROUPS.name), "transactions of the source"),
            (_rate(metrics.COMMITS.name), "transactions of the target"),
        ),
    ),
    Panel("Pending", "short", ((_of(metrics.PENDING.name), "transactions"),)),
    Panel("Pending bytes", "bytes", ((_of(metrics.PENDING_BYTES.name), "pending"),)),
    Panel(
        "Waits by cause", "s", ((_rate(metrics.WAITS.name), "{{cause}}"),),
        "Seconds waited in each second: of the reader, or of all workers together.",
    ),
    Panel(
        "Workers", "short",
        (
            (_of(metrics.WORKERS.name), "{{state}}"),
            (_rate(metrics.BUSY.name), "busy"),
        ),
    ),
    Panel("Longest wait for the target", "s", ((_of(metrics.TARGET_WAIT.name), "wait"),)),
    Panel(
        "Retries, and what gave way", "ops",
        ((_rate(metrics.RETRIES.name), "retries"), (_rate(metrics.GAVE_WAY.name), "gave way")),
    ),
    Panel("Bytes behind the source", "bytes", ((_of(metrics.BYTES_BEHIND.name), "behind"),)),
    Panel(
        "How long the source keeps what is needed", "s",
        ((_of(metrics.RETENTION.name), "left"),), metrics.RETENTION.help,
    ),
    Panel(
        "Skipped, in doubt", "short",
        (
            (_of(metrics.SKIPPED.name), "skipped by hand"),
            (_of(metrics.SKIPPED_BY_ERROR.name), "skipped by error"),
            (_of(metrics.IN_DOUBT.name), "in doubt"),
        ),
    ),
    Panel(
        "The process", "bytes", ((_of("process_resident_memory_bytes"), "memory"),),
    ),
)  # fmt: skip


def dashboard_document() -> dict[str, object]:
    """Return the dashboard as Grafana imports it."""
    source = {"type": "prometheus", "uid": "${datasource}"}
    return {
        "title": "mtsd",
        "uid": "mtsd",
        "schemaVersion": 39,
        "editable": True,
        "time": {"from": "now-3h", "to": "now"},
        "refresh": "30s",
        "templating": {
            "list": [
                {"name": "datasource", "type": "datasource", "query": "prometheus"},
                _variable("instance", source),
                _variable("channel", source),
            ]
        },
        "panels": [
            {
                "id": number + 1,
                "title": panel.title,
                "description": panel.description,
                "type": "timeseries",
                "datasource": source,
                "gridPos": {
                    "x": number % 2 * _WIDTH, "y": number // 2 * _HEIGHT,
                    "w": _WIDTH, "h": _HEIGHT,
                },
                "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
                "targets": [
                    {
                        "refId": chr(ord("A") + index), "expr": expression,
                        "legendFormat": f"{legend} {_WHOSE}", "datasource": source,
                    }
                    for index, (expression, legend) in enumerate(panel.queries)
                ],
            }
            for number, panel in enumerate(PANELS)
        ],
    }  # fmt: skip


def _variable(label: str, source: dict[str, str]) -> dict[str, object]:
    query = f"label_values({metrics.BUILD.name}, {label})"
    return {
        "name": label, "type": "query", "datasource": source, "query": query,
        "refresh": 2, "includeAll": True, "multi": True,
        # Also where a series has no such label: the default channel's name is empty.
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
    }  # fmt: skip
