"""A daemon killed when later transactions have committed and an earlier one has not."""

import time
from contextlib import closing
from pathlib import Path
from typing import Final

from tests.replica.daemon_process import DaemonProcess, Value
from tests.servers.mysqld import Server
from tests.servers.pair import Pair

EVENTUAL: Final[dict[str, Value]] = {"replica.consistency": "eventual"}
SETUP: Final = """
CREATE DATABASE a; USE a; CREATE TABLE gate (id INT PRIMARY KEY, v INT);
CREATE TABLE t (id INT PRIMARY KEY, u INT UNIQUE, v VARCHAR(20));
CREATE TABLE bare (id INT, v VARCHAR(20));
CREATE TABLE parent (id INT PRIMARY KEY);
CREATE TABLE child (id INT PRIMARY KEY, parent INT);
INSERT INTO gate VALUES (1, 0); INSERT INTO t VALUES (1, 1, 'x'), (2, 2, 'x'), (3, 3, 'x');
INSERT INTO parent VALUES (1), (2); CREATE TABLE ready (i INT)
"""
EARLIER: Final = """
BEGIN; UPDATE gate SET v = 1; UPDATE t SET v = 'first' WHERE id = 1;
UPDATE t SET id = 12 WHERE id = 2; INSERT INTO child VALUES (1, 1);
INSERT INTO bare VALUES (1, 'first'); COMMIT
"""
LATER: Final = """
UPDATE t SET v = 'second' WHERE id = 1; UPDATE t SET u = 30, v = 'second' WHERE id = 3;
INSERT INTO t VALUES (4, 3, 'took the value of 3'); UPDATE t SET id = 14 WHERE id = 4;
INSERT INTO parent VALUES (3); INSERT INTO child VALUES (3, 3); DELETE FROM child WHERE id = 3;
DELETE FROM parent WHERE id = 3; INSERT INTO bare VALUES (2, 'second'); INSERT INTO bare VALUES
(2, 'second'); UPDATE bare SET v = 'changed' WHERE id = 2; DELETE FROM t WHERE id = 14;
INSERT INTO t VALUES (5, 3, 'took it again')
"""
TABLES: Final = ("t", "bare", "parent", "child", "gate")


def killed_with_a_hole(pair: Pair, folder: Path, settings: dict[str, Value]) -> DaemonProcess:
    """Kill a daemon whose first transaction is held back, and all later ones have committed."""
    pair.source.sql(SETUP)
    daemon = DaemonProcess(pair.source, pair.target, folder, settings)
    daemon.start()
    daemon.wait_until_caught_up()
    # The source knows nothing of it, or would have these transactions run alone.
    pair.target.sql("ALTER TABLE a.child ADD FOREIGN KEY (parent) REFERENCES a.parent (id)")
    with closing(pair.target.client()) as client, client.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("SELECT * FROM a.gate FOR UPDATE")
        pair.source.sql(EARLIER, "a")
        pair.source.sql(LATER, "a")
        deadline = time.monotonic() + 30
        while not pair.target.sql("SELECT * FROM a.t WHERE id = 5"):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        daemon.kill()
        # Otherwise it goes on with what it has received.
        pair.target.kill()
    pair.target.start()
    return daemon


def contents(server: Server) -> dict[str, list[tuple[object, ...]]]:
    return {table: sorted(server.sql(f"SELECT * FROM a.{table}"), key=str) for table in TABLES}
