"""`mtsd takeover` and `mtsd handover`, from and to the own replica of real servers."""

from pathlib import Path

import pytest

from mtsd.wire.replica_words import MARIADB_REPLICA, MYSQL_REPLICA
from tests.fix_daemon import catch_up, command, stopped, stops
from tests.fix_families import mariadbs
from tests.operations.move.moving import (
    HELD,
    PARALLEL,
    ROWS,
    configured,
    crash_past_a_lock,
    insert,
    move,
    mtsd_goes_on,
    report_of,
    shop_by_itself,
    wait_for_rows,
)
from tests.servers.mysqld import GTIDS, NO_GTIDS
from tests.servers.pair import Pair

pytestmark = pytest.mark.servers


def test_who_lacks_a_right_is_found_before_the_own_replica_is_stopped(tmp_path: Path) -> None:
    with Pair(GTIDS, GTIDS) as pair:
        source, target = pair.source, pair.target
        shop_by_itself(pair, MYSQL_REPLICA, "SOURCE_AUTO_POSITION = 1")
        target.sql(
            "CREATE USER half; GRANT RELOAD ON *.* TO half;"
            "CREATE USER poor; GRANT REPLICATION CLIENT ON *.* TO poor;"
            "CREATE USER kept_out; GRANT ALL ON *.* TO kept_out;"
            "REVOKE CONNECTION_ADMIN, SUPER ON *.* FROM kept_out;"
            "SET GLOBAL super_read_only = ON"
        )
        daemon = configured(pair, tmp_path)
        said = command(daemon, "takeover", "--execute", "--admin-user", "half", status=3)
        assert "REPLICATION_SLAVE_ADMIN" in said
        assert "REPLICATION CLIENT" in said
        assert "TO 'half'@'%'" in said
        daemon.settings["target.user"] = "kept_out"
        daemon.configure()
        said = move(daemon, "takeover", status=3)
        assert "mtsd's user 'kept_out'@'%' of the target may not do what this needs" in said
        assert "GRANT CONNECTION_ADMIN ON *.* TO 'kept_out'@'%'" in said
        daemon.settings["target.user"] = "poor"
        daemon.configure()
        target.sql("SET GLOBAL super_read_only = OFF; SET GLOBAL read_only = OFF")
        said = move(daemon, "takeover", status=3)
        assert "SELECT command denied to user 'poor'" in said
        assert "as it was before" not in said
        # It is found out only when it writes, and has written nothing: all of it is put back.
        target.sql("GRANT SELECT ON mtsd.* TO poor")
        assert "Everything is as it was before" in move(daemon, "takeover", status=3)
        insert(source, "by the own replica still")
        wait_for_rows(pair)
        pair.discard()


def test_by_gtid_and_nothing_happens_before_it_is_asked_for(tmp_path: Path) -> None:
    with Pair(GTIDS, GTIDS) as pair:
        source, target = pair.source, pair.target
        shop_by_itself(pair, MYSQL_REPLICA, "SOURCE_AUTO_POSITION = 1")
        insert(source, "by the own replica")
        wait_for_rows(pair)
        daemon = configured(pair, tmp_path)
        said = command(daemon, "takeover")
        assert "on the target: STOP REPLICA FOR CHANNEL ''" in said
        assert "on the target: RESET REPLICA ALL FOR CHANNEL ''" in said
        assert "nothing was done" in said
        assert "own replica" in stopped(pair, tmp_path)
        # What differs is refused by its name.
        target.sql(
            "STOP REPLICA SQL_THREAD; CHANGE REPLICATION FILTER REPLICATE_IGNORE_DB = (old, new),"
            " REPLICATE_REWRITE_DB = ((a, b)); CHANGE REPLICATION SOURCE TO SOURCE_DELAY = 1;"
            " START REPLICA SQL_THREAD"
        )
        said = command(daemon, "takeover")
        assert 'config.toml: ignore_db = ["old", "new"]' in said
        assert 'config.toml: rewrite_db = [["a", "b"]]' in said
        assert "config.toml: delay = 1" in said
        assert "--accept filter" in move(daemon, "takeover", status=3)
        daemon.settings["filter.ignore_db"] = ["old", "new"]
        daemon.settings["filter.rewrite_db"] = [["a", "b"]]
        daemon.configure()
        # The own replica goes on where the position cannot be recorded.
        target.sql("ALTER TABLE mtsd.slave_worker_info ADD COLUMN More INT")
        said = move(daemon, "takeover", "--accept", "delay", status=3)
        assert "Everything is as it was before" in said
        assert "back: on the target: START REPLICA" in report_of(daemon)
        insert(source, "by the own replica again")
        wait_for_rows(pair)
        target.sql("ALTER TABLE mtsd.slave_worker_info DROP COLUMN More")
        said = move(daemon, "takeover", "--accept", "delay")
        assert "taken over: 6 transactions, equal at GTID" in said
        assert target.sql("SHOW REPLICA STATUS") == []
        mtsd_goes_on(daemon)
        assert "nothing to take over any more" in move(daemon, "takeover", status=3)
        # And back. What mtsd applied has GTIDs of the target, which has to be told the source's.
        with daemon:
            daemon.wait_until_running()
            # After its next start, the server would not have the filter any more.
            assert "--accept option_file" in move(daemon, "handover", status=3)
            said = command(daemon, "handover")
            assert "mtsd runs: stop it before" in said
            assert "error 1236" in said
            assert "SOURCE_PASSWORD='…'" in said
            accepted = ("--accept", "option_file")
            assert "Everything is as it was before" in move(daemon, "handover", *accepted, status=3)
            assert daemon.stop() == 0
        (wrong := tmp_path / "wrong.pw").write_text("wrong\n")
        given = ("--replica-user", "repl", "--replica-password-file", str(wrong), *accepted)
        said = move(daemon, "handover", *given, status=3)
        assert "the target's own replica has stopped" in said
        assert "Access denied" in said
        assert "Everything is as it was before" in said
        assert target.sql("SHOW REPLICA STATUS") == []
        insert(source, "by mtsd after all")
        catch_up(daemon)
        wrong.write_text("secret-of-repl\n")
        said = move(daemon, "handover", *given, "--watch", "0.2")
        assert "equal at GTID" in said
        assert "secret" not in report_of(daemon)
        insert(source, "by the own replica once more")
        wait_for_rows(pair)
        assert target.sql(ROWS) == source.sql(ROWS)
        assert "was handed over to the target's own replica" in stops(daemon)
        pair.discard()


