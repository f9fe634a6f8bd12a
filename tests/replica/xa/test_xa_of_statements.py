"""XA transactions of statements: files, savepoints, and tables that the target cannot roll back."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pymysql
import pytest

from tests.apply.statements.loading import file
from tests.fix_daemon import assert_none_in_doubt
from tests.load.compare import differences
from tests.replica.daemon_process import DaemonProcess, Value
from tests.servers.mysqld import GTIDS, Server
from tests.servers.pair import Pair

pytestmark = pytest.mark.servers

SMALL: dict[str, Value] = {
    "replica.pending_jobs_size_max": 1 << 20,
    "replica.batch_bytes": 1 << 18,
}


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    options = {**GTIDS, "local_infile": 1}
    with Pair({**options, "binlog_format": "STATEMENT"}, options) as pair:
        yield pair


def prepare(server: Server, *statements: str) -> None:
    client = pymysql.connect(
        unix_socket=str(server.socket), user="root", database="d", autocommit=True,
        local_infile=True, ssl_disabled=True,
    )  # fmt: skip
    with closing(client), client.cursor() as cursor:
        for statement in ("XA START 'x'", *statements, "XA END 'x'", "XA PREPARE 'x'"):
            cursor.execute(statement)


@pytest.mark.parametrize(
    ("rows", "settings"),
    [(3, {"target.gtid": "preserve"}), (3, {}), (150_000, {**SMALL, "target.gtid": "preserve"})],
    ids=["preserved", "own GTIDs", "streamed"],
)
def test_a_file_and_a_savepoint(
    pair: Pair, tmp_path: Path, rows: int, settings: dict[str, Value]
) -> None:
    """Only a table that a statement names is asked for: `d.m` is none of them."""
    for server in (pair.target, pair.source):
        server.sql("DROP DATABASE IF EXISTS d; DROP DATABASE IF EXISTS mtsd")
        server.sql("RESET BINARY LOGS AND GTIDS")
    source = pair.source
    source.sql(
        "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, v VARCHAR(40));"
        "CREATE TABLE d.m (id INT) ENGINE = MyISAM"
    )
    large = file(source, "rows", "".join(f"{n}\t{n:020}\n" for n in range(rows)))
    with DaemonProcess(source, pair.target, tmp_path, settings) as daemon:
        daemon.wait_until_caught_up()
        prepare(
            source,
            "INSERT INTO t VALUES (-1, 'one')",
            "SAVEPOINT s",
            "INSERT INTO t VALUES (-2, 'two')",
            "ROLLBACK TO s",
            f"LOAD DATA INFILE '{large}' INTO TABLE t",
        )
        daemon.wait_until_caught_up()
        assert len(pair.target.sql("XA RECOVER")) == 1
        # The evidence for it is not that of a table without transactions.
        assert_none_in_doubt(pair.target)
        source.sql("XA COMMIT 'x'")
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        assert ("streaming a large group" in daemon.log.read_text()) == (rows > 3)
    assert differences(source, pair.target) == []
