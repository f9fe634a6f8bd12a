"""Killed around the prepare or the completion of an XA transaction, each happens exactly once."""

import random
from itertools import product
from pathlib import Path

import pytest

from mtsd.model.fault_points import FaultPoint
from tests.fix_daemon import SIGKILLED, servers_and_daemon
from tests.replica.daemon_process import DaemonProcess
from tests.replica.xa.xa_of_mysql import KINDS, TARGETS, assert_equal, running
from tests.replica.xa.xa_prepared import prepare, prepared
from tests.servers.mysqld import GTIDS
from tests.servers.pair import Pair

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]

POINTS = (
    FaultPoint.BEFORE_IN_DOUBT, FaultPoint.AFTER_IN_DOUBT, FaultPoint.BEFORE_CHUNK,
    FaultPoint.BEFORE_STATEMENT, FaultPoint.STATEMENT_SENT, FaultPoint.AFTER_STATEMENT,
    FaultPoint.BEFORE_SETTLED, FaultPoint.AFTER_SETTLED,
)  # fmt: skip
# One format id: see test_a_crash_of_the_target_with_several_format_ids.
GROUPS = (
    (
        "XA START 'x{n}'; INSERT INTO a.t VALUES (1, 1);"
        " UPDATE a.t SET v = v + 1 WHERE id = 7; XA END 'x{n}'; XA PREPARE 'x{n}'"
    ),
    (
        "XA START X'00','y{n}'; UPDATE a.t SET v = v + 1 WHERE id = 8;"
        " XA END X'00','y{n}'; XA PREPARE X'00','y{n}'"
    ),
    "XA COMMIT 'x{n}'",
    "XA ROLLBACK X'00','y{n}'",
    # Nothing of it is left after a restart of its server.
    (
        "SET binlog_format = STATEMENT; XA START 'z{n}'; UPDATE a.t SET v = 1 WHERE id = 99;"
        " XA END 'z{n}'; XA PREPARE 'z{n}'"
    ),
    "XA COMMIT 'z{n}'",
)
PREPARES = (0, 1, 4)
COMPLETIONS = (2, 3, 5)
CASES = [
    (point, number)
    for point, number in product(POINTS, range(len(GROUPS)))
    if point is not FaultPoint.BEFORE_CHUNK or number in PREPARES[:2]
]
"""Only rows come in chunks."""


def make_anew(pair: Pair, daemon: DaemonProcess) -> None:
    pair.source.sql(
        "DROP DATABASE IF EXISTS a; CREATE DATABASE a;"
        "CREATE TABLE a.t (id INT PRIMARY KEY, v INT);"
        "INSERT INTO a.t VALUES (7, 1), (8, 1)"
    )
    daemon.start()
    daemon.wait_until_caught_up()
    assert daemon.stop() == 0, daemon.last_words()


def passes(point: FaultPoint, number: int) -> int:
    """Return at which pass of a point a group is there, among the prepares or the completions."""
    if number in COMPLETIONS:
        return COMPLETIONS.index(number) + 1
    # A statement inside a branch passes some points too.
    return PREPARES.index(number) + 1 + (number == PREPARES[2] and point in _TWICE)


_TWICE = (FaultPoint.STATEMENT_SENT,)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cases", [3, pytest.param(len(CASES), marks=pytest.mark.long)])
def test_each_happens_once(kind: str, cases: int, tmp_path: Path) -> None:
    chance = random.Random(f"{kind} {cases}")
    with servers_and_daemon(TARGETS[kind], tmp_path, source=GTIDS) as (pair, daemon):
        for again, (point, number) in enumerate(chance.sample(CASES, cases)):
            make_anew(pair, daemon)
            # Both at once would be one ordinary transaction.
            for together in (PREPARES, COMPLETIONS):
                for each in together:
                    pair.source.sql(GROUPS[each].format(n=again))
                if number in together:
                    daemon.start(fault=f"{point}:{passes(point, number)}")
                    assert daemon.wait() == SIGKILLED, (point, number, daemon.last_words())
                    if chance.random() < 0.5:
                        pair.target.kill()
                        pair.target.start()
                daemon.start()
                daemon.wait_until_caught_up()
                if together is COMPLETIONS:
                    assert_equal(pair, daemon)
                assert daemon.stop() == 0, (point, number)
            assert prepared(pair.target) == set(), (point, number)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_prepared_survives_everything(kind: str, tmp_path: Path) -> None:
    with servers_and_daemon(TARGETS[kind], tmp_path, source=GTIDS) as (pair, daemon):
        make_anew(pair, daemon)
        for group in GROUPS[:2]:
            pair.source.sql(group.format(n=0))
        daemon.start()
        assert_equal(pair, daemon)
        both = prepared(pair.target)
        assert len(both) == 2
        daemon.kill()
        pair.target.kill()
        pair.source.kill()
        pair.source.start()
        pair.target.start()
        assert prepared(pair.target) == both
        daemon.start()
        assert_equal(pair, daemon)
        assert daemon.stop() == 0
        pair.target.restart()
        daemon.start()
        assert_equal(pair, daemon)
        pair.target.kill()
        pair.target.start()
        for group in GROUPS[2:4]:
            pair.source.sql(group.format(n=0))
        assert_equal(pair, daemon)
        assert prepared(pair.target) == set()
        assert pair.target.sql("SELECT * FROM a.t") == [(1, 1), (7, 2), (8, 1)]
        assert daemon.stop() == 0


def test_a_crash_of_the_target_with_several_format_ids(tmp_path: Path) -> None:
    """The server compares xids wrongly when it recovers, and rolls back what it does not find.

    Measured with a plain client on MySQL 9.7.4, with durable settings too. A completion stops the
    replica then, and nothing is lost in silence.
    """
    with running(tmp_path) as (pair, daemon):
        for number, xid in enumerate(("'z','',1", "'a','',2", "'m','',1")):
            prepare(pair.source, xid, f"INSERT INTO a.t VALUES ({50 + number}, 1)")
        assert_equal(pair, daemon)
        daemon.kill()
        before = prepared(pair.target)
        for _ in range(2):
            pair.target.kill()
            pair.target.start()
        ((format_id, _, _, name),) = before - prepared(pair.target)
        assert (format_id, name) == (2, "0x61")
        daemon.start()
        record = daemon.wait_for_record("the target no longer has what was prepared")
        assert record["xids"] == ["X'61',X'',2"]
        pair.source.sql("XA COMMIT 'z','',1; XA COMMIT 'm','',1")
        daemon.wait_until_caught_up()
        pair.source.sql("XA COMMIT 'a','',2")
        assert daemon.wait() == 3
        assert "different format ids" in daemon.last_words()


def test_a_prepare_in_doubt_that_the_target_has_lost(tmp_path: Path) -> None:
    """It is on record with its changes, although the server no longer has them."""
    with running(tmp_path) as (pair, daemon):
        assert daemon.stop() == 0
        prepare(pair.source, "'x'", "INSERT INTO a.t VALUES (50, 1)")
        daemon.start(fault=f"{FaultPoint.AFTER_STATEMENT}:1")
        assert daemon.wait() == SIGKILLED
        pair.target.sql("XA ROLLBACK 'x'")
        pair.source.sql("XA COMMIT 'x'")
        daemon.start()
        assert daemon.wait() == 3
        assert "the target has not prepared the transaction X'78',X'',1" in daemon.last_words()
