"""Every policy gives the same data, whatever the number of workers, through kills and changes."""

import random
import re
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from itertools import product
from pathlib import Path
from threading import Barrier, Lock, Thread
from typing import Final

import pymysql
import pytest

from mtsd.schedule.policies.choice import POLICIES
from tests.fix_families import mariadbs
from tests.fix_kills import kill_at_random, kill_either
from tests.fix_loads import live_load
from tests.load.compare import differences
from tests.load.journal import audit
from tests.load.mariadb import unequal
from tests.load.mixed import Mix, MixedLoad
from tests.load.xa import XaLoad
from tests.replica.daemon_process import DaemonProcess, Value
from tests.replica.xa.xa_of_mysql import assert_equal
from tests.servers.mysqld import GTIDS, NO_GTIDS, Server
from tests.servers.pair import Pair
from tests.servers.provision import Options

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]

MIX: Final = Mix(statement_format=True, create_select=True, non_transactional=True)
TRANSACTIONS: Final = 300
OTHERS: Final = [name for name in POLICIES if name != "database"]
"""The database policy is the default: most other tests run it."""
FEW_WORKERS: Final = {("logical_clock", 0), ("row", 1)}
LONG = pytest.mark.long


@pytest.fixture(scope="module")
def loaded() -> Iterator[tuple[Server, MixedLoad]]:
    """Start a source whose binary log contains everything that a load consists of."""
    with Server(GTIDS) as source:
        load = MixedLoad(source, seed=11, databases=2, mix=MIX)
        load.prepare()
        load.run(transactions=TRANSACTIONS)
        yield source, load


@pytest.mark.parametrize(
    ("policy", "workers"),
    [
        pytest.param(
            policy, workers, marks=() if workers == 4 or (policy, workers) in FEW_WORKERS else LONG
        )
        for policy in POLICIES
        for workers in (0, 1, 4, 16)
    ],
)
def test_equal(policy: str, workers: int, loaded: tuple[Server, MixedLoad], tmp_path: Path) -> None:
    source, load = loaded
    settings: dict[str, Value] = {
        "replica.parallel_type": policy,
        "replica.parallel_workers": workers,
    }
    with Server(GTIDS) as target:
        with DaemonProcess(source, target, tmp_path, settings) as daemon:
            daemon.wait_until_caught_up()
            assert daemon.stop() == 0
        assert differences(source, target) == []
        assert audit(target, load.ledger) == []


@pytest.mark.parametrize(
    ("policy", "kills"),
    [
        ("row", 3),
        *(pytest.param(policy, 100, marks=[LONG, pytest.mark.timeout(1800)]) for policy in OTHERS),
    ],
)
def test_killed(policy: str, kills: int, tmp_path: Path) -> None:
    with Pair(GTIDS, GTIDS) as pair:
        kill_at_random(pair, tmp_path, kills, MIX, **{"replica.parallel_type": policy})


@pytest.mark.parametrize("rounds", [1, pytest.param(10, marks=LONG)])
def test_another_policy_after_each_kill(rounds: int, tmp_path: Path) -> None:
    """What one policy has applied out of order is neither lost nor repeated under another."""
    chance = random.Random(3)
    mix = replace(MIX, over_max=rounds > 1, non_transactional=False)
    with Pair(GTIDS, GTIDS) as pair:
        daemon = DaemonProcess(pair.source, pair.target, tmp_path)
        with live_load(pair, seed=3, rate=60, mix=mix) as load:
            for policy in list(POLICIES) * rounds:
                daemon.settings["replica.parallel_type"] = policy
                daemon.settings["replica.parallel_workers"] = chance.choice((0, 1, 3, 8))
                kill_either(pair, daemon, chance, 1)
        daemon.start()
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        assert audit(pair.target, load.ledger) == []
        assert differences(pair.source, pair.target) == []


