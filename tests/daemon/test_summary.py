from dataclasses import replace

from mtsd.control.place import Place
from mtsd.control.status import DatabaseStatus, Status, TotalsStatus, WorkerStatus
from mtsd.daemon.summary import Summary


def status(groups: int, alone: float = 0.0, *, retries: int = 0) -> Status:
    totals = TotalsStatus(
        groups=groups, transactions=groups // 10, retries=retries,
        waits={"alone": alone, "partition": 0.2},
    )  # fmt: skip
    return Status(
        "running", "s", "t", lag_seconds=0.5, pending_groups=3, totals=totals,
        executed=Place("b.1", 400),
    )  # fmt: skip


def test_a_line_says_what_was_done_since_the_last_one() -> None:
    summary = Summary(100.0)
    assert summary.due(status(0), 600.0, 699.0) is None
    assert summary.due(status(0), 0.0, 9999.0) is None
    first = summary.due(status(1200, 0.5), 600.0, 700.0)
    assert first == {
        "state": "running", "lag_s": 0.5, "applied": 1200, "per_s": 2.0, "in_transactions": 120,
        "pending": 3, "executed": "b.1:400",
    }  # fmt: skip
    assert summary.due(status(1200, 0.5), 600.0, 1200.0) is None
    second = summary.due(status(1800, 31.0, retries=2), 600.0, 1300.0)
    assert second is not None
    assert (second["applied"], second["retries"]) == (600, 2)
    assert second["waited_most_for"] == "alone, 30 s"


def test_a_line_says_if_another_policy_would_serve() -> None:
    summary = Summary(0.0)
    workers = WorkerStatus(1, "idle"), WorkerStatus(2, "idle")
    load = replace(status(1200), parallel_type="database", workers=workers)
    busy = replace(load.totals, busy_seconds=590.0)
    load = replace(load, totals=busy, databases=(DatabaseStatus("shop", groups=1200),))
    first = summary.due(load, 600.0, 600.0)
    assert first is not None
    assert str(first["advice"]).startswith("shop has 100% of the transactions")
    second = summary.due(load, 600.0, 1200.0)
    assert second is not None
    assert "advice" not in second
