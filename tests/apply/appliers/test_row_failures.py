"""What hides behind "Unknown error" of rows: an interruption, or a column of another type."""

import io
import re
import shlex
import threading
import time
from contextlib import closing, redirect_stdout, suppress
from pathlib import Path

import pymysql
import pytest

from mtsd.cli.main import main
from tests.fix_families import families
from tests.load.compare import differences
from tests.replica.daemon_process import DaemonProcess, Value
from tests.servers.mysqld import GTIDS, NO_GTIDS, Options, Server
from tests.servers.pair import Pair

pytestmark = pytest.mark.servers


def test_kill_query_while_rows_are_applied(tmp_path: Path) -> None:
    """Until both errors by which an interruption shows have come."""
    settings: dict[str, Value] = {
        "replica.batch_groups": 1,
        "replica.transaction_retries": 1000,
        "target.user": "mtsd_here",
    }
    with Pair(GTIDS, GTIDS) as pair:
        pair.target.sql("SET sql_log_bin = 0; CREATE USER mtsd_here; GRANT ALL ON *.* TO mtsd_here")
        pair.source.sql("CREATE DATABASE a; CREATE TABLE a.t (id INT AUTO_INCREMENT PRIMARY KEY)")
        with DaemonProcess(pair.source, pair.target, tmp_path, settings) as daemon:
            daemon.wait_until_caught_up()
            ended = threading.Event()

            def load() -> None:
                with closing(pair.source.client()) as client, client.cursor() as cursor:
                    while not ended.is_set():
                        cursor.execute("INSERT INTO a.t VALUES (), ()")

            loading = threading.Thread(target=load)
            loading.start()
            deadline = time.monotonic() + 120
            seen: set[object] = set()
            try:
                with closing(pair.target.client()) as client, client.cursor() as cursor:
                    while not {1105, 1317} <= seen:
                        assert daemon.running, daemon.last_words()
                        assert time.monotonic() < deadline, seen
                        cursor.execute(
                            "SELECT id FROM information_schema.processlist"
                            " WHERE user = 'mtsd_here' AND info LIKE 'BINLOG%'"
                        )
                        for (id_,) in cursor.fetchall():
                            # The session may have ended meanwhile.
                            with suppress(pymysql.OperationalError):
                                cursor.execute(f"KILL QUERY {id_}")
                        records = daemon.records()
                        seen = {r["error"] for r in records if r["event"] == "retrying"}
            finally:
                ended.set()
                loading.join()
            daemon.wait_until_caught_up()
            assert daemon.stop() == 0
        assert differences(pair.source, pair.target) == []


def fill(target: Server) -> None:
    while True:
        target.sql("INSERT INTO a.filler VALUES (REPEAT('x', 1 << 20))")


def test_a_target_without_space_is_waited_for(tmp_path: Path) -> None:
    """However long, by whatever is applied; also by a daemon that starts meanwhile."""
    full: Options = {
        **GTIDS,
        "innodb_file_per_table": "OFF",
        "innodb_data_file_path": "ibdata1:12M:autoextend:max:40M",
    }
    settings: dict[str, Value] = {
        "replica.transaction_retries": 0,
        "replica.pending_jobs_size_max": 2 << 20,
        "replica.batch_bytes": 1 << 20,
    }
    with Pair(GTIDS, full) as pair:
        pair.source.sql(
            "CREATE DATABASE a; CREATE TABLE a.t (id INT PRIMARY KEY, v LONGBLOB);"
            "CREATE DATABASE b; CREATE TABLE b.t LIKE a.t"
        )
        with DaemonProcess(pair.source, pair.target, tmp_path, settings) as daemon:
            daemon.wait_until_caught_up()
            pair.target.sql("SET sql_log_bin = 0; CREATE TABLE a.filler (v LONGBLOB)")
            with pytest.raises(pymysql.err.OperationalError, match="is full"):
                fill(pair.target)
            # In memory, streamed, and a definition that has to write as much.
            pair.source.sql("INSERT INTO b.t VALUES (1, REPEAT('x', 1 << 20))")
            waiting = daemon.wait_for_status(lambda now: now.state == "waiting", "it does not wait")
            assert waiting.doing.startswith("the target's disk is full: error 1114: ")
            assert waiting.doing.endswith(", or raise the limit of the tablespace")
            error = waiting.connections.target.last_error
            assert waiting.connections.target.connected
            assert error is not None
            assert error.number == 1114
            assert "is full" in str(waiting.last_error)
            workers = [(each.state, each.waits_for) for each in waiting.workers]
            assert ("waiting", "the target's disk is full") in workers
            pair.source.sql("INSERT INTO a.t VALUES (1, REPEAT('y', 4 << 20))")
            time.sleep(1)
            assert daemon.running
            daemon.kill()
            daemon.start()
            daemon.wait_for_status(lambda now: now.state == "waiting", "it does not wait")
            pair.target.sql("SET sql_log_bin = 0; DROP TABLE a.filler")
            daemon.wait_until_caught_up()
            over = daemon.wait_for_status(lambda now: not now.doing, "it is not over")
            assert (over.state, over.last_error) == ("running", None)
            assert over.connections.target.last_error is None
            told = [each for each in daemon.records() if each["level"] == "warning"]
            events = [str(each["event"]) for each in told]
            # Once in each daemon's life, for all attempts.
            assert events == [
                "waiting: the target's disk is full", "waiting: the target's disk is full",
                "the target takes changes again",
            ]  # fmt: skip
            assert told[0]["error"] == 1114
            assert "Free space" in str(told[0]["remedy"])
            assert daemon.stop() == 0
        assert pair.target.sql("SELECT LENGTH(v) FROM a.t") == [(4 << 20,)]
        assert differences(pair.source, pair.target) == []


