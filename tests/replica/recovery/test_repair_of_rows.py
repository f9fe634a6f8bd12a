"""What is repaired after a run without order: rows that take over what others had."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path

import pytest

from mtsd.control.status import Status
from tests.fix_families import mariadbs
from tests.replica.daemon_process import DaemonProcess, Value
from tests.servers.mysqld import GTIDS, Server
from tests.servers.pair import Pair

pytestmark = [pytest.mark.servers, pytest.mark.timeout(300)]

TABLES = """
    CREATE DATABASE a; USE a; CREATE TABLE gate (id INT PRIMARY KEY, v INT);
    CREATE TABLE done (id INT PRIMARY KEY); INSERT INTO gate VALUES (1, 0);
    CREATE TABLE u (id INT PRIMARY KEY, u INT UNIQUE, v VARCHAR(20));
    CREATE TABLE b (u INT UNIQUE, v VARCHAR(20));
    CREATE TABLE n (id INT PRIMARY KEY, u INT UNIQUE, changed INT);
    CREATE TABLE e (id INT PRIMARY KEY, c ENUM('a', 'b'), changed INT);
    CREATE TABLE big (id INT PRIMARY KEY, v INT, f LONGTEXT);
    CREATE TABLE parent (id INT PRIMARY KEY);
    CREATE TABLE child (id INT PRIMARY KEY, parent INT,
        FOREIGN KEY (parent) REFERENCES parent (id) ON DELETE CASCADE);
    CREATE TABLE grandchild (id INT PRIMARY KEY, child INT,
        FOREIGN KEY (child) REFERENCES child (id) ON DELETE CASCADE);
    CREATE TABLE pair (a INT, b VARCHAR(9), PRIMARY KEY (a, b));
    CREATE TABLE follows (id INT PRIMARY KEY, a INT, b VARCHAR(9),
        FOREIGN KEY (a, b) REFERENCES pair (a, b) ON DELETE SET NULL ON UPDATE CASCADE);
    CREATE TABLE stamped (id INT PRIMARY KEY, a INT, b VARCHAR(9),
        ts TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
        FOREIGN KEY (a, b) REFERENCES pair (a, b) ON DELETE SET NULL ON UPDATE CASCADE);
    INSERT INTO pair VALUES (1, 'x'), (2, 'y');
    INSERT INTO u VALUES (5, 50, 'keep'); INSERT INTO n VALUES (1, 10, 7), (5, 50, 1);
    INSERT INTO e VALUES (1, 'a', 1); INSERT INTO parent VALUES (1), (2);
    INSERT INTO child VALUES (7, 2)
