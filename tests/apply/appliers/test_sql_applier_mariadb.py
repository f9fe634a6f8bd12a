"""Rows applied as SQL to a MariaDB: as strict as on a MySQL, whatever the source is."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.apply.appliers.differing_targets import (
    DIFFERENCES,
    SQL,
    assert_idempotent,
    assert_joined,
    assert_stopped_by,
    assert_stopped_by_a_trigger,
    begun,
    contents,
)
from tests.fix_daemon import NEEDS_PERSON
from tests.fix_families import families
from tests.load.equality import unequal
from tests.replica.daemon_process import DaemonProcess
from tests.servers.pair import Pair

pytestmark = pytest.mark.servers


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("9.7", id="from MySQL", marks=pytest.mark.long),
        pytest.param("11.8", id="from MariaDB"),
    ],
)
def servers(request: pytest.FixtureRequest) -> Iterator[Pair]:
    with families(request.param, "11.8") as pair:
        yield pair


@pytest.fixture
def pair(servers: Pair) -> Pair:
    for server in (servers.target, servers.source):
        server.sql("DROP DATABASE IF EXISTS a; DROP DATABASE IF EXISTS mtsd")
    servers.source.reset_binlog()
    return servers


@pytest.mark.parametrize("difference", DIFFERENCES)
def test_what_differs_stops_the_replica(pair: Pair, difference: str, tmp_path: Path) -> None:
    assert_stopped_by(pair, difference, tmp_path)


def test_a_trigger_that_somebody_creates_stops_the_replica(pair: Pair, tmp_path: Path) -> None:
    assert_stopped_by_a_trigger(pair, tmp_path)


def test_it_goes_on_once_the_difference_is_gone(pair: Pair, tmp_path: Path) -> None:
    daemon = begun(pair, tmp_path, SQL)
    pair.target.sql("DELETE FROM a.t WHERE id = 2")
    pair.source.sql("INSERT INTO t VALUES (4, 'd'); UPDATE t SET v = 'x' WHERE id = 2", "a")
    with daemon:
        assert daemon.wait() == NEEDS_PERSON
    assert contents(pair) == [(1, "a"), (3, "c"), (4, "d")]
    pair.target.sql("INSERT INTO a.t VALUES (2, 'b')")
    with daemon:
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
    assert unequal(pair.source, pair.target) == []


def test_idempotent(pair: Pair, tmp_path: Path) -> None:
    assert_idempotent(pair, tmp_path)


def test_rows_that_no_check_was_made_of(pair: Pair, tmp_path: Path) -> None:
    if "MariaDB" not in str(pair.source.sql("SELECT VERSION()")):
        # A MySQL has no such setting, nor logs it.
        return
    pair.source.sql(
        "CREATE DATABASE a; CREATE TABLE a.t (id INT PRIMARY KEY, v INT, CHECK (v > 0));"
        "SET check_constraint_checks = 0; INSERT INTO a.t VALUES (1, -1);"
        "SET check_constraint_checks = 1; INSERT INTO a.t VALUES (2, 1)"
    )
    with DaemonProcess(pair.source, pair.target, tmp_path, SQL) as daemon:
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
    assert unequal(pair.source, pair.target) == []


def test_rows_of_many_transactions_are_few_statements(pair: Pair, tmp_path: Path) -> None:
    assert_joined(pair, tmp_path)
