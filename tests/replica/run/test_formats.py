"""Statements, rows and both in one transaction, beside the server's own replica."""

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pymysql
import pytest

from tests.load.compare import differences
from tests.replica.daemon_process import DaemonProcess
from tests.servers.mysqld import GTIDS, Options, Server
from tests.servers.pair import Pair

pytestmark = pytest.mark.servers

OPTIONS: Options = {**GTIDS, "log_bin_trust_function_creators": 1}
MANY = [f"m{number:02}" for number in range(18)]
BODY = (
    "BEGIN INSERT INTO a.t (v) VALUES (x); UPDATE b.t SET v = CONCAT(x, UUID_SHORT() > 0);"
    " SET @from_body = x; END"
)
DEFINITIONS = (
    "CREATE DATABASE a",
    "CREATE DATABASE b CHARACTER SET latin1",
    *(f"CREATE DATABASE {name}" for name in MANY),
    *(f"CREATE TABLE {name}.t (id INT PRIMARY KEY, v INT)" for name in MANY),
    *(f"INSERT INTO {name}.t VALUES (1, 1)" for name in MANY),
    "CREATE TABLE a.t (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(60), r DOUBLE)",
    "CREATE TABLE b.t (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(60), r DOUBLE)",
    "CREATE TABLE b.log (n INT, who VARCHAR(99), at TIMESTAMP(6))",
    (
        "CREATE TRIGGER a.logs AFTER INSERT ON a.t FOR EACH ROW"
        " INSERT INTO b.log VALUES (NEW.id, NEW.v, NOW(6))"
    ),
    f"CREATE PROCEDURE a.p(x VARCHAR(9)) {BODY}",
    (
        "CREATE FUNCTION b.f(x INT) RETURNS INT BEGIN INSERT INTO b.log VALUES (x, '', NULL);"
        " RETURN x; END"
    ),
    "CREATE VIEW a.w AS SELECT t.id, t.v, b.t.r FROM a.t JOIN b.t USING (id)",
)
IN_EACH_FORMAT = (
    "BEGIN",
    "INSERT INTO t (v, r) VALUES ('x', RAND()), (NOW(6), 2)",
    "UPDATE t SET v = CONCAT(v, LAST_INSERT_ID()) WHERE id = LAST_INSERT_ID()",
    "INSERT INTO b.t (v, r) SELECT v, r FROM t ORDER BY id",
    "COMMIT",
    "CALL p('called')",
    "SELECT b.f(7)",
    "SET @id = 1, @v = 'é', @r = 0.1e0",
    "UPDATE a.t, b.t SET a.t.v = @v, b.t.r = @r WHERE a.t.id = @id AND b.t.id = a.t.id",
    "DELETE a.t FROM a.t JOIN b.t ON a.t.id = b.t.id WHERE b.t.r > 0.9",
    "UPDATE w SET v = 'through the view' WHERE id = 2",
    "INSERT IGNORE INTO b.t (id, v) VALUES (1, 'ignored'), (NULL, 'new')",
    "REPLACE INTO b.t (id, v) VALUES (1, 'replaced')",
    "INSERT INTO b.t (id) VALUES (2) ON DUPLICATE KEY UPDATE v = CONCAT(v, VALUES(id))",
    (
        f"UPDATE {', '.join(f'{name}.t AS {name}' for name in MANY)}"
        f" SET {', '.join(f'{name}.v = {name}.v + 1' for name in MANY)}"
    ),
    (
        f"UPDATE {', '.join(f'{name}.t AS {name}' for name in MANY[:16])}"
        f" SET {', '.join(f'{name}.v = {name}.v + 1' for name in MANY[:16])}"
    ),
)
ONCE = (
    "CREATE TABLE a.copied SELECT id, v, RAND() > 2 never, @v said FROM a.t ORDER BY id",
    "ALTER TABLE a.copied ADD PRIMARY KEY (id), ADD c JSON, COMMENT 'it''s'",
    "CREATE TABLE a.gone1 (i INT)",
    "CREATE TABLE b.gone2 LIKE a.t",
    f"DROP TABLE IF EXISTS a.gone1, b.gone2, {', '.join(f'{name}.t' for name in MANY[2:])}",
    f"DROP DATABASE {MANY[-1]}",
    "RENAME TABLE b.log TO a.log, a.copied TO b.copied",
    "CREATE USER reader IDENTIFIED BY 'Geheim-1', writer IDENTIFIED BY 'Geheim-2'",
    "GRANT SELECT, INSERT ON a.* TO reader, writer",
    "GRANT SELECT (id), UPDATE (v) ON b.t TO reader WITH GRANT OPTION",
    "GRANT EXECUTE ON PROCEDURE a.p TO writer",
    "REVOKE INSERT ON a.* FROM reader",
    "CREATE ROLE both_of_them",
    "GRANT both_of_them TO reader, writer",
    "REVOKE ALL PRIVILEGES, GRANT OPTION FROM writer",
    "CREATE DEFINER = reader EVENT a.e ON SCHEDULE EVERY 1 DAY DO DELETE FROM a.t",
    "ALTER EVENT a.e ON SCHEDULE EVERY 2 DAY RENAME TO b.e",
    "ALTER DATABASE b COLLATE latin1_bin",
    "TRUNCATE a.log",
)


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[Pair, Server]]:
    with Pair(OPTIONS, OPTIONS) as pair, Server(OPTIONS) as replica:
        yield pair, replica


def run(server: Server, binlog_format: str, *statements: str) -> None:
    with closing(server.client("a")) as client, client.cursor() as cursor:
        client.autocommit(True)
        cursor.execute(f"SET binlog_format = {binlog_format}")
        for statement in statements:
            try:
                cursor.execute(statement)
            except pymysql.err.MySQLError as error:
                error.add_note(statement)
                raise
            cursor.fetchall()
            while cursor.nextset():
                cursor.fetchall()


def test_it_comes_to_what_the_servers_own_replica_comes_to(
    servers: tuple[Pair, Server], tmp_path: Path
) -> None:
    pair, replica = servers
    replica.sql(
        f"CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = {pair.source.port},"
        " SOURCE_USER = 'root', SOURCE_AUTO_POSITION = 1, GET_SOURCE_PUBLIC_KEY = 1;"
        " START REPLICA"
    )
    with closing(pair.source.client()) as client, client.cursor() as cursor:
        for statement in DEFINITIONS:
            cursor.execute(statement)
    with DaemonProcess(pair.source, pair.target, tmp_path) as daemon:
        for _ in range(2):
            for binlog_format in ("STATEMENT", "MIXED", "ROW"):
                # What sessions have from now on.
                pair.source.sql(f"SET GLOBAL binlog_format = {binlog_format}")
                run(pair.source, binlog_format, *IN_EACH_FORMAT)
        run(pair.source, "MIXED", *ONCE)
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
    assert differences(pair.source, pair.target, users=True) == []
    (executed,) = pair.source.sql("SELECT @@global.gtid_executed")
    deadline = time.monotonic() + 120
    while replica.sql("SELECT @@global.gtid_executed") != [executed]:
        assert time.monotonic() < deadline, replica.sql("SHOW REPLICA STATUS")
        time.sleep(0.1)
    assert differences(replica, pair.target, users=True) == []
