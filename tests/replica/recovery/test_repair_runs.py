"""What else a person asks for while a repair of what was applied in no order is left to be done."""

from contextlib import closing
from pathlib import Path

import pytest

from tests.fix_daemon import NEEDS_PERSON, command, stopped_at
from tests.fix_servers import wait_for
from tests.operations.skipping import REASON
from tests.replica.daemon_process import DaemonProcess, Value
from tests.replica.policies.holes import EVENTUAL, contents, killed_with_a_hole
from tests.servers.mysqld import GTIDS
from tests.servers.pair import Pair

pytestmark = [pytest.mark.servers, pytest.mark.timeout(600)]
TWO: dict[str, Value] = {**EVENTUAL, "replica.parallel_workers": 2}
VERSION = "SELECT Schema_version FROM mtsd.slave_relay_log_info"


def test_until(tmp_path: Path) -> None:
    """Everything that has been applied is repaired, and nothing more is applied."""
    with Pair(GTIDS, GTIDS) as pair:
        daemon = killed_with_a_hole(pair, tmp_path, TWO)
        whole = contents(pair.source)
        file, offset, gtids = pair.source.binlog_end()
        pair.source.sql("INSERT INTO a.bare VALUES (99, 'later')")
        daemon.start(arguments=("--until-gaps-filled",))
        assert daemon.wait() == 0, daemon.last_words()
        assert contents(pair.target) == whole
        assert pair.target.sql(VERSION) == [(1,)]
        for arguments in (
            ("--until-gaps-filled",),
            ("--until-position", f"{file}:{offset}"),
            ("--until-position", f"{file}:200"),
            ("--until-after-gtids", gtids),
        ):
            daemon.start(arguments=arguments)
            assert daemon.wait() == 0, daemon.last_words()
            assert contents(pair.target) == whole, arguments


def test_a_stop_before_it(tmp_path: Path) -> None:
    """The source is down, so that nothing is repaired, until the second start."""
    with Pair(GTIDS, GTIDS) as pair:
        daemon = killed_with_a_hole(pair, tmp_path, TWO)
        pair.source.stop()
        daemon.start()
        daemon.wait_for_record("running", 2)
        # What it was to repair is not finished.
        assert daemon.stop() == 1, daemon.last_words()
        assert pair.target.sql(VERSION) == [(2,)]
        pair.source.start()
        daemon.start()
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        assert contents(pair.target) == contents(pair.source)
        assert pair.target.sql(VERSION) == [(1,)]


@pytest.mark.parametrize("table", ["gate", "bare"])
def test_an_error_in_it(table: str, tmp_path: Path) -> None:
    """What is left of the repair is done by the start after the one that stopped in it."""
    with Pair(GTIDS, GTIDS) as pair:
        daemon = killed_with_a_hole(pair, tmp_path, TWO)
        pair.target.sql(f"ALTER TABLE a.{table} RENAME TO a.gone")
        for _ in range(2):
            daemon.start()
            assert daemon.wait() == NEEDS_PERSON, daemon.last_words()
            assert pair.target.sql(VERSION) == [(2,)]
        pair.target.sql(f"ALTER TABLE a.gone RENAME TO a.{table}")
        daemon.start()
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        assert contents(pair.target) == contents(pair.source)


