"""`mtsd run --until-…`, and `replica.delay`, between real servers."""

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from tests.fix_families import mariadbs
from tests.load.compare import differences
from tests.replica.daemon_process import DaemonProcess, Value
from tests.servers.mysqld import Server
from tests.servers.pair import Pair

pytestmark = pytest.mark.servers


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    with Pair() as pair:
        yield pair


@pytest.fixture(autouse=True)
def _empty(pair: Pair) -> None:
    for server in (pair.source, pair.target):
        for (name,) in server.sql("SHOW DATABASES"):
            if name in {"a", "b", "mtsd"}:
                server.sql(f"DROP DATABASE `{name}`")
        server.sql("RESET BINARY LOGS AND GTIDS")


def prepare(source: Server, rows: int) -> list[tuple[str, int, str]]:
    """Insert `rows` rows, each in a transaction; return where each of them begins, and its GTID."""
    for name in "ab":
        source.sql(f"CREATE DATABASE {name}; CREATE TABLE {name}.t (id INT PRIMARY KEY)")
    places: list[tuple[str, int, str]] = []
    for number in range(rows):
        if number == rows // 2:
            source.sql("FLUSH BINARY LOGS")
        file, offset, _ = source.binlog_end()
        source.sql(f"INSERT INTO {'ab'[number % 2]}.t VALUES ({number})")
        ((executed,),) = source.sql("SELECT @@global.gtid_executed")
        uuid, _, numbers = str(executed).partition(":")
        places.append((file, offset, f"{uuid}:{numbers.rpartition('-')[2]}"))
    return places


def applied(target: Server) -> list[int]:
    rows = target.sql("SELECT id FROM a.t UNION SELECT id FROM b.t ORDER BY id")
    return [int(str(number)) for (number,) in rows]


def run_until(daemon: DaemonProcess, *arguments: str) -> list[int]:
    """Run it until it ends by itself; returns the rows on the target."""
    daemon.start(arguments=arguments)
    assert daemon.wait() == 0
    assert daemon.records()[-1]["event"] == "stopped"
    return applied(daemon.target)


BY_CLOCK: Final[dict[str, Value]] = {"replica.parallel_type": "logical_clock"}
BY_ROW: Final[dict[str, Value]] = {"replica.parallel_type": "row"}
ANY_TIME: Final[dict[str, Value]] = {"replica.consistency": "any_time"}
LONG = pytest.mark.long


