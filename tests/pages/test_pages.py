"""The pages for tasks, run as they stand, between two servers called db1 and db2, and then db3."""

import re
import tomllib
from pathlib import Path
from typing import Final

import pytest

from tests.pages.shell import Shell
from tests.replica.daemon_process import DaemonProcess, Value, toml
from tests.servers.mysqld import GTIDS, Server
from tests.servers.pair import Pair

DOCS: Final = Path(__file__).parents[2] / "docs"
ROWS: Final = "SELECT * FROM shop.orders ORDER BY id"

pytestmark = pytest.mark.servers


class Page:
    """A page: its blocks of commands, each a list of lines, and its settings by key."""

    def __init__(self, name: str) -> None:
        text = (DOCS / name).read_text(encoding="utf-8")
        self.steps = [
            block.splitlines() for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
        ]
        (configuration,) = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
        self.settings: dict[str, Value] = {
            f"{section}.{key}": value
            for section, values in tomllib.loads(configuration).items()
            for key, value in values.items()
        }


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
        source.sql(
            "CREATE DATABASE shop; CREATE TABLE shop.orders"
            " (id INT PRIMARY KEY AUTO_INCREMENT, what TEXT); CREATE DATABASE other"
        )
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