@pytest.mark.parametrize(
    "policy", [pytest.param(name, marks=() if name == "row" else LONG) for name in OTHERS]
)
def test_prepared_transactions(policy: str, tmp_path: Path) -> None:
    with Pair(GTIDS, GTIDS) as pair:
        load = XaLoad(pair.source, seed=4, reuse=True)
        load.prepare()
        settings: dict[str, Value] = {"replica.parallel_type": policy}
        with DaemonProcess(pair.source, pair.target, tmp_path, settings) as daemon:
            load.run(completed=100, rate=40)
            load.complete_all(but=1)
            assert_equal(pair, daemon)
            daemon.kill()
            daemon.start()
            load.complete_all()
            assert_equal(pair, daemon)
            assert daemon.stop() == 0


def write_rows(server: Server, table: int) -> None:
    with closing(server.client("a")) as client, client.cursor() as cursor:
        for row in range(200):
            cursor.execute(f"INSERT INTO t{table} VALUES ({row}, 0)")
            if row % 20 == 0:
                cursor.execute(f"UPDATE t{table} SET v = v + 1 WHERE id = {row // 2}")


@pytest.mark.parametrize("policy", ["auto", "row", pytest.param("table", marks=LONG)])
def test_one_database_over_all_workers(policy: str, tmp_path: Path) -> None:
    """What the database policy cannot apply in parallel."""
    with Pair(GTIDS, GTIDS) as pair:
        pair.source.sql("CREATE DATABASE a")
        for table in range(8):
            pair.source.sql(f"CREATE TABLE a.t{table} (id INT PRIMARY KEY, v INT)")
        in_parallel(write_rows, pair.source, 8)
        settings: dict[str, Value] = {"replica.parallel_type": policy, "replica.batch_groups": 8}
        with DaemonProcess(pair.source, pair.target, tmp_path, settings) as daemon:
            daemon.wait_until_caught_up()
            status = daemon.status()
            assert status is not None
            assert all(worker.groups for worker in status.workers)
            assert status.parallel_type == ("logical_clock" if policy == "auto" else policy)
            assert bool(status.parallel_type_because) == (policy == "auto")
            assert daemon.stop() == 0
        assert differences(pair.source, pair.target) == []


def change_both_engines(server: Server, number: int) -> None:
    with closing(server.client("a")) as client, client.cursor() as cursor:
        for row in range(100 * number, 100 * number + 100):
            cursor.execute("BEGIN")
            cursor.execute(f"INSERT INTO i VALUES ({row}, {number})")
            cursor.execute(f"INSERT INTO m VALUES ({row}, {number})")
            cursor.execute(f"UPDATE i SET v = v + 1 WHERE id = {row}")
            cursor.execute("COMMIT")


@pytest.mark.parametrize("policy", ["logical_clock", pytest.param("row", marks=LONG)])
def test_transactions_with_two_engines(policy: str, tmp_path: Path) -> None:
    """The source logs each as two groups, of which only one has waited for others' commits."""
    with Pair(NO_GTIDS, NO_GTIDS) as pair:
        pair.source.sql(
            "CREATE DATABASE a; CREATE TABLE a.i (id INT PRIMARY KEY, v INT);"
            "CREATE TABLE a.m (id INT PRIMARY KEY, v INT) ENGINE = MyISAM"
        )
        daemon = DaemonProcess(
            pair.source, pair.target, tmp_path, {"replica.parallel_type": policy}
        )
        daemon.start()
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        file, offset, _ = pair.source.binlog_end()
        in_parallel(change_both_engines, pair.source, 4)
        begun = [
            event
            for event in pair.source.sql(f"SHOW BINLOG EVENTS IN '{file}' FROM {offset}")
            if event[2] == "Anonymous_Gtid"
        ]
        assert len(begun) == 2 * 400
        daemon.start()
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        assert differences(pair.source, pair.target) == []


