"""The harness itself: what every other test with servers leans on."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pymysql
import pytest

from tests.servers import provision
from tests.servers.leases import DirtyServerError, variables
from tests.servers.mariadb import SUITES, provide_mariadb
from tests.servers.mysqld import GTIDS, Server, ServerError
from tests.servers.pair import Pair
from tests.servers.provision import Installation

pytestmark = pytest.mark.servers


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as server:
        yield server


def test_a_query_returns_the_last_statements_rows(server: Server) -> None:
    assert server.sql("SELECT 1; SELECT 2, 'three' UNION SELECT 4, 'five'") == [
        (2, "three"),
        (4, "five"),
    ]
    assert server.sql("SET @done = 1") == []


def test_root_comes_in_over_tcp_from_this_machine(server: Server) -> None:
    client = pymysql.connect(host="127.0.0.1", port=server.port, user="root")
    with client.cursor() as cursor:
        cursor.execute("SELECT @@port, @@server_id")
        assert cursor.fetchall() == ((server.port, server.port),)
    client.close()


def test_its_own_programs_reach_it(server: Server) -> None:
    server.sql(
        "CREATE DATABASE tools; CREATE TABLE tools.t (a INT); INSERT INTO tools.t VALUES (7)"
    )
    assert server.tool("mysql", "-N", "tools", stdin=b"SELECT a FROM t;") == b"7\n"
    assert b"INSERT INTO `t` VALUES (7);" in server.tool("mysqldump", "tools")
    (log, *_), *_ = server.sql("SHOW BINARY LOGS")
    assert b"CREATE DATABASE tools" in server.tool("mysqlbinlog", str(log))
    with pytest.raises(ServerError, match="Unknown database 'nowhere'"):
        server.tool("mysql", "nowhere")


def test_a_commit_outlives_a_kill_and_options_change_with_a_restart(server: Server) -> None:
    server.sql("CREATE DATABASE kept; CREATE TABLE kept.t (a INT); INSERT INTO kept.t VALUES (1)")
    before = server.port, server.sql("SELECT @@server_uuid")
    server.kill()
    assert not server.running
    server.restart({"max_connections": 17})
    assert server.sql("SELECT a, @@max_connections FROM kept.t") == [(1, 17)]
    assert before == (server.port, server.sql("SELECT @@server_uuid"))


def test_a_server_that_cannot_start_says_why() -> None:
    with (
        pytest.raises(ServerError, match="NONSENSE"),
        Server({"character_set_server": "NONSENSE"}),
    ):
        pass


def test_a_pair_is_two_servers() -> None:
    with Pair({"gtid_mode": "OFF"}, {"log_bin": "other"}) as pair:
        assert pair.source.sql("SELECT @@gtid_mode") == [("OFF",)]
        assert pair.source.sql("SELECT @@server_uuid") != pair.target.sql("SELECT @@server_uuid")
        assert pair.target.sql("SHOW BINARY LOGS")[0][0] == "other.000001"


MAKES = [provision.provide, lambda: provide_mariadb("10.11"), lambda: provide_mariadb("11.8")]


@pytest.mark.parametrize("make", MAKES, ids=["mysql", "10.11", "11.8"])
def test_what_a_test_has_left_behind_is_gone_for_the_next(make: Callable[[], Installation]) -> None:
    options = {"max_connections": 33}
    with Server(options, installation=make()) as first:
        before = first.binlog_end()
        first.sql(
            "CREATE DATABASE `a``b`; CREATE TABLE `a``b`.t (i INT) ENGINE=InnoDB;"
            "CREATE USER 'some one'@'host'; SET GLOBAL max_connections = 17, sql_mode = '';"
            "XA START 'left'; INSERT INTO `a``b`.t VALUES (1); XA END 'left'; XA PREPARE 'left'"
        )
        first.sql("FLUSH BINARY LOGS")
        left = first.client()
        left.query("SELECT GET_LOCK('left', 0)")
    with Server(options, installation=make()) as second:
        assert second.port == first.port
        assert second.binlog_end() == before
        assert second.sql("SELECT @@max_connections") == [(33,)]
        assert second.sql("SELECT @@sql_mode") != [("",)]
        second.sql(
            "CREATE DATABASE `a``b`; CREATE USER 'some one'@'host'; CREATE ROLE `some role`;"
            "CREATE TABLE `a``b`.t (i INT) ENGINE=InnoDB"
        )
        assert second.sql("XA RECOVER") == []
        second.sql("BEGIN; INSERT INTO `a``b`.t VALUES (1)")
        second.kill()
        second.start()
    with Server(options, installation=make()) as third:
        assert third.port == first.port
        assert third.binlog_end() == before
        third.restart({"max_connections": 34})
    assert not third.folder.exists()
    left._force_close()


def test_what_cannot_be_put_back_fails_the_test_by_its_name() -> None:
    change = "UPDATE mysql.user SET max_questions = 7 WHERE host = 'localhost'"
    server = Server({"max_connections": 34})
    server.start()
    server.sql(change)
    with pytest.raises(DirtyServerError, match=r"fails_the_test_by_its_name leaves .*mysql\.user"):
        server.close()
    assert not server.running
    assert not server.folder.exists()
    with Server({"max_connections": 34}) as server:
        server.sql(change)
        # It says so.
        server.discard()
    assert not server.folder.exists()


@pytest.mark.parametrize("make", MAKES, ids=["mysql", "10.11", "11.8"])
def test_options_that_can_be_set_make_no_other_server(make: Callable[[], Installation]) -> None:
    """Not even in one of its variables."""
    options: dict[str, str | int | None] = {
        "binlog_format": "STATEMENT", "binlog_row_image": "MINIMAL", "binlog_row_metadata": "FULL",
        "local_infile": 0, "log_bin_trust_function_creators": 1, "server_id": 77,
        "binlog_checksum": "NONE", "default_storage_engine": "MyISAM", "event_scheduler": 0,
        "default_time_zone": "+05:00", "explicit_defaults_for_timestamp": "OFF",
        "max_allowed_packet": "32M", "net_write_timeout": 77,
        "read_only": 1,
    }  # fmt: skip
    if make is provision.provide:
        options |= {**GTIDS, "local_infile": 1}
        options |= {"binlog_transaction_compression": "ON", "cte_max_recursion_depth": 100000}
    else:
        options |= {"binlog_commit_wait_count": 8, "binlog_commit_wait_usec": 50000}
        options |= {"log_bin_compress": "ON", "log_bin_compress_min_len": 10}
    # It has the mode of the GTIDs that a server has which is not told one.
    fixed: dict[str, str | int | None] = {"max_connections": 36}
    with Server(fixed, installation=make()) as plain:
        before = of_any(plain)
        with Server({**fixed, **options}, installation=make()) as started:
            begins, expected = started.binlog_end(), of_any(started)
            # Only the other is parked then.
            started.discard()
    with Server({**fixed, **options}, installation=make()) as adapted:
        assert adapted.port == plain.port
        assert of_any(adapted) == expected
        assert adapted.binlog_end() == begins
    with Server(fixed, installation=make()) as again:
        assert again.port == plain.port
        assert of_any(again) == before


def test_a_server_that_nobody_uses_stands_still_and_can_be_killed() -> None:
    options: dict[str, str | int | None] = {"max_connections": 38}
    with Server(options) as first:
        pid = first.pid
    _wait_until_stopped(pid)
    with Server(options) as second:
        assert second.pid == pid
        assert second.sql("SELECT 1") == [(1,)]
    # It is never started, as after a failure of the other one of a pair.
    third = Server(options)
    third.discard()
    assert not Path(f"/proc/{pid}").exists()
    assert not third.folder.exists()


def test_a_new_server_is_down_until_it_starts() -> None:
    with Server({"max_connections": 39}) as first:
        pass
    new = Server({"max_connections": 39}, new=True)
    assert new.port != first.port
    assert not _listens(new.port)
    new.close()


def _wait_until_stopped(pid: int) -> None:
    deadline = time.monotonic() + 60
    while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
        assert time.monotonic() < deadline
        time.sleep(0.01)


def of_any(server: Server) -> dict[str, str]:
    """Return its variables, without what tells it apart from another with the same options."""
    with closing(server.client()) as client:
        found = variables(client)
    for name in ("pid_file", "port", "report_port", "server_uid", "server_uuid"):
        found.pop(name, None)
    return {name: value for name, value in found.items() if str(server.folder) not in value}


def test_a_server_to_which_somebody_has_come_is_not_used() -> None:
    with Server({"max_connections": 35}) as first:
        pid = first.pid
    os.kill(pid, signal.SIGCONT)
    first.sql("CREATE DATABASE late")
    with Server({"max_connections": 35}) as second:
        assert ("late",) not in second.sql("SHOW DATABASES")


@pytest.mark.parametrize("series", SUITES)
def test_a_mariadb_of_each_series(series: str) -> None:
    with Server(installation=provide_mariadb(series)) as mariadb:
        assert mariadb.sql("SELECT VERSION()")[0][0].startswith(f"{series}.")
        client = pymysql.connect(host="127.0.0.1", port=mariadb.port, user="root")
        client.close()
        mariadb.sql("CREATE DATABASE kept; CREATE TABLE kept.t (a INT) ENGINE=InnoDB")
        mariadb.kill()
        mariadb.restart()
        assert mariadb.sql("SHOW TABLES", "kept") == [("t",)]
        assert b"CREATE DATABASE kept" in mariadb.tool("mysqlbinlog", "binlog.000001")


@pytest.mark.parametrize("make", [provision.provide, lambda: provide_mariadb("11.8")])
def test_its_temporary_files_are_its_own(make: Callable[[], Installation]) -> None:
    with Server(installation=make()) as server:
        ((folder,),) = server.sql("SELECT @@tmpdir")
        assert Path(str(folder)).is_relative_to(server.folder)


def test_a_mariadb_on_the_path_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("mysqld", "mysqlbinlog"):
        program = tmp_path / name
        program.write_text("#!/bin/sh\necho 'mysqld  Ver 10.11.14-MariaDB for debian-linux-gnu'\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert provision._on_path(tmp_path) is None


DIES_WITH_A_SERVER = """
import os, signal
from tests.servers.mysqld import Server
server = Server()
server.start()
parked = Server({"max_connections": 40})
parked.start()
parked.close()
print(server.port, server.folder, parked.port, parked.folder, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_process_that_dies_leaves_no_server() -> None:
    """Neither one in use nor a parked one, which stands still."""
    told = subprocess.run(
        [sys.executable, "-c", DIES_WITH_A_SERVER], capture_output=True, text=True, check=False
    ).stdout.split()
    ports, folders = list(map(int, told[::2])), list(map(Path, told[1::2]))
    deadline = time.monotonic() + 60
    while any(folder.exists() for folder in folders) or any(map(_listens, ports)):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
