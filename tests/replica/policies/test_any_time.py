"""consistency = "any_time": commits in the source's order over all workers.

What a reader of the target sees has existed on the source; locks that a later transaction holds do
not stop an earlier one.
"""

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Final

import pytest

from mtsd.replica.ways.giving_way import must_give_way
from mtsd.schedule.policies.choice import POLICIES
from tests.fix_families import mariadbs
from tests.fix_kills import kill_at_random
from tests.load.compare import differences
from tests.load.journal import audit
from tests.load.mariadb import MariadbLoad, unequal
from tests.load.mixed import Mix, MixedLoad
from tests.replica.daemon_process import DaemonProcess, Value
from tests.servers.mysqld import GTIDS, Server
from tests.servers.pair import Pair
from tests.servers.provision import Options

SERVERS: Final = [pytest.mark.servers, pytest.mark.timeout(900)]
LONG: Final = pytest.mark.long
LONGER: Final = [*SERVERS, LONG]
ANY_TIME: Final[dict[str, Value]] = {"replica.consistency": "any_time"}
OBSERVED: Final[Options] = {**GTIDS, "performance_schema": "ON"}
MIX: Final = Mix(statement_format=True, create_select=True, non_transactional=True, over_max=False)
GROUPS: Final = 1500
SAMPLES: Final = 10
ROUNDS: Final = 10


def test_who_gives_way() -> None:
    earlier = {7, 8}
    assert not must_give_way(0.05, set(), earlier)
    assert not must_give_way(0.05, {9}, earlier), "a person, or a later group"
    assert must_give_way(0.05, {9, 8}, earlier)
    assert not must_give_way(4.9, set(), earlier)
    assert must_give_way(5.0, set(), earlier), "a lock that is in no table"
    assert not must_give_way(0.9, None, earlier)
    assert must_give_way(1.0, None, earlier)


@pytest.fixture(scope="module")
def loaded() -> Iterator[tuple[Server, MixedLoad]]:
    """Start a source whose binary log contains everything that a load consists of."""
    with Server(GTIDS) as source:
        load = MixedLoad(source, seed=12, databases=2, mix=MIX)
        load.prepare()
        load.run(transactions=200)
        yield source, load


SHORT: Final = {("database", 4)}
"""By the clock, what the suite applies in other ways is applied."""


@pytest.mark.parametrize(
    ("policy", "workers"),
    [
        pytest.param(policy, workers, marks=SERVERS if (policy, workers) in SHORT else LONGER)
        for policy in POLICIES
        for workers in (0, 1, 4, 16)
    ],
)
def test_equal(policy: str, workers: int, loaded: tuple[Server, MixedLoad], tmp_path: Path) -> None:
    source, load = loaded
    settings: dict[str, Value] = {
        **ANY_TIME,
        "replica.parallel_type": policy,
        "replica.parallel_workers": workers,
        "replica.batch_groups": 8,
    }
    with Server(GTIDS) as target:
        with DaemonProcess(source, target, tmp_path, settings) as daemon:
            daemon.wait_until_caught_up()
            assert daemon.stop() == 0
        assert differences(source, target) == []
        assert audit(target, load.ledger) == []


@pytest.mark.servers
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "more",
    [
        {"target.apply_mode": "sql"},
        {"target.gtid": "preserve"},
        pytest.param({"replica.batch_groups": 1}, marks=LONG),
    ],
    ids=["sql", "preserve", "one by one"],
)
def test_rows_in_other_ways(
    more: dict[str, Value], loaded: tuple[Server, MixedLoad], tmp_path: Path
) -> None:
    source, load = loaded
    with Server(GTIDS) as target:
        settings: dict[str, Value] = {
            **ANY_TIME,
            "replica.parallel_type": "logical_clock",
            "replica.batch_groups": 8,
            **more,
        }
        with DaemonProcess(source, target, tmp_path, settings) as daemon:
            daemon.wait_until_caught_up()
            assert daemon.stop() == 0
        assert differences(source, target) == []
        assert audit(target, load.ledger) == []


@pytest.mark.servers
@pytest.mark.timeout(900)
def test_group_commits_of_mariadb(tmp_path: Path) -> None:
    waits: Options = {"binlog_commit_wait_count": 4, "binlog_commit_wait_usec": 20_000}
    with mariadbs(options=waits) as pair:
        load = MariadbLoad(pair.source, 3, ("ROW", "ROW", "MIXED"))
        load.prepare()
        load.run(transactions=80)
        settings: dict[str, Value] = {
            **ANY_TIME,
            "replica.parallel_type": "commit_parent",
            "replica.batch_groups": 4,
        }
        with DaemonProcess(pair.source, pair.target, tmp_path, settings) as daemon:
            daemon.wait_until_caught_up()
            assert daemon.stop() == 0
        assert unequal(pair.source, pair.target) == []


