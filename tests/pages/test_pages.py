"""The pages for tasks, run as they stand, between two servers called db1 and db2, and then db3."""

from pathlib import Path
from typing import Final

import pytest

from mtsd.cli.main import main
from mtsd.model.outcome.exit_status import ExitStatus
from tests.fix_daemon import catch_up
from tests.fix_families import installed, mariadbs
from tests.pages.shell import Page, Shell
from tests.replica.daemon_process import DaemonProcess, Value, toml
from tests.servers.mysqld import GTIDS, Server
from tests.servers.pair import Pair

SHOP: Final = (
    "CREATE DATABASE shop; CREATE TABLE shop.orders (id INT PRIMARY KEY AUTO_INCREMENT, what TEXT)"
)
STRANGER: Final = "4f22fa47-71ca-11e1-9e33-c80aa9429562"
WITH_CLONE: Final = {**GTIDS, "performance_schema": "ON"}
ROWS: Final = "SELECT * FROM shop.orders ORDER BY id"

pytestmark = pytest.mark.servers


def wait_until_replicated(source: Server, target: Server) -> None:
    """Wait for the target's own replica."""
    gtids = source.binlog_end()[2]
    assert target.sql(f"SELECT WAIT_FOR_EXECUTED_GTID_SET('{gtids}', 60)") == [(0,)]


def refused(capsys: pytest.CaptureFixture[str], line: str) -> str:
    """Return why a command refuses."""
    capsys.readouterr()
    assert main(line.split()[1:]) == ExitStatus.NEEDS_PERSON
    return capsys.readouterr().err


def insert(source: Server, what: str) -> None:
    source.sql(f"INSERT INTO shop.orders (what) VALUES ('{what}')")


