"""Users with exactly the printed grants: `mtsd check` finds nothing amiss, and a daemon runs."""

from contextlib import closing
from pathlib import Path

import pymysql
import pytest

from mtsd.cli.main import main
from tests.load.compare import differences
from tests.load.journal import audit
from tests.load.mixed import Mix, MixedLoad
from tests.operations.checked import configuration, told
from tests.replica.daemon_process import DaemonProcess, Value
from tests.servers.mysqld import GTIDS, Options, Server
from tests.servers.pair import Pair

pytestmark = pytest.mark.servers


HERE = "SET sql_log_bin = 0;"
OF_SYS = (
    "SET binlog_format = STATEMENT;"
    " INSERT INTO a.t VALUES (1000 + sys.sys_get_config('statement_performance_analyzer.limit', 0))"
)
"""A statement whose function is invoked, and reads a table, as who calls it."""
WITH_TEMPORARY = (
    "SET binlog_format = STATEMENT; CREATE TEMPORARY TABLE a.w (i INT);"
    " INSERT INTO a.w VALUES (99); INSERT INTO a.t SELECT i FROM a.w"
)
ROOT_BY = (
    "INSERT INTO mysql.user SELECT * FROM mysql.user",
    "CREATE USER evil",
    "INSERT INTO mysql.global_grants VALUES ('writer', '%', 'SYSTEM_USER', 'N')",
    "CREATE FUNCTION f RETURNS INTEGER SONAME 'f.so'",
    "CREATE PROCEDURE sys.p() SELECT 1",
    "CREATE DEFINER = root@localhost PROCEDURE later.p() CREATE USER evil",
)


def printed(
    folder: Path, settings: dict[str, Value], capsys: pytest.CaptureFixture[str]
) -> tuple[str, str]:
    """Return what --grants prints for the source, and for the target."""
    assert main(["check", "--config", str(configuration(folder, settings)), "--grants"]) == 0
    ours, theirs = capsys.readouterr().out.split("\n\n")
    return ours, theirs


def refuses_to_become_root(target: Server) -> None:
    """Try what the target's user could do for a hostile source."""
    with closing(target.client(user="writer", password="two")) as client, client.cursor() as cursor:
        cursor.execute("CREATE DATABASE later")
        for attempt in ROOT_BY:
            with pytest.raises(pymysql.err.OperationalError, match="denied"):
                cursor.execute(attempt)
        cursor.execute("DROP DATABASE later")


def in_named_databases(
    pair: Pair, folder: Path, users: dict[str, Value], capsys: pytest.CaptureFixture[str]
) -> None:
    """Replicate by a user who may change the databases that the filter names, and no others."""
    named: dict[str, Value] = {
        **users,
        "source.server_id": 4202,
        "target.user": "narrow",
        "target.schema": "narrow",
        "target.definer": "current_user",
        "filter.wild_do_table": ["a.%"],
    }
    daemon = DaemonProcess(pair.source, pair.target, folder, named)
    _, theirs = printed(folder, daemon.settings, capsys)
    pair.target.sql(f"{HERE} CREATE USER narrow IDENTIFIED BY 'two'")
    pair.target.tool("mysql", stdin=f"{HERE}{theirs}".encode())
    with (
        closing(pair.target.client(user="narrow", password="two")) as client,
        pytest.raises(pymysql.err.OperationalError, match="denied"),
    ):
        client.cursor().execute("CREATE DATABASE b")
    assert told(folder, daemon.settings).bad.keys() == {"accounts"}
    with daemon:
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
    assert pair.target.sql("SELECT COUNT(*) FROM a.t") == [(0,)]
    pair.target.sql(f"{HERE} DROP DATABASE a; DROP DATABASE narrow")


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
        ours, theirs = printed(tmp_path, daemon.settings, capsys)
        pair.source.sql(f"{HERE} CREATE USER reader IDENTIFIED BY 'one'")
        pair.target.sql(f"{HERE} CREATE USER writer IDENTIFIED BY 'two'")
        pair.source.tool("mysql", stdin=f"{HERE}{ours}".encode())
        pair.target.tool("mysql", stdin=f"{HERE}{theirs}".encode())
        pair.source.sql(
            "CREATE DATABASE a; CREATE TABLE a.t (id INT PRIMARY KEY);"
            "SET sql_log_bin = 0; CREATE USER gone@localhost"
        )

        refuses_to_become_root(pair.target)
        in_named_databases(pair, tmp_path, users, capsys)
        before = told(tmp_path, daemon.settings)
        # It cannot do what accounts and others' definitions need, and that is all.
        assert (before.status, set(before.bad)) == (0, {"accounts", "definers"}), before.bad
        (definers,) = [line for line in theirs.splitlines() if "SET_ANY_DEFINER" in line]
        pair.target.sql(f"{HERE}{definers.removeprefix('-- ')}")
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
                pair.source.sql(OF_SYS)
                pair.source.sql(WITH_TEMPORARY)
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
