"""A small file of a real server, for all that reads files by ranges."""

from contextlib import closing

import pytest

from tests.binlog.range_cases import Small, parts
from tests.binlog.recording import Recording

STATEMENTS = (
    "CREATE TABLE r.t (id INT PRIMARY KEY, v VARCHAR(300))",
    "INSERT INTO t VALUES (1, 'one'), (2, 'two')",
    "BEGIN",
    "INSERT INTO t VALUES (3, 'three')",
    "UPDATE t SET v = REPEAT('long', 60) WHERE id < 3",
    "DELETE FROM t WHERE id = 3",
    "COMMIT",
    "SET binlog_transaction_compression = ON",
    "INSERT INTO t VALUES (4, REPEAT('a', 300)), (5, REPEAT('b', 300)), (6, REPEAT('c', 300))",
    "SET binlog_transaction_compression = OFF",
    "ALTER TABLE t ADD n INT",
    "CREATE TABLE unsafe (a INT) ENGINE = MyISAM",
    "INSERT INTO unsafe VALUES (1)",
    "UPDATE t SET n = id",
)


@pytest.fixture(scope="module")
def small(recording: Recording) -> Small:
    server = recording.server
    server.sql("FLUSH BINARY LOGS")
    server.sql("CREATE DATABASE r")
    with closing(server.client("r")) as client, client.cursor() as cursor:
        for statement in STATEMENTS:
            cursor.execute(statement)
    server.sql("FLUSH BINARY LOGS")
    *_, (name, *_), _ = server.sql("SHOW BINARY LOGS")
    server.sql("DROP DATABASE r")
    data = (server.datadir / str(name)).read_bytes()
    assert len(data) < 7000
    return Small(data, parts(data))