@pytest.mark.parametrize(
    ("policy", "kills"),
    [
        pytest.param("logical_clock", 3, marks=SERVERS),
        *(pytest.param(policy, 100, marks=LONGER) for policy in POLICIES),
    ],
)
def test_killed(policy: str, kills: int, tmp_path: Path) -> None:
    with Pair(GTIDS, GTIDS) as pair:
        settings: dict[str, Value] = {
            **ANY_TIME,
            "replica.parallel_type": policy,
            "replica.batch_groups": 4,
        }
        kill_at_random(pair, tmp_path, kills, MIX, **settings)


class Histories:
    """A reader that samples two tables, and the position, each time in one snapshot."""

    def __init__(self, target: Server) -> None:
        self._target = target
        self._stopping = Event()
        self.samples: set[tuple[int, int, int, int, int]] = set()
        """Rows and highest number of a, the same of b, and the highest offset of the workers."""

    def _read(self) -> None:
        with closing(self._target.client()) as client, client.cursor() as cursor:
            while not self._stopping.is_set():
                cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
                found: list[int] = []
                for query in (
                    "SELECT COUNT(*), COALESCE(MAX(n), 0) FROM one.t",
                    "SELECT COUNT(*), COALESCE(MAX(n), 0) FROM two.t",
                    "SELECT MAX(Master_log_pos) FROM mtsd.slave_worker_info",
                ):
                    cursor.execute(query)
                    found += [int(value or 0) for value in cursor.fetchone() or ()]
                cursor.execute("COMMIT")
                a, most_a, b, most_b, offset = found
                self.samples.add((a, most_a, b, most_b, offset))

    @contextmanager
    def sampling(self) -> Iterator[None]:
        """Sample for the time of the block."""
        self._stopping.clear()
        thread = Thread(target=self._read)
        thread.start()
        try:
            yield
        finally:
            self._stopping.set()
            thread.join()

    def violations(self) -> list[tuple[int, int, int, int, int]]:
        """Return the samples of what the source has never been."""
        found = []
        offsets: dict[int, int] = {}
        for sample in sorted(self.samples):
            a, most_a, b, most_b, offset = sample
            is_state = a == most_a and b == most_b and a - b in {0, 1}
            # One place for each state, and later states at later ones.
            if not is_state or offsets.setdefault(a + b, offset) != offset:
                found.append(sample)
        if list(offsets.values()) != sorted(offsets.values()):
            found.append((0, 0, 0, 0, 0))
        return found


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("policy", "consistency"),
    [
        pytest.param("logical_clock", "any_time", marks=SERVERS),
        pytest.param("logical_clock", "partition", marks=SERVERS),
        pytest.param("row", "any_time", marks=LONGER),
        pytest.param("row", "partition", marks=LONGER),
        pytest.param("database", "any_time", marks=LONGER),
        pytest.param("database", "partition", marks=LONGER),
        pytest.param("table", "any_time", marks=LONGER),
        pytest.param("commit_parent", "any_time", marks=LONGER),
    ],
)
def test_histories(policy: str, consistency: str, tmp_path: Path) -> None:
    """The source writes to one table and the other in turn; under `partition` it can be seen."""
    with Pair(GTIDS, GTIDS) as pair:
        for server in (pair.source, pair.target):
            server.sql(
                "CREATE DATABASE one; CREATE TABLE one.t (n INT PRIMARY KEY);"
                "CREATE DATABASE two; CREATE TABLE two.t (n INT PRIMARY KEY)"
            )
        file, offset, _ = pair.source.binlog_end()
        settings: dict[str, Value] = {
            "source.start": f"{file}:{offset}",
            "replica.consistency": consistency,
            "replica.parallel_type": policy,
            "replica.batch_groups": 4,
        }
        # The position tables have to be there before they are read.
        daemon = DaemonProcess(pair.source, pair.target, tmp_path, settings)
        daemon.start(arguments=["--until-position", f"{file}:{offset}"])
        assert daemon.wait() == 0, daemon.last_words()
        histories = Histories(pair.target)
        # How often the reader comes to read while a backlog is applied is the machine's matter.
        for each in range(ROUNDS):
            with closing(pair.source.client()) as client, client.cursor() as cursor:
                for number in range(each * GROUPS + 1, (each + 1) * GROUPS + 1):
                    cursor.execute(f"INSERT INTO one.t VALUES ({number})")
                    cursor.execute(f"INSERT INTO two.t VALUES ({number})")
            with histories.sampling():
                daemon.start()
                daemon.wait_until_caught_up()
                status = daemon.status()
                assert daemon.stop() == 0
            assert status is not None
            assert sum(worker.groups > 0 for worker in status.workers) > 1
            enough = len(histories.samples) > SAMPLES
            if enough and (consistency == "any_time" or histories.violations()):
                break
        assert len(histories.samples) > SAMPLES
        assert bool(histories.violations()) == (consistency == "partition")
        assert differences(pair.source, pair.target) == []


