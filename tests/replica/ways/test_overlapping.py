"""Large transactions whose commits overlap: each once and in order, whatever ends when."""

import random
from contextlib import suppress
from pathlib import Path

import pytest
from pymysql.err import OperationalError

from mtsd.model.fault_points import FaultPoint
from tests.fix_daemon import NEEDS_PERSON, SIGKILLED
from tests.fix_families import families
from tests.load.compare import differences
from tests.replica.daemon_process import DaemonProcess, Value
from tests.servers.mysqld import Server

pytestmark = pytest.mark.servers

ONE_WORKER: dict[str, Value] = {
    "replica.parallel_workers": 1,
    "replica.batch_bytes": 150_000,
    "replica.stop_timeout": 5.0,
}
POINTS = (
    FaultPoint.BUNDLE_SENT, FaultPoint.BEFORE_COMMIT, FaultPoint.COMMIT_SENT,
    FaultPoint.AFTER_BUNDLE,
)  # fmt: skip
MARIADB = "11.8"
WITHOUT_ANOTHER = 2
"""Connections: the coordinator and the worker have theirs; whether a third is needed varies."""


def write(source: Server, first: int, last: int, *, hot: bool = True) -> None:
    """Commit transactions of 70 kB; if `hot`, each also counts in one row that all of them change.

    The others are independent by the source's clock.
    """
    with source.client() as client, client.cursor() as cursor:
        for number in range(first, last):
            cursor.execute("BEGIN")
            cursor.execute(
                f"INSERT INTO a.t VALUES ({number}, REPEAT(CHAR({number % 26 + 65}), 70000))"
            )
            if hot:
                cursor.execute(f"UPDATE a.hot SET n = n + 1, last = {number}")
            cursor.execute("COMMIT")


def prepare(source: Server) -> None:
    source.sql(
        "CREATE DATABASE a; CREATE TABLE a.t (id INT PRIMARY KEY, b LONGTEXT);"
        "CREATE TABLE a.hot (n INT, last INT); INSERT INTO a.hot VALUES (0, 0)"
    )


def sessions(target: Server) -> list[int]:
    """Return the ids of the target's sessions but the one that asks."""
    rows = target.sql(
        "SELECT id FROM information_schema.processlist"
        " WHERE id <> CONNECTION_ID() AND user = 'root' ORDER BY id"
    )
    return [int(str(id_)) for (id_,) in rows]


@pytest.mark.parametrize(("series", "hot"), [("9.7", True), ("9.7", False), (MARIADB, True)])
def test_killed_while_two_are_open(series: str, hot: bool, tmp_path: Path) -> None:
    chance = random.Random(f"{series} {hot}")
    with families(series, series) as pair:
        daemon = DaemonProcess(pair.source, pair.target, tmp_path, ONE_WORKER)
        prepare(pair.source)
        write(pair.source, 0, 100, hot=hot)
        for point in POINTS:
            daemon.start(fault=f"{point}:{chance.randint(2, 6)}")
            assert daemon.wait() == SIGKILLED, (point, daemon.last_words())
        daemon.start()
        daemon.wait_until_caught_up()
        write(pair.source, 100, 150, hot=hot)
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        assert differences(pair.source, pair.target) == []
        assert [*pair.target.sql("SELECT n, last FROM a.hot")] == [(150, 149) if hot else (0, 0)]


def test_a_later_one_holds_a_lock_that_an_earlier_one_needs(tmp_path: Path) -> None:
    with families("9.7", "9.7") as pair:
        daemon = DaemonProcess(pair.source, pair.target, tmp_path, ONE_WORKER)
        pair.source.sql(
            "CREATE DATABASE a; CREATE TABLE a.parent (id INT PRIMARY KEY, n INT);"
            "INSERT INTO a.parent VALUES (1, 0);"
            "CREATE TABLE a.many (id INT PRIMARY KEY, b VARCHAR(80));"
            "CREATE TABLE a.child (id INT PRIMARY KEY, parent INT, b LONGTEXT, KEY (parent))"
        )
        daemon.start()
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        # Only there does a child lock its parent.
        pair.target.sql("ALTER TABLE a.child ADD FOREIGN KEY (parent) REFERENCES a.parent (id)")
        with pair.source.client() as client, client.cursor() as cursor:
            for number in range(20):
                rows = (f"({2000 * number + row}, REPEAT('x', 80))" for row in range(2000))
                cursor.execute("BEGIN")
                cursor.execute(f"INSERT INTO a.many VALUES {', '.join(rows)}")
                cursor.execute("UPDATE a.parent SET n = n + 1 WHERE id = 1")
                cursor.execute("COMMIT")
                cursor.execute(f"INSERT INTO a.child VALUES ({number}, 1, REPEAT('y', 160000))")
        daemon.start()
        daemon.wait_until_caught_up()
        daemon.wait_for_record("gives way to an earlier group")
        assert daemon.stop() == 0
        pair.target.sql("ALTER TABLE a.child DROP FOREIGN KEY child_ibfk_1")
        assert differences(pair.source, pair.target) == []


def test_the_sessions_end_and_the_rows_fail(tmp_path: Path) -> None:
    with families("9.7", "9.7") as pair:
        daemon = DaemonProcess(pair.source, pair.target, tmp_path, ONE_WORKER)
        prepare(pair.source)
        daemon.start()
        daemon.wait_until_caught_up()
        (channel, own) = sessions(pair.target)
        write(pair.source, 100, 140)
        daemon.wait_until_caught_up()
        found = sessions(pair.target)
        assert found[:2] == [channel, own]
        assert len(found) > 2, "its commits do not overlap"
        # What is in the way is found by the session that meets it first, and again by itself.
        pair.target.sql("INSERT INTO a.t VALUES (150, 'in the way')")
        write(pair.source, 140, 170)
        assert daemon.wait() == NEEDS_PERSON, daemon.last_words()
        assert "Duplicate entry '150'" in str(daemon.records()[-1]["error"])
        assert [*pair.target.sql("SELECT last FROM a.hot")] == [(149,)]
        pair.target.sql("DELETE FROM a.t WHERE id = 150")
        daemon.start()
        for ended in range(3):
            write(pair.source, 170 + 30 * ended, 200 + 30 * ended)
            for id_ in sessions(pair.target)[1:][ended % 2 :]:
                # The daemon may have ended it by now, as it has lost the other one.
                with suppress(OperationalError):
                    pair.target.sql(f"KILL {id_}")
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        assert differences(pair.source, pair.target) == []


@pytest.mark.parametrize("most", [WITHOUT_ANOTHER, WITHOUT_ANOTHER + 1])
def test_a_target_without_room_for_more_sessions(most: int, tmp_path: Path) -> None:
    with families("9.7", "9.7") as pair:
        prepare(pair.source)
        pair.target.sql(
            f"CREATE USER few WITH MAX_USER_CONNECTIONS {most}; GRANT ALL ON *.* TO few"
        )
        settings: dict[str, Value] = {**ONE_WORKER, "target.user": "few"}
        daemon = DaemonProcess(pair.source, pair.target, tmp_path, settings)
        write(pair.source, 0, 50)
        daemon.start()
        daemon.wait_until_caught_up()
        if most == WITHOUT_ANOTHER:
            daemon.wait_for_record("no further session")
        assert daemon.stop() == 0
        assert differences(pair.source, pair.target) == []