def test_by_file_with_gaps_between_the_workers_of_a_killed_server(tmp_path: Path) -> None:
    with Pair(NO_GTIDS, {**NO_GTIDS, **PARALLEL}) as pair:
        source, target = pair.source, pair.target
        shop_by_itself(pair, MYSQL_REPLICA, "SOURCE_AUTO_POSITION = 0", HELD)
        insert(source, "before the gap")
        wait_for_rows(pair)
        crash_past_a_lock(pair)
        daemon = configured(pair, tmp_path)
        said = command(daemon, "takeover")
        assert "something is missing between its workers" in said
        assert "START REPLICA SQL_THREAD UNTIL SQL_AFTER_MTS_GAPS" in said
        assert target.sql("SELECT * FROM shop.held") == []
        said = move(daemon, "takeover")
        assert "nothing is missing up to binlog" in said
        assert target.sql("SELECT * FROM shop.held") == [(1,)]
        insert(source, "by mtsd")
        catch_up(daemon)
        said = move(daemon, "handover", "--watch", "0.2")
        assert "handed over: from binlog" in said
        insert(source, "by the own replica")
        wait_for_rows(pair)
        assert len(source.sql(ROWS)) == 5
        assert target.sql(ROWS) == source.sql(ROWS)
        pair.discard()


def test_from_the_own_replica_of_a_mariadb(tmp_path: Path) -> None:
    with mariadbs("11.8", options={"binlog_row_metadata": "FULL"}) as pair:
        source, target = pair.source, pair.target
        shop_by_itself(pair, MARIADB_REPLICA, "MASTER_USE_GTID = slave_pos")
        insert(source, "by the own replica")
        wait_for_rows(pair)
        daemon = configured(pair, tmp_path)
        said = move(daemon, "takeover")
        assert "STOP SLAVE" in said
        assert "RESET SLAVE ALL" in said
        assert "equal at GTID 0-1-" in said
        assert target.sql("SHOW ALL SLAVES STATUS") == []
        insert(source, "by mtsd")
        catch_up(daemon)
        said = move(daemon, "handover", "--watch", "0.2")
        assert "SET GLOBAL gtid_slave_pos = '0-1-" in said
        insert(source, "by the own replica again")
        wait_for_rows(pair)
        assert len(source.sql(ROWS)) == 3
        assert target.sql(ROWS) == source.sql(ROWS)
        assert "was handed over" in stops(daemon)
        # A killed target has what it needs: both the position and that of its own replica.
        target.kill()
        target.start()
        assert "equal at GTID 0-1-" in move(daemon, "takeover")
        insert(source, "by mtsd in the end")
        catch_up(daemon)
        assert len(source.sql(ROWS)) == 4
        assert target.sql(ROWS) == source.sql(ROWS)
        pair.discard()
