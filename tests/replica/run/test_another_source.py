"""The source is another server than before, or not what it was."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from mtsd.config import Settings, load
from mtsd.model.errors import MtsdError
from mtsd.replica.run.start import start
from tests.fix_daemon import command
from tests.load.compare import differences
from tests.replica.daemon_process import DaemonProcess, Value
from tests.servers.mysqld import GTIDS, NO_GTIDS, Options, Server
from tests.servers.pair import Pair

pytestmark = pytest.mark.servers

BEGUN = "CREATE DATABASE a; CREATE TABLE a.t (i INT); INSERT INTO a.t VALUES (1)"


@contextmanager
def replicated(options: Options, folder: Path) -> Iterator[tuple[Pair, DaemonProcess]]:
    """Give a pair on which everything is applied, and a daemon that is stopped."""
    with Pair(options, GTIDS) as pair:
        pair.source.sql(BEGUN)
        daemon = DaemonProcess(pair.source, pair.target, folder)
        daemon.start()
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        try:
            yield pair, daemon
        finally:
            daemon.close()


@contextmanager
def chained(folder: Path) -> Iterator[tuple[Pair, DaemonProcess, Server, DaemonProcess]]:
    """Give `replicated` and a server behind the same source, with a daemon that preserves GTIDs."""
    first, second = folder / "first", folder / "second"
    first.mkdir()
    second.mkdir()
    settings: dict[str, Value] = {"target.gtid": "preserve", "source.server_id": 4202}
    with (
        replicated(GTIDS, first) as (pair, daemon),
        Server(GTIDS) as middle,
        DaemonProcess(pair.source, middle, second, settings) as behind,
    ):
        yield pair, daemon, middle, behind


def failure(daemon: DaemonProcess) -> str:
    daemon.start()
    assert daemon.wait() == 3
    return str(daemon.records()[-1]["error"])


def count(server: Server) -> list[tuple[object, ...]]:
    return server.sql("SELECT COUNT(*), COUNT(DISTINCT i), MAX(i) FROM a.t")


def test_another_of_the_same_topology(tmp_path: Path) -> None:
    with chained(tmp_path) as (pair, daemon, middle, behind):
        for number in range(2, 40):
            pair.source.sql(f"INSERT INTO a.t VALUES ({number})")
        behind.wait_until_caught_up()
        daemon.start()
        daemon.wait_until_caught_up()
        daemon.kill()
        pair.source.sql("INSERT INTO a.t VALUES (40); CREATE TABLE a.u (i INT)")
        behind.wait_until_caught_up()
        assert behind.stop() == 0
        middle.sql("INSERT INTO a.t VALUES (41)")
        daemon.source = middle
        daemon.settings["source.port"] = middle.port
        daemon.start()
        daemon.wait_until_caught_up()
        middle.sql("INSERT INTO a.t VALUES (42)")
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0, daemon.last_words()
        assert count(pair.target) == [(42, 42, 42)]
        assert pair.target.sql("SHOW TABLES FROM a LIKE 'u'") == [("u",)]
        ((uuid,),) = middle.sql("SELECT @@server_uuid")
        assert pair.target.sql("SELECT Source_uuid FROM mtsd.slave_relay_log_info") == [(uuid,)]
        daemon.start()
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        adopted = [r for r in daemon.records() if r["event"] == "another source"]
        assert len(adopted) == 1


def test_another_in_which_groups_stand_in_another_order(tmp_path: Path) -> None:
    with chained(tmp_path) as (pair, daemon, middle, behind):
        behind.wait_until_caught_up()
        assert behind.stop() == 0
        pair.source.sql("INSERT INTO a.t VALUES (2); INSERT INTO a.t VALUES (3)")
        daemon.start()
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        middle.sql("INSERT INTO a.t VALUES (4)")
        behind.start()
        behind.wait_until_caught_up()
        assert behind.stop() == 0
        daemon.source = middle
        daemon.settings["source.port"] = middle.port
        for number in (5, 6, 7):
            daemon.start()
            daemon.wait_until_caught_up()
            assert daemon.stop() == 0
            middle.sql(f"INSERT INTO a.t VALUES ({number})")
        daemon.start()
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0, daemon.last_words()
        assert count(pair.target) == [(7, 7, 7)]
        by = [r["by"] for r in daemon.records() if r["event"] == "connected to the source"]
        assert by[-4:] == ["GTID set", *["file and position"] * 3]


def test_another_without_gtids(tmp_path: Path) -> None:
    with replicated(NO_GTIDS, tmp_path) as (_, daemon), Server(NO_GTIDS) as other:
        daemon.settings["source.port"] = other.port
        said = failure(daemon)
        assert "but the position belongs to" in said
        assert "mtsd position set" in said


def test_a_stranger(tmp_path: Path) -> None:
    with replicated(GTIDS, tmp_path) as (_, daemon), Server(GTIDS) as other:
        daemon.settings["source.port"] = other.port
        assert "the target is ahead of its source" in failure(daemon)


def test_a_source_that_was_reset(tmp_path: Path) -> None:
    with replicated(GTIDS, tmp_path) as (pair, daemon):
        pair.source.sql("FLUSH BINARY LOGS")
        daemon.start()
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        ((uuid,),) = pair.source.sql("SELECT @@server_uuid")
        pair.source.sql("RESET BINARY LOGS AND GTIDS; INSERT INTO a.t VALUES (2)")
        assert "the target is ahead of its source, which lacks" in failure(daemon)
        # Its new log has a file of that name, too, which begins with more than was read.
        for number in range(3, 7):
            pair.source.sql(f"INSERT INTO a.t VALUES ({number})")
        pair.source.sql("FLUSH BINARY LOGS; INSERT INTO a.t VALUES (7)")
        said = failure(daemon)
        assert f"transactions that were never read, {uuid}:4-5: its binary log was begun" in said
        assert "mtsd position set" in said


@pytest.mark.parametrize("options", [GTIDS, NO_GTIDS])
def test_a_source_that_has_written_more_than_it_has_lost(options: Options, tmp_path: Path) -> None:
    """Its files have the same names, and their offsets and its GTIDs come a second time."""
    with replicated(options, tmp_path) as (pair, daemon):
        pair.source.sql("INSERT INTO a.t VALUES (2)")
        daemon.start()
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        # A log that is begun in the same second is not told apart.
        pair.source.sql("SET timestamp = 1000000000; RESET BINARY LOGS AND GTIDS")
        # An event begins at the position in this one, too.
        pair.source.sql("SET sql_log_bin = 0; DROP DATABASE a")
        pair.source.sql(BEGUN)
        for number in range(3, 9):
            pair.source.sql(f"INSERT INTO a.t VALUES ({number})")
        said = failure(daemon)
        assert "the source's binlog.000001 is not the file of this name that was read" in said
        assert "this one at 2001-09-09 01:46:40 UTC" in said
        assert count(pair.target) == [(2, 2, 2)]
        # A person has looked.
        file, offset, _ = pair.source.binlog_end()
        command(daemon, "position", "set", f"{file}:{offset}", "--forward")
        pair.source.sql("INSERT INTO a.t VALUES (9)")
        daemon.start()
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0, daemon.last_words()
        assert count(pair.target) == [(3, 3, 9)]
        # A crash leaves the file the one that it was.
        pair.source.kill()
        pair.source.start()
        pair.source.sql("INSERT INTO a.t VALUES (10)")
        daemon.start()
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0, daemon.last_words()
        assert count(pair.target) == [(4, 4, 10)]


def test_a_log_that_is_read_from_a_later_file_on_was_not_begun_anew(tmp_path: Path) -> None:
    """What comes before that file counts as read, from its first byte on."""
    with Pair(GTIDS, GTIDS) as pair:
        pair.source.sql(BEGUN)
        pair.target.sql(BEGUN)
        pair.source.sql("FLUSH BINARY LOGS; INSERT INTO a.t VALUES (2); FLUSH BINARY LOGS")
        settings: dict[str, Value] = {"source.start": "binlog.000002:4"}
        daemon = DaemonProcess(pair.source, pair.target, tmp_path, settings)
        for number in (3, 4):
            pair.source.sql(f"INSERT INTO a.t VALUES ({number})")
            daemon.start()
            daemon.wait_until_caught_up()
            assert daemon.stop() == 0
        assert count(pair.target) == count(pair.source)


def test_a_source_that_was_reset_without_gtids(tmp_path: Path) -> None:
    with replicated(NO_GTIDS, tmp_path) as (pair, daemon):
        pair.source.sql("RESET BINARY LOGS AND GTIDS")
        said = failure(daemon)
        assert "is past the end of the source's binary log, binlog.000001:" in said
        assert "mtsd position set" in said


@pytest.mark.parametrize("options", [GTIDS, NO_GTIDS])
def test_purged_logs(options: Options, tmp_path: Path) -> None:
    with replicated(options, tmp_path) as (pair, daemon):
        pair.source.sql("INSERT INTO a.t VALUES (2); FLUSH BINARY LOGS; FLUSH BINARY LOGS")
        ((last, *_),) = pair.source.sql("SHOW BINARY LOG STATUS")
        pair.source.sql(f"PURGE BINARY LOGS TO '{last}'")
        said = failure(daemon)
        assert "the source has purged what is needed next, binlog.000001:" in said
        assert f"its binary log begins with {last}" in said
        assert "mtsd position set" in said


def test_purged_logs_of_which_all_is_applied(tmp_path: Path) -> None:
    with replicated(GTIDS, tmp_path) as (pair, daemon):
        pair.source.sql("FLUSH BINARY LOGS; FLUSH BINARY LOGS")
        ((last, *_),) = pair.source.sql("SHOW BINARY LOG STATUS")
        pair.source.sql(f"PURGE BINARY LOGS TO '{last}'")
        said = failure(daemon)
        assert "according to their GTIDs, all purged transactions are applied" in said
        shown = command(daemon, "position", "show")
        gtids = shown.partition("GTIDs")[2].strip()
        command(daemon, "position", "set", f"gtid:{gtids}")
        pair.source.sql("INSERT INTO a.t VALUES (2)")
        daemon.start()
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        assert count(pair.target) == [(2, 2, 2)]


def test_a_source_that_lost_what_is_applied_past_the_mark(tmp_path: Path) -> None:
    with replicated(GTIDS, tmp_path) as (pair, daemon):
        ((uuid,),) = pair.source.sql("SELECT @@server_uuid")
        ((number, token),) = pair.target.sql(
            "SELECT Group_number, MAX(Token) FROM mtsd.slave_relay_log_info, mtsd.slave_worker_info"
            " GROUP BY Group_number"
        )
        pair.target.sql(
            f"UPDATE mtsd.slave_worker_info SET Checkpoint_seqno = {number + 1},"
            " Checkpoint_group_bitmap = X'02', Checkpoint_group_size = 2, Checkpoint_gtid = '',"
            f" Executed_gtids = '{uuid}:99' WHERE Token = {token}"
        )
        assert f"which lacks {uuid}:99" in failure(daemon)


def test_anonymous_groups_in_the_way(tmp_path: Path) -> None:
    with Pair(NO_GTIDS, GTIDS) as pair:
        pair.source.sql(BEGUN)
        pair.source.sql(
            "SET GLOBAL enforce_gtid_consistency = ON; SET GLOBAL gtid_mode = OFF_PERMISSIVE;"
            "SET GLOBAL gtid_mode = ON_PERMISSIVE; INSERT INTO a.t VALUES (2);"
            "SET GLOBAL gtid_mode = ON; INSERT INTO a.t VALUES (3)"
        )
        daemon = DaemonProcess(pair.source, pair.target, tmp_path)
        assert "Set gtid_mode = ON_PERMISSIVE on the source" in failure(daemon)
        for mode in ("ON_PERMISSIVE", "ON", "ON"):
            pair.source.sql(f"SET GLOBAL gtid_mode = {mode}")
            daemon.start()
            daemon.wait_until_caught_up()
            pair.source.sql("INSERT INTO a.t SELECT MAX(i) + 1 FROM a.t")
            daemon.wait_until_caught_up()
            assert daemon.stop() == 0
        assert count(pair.target) == [(6, 6, 6)]
        assert differences(pair.source, pair.target) == []
        daemon.close()


def test_a_start_that_has_adopted_another_and_failed_after_it_is_repeated(tmp_path: Path) -> None:
    """It finds the other one as the channel's source, and keeps it: nobody else may take it."""
    other = "3e11fa47-71ca-11e1-9e33-c80aa9429562"

    async def adopted_twice(settings: Settings) -> None:
        for _ in range(2):
            replica = await start(settings, new_source=other)
            holder = await asyncio.to_thread(
                pair.target.sql, f"SELECT IS_USED_LOCK('mtsd-source:{other}') IS NOT NULL"
            )
            replica.stop()
            with suppress(MtsdError):
                await replica.run()
            assert holder == [(1,)]

    with replicated(GTIDS, tmp_path) as (pair, daemon):
        asyncio.run(adopted_twice(load(daemon.config, {}, {}, None).settings))
