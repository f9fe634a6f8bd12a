"""A daemon tells what its queues wait for, and how long they have: each cause in turn."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from mtsd.control.status import Status
from mtsd.schedule.wait_cause import WaitCause
from tests.replica.daemon_process import DaemonProcess, Value
from tests.servers.mysqld import Server
from tests.servers.pair import Pair

pytestmark = [pytest.mark.servers, pytest.mark.timeout(300)]

LONG_S: Final = 0.5
"""A wait that the tests let last at least so long."""
TABLES: Final = (
    "CREATE DATABASE a; CREATE DATABASE b; CREATE DATABASE c;"
    "CREATE TABLE a.t (id INT PRIMARY KEY, v LONGTEXT);"
    "CREATE TABLE b.t LIKE a.t; CREATE TABLE c.t LIKE a.t"
)


def insert(database: str, first: int, rows: int = 1, size: int = 0) -> str:
    """Return statements that insert `rows` rows of `size` bytes, each in a transaction."""
    return ";".join(
        f"INSERT INTO {database}.t VALUES ({first + row}, REPEAT('x', {size}))"
        for row in range(rows)
    )


@contextmanager
def locked(server: Server, table: str) -> Iterator[None]:
    """Let nobody else change the table."""
    with server.client() as client, client.cursor() as cursor:
        cursor.execute(f"LOCK TABLES {table} WRITE")
        yield
        cursor.execute("UNLOCK TABLES")


class Waiting:
    """A daemon that is made to wait, for one cause after another."""

    def __init__(self, pair: Pair, daemon: DaemonProcess) -> None:
        self.pair = pair
        self.daemon = daemon

    def waited(self) -> Mapping[str, float]:
        """Return what has been waited for, once nothing waits."""
        self.daemon.wait_until_caught_up()
        status = self.daemon.status()
        assert status is not None
        assert set(status.waits) == {cause.value for cause in WaitCause}
        assert waiting(status) == set()
        return status.waits

    def waits_for(self, cause: str, statements: str, locks: str) -> None:
        """Check that `statements` wait for `cause` while somebody locks a table of the target."""
        before = self.waited()
        with locked(self.pair.target, locks):
            self.pair.source.sql(statements)
            status = self.daemon.wait_for_status(
                lambda now: now.waits[cause] - before[cause] > LONG_S, f"nothing waits: {cause}"
            )
            assert cause in waiting(status)
        after = self.waited()
        assert [each for each in after if after[each] - before[each] > LONG_S] == [cause]


def waiting(status: Status) -> set[str]:
    """Return what somebody waits for now."""
    causes = {status.reading_waits_for, *(worker.waits_for for worker in status.workers)}
    return causes - {""}


def test_by_database(tmp_path: Path) -> None:
    settings: dict[str, Value] = {
        "replica.checkpoint_group": 50,
        "replica.pending_jobs_size_max": 1 << 16,
        "replica.batch_bytes": 1 << 14,
        "replica.ddl": "alone",
    }
    with Pair() as pair:
        pair.source.sql(TABLES)
        with DaemonProcess(pair.source, pair.target, tmp_path, settings) as daemon:
            waits = Waiting(pair, daemon)
            both = f"BEGIN; {insert('a', 2)}; {insert('b', 2)}; COMMIT"
            waits.waits_for("partition", f"{insert('a', 1)}; {insert('b', 1)}; {both}", "a.t")
            waits.waits_for("alone", f"{insert('a', 3)}; CREATE TABLE b.u (id INT)", "a.t")
            waits.waits_for("gaq_full", insert("a", 100, rows=60), "a.t")
            waits.waits_for("pending_bytes", insert("a", 200, rows=10, size=10_000), "a.t")
            large = insert("b", 300, size=200_000)
            waits.waits_for("streamed", f"{insert('a', 300)}; {large}", "a.t")
            assert daemon.stop() == 0


def test_for_a_parent_that_only_the_target_asks_for(tmp_path: Path) -> None:
    """A foreign key that is added by hand keeps no order: what fails tries again at its turn."""
    with Pair() as pair:
        pair.source.sql(f"{TABLES}; CREATE TABLE a.gate (n INT)")
        with DaemonProcess(pair.source, pair.target, tmp_path) as daemon:
            waits = Waiting(pair, daemon)
            waits.waited()
            pair.target.sql("ALTER TABLE b.t ADD FOREIGN KEY (id) REFERENCES a.t (id)")
            parent = f"INSERT INTO a.gate VALUES (1); {insert('a', 1)}"
            waits.waits_for("commit_order", f"{parent}; {insert('b', 1)}", "a.gate")
            assert pair.target.sql("SELECT id FROM b.t") == [(1,)]
            assert daemon.stop() == 0


def test_by_clock(tmp_path: Path) -> None:
    settings: dict[str, Value] = {
        "replica.parallel_type": "logical_clock",
        "replica.batch_groups": 1,
    }
    with Pair() as pair:
        pair.source.sql(TABLES)
        with DaemonProcess(pair.source, pair.target, tmp_path, settings) as daemon:
            waits = Waiting(pair, daemon)
            again = "UPDATE a.t SET v = 'again'"
            waits.waits_for("dependency", f"{insert('a', 1)}; {insert('b', 1)}; {again}", "a.t")
            assert daemon.stop() == 0


def test_for_the_turn_to_commit(tmp_path: Path) -> None:
    """What is applied waits until the transactions before it have committed."""
    settings: dict[str, Value] = {"replica.consistency": "any_time", "replica.batch_groups": 1}
    with Pair() as pair:
        pair.source.sql(TABLES)
        with DaemonProcess(pair.source, pair.target, tmp_path, settings) as daemon:
            waits = Waiting(pair, daemon)
            waits.waits_for("commit_order", f"{insert('a', 1)}; {insert('b', 1)}", "a.t")
            assert daemon.stop() == 0