@pytest.mark.parametrize(
    "settings",
    [
        {},
        pytest.param({**BY_ROW, **ANY_TIME}, marks=LONG),
        pytest.param(BY_ROW, marks=LONG),
        pytest.param(BY_CLOCK, marks=LONG),
        pytest.param({**BY_CLOCK, **ANY_TIME}, marks=LONG),
        pytest.param({"replica.parallel_type": "table"}, marks=LONG),
        pytest.param({"replica.parallel_type": "commit_parent"}, marks=LONG),
        pytest.param({"replica.consistency": "eventual"}, marks=LONG),
        pytest.param({"replica.parallel_workers": 0}, marks=LONG),
    ],
    ids=lambda settings: " ".join(map(str, settings.values())) or "default",
)
def test_each_condition(pair: Pair, tmp_path: Path, settings: dict[str, Value]) -> None:
    places = prepare(pair.source, 20)
    daemon = DaemonProcess(pair.source, pair.target, tmp_path, settings)
    file, offset, _ = places[3]
    assert run_until(daemon, "--until-position", f"{file}:{offset}") == list(range(3))
    # Inside a transaction, which is applied as a whole.
    assert run_until(daemon, "--until-position", f"{file}:{offset + 1}") == list(range(4))
    assert run_until(daemon, "--until-before-gtids", places[7][2]) == list(range(7))
    assert run_until(daemon, "--until-after-gtids", places[7][2]) == list(range(8))
    assert run_until(daemon, "--until-gaps-filled") == list(range(8))
    both = f"{places[14][2]}:{places[17][2].rpartition(':')[2]}"
    assert run_until(daemon, "--until-after-gtids", both) == list(range(18))
    assert run_until(daemon, "--until-before-gtids", places[1][2]) == list(range(18))
    daemon.start()
    daemon.wait_until_caught_up()
    assert daemon.stop() == 0
    pair.source.sql("FLUSH BINARY LOGS")
    file, offset, _ = pair.source.binlog_end()
    assert run_until(daemon, "--until-position", f"{file}:{offset}") == list(range(20))
    assert differences(pair.source, pair.target) == []


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param(BY_CLOCK, id="logical_clock"),
        pytest.param({}, id="database", marks=LONG),
        pytest.param(ANY_TIME, id="any_time", marks=LONG),
    ],
)
def test_between_a_prepare_and_its_commit(
    pair: Pair, tmp_path: Path, settings: dict[str, Value]
) -> None:
    """The prepare waits for nothing that is not to be read: it is prepared on the target."""
    places = prepare(pair.source, 2)
    pair.source.sql("XA START 'x'; INSERT INTO a.t VALUES (100); XA END 'x'; XA PREPARE 'x'")
    pair.source.sql("INSERT INTO b.t VALUES (101)")
    uuid, _, number = places[-1][2].partition(":")
    prepared, between, commit = (f"{uuid}:{int(number) + each}" for each in (1, 2, 3))
    pair.source.sql("XA COMMIT 'x'; INSERT INTO b.t VALUES (102)")
    daemon = DaemonProcess(pair.source, pair.target, tmp_path, settings)
    assert run_until(daemon, "--until-after-gtids", prepared) == [0, 1]
    assert len(pair.target.sql("XA RECOVER")) == 1
    assert run_until(daemon, "--until-after-gtids", between) == [0, 1, 101]
    assert run_until(daemon, "--until-gaps-filled") == [0, 1, 101]
    assert run_until(daemon, "--until-before-gtids", commit) == [0, 1, 101]
    assert len(pair.target.sql("XA RECOVER")) == 1
    assert run_until(daemon, "--until-after-gtids", commit) == [0, 1, 100, 101]
    assert pair.target.sql("XA RECOVER") == []
    daemon.start()
    daemon.wait_until_caught_up()
    assert daemon.stop() == 0
    assert differences(pair.source, pair.target) == []


def leave_gap(pair: Pair, daemon: DaemonProcess) -> None:
    """Kill the daemon when it has applied row 101, and not row 100 before it."""
    prepare(pair.source, 2)
    daemon.start()
    daemon.wait_until_caught_up()
    # Another session's lock holds database a, so that b runs ahead.
    with closing(pair.target.client()) as locking:
        locking.query("LOCK TABLES a.t READ")
        pair.source.sql("INSERT INTO a.t VALUES (100); INSERT INTO b.t VALUES (101)")
        deadline = time.monotonic() + 60
        while 101 not in applied(pair.target):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        daemon.kill()
        # The server does not notice that nobody waits for the answer any more.
        for (session,) in pair.target.sql(
            "SELECT id FROM information_schema.processlist WHERE state LIKE 'Waiting for%lock'"
        ):
            pair.target.sql(f"KILL {session}")
        locking.query("UNLOCK TABLES")
    assert applied(pair.target) == [0, 1, 101]


def test_gaps_are_filled_and_nothing_more(pair: Pair, tmp_path: Path) -> None:
    daemon = DaemonProcess(pair.source, pair.target, tmp_path)
    leave_gap(pair, daemon)
    pair.source.sql("INSERT INTO b.t VALUES (102)")
    assert run_until(daemon, "--until-gaps-filled") == [0, 1, 100, 101]