@pytest.mark.parametrize("workers", [0, 1, 4])
def test_group_commits_of_mariadb(workers: int, tmp_path: Path) -> None:
    waits: Options = {"binlog_commit_wait_count": 8, "binlog_commit_wait_usec": 50_000}
    with mariadbs(options=waits) as pair:
        pair.source.sql("CREATE DATABASE a")
        for table in range(8):
            pair.source.sql(f"CREATE TABLE a.t{table} (id INT PRIMARY KEY, v INT)")
        in_parallel(write_rows, pair.source, 8)
        settings: dict[str, Value] = {
            "replica.parallel_type": "commit_parent",
            "replica.parallel_workers": workers,
            "replica.batch_groups": 1,
        }
        with DaemonProcess(pair.source, pair.target, tmp_path, settings) as daemon:
            daemon.wait_until_caught_up()
            status = daemon.status()
            assert status is not None
            assert all(worker.groups for worker in status.workers)
            assert len(status.workers) == max(workers, 1)
            assert daemon.stop() == 0
        assert unequal(pair.source, pair.target) == []


@pytest.mark.parametrize(
    "settings",
    [
        {"replica.parallel_type": "commit_parent"},
        {"replica.consistency": "eventual"},
        pytest.param({"replica.parallel_type": "row"}, marks=LONG),
        pytest.param(
            {"replica.parallel_type": "commit_parent", "replica.consistency": "any_time"},
            marks=LONG,
        ),
    ],
    ids=lambda settings: " ".join(settings.values()),
)
@pytest.mark.parametrize("series", ["10.11", pytest.param("11.8", marks=LONG)])
def test_sequences_do_not_go_back(series: str, settings: dict[str, Value], tmp_path: Path) -> None:
    """Those who take a number of one sequence at nearly the same time share a group commit.

    At exactly the same time, a MariaDB may log them in another order: the target has what the
    log says.
    """
    waits: Options = {"binlog_commit_wait_count": 8, "binlog_commit_wait_usec": 50_000}
    with mariadbs(series, options=waits) as pair:
        pair.source.sql("CREATE DATABASE a; CREATE TABLE a.t (s INT, v INT, PRIMARY KEY (s, v))")
        for number in range(30):
            pair.source.sql(f"CREATE SEQUENCE a.s{number} NOCACHE")
        at_once = Barrier(8)

        def take_numbers(server: Server, session: int) -> None:
            with closing(server.client("a")) as client, client.cursor() as cursor:
                for number in range(30):
                    at_once.wait()
                    time.sleep(session / 300)
                    take = "SELECT" if number < 15 else f"INSERT INTO t SELECT {number},"
                    cursor.execute(f"{take} NEXTVAL(s{number})")

        in_parallel(take_numbers, pair.source, 8)
        every = {"replica.parallel_workers": 8, "replica.batch_groups": 1, **settings}
        with DaemonProcess(pair.source, pair.target, tmp_path, every) as daemon:
            daemon.wait_until_caught_up()
            assert daemon.stop() == 0
        logged = logged_last(pair.source)
        assert sorted(logged) == list(range(30))
        for number, value in logged.items():
            next_value = f"SELECT next_not_cached_value FROM a.s{number}"
            assert pair.target.sql(next_value) == [(value,)], number
        swapped = [number for number, value in logged.items() if value != 9]
        assert len(swapped) < 10
        for number, server in product(swapped, (pair.source, pair.target)):
            server.sql(f"DROP SEQUENCE a.s{number}")
        assert unequal(pair.source, pair.target) == []


TAKEN: Final = re.compile(rb"### INSERT INTO `a`\.`s(\d+)`\n### SET\n###   @1=(\d+)")


def logged_last(server: Server) -> dict[int, int]:
    """Return what the log says last of each sequence: the next value, by the sequence's number."""
    files = [str(name) for name, *_ in server.sql("SHOW BINARY LOGS")]
    text = server.tool("mysqlbinlog", "-v", *files)
    return {int(number): int(value) for number, value in TAKEN.findall(text)}


