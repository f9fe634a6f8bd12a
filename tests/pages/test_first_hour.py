"""docs/first-hour.md, run as it stands: between two servers called db1 and db2."""

import re
import tomllib
from pathlib import Path

import pytest

from tests.pages.shell import Shell
from tests.replica.daemon_process import DaemonProcess
from tests.servers.mysqld import GTIDS
from tests.servers.pair import Pair

PAGE = Path(__file__).parents[2] / "docs" / "first-hour.md"

pytestmark = pytest.mark.servers


def test_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    page = PAGE.read_text(encoding="utf-8")
    (configuration,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    steps = [block.splitlines() for block in re.findall(r"```sh\n(.*?)```", page, re.DOTALL)]
    accounts, grants, copy, position, check, run, right = steps
    with Pair(GTIDS, GTIDS) as pair:
        shell = Shell(tmp_path, {"db1": pair.source, "db2": pair.target}, capsys)
        pair.source.sql(
            "CREATE DATABASE shop; CREATE TABLE shop.orders"
            " (id INT PRIMARY KEY AUTO_INCREMENT, what TEXT) ; CREATE DATABASE other;"
            " INSERT INTO shop.orders (what) VALUES ('before the copy')"
        )
        settings = {
            f"{section}.{key}": value
            for section, values in tomllib.loads(configuration).items()
            for key, value in values.items()
        }
        for name in ("source", "target"):
            settings[f"{name}.host"] = "127.0.0.1"
        daemon = DaemonProcess(pair.source, pair.target, tmp_path, settings)
        daemon.configure()
        for line in [*accounts, *grants, *copy]:
            shell.run(line)
        # What happens after the copy is what mtsd has to bring.
        pair.source.sql("INSERT INTO shop.orders (what) VALUES ('after the copy')")
        for line in [*position, *check]:
            shell.run(line)
        assert run == ["mtsd run --config config.toml"]
        with daemon:
            daemon.wait_until_caught_up()
            status, written, read = right
            assert shell.run(status).split()[:2] == ["state", "running"]
            shell.run(written)
            daemon.wait_until_caught_up()
            assert "a first look" in shell.run(read)
            rows = "SELECT * FROM shop.orders ORDER BY id"
            assert pair.source.sql(rows) == pair.target.sql(rows)
            assert len(pair.target.sql(rows)) == 3
            assert daemon.stop() == 0
