"""`mtsd binlog --config`: the files of a live source read the same as on its disk."""

import io
import json
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from mtsd.cli.main import main
from tests.servers.mariadb import SUITES, provide_mariadb
from tests.servers.mysqld import GTIDS, Options, Server
from tests.servers.provision import provide

pytestmark = pytest.mark.servers


EXPECTED_ROWS = {"binlog.000001": 1, "binlog.000002": 2, "binlog.000003": 1}


def listed(*arguments: str) -> str:
    said = io.StringIO()
    with redirect_stdout(said):
        assert main(["binlog", *arguments]) == 0
    return said.getvalue()


@pytest.mark.parametrize("series", ["MySQL", *SUITES])
def test_same_as_the_file(series: str, tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    installation = provide_mariadb(series) if series in SUITES else provide()
    compression = "log_bin_compress" if series in SUITES else "binlog_transaction_compression"
    scope = "GLOBAL" if series in SUITES else "SESSION"
    options: Options = (
        {"binlog_format": "ROW"} if series in SUITES else {"binlog_format": "ROW", **GTIDS}
    )
    with Server(options, installation=installation) as server:
        server.sql(
            "CREATE DATABASE a; CREATE TABLE a.t (id INT PRIMARY KEY); INSERT INTO a.t VALUES (1);"
            "FLUSH BINARY LOGS; INSERT INTO a.t VALUES (2);"
            f"SET {scope} {compression} = ON; INSERT INTO a.t VALUES (3)"
        )
        # The second file ends with the server's shutdown, without naming the next one.
        server.stop()
        server.start()
        server.sql("INSERT INTO a.t VALUES (4)")
        config.write_text(f'[source]\nport = {server.port}\nuser = "root"\n')
        for words in (["--events"], ["--json"], ["--rows"], ["--rows", "--json"]):
            for name in ("binlog.000001", "binlog.000002", "binlog.000003"):
                of_source = listed("--config", str(config), *words, name)
                assert of_source.count("\n") >= 1
                of_file = listed(*words, str(server.datadir / name))
                # The format description of a file that is being written says so; a dump's does not.
                assert of_source == of_file.replace('"flags": 1, "fields"', '"flags": 0, "fields"')
                rows = of_source.count("insert a.t (@1 = ") + of_source.count('"op": "insert"')
                assert rows == EXPECTED_ROWS[name] * ("--rows" in words)
        every = listed("--config", str(config), "--json")
        assert every.count("\n") == 6
        files = [str(server.datadir / name) for name in EXPECTED_ROWS]
        for group in map(json.loads, every.splitlines()):
            for chosen in (
                ["--gtid", group["gtid"]],
                ["--position", f"{group['file']}:{group['pos']}"],
            ):
                for option in ("--events", "--rows"):
                    found = listed("--config", str(config), option, "--json", *chosen)
                    assert found == listed(option, "--json", *chosen, *files)
                    assert f'"pos": {group["pos"]},' in found
                assert listed("--config", str(config), "--json", *chosen).count("\n") == 1
