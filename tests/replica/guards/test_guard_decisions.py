"""What may be beside mtsd on either server, and what would let failures pass: decided by facts."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from mtsd.model.errors import NeedsPersonError
from mtsd.model.outcome.findings import Findings
from mtsd.model.outcome.reason import Reason
from mtsd.model.server import Flavour
from mtsd.replica.guards import circles, lenient_target, own_replica
from mtsd.replica.guards.circles import Feeding, circle
from mtsd.replica.guards.lenient_target import lenient
from mtsd.replica.guards.own_replica import KnownServer, beside
from mtsd.wire.replica_status import ReplicaStatus
from tests.operations.check.cases import NATIVE
from tests.operations.check.good_facts import SOURCE_UUID, TARGET_UUID

SOURCE = KnownServer(SOURCE_UUID.upper(), 7, "db1", 3306)
MARIADB = KnownServer("server_id 7", 0, "db1", 3306)
OF_MARIADB = replace(NATIVE, source_uuid="", source_server_id=7)
NEVER_CONNECTED = replace(NATIVE, source_uuid="", source_server_id=0)
AT_SOURCE = replace(NEVER_CONNECTED, host="db1")
STOPPED = replace(NATIVE, applying=False, receiving=False)


def reasons(findings: Findings) -> tuple[list[Reason], list[Reason]]:
    return [each.reason for each in findings.stops], [each.reason for each in findings.warns]


@pytest.mark.parametrize(
    ("channel", "source", "stops", "warns"),
    [
        (NATIVE, SOURCE, [own_replica.RUNS], []),
        # What is in the relay log is applied without a receiver.
        (replace(NATIVE, receiving=False), SOURCE, [own_replica.RUNS], []),
        (replace(NATIVE, applying=False), SOURCE, [], [own_replica.CONFIGURED]),
        (STOPPED, SOURCE, [], [own_replica.CONFIGURED]),
        # Other channels of a target with several sources are nobody's business.
        (replace(NATIVE, source_uuid=TARGET_UUID), SOURCE, [], []),
        (NATIVE, MARIADB, [], []),
        (OF_MARIADB, MARIADB, [own_replica.RUNS], []),
        (replace(OF_MARIADB, source_server_id=8), MARIADB, [], []),
        # Before a source is connected, the server_id of a MySQL is not known.
        (OF_MARIADB, replace(SOURCE, server_id=0), [], [own_replica.UNKNOWN]),
        (NEVER_CONNECTED, SOURCE, [], [own_replica.UNKNOWN]),
        (AT_SOURCE, SOURCE, [own_replica.RUNS], []),
        (replace(AT_SOURCE, applying=False), SOURCE, [], [own_replica.CONFIGURED]),
    ],
)
def test_what_the_targets_own_replica_means(
    channel: ReplicaStatus,
    source: KnownServer,
    stops: list[Reason],
    warns: list[Reason],
) -> None:
    assert reasons(beside([channel], source)) == (stops, warns)


@pytest.mark.parametrize(
    ("variables", "target", "stops"),
    [
        ({"slave_exec_mode": "IDEMPOTENT"}, Flavour.MARIADB, [lenient_target.PASSES_OVER]),
        ({"slave_exec_mode": "STRICT"}, Flavour.MARIADB, []),
        # Of MySQL it holds for its own replica only.
        ({"slave_exec_mode": "IDEMPOTENT"}, Flavour.MYSQL, []),
        (
            {"slave_skip_errors": "all", "replica_skip_errors": "all"},
            Flavour.MYSQL,
            [lenient_target.PASSES_OVER],
        ),
        ({"slave_skip_errors": "1032"}, Flavour.MARIADB, [lenient_target.PASSES_OVER]),
        ({"slave_skip_errors": "OFF"}, Flavour.MARIADB, []),
        ({"replicate_rewrite_db": "a->b"}, Flavour.MARIADB, [lenient_target.RENAMES]),
    ],
)
def test_variables_that_hold_for_binlog_statements(
    variables: Mapping[str, str], target: Flavour, stops: list[Reason]
) -> None:
    assert reasons(lenient(variables, target, by_binlog=True)) == (stops, [])
    assert lenient(variables, target, by_binlog=False) == Findings()


def test_another_engine_holds_for_everything() -> None:
    for engine, stops in (("MyISAM", [lenient_target.OTHER_ENGINE]), ("InnoDB", []), ("", [])):
        found = lenient({"enforce_storage_engine": engine}, Flavour.MARIADB, by_binlog=False)
        assert reasons(found) == (stops, [])


BACK = Feeding("mtsd", "", SOURCE_UUID, runs=True, preserves=True)


@pytest.mark.parametrize(
    ("feeding", "preserves", "stops", "warns"),
    [
        (BACK, False, [circles.LOOPS], []),
        (BACK, True, [], []),
        (replace(BACK, preserves=False), True, [circles.LOOPS], []),
        (replace(BACK, runs=False), False, [], [circles.WOULD_LOOP]),
        (replace(BACK, runs=False, preserves=False), True, [], []),
        # Switched over: the way there does not start.
        (replace(BACK, runs=False, fenced=True), False, [], []),
        (replace(BACK, fenced=True), False, [circles.LOOPS], []),
        # A chain: the source's own source is another server.
        (replace(BACK, source_uuid=TARGET_UUID), False, [], []),
    ],
)
def test_positions_on_the_source(
    feeding: Feeding, preserves: bool, stops: list[Reason], warns: list[Reason]
) -> None:
    assert reasons(circle([feeding], [], SOURCE, preserves=preserves)) == (stops, warns)


def test_the_sources_own_replica_closes_a_circle() -> None:
    assert reasons(circle([], [NATIVE], SOURCE, preserves=False))[0] == [circles.OWN_LOOPS]
    assert circle([], [NATIVE], SOURCE, preserves=True) == Findings()
    for channel in (replace(NATIVE, applying=False), NEVER_CONNECTED):
        assert circle([], [channel], SOURCE, preserves=False) == Findings()


def test_only_what_stops_is_raised() -> None:
    beside([STOPPED], SOURCE).require()
    with pytest.raises(NeedsPersonError, match=r"applied twice\. STOP REPLICA on the target"):
        beside([NATIVE], SOURCE).require()
