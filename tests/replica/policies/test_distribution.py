"""`mtsd distribute` and a running daemon: databases bound, pinned and weighed, workers frozen."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from mtsd.cli.main import main
from mtsd.control.status import DistributionStatus, Status
from mtsd.model.outcome.exit_status import ExitStatus
from tests.fix_loads import live_load
from tests.load.compare import differences
from tests.load.journal import audit
from tests.replica.daemon_process import DaemonProcess
from tests.servers.mysqld import GTIDS
from tests.servers.pair import Pair

pytestmark = [pytest.mark.servers, pytest.mark.timeout(600)]

NAMES = "abc"


@pytest.fixture
def pair() -> Iterator[Pair]:
    with Pair(GTIDS, GTIDS) as pair:
        for name in NAMES:
            pair.source.sql(f"CREATE DATABASE {name}; CREATE TABLE {name}.t (id INT PRIMARY KEY)")
        yield pair


def distribute(daemon: DaemonProcess, *words: str) -> int:
    return main(["distribute", *words, "--config", str(daemon.config)])


def status_of(daemon: DaemonProcess) -> Status:
    status = daemon.status()
    assert status is not None
    return status


def groups_of(daemon: DaemonProcess) -> list[int]:
    daemon.wait_until_caught_up()
    return [worker.groups for worker in status_of(daemon).workers]


def rows(pair: Pair, name: str) -> int:
    ((count,),) = pair.target.sql(f"SELECT COUNT(*) FROM {name}.t")
    return int(count)


def test_commands(pair: Pair, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    daemon = DaemonProcess(pair.source, pair.target, tmp_path, {"replica.weigh": []})
    daemon.configure()
    assert distribute(daemon, "show") == ExitStatus.NOT_RUNNING
    with daemon:
        daemon.wait_until_caught_up()
        for words in (["pin", "a", "3"], ["bind", "b", "c"], ["weigh", "c", "7"], ["freeze", "2"]):
            assert distribute(daemon, *words) == ExitStatus.DONE
        capsys.readouterr()
        assert distribute(daemon, "show") == ExitStatus.DONE
        assert capsys.readouterr().out.splitlines() == [
            "bound         b+c (until the daemon ends)",
            "pinned        a to worker 3 (until the daemon ends)",
            "weighed       c as 7 (until the daemon ends)",
            "frozen        worker 2 (until the daemon ends)",
        ]
        assert main(["status", "--config", str(daemon.config)]) == ExitStatus.DONE
        assert "a to worker 3 (until the daemon ends)" in capsys.readouterr().out
        before = groups_of(daemon)
        for row in range(5):
            pair.source.sql(f"INSERT INTO a.t VALUES ({row}); INSERT INTO b.t VALUES ({row})")
        after = groups_of(daemon)
        assert after[2] - before[2] >= 5
        assert after[1] == before[1]
        assert "b+c" in {part.name for part in status_of(daemon).partitions if part.groups}

        # Over a reload it holds, until the configuration says something else about it.
        daemon.reload()
        daemon.wait_for_record("configuration reloaded")
        assert status_of(daemon).distribution.pin == (("a", 3),)
        daemon.settings["replica.bind"] = [["a", "c"]]
        daemon.configure()
        daemon.reload()
        daemon.wait_for_record("configuration reloaded", 2)
        assert status_of(daemon).distribution == DistributionStatus(
            bind=(("a", "c"),),
            pin=(("a", 3),),
            weigh=(("c", 7),),
            frozen=(2,),
            until_the_daemon_ends=("pin", "weigh", "frozen"),
        )
        for words in (["unfreeze", "2"], ["unpin", "a"], ["weigh", "c", "1"], ["unbind", "a"]):
            assert distribute(daemon, *words) == ExitStatus.DONE
        found = status_of(daemon).distribution
        assert (found.bind, found.pin, found.weigh, found.frozen) == ((), (), (), ())

        for words, why in (
            (["pin", "a", "5"], "there is no worker 5: they are 1 to 4"),
            (["freeze", "0"], "there is no worker 0"),
            (["bind", "a"], "at least two databases"),
            (["weigh", "a", "1001"], "from 1 to 1000"),
            (["bind", "a", "x" * 65], "up to 64 characters, not 65"),
            (["pin", "a\udcff", "1"], r"'a\udcff' is no name of a database: that is UTF-8"),
            (["weigh", "x" * 65, "2"], "x' is no name of a database"),
        ):
            capsys.readouterr()
            assert distribute(daemon, *words) == ExitStatus.NEEDS_PERSON
            assert why in capsys.readouterr().err
        # What was refused is not in force: nothing else is refused because of it.
        assert distribute(daemon, "freeze", "1") == ExitStatus.DONE
        assert distribute(daemon, "unfreeze", "1") == ExitStatus.DONE
        daemon.reload()
        daemon.wait_for_record("configuration reloaded", 3)
        assert daemon.stop() == 0
        daemon.start()
        daemon.wait_until_caught_up()
        assert status_of(daemon).distribution == DistributionStatus(bind=(("a", "c"),))
        assert daemon.stop() == 0


@pytest.mark.parametrize(
    ("consistency", "refused", "accepted"),
    [
        ("eventual", [["pin", "a", "3"], ["bind", "b", "c"], ["weigh", "a", "4"]], []),
        ("any_time", [["weigh", "a", "4"]], [["pin", "a", "3"], ["bind", "b", "c"]]),
    ],
)
def test_what_has_no_effect_is_refused(
    pair: Pair,
    tmp_path: Path,
    consistency: str,
    refused: list[list[str]],
    accepted: list[list[str]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    settings = {"replica.consistency": consistency}
    with DaemonProcess(pair.source, pair.target, tmp_path, settings) as daemon:
        daemon.wait_until_caught_up()
        for words in refused:
            assert distribute(daemon, *words) == ExitStatus.NEEDS_PERSON
            said = capsys.readouterr().err
            assert f'{words[0]} has no effect with consistency = "{consistency}"' in said
        for words in [*accepted, ["freeze", "2"], ["unfreeze", "2"]]:
            assert distribute(daemon, *words) == ExitStatus.DONE
        assert daemon.stop() == 0


def test_a_reload_that_contradicts_what_was_set_by_hand(pair: Pair, tmp_path: Path) -> None:
    with DaemonProcess(pair.source, pair.target, tmp_path) as daemon:
        daemon.wait_until_caught_up()
        assert distribute(daemon, "bind", "a", "b") == ExitStatus.DONE
        pins: list[list[str | int]] = [["a", 1], ["b", 2]]
        daemon.settings["replica.pin"] = pins
        daemon.configure()
        daemon.reload()
        record = daemon.wait_for_record("configuration refused, nothing has changed")
        assert 'bound together are pinned apart: "a" to worker 1 and "b"' in str(record["problems"])
        assert status_of(daemon).distribution == DistributionStatus(
            bind=(("a", "b"),), until_the_daemon_ends=("bind",)
        )
        assert distribute(daemon, "weigh", "c", "5") == ExitStatus.DONE
        assert distribute(daemon, "unbind", "a") == ExitStatus.DONE
        daemon.reload()
        daemon.wait_for_record("configuration reloaded")
        assert status_of(daemon).distribution.pin == (("a", 1), ("b", 2))
        assert daemon.stop() == 0


LONG = pytest.mark.long


@pytest.mark.parametrize("ending", ["stop", "unfreeze", pytest.param("kill", marks=LONG)])
@pytest.mark.parametrize("policy", ["logical_clock", "database", pytest.param("row", marks=LONG)])
def test_a_frozen_worker(
    pair: Pair, tmp_path: Path, policy: str, ending: str, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = {"replica.parallel_type": policy}
    with DaemonProcess(pair.source, pair.target, tmp_path, settings) as daemon:
        daemon.wait_until_caught_up()
        if policy != "database":
            assert distribute(daemon, "pin", "a", "1") == ExitStatus.NEEDS_PERSON
            assert "goes by no names" in capsys.readouterr().err
        else:
            assert distribute(daemon, "pin", "a", "1") == ExitStatus.DONE
        for worker in ("1",) if policy == "database" else ("1", "2", "3", "4"):
            assert distribute(daemon, "freeze", worker) == ExitStatus.DONE
        pair.source.sql("INSERT INTO a.t VALUES (1); INSERT INTO b.t VALUES (1)")
        status = daemon.wait_for_status(
            lambda now: now.waits["frozen"] > 0.5, "no worker waits because it is frozen"
        )
        assert {worker.state for worker in status.workers} >= {"frozen"}
        assert "frozen" in {worker.waits_for for worker in status.workers}
        if policy == "database":
            # The other one is applied: there is a gap, and a stop closes it.
            daemon.wait_for_status(lambda now: now.pending_groups == 1, "nothing is applied")
            assert (rows(pair, "a"), rows(pair, "b")) == (0, 1)
        else:
            assert (rows(pair, "a"), rows(pair, "b")) == (0, 0)
        # What runs alone comes after it.
        pair.source.sql("CREATE TABLE a.u (id INT PRIMARY KEY); DROP TABLE a.u")
        if ending == "unfreeze":
            for worker in "1234":
                assert distribute(daemon, "unfreeze", worker) == ExitStatus.DONE
        else:
            if ending == "stop":
                assert daemon.stop() == 0
                assert (rows(pair, "a"), rows(pair, "b")) in {(0, 0), (1, 1)}
                if policy == "database":
                    assert rows(pair, "a") == 1
            else:
                daemon.kill()
            daemon.start()
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        assert (rows(pair, "a"), rows(pair, "b")) == (1, 1)


def test_a_large_transaction_waits_for_the_frozen_worker_that_applies_it(
    pair: Pair, tmp_path: Path
) -> None:
    settings = {"replica.pending_jobs_size_max": 4096, "replica.batch_bytes": 4096}
    pair.source.sql("CREATE TABLE a.large (v LONGTEXT)")
    with DaemonProcess(pair.source, pair.target, tmp_path, settings) as daemon:
        daemon.wait_until_caught_up()
        assert distribute(daemon, "freeze", "1") == ExitStatus.DONE
        pair.source.sql("INSERT INTO a.large VALUES (REPEAT('x', 100000))")
        daemon.wait_for_status(
            lambda now: now.reading_waits_for == "frozen", "reading does not wait"
        )
        assert distribute(daemon, "unfreeze", "1") == ExitStatus.DONE
        daemon.wait_until_caught_up()
        assert differences(pair.source, pair.target) == []
        assert daemon.stop() == 0


@pytest.mark.parametrize(
    "policy",
    [
        pytest.param("database", marks=LONG),
        "table",
        pytest.param("logical_clock", marks=LONG),
        pytest.param("row", marks=LONG),
        pytest.param("commit_parent", marks=LONG),
    ],
)
def test_random_changes_under_load(policy: str, tmp_path: Path) -> None:
    chance = random.Random(policy)
    with Pair(GTIDS, GTIDS) as pair:
        daemon = DaemonProcess(
            pair.source, pair.target, tmp_path, {"replica.parallel_type": policy}
        )
        with live_load(pair, seed=6, rate=60) as load:
            daemon.start()
            daemon.wait_until_running()
            names = [str(name) for (name,) in pair.source.sql("SHOW DATABASES")]
            for _ in range(60):
                some = chance.sample(names, 2)
                worker = str(chance.randint(1, 4))
                words = chance.choice((
                    ["bind", *some], ["unbind", some[0]], ["pin", some[0], worker],
                    ["unpin", *some], ["weigh", some[0], worker], ["freeze", worker],
                    ["unfreeze", worker],
                ))  # fmt: skip
                # A database that is bound to another one may be pinned elsewhere already.
                assert distribute(daemon, *words) in {ExitStatus.DONE, ExitStatus.NEEDS_PERSON}
        for worker in "1234":
            assert distribute(daemon, "unfreeze", worker) == ExitStatus.DONE
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        assert audit(pair.target, load.ledger) == []
        assert differences(pair.source, pair.target) == []
