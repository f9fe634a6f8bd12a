"""Sessions of the daemon that are killed on either server at any instant."""

import random
import time
from contextlib import closing, suppress
from pathlib import Path

import pymysql
import pytest

from mtsd.schedule.policies.choice import POLICIES
from tests.load.compare import differences
from tests.load.journal import audit
from tests.load.mixed import Mix, MixedLoad
from tests.replica.daemon_process import DaemonProcess, Value
from tests.servers.locks import wait_for_lock_wait
from tests.servers.mysqld import GTIDS, Server
from tests.servers.pair import Pair

# They go on for as long as a busy machine needs.
pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]

SETTINGS: dict[str, Value] = {
    "replica.pending_jobs_size_max": 262_144,
    "replica.batch_bytes": 65_536,
    "replica.checkpoint_group": 256,
    "replica.checkpoint_period": 0.1,
    "source.user": "mtsd_here",
    "target.user": "mtsd_here",
}

RETRIES = 4
MIX = Mix(statement_format=True)


def sessions(server: Server) -> list[int]:
    """Return the ids of the daemon's sessions, the oldest first."""
    return sorted(int(row[0]) for row in server.sql("SHOW PROCESSLIST") if row[1] == "mtsd_here")


@pytest.mark.parametrize(
    "kills",
    [pytest.param(3), pytest.param(150, marks=[pytest.mark.long, pytest.mark.timeout(1800)])],
)
def test_killed_at_random(kills: int, tmp_path: Path) -> None:
    chance = random.Random(kills)
    with Pair(GTIDS, GTIDS) as pair:
        for server in (pair.source, pair.target):
            server.sql(
                "SET sql_log_bin = 0; CREATE USER mtsd_here@'%'; GRANT ALL ON *.* TO mtsd_here@'%'"
            )
        load = MixedLoad(pair.source, seed=kills, databases=2, mix=MIX)
        load.prepare()
        with DaemonProcess(pair.source, pair.target, tmp_path, SETTINGS) as daemon:
            with load.running(rate=60):
                for number in range(kills):
                    # Each kind in turn: the dump, the channel's session, a worker.
                    server = pair.target if number % 3 else pair.source
                    deadline = time.monotonic() + 120
                    while len(found := sessions(server)) < (5 if number % 3 else 1):
                        assert daemon.running, daemon.last_words()
                        assert time.monotonic() < deadline
                        time.sleep(0.02)
                    time.sleep(chance.random() * 0.5)
                    victim = found[0] if number % 3 < 2 else chance.choice(found[1:])
                    # It may have ended by itself meanwhile.
                    with suppress(pymysql.err.OperationalError):
                        server.sql(f"KILL {victim}")
            daemon.wait_until_caught_up(240)
            assert daemon.stop() == 0
        assert audit(pair.target, load.ledger) == []
        assert differences(pair.source, pair.target) == []


def test_a_statement_that_is_interrupted_is_tried_again(tmp_path: Path) -> None:
    with Pair(GTIDS, GTIDS) as pair:
        pair.source.sql(
            "CREATE DATABASE a; CREATE TABLE a.t (id INT PRIMARY KEY, v INT);"
            "INSERT INTO a.t VALUES (1, 0)"
        )
        with DaemonProcess(pair.source, pair.target, tmp_path) as daemon:
            daemon.wait_until_caught_up()
            with closing(pair.target.client()) as other, other.cursor() as cursor:
                cursor.execute("BEGIN")
                cursor.execute("SELECT * FROM a.t FOR UPDATE")
                pair.source.sql("UPDATE a.t SET v = 1; ALTER TABLE a.t ADD INDEX (v)")
                wait_for_lock_wait(pair.target)
                ((waiting,),) = pair.target.sql(
                    "SELECT trx_mysql_thread_id FROM information_schema.INNODB_TRX"
                    " WHERE trx_state = 'LOCK WAIT'"
                )
                pair.target.sql(f"KILL QUERY {waiting}")
                daemon.wait_for_record("retrying")
                cursor.execute("COMMIT")
            daemon.wait_until_caught_up()
            assert daemon.stop() == 0
        retried = [r for r in daemon.records() if r["event"] == "retrying"]
        assert any(record["error"] == 1317 for record in retried)
        assert differences(pair.source, pair.target) == []


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_servers_shut_down_in_good_order(tmp_path: Path) -> None:
    restarts = 30
    chance = random.Random(restarts)
    with Pair(GTIDS, GTIDS) as pair:
        for server in (pair.source, pair.target):
            server.sql(
                "SET sql_log_bin = 0; CREATE USER mtsd_here@'%'; GRANT ALL ON *.* TO mtsd_here@'%'"
            )
        load = MixedLoad(pair.source, seed=restarts, databases=2, tolerant=True)
        load.prepare()
        with DaemonProcess(pair.source, pair.target, tmp_path, SETTINGS) as daemon:
            with load.running(rate=200):
                for number in range(restarts):
                    time.sleep(chance.random() * 1.5)
                    (pair.source if number % 3 == 1 else pair.target).restart()
                    assert daemon.running, daemon.last_words()
            daemon.wait_until_caught_up(240)
            assert daemon.stop() == 0
        assert audit(pair.target, load.ledger) == []
        assert differences(pair.source, pair.target) == []


@pytest.mark.parametrize(
    "policy",
    [pytest.param(name, marks=() if name == "row" else pytest.mark.long) for name in POLICIES],
)
def test_interrupted_transactions_are_retried(policy: str, tmp_path: Path) -> None:
    """A transaction that is tried again keeps its place among those that depend on it."""
    settings: dict[str, Value] = {
        **SETTINGS,
        "replica.parallel_type": policy,
        "replica.batch_groups": 4,
        "replica.transaction_retries": 1000,
    }
    with Pair(GTIDS, GTIDS) as pair:
        for server in (pair.source, pair.target):
            server.sql(
                "SET sql_log_bin = 0; CREATE USER mtsd_here@'%'; GRANT ALL ON *.* TO mtsd_here@'%'"
            )
        load = MixedLoad(pair.source, seed=5, databases=2, mix=MIX)
        load.prepare()
        with DaemonProcess(pair.source, pair.target, tmp_path, settings) as daemon:
            daemon.wait_until_caught_up()
            with load.running(rate=100):
                deadline = time.monotonic() + 120
                # Of a batch that is interrupted, the groups are first applied one by one.
                while sum(record["event"] == "retrying" for record in daemon.records()) < RETRIES:
                    assert time.monotonic() < deadline
                    interrupt(pair.target)
            daemon.wait_until_caught_up()
            assert daemon.stop() == 0
        assert differences(pair.source, pair.target) == []
        assert audit(pair.target, load.ledger) == []


def interrupt(target: Server) -> None:
    """Interrupt a statement of rows that one of the daemon's sessions runs."""
    with closing(target.client()) as client, client.cursor() as cursor:
        cursor.execute("LOCK TABLES d0.accounts WRITE")
        deadline = time.monotonic() + 120
        while True:
            assert time.monotonic() < deadline
            cursor.execute("SHOW PROCESSLIST")
            for id_, user, *_, state, statement in cursor.fetchall():
                if (
                    user == "mtsd_here"
                    and state == "Waiting for table metadata lock"
                    and str(statement).startswith("BINLOG")
                ):
                    cursor.execute(f"KILL QUERY {id_}")
                    return
            time.sleep(0.02)
