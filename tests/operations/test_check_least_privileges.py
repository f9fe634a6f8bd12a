"""Users with exactly the printed grants: `mtsd check` finds nothing amiss, and a daemon runs."""

from pathlib import Path

import pytest

from mtsd.cli.main import main
from tests.load.compare import differences
from tests.load.journal import audit
from tests.load.mixed import Mix, MixedLoad
from tests.operations.checked import configuration, told
from tests.replica.daemon_process import DaemonProcess, Value
from tests.servers.mysqld import GTIDS, Options
from tests.servers.pair import Pair

pytestmark = pytest.mark.servers


def test_the_printed_grants_are_enough(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source_options: Options = {**GTIDS, "sync_binlog": 1}
    target_options: Options = {**GTIDS, "log_bin_trust_function_creators": 1}
    with Pair(source_options, target_options) as pair:
        users: dict[str, Value] = {
            "source.user": "reader",
            "source.password": "one",
            "target.user": "writer",
            "target.password": "two",
            "target.schema": "position$of_it",
        }
        daemon = DaemonProcess(pair.source, pair.target, tmp_path, users)
        config = configuration(tmp_path, daemon.settings)
        assert main(["check", "--config", str(config), "--grants"]) == 0
        ours, theirs = capsys.readouterr().out.split("\n\n")
        here = "SET sql_log_bin = 0;"
        pair.source.sql(f"{here} CREATE USER reader IDENTIFIED BY 'one'")
        pair.target.sql(f"{here} CREATE USER writer IDENTIFIED BY 'two'")
        pair.source.tool("mysql", stdin=f"{here}{ours}".encode())
        pair.target.tool("mysql", stdin=f"{here}{theirs}".encode())
        pair.source.sql(
            "CREATE DATABASE a; CREATE TABLE a.t (id INT PRIMARY KEY);"
            "SET sql_log_bin = 0; CREATE USER gone@localhost"
        )

        before = told(tmp_path, daemon.settings)
        # It cannot do what accounts need, and that is all.
        assert (before.status, set(before.bad)) == (0, {"accounts"}), before.bad
        assert pair.target.sql("SHOW DATABASES LIKE 'position%'") == []

        with daemon:
            daemon.wait_until_running()
            mix = Mix(create_select=True, statement_format=True)
            load = MixedLoad(pair.source, seed=11, databases=3, mix=mix)
            load.prepare()
            with load.running(rate=150):
                pair.source.sql(
                    "CREATE DEFINER = gone@localhost VIEW a.v AS SELECT id FROM a.t;FLUSH TABLES"
                )
                pair.source.sql("CREATE EVENT a.e ON SCHEDULE EVERY 1 DAY DO DELETE FROM a.t")
                daemon.wait_until_caught_up()
                during = told(tmp_path, daemon.settings)
                daemon.kill()
                daemon.start()
                daemon.wait_until_running()
            daemon.wait_until_caught_up()
            after = told(tmp_path, daemon.settings)
            assert daemon.running
            assert daemon.stop() == 0
        assert during.status == after.status == 0, (during.bad, after.bad)
        assert {"daemon-runs", "daemon-connected", "position-available"} <= during.lines.keys()
        interrupted = [r for r in daemon.records() if r["event"] == "source not connected"]
        assert interrupted == []
        # The load has tables without keys, and foreign keys across databases and with cascades.
        expected = {"accounts", "no-key", "foreign-keys", "cascades"}
        assert set(after.bad) - {"own-triggers"} == expected
        assert audit(pair.target, load.ledger) == []
        assert differences(pair.source, pair.target, ("position$of_it",)) == []
