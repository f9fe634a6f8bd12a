"""A source whose log has several statements in one event: the filter holds, and nothing runs."""

import re
from pathlib import Path

import pytest

from tests.fix_daemon import NEEDS_PERSON
from tests.replica.daemon_process import DaemonProcess, Value
from tests.servers.mysqld import Server
from tests.servers.pair import Pair

pytestmark = pytest.mark.servers

STATEMENTS = {"binlog_format": "STATEMENT", "binlog_checksum": "NONE"}
HIDDEN = b"/*DROP TABLE secret.t */"


def forged(server: Server) -> None:
    """Let the comments in the log become statements behind their own."""
    file, _, _ = server.binlog_end()
    path = server.datadir / file
    path.write_bytes(path.read_bytes().replace(HIDDEN, b";DROP TABLE secret.t -- "))


def test_a_second_statement_of_an_event(tmp_path: Path) -> None:
    with Pair(STATEMENTS) as pair:
        both = "CREATE DATABASE shop; CREATE TABLE shop.t1 (a TEXT); CREATE DATABASE secret"
        for server in (pair.source, pair.target):
            server.sql(f"{both}; CREATE TABLE secret.t (a INT)")
        end = pair.source.binlog_end()
        pair.source.sql("INSERT INTO shop.t1 VALUES ('before')")
        pair.source.sql(f"INSERT INTO shop.t1 VALUES ('x'){HIDDEN.decode()}")
        forged(pair.source)
        settings: dict[str, Value] = {
            "filter.do_table": ["shop.t1"],
            "source.start": f"{end[0]}:{end[1]}",
        }
        with DaemonProcess(pair.source, pair.target, tmp_path, settings) as daemon:
            assert daemon.wait(60) == NEEDS_PERSON, daemon.last_words()
            said = daemon.last_words()
        assert re.search(r"with another one behind the ';' at byte 32\b", said), said
        assert pair.target.sql("SELECT a FROM shop.t1") == [("before",)]
        assert pair.target.sql("SHOW TABLES FROM secret") == [("t",)]