def test_from_the_first_hour_to_a_second_replica(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    here: dict[str, Value] = {"source.host": "127.0.0.1", "target.host": "127.0.0.1"}
    with Pair(GTIDS, GTIDS) as pair:
        source, target = pair.source, pair.target
        shell = Shell(tmp_path, {"db1": source, "db2": target}, capsys)
        source.sql(f"{SHOP}; CREATE DATABASE other")
        insert(source, "before the copy")
        first_hour = Page("first-hour.md")
        settings = first_hour.settings | here
        # That is for sources that log statements.
        del settings["filter.wild_do_table"]
        daemon = DaemonProcess(source, target, tmp_path, settings)
        daemon.configure()
        accounts, grants, copy, _, position, check, run, right = first_hour.steps
        shell.run(*accounts, *grants, *copy)
        # What happens after the copy is what mtsd has to bring.
        insert(source, "after the copy")
        shell.run(*position, *check)
        assert run == ["mtsd run --config config.toml"]
        backup = Page("backup.md")
        dump, restore, loaded, adopted = backup.steps
        with daemon:
            daemon.wait_until_caught_up()
            status, written, read = right
            assert shell.run(status).split()[:2] == ["state", "running"]
            shell.run(written)
            daemon.wait_until_caught_up()
            assert "a first look" in shell.run(read)
            assert len(target.sql(ROWS)) == 3
            assert target.sql(ROWS) == source.sql(ROWS)
            shell.run(*dump)
            insert(source, "after the backup")
            daemon.wait_until_caught_up()
            assert daemon.stop() == 0
        shell.run(*restore)
        assert len(target.sql(ROWS)) == 3
        with daemon, Server(GTIDS) as third:
            daemon.wait_until_caught_up()
            assert target.sql(ROWS) == source.sql(ROWS)
            (folder := tmp_path / "second").mkdir()
            second = DaemonProcess(source, third, folder, settings | backup.settings | here)
            of_commands = tmp_path / "second.toml"
            of_commands.write_text(toml(second.settings))
            of_commands.chmod(0o600)
            second.settings["status.socket"] = "mtsd.sock"
            shell = Shell(tmp_path, {"db1": source, "db3": third}, capsys)
            shell.run(*loaded, *adopted)
            with second:
                insert(source, "for both")
                second.wait_until_caught_up()
                daemon.wait_until_caught_up()
                assert len(source.sql(ROWS)) == 5
                assert source.sql(ROWS) == target.sql(ROWS) == third.sql(ROWS)
                assert daemon.stop() == second.stop() == 0


def test_the_first_hour_of_mariadb(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As it comes: with its default binlog_format."""
    monkeypatch.chdir(tmp_path)
    first_hour = Page("first-hour.md")
    accounts, grants, _, copy, position, check, _, right = first_hour.steps
    here: dict[str, Value] = {"source.host": "127.0.0.1", "target.host": "127.0.0.1"}
    with mariadbs("11.8", options={"binlog_format": "MIXED"}) as pair:
        shell = Shell(tmp_path, {"db1": pair.source, "db2": pair.target}, capsys)
        pair.source.sql(SHOP)
        insert(pair.source, "before the copy")
        settings = first_hour.settings | here
        del settings["filter.do_db"]
        daemon = DaemonProcess(pair.source, pair.target, tmp_path, settings)
        daemon.configure()
        shell.run(*accounts, *grants, *copy)
        insert(pair.source, "after the copy")
        shell.run(*position)
        shell.run(*check)
        with daemon:
            daemon.wait_until_caught_up()
            _, written, read = right
            shell.run(written)
            daemon.wait_until_caught_up()
            assert "a first look" in shell.run(read)
            assert pair.target.sql(ROWS) == pair.source.sql(ROWS)
            assert daemon.stop() == 0


def test_from_a_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with Pair(WITH_CLONE, WITH_CLONE) as pair:
        source, target = pair.source, pair.target
        shell = Shell(tmp_path, {"db1": source, "db2": target}, capsys)
        source.sql(SHOP)
        insert(source, "before the copy")
        daemon = DaemonProcess(source, target, tmp_path, {"filter.do_db": ["shop"]})
        daemon.configure()
        dump, clone, from_clone = Page("copy.md").steps
        made, loaded, *positions = dump
        shell.run(made)
        insert(source, "after the copy")
        assert "none of the source's tables in shop" in refused(capsys, positions[0])
        shell.run(loaded)
        assert "then binlog" in shell.run(positions[0])
        assert "none yet" in shell.run("mtsd position show --config config.toml")
        shell.run(positions[1])
        catch_up(daemon)
        assert target.sql(ROWS) == source.sql(ROWS)
        assert "goes back by" in refused(capsys, "mtsd position set earliest --config config.toml")
        assert "was not cloned" in refused(capsys, *from_clone)
        *plugins, copied = clone
        shell.run(*plugins)
        # Here nothing watches the server that would start it again.
        with pytest.raises(AssertionError, match="Restart server failed"):
            shell.run(copied)
        target.restart()
        insert(source, "after the clone")
        shell.run(*from_clone)
        catch_up(daemon)
        assert len(source.sql(ROWS)) == 3
        assert target.sql(ROWS) == source.sql(ROWS)
        # It is told to continue with what another server has written.
        (other := tmp_path / "other.sql").write_text(
            f"-- MySQL dump\nSET @@GLOBAL.GTID_PURGED='{STRANGER}:1-5';\n"
        )
        said = refused(capsys, f"mtsd position set --from {other} --config config.toml")
        assert "of another server" in said
        pair.discard()


def test_taken_over_and_handed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with Pair(GTIDS, GTIDS) as pair:
        source, target = pair.source, pair.target
        shell = Shell(tmp_path, {"db1": source, "db2": target}, capsys)
        source.sql(
            f"{SHOP}; CREATE USER repl IDENTIFIED BY 'secret-of-repl';"
            " GRANT REPLICATION SLAVE ON *.* TO repl"
        )
        insert(source, "by the own replica")
        daemon = DaemonProcess(source, target, tmp_path, {"source.start": ""})
        daemon.configure()
        look, take, look_back, give, *by_hand = Page("take-over.md").steps
        stop, place, forget, purge, reset, configure = by_hand
        shell.run(*configure)
        wait_until_replicated(source, target)
        assert "nothing was done" in shell.run(*look)
        said = refused(capsys, *place)
        assert "STOP REPLICA" in said
        shell.run(*stop)
        insert(source, "by mtsd")
        assert "own replica" in shell.run(*place)
        shell.run(*forget)
        catch_up(daemon)
        assert target.sql(ROWS) == source.sql(ROWS)
        # Nobody can take an empty place, and none that mtsd has passed.
        assert "no channel" in refused(capsys, *place)
        shell.run(*purge, *reset)
        insert(source, "by the own replica again")
        shell.run(*configure)
        wait_until_replicated(source, target)
        assert target.sql(ROWS) == source.sql(ROWS)
        for line in Page("gtids.md").steps[0]:
            assert "gtid" in shell.run(line)
        (tmp_path / "admin.pw").touch(mode=0o600)
        assert "taken over: " in shell.run(*take)
        insert(source, "by mtsd again")
        catch_up(daemon)
        assert target.sql(ROWS) == source.sql(ROWS)
        assert "SET GLOBAL gtid_purged" in shell.run(*look_back)
        assert "handed over: " in shell.run(*(f"{line} --watch 0.1" for line in give))


def test_failover_promotion_and_upgrade(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with Pair(GTIDS, GTIDS) as pair, Server({**GTIDS, "replica_net_timeout": 4}) as third:
        source, target = pair.source, pair.target
        shell = Shell(tmp_path, {"db1": source, "db2": target, "db3": third}, capsys)
        third.sql(
            f"CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = {source.port},"
            " SOURCE_USER = 'root', SOURCE_AUTO_POSITION = 1, GET_SOURCE_PUBLIC_KEY = 1;"
            " START REPLICA"
        )
        source.sql(f"{SHOP}; CREATE EVENT shop.e ON SCHEDULE EVERY 1 DAY DO DELETE FROM shop.x")
        insert(source, "before the failover")
        daemon = DaemonProcess(source, target, tmp_path)
        with daemon:
            daemon.wait_until_caught_up()
            look, status = Page("upgrade.md").steps
            assert look[0] == "mtsd --version"
            shell.run(look[1])
            assert shell.run(*status).split()[:2] == ["state", "running"]
            assert daemon.stop() == 0
        wait_until_replicated(source, third)
        third.sql("STOP REPLICA; RESET REPLICA ALL")
        source.kill()
        daemon.source = third
        daemon.settings["source.port"] = third.port
        insert(third, "after the failover")
        check, run, end, left, place, events, back = Page("failover.md").steps
        daemon.configure()
        shell.run(*check)
        assert run == ["mtsd run --config config.toml"]
        with daemon:
            daemon.wait_until_caught_up()
            assert len(target.sql(ROWS)) == 2
            assert target.sql(ROWS) == third.sql(ROWS)
            ended = shell.run(*end).split()[-1]
            daemon.wait_until_caught_up()
            assert daemon.stop() == 0
        assert ended in shell.run(left[0])
        assert shell.run(left[1]) == "no group is in doubt\n"
        assert not shell.run(left[2])
        shell.run(*place)
        assert "binlog.0" in (tmp_path / "promoted.txt").read_text()
        shell.run(*events)
        ((enabled,),) = target.sql("SELECT status FROM information_schema.events")
        assert enabled == "ENABLED"
        (folder := tmp_path / "back").mkdir()
        other: dict[str, Value] = {"source.start": "", "source.server_id": 4203}
        returning = DaemonProcess(target, third, folder, other)
        (of_commands := tmp_path / "back.toml").write_text(toml(returning.settings))
        of_commands.chmod(0o600)
        shell.run(*back)
        insert(target, "after the promotion")
        catch_up(returning)
        assert len(third.sql(ROWS)) == 3
        assert third.sql(ROWS) == target.sql(ROWS)
        pair.discard()
        third.discard()


def test_both_servers_are_upgraded_in_place(tmp_path: Path) -> None:
    """The binaries of a newer version on the same files, while the daemon runs."""
    older, newer = installed("10.11"), installed("11.8")
    options = {"binlog_format": "ROW"}
    with Pair(options, options, installation=older, target_installation=older) as pair:
        pair.source.sql(SHOP)
        with DaemonProcess(pair.source, pair.target, tmp_path) as daemon:
            daemon.wait_until_caught_up()
            for server in (pair.target, pair.source):
                server.stop()
                server.installation = newer
                server.start()
                insert(pair.source, "after an upgrade")
                daemon.wait_until_caught_up()
            assert "11.8" in str(pair.target.sql("SELECT VERSION()"))
            assert len(pair.target.sql(ROWS)) == 2
            assert daemon.stop() == 0
        pair.discard()


def test_from_mariadb_to_mysql(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    of_source = {"binlog_format": "ROW", "binlog_row_metadata": "FULL"}
    with Pair(
        of_source, GTIDS, installation=installed("11.8"), target_installation=installed("9.7")
    ) as pair:
        source, target = pair.source, pair.target
        shell = Shell(tmp_path, {"db1": source, "db2": target}, capsys)
        source.sql(f"{SHOP}; ALTER DATABASE shop CHARACTER SET utf8mb4")
        insert(source, "before the copy")
        daemon = DaemonProcess(source, target, tmp_path, {"filter.do_db": ["shop"]})
        daemon.configure()
        look, copy, follow = Page("mariadb-to-mysql.md").steps
        assert "uca1400" in shell.run(*look)
        shell.run(*copy)
        insert(source, "after the copy")
        shell.run(*follow)
        catch_up(daemon)
        assert len(source.sql(ROWS)) == 2
        assert target.sql(ROWS) == source.sql(ROWS)