def _invert(pair: Pair, folder: Path, settings: dict[str, Value], *, readable: bool = True) -> None:
    """Make a later transaction hold what an earlier one needs, and apply both.

    Only the target has the foreign key, and since the start, so the source and every policy take
    them for independent.
    The earlier one is stopped by a client's lock until the later one holds its own.
    """
    for server in (pair.source, pair.target):
        server.sql(
            "CREATE DATABASE a; CREATE TABLE a.parent (id INT PRIMARY KEY, v INT);"
            "CREATE TABLE a.gate (id INT PRIMARY KEY, v INT);"
            "CREATE DATABASE b; CREATE TABLE b.child (id INT PRIMARY KEY, parent INT);"
            "INSERT INTO a.parent VALUES (1, 0); INSERT INTO a.gate VALUES (1, 0);"
            "INSERT INTO b.child VALUES (1, 1)"
        )
    file, offset, _ = pair.source.binlog_end()
    settings = {**ANY_TIME, **settings, "source.start": f"{file}:{offset}"}
    with DaemonProcess(pair.source, pair.target, folder, settings) as daemon:
        daemon.wait_until_caught_up()
        pair.target.sql("ALTER TABLE b.child ADD FOREIGN KEY (parent) REFERENCES a.parent (id)")
        with closing(pair.target.client()) as client, client.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute("SELECT * FROM a.gate WHERE id = 1 FOR UPDATE")
            pair.source.sql(
                "BEGIN; UPDATE a.gate SET v = 9 WHERE id = 1;"
                " UPDATE a.parent SET v = 9 WHERE id = 1; COMMIT;"
                "INSERT INTO b.child VALUES (9, 1)"
            )
            time.sleep(0.5)
            cursor.execute("COMMIT")
        daemon.wait_until_caught_up()
        status = daemon.status()
        assert status is not None
        assert sum(worker.retries for worker in status.workers) == 0
        assert daemon.stop() == 0
        given_way = [each for each in daemon.records() if "gives way" in str(each["event"])]
        assert sum(worker.gave_way for worker in status.workers) == len(given_way)
        assert len(given_way) == 1
        assert given_way[0]["locks_readable"] == readable
    for table in ("a.parent", "a.gate", "b.child"):
        rows = [server.sql(f"SELECT * FROM {table}") for server in (pair.source, pair.target)]
        assert rows[0] == rows[1], table


@pytest.mark.servers
@pytest.mark.timeout(900)
@pytest.mark.parametrize("policy", ["database", pytest.param("logical_clock", marks=LONG)])
def test_a_later_one_gives_way(policy: str, tmp_path: Path) -> None:
    with Pair(GTIDS, OBSERVED) as pair:
        _invert(pair, tmp_path, {"replica.parallel_type": policy})


@pytest.mark.servers
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("user", "options"), [("blind", OBSERVED), ("root", GTIDS)])
def test_a_later_one_gives_way_where_locks_cannot_be_read(
    user: str, options: Options, tmp_path: Path
) -> None:
    with Pair(GTIDS, options) as pair:
        pair.target.sql(
            "SET sql_log_bin = 0; CREATE USER blind; GRANT ALL ON *.* TO blind;"
            "REVOKE PROCESS ON *.* FROM blind"
        )
        _invert(pair, tmp_path, {"target.user": user}, readable=False)


@pytest.mark.servers
@pytest.mark.timeout(900)
def test_a_later_one_gives_way_on_mariadb(tmp_path: Path) -> None:
    with mariadbs() as pair:
        _invert(pair, tmp_path, {})