"""
HELD = "UPDATE gate SET v = 1"


@contextmanager
def mysqls() -> Iterator[Pair]:
    with Pair(GTIDS, GTIDS) as pair:
        yield pair


@contextmanager
def held(
    pair: Pair, folder: Path, settings: Mapping[str, Value], earlier: str, later: Sequence[str]
) -> Iterator[DaemonProcess]:
    """Run a daemon that has applied what is later, and is held at what is earlier."""
    pair.source.sql(TABLES)
    daemon = DaemonProcess(
        pair.source, pair.target, folder,
        {"replica.consistency": "eventual", "replica.checkpoint_period": 0.05, **settings},
    )  # fmt: skip
    with daemon:
        pair.source.sql("INSERT INTO big VALUES (2, 0, '')", "a")
        daemon.wait_until_caught_up()
        client = pair.target.client("a")
        client.query("BEGIN")
        client.query("SELECT * FROM gate FOR UPDATE")
        pair.source.sql(earlier, "a")
        for script in later:
            pair.source.sql(script, "a")
            file, offset, _ = pair.source.binlog_end()
            # One after another: together, they might have to wait for what is held.
            daemon.wait_for_status(partial(_has_applied, file, offset), f"not applied: {script}")
        yield daemon
        client.close()


def _has_applied(file: str, offset: int, now: Status) -> bool:
    """Return whether a worker has applied the last group, and one other is left."""
    last = {(worker.last.file, worker.last.pos) for worker in now.workers}
    return now.pending_groups == 1 and (file, offset) in last


def rows(server: Server, table: str) -> list[tuple[object, ...]]:
    return sorted(server.sql(f"SELECT * FROM a.{table}"), key=str)


TAKES_OVER = (
    "BEGIN; INSERT INTO u VALUES (2, 10, 'short'); DELETE FROM u WHERE id = 2; COMMIT",
    "UPDATE u SET u = 10 WHERE id = 5",
)
OF_ITS_PARENT = (
    "DELETE FROM parent WHERE id = 1", "INSERT INTO parent VALUES (1)",
    "UPDATE child SET parent = 1 WHERE id = 7",
)  # fmt: skip
SHORT_LIVED = f"BEGIN; {HELD}; INSERT INTO b VALUES (10, 'short'); DELETE FROM b; COMMIT"
NEWER: Mapping[str, Value] = {"replica.newer_row_column": "changed"}
STRICT: Mapping[str, Value] = {"replica.exec_mode": "strict"}
GRANDCHILD = (
    f"BEGIN; {HELD}; INSERT INTO child VALUES (8, 1), (9, 2); INSERT INTO grandchild VALUES (8, 8);"
    " COMMIT"
)
FOLLOWS = (
    f"BEGIN; {HELD}; INSERT INTO follows VALUES (1, 1, 'x'), (2, 2, 'y'), (3, 1, NULL); COMMIT"
)
STAMPED = (
    f"BEGIN; {HELD}; INSERT INTO stamped VALUES (1, 1, 'x', '2020-01-01');"
    " INSERT INTO stamped VALUES (2, 2, 'y', '2020-01-01'); COMMIT"
)
CHANGED = ("UPDATE pair SET b = 'z' WHERE a = 1", "DELETE FROM pair WHERE a = 2")
BOTH_KEYS = (
    "INSERT INTO pair VALUES (3, 'x')", "INSERT INTO follows VALUES (1, 3, 'x')",
    "UPDATE pair SET b = 'z' WHERE a = 3",
)  # fmt: skip


@pytest.mark.parametrize(
    ("servers", "settings", "earlier", "later", "tables"),
    [
        pytest.param(mysqls, STRICT, HELD, TAKES_OVER, "u", id="a unique value, strict"),
        pytest.param(mysqls, {}, HELD, TAKES_OVER, "u", id="a unique value"),
        pytest.param(mariadbs, {}, HELD, TAKES_OVER, "u", id="a unique value, MariaDB"),
        pytest.param(mariadbs, STRICT, HELD, OF_ITS_PARENT, "child", id="a cascade, MariaDB"),
        pytest.param(
            mariadbs, STRICT, GRANDCHILD, ("DELETE FROM parent WHERE id = 1",), "child grandchild",
            id="children of what has gone",
        ),
        pytest.param(
            mariadbs, STRICT, FOLLOWS, CHANGED, "follows", id="a child of what has changed",
        ),
        pytest.param(
            mariadbs, STRICT, HELD, BOTH_KEYS, "pair follows",
            id="a child of what has both its keys again",
        ),
        pytest.param(
            mariadbs, STRICT, STAMPED, CHANGED, "stamped", id="a child with the time of its change",
        ),
        pytest.param(
            mysqls, STRICT, SHORT_LIVED, ("INSERT INTO b VALUES (10, 'keep')",), "b",
            id="without a key",
        ),
        pytest.param(
            mysqls, NEWER, HELD,
            (
                "UPDATE n SET u = 20, changed = 8 WHERE id = 1",
                "UPDATE n SET u = 30, changed = 9 WHERE id = 1",
                "UPDATE n SET u = 20, changed = 2 WHERE id = 5",
            ), "n",
            id="the newer row",
        ),
    ],
)  # fmt: skip
def test_a_row_that_has_what_another_had(
    servers: Callable[[], AbstractContextManager[Pair]],
    settings: Mapping[str, Value],
    earlier: str,
    later: Sequence[str],
    tables: str,
    tmp_path: Path,
) -> None:
    with servers() as pair:
        with held(pair, tmp_path, settings, earlier, later) as daemon:
            daemon.kill()
            pair.target.kill()
            pair.target.start()
            daemon.start()
            daemon.wait_until_caught_up()
            assert daemon.stop() == 0
        for table in tables.split():
            assert rows(pair.target, table) == rows(pair.source, table)
        assert rows(pair.target, "gate") == [(1, 1)]


def test_what_is_too_large_to_be_applied_once_more_is_refused(tmp_path: Path) -> None:
    later = ["UPDATE big SET f = REPEAT('x', 200000) WHERE id = 2", "INSERT INTO done VALUES (1)"]
    small: Mapping[str, Value] = {
        "replica.batch_bytes": 65536, "replica.pending_jobs_size_max": 131072,
    }  # fmt: skip
    length = "SELECT LENGTH(f) FROM a.big WHERE id = 2"
    with mysqls() as pair, held(pair, tmp_path, {}, HELD, later) as daemon:
        assert pair.target.sql(length) == [(200000,)]
        daemon.kill()
        pair.target.kill()
        pair.target.start()
        before = dict(daemon.settings)
        daemon.settings |= small
        daemon.start()
        assert daemon.wait() == 3
        error = str(daemon.records()[-1]["error"])
        assert "has to be applied once more" in error
        assert "larger than replica.pending_jobs_size_max" in error
        daemon.settings = before
        daemon.start()
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        assert pair.target.sql(length) == [(200000,)]


@pytest.mark.parametrize("servers", [mysqls, mariadbs])
@pytest.mark.parametrize(
    ("earlier", "later", "table"),
    [
        (
            f"{HELD}; DELETE FROM n WHERE id = 1", "INSERT INTO n VALUES (2, 10, 1)", "n",
        ),
        (
            f"BEGIN; {HELD}; UPDATE n SET u = 11, changed = 8 WHERE id = 1; COMMIT",
            "INSERT INTO n VALUES (2, 10, 1)", "n",
        ),
        (
            f"BEGIN; {HELD}; UPDATE e SET c = 'b', changed = 2; COMMIT",
            "UPDATE IGNORE e SET c = 'zz', changed = 3", "e",
        ),
    ],
)  # fmt: skip
def test_the_newer_row_wins_over_the_same_row_only(
    servers: Callable[[], AbstractContextManager[Pair]],
    earlier: str,
    later: str,
    table: str,
    tmp_path: Path,
) -> None:
    """Without any crash: what fails because another row has the unique value is tried again."""
    with servers() as pair:
        pair.source.sql(TABLES)
        settings: dict[str, Value] = {"replica.consistency": "eventual", **NEWER}
        with DaemonProcess(pair.source, pair.target, tmp_path, settings) as daemon:
            daemon.wait_until_caught_up()
            client = pair.target.client("a")
            client.query("BEGIN")
            client.query("SELECT * FROM gate FOR UPDATE")
            pair.source.sql(f"{earlier}; {later}", "a")
            time.sleep(1)
            client.close()
            daemon.wait_until_caught_up()
            assert daemon.stop() == 0
        assert rows(pair.target, table) == rows(pair.source, table)
