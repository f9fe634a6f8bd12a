"""Temporary tables of the source, over the ends of mtsd, of its sessions and of the source."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pymysql
import pytest

from mtsd.model.fault_points import FaultPoint
from tests.fix_daemon import NEEDS_PERSON, SIGKILLED, catch_up, stops
from tests.fix_families import families
from tests.load.equality import unequal
from tests.replica.daemon_process import DaemonError, DaemonProcess
from tests.replica.source_sessions import (
    LOOK_ALIKES,
    begin_anew,
    known,
    open_tables,
    session,
    skip,
    will_be_known,
)
from tests.servers.pair import Pair

pytestmark = [pytest.mark.servers, pytest.mark.timeout(600)]

LONG = pytest.mark.long
PAIRS = [
    pytest.param(("9.7", "9.7"), id="9.7"),
    pytest.param(("11.8", "11.8"), id="11.8"),
    pytest.param(("10.11", "10.11"), id="10.11", marks=LONG),
    pytest.param(("11.8", "9.7"), id="11.8-to-9.7", marks=LONG),
    pytest.param(("9.7", "11.8"), id="9.7-to-11.8", marks=LONG),
]
"""Versions of source and target."""


@pytest.fixture(scope="module", params=PAIRS)
def servers(request: pytest.FixtureRequest) -> Iterator[Pair]:
    source, target = request.param
    with families(source, target) as pair:
        yield pair


@pytest.fixture
def pair(servers: Pair) -> Pair:
    begin_anew(servers)
    return servers


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_look_alikes_after_a_restart(pair: Pair, tmp_path: Path, end: str) -> None:
    daemon = DaemonProcess(pair.source, pair.target, tmp_path)
    daemon.start()
    daemon.wait_until_caught_up()
    if end == "stop":
        assert daemon.stop() == 0
    else:
        daemon.kill()
    for binlog_format in ("ROW", "MIXED"):
        with session(pair.source, binlog_format) as client:
            # It is not logged, and what looks at it is.
            client.run(
                "CREATE TEMPORARY TABLE tt (a INT PRIMARY KEY, b INT)",
                "INSERT INTO tt VALUES (77, 7)",
                f"CREATE TABLE like_tt_{binlog_format} LIKE tt",
                "DELETE FROM t WHERE a IN (SELECT a FROM tt)",
                "INSERT INTO t SELECT * FROM tt",
                "TRUNCATE tt",
            )
    with session(pair.source) as client:
        client.run(*LOOK_ALIKES)
        daemon.start()
        daemon.wait_until_caught_up()
        client.run("TRUNCATE u", "DELETE FROM t WHERE a IN (SELECT a FROM u)")
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
    assert unequal(pair.source, pair.target) == []
    assert known(pair.target) == {"complete": True, "threads": []}


@pytest.mark.parametrize("end", ["stop", "kill", "session"])
def test_what_is_lost_is_named(pair: Pair, tmp_path: Path, end: str) -> None:
    daemon = DaemonProcess(pair.source, pair.target, tmp_path)
    catch_up(daemon)
    daemon.start()
    with session(pair.source) as one, session(pair.source) as other:
        one.run("CREATE TEMPORARY TABLE t (a INT)", "CREATE TEMPORARY TABLE hidden (a INT)")
        other.run("CREATE TEMPORARY TABLE v (a INT)", "INSERT INTO v VALUES (1)")
        pair.source.sql("INSERT INTO d.u VALUES (10)")
        daemon.wait_until_caught_up()
        rows = pair.target.sql("SELECT * FROM d.t")
        if end == "stop":
            assert daemon.stop() == 0
            assert "stopped while the source has temporary tables" in daemon.log.read_text()
            assert "d.hidden, d.t, d.v" in daemon.log.read_text()
        elif end == "kill":
            daemon.kill()
        else:
            for (id_,) in pair.target.sql(
                "SELECT id FROM information_schema.processlist WHERE user = 'root'"
                " AND id <> CONNECTION_ID()"
            ):
                # The first one that is lost ends the others.
                with suppress(pymysql.err.OperationalError):
                    pair.target.sql(f"KILL {id_}")
        if end != "session":
            daemon.start()
        pair.source.sql("INSERT INTO d.u VALUES (11)")
        daemon.wait_until_caught_up()
        assert "temporary tables that the target has lost" in daemon.log.read_text()
        # What does not need them goes on.
        other.run("DROP TABLE v", "CREATE TEMPORARY TABLE v (a INT)", "INSERT INTO v VALUES (2)")
        other.run("INSERT INTO u SELECT a + 20 FROM v")
        one.run("DROP TABLE hidden")
        daemon.wait_until_caught_up()
        one.run("TRUNCATE t")
        assert daemon.wait() == NEEDS_PERSON
        assert "the target has lost d.t:" in str(daemon.records()[-1]["error"])
        skip(daemon, str(daemon.records()[-1]["error"]))
        assert pair.target.sql("SELECT * FROM d.t") == rows
    # `other`'s table was in the session that has just ended, and is dropped unused.
    catch_up(daemon)
    assert known(pair.target) == {"complete": True, "threads": []}
    assert unequal(pair.source, pair.target) == []


@pytest.mark.parametrize(
    "end", [pytest.param("stop", marks=LONG), "kill", pytest.param("unseen", marks=LONG)]
)
def test_a_restart_of_the_source_leaves_none(pair: Pair, tmp_path: Path, end: str) -> None:
    """Afterwards, sessions have the ids of former ones."""
    daemon = DaemonProcess(pair.source, pair.target, tmp_path, {"replica.parallel_workers": 1})
    none_are_left(
        pair,
        daemon,
        end,
        ["CREATE TEMPORARY TABLE t (a INT, b INT)", "CREATE TEMPORARY TABLE w (a INT)"],
    )


@pytest.mark.parametrize("servers", [PAIRS[1], PAIRS[3]], indirect=True)
def test_a_restart_leaves_none_of_a_large_transaction(pair: Pair, tmp_path: Path) -> None:
    """A MySQL with GTIDs refuses one that creates temporary tables."""
    settings = {
        "replica.parallel_workers": 1,
        "replica.batch_bytes": 1024,
        "replica.pending_jobs_size_max": 1024,
    }
    daemon = DaemonProcess(pair.source, pair.target, tmp_path, settings)
    created = [
        "BEGIN",
        "CREATE TEMPORARY TABLE t (a INT, b INT)",
        f"INSERT INTO u VALUES (300) /* {'x' * 4096} */",
        "CREATE TEMPORARY TABLE w (a INT)",
        "COMMIT",
    ]
    none_are_left(pair, daemon, "kill", created)
    assert "streaming a large group" in {each["event"] for each in daemon.records()}


def none_are_left(pair: Pair, daemon: DaemonProcess, end: str, created: Sequence[str]) -> None:
    """Let a session create the temporary tables t and w, and end it together with the source."""
    catch_up(daemon)
    daemon.start()
    with session(pair.source) as client:
        client.run(*created)
        daemon.wait_until_caught_up()
        will_be_known(pair.target, [open_tables(pair.source, client, "t", "w")])
        if end == "unseen":
            assert daemon.stop() == 0
        pair.source.stop() if end == "stop" else pair.source.kill()
        pair.source.start()
        if end == "unseen":
            # A dump by GTID would begin here.
            pair.source.sql("FLUSH BINARY LOGS")
            daemon.start()
        daemon.wait_until_caught_up()
        with session(pair.source) as again:
            again.run("TRUNCATE t", *LOOK_ALIKES)
        while True:
            with session(pair.source) as again:
                if again.id < client.id:
                    continue
                # Nothing says that these might use a temporary table.
                again.run("INSERT INTO t VALUES (700, 1)", "UPDATE t SET b = 2 WHERE a = 700")
                again.run(*LOOK_ALIKES)
                again.run(
                    "CREATE TEMPORARY TABLE w (a INT)",
                    "INSERT INTO w VALUES (71)",
                    "INSERT INTO t SELECT a, a FROM w",
                )
                break
    daemon.wait_until_caught_up()
    assert daemon.stop() == 0
    assert known(pair.target) == {"complete": True, "threads": []}
    assert unequal(pair.source, pair.target) == []


@pytest.mark.parametrize("servers", PAIRS[1:2], indirect=True)
def test_where_a_restart_cannot_be_seen_nothing_is_known(pair: Pair, tmp_path: Path) -> None:
    """Asked by GTID, a MariaDB does not tell of a start in a file that it has purged."""
    daemon = DaemonProcess(pair.source, pair.target, tmp_path)
    catch_up(daemon)
    daemon.start()
    with session(pair.source) as client:
        client.run("CREATE TEMPORARY TABLE t (a INT, b INT)")
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        pair.source.kill()
        pair.source.start()
        pair.source.sql("FLUSH BINARY LOGS")
        file, *_ = pair.source.binlog_end()
        pair.source.sql(f"PURGE BINARY LOGS TO '{file}'")
    with session(pair.source) as again:
        again.run("INSERT INTO t VALUES (700, 1)")
        catch_up(daemon)
        assert (known(pair.target)["complete"], known(pair.target)["threads"]) == (False, [])
        again.run("DELETE x FROM t x JOIN t y ON x.a = y.a + 3 WHERE x.a = 4")
        assert "may use a temporary table of its session" in stops(daemon)
        assert unequal(pair.source, pair.target) != []


@pytest.mark.parametrize(
    "point",
    [
        FaultPoint.BEFORE_CHECKPOINT,
        pytest.param(FaultPoint.AFTER_CHECKPOINT, marks=pytest.mark.long),
        pytest.param(FaultPoint.AFTER_READ, marks=pytest.mark.long),
        pytest.param(FaultPoint.AFTER_BUNDLE, marks=pytest.mark.long),
        pytest.param(FaultPoint.BEFORE_STOP_CHECKPOINT, marks=pytest.mark.long),
    ],
)
def test_killed_beside_its_creation(pair: Pair, tmp_path: Path, point: FaultPoint) -> None:
    """The record of what is open may be behind, like the position; never ahead of either."""
    daemon = DaemonProcess(pair.source, pair.target, tmp_path)
    catch_up(daemon)
    with session(pair.source) as client:
        daemon.start(fault=point)
        if point is not FaultPoint.AFTER_READ:
            # There, what a dump begins with is enough to end it.
            daemon.wait_until_running()
        client.run("CREATE TEMPORARY TABLE t (a INT)")
        pair.source.sql("INSERT INTO d.u VALUES (10)")
        if point is FaultPoint.BEFORE_STOP_CHECKPOINT:
            daemon.wait_until_caught_up()
            assert daemon.stop() == SIGKILLED
        else:
            assert daemon.wait() == SIGKILLED
        rows = pair.target.sql("SELECT * FROM d.t")
        client.run("INSERT INTO t VALUES (1)")
        daemon.start()
        pair.source.sql("INSERT INTO d.u VALUES (11)")
        try:
            daemon.wait_until_caught_up()
        except DaemonError:
            skip(daemon, str(daemon.records()[-1]["error"]))
            assert "the target has lost d.t:" in str(daemon.records()[-1]["error"])
        else:
            # It died before it had read of the table, so that this one has made it.
            assert daemon.stop() == 0
        assert pair.target.sql("SELECT * FROM d.t") == rows
    catch_up(daemon)
    assert known(pair.target) == {"complete": True, "threads": []}
    assert unequal(pair.source, pair.target) == []
