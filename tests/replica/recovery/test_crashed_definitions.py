"""Definitions that a target was applying when it crashed: each is applied once.

A definition is as good as always in flight here, and a MariaDB that recovers completes some of
them, undoes others, and logs what it completes under another thread id.
"""

import random
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import pytest

from mtsd.model.fault_points import FaultPoint
from tests.fix_daemon import NEEDS_PERSON, assert_none_in_doubt, command
from tests.fix_families import pair_of
from tests.load.equality import unequal
from tests.replica.daemon_process import DaemonProcess
from tests.servers.mysqld import GTIDS, NO_GTIDS, Options, Server
from tests.servers.pair import Pair

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]
LONG = (pytest.mark.long, pytest.mark.timeout(3600))
TABLE = (
    "CREATE DATABASE d; USE d; CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20)) ENGINE = InnoDB;"
    "CREATE TABLE m (id INT PRIMARY KEY, v VARCHAR(20)) ENGINE = MyISAM;"
    "INSERT INTO t VALUES (1, 'a'), (2, 'b'); INSERT INTO m SELECT * FROM t"
)
DEFINITIONS = (
    # Applied twice, an index stays behind.
    "ALTER TABLE t ADD INDEX (v)", "ALTER TABLE t DROP INDEX v",
    "ALTER TABLE t ADD INDEX (v, id), ALGORITHM = COPY", "CREATE INDEX w ON t (v)",
    "ALTER TABLE t DROP INDEX v, DROP INDEX w",
    "CREATE TABLE made SELECT * FROM t", "RENAME TABLE made TO other", "TRUNCATE TABLE other",
    "DROP TABLE other", "CREATE OR REPLACE VIEW seen AS SELECT v FROM t", "DROP VIEW seen",
    "CREATE DATABASE e", "CREATE TABLE e.t (i INT)", "DROP DATABASE e",
    "CREATE USER u@localhost", "DROP USER u@localhost",
    "CREATE TRIGGER r BEFORE INSERT ON t FOR EACH ROW SET NEW.v = 'r'", "DROP TRIGGER r",
)  # fmt: skip
OF_MARIADB = (
    "ALTER TABLE m ADD INDEX (v)", "ALTER TABLE m DROP INDEX v",
    "RENAME TABLE t TO s, m TO t, s TO m", "RENAME TABLE t TO s, m TO t, s TO m",
    "CREATE OR REPLACE TABLE again (i INT)", "CREATE OR REPLACE TABLE again (j INT, k INT)",
)  # fmt: skip
"""A MySQL defines a table of MyISAM and logs that in two steps."""


@contextmanager
def defining(source: Server, definitions: tuple[str, ...]) -> Iterator[None]:
    """Run definitions on a source, over and over, during the block.

    No more of them than a target keeps up with: what it is behind costs time, and shows nothing.
    """
    stopping = Event()

    def define() -> None:
        with source.client("d") as client, client.cursor() as cursor:
            while not stopping.is_set():
                for definition in definitions:
                    cursor.execute(definition)
                    time.sleep(0.02)

    thread = Thread(target=define)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join()


@pytest.mark.parametrize(
    ("target", "kills"),
    [
        ("11.8", 4),
        *(pytest.param(series, 80, marks=LONG) for series in ("10.11", "11.8", "9.7")),
    ],
)
def test_each_is_applied_once(target: str, kills: int, tmp_path: Path) -> None:
    chance = random.Random(f"{target} {kills}")
    with pair_of("9.7" if target == "9.7" else "11.8", target) as pair:
        if target == "9.7":
            # What a definition may leave behind are files.
            pair.target.restart({"innodb_file_per_table": "ON"})
        pair.source.sql(TABLE)
        definitions = DEFINITIONS if target == "9.7" else DEFINITIONS + OF_MARIADB
        daemon = DaemonProcess(pair.source, pair.target, tmp_path)
        daemon.start()
        # Killed in the INSERT into a table of MyISAM, it would rightly ask what to do.
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        with defining(pair.source, definitions):
            for _ in range(kills):
                daemon.start()
                time.sleep(0.5 + chance.random() * 0.4)
                pair.target.kill()
                daemon.kill()
                pair.target.start()
        daemon.start()
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        assert unequal(pair.source, pair.target) == []
        assert_none_in_doubt(pair.target)


INDEXES = (
    "SELECT COUNT(*) FROM information_schema.statistics WHERE table_schema = 'd'"
    " AND table_name = '{}' AND column_name = 'v'"
)


@pytest.mark.parametrize(
    ("options", "table", "crash", "asked"),
    [
        (GTIDS, "m", True, True),
        (NO_GTIDS, "m", True, True),
        *(
            pytest.param(options, *case, marks=pytest.mark.long)
            for options in (GTIDS, NO_GTIDS)
            for case in (("m", False, False), ("t", True, False))
        ),
    ],
)
def test_a_mysql_may_have_defined_what_it_has_not_logged(
    options: Options, table: str, crash: bool, asked: bool, tmp_path: Path
) -> None:
    with Pair(GTIDS, options) as pair:
        pair.source.sql(TABLE)
        daemon = DaemonProcess(pair.source, pair.target, tmp_path)
        daemon.start()
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        # What may compute a default does not go with its record.
        definition = f"ALTER TABLE d.{table} ADD INDEX (v), ALTER v DROP DEFAULT"
        pair.source.sql(definition)
        daemon.start(fault=FaultPoint.AFTER_IN_DOUBT)
        daemon.wait()
        if asked:
            # The server crashes between the two steps.
            pair.target.sql(f"SET sql_log_bin = 0; {definition}")
        if crash:
            pair.target.kill()
            pair.target.start()
        daemon.start()
        if asked:
            assert daemon.wait() == NEEDS_PERSON, daemon.last_words()
            said = str(daemon.records()[-1]["error"])
            assert "been restarted since without having logged it" in said
            found = re.search(r"--group (\d+) --applied", said)
            assert found is not None, said
            command(daemon, "resolve", "--group", found[1], "--applied")
            daemon.start()
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        assert pair.target.sql(INDEXES.format(table)) == [(1,)]
        assert unequal(pair.source, pair.target) == []