@pytest.mark.parametrize(
    ("source", "target", "value", "says"),
    [
        ("INT", "SMALLINT", "7", "ALL_LOSSY"),
        ("INT", "BIGINT", "7", "ALL_NON_LOSSY"),
        ("INT", "DATE", "7", "ALTER TABLE"),
        ("DATETIME", "DATETIME(3)", "'2024-05-06 07:08:09'", "ALTER TABLE"),
    ],
)
def test_a_column_that_does_not_fit_is_named(
    source: str, target: str, value: str, says: str, tmp_path: Path
) -> None:
    with Pair(GTIDS, GTIDS) as pair:
        pair.source.sql(f"CREATE DATABASE a; CREATE TABLE a.t (id INT PRIMARY KEY, v {source})")
        with DaemonProcess(pair.source, pair.target, tmp_path) as daemon:
            daemon.wait_until_caught_up()
            pair.target.sql(f"SET sql_log_bin = 0; ALTER TABLE a.t MODIFY v {target}")
            pair.source.sql(f"INSERT INTO a.t VALUES (1, {value})")
            assert daemon.wait() == 3
            message = str(daemon.records()[-1]["error"])
            assert "error 1677" in message
            assert f"column 2 of table a.t, 'v', is {source.lower()} on the source" in message
            assert f"and {target.lower()} on the target" in message
            assert says in message
            assert not [r for r in daemon.records() if r["event"] == "retrying"]
            # What the message says helps.
            if says == "ALTER TABLE":
                pair.target.sql(f"SET sql_log_bin = 0; ALTER TABLE a.t MODIFY v {source}")
            else:
                pair.target.sql(f"SET GLOBAL replica_type_conversions = '{says}'")
            daemon.start()
            daemon.wait_until_caught_up()
            assert daemon.stop() == 0
        assert len(pair.target.sql("SELECT * FROM a.t")) == 1


def test_on_a_mariadb_what_the_message_says_helps(tmp_path: Path) -> None:
    with families("11.8", "11.8") as pair:
        pair.source.sql("CREATE DATABASE a; CREATE TABLE a.t (id INT PRIMARY KEY, v INT)")
        daemon = DaemonProcess(pair.source, pair.target, tmp_path)
        daemon.start()
        daemon.wait_until_caught_up()
        pair.target.sql("ALTER TABLE a.t MODIFY v BIGINT")
        pair.source.sql("INSERT INTO a.t VALUES (1, 7)")
        assert daemon.wait() == 3
        message = str(daemon.records()[-1]["error"])
        found = re.search("SET GLOBAL slave_type_conversions = 'ALL_NON_LOSSY'", message)
        assert found, message
        pair.target.sql(found[0])
        daemon.start()
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        assert pair.target.sql("SELECT * FROM a.t") == [(1, 7)]


def test_a_streamed_group_names_the_column_too(tmp_path: Path) -> None:
    settings: dict[str, Value] = {
        "replica.pending_jobs_size_max": 65536,
        "replica.batch_bytes": 16384,
    }
    with Pair(GTIDS, GTIDS) as pair:
        pair.source.sql("CREATE DATABASE a; CREATE TABLE a.t (id INT PRIMARY KEY, v VARCHAR(900))")
        with DaemonProcess(pair.source, pair.target, tmp_path, settings) as daemon:
            daemon.wait_until_caught_up()
            pair.target.sql("SET sql_log_bin = 0; ALTER TABLE a.t MODIFY v VARCHAR(1000)")
            rows = ",".join(f"({number}, REPEAT('x', 900))" for number in range(300))
            pair.source.sql(f"INSERT INTO a.t VALUES {rows}")
            assert daemon.wait() == 3
        message = str(daemon.records()[-1]["error"])
        assert "streamed because of its size" in message
        assert "column 2 of table a.t, 'v', is varchar of 3600 bytes on the source" in message


