"""MariaDB servers that have logged what only they log, and the kinds of groups that it makes."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.servers.mariadb import provide_mariadb
from tests.servers.mysqld import Options, Server

TRANSACTION = (
    "BEGIN; INSERT INTO a.t VALUES (3, 'z'); UPDATE a.t SET v = REPEAT('q', 2000) WHERE id = 3;"
    " SAVEPOINT s; INSERT INTO a.t VALUES (4, ''); ROLLBACK TO s;"
    " DELETE FROM a.t WHERE id = 1; COMMIT"
)
STATEMENTS = (
    ("CREATE DATABASE a", "ddl"),
    ("CREATE TABLE a.t (id INT PRIMARY KEY, v VARCHAR(3000)) ENGINE=InnoDB", "ddl"),
    ("CREATE TABLE a.m (id INT PRIMARY KEY) ENGINE=MyISAM", "ddl"),
    ("INSERT INTO a.t VALUES (1, REPEAT('x', 1000)), (2, 'y')", "changes"),
    (TRANSACTION, "changes"),
    ("INSERT INTO a.m VALUES (1)", "non_transactional"),
    ("CREATE TABLE a.copy ENGINE=InnoDB SELECT * FROM a.t", "copy"),
    ("XA START 'x'; INSERT INTO a.t VALUES (20, ''); XA END 'x'; XA PREPARE 'x'", "xa_prepare"),
    ("XA COMMIT 'x'", "xa_complete"),
    ("XA START 'y'; INSERT INTO a.t VALUES (21, ''); XA END 'y'; XA PREPARE 'y'", "xa_prepare"),
    ("XA ROLLBACK 'y'", "xa_complete"),
    ("XA START 'z'; INSERT INTO a.t VALUES (22, ''); XA END 'z'; XA COMMIT 'z' ONE PHASE",
     "changes"),
    ("CREATE SEQUENCE a.s", "ddl"),
    ("SET gtid_domain_id = 7; INSERT INTO a.t VALUES (30, 'of another domain')", "changes"),
    ("SET timestamp = 1700000000.25; CREATE TABLE a.n (a TIMESTAMP(6) DEFAULT NOW(6))", "ddl"),
    ("DROP TABLE a.copy, a.n", "ddl"),
)  # fmt: skip
"""What is run, each on a connection of its own, and the kind of the group that it makes."""
TWO_PHASES = "SET binlog_alter_two_phase = 1; ALTER TABLE a.t ADD COLUMN w INT"
"""Makes two groups: an empty one, and the definition."""


@dataclass
class MariadbRecording:
    """A running server, its closed binlog file, and what was run: statement, kind and last GTID."""

    server: Server
    file: Path
    expected: list[tuple[str, str, str]]
    rows: bool

    @property
    def data(self) -> bytes:
        """The contents of the file."""
        return self.file.read_bytes()


@contextmanager
def recorded_mariadb(series: str, options: Options) -> Iterator[MariadbRecording]:
    """Run everything on a server of its own, and rotate its binlog; it is closed at the end."""
    with Server(options, installation=provide_mariadb(series)) as server:
        expected: list[tuple[str, str, str]] = []
        for statement, kind in (*STATEMENTS, (TWO_PHASES, "ddl")):
            with closing(server.client()) as client, client.cursor() as cursor:
                for each in statement.split("; "):
                    cursor.execute(each)
                cursor.execute("SELECT @@last_gtid")
                ((gtid,),) = cursor.fetchall()
            server.wait_until_ended(client.thread_id())
            expected.append((statement, kind, gtid))
        file = server.datadir / server.sql("SHOW MASTER STATUS")[0][0]
        server.sql("FLUSH BINARY LOGS")
        yield MariadbRecording(server, file, expected, options["binlog_format"] == "ROW")