def test_a_stop_fills_a_gap_that_is_held_back(pair: Pair, tmp_path: Path) -> None:
    daemon = DaemonProcess(pair.source, pair.target, tmp_path)
    leave_gap(pair, daemon)
    pair.source.sql("INSERT INTO b.t VALUES (102)")
    daemon.settings["replica.delay"] = 1000
    daemon.start()
    daemon.wait_for_status(lambda now: now.state == "delayed", "it is not delayed")
    began = time.monotonic()
    assert daemon.stop() == 0
    assert time.monotonic() - began < 20
    assert applied(pair.target) == [0, 1, 100, 101]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("--until-position", "mysql-bin.000001:4"), "binary log files are named like"),
        (("--until-before-gtids", "11111111-1111-1111-1111-111111111111:1"), "has no GTID"),
        (("--until-after-gtids", "0-1-3"), "GTIDs of 0-1 are MariaDB's, but the source is MySQL"),
    ],
)
def test_what_cannot_be_reached(
    pair: Pair, tmp_path: Path, arguments: tuple[str, ...], error: str
) -> None:
    anonymous = "before" in arguments[0]
    if anonymous:
        for mode in ("ON_PERMISSIVE", "OFF_PERMISSIVE", "OFF"):
            pair.source.sql(f"SET GLOBAL gtid_mode = {mode}")
    try:
        pair.source.sql("CREATE DATABASE a")
        daemon = DaemonProcess(pair.source, pair.target, tmp_path)
        daemon.start(arguments=arguments)
        assert daemon.wait() == 3
        assert error in str(daemon.records()[-1]["error"])
    finally:
        if anonymous:
            for mode in ("OFF_PERMISSIVE", "ON_PERMISSIVE", "ON"):
                pair.source.sql(f"SET GLOBAL gtid_mode = {mode}")


def test_a_target_that_stays_behind(pair: Pair, tmp_path: Path) -> None:
    prepare(pair.source, 2)
    daemon = DaemonProcess(pair.source, pair.target, tmp_path)
    daemon.start()
    daemon.wait_until_caught_up()
    daemon.settings["replica.delay"] = 1000
    daemon.configure()
    daemon.reload()
    daemon.wait_for_record("configuration reloaded")
    pair.source.sql("INSERT INTO a.t VALUES (100)")
    delayed = daemon.wait_for_status(lambda now: now.state == "delayed", "it is not delayed")
    assert 900 < delayed.remaining_delay <= 1000
    assert delayed.lag_seconds is not None
    assert delayed.lag_beyond_delay == 0.0
    assert delayed.pending_groups == 1
    assert delayed.pending_bytes > 0
    assert delayed.last_error is None
    assert applied(pair.target) == [0, 1]
    # A stop does not wait, and a start holds what the run before has held.
    assert daemon.stop() == 0
    daemon.start()
    daemon.wait_for_status(lambda now: now.state == "delayed", "it is not delayed")
    assert applied(pair.target) == [0, 1]
    daemon.settings["replica.delay"] = 3
    daemon.configure()
    daemon.reload()
    daemon.wait_for_status(lambda now: now.state == "running", "it is still delayed")
    pair.source.sql("INSERT INTO a.t VALUES (101)")
    began = time.monotonic()
    daemon.wait_until_caught_up()
    assert time.monotonic() - began > 1.5
    assert applied(pair.target) == [0, 1, 100, 101]
    assert daemon.stop() == 0


def test_gtids_of_mariadb(tmp_path: Path) -> None:
    with mariadbs() as servers:
        source = servers.source
        for name in "ab":
            source.sql(f"CREATE DATABASE {name}; CREATE TABLE {name}.t (id INT PRIMARY KEY)")
        for number in range(6):
            source.sql(f"SET gtid_domain_id = {number % 2}; INSERT INTO a.t VALUES ({number})")
        ((last,),) = source.sql("SELECT @@gtid_binlog_pos")
        ends = dict(each.rpartition("-")[::2] for each in str(last).split(","))
        daemon = DaemonProcess(source, servers.target, tmp_path)
        first = f"1-1-{int(ends['1-1']) - 1}"
        assert run_until(daemon, "--until-before-gtids", first) == [0, 1, 2]
        assert run_until(daemon, "--until-after-gtids", first) == [0, 1, 2, 3]
        assert run_until(daemon, "--until-after-gtids", str(last)) == list(range(6))
