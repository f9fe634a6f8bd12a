"""The pages for tasks, run as they stand, between two servers called db1 and db2, and then db3."""

from pathlib import Path
from typing import Final

import pytest

from mtsd.cli.main import main
from mtsd.model.outcome.exit_status import ExitStatus
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
        daemon = DaemonProcess(source, target, tmp_path, settings)
        daemon.configure()
        accounts, grants, copy, position, check, run, right = first_hour.steps
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
        with daemon:
            daemon.wait_until_caught_up()
            assert target.sql(ROWS) == source.sql(ROWS)
            assert daemon.stop() == 0
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
        with daemon:
            daemon.wait_until_caught_up()
            assert len(source.sql(ROWS)) == 3
            assert target.sql(ROWS) == source.sql(ROWS)
            assert daemon.stop() == 0
        # It is told to continue with what another server has written.
        (other := tmp_path / "other.sql").write_text(
            f"-- MySQL dump\nSET @@GLOBAL.GTID_PURGED='{STRANGER}:1-5';\n"
        )
        said = refused(capsys, f"mtsd position set --from {other} --config config.toml")
        assert "of another server" in said
        pair.discard()
