"""For each alert: series that make it fire, and the same without a reason."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.monitoring.alerts import ALERTS, Alert

_WHO: Final = 'channel="c",instance="i",job="mtsd"'
_MINUTES: Final = 90


@dataclass(frozen=True, slots=True)
class Case:
    """Series by name and labels, in promtool's notation, every minute from 0 on.

    `fires` are those for which the alert holds at the last minute, `rests` those for which not.
    """

    alert: str
    fires: dict[str, str]
    rests: dict[str, str]
    labels: str = ""
    """Those that the alert has beside the target's, as promtool's `name="value"`."""


_FAILED: Final = 'mtsd_state{state="failed"}'
_STANDBY: Final = 'mtsd_state{state="standby"}'


def _flat(value: float) -> str:
    return f"{value:g}x{_MINUTES}"


CASES: Final = (
    Case("MtsdDown", {"up": _flat(0)}, {"up": _flat(1)}),
    Case(
        "MtsdFailed", {"mtsd_state": _flat(1)}, {"mtsd_state": _flat(0)}, 'state="failed"'
    ),
    Case(
        "MtsdSourceNotConnected",
        {"mtsd_source_connected": _flat(0), _FAILED: _flat(0)},
        {"mtsd_source_connected": _flat(0), _FAILED: _flat(1)},
    ),
    Case(
        "MtsdTargetNotConnected",
        {"mtsd_target_connected": _flat(0), _FAILED: _flat(0)},
        {"mtsd_target_connected": _flat(0), _STANDBY: _flat(1)},
    ),
    Case(
        "MtsdSemiSyncWithdrawn",
        {"mtsd_semi_sync_acknowledging": _flat(0)}, {"mtsd_semi_sync_acknowledging": _flat(1)},
    ),
    Case(
        "MtsdWaitsForTarget", {"mtsd_state": _flat(1)}, {"mtsd_state": _flat(0)},
        'state="waiting"',
    ),
    Case(
        "MtsdLag",
        {"mtsd_lag_beyond_delay_seconds": _flat(61)},
        # A peak that is over within five minutes.
        {"mtsd_lag_beyond_delay_seconds": f"0x{_MINUTES - 4} 100x4"},
    ),
    Case(
        "MtsdStandsStill",
        {
            "mtsd_pending_groups": _flat(3), "mtsd_applied_groups_total": _flat(10),
            "mtsd_lag_beyond_delay_seconds": _flat(9),
        },
        # What waits for its delay waits on purpose.
        {
            "mtsd_pending_groups": _flat(3), "mtsd_applied_groups_total": _flat(10),
            "mtsd_lag_beyond_delay_seconds": _flat(0),
        },
    ),
    Case(
        "MtsdTargetAnswersSlowly",
        {"mtsd_target_wait_seconds": _flat(61)}, {"mtsd_target_wait_seconds": _flat(2)},
    ),
    Case(
        "MtsdSourceLogRunsOut",
        {"mtsd_retention_left_seconds": _flat(80_000)},
        {"mtsd_retention_left_seconds": _flat(90_000)},
    ),
    Case(
        "MtsdSkipped",
        {"mtsd_skipped_groups_total": f"1x{_MINUTES - 10} 2x10"},
        # A daemon that starts again knows of those that were skipped before.
        {"mtsd_skipped_groups_total": f"2x{_MINUTES - 10} _x5 2x4"},
    ),
    Case(
        "MtsdSkippedByError",
        {"mtsd_skipped_by_error_groups_total": f"0x{_MINUTES - 10} 1x10"},
        {"mtsd_skipped_by_error_groups_total": _flat(0)},
    ),
    Case("MtsdRetries", {"mtsd_retries_total": f"0+120x{_MINUTES}"}, {
        "mtsd_retries_total": f"0+10x{_MINUTES}",
    }),
    Case(
        "MtsdInDoubt",
        {"mtsd_in_doubt_groups": _flat(1)}, {"mtsd_in_doubt_groups": f"0x{_MINUTES - 20} 1x20"},
    ),
    Case("MtsdWarns", {"mtsd_warnings": _flat(1)}, {"mtsd_warnings": _flat(0)}),
    Case(
        "MtsdConfigurationRefused",
        {"mtsd_config_reload_success": _flat(0)}, {"mtsd_config_reload_success": _flat(1)},
    ),
)  # fmt: skip


def cases_document(rules: Path) -> dict[str, object]:
    """Return the file that promtool tests the rules by."""
    alerts = {alert.name: alert for alert in ALERTS}
    return {
        "rule_files": [str(rules)],
        "evaluation_interval": "1m",
        "tests": [
            _test(case, alerts[case.alert], fires=fires)
            for case in CASES
            for fires in (True, False)
        ],
    }


def _series(name: str, labels: str) -> str:
    """Return it with its own labels, if it has any, and these."""
    name, _, own = name.rstrip("}").partition("{")
    return f"{name}{{{','.join(filter(None, (own, labels)))}}}"


def _test(case: Case, alert: Alert, *, fires: bool) -> dict[str, object]:
    series = case.fires if fires else case.rests
    labels = ",".join(filter(None, (_WHO, case.labels)))
    told = dict(pair.replace('"', "").split("=") for pair in labels.split(","))
    expected: dict[str, object] = {
        "exp_labels": {"severity": alert.severity, **told},
        "exp_annotations": {
            "summary": f"{alert.summary} (i, channel 'c')", "description": alert.action,
        },
    }  # fmt: skip
    return {
        "interval": "1m",
        "name": f"{alert.name} {'fires' if fires else 'rests'}",
        "input_series": [
            {"series": _series(name, labels), "values": values} for name, values in series.items()
        ],
        "alert_rule_test": [
            {
                "eval_time": f"{_MINUTES}m", "alertname": alert.name,
                "exp_alerts": [expected] if fires else [],
            }
        ],
    }  # fmt: skip