def in_parallel(write: Callable[[Server, int], None], server: Server, count: int) -> None:
    threads = [Thread(target=write, args=(server, number)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


FAMILIES: Final = """
    CREATE DATABASE a; USE a;
    CREATE TABLE parent (id INT PRIMARY KEY, v INT);
    CREATE TABLE child (
        id INT PRIMARY KEY, parent_id INT, v INT,
        FOREIGN KEY (parent_id) REFERENCES parent (id) ON DELETE CASCADE ON UPDATE CASCADE);
    CREATE TABLE grandchild (
        id INT AUTO_INCREMENT PRIMARY KEY, child_id INT, v INT,
        FOREIGN KEY (child_id) REFERENCES child (id) ON DELETE SET NULL ON UPDATE CASCADE);
    CREATE TABLE apart (id INT PRIMARY KEY, v INT);
    INSERT INTO parent VALUES (0, 0), (1, 0), (2, 0), (3, 0);
    INSERT INTO apart VALUES (0, NULL), (1, NULL), (2, NULL), (3, NULL)
"""
CHANGES: Final = (
    "INSERT IGNORE INTO parent VALUES ({id}, 0)",
    "INSERT IGNORE INTO child VALUES ({id}, {other}, {n})",
    "INSERT IGNORE INTO child VALUES ({id}, {id}, {n})",
    "INSERT IGNORE INTO grandchild (child_id, v) VALUES ({id}, {n})",
    "UPDATE IGNORE child SET parent_id = {other}, v = {n} WHERE id = {id}",
    "UPDATE IGNORE parent SET id = {other} WHERE id = {id}",
    "DELETE FROM parent WHERE id = {id}",
    "DELETE FROM child WHERE id = {id}",
    "UPDATE IGNORE apart SET v = {other} WHERE id = {id}",
)  # fmt: skip


ONE_AT_A_TIME: Final = Lock()
"""A deadlock inside a cascade is no error for MySQL 9.7, and its binary log is wrong afterwards."""


def change_families(server: Server, number: int) -> None:
    chance = random.Random(number)
    with closing(server.client("a")) as client, client.cursor() as cursor:
        for step in range(150):
            change = chance.choice(CHANGES)
            row, other = chance.randrange(8), chance.randrange(8)
            try:
                with ONE_AT_A_TIME:
                    cursor.execute(change.format(id=row, other=other, n=step))
            except pymysql.err.MySQLError as error:
                if error.args[0] not in {1451, 1452, 1062}:
                    raise


@pytest.mark.parametrize("policy", POLICIES)
def test_foreign_keys(policy: str, tmp_path: Path) -> None:
    """Few rows that refer to each other, so that nearly everything depends on what is near."""
    with Pair(GTIDS, GTIDS) as pair:
        settings: dict[str, Value] = {"replica.parallel_type": policy, "replica.batch_groups": 4}
        daemon = DaemonProcess(pair.source, pair.target, tmp_path, settings)
        pair.source.sql(FAMILIES)
        daemon.start()
        daemon.wait_until_caught_up()
        # Foreign keys that exist at a start, and, with the backlog, more of them.
        assert daemon.stop() == 0
        in_parallel(change_families, pair.source, 4)
        pair.source.sql(
            "UPDATE a.apart SET v = NULL;"
            "ALTER TABLE a.apart ADD FOREIGN KEY (v) REFERENCES a.parent (id)"
        )
        in_parallel(change_families, pair.source, 4)
        daemon.start()
        daemon.wait_until_caught_up()
        if policy == "table":
            status = daemon.status()
            assert status is not None
            names = {partition.name for partition in status.partitions}
            assert names == {"a.apart", "a.child+a.grandchild+a.parent", "a.*"}
        assert daemon.stop() == 0
        assert differences(pair.source, pair.target) == []