def test_an_error_in_what_keeps_its_gtid(tmp_path: Path) -> None:
    """That its GTID has been executed is no news, and no reason to begin once more."""
    settings: dict[str, Value] = {
        **EVENTUAL, "replica.parallel_workers": 4, "target.gtid": "preserve"
    }  # fmt: skip
    with (
        Pair(GTIDS, GTIDS) as pair,
        closing(DaemonProcess(pair.source, pair.target, tmp_path, settings)) as daemon,
    ):
        pair.source.sql(
            "CREATE DATABASE a; CREATE TABLE a.gate (id INT PRIMARY KEY, v INT);"
            "CREATE TABLE a.t (id INT PRIMARY KEY); INSERT INTO a.gate VALUES (1, 0)"
        )
        daemon.start()
        daemon.wait_until_caught_up()
        with closing(pair.target.client()) as client, client.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute("SELECT * FROM a.gate FOR UPDATE")
            pair.source.sql("UPDATE a.gate SET v = 1; INSERT INTO a.t VALUES (1)")
            wait_for(pair.target, "SELECT COUNT(*) FROM a.t", 1)
            daemon.kill()
            pair.target.kill()
        pair.target.start()
        pair.target.sql("ALTER TABLE a.t RENAME TO a.gone")
        daemon.start()
        assert daemon.wait(20) == NEEDS_PERSON, daemon.last_words()
        pair.target.sql("ALTER TABLE a.gone RENAME TO a.t")
        daemon.start()
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        assert pair.target.sql("SELECT v, a.t.id FROM a.gate, a.t") == [(1, 1)]


def test_filter(tmp_path: Path) -> None:
    """What is no longer replicated is not repaired either, and what is, is."""
    with Pair(GTIDS, GTIDS) as pair:
        daemon = killed_with_a_hole(pair, tmp_path, TWO)
        before = contents(pair.target)
        daemon.settings["filter.ignore_table"] = ["a.bare"]
        daemon.start()
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        after = contents(pair.target)
        assert after.pop("bare") == before["bare"]
        whole = contents(pair.source)
        del whole["bare"]
        assert after == whole


def test_another_position(tmp_path: Path) -> None:
    """A position that a person has set leaves nothing to be repaired."""
    with Pair(GTIDS, GTIDS) as pair:
        daemon = killed_with_a_hole(pair, tmp_path, TWO)
        before = contents(pair.target)
        command(daemon, "check")
        # What the last definition has left to be settled has not been: it was killed.
        command(daemon, "position", "set", "latest", "--forward", "--drop-doubt")
        assert pair.target.sql(VERSION) == [(1,)]
        daemon.start()
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        assert contents(pair.target) == before


def test_a_group_of_it_is_skipped(tmp_path: Path) -> None:
    """Also one that has committed before, and cannot be applied once more."""
    with Pair(GTIDS, GTIDS) as pair:
        daemon = killed_with_a_hole(pair, tmp_path, TWO)
        pair.target.sql("ALTER TABLE a.bare RENAME TO a.gone")
        skipped = []
        for _ in range(2):
            daemon.start()
            assert daemon.wait() == NEEDS_PERSON, daemon.last_words()
            number = str(stopped_at(daemon)["number"])
            assert f"mtsd skip --group {number}" in str(daemon.records()[-1]["error"])
            assert f"by group {number}," in command(daemon, "skip")
            command(daemon, "skip", "--group", number, *REASON)
            assert "no group is on record as having stopped" in command(daemon, "skip")
            skipped.append(number)
        assert len({*skipped}) == 2
        pair.target.sql("ALTER TABLE a.gone RENAME TO a.bare")
        daemon.start()
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        # The first one is the transaction that was held back.
        assert pair.target.sql("SELECT v FROM a.gate") == [(0,)]
        assert pair.target.sql("SELECT v FROM a.t WHERE id = 1") == [("second",)]
        assert pair.target.sql(VERSION) == [(1,)]


def test_it_is_not_delayed(tmp_path: Path) -> None:
    """What has been applied is repaired at once, and what comes then is delayed."""
    with Pair(GTIDS, GTIDS) as pair:
        daemon = killed_with_a_hole(pair, tmp_path, TWO)
        whole = contents(pair.source)
        daemon.settings["replica.delay"] = 1000
        daemon.start()
        daemon.wait_for_status(lambda now: now.state in {"running", "delayed"}, "it is held")
        assert contents(pair.target) == whole
        pair.source.sql("INSERT INTO a.bare VALUES (99, 'later')")
        daemon.wait_for_status(lambda now: now.state == "delayed", "it is not delayed")
        assert contents(pair.target) == whole
        assert daemon.stop() == 0
