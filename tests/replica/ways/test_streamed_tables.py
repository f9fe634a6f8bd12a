"""A large CREATE TABLE … SELECT is applied while it is read, exactly once."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.fix_daemon import NEEDS_PERSON, SIGKILLED
from tests.replica.daemon_process import DaemonProcess, Value
from tests.servers.mariadb import provide_mariadb
from tests.servers.mysqld import GTIDS, NO_GTIDS, Options, Server
from tests.servers.pair import Pair

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]
LONG = pytest.mark.long

SMALL: dict[str, Value] = {
    "replica.batch_bytes": 4096,
    "replica.pending_jobs_size_max": 16384,
    "replica.parallel_type": "row",
}
ROWS = 400
LARGE = "CREATE TABLE a.c (PRIMARY KEY (i)) AS SELECT * FROM a.t"
CHECKSUM = "SELECT COUNT(*), SUM(CRC32(CONCAT(i, v))) FROM a.c"
IN_DOUBT = "SELECT COUNT(*) FROM mtsd.slave_in_doubt"
FEW = [("before_chunk", 3), ("after_statement", 1), ("commit_sent", 2)]
POINTS = [
    *FEW, ("before_statement", 1), ("statement_sent", 1), ("before_chunk", 1),
    *(("before_commit", number) for number in range(1, 4)),
    *(("commit_sent", number) for number in (1, 3)),
    *(("after_commit", number) for number in range(1, 4)),
]  # fmt: skip


@dataclass(frozen=True)
class Way:
    """Two servers, and the settings of the daemon between them."""

    source: Options = field(default_factory=lambda: dict(GTIDS))
    target: Options = field(default_factory=lambda: dict(GTIDS))
    settings: dict[str, Value] = field(default_factory=dict)
    series: str = ""
    """Of the MariaDB that both are; a MySQL if it is empty."""


WAYS = {
    "GTIDs": Way(),
    "preserve": Way(settings={"target.gtid": "preserve"}),
    "no GTIDs": Way(NO_GTIDS, NO_GTIDS),
    "no log": Way(target={**NO_GTIDS, "skip_log_bin": None}),
    "SQL": Way(settings={"target.apply_mode": "sql"}),
    "MariaDB": Way({"binlog_format": "ROW"}, {}, series="11.8"),
}


@contextmanager
def servers(way: Way) -> Iterator[Pair]:
    installation = provide_mariadb(way.series) if way.series else None
    with Pair(way.source, way.target, installation=installation) as pair:
        values = ",".join(f"({i}, REPEAT('{i % 10}', 60))" for i in range(ROWS))
        table = f"CREATE TABLE a.t (i INT, v VARCHAR(80)); INSERT INTO a.t VALUES {values}"
        pair.source.sql(f"CREATE DATABASE a; {table}")
        yield pair


def create(source: Server) -> None:
    source.sql(LARGE)
    source.sql("INSERT INTO a.c VALUES (100000, 'last')")


@pytest.mark.parametrize(
    ("name", "points"),
    [("GTIDs", FEW), ("MariaDB", FEW), *(pytest.param(each, POINTS, marks=LONG) for each in WAYS)],
)
def test_killed_at_each_point(name: str, points: list[tuple[str, int]], tmp_path: Path) -> None:
    way = WAYS[name]
    killed = 0
    with servers(way) as pair:
        daemon = DaemonProcess(pair.source, pair.target, tmp_path, {**SMALL, **way.settings})
        daemon.start()
        daemon.wait_until_caught_up()
        for point, passes in points:
            assert daemon.stop() == 0
            create(pair.source)
            daemon.start(fault=f"{point}:{passes}")
            try:
                daemon.wait_until_caught_up()
                daemon.kill()
            except AssertionError:
                assert daemon.wait() == SIGKILLED, daemon.last_words()
                killed += 1
            daemon.start()
            daemon.wait_until_caught_up()
            where = point, passes
            assert pair.target.sql(CHECKSUM) == pair.source.sql(CHECKSUM), where
            assert pair.target.sql(IN_DOUBT) == [(0,)], where
            pair.source.sql("DROP TABLE a.c")
            daemon.wait_until_caught_up()
        assert daemon.stop() == 0
    assert killed > len(points) // 2
    assert any(each["event"] == "streaming a large group" for each in daemon.records())


def kill_connections(daemon: DaemonProcess) -> None:
    for (session,) in daemon.target.sql(
        "SELECT id FROM information_schema.processlist WHERE user = 'mtsd_here'"
    ):
        daemon.target.sql(f"KILL {session}")


def restart_source(daemon: DaemonProcess) -> None:
    daemon.source.restart()


def kill_target(daemon: DaemonProcess) -> None:
    daemon.target.kill()
    daemon.target.start()


@pytest.mark.parametrize("name", ["GTIDs", pytest.param("MariaDB", marks=LONG)])
def test_interrupted_in_its_middle(name: str, tmp_path: Path) -> None:
    way = WAYS[name]
    actions: list[Callable[[DaemonProcess], None]] = [
        kill_connections, restart_source, kill_target,
    ]  # fmt: skip
    settings: dict[str, Value] = {**SMALL, **way.settings, "target.user": "mtsd_here"}
    with servers(way) as pair:
        quietly = "SET sql_log_bin = 0" if not way.series else "SET SESSION sql_log_bin = 0"
        pair.target.sql(f"{quietly}; CREATE USER mtsd_here; GRANT ALL ON *.* TO mtsd_here")
        daemon = DaemonProcess(pair.source, pair.target, tmp_path, settings)
        daemon.start()
        daemon.wait_until_caught_up()
        for action in actions:
            daemon.kill()
            create(pair.source)
            in_its_middle(daemon, action)
            daemon.wait_until_caught_up()
            assert pair.target.sql(CHECKSUM) == pair.source.sql(CHECKSUM), action.__name__
            assert pair.target.sql(IN_DOUBT) == [(0,)], action.__name__
            pair.source.sql("DROP TABLE a.c")
            daemon.wait_until_caught_up()
        assert daemon.stop() == 0


def in_its_middle(daemon: DaemonProcess, action: Callable[[DaemonProcess], None]) -> None:
    """Start the daemon, and do something while it applies the third part of a large group."""
    for name in ("there", "go"):
        (daemon.folder / name).unlink(missing_ok=True)
    daemon.start(fault="before_chunk:3:waits")
    deadline = time.monotonic() + 120
    while not (daemon.folder / "there").exists():
        assert time.monotonic() < deadline, daemon.last_words()
        time.sleep(0.02)
    action(daemon)
    (daemon.folder / "go").touch()


@pytest.mark.parametrize("name", ["GTIDs", "MariaDB"])
def test_a_table_that_is_there_already(name: str, tmp_path: Path) -> None:
    """Large or not: it is not filled as if the group had created it."""
    way = WAYS[name]
    with servers(way) as pair:
        daemon = DaemonProcess(pair.source, pair.target, tmp_path, {**SMALL, **way.settings})
        daemon.start()
        daemon.wait_until_caught_up()
        own = "CREATE TABLE a.{} (i INT PRIMARY KEY, v VARCHAR(80))"
        pair.target.sql(f"SET sql_log_bin = 0; {own.format('c')}; {own.format('small')}")
        pair.source.sql("CREATE TABLE a.small (PRIMARY KEY (i)) AS SELECT * FROM a.t WHERE i < 2")
        for table in ("small", "c"):
            assert daemon.wait() == NEEDS_PERSON
            assert "1050" in daemon.last_words()
            assert pair.target.sql(f"SELECT COUNT(*) FROM a.{table}") == [(0,)]
            assert pair.target.sql(IN_DOUBT) == [(0,)]
            pair.target.sql(f"SET sql_log_bin = 0; DROP TABLE a.{table}")
            if table == "small":
                create(pair.source)
            daemon.start()
        daemon.wait_until_caught_up()
        assert pair.target.sql(CHECKSUM) == pair.source.sql(CHECKSUM)
        assert daemon.stop() == 0


@pytest.mark.parametrize("large", [True, False])
def test_rows_that_cannot_be_rolled_back(large: bool, tmp_path: Path) -> None:
    """Killed once the rows are there: nothing shows that, so a person is asked."""
    settings = SMALL if large else {}
    target: Options = {"default_storage_engine": "MyISAM"}
    with servers(Way({"binlog_format": "ROW"}, target, series="11.8")) as pair:
        daemon = DaemonProcess(pair.source, pair.target, tmp_path, settings)
        daemon.start()
        daemon.wait_until_caught_up()
        daemon.kill()
        pair.source.sql("CREATE TABLE a.c AS SELECT * FROM a.t")
        daemon.start(fault="before_commit:3")
        assert daemon.wait() == SIGKILLED
        for _ in range(2):
            daemon.start()
            assert daemon.wait() == NEEDS_PERSON
            assert "non-transactional" in daemon.last_words()
            assert pair.target.sql(CHECKSUM) == pair.source.sql(CHECKSUM)
            assert pair.target.sql(IN_DOUBT) == [(1,)]


@pytest.mark.parametrize("name", ["GTIDs", "MariaDB"])
def test_it_is_skipped_because_of_an_error(name: str, tmp_path: Path) -> None:
    way = WAYS[name]
    settings: dict[str, Value] = {**SMALL, **way.settings, "replica.skip_errors": [1050]}
    with servers(way) as pair:
        daemon = DaemonProcess(pair.source, pair.target, tmp_path, settings)
        daemon.start()
        daemon.wait_until_caught_up()
        pair.target.sql("SET sql_log_bin = 0; CREATE TABLE a.c (i INT PRIMARY KEY, v VARCHAR(80))")
        create(pair.source)
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        assert pair.target.sql("SELECT * FROM a.c") == [(100000, "last")]
        assert pair.target.sql(IN_DOUBT) == [(0,)]
