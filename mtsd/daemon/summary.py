"""One line in the log every some minutes: a log that says nothing for hours may be a dead one's."""

from mtsd.control.policy_advice import REMEDY, LoadSeen, better_policy
from mtsd.control.status import Status, TotalsStatus


class Summary:
    """Says what has been done since the last line; times are seconds of a monotonic clock."""

    def __init__(self, now: float) -> None:
        self._reported_at = now
        self._before = TotalsStatus()
        self._seen = LoadSeen("", 0, now, {}, 0.0, 0.0)

    def due(self, status: Status, period: float, now: float) -> dict[str, object] | None:
        """Return the fields of the line if `period` has passed, 0: never; it counts as told."""
        seconds = now - self._reported_at
        if not period or seconds < period:
            return None
        before, totals = self._before, status.totals
        self._reported_at = now
        self._before = totals
        groups = totals.groups - before.groups
        fields: dict[str, object] = {
            "state": status.state,
            "lag_s": status.lag_seconds,
            "applied": groups,
            "per_s": round(groups / seconds, 1),
            "in_transactions": totals.transactions - before.transactions,
            "pending": status.pending_groups,
            "executed": str(status.executed) or status.executed.gtid,
        }
        if status.doing:
            fields["doing"] = status.doing
        if retries := totals.retries - before.retries:
            fields["retries"] = retries
        waits = {
            cause: waited - before.waits.get(cause, 0.0) for cause, waited in totals.waits.items()
        }
        most = max(waits, key=lambda cause: waits[cause], default="")
        if most and waits[most] >= 1:
            fields["waited_most_for"] = f"{most}, {waits[most]:.0f} s"
        seen = LoadSeen.of(status, now)
        if advice := better_policy(seen.since(self._seen)):
            fields["advice"] = f"{advice}: {REMEDY}"
        self._seen = seen
        return fields