OF_FAILURES = (
    "CREATE DATABASE a;"
    "CREATE TABLE a.k (n INT, t VARCHAR(99), v INT, PRIMARY KEY (n, t));"
    "CREATE TABLE a.u (id INT PRIMARY KEY, e INT UNIQUE);"
    "CREATE TABLE a.n (x INT, said VARCHAR(99));"
    "INSERT INTO a.k VALUES (1, 'a', 0), (2, 'b''\n', 0), (3, REPEAT('d', 70), 0);"
    "INSERT INTO a.n VALUES (6, 'geheim'), (7, 'geheim')"
)
FAILURES = [
    (
        "DELETE FROM a.k WHERE n = 2",
        "START TRANSACTION; INSERT INTO a.n VALUES (1, 'x'); UPDATE a.k SET v = v + 1; COMMIT",
        "1032", "It fails at: update of a.k, n = 2, t = \"b'\\n\".",
        "INSERT INTO a.k VALUES (2, 'b''\n', 0)",
    ),
    (
        "DELETE FROM a.k WHERE n = 3",
        "DELETE FROM a.k WHERE n > 1",
        "1032", f"It fails at: delete from a.k, n = 3, t = '{'d' * 64}'… (70 in all).",
        "INSERT INTO a.k VALUES (3, REPEAT('d', 70), 1)",
    ),
    (
        "INSERT INTO a.u VALUES (99, 5)",
        "INSERT INTO a.n VALUES (1, 'x'); INSERT INTO a.u VALUES (1, 4), (2, 5), (3, 6);",
        "1062", "It fails at: insert into a.u, id = 2.",
        "DELETE FROM a.u WHERE id = 99",
    ),
    (
        "DELETE FROM a.n WHERE x = 7",
        "DELETE FROM a.n WHERE x > 1",
        "1032", "It fails at: delete from a.n, which has no key to find it by, x = 7, said = (6",
        "INSERT INTO a.n VALUES (7, 'geheim')",
    ),
]  # fmt: skip
"""What the target loses, what the source does, the error, the row, and what puts it right."""


def check_failing_rows(
    pair: Pair, folder: Path, modes: tuple[str, ...] = ("binlog", "sql"), *, by_gtid: bool = True
) -> None:
    pair.source.sql(OF_FAILURES)
    for mode in modes:
        daemon = DaemonProcess(pair.source, pair.target, folder, {"target.apply_mode": mode})
        daemon.start()
        daemon.wait_until_caught_up()
        for lost, change, number, row, cure in FAILURES if mode == "binlog" else FAILURES[::3]:
            pair.target.sql(f"SET sql_log_bin = 0; {lost}")
            pair.source.sql(change)
            assert daemon.wait() == 3, daemon.last_words()
            message = str(daemon.records()[-1]["error"])
            assert f"error {number}" in message
            assert row in message
            assert "geheim" not in message
            printed = r"`mtsd (binlog --rows (--gtid|--group) .*?)` shows its rows"
            found = re.search(printed, message)
            assert found, message
            assert (found[2] == "--gtid") == by_gtid
            said = io.StringIO()
            with redirect_stdout(said):
                assert main(shlex.split(found[1])) == 0
            does = re.search(r"at: (update|delete|insert) \w+ (a\.\w)", row)
            assert does is not None
            assert f"{does[1]} {does[2]} (" in said.getvalue()
            pair.target.sql(f"SET sql_log_bin = 0; {cure}")
            daemon.start()
            daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        for table in "kun":
            rows = f"SELECT * FROM a.{table} ORDER BY 1, 2"
            assert pair.source.sql(rows) == pair.target.sql(rows)
        pair.source.sql(f"DROP DATABASE a; {OF_FAILURES}")


def test_the_row_that_fails_is_named(tmp_path: Path) -> None:
    with Pair(GTIDS, GTIDS) as pair:
        check_failing_rows(pair, tmp_path)


def test_on_a_mariadb_the_row_that_fails_is_named(tmp_path: Path) -> None:
    with families("11.8", "11.8") as pair:
        check_failing_rows(pair, tmp_path)


def test_between_families_and_without_gtids_the_row_that_fails_is_named(tmp_path: Path) -> None:
    with families("9.7", "11.8", NO_GTIDS) as pair:
        check_failing_rows(pair, tmp_path, ("sql",), by_gtid=False)
